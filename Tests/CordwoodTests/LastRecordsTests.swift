// A reader of the last records returns exactly the end of a full read, for stores made by seed:
// lanes of several boots that overlap, clocks that are set, threads whose time steps back, archives
// that are cut or damaged, segments not archived yet, filters. And it reads little older data.

import Cordwood
import CordwoodCore
import CordwoodStore
import CordwoodTestSupport
import Glibc
import XCTest

final class LastRecordsTests: XCTestCase {
    var store = ""

    override func setUp() { store = TestFiles.directory() }
    override func tearDown() { TestFiles.remove(store) }

    struct Read {
        var lines: [String] = []
        var problems = 0
        var gathered: UInt64 = 0
        /// Records that were made from rows.
        var made: UInt64 = 0
    }

    func read(_ options: ReaderOptions, boot: LaneID) throws -> Read {
        let reader = try StoreReader(path: store, options: options, runningBoot: boot)
        var found = Read()
        while true {
            if reader.next({ found.lines.append(line($0)) }) != .record { break }
        }
        found.problems = reader.problemCount
        found.gathered = reader.looked
        found.made = reader.given
        return found
    }

    // MARK: By seed

    func testTheLastRecordsAreTheEndOfAFullRead() throws {
        var (all, gathered, made): (UInt64, UInt64, UInt64) = (0, 0, 0)
        for seed in SplitMix.seeds(400, core: 10) {
            TestFiles.remove(store)
            var maker = StoreMaker(store: store, seed: seed)
            try maker.make()
            for round in 0..<6 {
                var options = round < 2 ? ReaderOptions() : maker.filter()
                let full = try read(options, boot: maker.running)
                options.last = [1, 2, 7, 30, 200, 5_000].randomElement(using: &maker.random)!
                // With so few bytes none is kept, and they are read again.
                if round % 2 == 1 { options.keptBytesMax = 600 }
                if round % 3 == 0 { options.segmentsOpenMax = 0 }
                let last = try read(options, boot: maker.running)
                guard last.lines == Array(full.lines.suffix(options.last)) else {
                    return XCTFail(
                        "seed \(seed), round \(round): the last \(options.last) of "
                            + "\(full.lines.count), \(options)")
                }
                XCTAssertLessThanOrEqual(last.problems, full.problems, "seed \(seed)")
                if options.takesAllForTests, options.last <= 30, round % 2 == 0 {
                    all += UInt64(full.lines.count)
                    gathered += last.gathered
                    made += last.made
                }
            }
        }
        XCTAssertLessThan(gathered, all / 4 * 3, "much that is older was read")
        XCTAssertLessThan(made, gathered / 20 * 19, "records were made of older rows")
    }

    /// Records that a filter leaves out are not made, but decide the order of the others as if they
    /// were.
    func testAFilterLeavesTheOrderAsItIs() throws {
        for seed in SplitMix.seeds(400, core: 5) {
            TestFiles.remove(store)
            var maker = StoreMaker(store: store, seed: seed)
            try maker.make()
            for _ in 0..<4 {
                let options = maker.filter()
                let plan = options.plan
                var wanted: [String] = []
                let reader = try StoreReader(path: store, runningBoot: maker.running)
                while reader.next({ if plan.matches($0) { wanted.append(line($0)) } })
                    == .record
                {}
                var found = try read(options, boot: maker.running).lines
                // A block that is passed over may contain a record whose time is ahead of the next.
                if maker.stepsBack || options.since > 0 || options.until > 0 {
                    found.sort()
                    wanted.sort()
                }
                // Of a damaged block, a reader of severe records has the extract.
                if reader.problemCount > 0 {
                    let known = Set(wanted)
                    found = found.filter(known.contains)
                }
                guard found == wanted else { return XCTFail("seed \(seed): \(options)") }
            }
        }
    }

    // MARK: One by one

