// A store beside archives of a copy of it: whatever the copy held and however far each went on, the
// reader shows every record once, each thread in its order. Two copies that both went on have
// different records of one id: both are shown, and that is told.

import CordwoodCore
import CordwoodStore
import CordwoodTestSupport
import Glibc
import XCTest

final class CopiedLaneTests: XCTestCase {
    private struct Event {
        var segment: UInt64
        var thread: UInt32
        var time: UInt64
        var text: String
    }

    private var store = ""
    private var copy = ""

    override func setUp() {
        store = TestFiles.directory()
        copy = TestFiles.directory()
    }

    override func tearDown() {
        TestFiles.remove(store)
        TestFiles.remove(copy)
    }

    private func events(_ random: inout SplitMix) -> [Event] {
        var events: [Event] = []
        var time: UInt64 = 1_000
        let segments = UInt64.random(in: 1...5, using: &random)
        let threads = UInt32.random(in: 1...3, using: &random)
        for segment in 0...segments {
            for _ in 0..<Int.random(in: 1...12, using: &random) {
                time += [1_000, 90_000, 700_000_000, 3_000_000_000].randomElement(using: &random)!
                let thread = UInt32.random(in: 1...threads, using: &random)
                events.append(
                    Event(segment: segment, thread: thread, time: time, text: "\(events.count)"))
            }
        }
        return events
    }

    /// The lane as these events left it, its clock off by `skew` ns.
    private func lane(_ store: String, _ events: ArraySlice<Event>, skew: UInt64 = 0)
        -> LaneBuilder
    {
        let lane = LaneBuilder(store: store)
        let last = events.last?.segment ?? 0
        for number in 0...last {
            let segment = number == 0 ? lane.first : lane.segment(number)
            segment.pairs = [(0, skew, 1_000_000_000_000 + skew)]
            segment.state = number < last ? 3 : 1
            var chunks: [UInt32: ChunkBuilder] = [:]
            for event in events where event.segment == number {
                segment.created = segment.created == 0 ? event.time : segment.created
                let chunk =
                    chunks[event.thread]
                    ?? segment.chunk(
                        thread: event.thread, sequence: UInt32(number), base: event.time)
                chunks[event.thread] = chunk
                chunk.text(event.text, at: event.time)
            }
        }
        lane.write()
        return lane
    }

    private func archive(_ lane: LaneBuilder, _ range: ClosedRange<UInt64>) throws {
        mkdir(store + "/archives", 0o700)
        let source = try lane.source(boot: lane.bootID, range)
        let (seals, gap) = try source.content()
        let cover = ArchiveCover(
            laneID: lane.laneID, first: range.lowerBound, last: range.upperBound,
            laneName: lane.name, seals: seals, gap: gap)
        _ = try ArchiveWriter.write(
            source: source, covers: [cover], archivesDirectory: FilePath(store + "/archives"),
            codec: .zstd, level: 1, now: 5)
    }

    /// Archives consecutive runs of segments.
    private func archive(
        _ lane: LaneBuilder, upTo last: UInt64, _ random: inout SplitMix
    ) throws -> [ClosedRange<UInt64>] {
        var runs: [ClosedRange<UInt64>] = []
        var first: UInt64 = 0
        while first <= last {
            let end = UInt64.random(in: first...last, using: &random)
            try archive(lane, first...end)
            runs.append(first...end)
            first = end + 1
        }
        return runs
    }

    private func read(
        _ change: (inout ReaderOptions) -> Void = { _ in }
    ) throws -> (texts: [String], reader: StoreReader) {
        var options = ReaderOptions()
        change(&options)
        let reader = try StoreReader(path: store, options: options)
        var texts: [String] = []
        while let record = reader.nextRecord() { texts.append(record.message) }
        return (texts, reader)
    }

