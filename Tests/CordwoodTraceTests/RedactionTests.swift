// Redaction by itself. Random JSON and forms with secrets at random places, in random escapes and
// nesting, cut anywhere, must never show one, and nothing else may change. Bodies without a form
// are not kept. Patterns are checked against a plain model. A failure names its seed.

import CordwoodTestSupport
import XCTest

@testable import Cordwood
@testable import CordwoodCore
@testable import CordwoodTrace

final class RedactionTests: RedactionCase {
    // MARK: A random text and what must come of it

    private static let secretNames = [
        "password", "userPassword", "API-Key", "api_key", "apiKey", "Client_Secret", "access_token",
        "kundenNr", "PWD", "new_password2", "x.pin", "jwt", "CARD_NUMBER",
    ]
    private static let plainNames = [
        "a", "name", "id", "note", "tokenizer", "passing", "pinned", "ü",
    ]
    private static let plainTexts = [
        "hello", "with \"quotes\" and \\ more", "a, b } ] {", "ümläut", "100%", "x", "two\nlines",
    ]

    /// A document, and the same document with its secrets replaced.
    private struct Document {
        var text = ""
        var wanted = ""
    }

    private static let mark = "S3CR3T"

    private func string(_ text: String, _ random: inout SplitMix) -> String {
        var result = "\""
        for scalar in text.unicodeScalars {
            let code = scalar.value
            if scalar == "\"" || scalar == "\\" {
                result += "\\" + String(scalar)
            } else if code < 0x20 {
                result +=
                    code == 10 ? "\\n" : "\\u00" + (code < 16 ? "0" : "") + String(code, radix: 16)
            } else if code < 0x80, Int.random(in: 0..<12, using: &random) == 0 {
                result += "\\u00" + String(code, radix: 16)
            } else {
                result.unicodeScalars.append(scalar)
            }
        }
        return result + "\""
    }

    /// A value below a secret's name, and how it is shown.
    private func secretValue(_ random: inout SplitMix) -> Document {
        let string = string(Self.mark + Self.plainTexts.randomElement(using: &random)!, &random)
        let replaced = "\"[redacted]\""
        switch Int.random(in: 0..<8, using: &random) {
        case 0:
            return Document(
                text: "[\(string), {\"x\":\(string)}, null]",
                wanted: "[\(replaced), {\"x\":\(replaced)}, null]")
        case 1:
            return Document(
                text: "{\"a\":\(string),\"value\":[1,\(string)],\"name\":\"a\"}",
                wanted: "{\"a\":\(replaced),\"value\":[1,\(replaced)],\"name\":\(replaced)}")
        case 2: return Document(text: "123456", wanted: replaced)
        case 3: return Document(text: "-1.25", wanted: replaced)
        case 4:
            let plain = ["17", "null", "true", "false", "0", "[]", "{}", "\"\""]
                .randomElement(using: &random)!
            return Document(text: plain, wanted: plain)
        default: return Document(text: string, wanted: replaced)
        }
    }

    private func value(_ depth: Int, _ random: inout SplitMix) -> Document {
        switch Int.random(in: 0..<(depth > 3 ? 3 : 6), using: &random) {
        case 0: return Document(text: "12.5e3", wanted: "12.5e3")
        case 1: return Document(text: "null", wanted: "null")
        case 2:
            let text = string(Self.plainTexts.randomElement(using: &random)!, &random)
            return Document(text: text, wanted: text)
        case 3:
            let members = (0..<Int.random(in: 0..<4, using: &random)).map { _ in
                value(depth + 1, &random)
            }
            return Document(
                text: "[" + members.map(\.text).joined(separator: " , ") + "]",
                wanted: "[" + members.map(\.wanted).joined(separator: " , ") + "]")
        case 4 where depth < 3:
            // A document in a string, escaped in only one way, so that both sides agree.
            let inner = object(depth + 1, &random)
            func quoted(_ text: String) -> String {
                "\""
                    + text.replacingOccurrences(of: "\\", with: "\\\\")
                    .replacingOccurrences(of: "\"", with: "\\\"")
                    .replacingOccurrences(of: "\n", with: "\\n") + "\""
            }
            return Document(text: quoted(inner.text), wanted: quoted(inner.wanted))
        default: return object(depth + 1, &random)
        }
    }

