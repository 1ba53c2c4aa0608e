// Counts by columns: for a block of any effort, they equal a count of its records one by one, with
// any limits, by seed; a damaged section counts nothing.

import CordwoodCore
import CordwoodTestSupport
import XCTest

@testable import CordwoodStore

final class FacetTallyTests: XCTestCase {
    private struct Counts: Equatable {
        var matched: UInt64
        var step: UInt64
        var starts: [UInt64]
        var bins: [[UInt64]]
        var facets: [String: [String: UInt64]]

        init(_ tally: FacetTally) {
            matched = tally.matched
            let sums = tally.histogram.sums()
            step = tally.histogram.stepNs
            starts = sums.map(\.startNs)
            bins = sums.map(\.counts)
            facets = [:]
            for (key, counts) in tally.facets.counts() {
                facets["\(key)"] = Dictionary(
                    uniqueKeysWithValues: counts.records.map { ($0.key, $0.count) })
            }
        }
    }

    private func stored(_ seed: UInt64) throws -> BlockFile {
        let effort = BlockEffort.allCases[Int(seed / 4 % 3)]
        switch seed % 4 {
        case 0, 1:
            var maker = RecordMaker(seed: seed, processes: 1 + Int(seed % 3))
            var block = Block(maker.records(1 + 20 * Int(seed)))
            return try BlockFile(&block, effort)
        case 2:
            var made = DeferredBlock(seed: seed, count: 1 + 60 * Int(seed))
            return try BlockFile(&made.block, effort)
        default:
            var block = Block(Staged.texts(1 + 60 * Int(seed)))
            return try BlockFile(&block, effort)
        }
    }

    private func limits(_ all: [ModelRecord], _ random: inout SplitMix) -> RowLimits {
        var limits = RowLimits()
        if random.chance(2) { limits.level = UInt8(random.below(26)) }
        if random.chance(4) { limits.kinds = 1 + UInt32(random.below(31)) }
        if random.chance(3) { limits.since = all[random.below(all.count)].time }
        if random.chance(3) { limits.until = all[random.below(all.count)].time }
        if random.chance(4) {
            let name = all[random.below(all.count)].logger
            limits.isLogger = { $0.elementsEqual(name) }
        }
        return limits
    }

    /// Counts the records one by one.
    private func counted(_ stored: BlockFile, _ limits: RowLimits) throws -> Counts {
        let tally = FacetTally(hasHistogram: true, hasFacets: true)
        var decoder = BlockDecoder()
        try stored.each(&decoder) { record in
            guard record.level >= limits.level,
                limits.kinds == 0 || limits.kinds & (1 << UInt32(record.kind)) != 0,
                record.timeNs >= limits.since,
                limits.until == 0 || record.timeNs < limits.until,
                limits.isLogger.map({ $0(record.logger) }) ?? true
            else { return }
            tally.add(record)
        }
        return Counts(tally)
    }

    func testColumnsCountWhatRecordsDo() throws {
        var some = 0
        for seed in SplitMix.seeds(60) {
            let stored = try stored(seed)
            var decoder = BlockDecoder()
            var random = SplitMix(seed)
            let all = try stored.records()
            var whole = RowBuffer()
            var part = RowBuffer()
            for round in 0..<12 {
                let limits = round == 0 ? RowLimits() : limits(all, &random)
                let wanted = try counted(stored, limits)
                let tally = FacetTally(hasHistogram: true, hasFacets: true)
                try stored.load(&decoder, into: &whole)
                XCTAssertTrue(tally.add(whole.view(), of: try Self.entry(), limits))
                XCTAssertEqual(Counts(tally), wanted, "seed \(seed), round \(round)")
                some += 0 < wanted.matched && wanted.matched < all.count ? 1 : 0
                for hasFacets in [true, false] {
                    let other = FacetTally(hasHistogram: true, hasFacets: hasFacets)
                    try stored.load(&decoder, other.parts, into: &part)
                    XCTAssertTrue(other.add(part.view(), of: try Self.entry(), limits))
                    let found = Counts(other)
                    XCTAssertEqual(found.matched, wanted.matched)
                    XCTAssertEqual(found.starts, wanted.starts)
                    XCTAssertEqual(found.bins, wanted.bins)
                    if hasFacets { XCTAssertEqual(found.facets, wanted.facets) }
                }
            }
            whole.clear()
            part.clear()
        }
        XCTAssertGreaterThan(some, 40)
    }

