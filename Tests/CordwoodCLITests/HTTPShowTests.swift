// `cordwood http show`: its view of one exchange, and its curl line, which a shell must read as
// what was captured.

import CordwoodTestSupport
import Foundation
import XCTest

@testable import Cordwood
@testable import CordwoodCLI
@testable import CordwoodTrace

final class HTTPShowTests: CommandCase {
    private func show(_ arguments: String...) throws -> Done {
        try shell(
            "exec '\(CommandCase.program)' http show "
                + (arguments + [store]).map { "'\($0)'" }.joined(separator: " "))
    }

    func testPrefixes() throws {
        try full()
        try write { writer in
            writer.begin("ab01", "GET", "http://a.test/")
            writer.end("ab01", "GET", "http://a.test/")
            writer.end("ab02", "GET", "http://a.test/")
            writer.end("ab0", "GET", "http://a.test/")
            writer.begin("cc", "GET", "http://a.test/")
        }
        XCTAssertEqual(try show("AB01").code, 0)
        XCTAssertTrue(try show("ab0").text.contains("id             ab0\n"))
        XCTAssertTrue(try show("c").text.contains("state          lost: "))
        let several = try show("a")
        XCTAssertEqual(several.code, 2)
        XCTAssertTrue(several.error.contains("ab01, ab02, ab0"), several.error)
        let none = try show("dd")
        XCTAssertEqual(none.code, 1)
        XCTAssertTrue(none.error.contains("begins with dd"), none.error)
        XCTAssertEqual(try show("").code, 2)
        XCTAssertEqual(try show("ab0", "--har", "--json").code, 2)
    }

    func testDetail() throws {
        try write { writer in
            writer.end(
                "a0", "GET", "http://a.test/from", status: 302,
                [("http.response.headers", .text("Location: /to"))])
            writer.end(
                "a1", "POST", "http://a.test/to", status: 403, ms: 20,
                [
                    ("http.redirected_from", .text("a0")), ("odata.code", .text("SY/530")),
                    ("http.dns", .uint(5_000_000)), ("http.wait", .uint(15_000_000)),
                    (
                        "http.request.headers",
                        .text("Content-Type: application/x-www-form-urlencoded")
                    ),
                    ("http.request.body", .text("a=1+2&b=%C3%BC%0a&c")),
                    ("http.request.body.size", .uint(19)),
                    ("http.response.headers", .text("Content-Type: application/json")),
                    ("http.response.body", .text("{\"a\":[1,{\"b\":\"x\\\"{y\"}],\"c\":{},\"cu")),
                    ("http.response.body.size", .uint(999)),
                    ("http.response.body.note", .text("cut")),
                ])
            writer.end("a2", "GET", "http://a.test/end", [("http.redirected_from", .text("a1"))])
        }
        let text = try show("a1", "--utc").text
        let wanted = """
            redirects      a0 302 GET http://a.test/from
                        -> a1 403 POST http://a.test/to (this one)
                        -> a2 200 GET http://a.test/end

            dns     |############......................................|         5.0 ms
            wait    |............######################################|        15.0 ms

            > POST http://a.test/to
            > Content-Type: application/x-www-form-urlencoded

              a = 1 2
              b = ü\\n
              c

            < 403 Forbidden
            < Content-Type: application/json

              {
                "a": [
                  1,
                  {
                    "b": "x\\"{y"
                  }
                ],
                "c": {},
                "cu
              [cut: 33 bytes of 999]

            """
        XCTAssertTrue(text.hasSuffix(wanted), text)
        XCTAssertTrue(text.contains("odata code     SY/530\n"), text)
        XCTAssertTrue(text.contains("state          failed after 20.0 ms\n"), text)
    }