    /// An archive returns the wanted records, and the last one of a block.
    func testAnArchiveMakesOnlyWhatIsWanted() throws {
        let lane = try simple { $0 % 100 == 0 ? 17 : 9 }
        let path = try archivePath(lane, 2)
        let source = try ArchiveSource.open(path: FilePath(path))
        source.select { $0.level >= 17 }
        var levels: [UInt8: Int] = [:]
        while let record = try source.advance() { levels[record.level, default: 0] += 1 }
        XCTAssertEqual(levels[17], 3)
        XCTAssertLessThanOrEqual(levels[9] ?? 0, source.info.blockCount)
        XCTAssertGreaterThan(source.info.recordCount, 240)
    }

    /// 40 blocks of 25 records each, about a second apart; before the last ten the clock went back
    /// by that many seconds.
    func simple(
        back: UInt64 = 0, blockBytes: Int = 300, effort: BlockEffort = .swift,
        stepNs: UInt64 = 1_000_000_000, level: (Int) -> UInt8 = { _ in 9 }
    ) throws -> LaneBuilder {
        let lane = LaneBuilder(store: store)
        for number in 1...4 {
            let segment = lane.segment(UInt64(number))
            segment.state = 3
            if back > 0 {
                let utc = 1_764_000_000 - (number == 4 ? back : 0)
                segment.pairs = [(0, 0, utc * 1_000_000_000)]
            }
            segment.created = UInt64(number * 250) * stepNs
            let base = segment.created
            let chunk = segment.chunk(thread: 1, sequence: UInt32(number), base: base)
            for index in 0..<250 {
                let at = base + UInt64(index) * stepNs
                chunk.newBase(at)
                chunk.text("\(number).\(index)", at: at, level: level(number * 250 + index))
            }
        }
        lane.write()
        for number in 1...4 {
            try archive(lane, UInt64(number), blockBytes: blockBytes, effort: effort)
        }
        return lane
    }

    func archive(
        _ lane: LaneBuilder, _ number: UInt64, blockBytes: Int, effort: BlockEffort = .swift
    ) throws {
        mkdir(store + "/archives", 0o700)
        let cover = ArchiveCover(
            laneID: lane.laneID, first: number, last: number, laneName: lane.name)
        _ = try ArchiveWriter.write(
            source: try lane.source(number...number), covers: [cover],
            archivesDirectory: FilePath(store + "/archives"), codec: .zstd, level: 1, now: 5,
            effort: effort, blockBytes: blockBytes)
        unlink(lane.path(lane.segments[Int(number) - 1]))
    }

    private func archivePath(_ lane: LaneBuilder, _ number: Int) throws -> String {
        let start = "\(lane.name).\(LaneBuilder.digits(UInt64(number), 8))-"
        let names = try FileManager.default.contentsOfDirectory(atPath: store + "/archives")
        return "\(store)/archives/" + (try XCTUnwrap(names.first { $0.hasPrefix(start) }))
    }

    func testOnlyTheEndIsRead() throws {
        _ = try simple()
        var options = ReaderOptions()
        options.last = 5
        let last = try read(options, boot: .zero)
        XCTAssertEqual(last.lines.count, 5)
        XCTAssertLessThan(last.gathered, 60)
    }

    /// In the last block, no record is made of the rows before the last ones.
    func testNoRecordIsMadeOfWhatIsOlder() throws {
        for effort in [BlockEffort.swift, .dense] {
            TestFiles.remove(store)
            _ = try simple(blockBytes: 100_000, effort: effort)
            let full = try read(ReaderOptions(), boot: .zero)
            for (count, made) in [(1, 1), (5, 5), (125, 125), (126, 250), (260, 500)] {
                var options = ReaderOptions()
                options.last = count
                let last = try read(options, boot: .zero)
                XCTAssertEqual(last.lines, Array(full.lines.suffix(count)))
                XCTAssertEqual(last.made, UInt64(made), "\(effort), the last \(count)")
            }
        }
    }

