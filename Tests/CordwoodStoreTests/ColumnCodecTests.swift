// Each codec of columns returns its input bit for bit, and is the one chosen for a column
// made for it.

import CShims
import CordwoodCore
import CordwoodTestSupport
import XCTest

@testable import CordwoodStore

/// One column through leaves, frames and back.
struct StoredColumn: ~Copyable {
    var encoder = BlockEncoder(level: 1, seed: 7)!
    var decoder = BlockDecoder()
    /// The bytes that the decoder reads: large planes are inflated on demand.
    private var frame = GrowingBytes()
    /// The first byte of the meta stream.
    var codec: UInt8 { encoder.out.meta.count > 0 ? encoder.out.meta.bytes[0] : 255 }

    mutating func flat<Element: BitwiseCopyable>(_ values: [Element]) throws -> Flat<Element> {
        let column: Flat<Element> = try encoder.arena.flat(values.count)
        for (index, value) in values.enumerated() { column[index] = value }
        return column
    }

    mutating func reopen(rawBytes: Int) throws {
        frame.clear(keeping: .max)
        try encoder.packer.pack(encoder.out, .dense, .zstd, to: &frame)
        decoder.leaves =
            try decoder.opener.open(
                Slice(frame.bytes), rawBytes: rawBytes, into: &decoder.arena
            ).leaves
    }

    /// The size of a block of that column alone.
    mutating func packed(_ values: [Int64]) throws -> Int {
        encoder.out.clear()
        frame.clear(keeping: .max)
        try encoder.ints(try flat(values.map { UInt64(bitPattern: $0) }))
        try encoder.packer.pack(encoder.out, .dense, .zstd, to: &frame)
        return frame.count
    }

    mutating func ints(_ values: [Int64]) throws -> [Int64] {
        try encoder.ints(try flat(values.map { UInt64(bitPattern: $0) }))
        try reopen(rawBytes: 1 << 20)
        let again = try decoder.ints(values.count, depth: 1)
        let leaves = decoder.leaves
        XCTAssertTrue(leaves.isSpent)
        return (0..<again.count).map { Int64(bitPattern: again[$0]) }
    }

    mutating func doubles(_ bits: [UInt64], bytes: Int) throws -> [UInt64] {
        try encoder.doubles(try flat(bits), bytes: bytes)
        try reopen(rawBytes: 1 << 20)
        let again = try decoder.doubles(bits.count, bytes: bytes, depth: 1)
        let leaves = decoder.leaves
        XCTAssertTrue(leaves.isSpent)
        return (0..<again.count).map { again[$0] }
    }

    mutating func strings(_ values: [[UInt8]], _ kind: StringKind) throws -> [[UInt8]] {
        // One buffer without gaps, as a block's is.
        let all = values.flatMap { $0 }
        return try all.withUnsafeBytes { bytes in
            let whole = Slice(bytes)
            var at = 0
            var slices: [Slice] = []
            for value in values {
                slices.append(whole.part(at, value.count))
                at += value.count
            }
            try encoder.strings(try flat(slices), kind)
            try reopen(rawBytes: max(all.count, 1 << 16))
            let again = try decoder.strings(values.count, depth: 1)
            let leaves = decoder.leaves
            XCTAssertTrue(leaves.isSpent)
            return (0..<again.count).map { Array(again[$0].bytes) }
        }
    }
}

extension Sequence where Element == UInt8 {
    fileprivate func withContiguousStorage<Result>(
        _ use: (UnsafeRawBufferPointer) throws -> Result
    ) rethrows -> Result {
        try Array(self).withUnsafeBytes(use)
    }
}

final class ColumnCodecTests: XCTestCase {
    private func check(
        _ values: [Int64], _ codec: UInt8? = nil, _ note: String = "", line: UInt = #line
    ) throws {
        var column = StoredColumn()
        let again = try column.ints(values)
        XCTAssertEqual(again, values, note, line: line)
        let chosen = column.codec
        if let codec { XCTAssertEqual(chosen, codec, note, line: line) }
    }

