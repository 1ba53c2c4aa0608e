// How a block is made: with which effort, what happens to columns that do not fit, and that a block
// is refused if reading it back gives anything else.

import CordwoodCore
import CordwoodTestSupport
import XCTest

@testable import CordwoodStore

final class BlockMakerTests: XCTestCase {
    private var random = SplitMix(11)

    private func block(_ lines: [[UInt8]]) -> Block {
        var block = Block(seed: 3, target: 64 << 20)
        let thread = RecordMaker(seed: 3).threads[0]
        for line in lines {
            line.withUnsafeBytes { line in
                var record = RecordRef(thread: thread)
                record.message = line
                block.add(record)
            }
        }
        return block
    }

    /// The effort of the block that is made, and its file.
    private func made(
        _ block: inout Block, _ effort: BlockEffort, _ codec: Codec = .zstd, isOnly: Bool = false
    ) throws -> (effort: BlockEffort, file: BlockFile) {
        var maker = BlockMaker(effort: effort, codec: codec, level: 3)!
        try maker.make(&block, headerBytes: BlockHeader.frameBytes, isOnly: isOnly)
        _ = maker.storeHeader(block.summary)
        let bytes = Array(maker.frame.bytes)
        let head = SkippableFrame.headerBytes
        let stored = try XCTUnwrap(BlockEffort(rawValue: bytes[head + BlockHeader.effort]))
        XCTAssertEqual(bytes[head + BlockHeader.codec], codec.rawValue)
        let facts = BlockFacts(
            recordCount: Int(block.summary.recordCount), size: maker.size, codec: codec)
        return (stored, BlockFile(facts, Array(bytes[BlockHeader.frameBytes...])))
    }

    func testTheHeaderNamesTheEffort() throws {
        for effort in BlockEffort.allCases {
            for codec in Codec.allCases {
                var block = Block(Staged.texts(200))
                let found = try made(&block, effort, codec)
                XCTAssertEqual(found.effort, codec == .zstd ? effort : .swift)
                XCTAssertEqual(try found.file.records(), Staged.texts(200).map(\.model))
            }
        }
        var block = Block(Staged.texts(200))
        XCTAssertEqual(try made(&block, .dense, isOnly: true).effort, .compact)
        XCTAssertEqual(try made(&block, .swift, isOnly: true).effort, .swift)
    }

    /// Mined, these numbers would be more frames than a block may have.
    func testColumnsThatDoNotFitAreStoredAsTheyAre() throws {
        let lines = (0..<1_100).map { _ in
            Array(
                (0..<400).map { _ in "\(100_000 + random.below(800_000))" }.joined(separator: " ")
                    .utf8)
        }
        var block = block(lines)
        let found = try made(&block, .dense)
        XCTAssertEqual(found.effort, .swift)
        XCTAssertEqual(try found.file.records().map(\.message), lines)
        var few = self.block(Array(lines.prefix(100)))
        XCTAssertEqual(try made(&few, .dense).effort, .dense)
    }

    /// Of arguments that do not parse, as damage in a lane leaves them, only the format is kept.
    func testArgumentsThatDoNotParseAreLeftOut() throws {
        let thread = RecordMaker(seed: 1).threads[0]
        for effort in BlockEffort.allCases {
            var block = Block(seed: 1, target: 1 << 20)
            for index in 0..<50 {
                var record = RecordRef(thread: thread)
                record.isDeferred = true
                record.placeNumber = 3
                let stored = index % 3 == 0 ? [] : little(UInt32(4)) + Array("loop".utf8)
                Array("a %s".utf8).withUnsafeBytes { format in
                    [ArgumentType.text].withUnsafeBytes { types in
                        stored.withUnsafeBytes { arguments in
                            (record.format, record.argumentTypes) = (format, types)
                            record.arguments = arguments
                            block.add(record)
                        }
                    }
                }
            }
            let found = try made(&block, effort)
            XCTAssertEqual(found.effort, effort)
            var decoder = BlockDecoder()
            var buffer = RowBuffer()
            _ = try found.file.load(&decoder, into: &buffer)
            let view = buffer.view()
            XCTAssertEqual(view.count, 50)
            for row in 0..<view.count {
                let format = view.dictionaries.formats[Int(view.format[row])]
                XCTAssertEqual(Array(format.format), Array("a %s".utf8))
                XCTAssertEqual(Array(format.types), row % 3 == 0 ? [] : [ArgumentType.text])
                XCTAssertEqual(view.arguments(row).count, row % 3 == 0 ? 0 : 8)
            }
        }
    }

