// The parts below and above lanes: extreme clocks, JSON and text lines, levels, filters, merging of
// many sources.

import CordwoodCore
import CordwoodFormats
import CordwoodStore
import CordwoodTestSupport
import XCTest

final class ReadPartsTests: XCTestCase {
    // MARK: Clocks

    /// FORMAT §4 with numbers so wide that it needs no trick.
    private func model(_ t: UInt64, _ pairs: [ClockTable.Pair], _ perSecond: UInt64) -> UInt64 {
        let n = pairs.count
        var first = 0
        if n > 1 {
            if t >= pairs[n - 1].ticks {
                first = n - 2
            } else if t > pairs[0].ticks {
                first = (0..<n).last { pairs[$0].ticks <= t }!
            }
        }
        let a = pairs[first]
        var db = Int128(1_000_000_000)
        var dt = Int128(perSecond)
        if n > 1, pairs[first + 1].ticks != a.ticks {
            db = Int128(pairs[first + 1].monotonic) - Int128(a.monotonic)
            dt = Int128(pairs[first + 1].ticks) - Int128(a.ticks)
        }
        let d = Int128(t) - Int128(a.ticks)
        let magnitude = d.magnitude.multipliedFullWidth(by: db.magnitude)
        precondition(magnitude.high == 0)
        let negative = (d < 0) != (db < 0)
        var q = magnitude.low / UInt128(dt)
        if negative, magnitude.low % UInt128(dt) != 0 { q += 1 }
        let low = UInt64(truncatingIfNeeded: q)
        return negative ? a.monotonic &- low : a.monotonic &+ low
    }

    func testInterpolationMatchesTheModelAtExtremes() {
        let edges: [UInt64] = [0, 1, 2, 3, 1_000_000_000, 1 << 32, 1 << 63, .max - 1, .max]
        var random = SplitMix(7)
        for round in 0..<20_000 {
            func pick() -> UInt64 {
                Bool.random(using: &random)
                    ? edges.randomElement(using: &random)!
                    : UInt64.random(in: 0 ... .max, using: &random)
                        >> UInt64.random(
                            in: 0..<64, using: &random)
            }
            let count = Int.random(in: 1...5, using: &random)
            let ticks = (0..<count).map { _ in pick() }.sorted()
            guard Set(ticks).count == count else { continue }
            let pairs = ticks.map {
                ClockTable.Pair(ticks: $0, monotonic: pick(), realtime: pick())
            }
            let rate = max(pick(), 1)
            let table = ClockTable(pairs: pairs, ticksPerSecond: rate)
            var line = table.line(at: pick())
            for t in [pick(), pick(), ticks[0], ticks[count - 1]] {
                if !line.has(t) { line = table.line(at: t) }
                let got = line.times(of: t)
                XCTAssertEqual(got.monotonic, model(t, pairs, rate), "seed 7 round \(round)")
                let used = pairs.last { $0.ticks <= t } ?? pairs[0]
                XCTAssertEqual(
                    got.realtime, got.monotonic &+ (used.realtime &- used.monotonic),
                    "seed 7 round \(round)")
            }
        }
    }

    func testDamagedClockTables() {
        XCTAssertEqual(ClockTable(pairs: [], ticksPerSecond: 0).times(of: 5).monotonic, 5)
        let pair = ClockTable.Pair(ticks: 10, monotonic: 100, realtime: 1_000)
        XCTAssertEqual(ClockTable(pairs: [pair], ticksPerSecond: 0).times(of: 11).monotonic, 101)
        let same = ClockTable(pairs: [pair, pair, pair], ticksPerSecond: 1_000_000_000)
        XCTAssertEqual(same.times(of: 9).monotonic, 99)
        let back = ClockTable.Pair(ticks: 5, monotonic: 0, realtime: 0)
        XCTAssertEqual(ClockTable(pairs: [pair, back], ticksPerSecond: 1).pairs.count, 1)
    }

    // MARK: Lines

    private func json(_ text: [UInt8]) -> (String, Bool) {
        var out: [UInt8] = []
        let whole = text.withUnsafeBytes { JSONText.string($0, &out) }
        return (String(decoding: out, as: UTF8.self), whole)
    }

