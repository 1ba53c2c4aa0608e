// Which lanes a reader of the last records may skip, and which rows a filter may: a record stays
// if it decides the order of others, or precedes them although it is newer. Stores of a few lanes.

import Cordwood
import CordwoodCore
import CordwoodStore
import CordwoodTestSupport
import Glibc
import XCTest

extension LastRecordsTests {
    /// The clock was set forward within a boot. Of this many lanes, a later one is placed by the
    /// times that it shows. The merge opens it long after its records' turn: they come last.
    func testALaneThatIsOpenedLateIsNotLeftOut() throws {
        func add(_ number: Int, from: UInt64, count: Int, ahead: UInt64) throws {
            let times = (0..<count).map { from + UInt64($0) * 20 }
            let lane = lane(number, boot: 3, times, utc: Int64(ahead))
            try archive(lane, 1, blockBytes: 300)
            unlink(lane.lanePath)
        }
        // The newest by the times shown, then as many as are placed by their first record.
        try add(0, from: 200, count: 40, ahead: 14_400)
        for number in 1...64 { try add(number, from: 1, count: 1, ahead: 0) }
        try add(65, from: 100, count: 5, ahead: 7_200)
        var options = ReaderOptions()
        let full = try read(options, boot: .zero)
        XCTAssertEqual(full.lines.count, 109)
        XCTAssertTrue(full.lines.suffix(5).allSatisfy { $0.contains("65.") }, "not opened late")
        options.last = 3
        let last = try read(options, boot: .zero)
        XCTAssertEqual(last.lines, Array(full.lines.suffix(3)))
        XCTAssertLessThan(last.gathered, full.gathered, "nothing was left out")
    }

    /// A lane whose records have these monotonic times in seconds, and whose clock is ahead of them
    /// by `utc` and a constant.
    private func lane(
        _ number: Int, boot: UInt64, _ times: [UInt64], utc: Int64, created: UInt64? = nil
    ) -> LaneBuilder {
        let second: UInt64 = 1_000_000_000
        let lane = LaneBuilder(
            store: store, name: "20261121T081530Z-\(800 + number)-9f3c5a0de1b27788",
            id: UInt64(number + 1), boot: boot)
        let offset = UInt64(1_764_000_000 + utc) * second
        lane.createdMonotonic = (created ?? times[0]) * second
        lane.createdRealtime = lane.createdMonotonic + offset
        let segment = lane.segment(1)
        segment.state = 3
        segment.created = lane.createdMonotonic
        segment.pairs = [(0, 0, offset)]
        let chunk = segment.chunk(thread: 1, sequence: 1, base: segment.created)
        for (index, time) in times.enumerated() {
            chunk.newBase(time * second)
            chunk.text("\(number).\(index)", at: time * second)
        }
        lane.write()
        return lane
    }

    /// One archive of two boots. An older lane places one of them, later than when the archive was
    /// made: its records hold back those of the other boot that follow.
    func testALaneAmongOthersInAnArchiveDecidesTheirOrder() throws {
        for blockBytes in [1, 100_000] {
            TestFiles.remove(store)
            let some = lane(1, boot: 1, [1_970] + (2_000...2_010), utc: -1_950)
            let other = lane(2, boot: 2, Array(1_980...1_989), utc: -1_950)
            try archive([some, other], blockBytes: blockBytes)
            // The clock was set back after this lane began.
            let old = lane(3, boot: 2, [1_080], utc: -1_070)
            let newest = lane(4, boot: 1, Array(2_450...2_489), utc: -1_950)
            for lane in [old, newest] {
                try archive(lane, 1, blockBytes: 300)
                unlink(lane.lanePath)
            }
            let full = try read(ReaderOptions(), boot: .zero).lines
            XCTAssertEqual(full.count, 63)
            XCTAssertTrue(full.last!.contains("\"1.11\""), "the order is not that odd")
            for count in [1, 5, 15, 30] {
                var options = ReaderOptions()
                options.last = count
                XCTAssertEqual(
                    try read(options, boot: .zero).lines, Array(full.suffix(count)),
                    "the last \(count), \(blockBytes)")
            }
            for text in ["1.", "4.", ".10", "none"] {
                var options = ReaderOptions()
                options.containing = Array(text.utf8)
                XCTAssertEqual(
                    try read(options, boot: .zero).lines,
                    full.filter { Self.message($0, has: text) },
                    text)
            }
        }
    }

