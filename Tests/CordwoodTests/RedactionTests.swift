// Redaction by itself: random JSON and forms with secrets at random places, in random escapes and
// nesting, cut anywhere, must never show one, and nothing else may change; patterns beside a plain
// model. A failure names its seed.

import XCTest

@testable import Cordwood
@testable import CordwoodCore

/// Of the processor, by this thread: what runs beside it does not count.
func threadSeconds() -> Double {
    var now = timespec()
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now)
    return Double(now.tv_sec) + Double(now.tv_nsec) / 1e9
}

final class RedactionTests: XCTestCase {
    private let directory =
        NSTemporaryDirectory() + "cordwood-redaction-\(UInt64.random(in: 0...(.max)))"
    private var engine: Engine?

    override func setUpWithError() throws { engine = try Engine(directory: directory) }

    override func tearDownWithError() throws {
        try engine?.close()
        try FileManager.default.removeItem(atPath: directory)
    }

    private func rules(_ patterns: [String] = []) throws -> HTTPRules {
        var options = HTTPCaptureOptions()
        options.redactPatterns = patterns
        options.redactKeys = ["Kunden-Nr"]
        return try unsafe HTTPRules(
            logger: XCTUnwrap(engine).findLogger("HTTP").block, options)
    }

    private func redact(
        _ text: [UInt8], _ rules: HTTPRules, type: String = "", isCut: Bool = false
    ) -> String {
        var edits = Edits()
        var out = ByteBuffer()
        unsafe text.withUnsafeBufferPointer { text in
            unsafe Array(type.utf8).withUnsafeBufferPointer { type in
                unsafe Redactor(Unmanaged.passUnretained(rules)).body(
                    ByteText(text.baseAddress, text.count),
                    contentType: ByteText(type.baseAddress, type.count), isCut: isCut, &edits,
                    into: &out)
            }
        }
        return String(decoding: out.text.array, as: UTF8.self)
    }

    private func redact(_ text: String, _ rules: HTTPRules, type: String = "") -> String {
        redact(Array(text.utf8), rules, type: type)
    }

    // MARK: A random text and what must come of it

    private struct Random: RandomNumberGenerator {
        var state: UInt64
        mutating func next() -> UInt64 {
            state &+= 0x9E37_79B9_7F4A_7C15
            var word = state
            word = (word ^ (word >> 30)) &* 0xBF58_476D_1CE4_E5B9
            word = (word ^ (word >> 27)) &* 0x94D0_49BB_1331_11EB
            return word ^ (word >> 31)
        }
    }

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

    /// A document, and the same with its secrets replaced.
    private struct Document {
        var text = ""
        var wanted = ""
    }

    private static let mark = "S3CR3T"

    private func string(_ text: String, _ random: inout Random) -> String {
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

    private func secretValue(_ depth: Int, _ random: inout Random) -> (String, isString: Bool) {
        switch Int.random(in: 0..<5, using: &random) {
        case 0: return ("[\"\(Self.mark)\",{\"x\":\"\(Self.mark)]}\"}]", false)
        case 1: return ("{\"a\":\"\(Self.mark)}\",\"b\":[1,\"\(Self.mark)\"]}", false)
        default:
            return (
                string(Self.mark + Self.plainTexts.randomElement(using: &random)!, &random), true
            )
        }
    }

    private func value(_ depth: Int, _ random: inout Random) -> Document {
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
            // A document in a string: escaped without choice, so that both sides agree.
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

    private func object(_ depth: Int, _ random: inout Random) -> Document {
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
                let (text, _) = secretValue(depth, &random)
                result.text += name + space + text
                result.wanted += name + space + "\"[redacted]\""
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
            var random = Random(state: seed)
            let document = object(0, &random)
            XCTAssertEqual(redact(document.text, rules), document.wanted, "seed \(seed)")
            // Cut anywhere: never a secret's whole mark.
            let bytes = Array(document.text.utf8)
            let end = Int.random(in: 0...bytes.count, using: &random)
            let cut = redact(Array(bytes[..<end]), rules, isCut: true)
            XCTAssertFalse(cut.contains(Self.mark), "seed \(seed), cut at \(end)")
            // Bytes that make it no JSON any more, in front of it.
            let broken = redact("x\"y {\"a\": \"" + document.text, rules)
            XCTAssertFalse(broken.contains(Self.mark), "seed \(seed), broken")
        }
    }

    func testRandomFormsShowNoSecretAndChangeNothingElse() throws {
        let rules = try rules()
        for seed in UInt64(1)...1_500 {
            var random = Random(state: seed)
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
                let value = isSecret ? Self.mark + "+%41;\"'<>" : "some+value%20here"
                text += separator + name + "=" + value
                wanted += separator + name + "=" + (isSecret ? "[redacted]" : value)
            }
            XCTAssertEqual(
                redact(text, rules, type: "application/x-www-form-urlencoded"), wanted,
                "seed \(seed)")
        }
    }