    private func check(
        _ values: [[UInt8]], _ kind: StringKind, _ codec: UInt8? = nil, _ note: String = "",
        line: UInt = #line
    ) throws {
        var column = StoredColumn()
        let again = try column.strings(values, kind)
        XCTAssertEqual(again, values, note, line: line)
        let chosen = column.codec
        if let codec { XCTAssertEqual(chosen, codec, note, line: line) }
    }

    private func check(
        _ texts: [String], _ kind: StringKind, _ codec: UInt8? = nil, line: UInt = #line
    ) throws {
        try check(texts.map { Array($0.utf8) }, kind, codec, line: line)
    }

    func testEveryCodecOfInts() throws {
        var random = SplitMix(1)
        try check([])
        try check([5], IntsCodec.const)
        try check(Array(repeating: -3, count: 100), IntsCodec.const)
        try check((0..<1_000).map { _ in Int64(random.below(200)) - 7 }, IntsCodec.offset)
        try check((0..<1_000).map { Int64($0 * $0) * 50 }, IntsCodec.slope)
        var sum: Int64 = 1 << 60
        try check(
            (0..<1_000).map { _ in
                sum += Int64(random.below(200))
                return sum
            }, IntsCodec.delta)
        let few: [Int64] = [.min, 17, 1 << 40, -99_999]
        try check((0..<1_000).map { _ in few[random.below(4)] }, IntsCodec.dictionary)
        let wide = (0..<2_000).map { _ in Int64(random.next() >> UInt64(24 + random.below(30))) }
        try check(wide, IntsCodec.logOffset)
        sum = 0
        try check(
            wide.map {
                sum += random.chance(2) ? $0 : -$0
                return sum
            }, IntsCodec.logDelta)
        try check((0..<1_000).map { Int64($0 / 50) % 3 }, IntsCodec.runs)
    }

    func testIntsWrap() throws {
        try check([.min, .max, .min, .max, 0, -1])
        try check(
            (0..<500).map { (index: Int64) -> Int64 in
                index % 2 == 0 ? .min + index : .max - index
            })
        try check((0..<70).map { (index: Int64) -> Int64 in 1 << (index % 64) })
    }

    func testRandomInts() throws {
        for seed in SplitMix.seeds(400) {
            var random = SplitMix(seed)
            let count = random.below(2_000)
            let shift = UInt64(random.below(64))
            let repeated = random.chance(3)
            var last: Int64 = 0
            let values = (0..<count).map { _ -> Int64 in
                if repeated, !random.chance(4) { return last }
                let value = Int64(bitPattern: random.next()) >> Int64(shift)
                last = random.chance(2) ? value : last &+ value
                return last
            }
            try check(values, nil, "seed \(seed)")
        }
    }

    func testDoubles() throws {
        func check(_ values: [Double], _ codec: UInt8) throws {
            var column = StoredColumn()
            let again = try column.doubles(values.map(\.bitPattern), bytes: 8)
            XCTAssertEqual(again, values.map(\.bitPattern))
            let chosen = column.codec
            XCTAssertEqual(chosen, codec)
        }
        var random = SplitMix(3)
        try check((0..<100).map { _ in Double(random.below(100_000)) / 100 }, DoublesCodec.decimal)
        try check([1, 2, -3], DoublesCodec.decimal)
        try check((0..<100).map { _ in Double(random.next()) / 3 }, DoublesCodec.planes)
        try check([0, -0.0, .nan, .infinity, -0.1, -.infinity, 0.1], DoublesCodec.planes)
        let few = [Double.nan, -0.0, .infinity, .pi]
        try check((0..<100).map { few[$0 % 4] }, DoublesCodec.words)
        var column = StoredColumn()
        let floats = (0..<100).map { UInt64((Float($0) / 10).bitPattern) }
        let again = try column.doubles(floats, bytes: 4)
        XCTAssertEqual(again, floats)
        let chosen = column.codec
        XCTAssertEqual(chosen, DoublesCodec.decimal)
        column = StoredColumn()
        let odd = (0..<100).map { _ in random.next() >> 32 }
        let same = try column.doubles(odd, bytes: 4)
        XCTAssertEqual(same, odd)
        let last = column.codec
        XCTAssertEqual(last, DoublesCodec.planes)
    }

