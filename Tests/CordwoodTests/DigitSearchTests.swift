// Searching for digits makes few texts and misses none: numbers of all forms beside literals and
// strings, and fields, against a test of every text and every field.

import Cordwood
import CordwoodCore
import CordwoodFormats
import CordwoodStore
import CordwoodTestSupport
import Glibc
import XCTest

final class DigitSearchTests: XCTestCase {
    private var store = ""

    override func setUp() { store = TestFiles.directory() }
    override func tearDown() { TestFiles.remove(store) }

    private func write(_ source: any RecordSource, _ effort: BlockEffort, _ bytes: Int) throws
        -> ArchiveInfo
    {
        let cover = ArchiveCover(
            laneID: LaneID(high: 7, low: 1), first: 0, last: 0,
            laneName: "20261121T081530Z-812-9f3c5a0de1b27788")
        return try ArchiveWriter.write(
            source: source, covers: [cover], archivesDirectory: FilePath(store), codec: .zstd,
            level: 1,
            now: 5, effort: effort, blockBytes: bytes)
    }

    private func sequences(_ options: ReaderOptions, _ path: String) throws -> [UInt64] {
        let reader = try StoreReader(path: path, options: options)
        var found: [UInt64] = []
        while reader.next({ found.append($0.sequence) }) == .record {}
        XCTAssertEqual(reader.problemCount, 0)
        return found
    }

    private struct Asked {
        var needle: [UInt8]
        var query: Query
        var inMessages: [UInt64] = []
        var inLines: [UInt64] = []
        var inQuery: [UInt64] = []
    }

    func testASearchForDigitsFindsWhatATestOfAllFinds() throws {
        var (searched, found) = (0, 0)
        for seed in SplitMix.seeds(80, core: 2) {
            var random = SplitMix(seed)
            let source = NumbersSource(count: 100, forms: .any, random: &random)
            let info = try write(
                source, seed % 3 == 0 ? .dense : .swift, 400 + Int(random.next() % 5_000))
            for asked in try answers("\(info.path)", &random) {
                let text = String(decoding: asked.needle, as: UTF8.self)
                let replay = "seed \(seed): '\(text)'"
                var options = ReaderOptions()
                options.containing = asked.needle
                XCTAssertEqual(try sequences(options, "\(info.path)"), asked.inMessages, replay)
                options.containing = []
                options.showing = asked.needle
                let shown = Set(try sequences(options, "\(info.path)"))
                XCTAssertTrue(shown.isSuperset(of: asked.inLines), replay)
                options.showing = []
                options.query = asked.query
                XCTAssertEqual(try sequences(options, "\(info.path)"), asked.inQuery, replay)
                searched += 1
                found += asked.inQuery.count
            }
        }
        XCTAssertGreaterThan(found, searched)
    }

    /// Needles, and the results of a test of every record.
    private func answers(_ path: String, _ random: inout SplitMix) throws -> [Asked] {
        var shown: [[UInt8]] = []
        let first = try StoreReader(path: path)
        while first.next({ shown.append(TextLine.Shown($0, form: .lines).bytes) }) == .record {}
        var all: [Asked] = []
        for _ in 0..<125 {
            let needle = Self.needle(shown, &random)
            let query = try Query("\"\(String(decoding: needle, as: UTF8.self))\"")
            all.append(Asked(needle: needle, query: query))
        }
        let second = try StoreReader(path: path)
        while second.next({ record in
            let (sequence, message) = (record.sequence, Array(record.message))
            for index in all.indices {
                let needle = all[index].needle
                if Self.has(message, needle) { all[index].inMessages.append(sequence) }
                if Self.has(shown[Int(sequence)], needle) { all[index].inLines.append(sequence) }
                if all[index].query.matches(record) { all[index].inQuery.append(sequence) }
            }
        }) == .record {}
        XCTAssertEqual(shown.count, 100)
        return all
    }

    /// Numbers without the digits are left out before a record is made.
    func testTextsWithOtherNumbersAreNotMade() throws {
        var random = SplitMix(3)
        let info = try write(
            NumbersSource(count: 2_000, forms: .usual, random: &random), .swift, 20_000)
        for (needle, most) in [("8888888", 60), ("4242", 400), ("id=4242", 60)] {
            let source = try ArchiveSource.open(path: info.path)
            let wanted = Array(needle.utf8)
            source.look(for: TextSearch(wanted), inFields: FieldSearch(wanted))
            var (given, record) = (0, RecordRef())
            while try source.next(&record) { given += 1 }
            XCTAssertLessThan(given, most, needle)
        }
    }

    private static func has(_ text: [UInt8], _ needle: [UInt8]) -> Bool {
        text.withUnsafeBytes { text in
            var at = 0
            while at + needle.count <= text.count {
                if memcmp(text.baseAddress! + at, needle, needle.count) == 0 { return true }
                at += 1
            }
            return false
        }
    }

