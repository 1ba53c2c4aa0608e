// Interpolated messages: what a reader shows is what Swift's own interpolation would have given,
// live and from archives; nothing is evaluated below the threshold; private values never reach a
// file.

import Cordwood
import CordwoodCore
import CordwoodEngine
import CordwoodStore
import CordwoodTestSupport
import Foundation
import XCTest

/// A store, what was logged to it, and what it should show.
class MessageCase: XCTestCase {
    var store = ""
    var engine: Engine!
    var log: Logger!
    var expected: [String] = []

    override func setUpWithError() throws {
        store = TestFiles.directory()
        expected = []
        var options = EngineOptions()
        options.level = .info
        engine = try Engine(directory: store, options: options)
        log = engine.logger("message")
    }

    override func tearDownWithError() throws {
        try engine.close()
        TestFiles.remove(store)
    }

    func records() throws -> [Record] {
        let reader = try StoreReader(paths: [store], options: ReaderOptions())
        var found: [Record] = []
        while let record = reader.nextRecord() {
            if record.logger == "message" { found.append(record) }
        }
        return found
    }

    /// Checks the records live, then from the archive.
    func check(file: StaticString = #filePath, line: UInt = #line) throws {
        for place in ["live", "archive"] {
            let found = try records()
            XCTAssertEqual(found.count, expected.count, place, file: file, line: line)
            for (record, text) in zip(found, expected) where record.message != text {
                XCTFail(
                    "\(place): \(record.message.prefix(200)) is not \(text.prefix(200))",
                    file: file, line: line)
                return
            }
            try engine.roll()
            try engine.archiveWait()
        }
    }
}

final class MessageTests: MessageCase {
    private struct Point: CustomStringConvertible {
        let x: Int
        var description: String { "<\(x)>" }
    }

    private struct Plain { let a: Int, b: String }
    private struct Broken: Error { let code: Int }

    private func integers<Value: FixedWidthInteger>(_ type: Value.Type) {
        var random = SplitMix(UInt64(Value.bitWidth))
        var values: [Value] = [.min, .max, 0, 1, .max / 3]
        for _ in 0..<200 { values.append(Value.random(in: .min ... .max, using: &random)) }
        for value in values {
            log.info("\(value)|\(value as Value?)")
            expected.append("\(value)|\(String(describing: value as Value?))")
            log.info("\(value, format: .hex) \(value, format: .octal) \(value, format: .binary)")
            expected.append(
                "\(String(value, radix: 16)) \(String(value, radix: 8)) "
                    + String(value, radix: 2))
            log.info("\(value, format: .decimal(digits: 7))")
            let digits = String(value.magnitude)
            let sign = value < 0 ? "-" : ""
            expected.append(
                sign + String(repeating: "0", count: max(0, 7 - digits.count - sign.count))
                    + digits)
        }
    }

    func testIntegers() throws {
        integers(Int8.self)
        integers(Int16.self)
        integers(Int32.self)
        integers(Int64.self)
        integers(Int.self)
        integers(UInt8.self)
        integers(UInt16.self)
        integers(UInt32.self)
        integers(UInt64.self)
        integers(UInt.self)
        integers(Int128.self)
        integers(UInt128.self)
        try check()
    }

    func testFloats() throws {
        var random = SplitMix(5)
        var doubles: [Double] = [
            0, -0.0, 1, -1, 0.1, 5, 1e15, 1e16, 1e17, 1e22, 9_007_199_254_740_992,
            9_007_199_254_740_994, 1e-3, 1e-4, 1e-5, 1e-7, 123456.789, .leastNonzeroMagnitude,
            2.2250738585072014e-308,
            .greatestFiniteMagnitude, -.greatestFiniteMagnitude, .leastNormalMagnitude, .infinity,
            -.infinity, .nan, -.nan, .signalingNaN, .pi, 1.0 / 3, 4.35, 0.3, 2.5, 1e100, 1e23,
            Double(nan: 77, signaling: false), Double(nan: 77, signaling: true),
        ]
        for _ in 0..<3_000 { doubles.append(Double(bitPattern: random.next())) }
        for _ in 0..<1_000 { doubles.append(Double(random.next() % 1_000_000) / 100) }
        for value in doubles {
            log.info("\(value) \(Float(value)) \(value as Double?)")
            expected.append("\(value) \(Float(value)) \(String(describing: value as Double?))")
        }
        for value in doubles where value.isFinite {
            log.info("\(value, format: .fixed(2)) \(value, format: .exponential(3))")
            expected.append(String(format: "%.2f %.3e", value, value))
        }
        for _ in 0..<3_000 {
            let value = Float(bitPattern: UInt32(truncatingIfNeeded: random.next()))
            log.info("\(value)")
            expected.append("\(value)")
        }
        try check()
    }

