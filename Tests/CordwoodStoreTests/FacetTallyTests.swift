// Counts by columns: for a block, plain or dense, they equal a count of its records one by one,
// with any limits, by seed; a damaged column counts nothing.

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

    private func payload(_ seed: UInt64) -> Payload {
        switch seed % 4 {
        case 0, 1:
            var maker = RecordMaker(seed: seed, processes: 1 + Int(seed % 3))
            return Payload(maker.records(1 + 20 * Int(seed)))
        case 2: return Payload.deferred(seed: seed, count: 1 + 60 * Int(seed))
        default: return Payload(DenseBlockTests.texts(1 + 60 * Int(seed)))
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
    private func counted(
        _ payload: UnsafeRawBufferPointer, _ count: Int, _ limits: RowLimits
    ) throws -> Counts {
        let tally = FacetTally(hasHistogram: true, hasFacets: true)
        var records = try XCTUnwrap(BlockRecords(payload, recordCount: UInt32(count)))
        var record = RecordRef()
        while records.next(into: &record) == .record {
            guard record.level >= limits.level,
                limits.kinds == 0 || limits.kinds & (1 << UInt32(record.kind)) != 0,
                record.timeNs >= limits.since,
                limits.until == 0 || record.timeNs < limits.until,
                limits.isLogger.map({ $0(record.logger) }) ?? true
            else { continue }
            tally.add(record)
        }
        return Counts(tally)
    }

    func testColumnsCountWhatRecordsDo() throws {
        var some = 0
        for seed in SplitMix.seeds(60) {
            let payload = payload(seed)
            var encoder = DenseEncoder(level: 1, seed: seed)!
            var decoder = DenseDecoder()
            var stored = GrowingBytes()
            var out = GrowingBytes()
            let crc = try payload.bytes.withUnsafeBytes {
                try encoder.encode($0, recordCount: payload.recordCount, into: &stored)
            }
            var random = SplitMix(seed)
            var all: [ModelRecord] = []
            try payload.bytes.withUnsafeBytes { bytes in
                var records = try XCTUnwrap(
                    BlockRecords(bytes, recordCount: UInt32(payload.recordCount)))
                var record = RecordRef()
                while records.next(into: &record) == .record { all.append(ModelRecord(record)) }
            }
            for round in 0..<12 {
                let limits = round == 0 ? RowLimits() : limits(all, &random)
                try payload.bytes.withUnsafeBytes { bytes in
                    let wanted = try counted(bytes, payload.recordCount, limits)
                    let tally = FacetTally(hasHistogram: true, hasFacets: true)
                    XCTAssertEqual(tally.add(bytes, payload.recordCount, limits), .counted)
                    XCTAssertEqual(Counts(tally), wanted, "seed \(seed), round \(round)")
                    some += 0 < wanted.matched && wanted.matched < payload.recordCount ? 1 : 0
                    for hasFacets in [true, false] {
                        let dense = FacetTally(hasHistogram: true, hasFacets: hasFacets)
                        XCTAssertTrue(
                            try decoder.decode(
                                stored.bytes, recordCount: payload.recordCount,
                                rawBytes: payload.bytes.count, rawCRC: crc, parts: dense.parts,
                                into: &out))
                        XCTAssertEqual(
                            dense.add(out.bytes, payload.recordCount, limits), .counted)
                        let found = Counts(dense)
                        XCTAssertEqual(found.matched, wanted.matched)
                        XCTAssertEqual(found.starts, wanted.starts)
                        XCTAssertEqual(found.bins, wanted.bins)
                        if hasFacets { XCTAssertEqual(found.facets, wanted.facets) }
                    }
                }
            }
        }
        XCTAssertGreaterThan(some, 40)
    }

    func testOctetsOfEveryLength() {
        var random = SplitMix(3)
        for count in 0..<200 {
            // Long runs, and neighbours that differ.
            var last = UInt8(9)
            let column = (0..<count).map { _ in
                if random.chance(count % 3 == 0 ? 1 : 9) { last = UInt8(random.below(256)) }
                return last
            }
            let found = column.withUnsafeBytes { BlockTally.octets($0) }
            for octet in UInt8.min ... .max {
                XCTAssertEqual(found[Int(octet)], UInt64(column.count { $0 == octet }))
            }
        }
    }

    /// The end of each column is an index that no dictionary has.
    func testADamagedColumnCountsNothing() throws {
        var maker = RecordMaker(seed: 5, processes: 1)
        let payload = Payload(maker.records(200))
        let ends = try payload.bytes.withUnsafeBytes { bytes in
            try [5, 11].map { try XCTUnwrap(BlockRecords.end(ofStream: $0, bytes)) }
        }
        for end in ends {
            var bytes = payload.bytes
            bytes[end - 1] = 0x7F
            let tally = FacetTally(hasHistogram: true, hasFacets: true)
            bytes.withUnsafeBytes {
                XCTAssertEqual(tally.add($0, payload.recordCount, RowLimits()), .damaged)
            }
            XCTAssertEqual(
                Counts(tally), Counts(FacetTally(hasHistogram: true, hasFacets: true)))
        }
    }
}
