// Searching for bytes finds exactly the records whose text has them, though most texts are never
// made: stores of generated formats whose arguments print letters of their own, against every text.

import Cordwood
import CordwoodCore
import CordwoodStore
import CordwoodTestSupport
import Glibc
import XCTest

final class TextSearchTests: XCTestCase {
    private var store = ""

    override func setUp() { store = TestFiles.directory() }
    override func tearDown() { TestFiles.remove(store) }

    func testASearchFindsWhatATestOfEveryTextFinds() throws {
        var (searched, made, found): (Int, UInt64, Int) = (0, 0, 0)
        var (dense, plain) = (0, 0)
        for seed in SplitMix.seeds(80, core: 3) {
            var random = SplitMix(seed)
            let source = Generated(count: 300, random: &random)
            let lane = "20261121T081530Z-812-9f3c5a0de1b27788"
            let cover = ArchiveCover(
                laneID: LaneID(high: 7, low: 1), first: 0, last: 0, laneName: lane)
            let isLarge = seed % 2 == 0
            let info = try ArchiveWriter.write(
                source: source, covers: [cover], archivesDirectory: FilePath(store),
                codec: isLarge ? .zstd : .lz4, level: 1, now: 5,
                effort: seed % 3 == 0 ? .swift : .dense,
                blockBytes: (isLarge ? 10_000 : 200) + Int(random.next() % 4_000))
            if isDense("\(info.path)") { dense += 1 } else { plain += 1 }
            let texts = try all(ReaderOptions(), "\(info.path)")
            XCTAssertEqual(texts.count, 300)
            for _ in 0..<125 {
                var options = ReaderOptions()
                options.containing = needle(texts, &random)
                let wanted = texts.filter { Self.has($0, options.containing) }
                let seen = try all(options, "\(info.path)")
                guard seen == wanted else {
                    let text = String(decoding: options.containing, as: UTF8.self)
                    return XCTFail(
                        "seed \(seed): '\(text)' in \(seen.count) of \(wanted.count) texts")
                }
                searched += 1
                found += wanted.count
                made += try given(options.containing, "\(info.path)")
            }
        }
        XCTAssertGreaterThan(found, searched)
        XCTAssertGreaterThan(dense, 0)
        XCTAssertGreaterThan(plain, 0)
        XCTAssertLessThan(made, UInt64(searched * 300) / 2, "most texts are made")
    }

    /// A long text is searched by two of the word's bytes, which may be rare or frequent in it.
    func testAWordInALongTextIsFoundWhereItIsFirst() {
        for seed in SplitMix.seeds(300, core: 18) {
            var random = SplitMix(seed)
            let letters = 1 + random.next() % 24
            let text = (0..<(4_000 + Int(random.next() % 8_000))).map { _ in
                UInt8(0x61 + random.next() % letters)
            }
            for _ in 0..<5 {
                let start = Int(random.next() % UInt64(text.count))
                let count = 1 + Int(random.next() % (seed % 2 == 0 ? 8 : 70))
                var word = Array(text[start...].prefix(count))
                if random.next() % 2 == 0 { word[Int(random.next() % UInt64(word.count))] = 0x62 }
                let first = (0...(text.count - word.count)).first {
                    text[$0] == word[0] && text[$0..<($0 + word.count)].elementsEqual(word)
                }
                let found = text.withUnsafeBytes { TextSearch(word).first(in: $0) }
                guard found == first else {
                    return XCTFail("seed \(seed): \(word) in \(text.count) bytes")
                }
            }
        }
    }

    /// No format shows single characters or error texts, which may have any letter.
    func testABlockWithoutTheNeedleIsPassedOver() throws {
        var random = SplitMix(1)
        let cover = ArchiveCover(
            laneID: LaneID(high: 7, low: 1), first: 0, last: 0, laneName: "lane")
        let info = try ArchiveWriter.write(
            source: Generated(count: 2_000, characters: false, random: &random), covers: [cover],
            archivesDirectory: FilePath(store), codec: .zstd, level: 1, now: 5, blockBytes: 2_000)
        XCTAssertGreaterThan(info.blockCount, 5)
        // One for each block: the order of others may depend on it.
        XCTAssertLessThanOrEqual(
            try given(Array("~no such~".utf8), "\(info.path)"), UInt64(info.blockCount) * 2)
    }