    /// Five lanes log by turns, each into one block: in all of them together, no more records are
    /// made than are wanted.
    func testNoRecordIsMadeOfWhatIsOlderInOtherLanes() throws {
        let step: UInt64 = 200_000_000
        for number in 0..<5 {
            let lane = LaneBuilder(
                store: store, name: "20261121T081530Z-\(812 + number)-9f3c5a0de1b27788",
                id: UInt64(number + 1), boot: 3)
            let segment = lane.segment(1)
            segment.state = 3
            segment.pairs = [(0, 0, 1_764_000_000_000_000_000)]
            let chunk = segment.chunk(thread: 1, sequence: 1, base: 0)
            for index in 0..<200 {
                let at = UInt64(index * 5 + number) * step
                chunk.newBase(at)
                chunk.text("\(number).\(index)", at: at)
            }
            lane.write()
            try archive(lane, 1, blockBytes: 100_000)
            unlink(lane.lanePath)
        }
        let full = try read(ReaderOptions(), boot: .zero)
        XCTAssertEqual(full.lines.count, 1_000)
        for count in [1, 7, 50, 100] {
            var options = ReaderOptions()
            options.last = count
            let last = try read(options, boot: .zero)
            XCTAssertEqual(last.lines, Array(full.lines.suffix(count)))
            XCTAssertEqual(last.made, UInt64(count))
        }
    }

    /// An archive that ends within the 100 ms before the last records is read from a block on that
    /// contains none of them.
    func testABlockThatIsPassedOverGivesNoRecord() throws {
        for effort in [BlockEffort.swift, .dense] {
            TestFiles.remove(store)
            _ = try simple(blockBytes: 100_000, effort: effort, stepNs: 200_000)
            let full = try read(ReaderOptions(), boot: .zero)
            for count in [1, 100, 1_000] {
                var options = ReaderOptions()
                options.last = count
                let last = try read(options, boot: .zero)
                XCTAssertEqual(last.lines, Array(full.lines.suffix(count)), "\(effort), \(count)")
            }
        }
    }

    /// If too few of the newest match, four times as many are tried, until everything is read.
    func testFewThatMatchCostAThirdMoreThanAFullRead() throws {
        _ = try simple { $0 == 250 ? 17 : 9 }
        var options = ReaderOptions()
        options.last = 2
        options.logger = "none"
        let none = try read(options, boot: .zero)
        XCTAssertEqual(none.lines, [])
        options = ReaderOptions()
        options.last = 1
        options.level = 17
        XCTAssertEqual(try read(options, boot: .zero).lines.count, 1)
        options = ReaderOptions()
        options.last = 900
        let most = try read(options, boot: .zero)
        XCTAssertEqual(most.lines.count, 900)
        XCTAssertLessThanOrEqual(most.gathered, 1_000)
    }

    /// The first attempt found more than are wanted, but too few of the newest: the second keeps
    /// nothing of it.
    func testASecondAttemptKeepsTheOrder() throws {
        _ = try simple { $0 % 5 == 0 ? 17 : 9 }
        // Not archived, so it is read as a whole, and it is older.
        let other = LaneBuilder(
            store: store, name: "20261121T081530Z-813-9f3c5a0de1b27789", id: 8)
        let segment = other.segment(1)
        let chunk = segment.chunk(thread: 1, sequence: 1, base: 1_000_000_000)
        for index in 0..<18 {
            chunk.text("old.\(index)", at: 1_000_000_000 + UInt64(index), level: 17)
        }
        other.write()
        var options = ReaderOptions()
        options.level = 17
        let full = try read(options, boot: .zero)
        for count in 1...60 {
            options.last = count
            let last = try read(options, boot: .zero)
            XCTAssertEqual(last.lines, Array(full.lines.suffix(count)), "the last \(count)")
        }
    }

