// Blocks that are damaged or hostile: what they claim is checked before memory is allocated for it,
// and no change of their bytes makes a reader trap, whatever their checksums say.

import CordwoodCore
import CordwoodTestSupport
import XCTest

@testable import CordwoodStore

final class HostileBlockTests: XCTestCase {
    /// All checksums are right: only the rules of FORMAT find the change.
    func testChangedTreesNeverTrap() throws {
        var maker = RecordMaker(seed: 6)
        var blocks: [BlockFile] = []
        for effort in BlockEffort.allCases {
            for one in [maker.records(60), Staged.texts(100)] {
                var block = Block(one)
                blocks.append(try BlockFile(&block, effort, .none))
            }
            var deferred = DeferredBlock(seed: 2, count: 100)
            blocks.append(try BlockFile(&deferred.block, effort, .none))
        }
        var (random, whole) = (SplitMix(6), 0)
        for (index, block) in blocks.enumerated() {
            let input = BlockInput.of(block)
            XCTAssertTrue(input.withUnsafeBytes(BlockInput.run))
            for _ in 0..<SplitMix.seeds(400, core: 60).count {
                var changed = input
                for _ in 0..<1 + random.below(3) {
                    let at = 9 + random.below(input.count - 9)
                    changed[at] = UInt8(truncatingIfNeeded: random.next() >> 20)
                }
                if changed.withUnsafeBytes(BlockInput.run) { whole += 1 }
            }
            XCTAssertGreaterThan(whole, index, "changes of texts are blocks, too")
        }
    }

    /// What a block's header says of it is compared with what it holds.
    func testHeadersThatSayTooMuch() throws {
        for effort in BlockEffort.allCases {
            var block = Block(Staged.texts(100))
            let whole = try BlockFile(&block, effort)
            var decoder = BlockDecoder()
            let (records, size) = (whole.facts.recordCount, whole.facts.size)
            XCTAssertEqual(try whole.records(), Staged.texts(100).map(\.model))
            for (records, size) in [
                (records + 1, size), (records - 1, size), (records, size + 1), (records, size - 1),
                (0, 0), (0, size), (1 << 19, 64 << 20), ((1 << 19) + 1, 64 << 20),
                (records, 65 << 20),
            ] {
                var other = whole
                (other.facts.recordCount, other.facts.size) = (records, size)
                XCTAssertThrowsError(try other.lines(&decoder), "\(effort), \(records), \(size)")
            }
            XCTAssertLessThan(decoder.arena.capacity, 64 << 20)
        }
    }

    /// The directory's checksum is right, whatever it says.
    func testDirectoriesThatSayTooMuch() throws {
        var block = Block(Staged.texts(100))
        let whole = try BlockFile(&block, .dense)
        let lines = try whole.records()
        let head = SkippableFrame.headerBytes
        let end = head + Int(littleAt(whole.bytes, 4) & 0xFFFF_FFFF) - BlockDirectory.crcBytes
        func isRead(_ bytes: [UInt8]) throws -> Bool {
            var changed = whole
            changed.bytes = bytes
            changed.bytes.replaceSubrange(
                end..<end + 4, with: little(slowCRC(changed.bytes[head..<end])))
            guard let found = try? changed.records() else { return false }
            XCTAssertEqual(found, lines)
            return true
        }
        // Flags that a reader ignores or believes, a reserved byte, a limit that no leaf is near.
        let limits = head + BlockDirectory.planeBytes..<head + BlockDirectory.entries
        let ignored = [head + BlockDirectory.flags, head + BlockDirectory.flags + 1]
        for at in head..<end {
            for bit in 0..<8 {
                var bytes = whole.bytes
                bytes[at] ^= 1 << UInt8(bit)
                if try isRead(bytes) {
                    XCTAssertTrue(ignored.contains(at) || limits.contains(at), "byte \(at)")
                }
            }
        }
        // What a frame claims of itself.
        let before = peakMemory()
        for frame in 0..<Int(littleAt(whole.bytes, head + BlockDirectory.frameCount) & 0xFFFF) {
            let entry = head + BlockDirectory.entries + frame * BlockFrame.bytes
            for field in [BlockFrame.storedBytes, BlockFrame.rawBytes] {
                for claim: UInt32 in [0, 1, 32_768 * 4, 95 << 20, 96 << 20, 97 << 20, .max] {
                    var bytes = whole.bytes
                    bytes.replaceSubrange(entry + field..<entry + field + 4, with: little(claim))
                    XCTAssertFalse(try isRead(bytes), "frame \(frame), \(field), \(claim)")
                }
            }
        }
        XCTAssertLessThan(peakMemory() - before, 128 << 20)
    }

    /// Columns that name more values than their block can have are refused at once.
    func testValuesAreBoundedBeforeTheyAreMade() throws {
        let before = peakMemory()
        for count in [1 << 17, 1 << 20, 1 << 22] {
            var column = StoredColumn()
            try column.encoder.ints(try column.flat([5, 5, 5]))
            try column.reopen(rawBytes: 8_000)
            XCTAssertThrowsError(try column.decoder.ints(count, depth: 1))
            column = StoredColumn()
            column.encoder.out.meta.append(StringsCodec.int)
            try column.encoder.ints(try column.flat([5, 5, 5]))
            try column.reopen(rawBytes: 8_000)
            XCTAssertThrowsError(try column.decoder.strings(count, depth: 1))
        }
        // 65,536 equal shapes, each with 65,535 fields.
        var shapes = StoredColumn()
        shapes.encoder.out.meta.append(1)
        shapes.encoder.out.meta.append(varint: 65_536)
        shapes.encoder.out.meta.append(StringsCodec.const)
        try [UInt8](repeating: 0xFF, count: 6).withUnsafeBytes {
            try shapes.encoder.out.text(Slice($0))
        }
        shapes.encoder.out.meta.append(0)
        try shapes.reopen(rawBytes: 1 << 20)
        XCTAssertThrowsError(try shapes.decoder.fieldLists(Picks(all: 3), depth: 1))
        // A dictionary in a dictionary, and so on.
        var column = StoredColumn()
        for _ in 0..<40 {
            column.encoder.out.meta.append(StringsCodec.dictionary)
            column.encoder.out.meta.append(0)
            column.encoder.out.meta.append(1)
            column.encoder.out.meta.append(0)
        }
        try column.reopen(rawBytes: 1 << 20)
        XCTAssertThrowsError(try column.decoder.strings(3, depth: 1))
        XCTAssertLessThan(peakMemory() - before, 64 << 20)
    }
}
