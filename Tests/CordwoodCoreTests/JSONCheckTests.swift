// What counts as JSON in a field: every text over a few characters against a plain parser, and the
// edge cases of the grammar of strings and numbers.

import CordwoodCore
import XCTest

final class JSONCheckTests: XCTestCase {
    private func isValid(_ text: [UInt8]) -> Bool {
        unsafe text.withUnsafeBytes { JSONCheck.isValid($0) }
    }

    private func isValid(_ text: String) -> Bool { isValid(Array(text.utf8)) }

    /// The end of the value at `at`, over brackets, commas, colons, quotes and one-digit numbers.
    private func end(_ text: [Character], _ at: Int) -> Int? {
        guard at < text.count else { return nil }
        switch text[at] {
        case "1": return at + 1
        case "\"":
            let close = text[(at + 1)...].firstIndex(of: "\"")
            return close.map { $0 + 1 }
        case "[", "{":
            let isObject = text[at] == "{"
            let close: Character = isObject ? "}" : "]"
            var at = at + 1
            if at < text.count, text[at] == close { return at + 1 }
            while true {
                if isObject {
                    guard at < text.count, text[at] == "\"", let name = end(text, at),
                        name < text.count, text[name] == ":"
                    else { return nil }
                    at = name + 1
                }
                guard let value = end(text, at), value < text.count else { return nil }
                if text[value] == close { return value + 1 }
                guard text[value] == "," else { return nil }
                at = value + 1
            }
        default: return nil
        }
    }

    func testEveryShortText() {
        let letters = Array("[]{},:\"1")
        var count = 0
        for length in 0...6 {
            var digits = [Int](repeating: 0, count: length)
            while true {
                let text = digits.map { letters[$0] }
                // 11 is a number, but the plain parser knows only one digit.
                if !String(text).contains("11") {
                    let expected = end(text, 0) == length && length > 0
                    XCTAssertEqual(isValid(String(text)), expected, String(text))
                    count += expected ? 1 : 0
                }
                guard let last = digits.lastIndex(where: { $0 < letters.count - 1 }) else { break }
                digits[last] += 1
                for at in (last + 1)..<length { digits[at] = 0 }
            }
        }
        XCTAssertGreaterThan(count, 500)
    }

    func testStringsAndNumbers() {
        let valid = [
            "0", "-0", "10", "1.5", "-1.25e+10", "1E5", "1e-05", "true", "false", "null", "\"\"",
            #""\"\\\/\b\f\n\r\t\u00e9""#, #""\ud83d\ude00""#, #""\u0000""#, "\"grüße €\u{1F600}\"",
            " [ 1 ,\n{ \"a\" : \"b\" }\t]\r\n", "\"\u{7F}\"", "123456789012345678901234567890",
        ]
        for text in valid { XCTAssertTrue(isValid(text), text) }
        let wrong = [
            "", " ", "01", "-", "+1", ".5", "1.", "1e", "1e+", "0x1", "NaN", "Infinity", "tru",
            "trueX", "nul", "'a'", "\"a", "\"\\x\"", "\"\\u12g4\"", "\"\\u123\"", "\"\n\"",
            "\"\u{1F}\"",
            #""\ud83d""#, #""\ude00""#, #""\ud83dx""#, #""\ud83d\u0041""#, "[1]]", "[1", "1 2",
            "{\"a\":1,}", "[1,]", "{a:1}", "\u{FEFF}1", "/*c*/1", "\u{A0}1",
        ]
        for text in wrong { XCTAssertFalse(isValid(text), text) }
        let bytes: [([UInt8], Bool)] = [
            ([0xC3, 0xA9], true), ([0xE0, 0xA0, 0x80], true), ([0xED, 0x9F, 0xBF], true),
            ([0xF4, 0x8F, 0xBF, 0xBF], true), ([0xFF], false), ([0xC1, 0x81], false),
            ([0xC3], false), ([0xE0, 0x9F, 0x80], false), ([0xED, 0xA0, 0x80], false),
            ([0xF4, 0x90, 0x80, 0x80], false), ([0xF0, 0x8F, 0x80, 0x80], false),
            ([0xE2, 0x82], false), ([0x80], false), ([0x00], false),
        ]
        for (inside, expected) in bytes {
            XCTAssertEqual(isValid([0x22] + inside + [0x22]), expected, "\(inside)")
        }
        XCTAssertFalse(isValid([0x31, 0x00]))
    }

    func testBounds() {
        func nested(_ depth: Int) -> String {
            String(repeating: "[", count: depth) + String(repeating: "]", count: depth)
        }
        XCTAssertTrue(isValid(nested(JSONCheck.depthMax)))
        XCTAssertFalse(isValid(nested(JSONCheck.depthMax + 1)))
        // Levels, not brackets: objects and arrays in turn, closed and opened again.
        XCTAssertTrue(isValid("[" + String(repeating: "{\"a\":[]},", count: 100) + "1]"))
        let most = [UInt8](repeating: 0x31, count: JSONCheck.bytesMax)
        XCTAssertTrue(isValid(most))
        XCTAssertFalse(isValid(most + [0x31]))
    }
}