    func testRandomBytesNeverTrapAndStayWhereNothingIsFound() throws {
        let rules = try rules(["[a-f]{2,5}(x|y)*z", "^q.*$"])
        let words = Array("{}[]\"\\:=&%3D%22--\r\n<password>eyJ.://@Bearer b0;name token'".utf8)
        for seed in UInt64(1)...3_000 {
            var random = Random(state: seed)
            let text = (0..<Int.random(in: 0..<200, using: &random)).map { _ in
                Bool.random(using: &random)
                    ? words.randomElement(using: &random)!
                    : UInt8.random(in: 0...255, using: &random)
            }
            for type in ["", "multipart/form-data; boundary=b0", "text/xml", "application/json"] {
                _ = redact(text, rules, type: type, isCut: Bool.random(using: &random))
            }
        }
    }

    // MARK: Forms in which secrets were once seen

    private func assertHidden(
        _ texts: [String], _ rules: HTTPRules, type: String = "", isCut: Bool = false,
        line: UInt = #line
    ) {
        for text in texts {
            let shown = redact(Array(text.utf8), rules, type: type, isCut: isCut)
            XCTAssertFalse(shown.contains("HUNTER2"), "\(text) -> \(shown)", line: line)
            XCTAssertTrue(shown.contains("[redacted]"), text, line: line)
            XCTAssertEqual(
                text.contains("KEPT"), shown.contains("KEPT"), "\(text) -> \(shown)", line: line)
        }
    }

    private func line(_ text: String, _ rules: HTTPRules, isURL: Bool = false, isCut: Bool = false)
        -> String
    {
        var edits = Edits()
        var out = ByteBuffer()
        unsafe Array(text.utf8).withUnsafeBufferPointer {
            let text = unsafe ByteText($0.baseAddress, $0.count)
            let redactor = unsafe Redactor(Unmanaged.passUnretained(rules))
            if isURL {
                redactor.url(text, isCut: isCut, &edits, into: &out)
            } else {
                redactor.line(text, isCut: isCut, &edits, into: &out)
            }
        }
        return String(decoding: out.text.array, as: UTF8.self)
    }

    func testPartsAreFoundWhateverBoundaryIsSaid() throws {
        let rules = try rules()
        let head = "Content-Disposition: form-data; name=\"password\""
        let rest =
            "\r\n\r\nHUNTER2\r\n--b0\r\nContent-Disposition: form-data; name=\"n\""
            + "\r\n\r\nKEPT\r\n--b0--\r\n"
        let folded = "Content-Disposition: form-data;\r\n name=\"password\""
        for type in ["multipart/form-data; boundary=other", "multipart/form-data", ""] {
            assertHidden(
                [
                    "--b0\r\n" + head + rest, "--b0\r\n" + folded + rest,
                    "\r\n--b0\r\n" + head + rest, "a preamble\r\n--b0\r\n" + head + rest,
                    "--b0\r\n" + head + "\r\nContent-Type: text/plain" + rest,
                    "--b0\r\n" + head + "\r\nHUNTER2\r\n--b0\r\n\r\nKEPT",
                    "--a\r\nContent-Type: multipart/mixed; boundary=b0\r\n\r\n--b0\r\n" + head
                        + rest + "--a--",
                    "--b0\r\n" + head + "\r\nContent-Type: multipart/mixed; boundary=i\r\n\r\n"
                        + "--i\r\n\r\nHUNTER2\r\n--i--\r\n--b0\r\n\r\nKEPT\r\n--b0--",
                    "--b0\r\n" + head + "\r\n\r\n--b0x HUNTER2\r\n--b0\r\n\r\nKEPT",
                ], rules, type: type)
        }
        assertHidden(
            [
                "--b0\r\nContent-Type: text/xml\r\n\r\n<a><password>HUNTER2</password>"
                    + "<b>KEPT</b></a>\r\n--b0--"
            ], rules, type: "multipart/related; boundary=b0")
    }

    func testPartsTakeLinearTime() throws {
        let rules = try rules()
        let head = "Content-Disposition: form-data; name=\"password\"\n"
        for text in [
            String(repeating: "--a\n", count: 16_384), String(repeating: head, count: 1_200),
            String(repeating: "--a\n" + head, count: 1_200),
            "--a\n" + head
                + String(repeating: "x-a: b\n", count: 8_000),
            String(repeating: "<token>", count: 9_000) + "\"",
            "{\"a\":\"" + String(repeating: "<token>", count: 9_000) + "\"",
            String(repeating: "password: ", count: 6_000),
            String(repeating: "token = ", count: 6_000),
            String(repeating: "\\\"", count: 30_000),
            "token=\"" + String(repeating: "\\\"", count: 30_000),
        ] {
            let start = threadSeconds()
            _ = redact(Array(text.utf8), rules, type: "multipart/form-data; boundary=a")
            _ = redact(Array(text.utf8), rules)
            XCTAssertLessThan(threadSeconds() - start, 2, String(text.prefix(60)))
        }
    }

