// Records as a block's columns, stored at each effort with each codec, and read again: the same as
// through a payload.

import CordwoodCore
import CordwoodTestSupport
import XCTest

@testable import CordwoodStore

/// A block that was stored.
struct StoredBlock {
    var bytes: [UInt8]
    var facts: BlockFacts

    init(_ block: inout Block, _ effort: BlockEffort, _ codec: Codec = .zstd) throws {
        var encoder = DenseEncoder(level: 3, seed: 3)!
        var frame = GrowingBytes()
        let made = try encoder.encode(&block, effort: effort, codec: codec, into: &frame)
        bytes = Array(frame.bytes)
        facts = BlockFacts(
            recordCount: Int(block.summary.recordCount), size: made.size,
            leavesCRC: made.leavesCRC, codec: codec)
    }

    func read(
        _ decoder: inout DenseDecoder, _ columns: BlockColumns = .all, rows: Range<Int>? = nil
    ) throws -> BlockContent {
        try bytes.withUnsafeBytes { try decoder.read(Slice($0), facts, columns, rows: rows) }
    }

    func records() throws -> [ModelRecord] {
        var decoder = DenseDecoder()
        return try bytes.withUnsafeBytes {
            let content = try decoder.read(Slice($0), facts)
            var rows = try BlockRows(content, decoder)
            var found: [ModelRecord] = []
            var record = RecordRef()
            while try rows.next(&record) { found.append(ModelRecord(record)) }
            return found
        }
    }
}

extension Block {
    init(_ records: [Staged]) {
        self.init(seed: 1, target: 64 << 20)
        let source = FakeSource(records)
        while let record = try? source.advance() { add(record) }
    }
}

final class BlockTests: XCTestCase {
    func testRecordsComeBackEqual() throws {
        for seed in UInt64(1)...sized(3, 30, 300) {
            var maker = RecordMaker(seed: seed)
            let records = maker.records(seed == 1 ? 1 : 40 * Int(seed % 50))
            var block = Block(records)
            for effort in BlockEffort.allCases {
                for codec in Codec.allCases {
                    let stored = try StoredBlock(&block, effort, codec)
                    let found = try stored.records()
                    XCTAssertEqual(found.count, records.count)
                    for (one, other) in zip(found, records) where one != other.model {
                        return XCTFail("seed \(seed), \(effort), \(codec): \(one), \(other.model)")
                    }
                }
            }
        }
    }
}