    func testJSONStringsMatchTheStandardLibrarysRepair() {
        var random = SplitMix(11)
        let bytes: [UInt8] = [
            0x00, 0x0a, 0x1f, 0x20, 0x22, 0x41, 0x5c, 0x7f, 0x80, 0x9f, 0xa0, 0xbf, 0xc0, 0xc2,
            0xc3, 0xe0, 0xe2, 0xed, 0xef, 0xf0, 0xf4, 0xf5, 0xff,
        ]
        for round in 0..<20_000 {
            let count = Int.random(in: 0..<(round % 2 == 0 ? 12 : 40), using: &random)
            let text = (0..<count).map { _ in bytes.randomElement(using: &random)! }
            let repaired = String(decoding: text, as: UTF8.self)
            var expected = "\""
            for scalar in repaired.unicodeScalars {
                switch scalar {
                case "\"": expected += "\\\""
                case "\\": expected += "\\\\"
                case "\n": expected += "\\n"
                case "\u{0}": expected += "\\u0000"
                case "\u{1f}": expected += "\\u001f"
                default: expected.unicodeScalars.append(scalar)
                }
            }
            let (got, whole) = json(text)
            XCTAssertEqual(got, expected + "\"", "seed 11 round \(round): \(text)")
            XCTAssertEqual(whole, Array(repaired.utf8) == text, "seed 11 round \(round)")
            XCTAssertEqual(whole, text.withUnsafeBytes { UTF8Scan.isValid($0) })
        }
    }

    func testEveryControlCharacterIsEscaped() {
        for byte in UInt8(0)..<0x20 {
            let (got, _) = json([byte])
            XCTAssertTrue(got.utf8.allSatisfy { $0 >= 0x20 }, "\(byte)")
        }
    }

    /// The text of a second is kept from line to line.
    func testLinesOfOneOwnerAreThoseByThemselves() {
        var random = SplitMix(31)
        let lines = TextLines(utc: false, color: false)
        let process = ProcessInfo(
            laneID: .zero, bootID: .zero, processID: 8, name: "p\u{e9}", createdRealtime: 0,
            createdMonotonic: 0, resource: [])
        var r = RecordRef(thread: ThreadInfo(process: process, serial: 1, threadID: 9, name: ""))
        var time: UInt64 = 0
        for round in 0..<2_000 {
            time = round % 7 == 0 ? random.next() : time &+ UInt64(random.below(400_000_000))
            r.timeNs = time
            r.level = UInt8(random.below(25))
            var (one, other): ([UInt8], [UInt8]) = ([], [])
            lines.append(r, to: &one)
            TextLine.append(r, to: &other, utc: false, color: false)
            XCTAssertEqual(one, other)
            var head: [UInt8] = []
            Times.appendReadable(time, utc: false, to: &head)
            XCTAssertEqual(Array(one.prefix(head.count)), head)
        }
    }

    private func line(
        _ message: String, level: UInt8 = 9, time: UInt64 = 0, color: Bool = false,
        fields: [UInt8] = [], form: TextForm = .lines, kind: UInt8 = 0
    ) -> String {
        let process = ProcessInfo(
            laneID: .zero, bootID: .zero, processID: 8, name: "p", createdRealtime: 0,
            createdMonotonic: 0, resource: [])
        var r = RecordRef(thread: ThreadInfo(process: process, serial: 1, threadID: 9, name: ""))
        r.level = level
        r.timeNs = time
        r.writtenNs = 1_795_248_930_000_000_000
        r.kind = kind
        var out: [UInt8] = []
        let bytes = Array(message.utf8)
        bytes.withUnsafeBytes { m in
            fields.withUnsafeBytes { f in
                r.message = m
                r.sections = f
                TextLine.append(r, to: &out, utc: true, color: color, form: form)
            }
        }
        return String(decoding: out, as: UTF8.self)
    }