    func testTextsCutWithinAPasswordOfAURL() throws {
        let rules = try rules()
        XCTAssertEqual(
            line("at https://joe:HUNT", rules, isCut: true), "at https://joe:[redacted]")
        XCTAssertEqual(
            line("https://joe:HUNT", rules, isURL: true, isCut: true), "https://joe:[redacted]")
        XCTAssertEqual(line("https://h:8080", rules, isURL: true), "https://h:8080")
        assertHidden(["see https://joe:HUNTER2"], rules, isCut: true)
        XCTAssertEqual(line("//joe:HUNTER2@h/", rules, isURL: true), "//joe:[redacted]@h/")
    }

    func testValuesGoOnToTheirEnd() throws {
        let rules = try rules()
        XCTAssertEqual(
            line("https://h/cb?token=o'HUNT<ER2&a=b", rules, isURL: true),
            "https://h/cb?token=[redacted]&a=b")
        XCTAssertEqual(
            line("url: '/x?token=o'HUNTER2' (Caused", rules), "url: '/x?token=[redacted]' (Caused")
        assertHidden(
            [
                "x password=o'HUNTER2 KEPT", "a Bearer 1|HUNTER2 KEPT", "a Bearer \"HUNTER2\" KEPT",
                "a Bearer: HUNTER2 KEPT", "{\"password\": 'it\\'s HUNTER2', \"a\": \"KEPT\"}",
                "a password=\\\"HUNTER2\\\" KEPT", "a password=\"x\\\"HUNTER2\" KEPT",
            ], rules)
        XCTAssertEqual(
            line("Bearer realm=\"a\", error=\"b\"", rules), "Bearer realm=\"a\", error=\"b\"")
    }

    func testFormsBesideJSON() throws {
        let rules = try rules()
        assertHidden(
            [
                "{\"query\":\"mutation { login(user: \\\"KEPT\\\", password: \\\"HUNTER2\\\") }\"}",
                "{user: \"KEPT\", password: \"HUNTER2\"}", "{password: HUNTER2, user: KEPT}",
                "{'password': 'HUNTER2', 'user': 'KEPT'}",
                "POST /\nAuthorization: Basic HUNTER2\nKEPT",
                "X-Api-Key: HUNTER2\r\nA: KEPT", "user: KEPT\n  password: HUNTER2 and HUNTER2\n",
                "[db]\npassword = HUNTER2\nuser = KEPT",
                "{\"password\" => \"HUNTER2\", \"a\" => \"KEPT\"}",
                "{\"x\":\"<password>HUNTER2</password>\",\"y\":\"KEPT\"}",
                "{\"x\":\"\\u003cpassword>HUNTER2\\u003c/password>\",\"y\":\"KEPT\"}",
                "\u{FEFF}<a><password>HUNTER2</password><b>KEPT</b></a>",
                "err {\\\"password\\\":\\\"HUNTER2\\\"} KEPT",
                "next=https%3A%2F%2Fuser%3AHUNTER2%40host&a=KEPT",
                "data=%257B%2522password%2522%253A%2522HUNTER2%2522%257D&a=KEPT",
                "{\"tokens\":[\"HUNTER2\"],\"SecretString\":\"HUNTER2\",\"max_tokens\":\"KEPT\"}",
            ], rules)
        // What no secret is.
        for text in [
            "{\"error\":\"invalid token: unexpected end\"}", "Unexpected token: nothing",
            "{\"note\":\"use <token> here\",\"n\":1}", "see <token> and more", "if (token == 1)",
            "Forgot your password: ask us", "{\"max_tokens\":100,\"code\":\"a\",\"key\":1}",
            "a = 1, b: 2",
        ] {
            XCTAssertEqual(redact(text, rules), text)
        }
        XCTAssertEqual(
            line("/a?key=HUNTER2&code=x&PHPSESSID=y&country_code=de", rules, isURL: true),
            "/a?key=[redacted]&code=[redacted]&PHPSESSID=[redacted]&country_code=de")
    }

    // MARK: Patterns

    /// Every byte that lies in some match, by trying all pieces.
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
                var random = Random(state: seed)
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
            SecretDefaults.wholes, SecretDefaults.items,
        ] {
            XCTAssertTrue(text.contains(": " + list.joined(separator: ", ")), "\(list)")
        }
    }
}
