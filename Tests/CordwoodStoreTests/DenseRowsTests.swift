// Few rows of dense blocks: a reader gets what a filter of the whole block leaves, and the rows
// that decide the order of others. Columns that it does not need are not inflated. Against whole
// payloads, by seed.

import CordwoodCore
import CordwoodTestSupport
import XCTest

@testable import CordwoodStore

final class DenseRowsTests: XCTestCase {
    /// A record, and what the model lacks.
    private struct Row: Equatable {
        var model: ModelRecord
        var format: [UInt8]
        var arguments: [UInt8]
        var hasSections: Bool
    }

    private struct Block: ~Copyable {
        let payload: Payload
        var stored = GrowingBytes()
        let crc: UInt32
        var decoder = DenseDecoder()
        var out = GrowingBytes()

        init(_ payload: Payload, seed: UInt64) throws {
            self.payload = payload
            var encoder = DenseEncoder(level: 1, seed: seed)!
            var stored = GrowingBytes()
            crc = try payload.bytes.withUnsafeBytes {
                try encoder.encode($0, recordCount: payload.recordCount, into: &stored)
            }
            swap(&self.stored, &stored)
        }

        mutating func decode(_ rows: DenseRows?, parts: BlockParts = .all) throws -> Bool {
            try decoder.decode(
                stored.bytes, recordCount: payload.recordCount, rawBytes: payload.bytes.count,
                rawCRC: crc, parts: parts, rows: rows, into: &out)
        }
    }

    private func rows(_ payload: UnsafeRawBufferPointer, _ count: Int) throws -> [Row] {
        var records = try XCTUnwrap(BlockRecords(payload, recordCount: UInt32(count)))
        var record = RecordRef()
        var found: [Row] = []
        while case let step = records.next(into: &record), step != .end {
            guard step == .record else {
                XCTFail("damaged")
                break
            }
            found.append(
                Row(
                    model: ModelRecord(record), format: Array(record.format),
                    arguments: Array(record.arguments), hasSections: record.sections.count > 0))
        }
        return found
    }

    /// Whether the columns of a row match.
    private func isWanted(_ row: Row, _ rows: DenseRows) -> Bool {
        let record = row.model
        return record.level >= rows.level && rows.kinds & (1 << UInt32(record.kind)) != 0
            && rows.isLogger.map { isOf in record.logger.withUnsafeBytes { isOf($0) } } ?? true
            && (row.hasSections
                || (rows.since == 0 || record.written >= rows.since)
                    && (rows.until == 0 || record.written < rows.until))
    }

    private func expected(_ all: [Row], _ rows: DenseRows) -> (rows: [Row], wanted: Int) {
        var found: [Row] = []
        var wanted = 0
        for (index, row) in all.enumerated() {
            let isWanted = isWanted(row, rows)
            wanted += isWanted ? 1 : 0
            let next = index + 1 < all.count ? all[index + 1].model.monotonic : 0
            if isWanted || next < row.model.monotonic || index + 1 == all.count {
                found.append(row)
            }
        }
        return (found, wanted)
    }

    private func payload(_ seed: UInt64) -> Payload {
        switch seed % 4 {
        case 0, 1:
            var maker = RecordMaker(seed: seed, processes: 1)
            return Payload(maker.records(1 + 20 * Int(seed)))
        case 2: return Payload.deferred(seed: seed, count: 1 + 120 * Int(seed))
        default: return Payload(DenseBlockTests.texts(1 + 120 * Int(seed)))
        }
    }

    private func question(_ all: [Row], _ random: inout SplitMix) -> DenseRows {
        var rows = DenseRows(level: 0, kinds: .max, since: 0, until: 0, isLogger: nil)
        if random.chance(2) { rows.level = UInt8(random.below(26)) }
        if random.chance(4) { rows.kinds = UInt32(random.below(32)) }
        if random.chance(3) {
            rows.since = all[random.below(all.count)].model.written
            rows.until = rows.since + UInt64(random.below(50_000))
        }
        if random.chance(4) {
            let name = all[random.below(all.count)].model.logger
            rows.isLogger = { $0.elementsEqual(name) }
        }
        return rows
    }