    /// Redaction changes a body's length but cuts nothing.
    func testWhatIsNotWholeIsSaid() throws {
        let redacted = "{\"password\":\"[redacted]\",\"pin\":\"[redacted]\"}"
        try write { writer in
            writer.end(
                "a1", "POST", "http://a.test/",
                [
                    ("http.request.body", .text(redacted)), ("http.request.body.size", .uint(27)),
                    ("http.response.body", .text(redacted)),
                    ("http.response.body.size", .uint(27)),
                ])
            writer.end(
                "a2", "POST", "http://a.test/",
                [
                    ("http.request.headers", .text("X-A: hhh")),
                    ("http.request.headers.note", .text("cut")),
                    ("http.request.body.size", .uint(9)),
                    ("http.response.headers", .text("X-A: hhh")),
                    ("http.response.headers.note", .text("cut")),
                    ("http.response.body", .text(redacted)),
                    ("http.response.body.size", .uint(27)),
                    ("http.response.body.note", .text("cut")),
                ])
        }
        let whole = try show("a1").text
        XCTAssertFalse(whole.contains("bytes"), whole)
        XCTAssertEqual(try show("a1", "--curl").error, "")
        let cut = try show("a2").text
        XCTAssertTrue(cut.contains("> X-A: hhh\n  [headers cut]\n"), cut)
        XCTAssertTrue(cut.contains("  [not kept: 0 bytes of 9]\n"), cut)
        XCTAssertTrue(cut.hasSuffix("  [cut: of 27 bytes]\n"), cut)
        let told = try show("a2", "--curl").error
        XCTAssertTrue(told.contains("the headers are not whole (cut)"), told)
        XCTAssertTrue(told.contains("the body is not whole: not kept: 0 bytes of 9"), told)
        func entry(_ id: String) throws -> [String: Any] {
            let text = try show(id, "--har").text
            let har = try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any]
            let log = try XCTUnwrap(har?["log"] as? [String: Any])
            return try XCTUnwrap((log["entries"] as? [[String: Any]])?.first)
        }
        let plain = try entry("a1")
        let response = try XCTUnwrap(plain["response"] as? [String: Any])
        XCTAssertEqual(response["bodySize"] as? Int, 27)
        XCTAssertEqual((response["content"] as? [String: Any])?["size"] as? Int, 27)
        XCTAssertNil(response["comment"])
        let noted = try entry("a2")
        for side in ["request", "response"] {
            XCTAssertEqual((noted[side] as? [String: Any])?["comment"] as? String, "headers cut")
        }
    }

    func testBytesAreShownInHex() throws {
        try write { writer in
            writer.end(
                "a1", "GET", "http://a.test/",
                [("http.response.body", .bytes([0x50, 0x4b, 3, 4] + [UInt8](0...255)))])
        }
        let text = try show("a1").text
        XCTAssertTrue(
            text.contains(
                """
                  260 bytes
                  00000000  50 4b 03 04 00 01 02 03  04 05 06 07 08 09 0a 0b  |PK..............|
                """), text)
        XCTAssertTrue(text.hasSuffix("\n  …\n"), text)
    }

    func testJSONThatIsNone() {
        func pretty(_ text: String, _ isSure: Bool = false) -> String? {
            IndentedJSON.indented(Array(text.utf8)[...], isSure: isSure).map {
                String(decoding: $0, as: UTF8.self)
            }
        }
        XCTAssertNil(pretty("plain"))
        XCTAssertNil(pretty("{}}"))
        XCTAssertEqual(pretty("12", true), "12")
        XCTAssertEqual(pretty(" [ ] "), "[]")
        XCTAssertEqual(pretty("[[]]"), "[\n  []\n]")
        XCTAssertEqual(pretty("\u{FEFF}{\"a\" : \"}\\\\\"}"), "{\n  \"a\": \"}\\\\\"\n}")
        let deep = pretty(String(repeating: "[", count: 100_000))
        XCTAssertLessThan(deep?.utf8.count ?? .max, 1_000_000)
    }

    // MARK: curl

    /// The arguments and the input that curl gets when a shell runs the line.
    private func asked(_ exchange: CapturedExchange) throws -> (arguments: [[UInt8]], body: [UInt8])
    {
        let line = CurlLine.text(exchange) { _ in }
        XCTAssertFalse(line.utf8.contains { $0 < 0x20 && $0 != 0x0a && $0 != 0x09 }, line)
        let input = folder + "/input"
        let done = try shell(
            "curl() { printf '%s\\0' \"$@\"; if [ \"$(eval echo '${'$(($# - 2))'}')\" = @- ]; then "
                + "cat > \(input); fi; }\n" + line)
        XCTAssertEqual(done.code, 0, done.error)
        var arguments = done.out.split(separator: 0, omittingEmptySubsequences: false).map {
            Array($0)
        }
        arguments.removeLast()
        let body = FileManager.default.contents(atPath: input).map { Array($0) } ?? []
        try? FileManager.default.removeItem(atPath: input)
        return (arguments, body)
    }

    private func exchange(_ url: String, body: [UInt8]? = nil) -> CapturedExchange {
        var exchange = CapturedExchange()
        exchange.methodBytes = Array("POST".utf8)
        exchange.urlBytes = Array(url.utf8)
        exchange.request.body = body
        exchange.request.bodyBytes = body.map { UInt64($0.count) }
        return exchange
    }

    func testCurlQuotesAnything() throws {
        let texts: [[UInt8]] = [
            Array("plain".utf8), Array("it's".utf8),
            Array("$(touch x) `touch x` $HOME \\n %s".utf8),
            Array("@/etc/passwd".utf8), Array("-v".utf8), Array("two\nlines\n\n".utf8),
            Array("\"double\" !! ;&|<>(){}[]*?~#".utf8), Array("grüße 🪵".utf8),
            [0, 1, 2, 0xff, 0x30, 0x27, 0x5c, 0x25, 0x0a], [0x2d, 0x2d, 0x00], [0xff],
            Array(0...255), [UInt8](repeating: 0x61, count: 100_000),
        ]
        for text in texts {
            let (arguments, input) = try asked(exchange("http://a.test/", body: text))
            let marks = arguments.map { String(decoding: $0, as: UTF8.self) }
            if let at = marks.firstIndex(of: "--data-raw") {
                XCTAssertEqual(arguments[at + 1], text)
            } else {
                XCTAssertEqual(input, text)
                XCTAssertEqual(Array(marks.suffix(4).prefix(2)), ["--data-binary", "@-"])
            }
            // Also as a header, which cannot contain NUL or CR.
            var other = exchange("http://a.test/")
            let value = text.filter { $0 != 0 && $0 != 0x0a && $0 != 0x0d }
            other.request.headers = [.init(nameBytes: Array("X-A".utf8), valueBytes: text)]
            if text.contains(0x0a) || text.contains(0) { continue }
            XCTAssertTrue(
                try asked(other).arguments.contains(Array("X-A: ".utf8) + value),
                String(decoding: text.prefix(40), as: UTF8.self))
        }
    }

    func testCurlHeadersAndMethods() throws {
        var one = exchange("http://a.test/a b?x=[1]&y='\u{7}ü", body: Array("x".utf8))
        one.methodBytes = Array("PA TCH'".utf8)
        one.request.headers = [
            ("Host", "a.test"), ("content-length", "1"), ("Connection", "close, X-Hop"),
            ("X-Hop", "1"), ("X-Empty", ""), ("Authorization", "[redacted]"),
            ("Accept-Encoding", "gzip"), (":path", "/"), ("@/etc/passwd", "1"), ("Bad Name", "1"),
        ].map { .init(nameBytes: Array($0.0.utf8), valueBytes: Array($0.1.utf8)) }
        let words = try asked(one).arguments.map { String(decoding: $0, as: UTF8.self) }
        XCTAssertEqual(
            words,
            [
                "--globoff", "--path-as-is", "--request", "PA TCH'", "--header", "X-Empty;",
                "--header", "Authorization: [redacted]", "--header", "Content-Type:",
                "--compressed", "--data-raw", "x", "--url",
                "http://a.test/a%20b?x=[1]&y='%07%c3%bc",
            ])
        var told: [String] = []
        one.request.bodyNote = "cut"
        one.request.bodyBytes = 9
        _ = CurlLine.text(one) { told.append($0) }
        XCTAssertEqual(told.count, 3)
        XCTAssertTrue(told.contains("the body is not whole: cut: 1 byte of 9"), "\(told)")
        for (method, body, wanted) in [
            ("GET", "", ""), ("HEAD", "", "--head "), ("POST", "", "--request 'POST' "),
            ("GET", "x", "--request 'GET' --header 'Content-Type:' --data-raw 'x' "),
        ] {
            var plain = exchange("http://a.test/", body: Array(body.utf8))
            plain.methodBytes = Array(method.utf8)
            XCTAssertEqual(
                CurlLine.text(plain) { _ in },
                "curl --globoff --path-as-is \(wanted)--url 'http://a.test/'")
        }
    }
}
