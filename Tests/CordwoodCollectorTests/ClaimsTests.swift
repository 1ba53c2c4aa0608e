// What archives say of others, where a program combines it: `compact`, a follower, and readers that
// know lanes by their names. The archives lie in the folder; nobody has judged them.

import CordwoodCore
import Foundation
import XCTest

@testable import CordwoodStore

final class ClaimsTests: CollectorCase {
    private let lane = LaneID(high: 1, low: 2)
    private let other = LaneID(high: 3, low: 4)
    private let otherName = "20261121T081530Z-1-0000000000000003"

    private func seal(_ number: UInt64, _ content: UInt64) -> SegmentSeal {
        SegmentSeal(number: number, digest: LaneID(high: number, low: content))
    }

    private func cover(_ first: UInt64, _ last: UInt64, _ content: UInt64) -> ArchiveCover {
        MadeArchive.cover(
            lane, CollectorCase.lane, first, last,
            seals: (first...last).map { seal($0, content) })
    }

    /// One record for each sequence, and one of refused records.
    @discardableResult
    private func write(
        _ text: String, _ sequences: [UInt64], of lane: LaneID? = nil, _ covers: [ArchiveCover],
        replaced: [ReplacedArchive] = [], refused: Range<UInt64>? = nil
    ) throws -> ArchiveInfo {
        var records = sequences.map {
            MadeArchive.Record(lane: lane ?? self.lane, sequence: $0, message: "\(text) \($0)")
        }
        if let refused {
            let run = Gap.Run(slot: 1, from: refused.lowerBound, to: refused.upperBound)
            records.append(
                MadeArchive.Record(
                    lane: lane ?? self.lane, sequence: (sequences.last ?? 0) + 1, message: "",
                    gap: [run]))
        }
        let made = try MadeArchive(records, covers, replaced: replaced, in: directory + "-made")
        let folder = directory + "/archives"
        try FileManager.default.createDirectory(
            atPath: folder, withIntermediateDirectories: true)
        try Data(made.bytes).write(to: URL(fileURLWithPath: "\(folder)/\(made.name)"))
        return made.info
    }

    private func messages() throws -> [String] {
        let reader = try StoreReader(path: directory)
        var found: [String] = []
        while let record = reader.nextRecord() { found.append(record.message) }
        return found
    }

    private func compact() throws -> Int {
        try StoreCompactor.compact(directory: FilePath(directory), ageSeconds: 0).archivesOut
    }

    private func replaces(_ info: ArchiveInfo) -> [ReplacedArchive] {
        [ReplacedArchive(id: info.id, recordCount: info.recordCount)]
    }

    /// Two archives share a segment that neither's first cover has.
    func testSharedSegmentsAreFoundInEachCover() throws {
        try write("x", [5, 6], [MadeArchive.cover(other, otherName, 0, 0), cover(5, 6, 1)])
        try write("x", [0, 6, 7], [cover(0, 0, 1), cover(6, 7, 2)])
        XCTAssertEqual(try messages(), ["x 0", "x 5", "x 6", "x 7"])
    }

    /// One says that it replaces a third one, and another one covers its segments.
    func testMergedArchivesReplaceWhatEachReplaces() throws {
        let third = try write("third", [7], [cover(0, 0, 1)])
        try write("covers", [1], [cover(0, 0, 2)])
        try write(
            "says", [2], of: other, [MadeArchive.cover(other, otherName, 0, 0)],
            replaced: replaces(third))
        for segment in [3, 4] as [UInt64] {
            try write("apart", [segment], [cover(segment, segment, 1)])
        }
        let all = ["apart 3", "apart 4", "covers 1", "says 2", "third 7"]
        XCTAssertEqual(try messages().sorted(), all)
        XCTAssertEqual(try compact(), 1)
        XCTAssertEqual(try messages().sorted(), all)
    }

    /// Each has some of a third one's segments, and something else.
    func testMergedArchivesContainWhatEachContains() throws {
        try write("third", [7, 8], [cover(0, 1, 1)])
        try write("first", [1], [cover(0, 0, 1), cover(2, 2, 2)])
        try write("last", [2], [cover(1, 1, 1), cover(3, 3, 2)])
        let all = ["first 1", "last 2", "third 7", "third 8"]
        XCTAssertEqual(try messages().sorted(), all)
        XCTAssertEqual(try compact(), 0)
        XCTAssertEqual(try messages().sorted(), all)
    }

    /// A copy of a lane ended and reported its refused records; the lane went on and reported them,
    /// too. The archive that both had is gone.
    func testNeighboursReportRefusedRecordsOnce() throws {
        var end = cover(1, 1, 1)
        end.gap = 5
        try write("copy", [1], [end], refused: 0..<5)
        try write("lane", [3], [cover(2, 2, 1)], refused: 0..<7)
        let all = ["copy 1", "5 records were not kept", "lane 3", "2 records were not kept"]
        XCTAssertEqual(try messages(), all)
        XCTAssertEqual(try compact(), 0)
        // The end of a lane stays with what came before it.
        try write("before", [0], [cover(0, 0, 1)])
        XCTAssertEqual(try compact(), 1)
        XCTAssertEqual(try messages(), ["before 0"] + all)
    }

