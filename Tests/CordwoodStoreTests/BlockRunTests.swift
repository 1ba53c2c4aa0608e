// Records that a reader takes from a block without the merge come in the order of the merge,
// whatever other lanes and the next archive of the lane contain.

import CordwoodTestSupport
import XCTest

@testable import CordwoodCore
@testable import CordwoodStore

final class BlockRunTests: XCTestCase {
    private let store = TestFiles.directory()
    /// Lanes of one second and alike process ids have the same place among equal times.
    private var areAlike = false
    override func setUp() { mkdir(store + "/archives", 0o700) }
    override func tearDown() { TestFiles.remove(store) }

    /// One archive of a lane; all lanes share one boot.
    private func archive(
        lane: Int, part: Int, _ times: [UInt64], level: UInt8 = 9, damage: Bool = false
    ) throws {
        let process = CordwoodStore.ProcessInfo(
            laneID: LaneID(high: UInt64(lane + 1), low: 1), bootID: LaneID(high: 5, low: 5),
            processID: UInt32(800 + lane), name: "p\(lane)",
            createdRealtime: 1_764_000_000_000_000_000, createdMonotonic: 0, resource: [])
        let thread = ThreadInfo(process: process, serial: 1, threadID: 9, name: "")
        let records = times.enumerated().map { index, time in
            var staged = Staged(thread: thread)
            staged.model = ModelRecord(RecordRef(thread: thread))
            staged.model.monotonic = time
            staged.model.written = time &+ process.createdRealtime
            staged.model.time = staged.model.written
            staged.model.sequence = UInt64(part &* 10_000 &+ index)
            staged.model.level = index % 40 == 3 ? level : 9
            staged.model.logger = Array("app".utf8)
            staged.model.message = Array("\(lane).\(part).\(index) at \(time)".utf8)
            return staged
        }
        let first = UInt64(part &* 2)
        let cover = ArchiveCover(
            laneID: process.laneID, first: first, last: first + 1,
            laneName: areAlike
                ? "20261121T081530Z-\(lane + 810)-9f3c5a0de1b27788"
                : "20261121T081530Z-\((lane + 1) * 11)-9f3c5a0de1b27788")
        let info = try ArchiveWriter.write(
            source: FakeSource(records), covers: [cover],
            archivesDirectory: FilePath(store + "/archives"),
            codec: .zstd, level: 1, now: 5,
            blockBytes: 2_000)
        guard damage else { return }
        var bytes = readAll("\(info.path)")
        bytes[bytes.count / 2] ^= 0xFF
        writeAll(bytes, "\(info.path)")
    }

    /// What comes, and damage where it is met. `byTexts` counts the messages that come together.
    private func events(
        _ options: ReaderOptions, byTexts count: UnsafeMutablePointer<Int>? = nil
    ) throws -> [String] {
        let reader = try StoreReader(path: store, options: options)
        var found: [String] = []
        var record = RecordRef()
        while true {
            do throws(ReadProblem) {
                guard try reader.advance(into: &record) else { break }
                found.append(Bytes.string(record.message))
                guard let count, let texts = reader.nextTexts() else { continue }
                XCTAssertEqual(texts.last, 0x0A)
                let lines = texts.dropLast().split(
                    separator: 0x0A, omittingEmptySubsequences: false)
                found += lines.map { String(decoding: $0, as: UTF8.self) }
                count.pointee += lines.count
            } catch {
                found.append("\(error)")
            }
        }
        XCTAssertFalse(try reader.advance(into: &record), "the end stays the end")
        let given = found.count(where: { !$0.hasPrefix("damaged(") })
        if options.query == nil {
            XCTAssertEqual(Int(reader.given), given, "each is counted")
        } else {
            XCTAssertGreaterThanOrEqual(Int(reader.given), given)
        }
        return found
    }

    /// The same from the merge alone: who follows takes no runs.
    private func merged() throws -> [String] {
        var options = ReaderOptions()
        options.follow = true
        return try events(options)
    }

    /// Of what the merge gives, the records that such a query leaves, and all damage.
    private func left(by query: String, of wanted: [String], _ isIn: (String) -> Bool) throws {
        var options = ReaderOptions()
        options.query = try Query(query)
        XCTAssertEqual(
            try events(options), wanted.filter { $0.hasPrefix("damaged(") || isIn($0) }, query)
    }