    func testEachRecordComesOnce() throws {
        for seed in SplitMix.seeds(200, core: 30) {
            tearDown()
            setUp()
            var random = SplitMix(seed)
            let events = events(&random)
            let skew = UInt64.random(in: 0...40_000, using: &random)
            let early = lane(
                copy, events.prefix(Int.random(in: 1...events.count, using: &random)), skew: skew)
            let whole = lane(store, events[...])
            _ = try archive(early, upTo: early.segments.last?.number ?? 0, &random)
            if Bool.random(using: &random), let last = whole.segments.last?.number {
                let archived = UInt64.random(in: 0...last, using: &random)
                _ = try archive(whole, upTo: archived, &random)
                // What an adopter removes: segment 0 is in the lane file.
                for segment in whole.segments
                where segment.number <= archived && Bool.random(using: &random) {
                    unlink(whole.path(segment))
                }
            }
            let expected = events.map(\.text)
            let (texts, reader) = try read()
            XCTAssertEqual(reader.problemCount, 0, "seed \(seed): \(reader.problems)")
            XCTAssertEqual(texts.count, expected.count, "seed \(seed)")
            XCTAssertEqual(Set(texts), Set(expected), "seed \(seed)")
            for thread in Set(events.map(\.thread)) {
                let own = events.filter { $0.thread == thread }.map(\.text)
                let names = Set(own)
                XCTAssertEqual(texts.filter(names.contains), own, "seed \(seed)")
            }
            XCTAssertEqual(
                try read { $0.isUnordered = true }.texts.sorted(), expected.sorted(),
                "seed \(seed)")
            XCTAssertEqual(try read { $0.follow = true }.texts, texts, "seed \(seed)")
            XCTAssertEqual(try read { $0.last = 4 }.texts, texts.suffix(4), "seed \(seed)")
            let both = try StoreReader(paths: [copy, store])
            var count = 0
            while both.nextRecord() != nil { count += 1 }
            XCTAssertEqual(count, expected.count, "seed \(seed): two stores")
            let report = try StoreInspector.verify(directory: store)
            XCTAssertEqual(report.problems, [], "seed \(seed)")
        }
    }

    func testTwoCopiesThatWentOnAreBothShownAndTold() throws {
        for seed in SplitMix.seeds(80, core: 20) {
            tearDown()
            setUp()
            var random = SplitMix(seed)
            let events = events(&random)
            let fork = Int.random(in: 0..<events.count, using: &random)
            var other = events
            for index in fork..<other.count { other[index].text = "other \(index)" }
            _ = lane(store, events[...])
            let clone = lane(copy, other[...])
            _ = try archive(clone, upTo: clone.segments.last?.number ?? 0, &random)
            let (texts, reader) = try read()
            XCTAssertEqual(
                texts.sorted(), (events.map(\.text) + other[fork...].map(\.text)).sorted(),
                "seed \(seed)")
            XCTAssertEqual(reader.problemCount, 1, "seed \(seed)")
            XCTAssertTrue(
                "\(reader.problems)".contains("different records have one id"),
                "\(reader.problems)")
        }
    }

    /// After a power cut, a segment has other bytes in the place of an archived record. A filter
    /// that leaves out the record does not show these.
    func testAFilterDoesNotShowWhatARecordHides() throws {
        let lane = LaneBuilder(store: store, boot: 5)
        lane.first.chunk(thread: 1, sequence: 0, base: 0).text("kept", at: 5)
        lane.write()
        try archive(lane, 0...0)
        let torn = LaneBuilder(store: store, boot: 5)
        let chunk = torn.first.chunk(thread: 1, sequence: 0, base: 0)
        chunk.isSettled = false
        chunk.text("torn", at: 5, level: 17)
        torn.write()
        XCTAssertEqual(try read().texts, ["kept"])
        XCTAssertEqual(try read { $0.level = 17 }.texts, [])
        XCTAssertEqual(try read { $0.containing = Array("t".utf8) }.texts, ["kept"])
        let query = try Query("torn")
        XCTAssertEqual(try read { $0.query = query }.texts, [])
    }

    /// What is proven to be in an archive is read there alone; an archive that another contains is
    /// not read.
    func testWhatIsProvenIsReadOnce() throws {
        var random = SplitMix(9)
        let events = events(&random)
        let whole = lane(store, events[...])
        let last = try XCTUnwrap(whole.segments.last?.number)
        try archive(whole, 0...0)
        try archive(whole, 0...last)
        let archives = try LaneFiles.names(in: FilePath(store + "/archives")).sorted()
        XCTAssertEqual(archives.count, 2)
        // Whoever reads one of these finds it damaged.
        let small = store + "/archives/" + archives[0]
        try flip(small, at: TestFiles.size(small) / 2)
        XCTAssertNotEqual(try StoreInspector.verify(file: small).problems, [])
        for segment in whole.segments where segment.state == 3 {
            try flip(whole.path(segment), at: 4_096 + 128 + 16)
            XCTAssertNotEqual(try StoreInspector.verify(file: whole.path(segment)).problems, [])
        }
        let (texts, reader) = try read()
        XCTAssertEqual(texts.sorted(), events.map(\.text).sorted())
        XCTAssertEqual(reader.problemCount, 0, "\(reader.problems)")
    }

    private func flip(_ path: String, at offset: Int) throws {
        let file = open(path, O_RDWR)
        XCTAssertGreaterThanOrEqual(file, 0, path)
        defer { close(file) }
        var byte: UInt8 = 0
        XCTAssertEqual(pread(file, &byte, 1, offset), 1)
        byte ^= 0x40
        XCTAssertEqual(pwrite(file, &byte, 1, offset), 1)
    }
}