    private static func message(_ line: String, has text: String) -> Bool {
        line.split(separator: "\"message\":\"")[1].prefix { $0 != "\"" }.contains(text)
    }

    /// One archive of lanes with one segment each.
    private func archive(_ lanes: [LaneBuilder], blockBytes: Int) throws {
        mkdir(store + "/archives", 0o700)
        let merge = MergeSource()
        var covers: [ArchiveCover] = []
        for lane in lanes {
            let source = try lane.source(1...1)
            merge.learn(try XCTUnwrap(source.process), lane: lane.name)
            merge.add(MergeInput(lowerBound: 0, order: UInt64(covers.count)) { source })
            covers.append(
                ArchiveCover(laneID: lane.laneID, first: 1, last: 1, laneName: lane.name))
        }
        _ = try ArchiveWriter.write(
            source: merge, covers: covers, archivesDirectory: FilePath(store + "/archives"),
            codec: .zstd, level: 1, now: 5,
            blockBytes: blockBytes)
        for lane in lanes {
            unlink(lane.path(lane.segments[0]))
            unlink(lane.lanePath)
        }
    }

    /// Of this many lanes, two are placed by the times that they show. The first of these that is
    /// read decides the offset of their boot: it is not left out.
    func testALaneThatDecidesItsBootIsNotLeftOut() throws {
        var lanes = [lane(0, boot: 3, Array(1_000...1_040), utc: 0)]
        for number in 1...64 { lanes.append(lane(number, boot: 3, [1], utc: 0)) }
        lanes.append(lane(65, boot: 4, [100], utc: 0))
        // The clock was set in between.
        lanes.append(lane(66, boot: 4, Array(520...525), utc: 500))
        for lane in lanes {
            try archive(lane, 1, blockBytes: 300)
            unlink(lane.lanePath)
        }
        var options = ReaderOptions()
        let full = try read(options, boot: .zero)
        XCTAssertEqual(full.lines.count, 112)
        for count in [1, 10, 25, 40] {
            options.last = count
            let last = try read(options, boot: .zero)
            XCTAssertEqual(last.lines, Array(full.lines.suffix(count)), "the last \(count)")
        }
    }

    /// The clock went back by less than the lane lasts: its newest blocks are still the newest.
    func testAClockThatWentBackHidesNothing() throws {
        _ = try simple(back: 260)
        var options = ReaderOptions()
        let full = try read(options, boot: .zero)
        options.last = 5
        let last = try read(options, boot: .zero)
        XCTAssertEqual(last.lines, Array(full.lines.suffix(5)))
        XCTAssertLessThan(last.gathered, 400)
    }

    /// Of many small lanes whose processes are gone, only those at the end are read, and those that
    /// one look does not vouch for: with a gap, with refused records, damaged, or changing.
    func testSmallLanesBeforeTheEndAreNotRead() throws {
        try full()
        let boot = LaneID(high: 5, low: 5)
        let second: UInt64 = 1_000_000_000
        for number: UInt64 in 0..<300 {
            let lane = LaneBuilder(
                store: store, name: "20261121T081530Z-\(1_000 + number)-9f3c5a0de1b27788",
                id: number + 1, boot: 5)
            // No process has run since the machine's start under this number.
            lane.processNamespace = Machine.processNamespace()
            lane.createdMonotonic = (number + 1) * second
            lane.first.created = lane.createdMonotonic
            let chunk = lane.first.chunk(thread: 1, sequence: 1, base: lane.createdMonotonic)
            for index: UInt64 in 0..<3 {
                let at = lane.createdMonotonic + index * 1_000
                chunk.newBase(at)
                chunk.text("\(number).\(index)", at: at)
            }
            // One lives on long after it began.
            if number == 200 {
                chunk.newBase(298 * second)
                chunk.text("late", at: 298 * second)
            }
            if number == 210 { lane.drops = [(4, 0, 299 * second, 299 * second)] }
            if number == 220 { lane.processNamespace = 0 }
            lane.write()
        }
        var options = ReaderOptions()
        let full = try read(options, boot: boot)
        XCTAssertEqual(full.lines.count, 902)
        for count in [1, 3, 8, 12] {
            options.last = count
            let last = try read(options, boot: boot)
            XCTAssertEqual(last.lines, Array(full.lines.suffix(count)), "the last \(count)")
            XCTAssertLessThan(last.gathered, 480, "lanes that are older were read")
        }
    }
}