    func testFewRowsAreThoseOfTheWhole() throws {
        var (few, none, shown) = (0, 0, 0)
        for seed in SplitMix.seeds(60) {
            let payload = payload(seed)
            var block = try Block(payload, seed: seed)
            let all = try payload.bytes.withUnsafeBytes { try rows($0, payload.recordCount) }
            var random = SplitMix(seed)
            for _ in 0..<30 {
                let asked = question(all, &random)
                let (expected, wanted) = expected(all, asked)
                guard try block.decode(asked) else {
                    XCTAssertEqual(wanted, 0, "seed \(seed)")
                    XCTAssertEqual(expected.count, 1, "seed \(seed)")
                    let streams = BlockRecords.streams(block.out.bytes, through: BlockTimes.last)
                    let last = try XCTUnwrap(
                        streams.flatMap {
                            BlockTimes.inOrder($0[BlockTimes.monotonic], UInt32(all.count))
                        })
                    XCTAssertEqual(last.last, all.last?.model.monotonic)
                    none += 1
                    continue
                }
                let found = try rows(block.out.bytes, block.decoder.rowCount)
                if found.count == all.count {
                    XCTAssertEqual(found, all, "seed \(seed)")
                    XCTAssertGreaterThan(2 * expected.count + 1, all.count, "seed \(seed)")
                    continue
                }
                XCTAssertEqual(found, expected, "seed \(seed)")
                XCTAssertEqual(block.decoder.firstTime, all.first?.model.monotonic)
                few += 1
                shown += found.count
            }
        }
        XCTAssertGreaterThan(few, 100)
        XCTAssertGreaterThan(none, 10)
        XCTAssertGreaterThan(shown, 1_000)
    }

    /// Rows of several processes are not ordered by their times alone.
    func testBlocksOfSeveralProcessesAreWhole() throws {
        var maker = RecordMaker(seed: 3, processes: 2)
        let payload = Payload(maker.records(300))
        var block = try Block(payload, seed: 3)
        let rows = DenseRows(level: 24, kinds: .max, since: 0, until: 0, isLogger: nil)
        XCTAssertTrue(try block.decode(rows))
        XCTAssertEqual(Array(block.out.bytes), payload.bytes)
    }

    /// Columns that are not needed may be damaged: a read of the whole block reports it.
    func testColumnsThatAreNotNeededAreNotInflated() throws {
        var texts = DenseBlockTests.texts(4_000)
        for index in texts.indices {
            texts[index].model.monotonic = UInt64(index) + 1
            texts[index].model.written = UInt64(index) + 1
            texts[index].model.time = UInt64(index) + 1
            texts[index].model.level = 9
        }
        var block = try Block(Payload(texts), seed: 1)
        let last = block.stored.count - 1
        block.stored.store(block.stored.bytes[last] ^ 1, at: last)
        var rows = DenseRows(level: 17, kinds: .max, since: 0, until: 0, isLogger: nil)
        XCTAssertFalse(try block.decode(rows), "no row has the level")
        rows.level = 0
        XCTAssertThrowsError(try block.decode(rows))
        XCTAssertTrue(try block.decode(nil, parts: ArchiveDigest.parts))
        XCTAssertThrowsError(try block.decode(nil))
    }

    /// A digest's sections are those with times, whatever else there is.
    func testADigestSeesEveryTime() throws {
        for seed in 0..<UInt64(40) {
            let payload = payload(seed)
            var block = try Block(payload, seed: seed)
            XCTAssertTrue(try block.decode(nil, parts: ArchiveDigest.parts))
            let whole = try payload.bytes.withUnsafeBytes { try times($0) }
            XCTAssertEqual(try times(block.out.bytes), whole, "seed \(seed)")
        }
    }

    private func times(_ payload: UnsafeRawBufferPointer) throws -> [UInt64?] {
        let streams = try XCTUnwrap(
            BlockRecords.streams(payload, through: ArchiveDigest.lastStream))
        var (lengths, sections) = (ByteCursor(streams[14]), ByteCursor(streams[15]))
        var found: [UInt64?] = []
        while lengths.left > 0 {
            let size = try XCTUnwrap(lengths.varint())
            var walk = SectionWalk(try XCTUnwrap(sections.bytes(size)))
            var time: UInt64?
            while let (kind, body, _) = walk.next() {
                if kind == SectionKind.time { time = body.word(0, UInt64.self) }
            }
            found.append(time)
        }
        return found.allSatisfy { $0 == nil } ? [] : found
    }
}