    /// A program that has other work compares a few of them, and goes on the next time.
    func testAFewLeftoversAreCheckedAtOnce() throws {
        let members = try (0..<UInt64(20)).map { try write("one", [$0], [cover($0, $0, 1)]) }
        try write("one", Array(0..<20), [cover(0, 19, 1)], replaced: members.flatMap(replaces))
        for removed in [16, 4, 0] {
            XCTAssertEqual(
                try CompactionLeftovers.remove(directory: FilePath(directory)), removed)
        }
        XCTAssertEqual(try messages(), (0..<20).map { "one \($0)" })
    }

    /// A few KiB may inflate to any number of reports of refused records.
    func testReportsOfRefusedRecordsAreBounded() throws {
        func path(_ name: String, _ records: Int, apart: Bool) throws -> FilePath {
            let made = try MadeArchive(
                (0..<UInt64(records)).map { number in
                    let runs = (0..<UInt32(1_000)).map {
                        Gap.Run(
                            slot: $0, from: 10 * number, to: 10 * number + (apart ? 5 : 10))
                    }
                    return MadeArchive.Record(
                        lane: lane, sequence: number, message: "", gap: runs)
                }, [cover(0, 0, 1)], in: directory + "-made")
            try FileManager.default.createDirectory(
                atPath: directory, withIntermediateDirectories: true)
            let path = "\(directory)/\(name)"
            try Data(made.bytes).write(to: URL(fileURLWithPath: path))
            return FilePath(path)
        }
        let together = try path("together", 70, apart: false)
        XCTAssertEqual(try ArchiveContents.has(together, all: together), true)
        let few = try path("few", 60, apart: true)
        XCTAssertEqual(try ArchiveContents.has(few, all: few), true)
        XCTAssertEqual(try ArchiveContents.has(together, all: few), true)
        XCTAssertEqual(try ArchiveContents.has(few, all: together), false)
        let many = try path("many", 70, apart: true)
        XCTAssertEqual(try ArchiveContents.has(many, all: many), false)
        XCTAssertEqual(try ArchiveContents.has(many, all: few), false)
    }

    /// Two archives with as many lanes as one may have, and some of the same segments of each.
    func testArchivesOfManyLanesAreComparedAtOnce() throws {
        func covers(_ content: UInt64) -> [ArchiveCover] {
            (0..<UInt64(65_536)).map {
                var cover = MadeArchive.cover(
                    LaneID(high: $0, low: 9), CollectorCase.lane, content, content + 1,
                    seals: [seal(content, content)])
                cover.gap = 1
                return cover
            }
        }
        let lane = LaneID(high: 0, low: 9)
        let infos = try (0..<UInt64(2)).map {
            try write("one", [$0], of: lane, covers($0))
        }
        let begin = clock()
        let overlaps = LaneOverlaps(infos, lanes: [], [])
        XCTAssertLessThan(Double(clock() - begin) / Double(CLOCKS_PER_SEC), 5)
        XCTAssertEqual(overlaps.shared.count, 65_536)
        XCTAssertEqual(overlaps.contained, [])
    }

    /// A follower has shown the records of archives that a new one replaces, not of any others that
    /// cover the same.
    func testAFollowerKnowsWhatIsReplaced() throws {
        let first = try write("first", [1], [cover(0, 0, 1)])
        try write("others", [2], [cover(0, 1, 2)])
        var options = ReaderOptions()
        options.follow = true
        let reader = try StoreReader(path: directory, options: options)
        func more() -> [String] {
            var found: [String] = []
            while let record = reader.nextRecord() { found.append(record.message) }
            return found
        }
        XCTAssertEqual(more().sorted(), ["first 1", "others 2"])
        try write("first", [1], [cover(0, 0, 1)], replaced: replaces(first))
        XCTAssertEqual(more(), [])
        let unseen = [ReplacedArchive(id: LaneID(high: 9, low: 9), recordCount: 1)]
        try write("new", [3], [cover(1, 1, 1)], replaced: unseen)
        XCTAssertEqual(more(), ["new 3"])
    }

    /// Archives of another lane have the name of a lane: neither changes the order of the other.
    func testLanesOfOneNameAreTwo() throws {
        let far = MadeArchive.cover(other, CollectorCase.lane, 0, 0)
        try write("far", [900, 901], of: other, [far])
        for segment in 1...3 as ClosedRange<UInt64> {
            try write("near", [segment], [cover(segment, segment, 1)])
        }
        let all = ["near 1", "near 2", "near 3", "far 900", "far 901"]
        XCTAssertEqual(try messages(), all)
        XCTAssertEqual(try compact(), 1)
        XCTAssertEqual(try messages(), all)
    }
}