    /// Of another block: facets are counted without it.
    private static func entry() throws -> BlockEntry {
        var block = Block(Staged.texts(1))
        guard var maker = BlockMaker(effort: .swift, codec: .none, level: 0) else {
            throw BlockProblem.memory
        }
        try maker.make(&block, headerBytes: BlockHeader.frameBytes)
        _ = maker.storeHeader(block.summary)
        guard case .good(let head) = BlockHead.read(maker.frame.bytes) else {
            throw BlockProblem.damaged
        }
        return BlockEntry(header: head, at: 0)
    }

    /// The counts of a column of bytes, words or one number.
    func testCountsOfColumnsOfEveryWidth() throws {
        let thread = RecordMaker(seed: 3).threads[0]
        var random = SplitMix(3)
        for count in 1..<200 {
            // Long runs, and neighbours that differ; few levels, and one.
            var last = UInt8(9)
            let levels = (0..<count).map { _ in
                if count % 5 > 0, random.chance(count % 3 == 0 ? 1 : 9) {
                    last = UInt8(random.below(256))
                }
                return last
            }
            // Loggers beyond a byte, beginning with the last one.
            let loggers = (0..<count).map { _ in random.below(count % 7 == 0 ? 300 : 3) }
            var block = Block(seed: 1, target: 1 << 20)
            var names: [Int] = []
            for (level, logger) in zip(levels, loggers) {
                if !names.contains(logger) { names.append(logger) }
                var record = RecordRef(thread: thread)
                record.level = level
                Array("\(logger)".utf8).withUnsafeBytes {
                    record.logger = $0
                    block.add(record)
                }
            }
            let stored = try BlockFile(&block, .swift)
            var decoder = BlockDecoder()
            var buffer = RowBuffer()
            try stored.load(&decoder, into: &buffer)
            let view = buffer.view()
            let found = BlockTally.counts(view.level, 256)
            var wanted = [UInt64](repeating: 0, count: 256)
            for level in levels { wanted[Int(level)] += 1 }
            XCTAssertEqual(found, wanted)
            let known = BlockTally.counts(view.logger, names.count)
            XCTAssertEqual(known, names.map { name in UInt64(loggers.count { $0 == name }) })
            buffer.clear()
        }
    }

    /// A section names a site that the block does not have.
    func testADamagedSectionCountsNothing() throws {
        var maker = RecordMaker(seed: 5, processes: 1)
        var block = Block(maker.records(200))
        var at = 0
        var walk = SectionWalk(block.sections.bytes)
        while let (kind, body, _) = walk.next() {
            if kind == SectionKind.site {
                at = body.baseAddress! - UnsafeRawPointer(block.sections.base)
            }
        }
        XCTAssertGreaterThan(at, 0)
        block.sections.store(UInt32(block.sites.count), at: at)
        for effort in BlockEffort.allCases {
            let stored = try BlockFile(&block, effort)
            XCTAssertThrowsError(try stored.records())
            let tally = FacetTally(hasHistogram: true, hasFacets: true)
            var decoder = BlockDecoder()
            var buffer = RowBuffer()
            try stored.load(&decoder, tally.parts, into: &buffer)
            XCTAssertFalse(tally.add(buffer.view(), of: try Self.entry(), RowLimits()))
            XCTAssertEqual(
                Counts(tally), Counts(FacetTally(hasHistogram: true, hasFacets: true)))
            buffer.clear()
        }
    }
}
