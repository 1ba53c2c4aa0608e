// Whole payloads through dense columns and back, including records with everything in them. Blocks
// that are damaged or hostile are refused, whatever their checksums say.

import CordwoodCore
import CordwoodTestSupport
import XCTest

@testable import CordwoodStore

/// A payload and its number of records.
struct Payload {
    var bytes: [UInt8]
    var recordCount: Int

    init(_ records: [Staged]) {
        var builder = Block(seed: 1, target: 64 << 20)
        let source = FakeSource(records)
        while let record = try? source.advance() { builder.add(record) }
        self.init(&builder)
    }

    init(_ builder: inout Block) {
        bytes = Array(builder.assemble())
        recordCount = Int(builder.summary.recordCount)
    }

    /// Deferred records of several formats with arguments of all types.
    static func deferred(seed: UInt64, count: Int) -> Payload {
        var block = deferredBlock(seed: seed, count: count)
        return Payload(&block)
    }

    static func deferredBlock(seed: UInt64, count: Int) -> Block {
        var random = SplitMix(seed)
        var builder = Block(seed: seed, target: 1 << 20)
        let thread = RecordMaker(seed: seed).threads[0]
        let formats = (0..<5).map { _ in (0..<random.below(9)).map { _ in 1 + random.below(13) } }
        var time: UInt64 = 1 << 40
        for index in 0..<count {
            let number = random.below(formats.count)
            let types = formats[number].map { UInt8($0) }
            var arguments: [UInt8] = []
            for type in types { arguments += argument(type, index, &random) }
            let format = Array("format \(number) %d".utf8)
            var record = RecordRef(thread: thread)
            time &+= UInt64(random.below(4_000))
            record.monotonicNs = time
            record.writtenNs = time &+ 5
            record.timeNs = random.chance(10) ? time : record.writtenNs
            record.sequence = UInt64(index)
            record.level = 9
            record.isDeferred = true
            record.style = 0
            record.line = UInt32(10 * number)
            format.withUnsafeBytes { format in
                types.withUnsafeBytes { types in
                    arguments.withUnsafeBytes { arguments in
                        record.format = format
                        record.argumentTypes = types
                        record.arguments = arguments
                        builder.add(record)
                    }
                }
            }
        }
        return builder
    }

    private static func argument(_ type: UInt8, _ index: Int, _ random: inout SplitMix) -> [UInt8] {
        switch type {
        case ArgumentType.text, ArgumentType.wide:
            if random.chance(9) { return little(LengthWord.null) }
            let units = random.below(12)
            let cut = random.chance(7) ? LengthWord.cut : 0
            let size = type == ArgumentType.wide ? 4 * units : units
            return little(UInt32(units) | cut)
                + (random.chance(2) ? Array("customer-\(index % 9)".utf8.prefix(size)) : [])
                .padded(to: size)
        case ArgumentType.extended: return random.bytes(16)
        case ArgumentType.double: return little((Double(random.below(9_999)) / 100).bitPattern)
        case ArgumentType.float: return little(Float(random.below(99)).bitPattern)
        case ArgumentType.bool: return [UInt8(random.below(2))]
        case ArgumentType.char: return random.bytes(1)
        case ArgumentType.int, ArgumentType.error: return little(Int32(random.below(100)) - 50)
        case ArgumentType.uint: return little(UInt32(truncatingIfNeeded: random.next()))
        default: return little(random.chance(3) ? random.next() : UInt64(index))
        }
    }
}

extension [UInt8] {
    fileprivate func padded(to size: Int) -> [UInt8] {
        self + Array(repeating: 0x2E, count: Swift.max(0, size - count))
    }
}

final class DenseBlockTests: XCTestCase {
    private func again(_ payload: Payload) throws -> [UInt8] {
        var encoder = DenseEncoder(level: 1, seed: 3)!
        var decoder = DenseDecoder()
        try encode(payload, &encoder)
        return try decode(payload, &encoder, &decoder)
    }

    private func encode(_ payload: Payload, _ encoder: inout DenseEncoder) throws {
        try payload.bytes.withUnsafeBytes {
            try encoder.columns(Slice($0), payload.recordCount)
        }
    }