    func testTextLines() {
        XCTAssertEqual(
            line("hi", level: 11, time: 1_795_248_930_999_999_999),
            "2026-11-21 08:15:30.999Z NOTICE+1 p[8:9] hi\n")
        XCTAssertEqual(
            line("a\u{1B}[2Jb\nc\u{9B}d\u{7f}é"),
            "1970-01-01 00:00:00.000Z INFO  p[8:9] a\\x1b[2Jb\n    | c\\u009bd\\x7fé\n")
        XCTAssertEqual(
            line("a\tb\n\nc\r\n", form: .lines),
            "1970-01-01 00:00:00.000Z INFO  p[8:9] a\tb\n    | \n    | c\\r\\n\n")
        XCTAssertEqual(
            line("a\tb\nc\n", form: .oneLine),
            "1970-01-01 00:00:00.000Z INFO  p[8:9] a\\tb\\nc\\n\n")
        XCTAssertEqual(
            line("a\u{1B}\nb", form: .raw),
            "1970-01-01 00:00:00.000Z INFO  p[8:9] a\u{1B}\nb\n")
        XCTAssertEqual(
            line("an exchange", kind: 4), "2026-11-21 08:15:30.000Z INFO  p[8:9] an exchange\n")
        let fields = section(
            2,
            fieldBytes([
                ("k", .string("a b")), ("e", .string("")), ("x", .string("plain")),
                ("q", .string("\"\\\u{1B}")), ("u", .string("\\a\u{2028}")), ("w", .string("\\a")),
                ("k\n", .string("v")), ("i", .int(.min)),
            ]))
        XCTAssertTrue(
            line("m", fields: fields).hasSuffix(
                " m k=\"a b\" e=\"\" x=plain q=\"\\\"\\\\\\x1b\" "
                    + "u=\"\\\\a\\u2028\" w=\\a k\\n=v i=-9223372036854775808\n"))
        XCTAssertTrue(line("m", level: 17, color: true).contains("\u{1B}[31mERROR\u{1B}[0m"))
        XCTAssertTrue(line("m", time: 951_782_400_000_000_000).hasPrefix("2000-02-29 00:00:00"))
        XCTAssertTrue(line("m", time: .max).hasPrefix("2554-07-21 23:34:33.709Z"))
    }

    /// Type, message and stack trace of an exception (FORMAT §8.1).
    private func exception(_ parts: String...) -> [UInt8] {
        let lengths = parts.flatMap { part in
            (0..<4).map { UInt8(truncatingIfNeeded: part.utf8.count >> ($0 * 8)) }
        }
        return section(7, lengths + Array(parts.joined().utf8))
    }