    func testEveryCodecOfStrings() throws {
        var random = SplitMix(4)
        try check([String](), .run)
        try check(["x"], .line, StringsCodec.const)
        try check(["", "", ""], .run, StringsCodec.const)
        try check(["12", "-7", "0", "999999999999999999"], .run, StringsCodec.int)
        try check(["007", "123", "000"], .run, StringsCodec.digits)
        try check(["0.50", "-13.25", "1234567.00"], .run, StringsCodec.decimal)
        for odd in ["-0", "00", "1000000000000000000", "-", "", "1e3", "-0.00", ".5", "5.", "+1"] {
            try check(["12.50", odd, "1"], .run)
            try check(["12", odd, "1"], .run)
        }
        let words = (0..<9).map { _ in String(random.next(), radix: 32) }
        try check((0..<100).map { _ in words[random.below(9)] }, .word, StringsCodec.dictionary)
        try check((0..<300).map { "word\(["a", "b", "c"][$0 / 2 % 3])\($0 / 4)" }, .word)
        try check(
            (0..<50).map { _ in "id-" + String(random.next() | 1 << 60, radix: 16) }, .run,
            StringsCodec.hex)
        try check((0..<50).map { _ in random.bytes(16) }, .binary, StringsCodec.fixed)
        try check(["a\nb", "c"], .word, StringsCodec.sized)
        try check(["a", "bc"], .word, StringsCodec.lines)
    }

    /// Pieces that get one key from a hash that treats the variable's kind as a part of them: of 16
    /// bytes it multiplies one half by the other, and a kind would change the same bits of either
    /// half as bytes 0 and 12 do.
    func testColumnsHaveOneKind() throws {
        let ends: [UInt8] = [0x28, 0x29, 0x2A, 0x2B]
        let pieces = ends.flatMap { first in
            ends.map { second in
                String(decoding: [first], as: UTF8.self) + "*:*:*:*:*:*"
                    + String(decoding: [second], as: UTF8.self) + ":*"
            }
        }
        let values = (0..<400).map { index in
            let piece = pieces[index % pieces.count]
            return Array(
                (index % 2 == 0 ? "\(piece)\"\(index)" : "\(piece)\"\(index) x\"").utf8)
        }
        for seed in UInt64(0)..<64 {
            var column = StoredColumn()
            column.encoder = BlockEncoder(level: 1, seed: seed)!
            XCTAssertEqual(try column.strings(values, .line), values, "seed \(seed)")
        }
    }

    /// Values of one key share a column, but lines that report one thing in different words share
    /// columns by place. After a change the next block is checked again, and later ones seldom.
    func testColumnsAreSharedAsTheLinesAsk() throws {
        var random = SplitMix(9)
        let verbs = ["status unpacked", "status half-configured", "status installed", "configure"]
        let packages = (0..<600).map { _ in
            "lib\(random.below(1 << 30)):amd64 \(random.below(9)).\(random.below(1 << 20))-1"
        }
        let story = packages.flatMap { package in
            verbs.filter { _ in random.chance(2) }.map { "\($0) \(package)" }
        }
        let keys = (0..<1_200).map { index in
            let pair = ["user=u\(random.below(40))", "took=\(100_000 + random.below(900_000))"]
            return "request \((index % 3 == 0 ? pair : pair.reversed()).joined(separator: " "))"
        }
        var column = StoredColumn()
        func choose(_ lines: [String]) throws -> ColumnSharing {
            let bytes = lines.map { Array($0.utf8) }
            let before = column.encoder.out.data.count + column.encoder.out.meta.count
            return try bytes.joined().withContiguousStorage { whole in
                var at = 0
                var slices: [Slice] = []
                for line in bytes {
                    slices.append(Slice(whole).part(at, line.count))
                    at += line.count
                }
                try column.encoder.chooseSharing(try column.flat(slices))
                let after = column.encoder.out.data.count + column.encoder.out.meta.count
                XCTAssertEqual(after, before, "a choice writes nothing")
                return column.encoder.sharing
            }
        }
        XCTAssertEqual(try choose(story), .place)
        XCTAssertEqual(try choose(keys), .word, "the next block is looked at")
        XCTAssertEqual(try choose(keys), .word)
        for _ in 0..<15 { XCTAssertEqual(try choose(story), .word, "it is settled") }
        XCTAssertEqual(try choose(story), .place)

        let mixed = story + keys + story
        column.encoder = BlockEncoder(level: 1, seed: 7)!
        XCTAssertEqual(try choose(mixed), .word, "the lines in the middle are asked")
        column.encoder = BlockEncoder(level: 1, seed: 7)!
        column.encoder.packer.isThorough = true
        XCTAssertEqual(try choose(mixed), .place, "all lines are asked")
    }

