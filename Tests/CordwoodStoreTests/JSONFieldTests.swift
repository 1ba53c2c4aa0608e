// Fields that are JSON: how a reader recognizes one, its parts, and the values at a path.

import CordwoodCore
import XCTest

@testable import CordwoodStore

final class JSONFieldTests: XCTestCase {
    private static func shown(_ value: FieldValue) -> String {
        switch value {
        case .int(let number): return "int \(number)"
        case .uint(let number): return "uint \(number)"
        case .double(let number): return "double \(number)"
        case .bool(let flag): return "bool \(flag)"
        case .string(let text): return unsafe "string " + String(decoding: text, as: UTF8.self)
        case .json(let text): return unsafe "json " + String(decoding: text, as: UTF8.self)
        }
    }

    private func values(_ path: String, _ text: String) -> [String] {
        var found: [String] = []
        unsafe Array(text.utf8).withUnsafeBytes { text in
            XCTAssertTrue(JSONCheck.isValid(text))
            JSONWalk.values(at: Array(path.utf8)[...], in: text) { found.append(Self.shown($0)) }
        }
        return found
    }

    func testPaths() {
        let order = #"{"id":7, "items":[{"sku":"x","n":-2.5},{"sku":"y"},[{"sku":"z"}],5]}"#
        XCTAssertEqual(values("id", order), ["json 7"])
        XCTAssertEqual(values("items.0.sku", order), ["string x"])
        XCTAssertEqual(values("items.1.n", order), [])
        XCTAssertEqual(values("items.sku", order), ["string x", "string y", "string z"])
        XCTAssertEqual(values("items.2.0.sku", order), ["string z"])
        XCTAssertEqual(values("items.00", order), [])
        XCTAssertEqual(values("items.3", order), ["json 5"])
        XCTAssertEqual(values("items.3.x", order), [])
        XCTAssertEqual(values("items.0", order), [#"json {"sku":"x","n":-2.5}"#])
        XCTAssertEqual(values("item", order), [])
        XCTAssertEqual(values("items.", order), [])
        let points = #"{"a.b":1,"a":{"b":2,"":3},"a":{"b":null}}"#
        XCTAssertEqual(values("a.b", points), ["json 1", "json 2", "json null"])
        XCTAssertEqual(values("x", "7"), [])
    }

    /// Format `json` promises it; many servers refuse an object that has a name twice.
    func testNamesOnce() {
        for (text, once) in [
            (#"{"a":1,"a":2}"#, #"{"a":2}"#), (#"{"a":1,"b":0,"a":{}}"#, #"{"b":0,"a":{}}"#),
            (#"{"a":1,"\u0061":2}"#, #"{"\u0061":2}"#), (#" [ 1 , [ ] ] "#, "[1,[]]"),
            (#"{"x":{"k":1,"k":[{"n":1,"n":2}]}}"#, #"{"x":{"k":[{"n":2}]}}"#),
            (#"[{"a":1},{"a":1}]"#, #"[{"a":1},{"a":1}]"#), (#" "a, }" "#, #""a, }""#),
            (#"{"":1,"":2,"A":3,"a":4}"#, #"{"":2,"A":3,"a":4}"#), ("{ }", "{}"),
            ("-1.50", "-1.50"),
            (#"{"a" : "\"}" , "b":null}"#, #"{"a":"\"}","b":null}"#),
        ] {
            unsafe Array(text.utf8).withUnsafeBytes { text in
                XCTAssertTrue(JSONCheck.isValid(text))
                var (shown, field): ([UInt8], [UInt8]) = ([], [])
                JSONWalk.appendOnce(text, to: &shown)
                unsafe JSONLine.append(.json(text), &field)
                XCTAssertEqual(String(decoding: shown, as: UTF8.self), once)
                XCTAssertEqual(field, shown)
            }
        }
    }

    func testTypes() {
        XCTAssertEqual(values("", " 12.50 "), ["json  12.50 "], "as `cat` prints it")
        XCTAssertEqual(values("", "1e999"), ["string 1e999"])
        XCTAssertEqual(values("", "false"), ["bool false"])
        XCTAssertEqual(values("", #""\ud83d\ude00\u00e9\n\"\/""#), ["string 😀é\n\"/"])
        XCTAssertEqual(values("", "\"\""), ["string "])
        XCTAssertEqual(values("", " [ ] "), ["json  [ ] "])
        XCTAssertEqual(values("gr\u{FC}n", #"{"gr\u00fcn":true}"#), ["bool true"])
    }

    /// What OTLP sends.
    func testScalars() {
        for (text, expected) in [
            ("7", "int 7"), (" 18446744073709551615 ", "uint 18446744073709551615"),
            ("18446744073709551616", "string 18446744073709551616"),
            ("-9223372036854775809", "string -9223372036854775809"), ("1e3", "double 1000.0"),
            ("1e999", "string 1e999"), ("\"x\"", "string x"), ("true", "bool true"),
            (" {} ", "json {}"),
        ] {
            var found = ""
            unsafe Array(text.utf8).withUnsafeBytes {
                JSONWalk.scalar($0) { found = Self.shown($0) }
            }
            XCTAssertEqual(found, expected)
        }
    }

    func testOneLine() {
        var out: [UInt8] = []
        let text = "{ \"a b\" :\r\n\t[ 1 , \" \\\" \" ] }\n"
        unsafe Array(text.utf8).withUnsafeBytes { JSONWalk.append($0, to: &out) }
        XCTAssertEqual(String(decoding: out, as: UTF8.self), #"{"a b":[1," \" "]}"#)
    }

    /// The form is not trusted, and an unknown one changes nothing.
    func testWhatAStringSaysOfItself() {
        func read(type: UInt8 = 5, form: UInt8, _ text: String) -> [String] {
            let value: [UInt8] =
                type == 5
                ? [UInt8(text.utf8.count), 0, 0, 0] + Array(text.utf8)
                : [7, 0, 0, 0, 0, 0, 0, 0]
            let bytes: [UInt8] =
                [2, 0, type, form, 1, 0, 0x6B] + value + [4, 0, 1, 0, 0x6C, 1]
            var found: [String] = []
            unsafe bytes.withUnsafeBytes { bytes in
                var fields = FieldIterator(bytes)
                while let (_, value) = fields.next() { found.append(Self.shown(value)) }
            }
            return found
        }
        XCTAssertEqual(read(form: 1, "[1]"), ["json [1]", "bool true"])
        XCTAssertEqual(read(form: 1, "7"), ["json 7", "bool true"])
        XCTAssertEqual(read(form: 1, "[1"), ["string [1", "bool true"])
        XCTAssertEqual(read(form: 0, "[1]"), ["string [1]", "bool true"])
        XCTAssertEqual(read(form: 2, "[1]"), ["string [1]", "bool true"])
        XCTAssertEqual(read(type: 1, form: 1, ""), ["int 7", "bool true"])
    }
}