    /// Digits taken from a text, often with their neighbours or with one digit changed.
    private static func needle(_ texts: [[UInt8]], _ random: inout SplitMix) -> [UInt8] {
        let text = texts.randomElement(using: &random)!
        let digits = text.indices.filter { ASCII.isDigit(text[$0]) || text[$0] == 0x2D }
        var made: [UInt8] = []
        if let start = digits.randomElement(using: &random), random.next() % 8 > 0 {
            let most = Int.random(in: 1...(random.next() % 4 == 0 ? 14 : 5), using: &random)
            made = Array(text[start...].prefix(most))
            if random.next() % 2 == 0 {
                made = Array(made.prefix { ASCII.isDigit($0) || $0 == 0x2D || $0 == 0x2E })
            }
            if random.next() % 6 == 0, start > 0 { made.insert(text[start - 1], at: 0) }
            if random.next() % 4 == 0 {
                made[Int.random(in: made.indices, using: &random)] =
                    0x30 + UInt8(random.next() % 10)
            }
        }
        made.removeAll { $0 < 0x20 || $0 == 0x22 || $0 == 0x5C || $0 >= 0x7F }
        return made.isEmpty ? Array("\(random.next() % 500)".utf8) : made
    }
}

/// Records of one thread, in order: most have numbers in a text or in fields.
private final class NumbersSource: RecordSource {
    enum Forms { case any, usual }

    private let thread: ThreadInfo
    private let forms: Forms
    private var places: [(style: UInt8, format: [UInt8], types: [UInt8])] = []
    private var random: SplitMix
    private let count: Int
    private var made = 0
    private var memory: [UnsafeMutableRawBufferPointer] = []

    var createdMonotonicNs: UInt64 { 0 }
    var process: CordwoodStore.ProcessInfo? { thread.process }

    init(count: Int, forms: Forms, random: inout SplitMix) {
        self.count = count
        self.forms = forms
        self.random = SplitMix(random.next())
        let process = CordwoodStore.ProcessInfo(
            laneID: LaneID(high: 7, low: 1), bootID: .zero, processID: 812, name: "p",
            createdRealtime: 1_000, createdMonotonic: 0, resource: [])
        thread = ThreadInfo(process: process, serial: 1, threadID: 812, name: "")
        for _ in 0..<10 { places.append(place()) }
    }

    deinit { for buffer in memory { buffer.deallocate() } }

    private func below(_ limit: Int) -> Int { Int(random.next() % UInt64(limit)) }

    private static let printf: [(String, UInt8)] = [
        ("%d", 1), ("%i", 1), ("%u", 1), ("%5d", 1), ("%-6d", 1), ("%05d", 1), ("%03u", 1),
        ("%+d", 1), ("% d", 1), ("%.4d", 1), ("%hd", 1), ("%hhu", 1), ("%x", 1), ("%X", 1),
        ("%08x", 1), ("%#x", 1), ("%o", 1), ("%lld", 2), ("%zu", 2), ("%020lld", 2), ("%llx", 2),
        ("%016llX", 2), ("%f", 3), ("%.3f", 3), ("%.0f", 3), ("%9.2f", 3), ("%-9.1f", 3),
        ("%08.2f", 3), ("%.12f", 3), ("%e", 3), ("%g", 3), ("%p", 5), ("%s", 6), ("%.2s", 6),
        ("%2$d%1$s", 6), ("%c", 1),
    ]
    private static let braces: [(String, UInt8)] = [
        ("{}", 1), ("{:d}", 2), ("{:5}", 1), ("{:<5}", 11), ("{:0>6}", 11), ("{:7^8}", 1),
        ("{:05}", 2), ("{:+}", 1), ("{:x}", 11), ("{:X}", 12), ("{:x}", 1), ("{:#x}", 12),
        ("{:b}", 11), ("{}", 12), ("{}", 3), ("{:.2f}", 3), ("{:f}", 13), ("{:9.1f}", 3),
        ("{}", 13), ("{:.3}", 3), ("{}", 6), ("{:.3}", 6), ("{:4>6}", 6), ("{}", 9), ("{:d}", 10),
    ]
    private static let words = [
        "id=", "order ", "", "5", "42", "-", "4", "2 of ", ".", " ms", "took ", "0", "x", ":",
    ]

    private func place() -> (style: UInt8, format: [UInt8], types: [UInt8]) {
        if forms == .usual {
            let usual: [(String, [UInt8])] = [
                ("order %d of %s took %.3f ms", [1, 6, 3]), ("pool %u: %llu of %d", [1, 2, 1]),
                ("id=%d5", [1]), ("%x at %08llx", [1, 2]), ("%5d|%-5d|%04d", [1, 1, 1]),
            ]
            let (format, types) = usual[below(usual.count)]
            return (0, Array(format.utf8), types)
        }
        let style: UInt8 = [0, 0, 2, 3][below(4)]
        var (format, types): (String, [UInt8]) = (Self.words[below(Self.words.count)], [])
        for _ in 0..<(1 + below(3)) {
            let choices = style == 0 ? Self.printf : Self.braces
            let (text, type) = choices[below(choices.count)]
            // Numbered arguments stand alone.
            if text.hasPrefix("%2") {
                return (style, Array("42\(text)5".utf8), [6, 1])
            }
            format += text + Self.words[below(Self.words.count)]
            types.append(type)
        }
        return (style, Array(format.utf8), types)
    }

