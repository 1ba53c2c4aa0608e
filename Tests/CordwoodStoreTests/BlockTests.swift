// Records as a block's columns, stored at each effort with each codec, and read again: the
// same.

import CordwoodCore
import CordwoodTestSupport
import Foundation
import XCTest

@testable import CordwoodStore

extension BlockFile {
    /// The block stored, and compared with what that gives.
    init(_ block: inout Block, _ effort: BlockEffort, _ codec: Codec = .zstd) throws {
        var encoder = BlockEncoder(level: 3, seed: 3)!
        try self.init(&block, effort, codec, by: &encoder)
        var decoder = BlockDecoder()
        let isSame = try bytes.withUnsafeBytes {
            try decoder.gives(&block, from: Slice($0), facts)
        }
        XCTAssertTrue(isSame)
    }

    func read(
        _ decoder: inout BlockDecoder, _ columns: BlockColumns = .all, rows: Range<Int>? = nil
    ) throws -> BlockContent {
        try bytes.withUnsafeBytes { try decoder.read(Slice($0), facts, columns, rows: rows) }
    }

    func records() throws -> [ModelRecord] {
        var decoder = BlockDecoder()
        var found: [ModelRecord] = []
        try each(&decoder) { found.append(ModelRecord($0)) }
        return found
    }
}

final class BlockTests: XCTestCase {
    func testRecordsComeBackEqual() throws {
        for seed in UInt64(1)...sized(2, 20, 300) {
            var maker = RecordMaker(seed: seed)
            let records = maker.records(seed == 1 ? 1 : 40 * Int(seed % 50))
            var block = Block(records)
            for effort in BlockEffort.allCases {
                for codec in Codec.allCases {
                    let found = try BlockFile(&block, effort, codec).records()
                    XCTAssertEqual(found.count, records.count)
                    for (one, other) in zip(found, records) where one != other.model {
                        return XCTFail("seed \(seed), \(effort), \(codec): \(one), \(other.model)")
                    }
                }
            }
        }
    }

    /// Lines that no template fits.
    func testUnlikeLinesComeBackEqual() throws {
        var maker = RecordMaker(seed: 9)
        var records = maker.records(40)
        for index in records.indices {
            records[index].model.message = maker.random.bytes(8_000)
            records[index].storedSections = []
        }
        var block = Block(records)
        for effort in BlockEffort.allCases {
            let found = try BlockFile(&block, effort).records()
            XCTAssertEqual(found.map(\.message), records.map(\.model.message), "\(effort)")
        }
    }

    /// As many keys, or arguments of formats, as a block has leaves.
    func testManyColumnsComeBackEqual() throws {
        let thread = RecordMaker(seed: 1).threads[0]
        var block = Block(seed: 1, target: 1 << 20)
        var next = 0
        for row in 0..<300 where !block.isFull() {
            var record = RecordRef(thread: thread)
            record.sequence = UInt64(row)
            if row < 100 {
                var fields = little(UInt16(700))
                for _ in 0..<700 {
                    next += 1
                    fields += [5, 0, 4, 0] + little(UInt32(next)) + [1, 0, 0, 0, 0x61]
                }
                fields.withUnsafeBytes {
                    record.context = $0; block.add(record)
                }
                continue
            }
            let types = [UInt8](repeating: ArgumentType.text, count: 255)
            let arguments = types.flatMap { _ -> [UInt8] in [1, 0, 0, 0, 0x61] }
            (record.isDeferred, record.line) = (true, UInt32(row))
            types.withUnsafeBytes { types in
                arguments.withUnsafeBytes { arguments in
                    (record.argumentTypes, record.arguments) = (types, arguments)
                    block.add(record)
                }
            }
        }
        let count = Int(block.summary.recordCount)
        XCTAssertEqual(count, 100 + 4_096 / 255 + 1)
        XCTAssertEqual(try BlockFile(&block, .swift).records().count, count)
    }

