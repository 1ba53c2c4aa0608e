// Text that is safe to show: every character, every kind of broken bytes, and the eight bytes that
// are processed together.

import CordwoodStore
import CordwoodTestSupport
import XCTest

final class PlainTextTests: XCTestCase {
    private func shown(_ bytes: [UInt8], _ form: TextForm) -> [UInt8] {
        var out: [UInt8] = []
        bytes.withUnsafeBytes { PlainText.append($0, as: form, to: &out) }
        return out
    }

    private func shown(_ text: String, _ form: TextForm = .oneLine) -> String {
        String(decoding: shown(Array(text.utf8), form), as: UTF8.self)
    }

    /// Unicode's bidi controls and line ends, and the control characters.
    private static let obeyed: Set<UInt32> = Set(0..<0x20).union(0x7F..<0xA0).union([
        0x061C, 0x200E, 0x200F, 0x2028, 0x2029, 0x202A, 0x202B, 0x202C, 0x202D, 0x202E, 0x2066,
        0x2067, 0x2068, 0x2069,
    ])

    func testEveryCharacterWhereverItStands() throws {
        for value in UInt32(0)...0x1_1000 {
            guard let scalar = Unicode.Scalar(value) else { continue }
            let hex = String(value, radix: 16)
            let escape =
                switch value {
                case 9: "\\t"
                case 10: "\\n"
                case 13: "\\r"
                case 0..<0x80: "\\x" + String(repeating: "0", count: 2 - hex.count) + hex
                default: "\\u" + String(repeating: "0", count: max(0, 4 - hex.count)) + hex
                }
            let expected = PlainTextTests.obeyed.contains(value) ? escape : String(scalar)
            for before in value < 0x3000 ? Array(0...8) : [3] {
                let start = String(repeating: "x", count: before)
                XCTAssertEqual(shown("\(start)\(scalar)yyyyyyyyy"), "\(start)\(expected)yyyyyyyyy")
            }
            XCTAssertEqual(
                PlainText.isControl(value), PlainTextTests.obeyed.contains(value), hex)
        }
    }

    func testBytesThatAreNotUTF8() {
        XCTAssertEqual(shown([0x61, 0x9B, 0x32, 0x4A], .oneLine), Array("a\\x9b2J".utf8))
        XCTAssertEqual(shown([0xC2], .lines), Array("\\xc2".utf8))
        XCTAssertEqual(shown([0xE2, 0x80], .lines), Array("\\xe2\\x80".utf8))
        XCTAssertEqual(shown([0xED, 0xA0, 0x80], .lines), Array("\\xed\\xa0\\x80".utf8))
        XCTAssertEqual(shown([0xC0, 0x8A], .lines), Array("\\xc0\\x8a".utf8))
        XCTAssertEqual(shown([0xFF, 0x0A], .raw), [0xFF, 0x0A])
    }

    func testNoBytesBeginALine() throws {
        var random = SplitMix(18)
        let odd: [UInt8] = [
            0x00, 0x09, 0x0A, 0x0D, 0x1B, 0x20, 0x5C, 0x7E, 0x7F, 0x80, 0x9B, 0xC2, 0xD8, 0x9C,
            0xE2,
            0x80, 0xA8, 0xAE, 0x81, 0xA6, 0xED, 0xF0, 0x9F, 0xFF,
        ]
        for round in 0..<20_000 {
            let count = Int.random(in: 0..<24, using: &random)
            let text = (0..<count).map { _ in
                Bool.random(using: &random) ? odd.randomElement(using: &random)! : UInt8(0x61)
            }
            let why = "seed 18 round \(round): \(text)"
            let lines = try XCTUnwrap(String(validating: shown(text, .lines), as: UTF8.self), why)
            let one = try XCTUnwrap(String(validating: shown(text, .oneLine), as: UTF8.self), why)
            XCTAssertFalse(
                one.unicodeScalars.contains { PlainTextTests.obeyed.contains($0.value) }, why)
            XCTAssertFalse(
                lines.unicodeScalars.contains {
                    PlainTextTests.obeyed.contains($0.value) && $0 != "\n" && $0 != "\t"
                }, why)
            let parts = lines.unicodeScalars.split(
                separator: "\n", omittingEmptySubsequences: false)
            XCTAssertTrue(
                parts.dropFirst().allSatisfy { String($0).hasPrefix("    | ") }, why)
            XCTAssertEqual(parts.count - 1, text.dropLast().count { $0 == 0x0A }, why)
        }
    }

    /// JSON keeps its meaning, wherever a buffer ends.
    func testJSONForATerminal() {
        let text = "{\"a\":\"\u{9B}x\u{7F}\u{2028}é\u{202E}\u{61C}€\u{2066}\"}\n"
        let wanted =
            "{\"a\":\"\\u009bx\\u007f\\u2028é\\u202e\\u061c€\\u2066\"}\n"
        let bytes = Array(text.utf8)
        XCTAssertEqual(String(decoding: PlainText.json(bytes), as: UTF8.self), wanted)
        for cut in 0...bytes.count {
            var first = Array(bytes[..<cut])
            let rest = Array(first.suffix(PlainText.unfinished(first)))
            first.removeLast(rest.count)
            let all = PlainText.json(first) + PlainText.json(rest + bytes[cut...])
            XCTAssertEqual(String(decoding: all, as: UTF8.self), wanted, "cut at \(cut)")
        }
    }
}