    /// A block without a text that has the bytes is loaded all the same.
    func testDamageIsReportedWhateverIsSearched() throws {
        var random = SplitMix(2)
        let cover = ArchiveCover(
            laneID: LaneID(high: 7, low: 1), first: 0, last: 0, laneName: "lane")
        let info = try ArchiveWriter.write(
            source: Generated(count: 2_000, characters: false, random: &random), covers: [cover],
            archivesDirectory: FilePath(store), codec: .none, level: 1, now: 5, blockBytes: 2_000)
        let file = open("\(info.path)", O_RDWR)
        var byte: UInt8 = 0
        pread(file, &byte, 1, off_t(info.fileBytes / 2))
        byte ^= 1
        pwrite(file, &byte, 1, off_t(info.fileBytes / 2))
        close(file)
        var problems: [[ReadProblem]] = []
        for wanted in ["", "~no such~"] {
            var options = ReaderOptions()
            options.containing = Array(wanted.utf8)
            let reader = try StoreReader(path: "\(info.path)", options: options)
            while reader.next({ _ in }) == .record {}
            problems.append(reader.problems)
        }
        XCTAssertEqual(problems[0].count, 1)
        XCTAssertEqual("\(problems[0])", "\(problems[1])")
    }

    /// Whether the archive's first block was made with effort 1 or 2 (FORMAT §11.1, §11.2).
    private func isDense(_ path: String) -> Bool {
        let file = open(path, O_RDONLY)
        defer { close(file) }
        var length: UInt32 = 0
        var effort: UInt8 = 0
        pread(file, &length, 4, 4)
        pread(file, &effort, 1, 8 + off_t(length) + 8 + off_t(BlockHeader.effort))
        return effort != BlockEffort.swift.rawValue
    }

    private func all(_ options: ReaderOptions, _ path: String) throws -> [[UInt8]] {
        let reader = try StoreReader(path: path, options: options)
        var texts: [[UInt8]] = []
        while reader.next({ texts.append(Array($0.message)) }) == .record {}
        XCTAssertEqual(reader.problemCount, 0)
        return texts
    }

    /// How many records the archive returns, made or not.
    private func given(_ wanted: [UInt8], _ path: String) throws -> UInt64 {
        let source = try ArchiveSource.open(path: FilePath(path))
        source.look(for: TextSearch(wanted))
        var count: UInt64 = 0
        var record = RecordRef()
        while try source.next(&record) { count += 1 }
        return count
    }

    private static func has(_ text: [UInt8], _ needle: [UInt8]) -> Bool {
        guard text.count >= needle.count else { return false }
        return (0...(text.count - needle.count)).contains {
            text[$0..<($0 + needle.count)].elementsEqual(needle)
        }
    }

    /// A piece of a text, perhaps with one byte changed, or letters that printed numbers contain.
    private func needle(_ texts: [[UInt8]], _ random: inout SplitMix) -> [UInt8] {
        let letters = Array("truefalsinfnan(null)0x1e+-.%{} zqkXEP\n\u{e9}~".utf8)
        var made: [UInt8] = []
        if random.next() % 4 > 0, let text = texts.randomElement(using: &random), !text.isEmpty {
            let from = Int.random(in: 0..<text.count, using: &random)
            made = Array(text[from...].prefix(Int.random(in: 1...9, using: &random)))
            if random.next() % 3 == 0 {
                made[Int.random(in: made.indices, using: &random)] = letters.randomElement(
                    using: &random)!
            }
        } else {
            for _ in 0...Int.random(in: 0...4, using: &random) {
                made.append(letters.randomElement(using: &random)!)
            }
        }
        return made
    }
}

/// Records of one thread, in order: plain ones, and deferred ones of generated formats.
private final class Generated: RecordSource {
    private struct Place {
        var style: UInt8
        var format: [UInt8]
        var types: [UInt8]
    }
    private let thread: ThreadInfo
    private let characters: Bool
    private var left: Int
    private var places: [Place] = []
    private var random: SplitMix
    private var time: UInt64 = 0
    private var memory: [UnsafeMutableRawBufferPointer] = []

    var createdMonotonicNs: UInt64 { 0 }
    var process: CordwoodStore.ProcessInfo? { thread.process }

    init(count: Int, characters: Bool = true, random: inout SplitMix) {
        self.characters = characters
        left = count
        self.random = SplitMix(random.next())
        let process = CordwoodStore.ProcessInfo(
            laneID: LaneID(high: 7, low: 1), bootID: .zero, processID: 812, name: "p",
            createdRealtime: 1_000, createdMonotonic: 0, resource: [])
        thread = ThreadInfo(process: process, serial: 1, threadID: 812, name: "")
        // A block may be passed over if none of its formats joins a word with an argument's: rarely
        // with many formats.
        for _ in 0..<[1, 2, 12][below(3)] { places.append(place()) }
    }