    /// Packs the meta stream and the leaves as they are, with right checksums, and decodes that.
    private func decode(
        _ payload: Payload, _ encoder: inout DenseEncoder, _ decoder: inout DenseDecoder
    ) throws -> [UInt8] {
        var frame = GrowingBytes()
        var out = GrowingBytes()
        let crc = payload.bytes.withUnsafeBytes { Checksum.crc($0) }
        try encoder.packer.pack(encoder.out, payloadCRC: crc, to: &frame)
        try decoder.decode(
            frame.bytes, recordCount: payload.recordCount, rawBytes: payload.bytes.count,
            rawCRC: Checksum.crc(encoder.out.data.bytes), into: &out)
        return Array(out.bytes)
    }

    func testPayloadsComeBackEqual() throws {
        for seed in 0..<UInt64(6) {
            var maker = RecordMaker(seed: seed)
            let payload = Payload(maker.records(1 + 300 * Int(seed)))
            XCTAssertEqual(try again(payload), payload.bytes, "seed \(seed)")
        }
        let none = Payload([])
        XCTAssertEqual(try again(none), none.bytes)
    }

    func testDeferredRecordsComeBackEqual() throws {
        for seed in SplitMix.seeds(60) {
            let payload = Payload.deferred(seed: seed, count: 50 * Int(seed))
            XCTAssertEqual(try again(payload), payload.bytes, "seed \(seed)")
        }
    }

    /// An interpolated text may be the whole line: it is mined like a message.
    func testLongArgumentsAreMinedAsMessages() throws {
        let lines = (0..<600).map { index in
            Array(
                """
                2025-06-24 14:36:\(10 + index % 50) worker-\(index % 7) sent \(index * 31) to \
                host\(index % 5).example.org in \(index * 77 % 900) ms
                """.utf8)
        }
        // Each text twice, and no two of a kind.
        let texts = (0..<600).map { index in
            let words = (0..<9).map {
                (index % 300) >> $0 & 1 == 0 ? "opened a file, " : "closed it; "
            }
            return Array((words.joined() + "took \(index * 77 % 900) ms").utf8)
        }
        func size(_ lines: [[UInt8]], isDeferred: Bool) throws -> Int {
            var builder = Block(seed: 3, target: 64 << 20)
            let thread = RecordMaker(seed: 3).threads[0]
            for line in lines {
                var record = RecordRef(thread: thread)
                record.isDeferred = isDeferred
                let bytes = (isDeferred ? little(UInt32(line.count)) : []) + line
                bytes.withUnsafeBytes { bytes in
                    Array("%s".utf8).withUnsafeBytes { format in
                        [ArgumentType.text].withUnsafeBytes { types in
                            record.format = format
                            record.argumentTypes = types
                            if isDeferred {
                                record.arguments = bytes
                            } else {
                                record.message = bytes
                            }
                            builder.add(record)
                        }
                    }
                }
            }
            let payload = Payload(&builder)
            XCTAssertEqual(try again(payload), payload.bytes)
            var encoder = DenseEncoder(level: 3, seed: 3)!
            var frame = GrowingBytes()
            _ = try payload.bytes.withUnsafeBytes {
                try encoder.encode($0, recordCount: payload.recordCount, into: &frame)
            }
            return frame.count
        }
        for some in [lines, texts] {
            XCTAssertLessThan(
                try size(some, isDeferred: true), try size(some, isDeferred: false) + 100)
        }
    }

    func testOtherPayloadsAreRefused() throws {
        var maker = RecordMaker(seed: 5)
        let payload = Payload(maker.records(12))
        var random = SplitMix(5)
        for _ in 0..<SplitMix.seeds(800).count {
            var other = payload
            let at = random.below(other.bytes.count)
            other.bytes[at] ^= UInt8(1 << random.below(8))
            // A few are still payloads, which must come back unchanged.
            do {
                let found = try again(other)
                XCTAssertEqual(found, other.bytes)
            } catch DenseProblem.unfit {
            } catch DenseProblem.damaged {
            }
        }
    }

    /// Method 1 takes random bytes just as well, so dense columns spend no time on them.
    func testUnlikeLinesAreRefused() throws {
        func payload(unlike: Int, alike: Int) -> Payload {
            var random = SplitMix(3)
            var builder = Block(seed: 3, target: 64 << 20)
            let thread = RecordMaker(seed: 3).threads[0]
            for index in 0..<(unlike + alike) {
                let text =
                    index < unlike
                    ? random.bytes(600).map { $0 & 63 | 64 } : Array("took \(index) ms".utf8)
                text.withUnsafeBytes { text in
                    var record = RecordRef(thread: thread)
                    record.message = text
                    builder.add(record)
                }
            }
            return Payload(&builder)
        }
        func encode(_ payload: Payload) throws {
            var encoder = DenseEncoder(level: 1, seed: 3)!
            var frame = GrowingBytes()
            _ = try payload.bytes.withUnsafeBytes {
                try encoder.encode($0, recordCount: payload.recordCount, into: &frame)
            }
        }
        XCTAssertThrowsError(try encode(payload(unlike: 1_000, alike: 0)))
        XCTAssertNoThrow(try encode(payload(unlike: 400, alike: 0)), "few")
        XCTAssertNoThrow(try encode(payload(unlike: 400, alike: 2_000)), "a start")
    }