    func testDeferredRecordsComeBackEqual() throws {
        for seed in UInt64(1)...sized(4, 40, 400) {
            var made = DeferredBlock(seed: seed, count: 1 + 30 * Int(seed % 40))
            let wanted = made.records
            for effort in BlockEffort.allCases {
                let stored = try BlockFile(&made.block, effort)
                var decoder = BlockDecoder()
                var found: [DeferredRecord] = []
                try stored.each(&decoder) { found.append(DeferredRecord($0)) }
                XCTAssertEqual(found, wanted, "seed \(seed), \(effort)")
            }
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
            let count = Int(builder.summary.recordCount)
            let stored = try BlockFile(&builder, .dense)
            XCTAssertEqual(try stored.records().count, count)
            return stored.bytes.count
        }
        for some in [lines, texts] {
            XCTAssertLessThan(
                try size(some, isDeferred: true), try size(some, isDeferred: false) + 100)
        }
    }

    /// A few rows or columns are those of the whole block.
    func testRowsAndColumnsAreThoseOfTheWhole() throws {
        for seed in UInt64(1)...sized(2, 20, 200) {
            var random = SplitMix(seed)
            var maker = RecordMaker(seed: seed)
            var block = Block(maker.records(300))
            let stored = try BlockFile(&block, BlockEffort.allCases[random.below(3)])
            var first = BlockDecoder()
            var second = BlockDecoder()
            let all = try stored.read(&first)
            for _ in 0..<20 {
                let start = random.below(300)
                let rows = start..<start + 1 + random.below(300 - start)
                var columns = BlockColumns(rawValue: UInt32(random.below(1 << 18)))
                columns.formUnion(BlockColumns(.kind))
                let some = try stored.read(&second, columns, rows: rows)
                XCTAssertEqual(some.rows, rows.count)
                for index in 0..<rows.count {
                    let row = rows.lowerBound + index
                    XCTAssertEqual(some.kind[index], all.kind[row])
                    if columns.has(.level) { XCTAssertEqual(some.level[index], all.level[row]) }
                    if columns.has(.thread) { XCTAssertEqual(some.thread[index], all.thread[row]) }
                    if columns.has(.time) { XCTAssertEqual(some.time[index], all.time[row]) }
                    if columns.has(.logger) { XCTAssertEqual(some.logger[index], all.logger[row]) }
                    if columns.has(.context) {
                        XCTAssertEqual(some.context[index], all.context[row])
                    }
                    if columns.has(.messages) {
                        XCTAssertEqual(
                            Array(some.messages[index].bytes), Array(all.messages[row].bytes))
                    }
                }
                if columns.has(.loggers) { XCTAssertEqual(some.loggers.count, all.loggers.count) }
                if columns.has(.contexts) {
                    for index in 0..<all.contexts.count {
                        XCTAssertTrue(some.contexts[index].isSame(all.contexts[index]))
                    }
                }
                if columns.has(.sections) {
                    let before = (0..<rows.lowerBound).filter {
                        all.kind[$0] & UInt64(BlockKind.hasSections) != 0
                    }.count
                    for index in 0..<some.sections.count {
                        XCTAssertEqual(
                            some.sections.bytes(of: index), all.sections.bytes(of: before + index))
                    }
                }
            }
        }
    }

    /// Nothing that is not asked for is inflated.
    func testOtherColumnsAreNotInflated() throws {
        var maker = RecordMaker(seed: 5)
        var block = Block(maker.records(20_000))
        for effort in BlockEffort.allCases {
            let stored = try BlockFile(&block, effort)
            var decoder = BlockDecoder()
            _ = try stored.read(&decoder)
            let whole = decoder.opener.inflatedBytes
            _ = try stored.read(&decoder, BlockColumns(.level))
            let some = decoder.opener.inflatedBytes - whole
            // Dense texts share a frame, which is always inflated.
            let most = effort == .swift ? whole / 2 : whole * 9 / 10
            XCTAssertLessThan(some, most, "\(effort)")
        }
    }

    /// Lines that have nothing in common take no more bytes at effort 1. A block of one line has
    /// one frame.
    func testUnlikeLinesAreStoredAsTheyAre() throws {
        let thread = RecordMaker(seed: 9).threads[0]
        for count in [1, 30, 2_500] {
            var random = SplitMix(9)
            var block = Block(seed: 1, target: 4 << 20)
            for _ in 0..<count {
                random.bytes(100).map { $0 % 85 + 38 }.withUnsafeBytes {
                    var record = RecordRef(thread: thread)
                    record.message = $0
                    block.add(record)
                }
            }
            let swift = try BlockFile(&block, .swift)
            let dense = try BlockFile(&block, .dense)
            XCTAssertLessThan(dense.bytes.count, swift.bytes.count * 51 / 50, "\(count)")
            let place = SkippableFrame.headerBytes + BlockDirectory.frameCount
            XCTAssertEqual(littleAt(dense.bytes, place) & 0xFFFF == 1, count == 1)
        }
    }