    deinit { for buffer in memory { buffer.deallocate() } }

    private func below(_ limit: Int) -> Int { Int(random.next() % UInt64(limit)) }

    /// Conversions of printf with the types that they take, and fields of std::format.
    private static let printf: [(String, UInt8)] = [
        ("%d", 1), ("%5u", 1), ("%x", 1), ("%#X", 1), ("%c", 1), ("%lld", 2), ("%f", 3),
        ("%.2e", 3), ("%G", 3), ("%a", 3), ("%p", 5), ("%s", 6), ("%.3s", 6), ("%-9s", 6),
        ("%ls", 7), ("%lc", 1),
    ]
    private static let braces: [(String, UInt8)] = [
        ("{}", 1), ("{:x}", 11), ("{:#b}", 12), ("{:c}", 1), ("{}", 3), ("{:.2f}", 3), ("{:a}", 3),
        ("{}", 5), ("{}", 6), ("{:*>7}", 6), ("{:.2}", 6), ("{}", 9), ("{:d}", 9), ("{}", 10),
        ("{:?}", 6), ("{}", 13),
    ]

    private func place() -> Place {
        let style: UInt8 = [0, 0, 2, 3, 1][below(5)]
        let words = ["order ", "user=", "took ", "zeta:", "100%% ", "{{q}} ", "done", " ms", "~"]
        var (format, types): (String, [UInt8]) = (words[below(words.count)], [])
        for _ in 0..<below(3) {
            let choices = style == 0 ? Generated.printf : Generated.braces
            let (text, type) = choices[below(choices.count)]
            if !characters, type == 10 || text.hasSuffix("c") || text.hasSuffix("c}") { continue }
            format += text + words[below(words.count)]
            if style != 1 { types.append(type) }
        }
        if style == 0, characters, below(8) == 0 {
            format += "%m"
            types.append(8)
        }
        return Place(style: style, format: Array(format.utf8), types: types)
    }

    private func text() -> String {
        let words = [
            "", "anna", "true", "inf", "na", "0x", "1e+", "null", "quick", "z", "der ", "ke", "é",
        ]
        return words[below(words.count)] + words[below(words.count)]
    }

    private func argument(_ type: UInt8) -> [UInt8] {
        func bytes<Word: FixedWidthInteger>(_ word: Word) -> [UInt8] {
            withUnsafeBytes(of: word.littleEndian) { Array($0) }
        }
        let numbers: [UInt64] = [0, 1, 65, 0x7a, 0xbeef, .max, 4_096, 0x5a]
        let doubles = [0, 1.5, -2e300, .infinity, .nan, 1e-9, 123_456.75]
        let number = numbers[below(numbers.count)]
        switch type {
        case 1, 8, 11: return bytes(UInt32(truncatingIfNeeded: number))
        case 3: return bytes(doubles[below(doubles.count)].bitPattern)
        case 13: return bytes(Float(doubles[below(doubles.count)]).bitPattern)
        case 9: return [UInt8(below(2))]
        case 10: return [UInt8(32 + below(90))]
        case 6:
            if below(6) == 0 { return bytes(UInt32.max) }
            let text = Array(text().utf8)
            return bytes(UInt32(text.count)) + text
        case 7:
            let text = Array(text().unicodeScalars)
            return bytes(UInt32(text.count)) + text.flatMap { bytes($0.value) }
        default: return bytes(number)
        }
    }

    @safe private func view(_ bytes: [UInt8]) -> UnsafeRawBufferPointer {
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes.count, alignment: 8)
        buffer.copyBytes(from: bytes)
        memory.append(buffer)
        return UnsafeRawBufferPointer(buffer)
    }

    func next(_ record: inout RecordRef) throws(ReadProblem) -> Bool {
        guard left > 0 else { return false }
        left -= 1
        time += UInt64(below(1_000))
        record = RecordRef(thread: thread)
        record.monotonicNs = time
        record.writtenNs = time
        record.timeNs = time
        record.level = 9
        if below(3) == 0 {
            record.message = view(Array((text() + " " + text()).utf8))
            record.originalLength = UInt64(record.message.count)
            return true
        }
        // Not all places in every block.
        let place = places[(left / 40 + below(3)) % places.count]
        record.isDeferred = true
        record.style = place.style
        record.format = view(place.format)
        record.argumentTypes = view(place.types)
        record.arguments = view(place.types.flatMap(argument))
        return true
    }
}