    /// All checksums are right: only the rules of FORMAT find the change.
    func testChangedTreesAreFound() throws {
        var maker = RecordMaker(seed: 6)
        let payloads = [
            Payload(maker.records(60)), Payload.deferred(seed: 2, count: 100),
            Payload(Self.texts(100)),
        ]
        var random = SplitMix(6)
        for payload in payloads {
            var encoder = DenseEncoder(level: 1, seed: 3)!
            var decoder = DenseDecoder()
            try encode(payload, &encoder)
            let meta = Array(encoder.out.meta.bytes)
            let data = Array(encoder.out.data.bytes)
            for round in 0..<SplitMix.seeds(4_000).count {
                for _ in 0..<1 + random.below(3) {
                    let byte = UInt8(truncatingIfNeeded: random.next() >> 20)
                    if random.chance(2) {
                        encoder.out.meta.store(byte, at: random.below(meta.count))
                    } else {
                        encoder.out.data.store(byte, at: random.below(data.count))
                    }
                }
                do {
                    let found = try decode(payload, &encoder, &decoder)
                    XCTAssertEqual(found, payload.bytes, "round \(round)")
                } catch DenseProblem.damaged {
                }
                for (at, byte) in meta.enumerated() { encoder.out.meta.store(byte, at: at) }
                encoder.out.data.removeAll()
                data.withUnsafeBytes { encoder.out.data.append($0) }
            }
        }
    }

    static func texts(_ count: Int) -> [Staged] {
        var random = SplitMix(8)
        let maker = RecordMaker(seed: 8)
        return (0..<count).map { index -> Staged in
            var staged = Staged(thread: maker.threads[0])
            staged.model = ModelRecord(RecordRef(thread: staged.thread))
            let seconds = String(index % 60)
            let text =
                "2024-01-31 12:00:\(seconds.count == 1 ? "0" : "")\(seconds),\(100 + index % 900) "
                + "INFO [worker-\(index % 7)] GET /items/\(random.below(90)) \"agent \(index % 3)\""
                + " took \(random.below(1_000)).5 ms"
            staged.model.message = Array(text.utf8)
            staged.model.originalLength = UInt64(text.utf8.count)
            return staged
        }
    }

    /// A frame that claims more than it may is refused before memory is allocated for it.
    func testFramesThatSayTooMuch() throws {
        let payload = Payload(Self.texts(100))
        var encoder = DenseEncoder(level: 1, seed: 3)!
        var frame = GrowingBytes()
        let crc = try payload.bytes.withUnsafeBytes {
            try encoder.encode($0, recordCount: payload.recordCount, into: &frame)
        }
        let stored = Array(frame.bytes)
        func decode(_ stored: [UInt8], records: Int, raw: Int) throws -> [UInt8] {
            var decoder = DenseDecoder()
            var out = GrowingBytes()
            try stored.withUnsafeBytes { stored in
                _ = try decoder.decode(
                    stored, recordCount: records, rawBytes: raw, rawCRC: crc, into: &out)
            }
            return Array(out.bytes)
        }
        let records = payload.recordCount
        XCTAssertEqual(
            try decode(stored, records: records, raw: payload.bytes.count), payload.bytes)
        for (records, raw) in [
            (payload.recordCount + 1, payload.bytes.count),
            (payload.recordCount - 1, payload.bytes.count),
            (payload.recordCount, payload.bytes.count + 1),
            (payload.recordCount, payload.bytes.count - 1), (0, 0), (1 << 23, 64 << 20),
            (payload.recordCount, 65 << 20),
        ] {
            XCTAssertThrowsError(try decode(stored, records: records, raw: raw))
        }
        var random = SplitMix(9)
        for _ in 0..<1_500 {
            var changed = stored
            let at = random.below(changed.count)
            changed[at] ^= UInt8(1 << random.below(8))
            // The directory's checksum is made right again.
            let end = 8 + (Int(changed[4]) | Int(changed[5]) << 8) - DenseDirectory.crcBytes
            if (48..<changed.count - 4).contains(end) {
                changed.replaceSubrange(end..<end + 4, with: little(slowCRC(changed[8..<end])))
            }
            if changed == stored { continue }
            // Flags that a reader ignores, a reserved byte, or a limit that no plane is close to.
            if let found = try? decode(changed, records: records, raw: payload.bytes.count) {
                XCTAssertEqual(found, payload.bytes)
                XCTAssertTrue((16..<32).contains(at), "byte \(at)")
            }
        }
    }

