// What archives have of lanes: against sets of numbers, and of two archives with as many covers as
// one may have.

import CordwoodCore
import CordwoodTestSupport
import Glibc
import XCTest

@testable import CordwoodStore

final class LaneRangesTests: XCTestCase {
    private func cover(
        _ lane: UInt64, _ range: ClosedRange<UInt64>, seals: [SegmentSeal] = [], gap: UInt64 = 0
    ) -> ArchiveCover {
        ArchiveCover(
            laneID: LaneID(high: lane, low: 0), first: range.lowerBound, last: range.upperBound,
            laneName: "lane", seals: seals, gap: gap)
    }

    private func info(
        _ id: UInt64, _ covers: [ArchiveCover], replaced: [ReplacedArchive] = []
    ) -> ArchiveInfo {
        var info = ArchiveInfo(
            id: LaneID(high: id, low: 0), covers: covers, createdRealtime: 1, recordCount: 5,
            timeMin: 1, timeMax: 1, rawBytes: 1, fileBytes: 1, blockCount: 1, levels: 0, kinds: 0,
            path: FilePath("x"))
        info.replaced = replaced
        return info
    }

    func testTheyAreSetsOfSegments() {
        for seed in SplitMix.seeds(2_000, core: 500) {
            var random = SplitMix(seed)
            func range() -> ClosedRange<UInt64> {
                let first = UInt64(random.below(20))
                return first...(first + UInt64(random.below(5)))
            }
            let covers = (0..<random.below(8)).map { _ in cover(UInt64(random.below(2)), range()) }
            let ranges = LaneRanges(covers)
            for lane in [0, 1] as [UInt64] {
                let all = Set(
                    covers.filter { $0.laneID.high == lane }.flatMap { Array($0.first...$0.last) })
                let asked = range()
                let joined = ranges.lanes[LaneID(high: lane, low: 0)] ?? []
                XCTAssertEqual(
                    ranges.has(cover(lane, asked)), all.isSuperset(of: asked), "seed \(seed)")
                XCTAssertEqual(
                    LaneRanges.have(joined, anyOf: asked), !all.isDisjoint(with: asked),
                    "seed \(seed)")
                XCTAssertEqual(joined.flatMap { Array($0) }, all.sorted(), "seed \(seed)")
            }
        }
        let end = LaneRanges([cover(1, 5...UInt64.max), cover(1, 3...UInt64.max)])
        XCTAssertEqual(end.lanes.values.map(\.count), [1])
        XCTAssertTrue(end.has(cover(1, 3...UInt64.max)))
        XCTAssertFalse(end.has(cover(1, 2...3)))
    }

    /// Of all that an archive without covers has, anything would be said.
    func testNoCoversAreNoProof() {
        let none = info(1, [])
        let new = info(
            2, [cover(1, 0...1)], replaced: [ReplacedArchive(id: none.id, recordCount: 5)])
        XCTAssertFalse(new.replaces(none))
        XCTAssertFalse(new.hasSegments(of: none))
    }

    func testArchivesArePairedThatShareSegments() {
        for seed in SplitMix.seeds(2_000, core: 500) {
            var random = SplitMix(seed)
            let covers: [LaneRanges.Cover] = (0..<random.below(10)).map { _ in
                let first = UInt64(random.below(20))
                return (first...(first + UInt64(random.below(8))), random.below(4))
            }
            var found: [Int: Set<Int>] = [:]
            LaneRanges.pair(LaneRanges.sorted(covers), &found)
            var wanted: [Int: Set<Int>] = [:]
            for a in covers {
                for b in covers where a.archive != b.archive && a.range.overlaps(b.range) {
                    wanted[a.archive, default: []].insert(b.archive)
                }
            }
            XCTAssertEqual(found, wanted, "seed \(seed)")
        }
    }

    func testManyCoversAreComparedAtOnce() {
        let covers = (0..<UInt64(65_536)).map {
            let seal = SegmentSeal(number: 2 * $0, digest: LaneID(high: $0, low: 1))
            return cover(1, 2 * $0...2 * $0, seals: [seal])
        }
        let old = info(1, covers)
        let new = info(
            2, covers.reversed(), replaced: [ReplacedArchive(id: old.id, recordCount: 5)])
        let begin = clock()
        XCTAssertTrue(new.replaces(old))
        XCTAssertTrue(new.hasSegments(of: old))
        XCTAssertEqual(ArchiveInfo.replacedIDs([old, new]), [old.id])
        XCTAssertLessThan(Double(clock() - begin) / Double(CLOCKS_PER_SEC), 5)
    }
}