    /// A reader of one column refuses the block or finds what it holds.
    func testFlipsAreRefused() throws {
        for effort in BlockEffort.allCases {
            var maker = RecordMaker(seed: 7)
            var block = Block(maker.records(40))
            let whole = try BlockFile(&block, effort)
            func levels(_ file: BlockFile) throws -> [UInt64] {
                var decoder = BlockDecoder()
                let found = try file.read(&decoder, BlockColumns(.level)).level
                return (0..<found.count).map { found[$0] }
            }
            let wanted = try levels(whole)
            var random = SplitMix(8)
            for at in whole.bytes.indices {
                var changed = whole
                changed.bytes[at] ^= 1 << UInt8(random.below(8))
                var decoder = BlockDecoder()
                XCTAssertThrowsError(try changed.read(&decoder), "\(effort), \(at)")
                if let found = try? levels(changed) { XCTAssertEqual(found, wanted) }
            }
        }
    }

    /// The oracle finds in our blocks what was put in, and what their flags promise.
    func testTheOracleReadsOurs() throws {
        try full()
        let scratch = Scratch()
        for seed in UInt64(1)...3 {
            var maker = RecordMaker(seed: seed)
            let records = maker.records(400)
            var block = Block(records)
            var lines: [UInt8] = []
            let source = FakeSource(records)
            while let record = try source.advance() { JSONLine.append(record, to: &lines) }
            for effort in BlockEffort.allCases {
                for codec in Codec.allCases {
                    let stored = try BlockFile(&block, effort, codec)
                    let path = "\(scratch.path)/\(seed)-\(effort)-\(codec)"
                    let head = "block \(stored.facts.recordCount) \(stored.facts.size) \(codec)\n"
                    writeAll(Array(head.utf8) + stored.bytes, path + ".block")
                    writeAll(lines, path + ".found")
                    let read = shell(
                        "python3 '\(Self.oracle)/block.py' --letters '\(path).block'"
                            + " > '\(path).json'")
                    XCTAssertEqual(read.status, 0, path)
                }
            }
        }
        try compareLines(in: scratch)
    }

    private static let oracle =
        URL(fileURLWithPath: #filePath).deletingLastPathComponent().path + "/../Oracle"

    /// Each NAME.found with its NAME.json. Either may write a character or a number in another way.
    private func compareLines(in scratch: Scratch) throws {
        let compare = """
            import glob, json, sys
            def read(path):
                return [json.loads(line, object_pairs_hook=list) for line in open(path)]
            for path in glob.glob(sys.argv[1] + "/*.found"):
                if read(path) != read(path[:-5] + "json"): print(path)
            """
        writeAll(Array(compare.utf8), scratch.path + "/compare.py")
        let differing = shell("python3 '\(scratch.path)/compare.py' '\(scratch.path)'")
        XCTAssertEqual(differing.status, 0)
        XCTAssertEqual(String(decoding: differing.output, as: UTF8.self), "")
    }

    /// What standard tools see of effort 0: the messages as lines, last.
    func testStandardToolsShowLines() throws {
        let scratch = Scratch()
        var maker = RecordMaker(seed: 6)
        let records = maker.records(2_000)
        var block = Block(records)
        let lines: [UInt8] = records.flatMap { $0.model.message + [0x0A] }
        for (codec, tool) in [(Codec.zstd, "zstd"), (.lz4, "lz4")] {
            let stored = try BlockFile(&block, .swift, codec)
            writeAll(stored.bytes, scratch.path + "/block")
            let shown = shell("\(tool) -dc < '\(scratch.path)/block'")
            XCTAssertEqual(shown.status, 0)
            XCTAssertEqual(Array(shown.output.suffix(lines.count)), lines)
        }
    }
}