    func testDamageOfADenseBlockIsOfThatBlockOnly() throws {
        let records = Self.texts(3_000)
        let scratch = Scratch()
        let info = try writeArchive(
            records, in: scratch, method: .dense, blockBytes: 64 << 10)
        let whole = readAll("\(info.path)")
        let offsets = blockOffsets("\(info.path)")
        XCTAssertGreaterThan(offsets.count, 3)
        var counts: [Int] = []
        for offset in offsets {
            XCTAssertEqual(whole[offset + 8 + BlockHeader.method], BlockHeader.methodDense)
            counts.append(Int(UInt32(littleAt(whole, offset + 36) & 0xFFFF_FFFF)))
        }
        XCTAssertEqual(counts.reduce(0, +), records.count)
        XCTAssertEqual(drain(try ArchiveSource.open(path: info.path)).records, records.map(\.model))
        let path = scratch.path + "/damaged"
        for index in offsets.indices {
            let before = counts[..<index].reduce(0, +)
            var kept = records.map(\.model)
            kept.removeSubrange(before..<before + counts[index])
            for place in [20, 50, 136, 145, 160, 170, 400, 2_000] {
                var bytes = whole
                bytes[offsets[index] + place] ^= 0x10
                writeAll(bytes, path)
                let read = drain(try ArchiveSource.open(path: FilePath(path)))
                XCTAssertEqual(read.problems.count, 1, "block \(index) byte \(place)")
                XCTAssertTrue(read.records == kept, "block \(index) byte \(place)")
            }
        }
    }

    /// The block's checksum is right, and its directory has a flag of a later version.
    func testADirectoryOfALaterVersionIsSaidSo() throws {
        let scratch = Scratch()
        let info = try writeArchive(Self.texts(200), in: scratch, method: .dense)
        var bytes = readAll("\(info.path)")
        let block = try XCTUnwrap(blockOffsets("\(info.path)").first)
        let directory = block + BlockHeader.frameBytes + SkippableFrame.headerBytes
        bytes[directory + DenseDirectory.flags] = 0x10
        let size = Int(littleAt(bytes, directory - 4) & 0xFFFF_FFFF)
        let end = directory + size - DenseDirectory.crcBytes
        bytes.replaceSubrange(end..<end + 4, with: little(slowCRC(bytes[directory..<end])))
        let stored = Int(littleAt(bytes, block + 8 + BlockHeader.storedBytes))
        let first = block + BlockHeader.frameBytes
        let crc = little(slowCRC(bytes[first..<first + stored]))
        let at = block + 8 + BlockHeader.storedCRC
        bytes.replaceSubrange(at..<at + 4, with: crc)
        resealHeader(&bytes, block + 8)
        let path = scratch.path + "/newer"
        writeAll(bytes, path)
        let read = drain(try ArchiveSource.open(path: FilePath(path)))
        XCTAssertEqual(read.records.count, 0)
        guard case .version = read.problems.first else { return XCTFail("\(read.problems)") }
    }

    /// Dense blocks that name more values than their payload can have are refused at once.
    func testValuesAreBoundedBeforeTheyAreMade() throws {
        let before = peakMemory()
        for count in [1 << 17, 1 << 20, 1 << 22] {
            var column = DenseColumn()
            try column.encoder.ints(try column.flat([5, 5, 5]))
            try column.reopen(rawBytes: 8_000)
            XCTAssertThrowsError(try column.decoder.ints(count, depth: 1))
            column = DenseColumn()
            column.encoder.out.meta.append(StringsCodec.int)
            try column.encoder.ints(try column.flat([5, 5, 5]))
            try column.reopen(rawBytes: 8_000)
            XCTAssertThrowsError(try column.decoder.strings(count, depth: 1))
        }
        // 65,536 equal shapes, each with 65,535 fields.
        var shapes = DenseColumn()
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
        var column = DenseColumn()
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
