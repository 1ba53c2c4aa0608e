// What a reader returns around one record is exactly that part of a full read, for stores made by
// seed: wherever the record is, whatever the time in its key says, with filters and without, even
// if the record itself does not pass the filter. And records are found beside others of their
// thread and process without reading other lanes.

import Cordwood
import CordwoodCore
import CordwoodStore
import CordwoodTestSupport
import XCTest

final class RecordWindowTests: XCTestCase {
    var store = ""

    override func setUp() { store = TestFiles.directory() }
    override func tearDown() { TestFiles.remove(store) }

    struct Found {
        var lines: [String] = []
        var ids: [RecordID] = []
        var times: [UInt64] = []
        var looked: UInt64 = 0
        var isMissing = false
    }

    func read(_ options: ReaderOptions, boot: LaneID) throws -> Found {
        let reader = try StoreReader(path: store, options: options, runningBoot: boot)
        var found = Found()
        while reader.next({ record in
            found.lines.append(line(record))
            found.ids.append(record.id)
            found.times.append(record.timeNs)
        }) == .record {}
        found.looked = reader.looked
        found.isMissing = reader.isMissing
        return found
    }

    func testAWindowIsAPartOfAFullRead() throws {
        try full()
        var windows = 0
        for seed in SplitMix.seeds(80) {
            TestFiles.remove(store)
            var maker = StoreMaker(store: store, seed: seed)
            try maker.make()
            for round in 0..<4 {
                var options = round < 2 ? ReaderOptions() : maker.filter()
                let full = try read(options, boot: maker.running)
                guard !full.ids.isEmpty, Set(full.ids).count == full.ids.count else { continue }
                for _ in 0..<3 {
                    let at = Int.random(in: full.ids.indices, using: &maker.random)
                    let before = [0, 1, 5, 40, 1_000].randomElement(using: &maker.random)!
                    let after = [0, 1, 5, 40, 1_000, nil].randomElement(using: &maker.random)!
                    let hints: [UInt64] = [full.times[at], full.times[at], 1, .max - 1]
                    let time = hints.randomElement(using: &maker.random)!
                    options.window = RecordWindow(
                        around: full.ids[at], timeNs: time, before: before, after: after)
                    let found = try read(options, boot: maker.running)
                    let end = after.map { min(at + $0, full.ids.count - 1) } ?? full.ids.count - 1
                    guard found.lines == Array(full.lines[max(at - before, 0)...end]) else {
                        return XCTFail(
                            "seed \(seed), round \(round): \(before) before and "
                                + "\(after ?? -1) after \(at) of \(full.ids.count), \(options)")
                    }
                    windows += 1
                }
            }
        }
        XCTAssertGreaterThan(windows, 200)
    }

    func testARecordThatIsNotAskedFor() throws {
        var windows = 0
        for seed in SplitMix.seeds(60, core: 9) {
            TestFiles.remove(store)
            var maker = StoreMaker(store: store, seed: seed)
            try maker.make()
            if maker.stepsBack { continue }
            let full = try read(ReaderOptions(), boot: maker.running)
            for _ in 0..<3 {
                var options = maker.filter()
                options.since = 0
                options.until = 0
                let some = Set(try read(options, boot: maker.running).ids)
                let others = full.ids.indices.filter { !some.contains(full.ids[$0]) }
                guard let at = others.randomElement(using: &maker.random),
                    Set(full.ids).count == full.ids.count
                else { continue }
                func wanted(_ range: Range<Int>) -> [RecordID] {
                    full.ids[range].filter { some.contains($0) }
                }
                options.window = RecordWindow(
                    around: full.ids[at], timeNs: full.times[at], before: 3, after: 2,
                    isApart: true)
                let found = try read(options, boot: maker.running)
                let expected =
                    wanted(0..<at).suffix(3) + [full.ids[at]]
                    + wanted(at + 1..<full.ids.count).prefix(2)
                guard found.ids == Array(expected) else {
                    return XCTFail("seed \(seed): around \(at), \(options)")
                }
                windows += 1
            }
        }
        XCTAssertGreaterThan(windows, 15)
    }

    func testARecordThatIsNotThere() throws {
        var maker = StoreMaker(store: store, seed: 3)
        try maker.make()
        let full = try read(ReaderOptions(), boot: maker.running)
        var options = ReaderOptions()
        let nobody = try XCTUnwrap(RecordID(String(repeating: "7", count: 48)))
        options.window = RecordWindow(
            around: nobody, timeNs: full.times[0], before: 5, after: 5)
        let found = try read(options, boot: maker.running)
        XCTAssertTrue(found.lines.isEmpty)
        XCTAssertTrue(found.isMissing)
    }

    func testRecordsBesideOne() throws {
        for seed in SplitMix.seeds(20) {
            TestFiles.remove(store)
            var maker = StoreMaker(store: store, seed: seed)
            try maker.make()
            let full = try read(ReaderOptions(), boot: maker.running)
            guard let at = full.ids.indices.randomElement(using: &maker.random) else { continue }
            let id = full.ids[at]
            let digits = id.description
            // The lane's 12 bytes, and with the thread's 4 after them 16 (FORMAT §7.1).
            let table: [(ReaderOptions.Origin.Beside, Int)] = [
                (.record(id), 48), (.thread(of: id), 32), (.process(of: id), 24),
            ]
            for (beside, count) in table {
                var options = ReaderOptions()
                options.origin.beside = beside
                let wanted = full.ids.filter {
                    $0.description.prefix(count) == digits.prefix(count)
                }
                let found = try read(options, boot: maker.running)
                XCTAssertEqual(found.ids.sorted(), wanted.sorted(), "seed \(seed), \(count)")
            }
        }
    }

    func testAReadThatIsStopped() throws {
        var maker = StoreMaker(store: store, seed: 5)
        try maker.make()
        let reader = try StoreReader(path: store, runningBoot: maker.running)
        reader.shouldStop = { true }
        var count: UInt64 = 0
        while reader.next({ _ in count += 1 }) == .record {}
        // It is asked once per this many records.
        XCTAssertLessThanOrEqual(count, 16_384)
    }
}

private func line(_ record: RecordRef) -> String {
    var line: [UInt8] = []
    JSONLine.append(record, to: &line)
    return String(decoding: line, as: UTF8.self)
}