    /// Events with times of their own look old in the footers. The time of writing decides, even if
    /// a later archive, or the last block of one, ends earlier. Times are in ms.
    func testEventsThatLookOldAreNotLeftOut() throws {
        let even = Array(stride(from: 10_000, through: 12_000, by: 80))
        let late = Array(stride(from: 7_000, through: 12_000, by: 200))
        try expectTheEnd(
            of: [Array(stride(from: 0, through: 10_000, by: 500)), [5_000, 6_000], late],
            beside: Array(stride(from: 7_100, through: 8_000, by: 100)), last: 30)
        TestFiles.remove(store)
        // From a thread whose coarse clock stepped back.
        try expectTheEnd(
            of: [[9_900, 10_005, 9_999], even], beside: [10_002], last: even.count + 1)
    }

    /// A lane of these segments, the first of which has events, and one of a single segment.
    private func expectTheEnd(of segments: [[Int]], beside: [Int], last: Int) throws {
        let utc: UInt64 = 1_764_000_000_000_000_000
        for (number, segments) in [segments, [beside]].enumerated() {
            let lane = LaneBuilder(
                store: store, name: "20261121T081530Z-\(812 + number)-9f3c5a0de1b27788",
                id: UInt64(number + 1), boot: 3)
            lane.createdRealtime = utc
            for (index, times) in segments.enumerated() {
                let segment = lane.segment(UInt64(index + 1))
                segment.state = 3
                segment.pairs = [(0, 0, utc)]
                let chunk = segment.chunk(
                    thread: UInt32(index + 1), sequence: UInt32(index + 1), base: 0)
                for time in times {
                    let at = UInt64(time) * 1_000_000
                    chunk.newBase(at)
                    // Each event fills a block.
                    let text = "\(number) \(time) " + String(repeating: "x", count: 400)
                    if number == 0, index == 0 {
                        let own = StoreMaker.bytes(of: utc + at - 2_000_000_000_000)
                        chunk.record(
                            2, at: at, level: 9, section(1, Array(text.utf8)) + section(6, own))
                    } else {
                        chunk.text("\(number) \(time)", at: at)
                    }
                }
            }
            lane.write()
            for index in 1...segments.count {
                let isEvents = number == 0 && index == 1
                try archive(lane, UInt64(index), blockBytes: isEvents ? 300 : 100_000)
            }
            unlink(lane.lanePath)
        }
        var options = ReaderOptions()
        let full = try read(options, boot: .zero)
        options.last = last
        XCTAssertEqual(try read(options, boot: .zero).lines, Array(full.lines.suffix(last)))
    }

    /// Of a lane that nobody has archived, the last segments are read, and the headers of the rest.
    func testOnlyTheLastSegmentsAreRead() throws {
        let lane = LaneBuilder(store: store)
        lane.createdMonotonic = 1
        let second: UInt64 = 1_000_000_000
        // A thread is slow: the third segment is sealed long after those that follow it.
        let late: UInt64 = 92
        for number: UInt64 in 1...100 {
            let segment = lane.segment(number)
            let begin = number * second
            segment.created = begin
            segment.state = number == 100 ? 1 : 3
            let chunk = segment.chunk(thread: 1, sequence: UInt32(number), base: begin)
            for index: UInt64 in 0..<50 {
                chunk.text("\(number).\(index)", at: begin + index * 1_000_000)
            }
            var end = begin + 900_000_000
            if number == 3 {
                end = late * second + 500_000_000
                segment.chunk(thread: 2, sequence: 0, base: end - 10)
                    .text("late", at: end - 10)
            }
            segment.pairs.append((end, end, 1_000_000_000_000 + end))
        }
        lane.write()
        var options = ReaderOptions()
        let full = try read(options, boot: .zero)
        XCTAssertEqual(full.lines.count, 5_001)
        for last in [1, 50, 120, 450] {
            options.last = last
            let found = try read(options, boot: .zero)
            XCTAssertEqual(found.lines, full.lines.suffix(last))
            XCTAssertEqual(found.problems, 0)
            XCTAssertLessThanOrEqual(found.gathered, UInt64(4 * max(last, 200)))
        }
        options.last = 450
        XCTAssertTrue(try read(options, boot: .zero).lines.contains { $0.contains("late") })
        // It ends in a gap, but for what an old gap record reports.
        lane.drops = [(5, 0, 7, 9)]
        var gap: [UInt8] = []
        for word: UInt64 in [0, 0, 4, 5, 800, 0] { gap += StoreMaker.bytes(of: word) }
        lane.segments[4].chunks[0].record(7, at: 5 * second + 60_000_000, level: 0, gap)
        lane.write()
        for last in [1, 2, 40] {
            options.last = last
            XCTAssertEqual(
                try read(options, boot: .zero).lines,
                try read(ReaderOptions(), boot: .zero).lines.suffix(last))
        }
    }