    /// A plane that two columns share, stored once, in a frame of its own.
    func testColumnsWithEqualPlanes() throws {
        let maker = RecordMaker(seed: 2)
        let threads = maker.threads
        var block = Block(seed: 2, target: 1 << 20)
        for _ in 0..<3_000 {
            let number = random.below(threads.count)
            var record = RecordRef(thread: threads[number])
            record.monotonicNs = random.next() >> 20
            record.writtenNs = record.monotonicNs
            record.timeNs = record.writtenNs
            Array("logger \(number)".utf8).withUnsafeBytes { name in
                record.logger = name
                block.add(record)
            }
        }
        XCTAssertEqual(try made(&block, .dense).effort, .dense)
    }

    /// One huge record is not mined.
    func testHugeBlocksAreStoredAsTheyAre() throws {
        let line = Array(repeating: Array("0123456789 abcdef ".utf8), count: 500_000).flatMap { $0 }
        var block = block([line])
        let found = try made(&block, .dense)
        XCTAssertEqual(found.effort, .swift)
        XCTAssertEqual(try found.file.records().map(\.message), [line])
    }

    /// A block that lacks anything of what was stored, or has more, is not taken for it.
    func testOnlyWhatComesBackIsKept() throws {
        var maker = RecordMaker(seed: 12)
        var records = maker.records(60)
        for index in records.indices { records[index].model.flags = 0 }
        typealias Change = (inout Staged) -> Void
        let changes: [(String, Change)] = [
            ("kind", { $0.model.kind ^= 1 }), ("level", { $0.model.level ^= 1 }),
            (
                "thread",
                { [threads = maker.threads] in
                    $0.thread = threads[$0.thread === threads[0] ? 1 : 0]
                }
            ),
            (
                "time",
                {
                    $0.model.monotonic ^= 1; $0.model.written ^= 1
                }
            ),
            ("offset", { $0.model.written ^= 1 << 20 }),
            ("sequence", { $0.model.sequence ^= 1 << 40 }),
            ("logger", { $0.model.logger += [0x61] }),
            ("message", { $0.model.message += [0x61] }),
            ("text", { $0.model.message = $0.model.message.map { $0 ^ 1 } }),
            ("context", { $0.model.context = [1, 0, 4, 0, 1, 0, 0x6B, 1] }),
            ("trace", { $0.model.trace = [UInt8](repeating: 7, count: 25) }),
            ("section", { $0.storedSections += section(2, [1, 0, 4, 0, 1, 0, 0x6B, 1]) }),
            ("place", { $0.model.file += [0x61] }),
            ("flag", { $0.model.flags = RecordFlags.unverified.rawValue }),
        ]
        for effort in BlockEffort.allCases {
            var whole = Block(records)
            let stored = try BlockFile(&whole, effort)
            var decoder = BlockDecoder()
            func gives(_ block: inout Block) -> Bool? {
                stored.bytes.withUnsafeBytes {
                    try? decoder.gives(&block, from: Slice($0), stored.facts)
                }
            }
            XCTAssertEqual(gives(&whole), true)
            for (name, change) in changes {
                var other = records
                for row in [0, 31, 59] { change(&other[row]) }
                var block = Block(other)
                XCTAssertNotEqual(gives(&block), true, "\(effort), \(name)")
            }
            var fewer = Block(Array(records.dropLast()))
            XCTAssertNotEqual(gives(&fewer), true)
            var more = Block(records + [records[0]])
            XCTAssertNotEqual(gives(&more), true)
        }
    }