    /// Bytes in no order cost their entropy; repeated words are found. What pays off in the first
    /// block of an archive is used for the next ones, and checked again.
    func testMatchesAreSoughtInPlanesThatRepayThem() throws {
        var random = SplitMix(20_261_127)
        let count = 20_000
        let noise = (0..<count).map { _ in Int64(random.below(5)) }
        let words = (0..<64).map { _ in random.bytes(6) }
        let text = (0..<count / 6).flatMap { _ in words[random.below(64)].map(Int64.init) }
        var column = StoredColumn()
        column.encoder = BlockEncoder(level: 3, seed: 7)!
        let least = Double(count) * 2.322 / 8
        XCTAssertLessThan(Double(try column.packed(noise)), least * 1.08)
        for block in 1..<16 {
            XCTAssertGreaterThan(try column.packed(text), count * 9 / 10, "\(block)")
        }
        for block in 16..<40 { XCTAssertLessThan(try column.packed(text), count / 2, "\(block)") }
    }

    /// Estimates look at the middle of a column; a thorough encoder measures all of it.
    func testALargeColumnOfASmallArchiveIsMeasured() throws {
        var random = SplitMix(20_261_127)
        let few = (0..<40).map { _ in Int64(random.below(1 << 40)) }
        let outer = (0..<6_000).map { _ in few[random.below(few.count)] }
        let values = outer + (0..<1_200).map { Int64($0 * 3) } + outer
        func size(isThorough: Bool) throws -> Int {
            var column = StoredColumn()
            column.encoder.packer.isThorough = isThorough
            let mark = column.encoder.out.mark
            XCTAssertEqual(try column.ints(values), values)
            return try column.encoder.packer.size(of: column.encoder.out, from: mark)
        }
        let (estimated, measured) = (try size(isThorough: false), try size(isThorough: true))
        XCTAssertLessThan(measured * 3, estimated)
    }

    /// Lines are cut at marks that are found many bytes at a time. They equal the classes found
    /// byte by byte, at every place of a line of any length.
    func testMarksAreThoseOfTheClasses() {
        var random = SplitMix(20_261_126)
        for length in [1, 2, 15, 16, 17, 63, 64, 65, 79, 80, 127, 128, 129, 300] {
            for _ in 0..<200 {
                let line = (0..<length).map { _ in UInt8.random(in: .min ... .max, using: &random) }
                let words = length / 64 + 2
                var marks = [UInt64](repeating: .max, count: words)
                var (varying, signs) = (marks, marks)
                let hasSigns = line.withUnsafeBufferPointer {
                    cwi_word_marks($0.baseAddress, length, &marks, &varying, &signs)
                }
                let maps = [marks, varying, signs]
                for place in 0..<(length + 63) / 64 * 64 + 64 {
                    let byte = place < length ? line[place] : 0
                    func bit(_ map: Int) -> Bool { maps[map][place / 64] >> (place % 64) & 1 != 0 }
                    XCTAssertEqual(bit(0), Self.isWord(byte), "\(line) \(place)")
                    XCTAssertEqual(bit(0), ByteClass.isWord(byte))
                    XCTAssertEqual(bit(1), (0x2F...0x39).contains(byte))
                    XCTAssertEqual(bit(2), byte == 0x22 || byte == 0x5C)
                }
                XCTAssertEqual(hasSigns, line.contains(0x22) || line.contains(0x5C))
            }
        }
    }