    func testTexts() throws {
        let texts = [
            "", "a", "0123456789abcde", "0123456789abcdef", "é", "日本語", "👩‍👩‍👧‍👦 family", "a\0b\0",
            "{} {0} {{x}} %d %n", "line\nbreak\t", String(repeating: "x", count: 880),
            String(repeating: "ü", count: 481), String(repeating: "y", count: 65_536),
            String(repeating: "🪵", count: 65_536), String(repeating: "z", count: (1 << 20) - 1),
        ]
        for text in texts {
            log.info("\(text)")
            expected.append(text)
            log.info(text)
            expected.append(text)
            log.info("<\(text)|\(text.dropFirst())|\(7)>")
            expected.append("<\(text)|\(text.dropFirst())|7>")
            log.info("{literal {{ braces}} %s \(utf8: Array(text.utf8))")
            expected.append("{literal {{ braces}} %s \(text)")
        }
        log.info("")
        expected.append("")
        log.info("nul \0 in a literal \(1) and \0 again")
        expected.append("nul \0 in a literal 1 and \0 again")
        log.info("x")
        expected.append("x")
        try check()
    }

    /// One byte more than a record's string can have.
    func testStringsThatAreCut() throws {
        let most = 1 << 20
        for text in [String(repeating: "z", count: most + 1), String(repeating: "🪵", count: most)] {
            log.info("a \(text) b")
            let record = try XCTUnwrap(try records().last)
            XCTAssertTrue(record.flags.contains(.truncated))
            XCTAssertTrue(record.message.hasPrefix("a \(text.prefix(10))"))
            XCTAssertTrue(record.message.hasSuffix(" b"))
            XCTAssertLessThanOrEqual(record.messageBytes.count, most + 4)
            XCTAssertGreaterThan(record.messageBytes.count, most - 8)
            XCTAssertFalse(record.message.contains("\u{FFFD}"), "cut inside a character")
        }
        var options = EngineOptions()
        options.segmentBytes = 64 << 10
        let other = TestFiles.directory()
        defer { TestFiles.remove(other) }
        let small = try Engine(directory: other, options: options)
        let text = String(repeating: "ä", count: 100_000)
        for _ in 0..<2 {
            XCTAssertEqual(small.logger("message").info("a \(text) \(7) \("tail") b"), 0)
            XCTAssertEqual(
                small.logger("message").info("a \(text) b", fields: ["k": "v"]), 0)
        }
        try small.close()
        let reader = try StoreReader(paths: [other], options: ReaderOptions())
        var count = 0
        while let record = reader.nextRecord() {
            guard record.logger == "message" else { continue }
            count += 1
            XCTAssertTrue(record.flags.contains(.truncated))
            XCTAssertTrue(record.message.hasPrefix("a ää"))
            XCTAssertTrue(record.message.hasSuffix(" b"))
            XCTAssertGreaterThan(record.messageBytes.count, 50_000)
        }
        XCTAssertEqual(count, 4)
    }