    private func object(_ depth: Int, _ random: inout SplitMix) -> Document {
        var result = Document(text: "{", wanted: "{")
        for index in 0..<Int.random(in: 1..<5, using: &random) {
            if index > 0 {
                result.text += ","
                result.wanted += ","
            }
            let isSecret = Bool.random(using: &random)
            let names = isSecret ? Self.secretNames : Self.plainNames
            let name = string(names.randomElement(using: &random)!, &random)
            let space = [":", " : ", ":\n"].randomElement(using: &random)!
            if isSecret {
                let value = secretValue(&random)
                result.text += name + space + value.text
                result.wanted += name + space + value.wanted
            } else {
                let inner = value(depth, &random)
                result.text += name + space + inner.text
                result.wanted += name + space + inner.wanted
            }
        }
        result.text += "}"
        result.wanted += "}"
        return result
    }

    func testRandomJSONShowsNoSecretAndChangesNothingElse() throws {
        let rules = try rules()
        for seed in UInt64(1)...1_500 {
            var random = SplitMix(seed)
            let document = object(0, &random)
            XCTAssertEqual(redact(document.text, rules), document.wanted, "seed \(seed)")
            // Cut anywhere: what is kept is a prefix of the whole result.
            let bytes = Array(document.text.utf8)
            let end = Int.random(in: 0...bytes.count, using: &random)
            for isCut in [true, false] {
                let cut = redact(Array(bytes[..<end]), rules, isCut: isCut)
                XCTAssertFalse(cut.contains(Self.mark), "seed \(seed), cut at \(end)")
                XCTAssertTrue(document.wanted.hasPrefix(cut), "seed \(seed), cut at \(end): \(cut)")
            }
            // One byte that is not JSON: nothing after it is kept.
            var broken = bytes
            broken[end % bytes.count] = 1
            let shown = redact(broken, rules)
            XCTAssertFalse(shown.contains(Self.mark), "seed \(seed), broken: \(shown)")
            // One document per line.
            let lines = document.text.replacingOccurrences(of: "\n", with: " ")
            let wanted = document.wanted.replacingOccurrences(of: "\n", with: " ")
            XCTAssertEqual(
                redact(lines + "\n" + lines + "\r\n", rules), wanted + "\n" + wanted + "\r\n")
        }
    }

    func testRandomFormsShowNoSecretAndChangeNothingElse() throws {
        let rules = try rules()
        for seed in UInt64(1)...1_500 {
            var random = SplitMix(seed)
            var (text, wanted) = ("", "")
            for index in 0..<Int.random(in: 1..<8, using: &random) {
                let isSecret = Bool.random(using: &random)
                let names = isSecret ? Self.secretNames : Self.plainNames
                var name = ""
                for byte in names.randomElement(using: &random)!.utf8 {
                    let isPlain = byte < 0x80 && Int.random(in: 0..<6, using: &random) > 0
                    name += isPlain ? String(UnicodeScalar(byte)) : "%" + String(byte, radix: 16)
                }
                let separator = index > 0 ? "&" : ""
                let value = isSecret ? Self.mark + "+%41;'%22" : "some+value%20here"
                text += separator + name + "=" + value
                wanted += separator + name + "=" + (isSecret ? "[redacted]" : value)
            }
            let type = "application/x-www-form-urlencoded"
            XCTAssertEqual(redact(text, rules, type: type), wanted, "seed \(seed)")
            XCTAssertEqual(
                redact("\u{FEFF}" + text, rules, type: type), "\u{FEFF}" + wanted, "seed \(seed)")
            XCTAssertEqual(redact(text, rules), "", "no form by its looks")
        }
    }