    private static func isWord(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x80...0xFF: true
        default: "_.-@+%$#~&/\\".utf8.contains(byte)
        }
    }

    /// A date is read and printed once for consecutive times.
    func testTimesOfOneDay() throws {
        var lines: [String] = []
        for index in 0..<300 {
            let clock = "\(10 + index % 14):\(10 + index % 50):\(59 - index % 50)"
            let day = 10 + index / 40
            lines.append(
                "at 2024-03-\(day) \(clock) and 2024/03/\(day) \(clock),\(index % 9)17 done")
            lines.append("at 2024-03-\(day)T\(clock).25 and \(day)/Mar/2024:\(clock) done")
            lines.append("at 2024-03-\(day) \(clock), by 0000-01-01 00:00:00, 9999-12-31 23:59:59")
        }
        try check(lines, .line, StringsCodec.templates)
        try check(lines.reversed(), .line, StringsCodec.templates)
    }

    /// From one minute or day to the next and back: what is kept of a time ends with its minute.
    func testTimesAroundMinutes() throws {
        func two(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }
        let offsets = [
            0, 1, 58, 59, 60, 61, 59, 119, 120, 30, 0, 86_399, 86_400, 86_401, 86_399, 3_600, 59,
        ]
        let times = (0..<340).map { index -> [String] in
            let seconds = offsets[index % offsets.count]
            let day = two(30 + seconds / 86_400)
            let clock = [seconds / 3_600 % 24, seconds / 60 % 60, seconds % 60].map(two)
                .joined(separator: ":")
            let fraction = [0, 1, 999_999_999, 500_000_000][index % 4]
            let nine = String(String(1_000_000_000 + fraction).dropFirst())
            return [
                clock, "\(clock):\(nine.prefix(1))", "2024-05-\(day) \(clock),\(nine.prefix(3))",
                "1969/12/\(day)T\(clock).\(nine)", "\(day)/May/2024:\(clock)",
                "May \(day) \(clock)",
            ]
        }
        for form in 0..<6 {
            let lines = times.map { "at \($0[form]) x" }
            try check(lines, .line, StringsCodec.templates)
            try check(lines.reversed(), .line, StringsCodec.templates)
        }
        try check(times.map { $0.joined(separator: " x ") }, .line, StringsCodec.templates)
    }

    /// Any other byte in a digit's place makes it no time.
    func testTimesHaveDigits() {
        for at in 0..<8 {
            for byte in UInt8.min...UInt8.max {
                var text = Array("09:32:48 x".utf8)
                text[at] = byte
                let parts = text.prefix(8).split(separator: 0x3A, omittingEmptySubsequences: false)
                let numbers = parts.map { part in
                    part.count == 2 && part.allSatisfy { 0x30...0x39 ~= $0 }
                        ? Int(part.first! - 0x30) * 10 + Int(part.last! - 0x30) : 99
                }
                let isTime =
                    numbers.count == 3 && numbers[0] < 24 && numbers[1] < 60 && numbers[2] < 60
                var last = TimeForm.LastDate()
                let found = text.withUnsafeBytes {
                    TimeForm.read(Slice($0), at: 0, after: &last)?.number
                }
                let wanted = numbers.reduce(0) { $0 * 60 + $1 }
                XCTAssertEqual(found, isTime ? Int64(wanted) : nil, "byte \(byte) at \(at)")
            }
        }
    }

    /// As syslog prints them: one column, over months and days of one digit.
    func testTimesWithoutAYear() throws {
        let days = [
            "Jan  1", "Jan 31", "Feb  9", "Feb 10", "Feb 28", "Feb 29", "Mar  1", "Apr 30",
            "May 31",
            "Jun 30", "Jul 31", "Aug 31", "Sep 30", "Oct 31", "Nov 30", "Dec 31",
        ]
        let clocks = ["00:00:00", "09:59:59", "23:59:59"]
        let lines = (0..<960).map { index in
            "\(days[index / 20 % 16]) \(clocks[index % 3]) box su[\(index)]: opened by \(index % 7)"
        }
        try check(lines, .line, StringsCodec.templates)
        try check(lines.reversed(), .line, StringsCodec.templates)
        var column = StoredColumn()
        _ = try column.strings(lines.map { Array($0.utf8) }, .line)
        let text = Array(column.encoder.out.bytes(column.encoder.out.leaves[0]).bytes)
        let rest = [3, 0] + Array(" box su[".utf8) + [1] + Array("]: opened by ".utf8) + [1, 0]
        XCTAssertEqual(text, [4] + rest, "one template, whatever the day")
        // Text that is not a time stays text.
        let others = [
            "Feb 30 10:00:00", "Apr 31 10:00:00", "Jan  0 10:00:00", "Jan 00 10:00:00",
            "Jan 05 10:00:00", "Jan 32 10:00:00", "Jan  5 24:00:00", "Jan  5 10:60:00",
            "Jan  5 10:00:60", "Jan  5 10:00:001", "Jan  5 10:00:0", "Jan  5 10:00:00.5",
            "Jan  5 10:00", "Jan 5 10:00:00", "Jan   5 10:00:00", "aJan  5 10:00:00",
            "jan  5 10:00:00", "Jan  5T10:00:00", "Jan 15 10:00:00", "Jan  510:00:00", "Jan 1",
        ]
        for text in others {
            try check((0..<40).map { "\(text) x \($0)" }, .line)
            try check((0..<40).map { "\($0) \(text)" }, .line)
        }
    }

    /// Digits are written two at a time.
    func testNumbersOfEveryLength() throws {
        var numbers: [String] = []
        for digits in 1...18 {
            for number in [Int64(Decimals.power(digits)) / 10, Int64(Decimals.power(digits)) - 1] {
                numbers += ["\(number)"] + (number > 0 ? ["-\(number)"] : [])
            }
        }
        try check(numbers, .run, StringsCodec.int)
        for digits in 1...18 {
            let texts = (0..<40).map { index in
                String(String("\(index * 7_919)00000000000000000".prefix(digits)).reversed())
            }
            try check(texts, .run)
        }
    }

    /// Texts of numbers near one another are made once each, but count for every value.
    func testNumbersNearOneAnother() throws {
        for first in [-30, -5, 0, 95, 9_990, 999_999_999_999_000] {
            let numbers = (0..<600).map { first + $0 * 7 % 149 }
            try check(numbers.map { "\($0)" }, .run, StringsCodec.int)
            try check(numbers.prefix(40).map { "\($0)" }, .run, StringsCodec.int)
        }
        let digits = (0..<600).map { index in
            String(String(10_000 + index * 7 % 100).dropFirst())
        }
        try check(digits, .run, StringsCodec.digits)
        var column = StoredColumn()
        _ = try column.strings(digits.map { Array($0.utf8) }, .run)
        try column.reopen(rawBytes: 1 << 16)
        let before = column.decoder.leaves.madeLeft
        _ = try column.decoder.strings(digits.count, depth: 1)
        let after = column.decoder.leaves.madeLeft
        XCTAssertEqual(before - after, 4 * digits.count)
    }

    func testRandomStrings() throws {
        let pieces = [
            "GET", " /index", "\"", "\\\"", ":", "{\"k\":", "12:30:59", "2024-02-29 00:00:00,123",
            "29/Feb/2023:10:00:00", "\n", "\0", "\u{1}\u{2}\u{3}\u{4}\u{5}", "deadbeef", "0x1F",
            "-0", "3.14", "999999999999999999999", "é", " ", "=", "a.b-c", "T", "/", "\\n",
        ].map { Array($0.utf8) }
        for seed in SplitMix.seeds(800) {
            var random = SplitMix(seed)
            let kinds: [StringKind] = [.line, .quoted, .run, .digits, .word, .binary]
            let shapes = (0..<1 + random.below(6)).map { _ in
                (0..<random.below(8)).map { _ in random.below(pieces.count) }
            }
            let values = (0..<random.below(400)).map { _ -> [UInt8] in
                if random.chance(20) { return random.bytes(random.below(40)) }
                return shapes[random.below(shapes.count)].flatMap { piece in
                    random.chance(3) ? Array(String(random.below(5_000)).utf8) : pieces[piece]
                }
            }
            try check(values, kinds[random.below(kinds.count)], nil, "seed \(seed)")
        }
    }
}
