// What the text of a block says about a search. If it says that a record cannot have the bytes,
// none has them, whatever codec took the message apart; and it says so of most blocks without them.
// Against every message of the block, by seed.

import CordwoodCore
import CordwoodTestSupport
import XCTest

@testable import CordwoodStore

final class BlockLettersTests: XCTestCase {
    /// Lines that codecs cut and print in every way they know.
    private static func line(_ random: inout SplitMix) -> String {
        let words = [
            "connect", "failed", "timeout", "nested", "tree", "dead", "beef", "Jan", "zebra",
            "xylo", "user", "result", "true", "null", "quick", "ufo", "xfade", "rune",
        ]
        func word() -> String { words[random.below(words.count)] }
        func hex(_ size: Int) -> String {
            (0..<size).map { _ in String(random.below(16), radix: 16) }.joined()
        }
        let number = random.below(100_000)
        let clock = "1\(random.below(10)):2\(random.below(10)):3\(random.below(10))"
        let month = ["Jan", "Mar", "Oct", "Dec"][random.below(4)]
        switch random.below(12) {
        case 0: return "\(word()) \(word()) after \(number) ms"
        case 1: return "z\(hex(8)) \(word())"
        case 2: return "0x\(hex(6)) \(word())\(hex(4)) id-\(hex(12))"
        case 3: return "1\(random.below(9))/\(month)/2026:\(clock) \(word())"
        case 4: return "\(month) 1\(random.below(9)) \(clock) host \(word())[\(number)]: \(word())"
        case 5: return #"{"k\#(word())":"\#(word())\n\#(word())\#(number)","t":"a\"\#(word())"}"#
        case 6: return #"\r\#(word())\t\#(word())\#(number) \\n\#(word())"#
        case 7: return "2026-11-2\(random.below(9))T\(clock).\(number % 1_000)Z\(word()) \(word())"
        case 8: return "req=\(hex(4))\(word())-\(hex(4)) \(clock)\(word())"
        case 9: return "\(word())\(number).\(word()) -\(number).5\(word())"
        case 10: return "\(word()) \"\(hex(8))\" \"\(word()) \(number)\""
        default: return String(number)
        }
    }

    private static func block(_ seed: UInt64) throws -> (BlockFile, [[UInt8]]) {
        var random = SplitMix(seed)
        var builder = Block(seed: seed, target: 64 << 20)
        let thread = RecordMaker(seed: seed).threads[0]
        var texts: [[UInt8]] = []
        for index in 0..<(40 + random.below(400)) {
            let text = Array(line(&random).utf8)
            texts.append(text)
            var record = RecordRef(thread: thread)
            record.monotonicNs = (1 << 40) + UInt64(index)
            record.writtenNs = record.monotonicNs
            record.timeNs = record.monotonicNs
            record.level = 9
            text.withUnsafeBytes { text in
                record.message = text
                record.originalLength = UInt64(text.count)
                builder.add(record)
            }
        }
        return (try BlockFile(&builder, seed % 2 == 0 ? .dense : .compact), texts)
    }

    private static func has(_ text: [UInt8], _ needle: [UInt8]) -> Bool {
        text.withUnsafeBytes { TextSearch.has($0, needle) }
    }

    private static func needle(_ texts: [[UInt8]], _ random: inout SplitMix) -> [UInt8] {
        let text = texts[random.below(texts.count)]
        let from = random.below(text.count)
        var made = Array(text[from...].prefix(1 + random.below(12)))
        if random.chance(3) {
            made[random.below(made.count)] = Array("aenrtuxzT0\\\" ".utf8)[random.below(13)]
        }
        return made
    }

    func testNoTextIsPassedOver() throws {
        try full()
        var (missing, absent, present) = (0, 0, 0)
        for seed in UInt64(1)...60 {
            let (stored, texts) = try Self.block(seed)
            var random = SplitMix(seed &+ 1_000)
            var decoder = BlockDecoder()
            var buffer = RowBuffer()
            for _ in 0..<200 {
                let needle = Self.needle(texts, &random)
                guard let letters = LetterRun(needle) else { continue }
                let loaded = try stored.load(&decoder, unless: letters, into: &buffer)
                let isWhole = !loaded.isWithout
                let view = buffer.view()
                XCTAssertEqual(view.count, texts.count)
                let isThere = texts.contains { Self.has($0, needle) }
                if isThere {
                    present += 1
                    guard isWhole else {
                        return XCTFail(
                            "seed \(seed): '\(String(decoding: needle, as: UTF8.self))'")
                    }
                } else {
                    absent += 1
                    missing += isWhole ? 0 : 1
                }
                if isWhole {
                    XCTAssertEqual((0..<view.count).map { Array(view.message($0)) }, texts)
                } else {
                    XCTAssertEqual(view.lastInOrder(), (1 << 40) + UInt64(texts.count - 1))
                }
            }
        }
        XCTAssertGreaterThan(present, 2_000)
        XCTAssertGreaterThan(missing, 200, "of \(absent)")
    }