    /// A filter leaves out the last records before a place that is damaged, and the last ones.
    func testARunEndsWithItsRecords() throws {
        try archive(lane: 0, part: 0, [10, 20, 30, 1_000, 1_010])
        try archive(lane: 1, part: 0, (0..<20).map { 40 &+ $0 }, damage: true)
        try archive(lane: 2, part: 0, [25, 1_005, 1_020])
        let wanted = try merged()
        XCTAssertEqual(wanted.count { $0.hasPrefix("damaged(") }, 1)
        for lane in 0..<3 {
            try left(by: "-\"\(lane).0.\"", of: wanted) { !$0.hasPrefix("\(lane).0.") }
            for row in 0..<5 {
                let text = "\(lane).0.\(row) at"
                try left(by: "-\"\(text)\"", of: wanted) { !$0.hasPrefix(text) }
                try left(by: "\"\(text)\"", of: wanted) { $0.hasPrefix(text) }
            }
        }
    }

    func testOfTwoLanesAtATime() throws {
        try archive(lane: 0, part: 0, [10, 20, 30, 40, 50, 50, 60])
        try archive(lane: 1, part: 0, [45, 46, 50, 51, 58, 60, 90])
        let wanted = [
            "0.0.0 at 10", "0.0.1 at 20", "0.0.2 at 30", "0.0.3 at 40", "1.0.0 at 45",
            "1.0.1 at 46", "0.0.4 at 50", "0.0.5 at 50", "1.0.2 at 50", "1.0.3 at 51",
            "1.0.4 at 58", "0.0.6 at 60", "1.0.5 at 60", "1.0.6 at 90",
        ]
        XCTAssertEqual(try events(ReaderOptions()), wanted)
        XCTAssertEqual(try merged(), wanted)
    }

    /// The next archive of the lane begins before the end of this one, by more than clocks differ.
    func testOfTwoArchivesOfALane() throws {
        try archive(lane: 0, part: 0, [1_000, 2_000, 3_000, 900_000, 1_000_000])
        try archive(lane: 0, part: 1, [500_000, 850_000, 950_000])
        let wanted = [
            "0.0.0 at 1000", "0.0.1 at 2000", "0.0.2 at 3000", "0.1.0 at 500000",
            "0.0.3 at 900000", "0.1.1 at 850000", "0.0.4 at 1000000", "0.1.2 at 950000",
        ]
        XCTAssertEqual(try events(ReaderOptions()), wanted)
        XCTAssertEqual(try merged(), wanted)
    }

    func testOfLanesThatTakeTurns() throws {
        for lane in 0..<3 {
            try archive(lane: lane, part: 0, (0..<300).map { UInt64($0 * 9 + lane + $0 % 2 * 12) })
        }
        let wanted = try merged()
        XCTAssertEqual(wanted.count, 900)
        XCTAssertEqual(try events(ReaderOptions()), wanted)
    }

    func testOfEqualTimesInLanesThatAreAlike() throws {
        areAlike = true
        for lane in 0..<3 {
            try archive(lane: lane, part: 0, (0..<200).map { UInt64($0 / (lane + 1)) })
        }
        let wanted = try merged()
        XCTAssertEqual(wanted.count, 600)
        XCTAssertEqual(try events(ReaderOptions()), wanted)
    }

    /// The messages of a whole block except its first records, which show that a run begins.
    func testTextsOfWholeBlocks() throws {
        try archive(lane: 0, part: 0, Array(1_000...1_299))
        try archive(lane: 0, part: 1, Array(900_000...900_299))
        let wanted = try events(ReaderOptions())
        func texts(_ change: (inout ReaderOptions) -> Void) throws -> Int {
            var options = ReaderOptions()
            change(&options)
            var count = 0
            XCTAssertEqual(try events(options, byTexts: &count), wanted)
            return count
        }
        XCTAssertGreaterThan(try texts { _ in }, 400)
        XCTAssertGreaterThan(try texts { $0.kinds = 1 }, 400)
        XCTAssertGreaterThan(try texts { $0.readsAhead = true }, 400)
        // Filters that a whole block decides are asked of each record all the same.
        XCTAssertEqual(try texts { $0.level = 9 }, 0)
        XCTAssertEqual(try texts { $0.since = 1 }, 0)
        XCTAssertEqual(try texts { $0.logger = "app" }, 0)
        XCTAssertEqual(try texts { $0.isUnordered = true }, 0)
        // Another lane has a record between those of a block.
        try archive(lane: 1, part: 0, [900_150])
        var count = 0
        let mixed = try events(ReaderOptions(), byTexts: &count)
        XCTAssertEqual(mixed, try merged())
        XCTAssertGreaterThan(count, 400)
    }