    private func number() -> UInt64 {
        let special: [UInt64] = [
            0, 1, 42, 425, 4_242, 42_424_242, .max, .max - 41, 1 << 63, 0x4242, 1 << 31,
            UInt64(bitPattern: -42), UInt64(bitPattern: -4_242), 9_999_999_999,
        ]
        return below(3) == 0 ? special[below(special.count)] : random.next() >> below(64)
    }

    private func double() -> Double {
        let special: [Double] = [
            0, -0.0, 0.5, 42, -42.42, 4_241.9996, 999.9995, 1e300, .infinity, -.infinity, .nan,
            4.2e-7, 1e15, 424_242_424_242_424, 4.2424242424242424,
        ]
        return below(3) == 0
            ? special[below(special.count)]
            : Double(Int64(bitPattern: random.next()) >> below(60)) / [1, 4, 7, 1_000][below(4)]
    }

    private func text() -> String {
        ["", "anna", "42", "a4", "2b", "user-4242", "\u{1B}42", "é5", "\u{2028}", "7\n3"][below(10)]
            + ["", "5", "x", " 424"][below(4)]
    }

    private func argument(_ type: UInt8) -> [UInt8] {
        func bytes<Word: FixedWidthInteger>(_ word: Word) -> [UInt8] {
            withUnsafeBytes(of: word.littleEndian) { Array($0) }
        }
        let isUsual = forms == .usual
        switch type {
        case 1, 8, 11: return bytes(UInt32(isUsual ? number() & 0xFFFFF : number() & 0xFFFF_FFFF))
        case 3: return bytes((isUsual ? Double(number() & 0xFFFF) / 7 : double()).bitPattern)
        case 13: return bytes(Float(double()).bitPattern)
        case 9: return [UInt8(below(2))]
        case 10: return [UInt8(32 + below(90))]
        case 6:
            if !isUsual, below(8) == 0 { return bytes(UInt32.max) }
            let text = Array((isUsual ? "anna" : text()).utf8)
            return bytes(UInt32(text.count)) + text
        default: return bytes(isUsual ? number() & 0xFF_FFFF : number())
        }
    }

    private func fields() -> [UInt8] {
        if forms == .usual {
            return fieldBytes([
                ("order", .uint(number() & 0xFFFFF)), ("price", .double(Double(below(9_973)) / 4)),
                ("user", .string("eve-lyn")),
            ])
        }
        let keys = ["order", "k42", "price", "é", "a=4"]
        return fieldBytes(
            (0..<below(4)).map { _ in
                let values: [TestField] = [
                    .int(Int64(bitPattern: number())), .uint(number()), .double(double()),
                    .bool(below(2) == 0), .string(text()),
                ]
                return (keys[below(keys.count)], values[below(values.count)])
            })
    }

    private func exception() -> [UInt8] {
        let parts = ["Error42", text(), "at a.c:42\n\tat b.c:4242\n"].map { Array($0.utf8) }
        var w = ByteWriter()
        for part in parts { w.u32(UInt32(part.count)) }
        return w.bytes + parts.flatMap { $0 }
    }

    @safe private func view(_ bytes: [UInt8]) -> UnsafeRawBufferPointer {
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes.count, alignment: 8)
        buffer.copyBytes(from: bytes)
        memory.append(buffer)
        return UnsafeRawBufferPointer(buffer)
    }

    func next(_ record: inout RecordRef) throws(ReadProblem) -> Bool {
        guard made < count else { return false }
        record = RecordRef(thread: thread)
        record.monotonicNs = UInt64(made) * 10
        record.writtenNs = record.monotonicNs
        record.timeNs = record.monotonicNs
        record.sequence = UInt64(made)
        record.level = 9
        var sections: [UInt8] = []
        if below(4) == 0 { sections += section(SectionKind.fields, fields()) }
        if forms == .any, below(12) == 0 {
            sections += section(SectionKind.exception, exception())
        }
        record.sections = view(sections)
        if forms == .any, below(5) == 0 { record.context = view(fields()) }
        made += 1
        if below(5) == 0 {
            let line = forms == .usual ? "order accepted" : text() + " \(number()) " + text()
            record.message = view(Array(line.utf8))
            record.originalLength = UInt64(record.message.count)
            return true
        }
        let place = places[(made / 40 + below(3)) % places.count]
        record.isDeferred = true
        record.style = place.style
        record.format = view(place.format)
        record.argumentTypes = view(place.types)
        record.arguments = view(place.types.flatMap(argument))
        return true
    }
}