    func testAStackTraceHasLinesOfItsOwn() {
        let stored =
            section(2, fieldBytes([("k", .int(1))]))
            + exception("E", "of it", "T\n1999-01-01 00:00:00 INFO\n\u{1B}[2J\n\n")
        let head = "1970-01-01 00:00:00.000Z INFO  p[8:9] m k=1 exception.type=E "
        XCTAssertEqual(
            line("m", fields: stored),
            head + """
                exception.message="of it"
                    | T
                    | 1999-01-01 00:00:00 INFO
                    | \\x1b[2J

                """)
        XCTAssertTrue(
            line("m", fields: stored, form: .raw).hasSuffix(
                " exception.message=\"of it\"\nT\n1999-01-01 00:00:00 INFO\n\u{1B}[2J\n"))
        XCTAssertEqual(
            line("m", fields: stored, form: .oneLine),
            head + #"exception.message="of it" exception.stacktrace="T\n1999-01-01 00:00:00 INFO"#
                + #"\n\x1b[2J\n\n""# + "\n")
    }

    func testLevelNames() {
        for level in UInt8(1)...24 { XCTAssertEqual(parseLevel(levelName(level)), level) }
        XCTAssertEqual(levelName(9), "INFO")
        XCTAssertEqual(levelName(12), "NOTICE+2")
        XCTAssertEqual(levelName(24), "FATAL+3")
        XCTAssertEqual(levelName(0), "")
        XCTAssertEqual(parseLevel("warn"), 13)
        XCTAssertEqual(parseLevel("Info+2"), 11)
        XCTAssertEqual(parseLevel("24"), 24)
        let others: [(String, UInt8)] = [
            ("WARNING", 13), ("Critical", 21), ("err", 17), ("crit", 21), ("alert", 21),
            ("emerg", 21), ("panic", 21), ("warning+1", 14), ("10", 10), ("20", 20), ("30", 13),
            ("40", 17), ("50", 21),
        ]
        for (text, level) in others { XCTAssertEqual(parseLevel(text), level, text) }
        for wrong in [
            "", "0", "25", "29", "35", "60", "300", "info+", "loud", "FATAL+4", "info+2+2", "-1",
            "+3",
        ] {
            XCTAssertNil(parseLevel(wrong), wrong)
        }
    }

    // MARK: Filter

    func testFilter() {
        let process = ProcessInfo(
            laneID: .zero, bootID: .zero, processID: 8, name: "p", createdRealtime: 0,
            createdMonotonic: 0, resource: [])
        var r = RecordRef(thread: ThreadInfo(process: process, serial: 1, threadID: 9, name: ""))
        r.level = 13
        r.timeNs = 100
        let name = Array("app.db.pool".utf8)
        let sections = section(2, fieldBytes([("order", .int(7)), ("who", .string("me"))]))
        name.withUnsafeBytes { n in
            sections.withUnsafeBytes { s in
                r.logger = n
                r.sections = s
                func test(_ change: (inout ReaderOptions) -> Void) -> Bool {
                    var options = ReaderOptions()
                    change(&options)
                    return options.plan.matches(r)
                }
                XCTAssertTrue(test { _ in })
                XCTAssertTrue(test { $0.level = 13 })
                XCTAssertFalse(test { $0.level = 14 })
                XCTAssertTrue(test { $0.since = 100 })
                XCTAssertFalse(test { $0.until = 100 })
                XCTAssertTrue(test { $0.logger = "app.db" })
                XCTAssertTrue(test { $0.logger = "app.db.pool" })
                XCTAssertFalse(test { $0.logger = "app.d" })
                XCTAssertFalse(test { $0.logger = "app.db.pool.x" })
                XCTAssertTrue(test { $0.kinds = 1 })
                XCTAssertFalse(test { $0.kinds = 2 })
                XCTAssertTrue(test { $0.conditions = [("order", "7")] })
                XCTAssertTrue(test { $0.conditions = [("who", "me")] })
                XCTAssertFalse(test { $0.conditions = [("who", "you")] })
            }
        }
    }

    // MARK: Merge

    func testLanesOfTwoBootsMergeByOneOffsetABoot() throws {
        let store = TestFiles.directory()
        defer { TestFiles.remove(store) }
        // Two lanes of boot 1, whose realtime clock was an hour off for the second; one of boot 2.
        func lane(_ id: UInt64, _ boot: UInt64, _ real: UInt64, _ mono: UInt64, _ at: [UInt64])
            -> LaneBuilder
        {
            let lane = LaneBuilder(store: store, name: "lane\(id)-1-x", id: id, boot: boot)
            lane.createdRealtime = real
            lane.createdMonotonic = mono
            let chunk = lane.first.chunk(thread: 1, sequence: 0, base: 0)
            for time in at { chunk.text("\(id):\(time)", at: time) }
            lane.write()
            return lane
        }
        let lanes = [
            lane(1, 1, 1_000_000, 100, [110, 130, 150]),
            lane(2, 1, 9_000_000, 105, [110, 120, 140]),
            lane(3, 2, 1_000_030, 10, [15, 30]),
        ]
        var boots = BootOffsets()
        var inputs: [MergeInput] = []
        var opened = 0
        for (index, lane) in lanes.enumerated() {
            let source = try lane.source(boot: lane.bootID)
            boots.add(source.process!, lane: lane.name)
            let order = UInt64(index)
            inputs.append(
                MergeInput(lowerBound: index == 2 ? 1_000_031 : 0, order: order) {
                    () throws(ReadProblem) -> (any RecordSource)? in
                    opened += 1
                    return source
                })
        }
        let merge = MergeSource(inputs: inputs, boots: boots)
        let first = try merge.advance()
        XCTAssertNotNil(first)
        XCTAssertEqual(opened, 2)
        let rest = Drained(merge)
        XCTAssertEqual(
            rest.messages, ["2:110", "2:120", "1:130", "3:15", "2:140", "1:150", "3:30"])
        XCTAssertEqual(opened, 3)
    }

    private func part(_ lane: LaneBuilder, _ number: UInt64) -> ChainSource.Part {
        let store = lane.store
        let name = lane.name
        return { () throws(ReadProblem) -> (any RecordSource)? in
            return try LaneSource.open(
                directory: FilePath(store), lane: name, segments: number...number,
                runningBoot: .zero)
        }
    }

    func testChainKeepsThreadsInOrderOverClockNoise() throws {
        let store = TestFiles.directory()
        defer { TestFiles.remove(store) }
        let lane = LaneBuilder(store: store)
        lane.segment(1).chunk(thread: 1, sequence: 0, base: 0).text("a", at: 1_000)
            .text("b", at: 9_000_000)
        let other = lane.segment(2)
        other.chunk(thread: 1, sequence: 1, base: 0).text("c", at: 8_950_000)
        other.chunk(thread: 2, sequence: 0, base: 0).text("d", at: 2_000_000)
        lane.segment(3).chunk(thread: 2, sequence: 1, base: 0).text("e", at: 9_999_000)
        lane.write()
        let chain = ChainSource([part(lane, 1), part(lane, 2), part(lane, 3)])
        XCTAssertEqual(Drained(chain).messages, ["a", "d", "b", "c", "e"])
    }
}