    func testOtherValues() throws {
        let point = Point(x: 3)
        let plain = Plain(a: 1, b: "two")
        let error: any Error = Broken(code: 4)
        let name: String? = "anna"
        let none: Int? = nil
        let constant: StaticString = "static"
        log.info("\(point) \(plain) \(error) \(Character("é"))")
        expected.append("\(point) \(plain) \(error) é")
        // The compiler warns about optional values where it knows them.
        func write<A, B>(_ a: A, _ b: B) { log.info("\(a) \(b) \(true)") }
        write(name, none)
        write(nil as String?, false as Bool?)
        expected += [#"Optional("anna") nil true"#, "nil Optional(false) true"]
        log.info("\(constant) \([1, 2]) \(["k": 1.5]) \(Int.self) \(1...3) \(UInt8(7)...)")
        expected.append("static [1, 2] [\"k\": 1.5] Int 1...3 \(UInt8(7)...)")
        log.info("\(Float16(1.5)) \(MessageTests.self)")
        expected.append("1.5 MessageTests")
        try check()
    }

    /// A record has at most 32 arguments of its own; those after them become text.
    func testManyArguments() throws {
        let i = 1234567, d = 0.5, s = "s", b = true
        log.info(
            """
            \(i) \(d) \(s) \(b) \(i) \(d) \(s) \(b) \(i) \(d) \(s) \(b) \(i) \(d) \(s) \(b) \
            \(i) \(d) \(s) \(b) \(i) \(d) \(s) \(b) \(i) \(d) \(s) \(b) \(i) \(d) \(s) \(b) \
            \(i) \(d) \(s) \(b) \(i, format: .hex) \(d, format: .fixed(2)) \(s) \(nil as Int?) \
            \(7, privacy: .redacted) {\(i)} \(String(repeating: "ö", count: 3_000)) end
            """)
        let four = "\(i) \(d) \(s) \(b) "
        expected.append(
            String(repeating: four, count: 9) + "12d687 0.50 s nil <redacted> {\(i)} "
                + String(repeating: "ö", count: 3_000) + " end")
        try check()
    }

    func testNothingIsEvaluatedBelowTheThreshold() throws {
        func never() -> Int {
            XCTFail("evaluated")
            return 0
        }
        XCTAssertEqual(log.debug("\(never())"), 1)
        XCTAssertEqual(log.debug("\(never())", fields: ["a": never()]), 1)
        XCTAssertEqual(log.trace("\(never())" + "string"), 1)
        XCTAssertEqual(log.log(.debug, "\(never())", fields: ["a": .int(Int64(never()))]), 1)
        XCTAssertEqual(log.log(.off, "\(1)"), Status.level)
        try engine.close()
        XCTAssertEqual(log.critical("\(never())"), Status.closed)
    }

    func testPrivateValuesReachNoFile() throws {
        let token = "SECRET" + String(UInt64.random(in: 0 ... .max), radix: 36)
        let number = UInt64.random(in: (1 << 60) ... .max)
        log.info("token \(token, privacy: .redacted) is \(number, privacy: .redacted)")
        expected.append("token <redacted> is <redacted>")
        log.info("\(1.25, privacy: .redacted) \([token], privacy: .redacted)")
        expected.append("<redacted> <redacted>")
        log.info("\(token, privacy: .public)")
        expected.append(token)
        try check()
        log.info("\(token, privacy: .hashed) \(token + "", privacy: .hashed)")
        log.info("\(number, privacy: .hashed)")
        let hashed = try records().suffix(2).map(\.message)
        let parts = hashed[0].components(separatedBy: "> <")
        XCTAssertEqual(parts.count, 2)
        XCTAssertEqual(parts[0] + ">", "<" + parts[1])
        XCTAssertNotNil(hashed[1].wholeMatch(of: /<hashed [0-9a-f]{16}>/))
        try engine.close()
        // Once in the clear, by .public, in an archive that is compressed; in the others never.
        let other = TestFiles.directory()
        defer { TestFiles.remove(other) }
        var options = EngineOptions()
        options.codec = Codec.none
        let plain = try Engine(directory: other, options: options)
        let secret = Array(token.utf8)
        let numberBytes = withUnsafeBytes(of: number.littleEndian) { Array($0) }
        plain.logger("x").info("a \(token, privacy: .redacted)\(number, privacy: .redacted)")
        plain.logger("x").info("a \(token, privacy: .hashed)\(number, privacy: .hashed)")
        var seen = 0
        for path in FileManager.default.subpaths(atPath: other) ?? [] {
            guard let data = FileManager.default.contents(atPath: "\(other)/\(path)") else {
                continue
            }
            seen += data.count
            XCTAssertNil(data.range(of: Data(secret)), path)
            XCTAssertNil(data.range(of: Data(numberBytes)), path)
        }
        XCTAssertGreaterThan(seen, 65_536)
        try plain.close()
    }

    /// The format in which it would be shown does not count.
    func testHashesAreOfTheValue() throws {
        let value: Float = 0.1
        log.info("\(value, privacy: .hashed) \(value, format: .fixed(2), privacy: .hashed)")
        log.info("\(value, format: .exponential(1), privacy: .redacted)")
        let found = try records().map(\.message)
        let parts = found[0].components(separatedBy: "> <")
        XCTAssertEqual(parts.count, 2)
        XCTAssertEqual(parts[0] + ">", "<" + parts[1])
        XCTAssertEqual(found[1], "<redacted>")
    }

    /// A message has no text of its own, and its addresses must not show.
    @available(*, deprecated, message: "as what it tests")
    func testMessagesInMessages() throws {
        let message: LogMessage = "inner \(1)"
        log.info("a \(message) \(message as LogMessage?) \([message])")
        expected = ["a <LogMessage> Optional(<LogMessage>) [<LogMessage>]"]
        try check()
    }

    func testPlaceIsTheCalls() throws {
        log.info("here \(1)"); let line = #line
        log.info("text" as String, fields: ["a": 1])
        let found = try records()
        XCTAssertEqual(found[0].file, "CordwoodTests/MessageTests.swift")
        XCTAssertEqual(found[0].function, "testPlaceIsTheCalls()")
        XCTAssertEqual(found[0].line, UInt32(line))
        XCTAssertEqual(found[1].line, UInt32(line) + 1)
    }

    /// Arguments that log: the inner records come first, both are whole.
    func testNestedCalls() throws {
        func inner(_ depth: Int) -> Int {
            if depth > 0 { log.info("depth \(depth) of \(inner(depth - 1))") }
            return depth
        }
        log.info("outer \(inner(8)) \("text")")
        var texts = (1...8).map { "depth \($0) of \($0 - 1)" }
        texts.append("outer 8 text")
        expected = texts
        try check()
    }

    /// A generic function is one place with several types.
    func testOnePlaceWithSeveralTypes() throws {
        func generic<Value>(_ value: Value) { log.info("value \(value)") }
        func integer<Value: FixedWidthInteger>(_ value: Value) { log.info("value \(value)") }
        for round in 0..<3 {
            integer(Int8(round))
            integer(UInt64.max)
            integer(Int(-round))
            generic("text")
            generic(1.5)
            expected += ["value \(round)", "value \(UInt64.max)", "value \(-round)"]
            expected += ["value text", "value 1.5"]
        }
        try check()
    }

    /// Arguments of every length, copied in pieces; each place twice, since the first record of a
    /// place takes the slow path.
    func testEveryLength() throws {
        for length in 0...140 {
            let text = String(decoding: (0..<length).map { UInt8(33 + $0 % 90) }, as: UTF8.self)
            for turn in 0..<2 {
                log.info("\(text)")
                log.info("\(text)\(turn == 1)")
                expected += [text, "\(text)\(turn == 1)"]
            }
        }
        try check()
    }

    /// A nil is another token, so one place has a site for each combination. All have the same
    /// short hash.
    func testOnePlaceWithNils() throws {
        func log(_ bits: Int, _ more: Int) {
            func value(_ bit: Int) -> Int? { bits >> bit & 1 == 0 ? nil : bits + bit }
            let (a, b, c, d) = (value(0), value(1), value(2), value(3))
            if more == 0 {
                self.log.info("\(a)\(b)\(c)\(d)|")
                expected.append(shown(a, b, c, d))
            } else {
                self.log.info("\(a)\(b)\(c)|")
                expected.append(shown(a, b, c))
            }
        }
        func shown(_ values: Int?...) -> String {
            values.map { $0.map { "Optional(\($0))" } ?? "nil" }.joined() + "|"
        }
        for _ in 0..<2 {
            for bits in 0..<16 {
                log(bits, 0)
                log(bits, 1)
            }
        }
        try check()
    }

    func testMessagesMadeElsewhere() throws {
        func forward(_ message: LogMessage) -> Int32 { log.info(message) }
        func lazily(_ message: @autoclosure () -> LogMessage) -> Int32 { log.info(message()) }
        XCTAssertEqual(forward("value \(7) \("text")"), 0)
        XCTAssertEqual(lazily("lazy \(8)"), 0)
        let long = String(repeating: "ß", count: 5_000)
        XCTAssertEqual(forward("long \(long)"), 0)
        expected = ["value 7 text", "lazy 8", "long \(long)"]
        let kept: LogMessage = "kept \(9)"
        XCTAssertEqual(log.info(kept, fields: ["a": 1]), 0)
        XCTAssertEqual(log.warning(kept), 0)
        expected += ["kept 9", "kept 9"]
        for index in 0..<100 {
            XCTAssertEqual(forward("many \(index)"), 0)
            expected.append("many \(index)")
        }
        XCTAssertEqual(log.info(kept), Status.argument)
        var leaked: LogMessage = "x"
        log.info(
            {
                leaked = "inside \(1)"; return leaked
            }())
        expected += [
            "(this LogMessage was kept beyond its log call, and its text is gone)", "inside 1",
        ]
        XCTAssertEqual(log.info(leaked), Status.argument)
        expected.append("(this LogMessage was kept beyond its log call, and its text is gone)")
        try check()
    }

    func testFieldsAndErrors() throws {
        let name = "anna", price = 2.5
        log.info(
            "order \(7) price \(price, format: .fixed(2))",
            fields: ["user": name, "n": 7, "d": price, "b": true, "u": UInt8(9), "o": Int?.none])
        log.error("failed", error: Broken(code: 4))
        log.warn("text", fields: ["a": .int(-1)])
        log.notice(name, fields: ["a": name])
        log.critical("\(name)", fields: ["a": 1], error: Broken(code: 5))
        for _ in 0..<2 {
            let found = try records()
            XCTAssertEqual(found[0].message, "order 7 price 2.50")
            XCTAssertEqual(found[0].fields.map(\.key), ["user", "n", "d", "b", "u", "o"])
            XCTAssertEqual(
                found[0].fields.map(\.value),
                [.string("anna"), .int(7), .double(2.5), .bool(true), .uint(9), .string("nil")])
            XCTAssertEqual(found[0].line, found[1].line - 3)
            XCTAssertEqual(found[1].message, "failed")
            XCTAssertEqual(
                found[1].fields.map(\.value),
                [.string("Broken"), .string("Broken(code: 4)")])
            XCTAssertEqual(found[2].fields.map(\.value), [.int(-1)])
            XCTAssertEqual(found[2].level, 13)
            XCTAssertEqual(found[3].message, "anna")
            XCTAssertEqual(found[3].level, 10)
            XCTAssertEqual(
                found[4].fields.map(\.key),
                ["a", "exception.type", "exception.message"])
            XCTAssertEqual(found[4].level, 21)
            try engine.roll()
            try engine.archiveWait()
        }
    }

    /// Another clock takes another way through the append path.
    func testCoarseClock() throws {
        var options = EngineOptions()
        options.coarseClock = true
        let other = TestFiles.directory()
        defer { TestFiles.remove(other) }
        let coarse = try Engine(directory: other, options: options)
        let log = coarse.logger("message")
        for index in 0..<20_000 { XCTAssertEqual(log.info("n \(index) \("text")"), 0) }
        let slow = try coarse.stats().slowAppends
        XCTAssertLessThan(slow, 2_000)
        try coarse.close()
        let reader = try StoreReader(paths: [other], options: ReaderOptions())
        var next = 0
        while let record = reader.nextRecord() {
            guard record.logger == "message" else { continue }
            XCTAssertEqual(record.message, "n \(next) text")
            next += 1
        }
        XCTAssertEqual(next, 20_000)
    }

    /// Eight threads at the same new places.
    func testThreadsRegisterOnce() throws {
        let log = self.log!
        DispatchQueue.concurrentPerform(iterations: 8) { thread in
            for index in 0..<500 {
                log.info("t\(thread) n\(index)")
                log.info("t\(thread) text \("n\(index)")", fields: ["i": index])
            }
        }
        var next = Array(repeating: 0, count: 8)
        for record in try records() where !record.message.contains("text") {
            let parts = record.message.split(separator: " ")
            let thread = Int(parts[0].dropFirst())!
            XCTAssertEqual(Int(parts[1].dropFirst()), next[thread])
            next[thread] += 1
        }
        XCTAssertEqual(next, Array(repeating: 500, count: 8))
        XCTAssertEqual(try records().count, 8_000)
    }
}