    func testRunsThatDecideNothing() {
        let nothing = [
            "", "12", "dead", "0xbeef", "Jan", "an", "true", "nan", "ull", "T", "\\nab", "1cafe",
            "exception.type", "nT", "\\x1be",
        ]
        for text in nothing { XCTAssertNil(LetterRun(Array(text.utf8)), text) }
        for text in ["quick", " nest", "onne", "\\nested", "12zebra"] {
            XCTAssertNotNil(LetterRun(Array(text.utf8)), text)
        }
    }

    /// Two MiB of lines without anything in common.
    func testTextsInFramesOfTheirOwnAreLookedAt() throws {
        let thread = RecordMaker(seed: 1).threads[0]
        var random = SplitMix(4)
        var block = Block(seed: 1, target: 64 << 20)
        for index in 0..<24_000 {
            let text =
                index == 9_000
                ? Array("a quick zebra".utf8) : random.bytes(100).map { $0 & 31 | 32 }
            text.withUnsafeBytes {
                var record = RecordRef(thread: thread)
                record.message = $0
                block.add(record)
            }
        }
        let stored = try BlockFile(&block, .dense)
        let letters = try XCTUnwrap(LetterRun(Array("zebra".utf8)))
        var decoder = BlockDecoder()
        var buffer = RowBuffer()
        let opened = try stored.bytes.withUnsafeBytes {
            try decoder.open(Slice($0), stored.facts)
        }
        XCTAssertTrue(opened.hasLetters)
        XCTAssertLessThan(opened.text.count, 1 << 20, "the lines are elsewhere")
        XCTAssertFalse(try stored.load(&decoder, unless: letters, into: &buffer).isWithout)
        XCTAssertEqual(Array(buffer.view().message(9_000)), Array("a quick zebra".utf8))
        buffer.clear()
    }

    /// The text is partly the format's and partly the argument's.
    func testFormatsThatAreNotReadDecideNothing() throws {
        let thread = RecordMaker(seed: 1).threads[0]
        var block = Block(seed: 1, target: 1 << 20)
        let arguments = little(UInt32(4)) + Array("loop".utf8)
        for _ in 0..<50 {
            var record = RecordRef(thread: thread)
            record.isDeferred = true
            Array("xy%s".utf8).withUnsafeBytes { format in
                [ArgumentType.text].withUnsafeBytes { types in
                    arguments.withUnsafeBytes { arguments in
                        (record.format, record.argumentTypes) = (format, types)
                        record.arguments = arguments
                        block.add(record)
                    }
                }
            }
        }
        let stored = try BlockFile(&block, .dense)
        let tally = FacetTally(hasHistogram: true, hasFacets: false)
        var decoder = BlockDecoder()
        var buffer = RowBuffer()
        let letters = try XCTUnwrap(LetterRun(Array("xyloop".utf8)))
        for parts in [BlockParts.all, tally.parts] {
            let found = try stored.load(&decoder, parts, unless: letters, into: &buffer)
            XCTAssertFalse(found.isWithout)
        }
    }

    /// A pattern that keeps some letters of a run and stores others as digits hides the run.
    func testHexTakesNoPartOfAWord() throws {
        for (prefix, codec) in [
            ("id-", StringsCodec.hex), ("0x", StringsCodec.hex), ("z", nil), ("zeb", nil),
        ] as [(String, UInt8?)] {
            var column = StoredColumn()
            let values = (0..<64).map { index in
                Array("\(prefix)\(String(0xabcd_0000 + index * 0x9e37 % 0xffff, radix: 16))".utf8)
            }
            XCTAssertEqual(try column.strings(values, .run), values)
            if let codec {
                XCTAssertEqual(column.codec, codec, prefix)
            } else {
                XCTAssertNotEqual(column.codec, StringsCodec.hex, prefix)
            }
        }
    }
}