    /// From any row on, messages that come together are those of the records that would come.
    func testTextsAreThoseOfTheRecords() throws {
        var together = 0
        for seed in SplitMix.seeds(30) {
            var random = SplitMix(seed)
            var maker = RecordMaker(seed: seed, processes: 1)
            var records = maker.records(60)
            for index in records.indices where random.chance(2) {
                records[index].storedSections = []
                records[index].model.kind = 0
                records[index].model.flags = 0
                records[index].model.time = records[index].model.written
                records[index].model.trace = []
                records[index].model.context = []
                records[index].model.file = []
                records[index].model.function = []
                records[index].model.line = 0
                let size = records[index].model.message.count
                records[index].model.originalLength = UInt64(size)
            }
            var block = Block(seed % 3 == 0 ? Staged.texts(60) : records)
            let stored = try BlockFile(&block, BlockEffort.allCases[Int(seed % 3)], .none)
            together += look(at: stored, through: .max)
            let middle = records[30].model.monotonic
            _ = look(at: stored, through: middle)
            for _ in 0..<40 {
                // What its checks do not notice.
                var changed = stored
                changed.bytes[random.below(stored.bytes.count)] ^= UInt8(1 << random.below(8))
                changed.repair()
                _ = look(at: changed, through: .max)
            }
        }
        XCTAssertGreaterThan(together, 300)
    }

    /// How many messages come together.
    private func look(at stored: BlockFile, through last: UInt64) -> Int {
        var decoder = BlockDecoder()
        var buffer = RowBuffer()
        guard (try? stored.load(&decoder, into: &buffer)) != nil else { return 0 }
        defer { buffer.clear() }
        let view = buffer.view()
        var found = 0
        var one = BlockRecords(view)
        while one.left > 0 {
            var other = one
            let before = one.row
            var record = RecordRef()
            guard let texts = one.takeTexts(through: last, offset: 0, .max) else {
                XCTAssertEqual(one.row, before)
                if one.next(into: &record) != .record { return found }
                continue
            }
            XCTAssertEqual(one.row, before + texts.count)
            XCTAssertGreaterThan(texts.count, 0)
            var lines: [UInt8] = []
            for row in before..<one.row {
                XCTAssertEqual(other.next(into: &record), .record)
                XCTAssertEqual(record.kind, 0)
                XCTAssertEqual(record.flags, [])
                XCTAssertLessThanOrEqual(record.monotonicNs, last)
                if row > 0 { XCTAssertTrue(other.isInOrder(row)) }
                lines += Array(record.message) + [0x0A]
            }
            XCTAssertEqual(Array(texts.bytes), lines)
            found += texts.count
        }
        return found
    }

    func testOfManyBySeed() throws {
        for seed in SplitMix.seeds(60) {
            tearDown()
            mkdir(store, 0o700)
            setUp()
            areAlike = seed % 3 == 0
            var random = SplitMix(seed)
            // Long runs, short ones, and lanes that take turns.
            let step = [3, 60_000, 2_000_000][random.below(3)]
            var count = 0
            for lane in 0..<(2 + random.below(4)) {
                var time = UInt64(random.below(50 * step))
                for part in 0..<(1 + random.below(3)) {
                    var times: [UInt64] = []
                    for _ in 0..<(20 + random.below(300)) {
                        times.append(time)
                        if random.chance(30) { time &+= UInt64(random.below(100 * step)) }
                        if random.chance(3) { time &+= UInt64(random.below(step)) }
                        if random.chance(25) { time -= min(time, UInt64(random.below(9 * step))) }
                    }
                    if random.chance(2) { time -= min(time, UInt64(random.below(30 * step))) }
                    count += times.count
                    try archive(
                        lane: lane, part: part, times, level: 17, damage: random.chance(8))
                }
            }
            let wanted = try merged()
            XCTAssertGreaterThan(wanted.count, count / 3)
            XCTAssertEqual(try events(ReaderOptions()), wanted, "seed \(seed)")
            var texts = 0
            XCTAssertEqual(
                try events(ReaderOptions(), byTexts: &texts), wanted, "seed \(seed)")
            try left(by: "-\"is nowhere\"", of: wanted) { _ in true }
            try left(by: "-\"7 at\"", of: wanted) { !$0.contains("7 at") }
            try left(by: "\"7 at\"", of: wanted) { $0.contains("7 at") }
        }
    }
}
