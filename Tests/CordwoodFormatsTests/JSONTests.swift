// The view of JSON through which policies and servers' errors are read: exact numbers, strict
// texts, bounds, and no assertion of jansson's that could end a host.

import Foundation
import XCTest

@testable import CordwoodFormats

final class JSONTests: XCTestCase {
    private func parse(_ text: String, bytesMax: Int = 1 << 20) throws -> JSONValue {
        try JSONValue.parse(Array(text.utf8), bytesMax: bytesMax)
    }

    private func problem(_ text: String, bytesMax: Int = 1 << 20) -> String? {
        do {
            _ = try parse(text, bytesMax: bytesMax)
            return nil
        } catch {
            return (error as? JSONProblem)?.text
        }
    }

    func testValues() throws {
        let value = try parse(
            #"{"a": [1, -9223372036854775808, 9223372036854775807, 1.5, 1e3, true, false, null],"#
                + #" "b": {"c": "\u00e9\ud83d\ude00\n\u0000x"}, "": ""}"#)
        XCTAssertEqual(
            value["a"],
            .array([
                .integer(1), .integer(.min), .integer(.max), .real(1.5), .real(1000), .bool(true),
                .bool(false), .null,
            ]))
        XCTAssertEqual(value["b"]?["c"]?.string, "é😀\n\0x")
        XCTAssertEqual(value[""]?.string, "")
        XCTAssertEqual(value.members.map(\.key), ["a", "b", ""])
        XCTAssertNil(value["missing"])
        XCTAssertEqual(try parse("  7 "), .integer(7))
    }

    func testWholeNumbersAreExactOrNone() throws {
        XCTAssertEqual(try parse("9007199254740993").whole, 9_007_199_254_740_993)
        XCTAssertEqual(try parse("30.0").whole, 30)
        XCTAssertEqual(try parse("1e6").whole, 1_000_000)
        for text in ["1.5", "1e300", "-1e300", "9007199254740994.0", "true", "\"1\"", "[1]"] {
            XCTAssertNil(try parse(text).whole, text)
        }
        // What does not fit is refused, never rounded.
        XCTAssertNotNil(problem("9223372036854775808"))
        XCTAssertNotNil(problem("-9223372036854775809"))
        XCTAssertNotNil(problem("1e999"))
    }

    func testOnlyJSON() {
        let texts = [
            "", " ", "{", "{]", "nul", "{\"a\":1,}", "{a:1}", "{'a':1}", "[1,]", "[1 2]", "01",
            "+1",
            "1.", ".5", "NaN", "Infinity", "-", "\"\n\"", "\"\\x\"", "\"\\ud800\"", "\"\u{1}\"",
            "{\"a\":1}x", "{} {}", "// x\n{}", "/* */{}", "\u{FEFF}{}", "TRUE",
        ]
        for text in texts { XCTAssertNotNil(problem(text), text) }
        XCTAssertNotNil(
            try? JSONValue.parse([0x22, 0xC3, 0xA9, 0x22], bytesMax: 100), "é, as UTF-8")
        for bytes in [[0x22, 0xFF, 0x22], [0x22, 0xC3, 0x22], [0x22, 0, 0x22], [0x7B, 0]] {
            XCTAssertNil(try? JSONValue.parse(bytes.map { UInt8($0) }, bytesMax: 100))
        }
        XCTAssertEqual(problem("{\"a\": 1, \"a\": 2}")?.contains("duplicate"), true)
        XCTAssertEqual(problem("{\n\"a\": }")?.hasPrefix("line 2:"), true)
    }

    func testBounds() throws {
        let deep = JSONValue.depthMax
        _ = try parse(String(repeating: "[", count: deep) + String(repeating: "]", count: deep))
        for count in [deep + 1, 100_000] {
            let text = String(repeating: "[", count: count) + String(repeating: "]", count: count)
            XCTAssertEqual(problem(text), "the text is nested more than \(deep) deep")
        }
        // Brackets in strings add no depth.
        let many = String(repeating: "[", count: 1_000)
        XCTAssertEqual(try parse("[\"\\\"\(many)\"]").elements.count, 1)
        XCTAssertEqual(problem("[1]", bytesMax: 2), "the text is over 2 bytes")
    }

    /// jansson puts the locale's decimal point into numbers and asserts that strtod takes them all.
    /// strtod does not if the point has two bytes, as in ps_AF: jansson alone would end the host.
    func testAnotherLocalesPoint() throws {
        let folder = NSTemporaryDirectory() + "cordwood-locale-" + UUID().uuidString
        try FileManager.default.createDirectory(
            atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let maker = Process()
        maker.executableURL = URL(fileURLWithPath: "/usr/bin/localedef")
        maker.arguments = ["-i", "ps_AF", "-f", "UTF-8", folder + "/ps_AF.UTF-8"]
        maker.standardError = FileHandle.nullDevice
        try maker.run()
        maker.waitUntilExit()
        setenv("LOCPATH", folder, 1)
        defer { unsetenv("LOCPATH") }
        let other = try XCTUnwrap(
            newlocale(1 << LC_NUMERIC, "ps_AF.UTF-8", nil), "package locales")
        let before = uselocale(other)
        defer {
            uselocale(before)
            freelocale(other)
        }
        XCTAssertEqual(String(cString: localeconv().pointee.decimal_point), "\u{66B}")
        XCTAssertEqual(try parse("1.5"), .real(1.5))
        XCTAssertEqual(uselocale(nil), other, "the host's locale is back")
    }
}