    func testRandomBytesNeverTrap() throws {
        let rules = try rules(["[a-f]{2,5}(x|y)*z", "^q.*$"])
        let words = [
            "{", "}", "[", "]", "\"", "\\", ":", "=", "&", "%3D", "%22", "--", "\r\n", "<a>",
            "</a>",
            "<password>", "eyJ", "://", "@", "Bearer ", "b0", ";", "name", "value", "token", "'",
            "\"name\":\"password\",", "\"value\":", "data: ", "<!--", "<![CDATA[", "&amp;", "ghp_",
        ].map { Array($0.utf8) }
        for seed in UInt64(1)...3_000 {
            var random = SplitMix(seed)
            var text: [UInt8] = Bool.random(using: &random) ? Array("{".utf8) : Array("<a>".utf8)
            for _ in 0..<Int.random(in: 0..<60, using: &random) {
                text +=
                    Int.random(in: 0..<4, using: &random) > 0
                    ? words.randomElement(using: &random)!
                    : [UInt8.random(in: 0...255, using: &random)]
            }
            for type in [
                "", "multipart/form-data; boundary=b0", "text/xml", "application/json",
                "application/x-www-form-urlencoded", "text/event-stream",
            ] {
                _ = redact(text, rules, type: type, isCut: Bool.random(using: &random))
            }
        }
    }

    // MARK: Patterns

    /// Every byte in some match, by trying all pieces.
    private func covered(_ text: [UInt8], _ matches: (ArraySlice<UInt8>) -> Bool) -> [Bool] {
        var result = [Bool](repeating: false, count: text.count)
        for from in 0..<text.count {
            for to in (from + 1)..<(text.count + 1) where matches(text[from..<to]) {
                for index in from..<to { result[index] = true }
            }
        }
        return result
    }

    func testPatternsFindWhatAPlainSearchFinds() throws {
        let patterns = [
            "ab*c", "a|bc", "(ab|a)(c|bcd)?", "a{2,3}b", "[^a]b", "(a|b)*c", "a.*b", "c|a.*b",
            "(?i)AbC", "\\d+a?", "a+?b", "(a?){3}b", "[[:alpha:]]{3}",
        ]
        for pattern in patterns {
            let made = try BytePattern(Array(pattern.utf8))
            let whole = try NSRegularExpression(
                pattern: "^(?:" + pattern.replacingOccurrences(of: "(?i)", with: "") + ")$",
                options: pattern.hasPrefix("(?i)") ? [.caseInsensitive] : [])
            for seed in UInt64(1)...60 {
                var random = SplitMix(seed)
                let text = (0..<Int.random(in: 0..<9, using: &random)).map { _ in
                    Array("aabbcdA1".utf8).randomElement(using: &random)!
                }
                var found = [Bool](repeating: false, count: text.count)
                unsafe text.withUnsafeBufferPointer {
                    unsafe made.find(in: ByteText($0.baseAddress, $0.count)) { from, to in
                        for index in from..<to { found[index] = true }
                    }
                }
                let wanted =
                    text.isEmpty
                    ? []
                    : covered(text) { piece in
                        let string = String(decoding: piece, as: UTF8.self)
                        return whole.firstMatch(
                            in: string, range: NSRange(location: 0, length: piece.count)) != nil
                    }
                XCTAssertEqual(found, wanted, "\(pattern) seed \(seed)")
            }
        }
    }

    func testPatternsThatCannotBeAreRefused() {
        for pattern in [
            "(a)\\1", "a**b(", "[z-a]", "(", ")", "a{3", "a{5,2}", "a{2000}", "\\", "[a", "*a",
            "(?=a)", "((((a{1000}){1000}){1000}){1000})", "(((){1000}){1000}){1000}", "[[:no:]]",
        ] {
            XCTAssertThrowsError(try BytePattern(Array(pattern.utf8)), pattern)
        }
        let deep = String(repeating: "(", count: 500) + String(repeating: ")", count: 500)
        XCTAssertThrowsError(try BytePattern(Array(deep.utf8)))
    }

    func testNamesAreThoseOfTheGuide() throws {
        let here = URL(fileURLWithPath: #filePath)
        let guide = here.deletingLastPathComponent().appendingPathComponent("../../docs/HTTP.md")
        let text = try String(contentsOf: guide, encoding: .utf8)
            .replacingOccurrences(of: "\n  ", with: " ")
        for list in [
            SecretDefaults.headers, SecretDefaults.endings, SecretDefaults.keys,
            SecretDefaults.fronts, SecretDefaults.wholes, SecretDefaults.items,
        ] {
            XCTAssertTrue(text.contains(": " + list.joined(separator: ", ")), "\(list)")
        }
    }
}