    /// The same of rows that refer to another entry of the block's dictionaries.
    func testOnlyRowsThatComeBackAreKept() throws {
        let maker = RecordMaker(seed: 14)
        var records = Staged.texts(60)
        for index in records.indices {
            let isOdd = index % 2 == 1
            records[index].thread = maker.threads[isOdd ? 1 : 0]
            records[index].model.logger = Array((isOdd ? "a" : "b").utf8)
            records[index].model.trace = [UInt8](repeating: isOdd ? 1 : 2, count: 25)
        }
        for effort in BlockEffort.allCases {
            var whole = Block(records)
            let stored = try BlockFile(&whole, effort)
            var decoder = BlockDecoder()
            for column in 0..<4 {
                var other = records
                switch column {
                case 0: other[58].thread = records[59].thread
                case 1: other[58].model.logger = records[59].model.logger
                case 2: other[58].model.trace = records[59].model.trace
                default: break
                }
                var block = Block(other)
                let isSame = stored.bytes.withUnsafeBytes {
                    try? decoder.gives(&block, from: Slice($0), stored.facts)
                }
                XCTAssertEqual(isSame, column == 3, "\(effort), \(column)")
            }
        }
    }

    /// The same of every byte of sections, and of arguments.
    func testOnlyPartsThatComeBackAreKept() throws {
        for effort in BlockEffort.allCases {
            var maker = RecordMaker(seed: 13)
            var block = Block(maker.records(60))
            let stored = try BlockFile(&block, effort)
            var decoder = BlockDecoder()
            func gives(_ block: inout Block, _ stored: BlockFile) -> Bool? {
                stored.bytes.withUnsafeBytes {
                    try? decoder.gives(&block, from: Slice($0), stored.facts)
                }
            }
            XCTAssertGreaterThan(block.sections.count, 500)
            for at in stride(from: 0, to: block.sections.count, by: 7) {
                let byte = block.sections.bytes[at]
                block.sections.store(byte ^ 1, at: at)
                XCTAssertNotEqual(gives(&block, stored), true, "\(effort), \(at)")
                block.sections.store(byte, at: at)
            }
            XCTAssertEqual(gives(&block, stored), true)

            var made = DeferredBlock(seed: 5, count: 200)
            let deferred = try BlockFile(&made.block, effort)
            var count = 0
            for changed in 0..<20 {
                var other = DeferredBlock(seed: 5, count: 200, changed: changed)
                let isSame = other.records == made.records
                XCTAssertEqual(gives(&other.block, deferred), isSame, "\(effort), \(changed)")
                count += isSame ? 0 : 1
            }
            XCTAssertGreaterThan(count, 3)
        }
    }

    /// Many archives are small: a short program leaves one.
    func testTheOnlyBlockOfAnArchiveTakesFewerBytes() throws {
        let thread = RecordMaker(seed: 3).threads[0]
        let words = ["postgres", "client", "common", "server", "python", "dev", "ssl", "crypto"]
        let packages = (0..<900).map { index in
            let name = (0...2).map { _ in words[random.below(8)] }.joined(separator: "-")
            return "lib\(name)\(index % 7):amd64 \(random.below(3)).\(random.below(40))-1deb12u1"
        }
        let states = ["half-installed", "unpacked", "half-configured", "installed"]
        let records = (0..<2_000).map { index in
            var record = Staged(thread: thread)
            let package = packages[(index / 4 + random.below(8)) % 900]
            record.model.message = Array("status \(states[index % 4]) \(package)".utf8)
            record.model.monotonic = UInt64(index) << 20
            return record
        }
        var dense = Block(records)
        var compact = Block(records)
        let stored = try made(&dense, .dense)
        let only = try made(&compact, .dense, isOnly: true)
        XCTAssertEqual(try only.file.records().count, 2_000)
        XCTAssertLessThan(only.file.bytes.count * 100, stored.file.bytes.count * 97)
        let scratch = Scratch()
        let info = try writeArchive(records, in: scratch, level: 3, effort: .dense)
        let head = try XCTUnwrap(blockOffsets("\(info.path)").first) + SkippableFrame.headerBytes
        XCTAssertEqual(
            readAll("\(info.path)")[head + BlockHeader.effort], BlockEffort.compact.rawValue)
    }
}