    /// The header of a sealed segment may say an end that cannot be. The guesses of the newest 64
    /// add up to 2⁶² + 1 records, four times of which would be 4.
    func testEndsThatCannotBeAreNotBelieved() throws {
        let lane = LaneBuilder(store: store)
        for number: UInt64 in 1...200 {
            let segment = lane.segment(number)
            let begin = number * 1_000_000_000
            segment.created = begin
            segment.state = 3
            segment.end = (1 << 63) - 128 + 4_096 + (number == 137 ? 128 : 0)
            segment.chunk(thread: 1, sequence: UInt32(number), base: begin)
                .text("\(number)", at: begin)
            segment.pairs.append((begin + 1, begin + 1, 1_000_000_000_000 + begin + 1))
        }
        lane.write()
        var options = ReaderOptions()
        let full = try read(options, boot: .zero)
        XCTAssertEqual(full.lines.count, 200)
        options.last = 100
        let last = try read(options, boot: .zero)
        XCTAssertEqual(last.lines, full.lines.suffix(100))
        XCTAssertEqual(last.problems, full.problems)
        // A file that was cut is read, so that it is reported.
        for segment in lane.segments { segment.end = nil }
        lane.write()
        XCTAssertEqual(truncate(lane.path(lane.segments[4]), 4_200), 0)
        options.last = 1
        let cut = try read(options, boot: .zero)
        XCTAssertEqual(cut.lines, full.lines.suffix(1))
        XCTAssertEqual(cut.problems, try read(ReaderOptions(), boot: .zero).problems)
        XCTAssertGreaterThan(cut.problems, 0)
        XCTAssertLessThanOrEqual(cut.gathered, 20)
    }

    /// Damage that is read is reported once, even if it is met twice.
    func testDamageIsReportedOnce() throws {
        let lane = try simple()
        let path = try archivePath(lane, 4)
        let size = StoreMaker.bytes(of: path)
        truncate(path, off_t(size) - 30)
        var options = ReaderOptions()
        let full = try read(options, boot: .zero)
        options.last = 3
        let last = try read(options, boot: .zero)
        XCTAssertEqual(last.lines, Array(full.lines.suffix(3)))
        XCTAssertEqual(last.problems, full.problems)
        XCTAssertGreaterThan(last.problems, 0)
    }

    /// Records that come later follow the last ones.
    func testFollowingGoesOnAfterTheLastRecords() throws {
        let lane = try simple()
        var options = ReaderOptions()
        options.last = 2
        options.follow = true
        let reader = try StoreReader(path: store, options: options, runningBoot: .zero)
        func next() -> [String] {
            var found: [String] = []
            while let record = reader.nextRecord() { found.append(record.message) }
            return found
        }
        XCTAssertEqual(next(), ["4.248", "4.249"])
        let segment = lane.segment(5)
        segment.created = 2_000_000_000_000
        segment.chunk(thread: 1, sequence: 5, base: segment.created)
            .text("later", at: segment.created)
        TestFiles.write(segment.bytes(), to: lane.path(segment))
        XCTAssertEqual(next(), ["later"])
    }
}

private func line(_ record: RecordRef) -> String {
    var line: [UInt8] = []
    JSONLine.append(record, to: &line)
    return String(decoding: line, as: UTF8.self)
}

extension ReaderOptions {
    fileprivate var takesAllForTests: Bool {
        level == 0 && since == 0 && until == 0 && logger == ""
    }
}
