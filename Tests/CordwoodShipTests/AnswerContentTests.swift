// A 2xx is judged by its body, whatever its label: pages for people confirm nothing at any kind,
// and objects that report an error confirm nothing at kinds without a protocol of their own.
// Generated: every kind, label, form and coding of an answer.

import CordwoodTestSupport
import XCTest

@testable import CordwoodShip
@testable import CordwoodStore

final class AnswerContentTests: XCTestCase {
    private static let kinds = TargetKind.allCases
    private static let labels: [String?] = [
        nil, "", "text/plain", "application/octet-stream", "application/xhtml+xml",
        "text/vnd.wap.wml", "application/json", "text/xml; charset=utf-16",
    ]

    private static let pages = [
        "<!DOCTYPE html><html><body>Sign in</body></html>", "<!doctype HTML SYSTEM 'about:legacy'>",
        "<html>Sign in</html>", "<HTML\n><HEAD>", "<html/>", "<html",
        "<html xmlns='http://www.w3.org/1999/xhtml'/>", "<h:html xmlns:h='x'>",
        "<?xml version='1.0' encoding='UTF-8'?>\n<!DOCTYPE html PUBLIC "
            + "'-//W3C//DTD XHTML 1.0 Strict//EN' 'x.dtd'><html>",
        "<?xml version='1.0'?><!DOCTYPE wml PUBLIC '-//WAPFORUM//DTD WML 1.1//EN' 'w'><wml><card>",
        "<?xml version='1.0'?><?xml-stylesheet href='a>b'?><html>", "<WML><card>",
        "<!DOCTYPE page PUBLIC '-//W3C//DTD XHTML Basic 1.1//EN' 'x'><page>",
        "<!DOCTYPE note [<!ENTITY a 'b'>]><html>", "<div xmlns='http://www.w3.org/1999/xhtml'>",
        "<!-- a --><!-- <b> --> <html>", "<!-- never closed", "<head><title>Portal</title>",
        "<title>Login</title>", "<script>location='/login'</script>", "<meta http-equiv=refresh>",
        "<body onload=x>", "<h1>502</h1>", "<center>nginx</center>", "<p>Sign in", "<br>",
        "<a href='/login'>Sign in</a>", "<form action='/login'>",
        "\n\u{FEFF}<html>", " \u{FEFF}\u{FEFF}\t<html>", "<!-- a -->\u{FEFF}<html>",
        "<?xml version='1.0'?>\u{FEFF}<html>", "<pre>502", "<ul>", "<h4>", "<h6>", "<main>",
        "<section>", "<header>", "<nav>", "<input>", "<button>", "<strong>502</strong>",
        "<table class='xmlns='>", "<table xmlns:v='urn:v'>",
        String(repeating: " ", count: 4_000) + "<html>",
        "<!--" + String(repeating: "x", count: 4_000) + "--><html>",
        "<!--" + String(repeating: "x", count: 9_000) + "--><html>",
        String(repeating: "\n", count: 9_000) + "<html>",
    ]

    /// Neither page nor error.
    private static let others = [
        "ok", "0", "{}", "[]", "null", "\"<html>\"", "the <html> of it",
        "<?xml version='1.0'?><ok/>",
        "<Result xmlns='urn:x'><html/></Result>", "<!DOCTYPE result SYSTEM 'html.dtd'><result/>",
        "<!-- stored --><result/>", "<?xml version='1.0'?><a><b/></a>", "<htmlish/>", "<wmlx>",
        #"{"ok":true,"data":{"error":"within"}}"#, #"{"error":null}"#, #"{"errors":false}"#,
        #"{"errors":[ ],"error":{ }}"#, #"{"error":""}"#, #"{"error":0,"errors":-0.0e5}"#,
        #"[{"error":"in a list"}]"#, #"{"errorCount":1,"no error":2}"#, #"{"a":"\"error\":1"}"#,
        "<", "<!", "{", "{\"", "{\"error", "\u{FEFF}", "\u{1F8B}", "\n\u{FEFF}ok",
        "<x:link>", "<soap:Body>", "<table xmlns=\"urn:t\">", "<a:table xmlns:a='urn:a'/>",
        "<section\nxmlns='urn:s'>", #" \u{FEFF} {"error":null}"#,
        "{\"" + String(repeating: "k", count: 64) + "error\":1}",
        // Not even a report is this long.
        "{\"a\":\"" + String(repeating: "x", count: AnswerContent.errorBytesMax)
            + "\",\"error\":1}",
    ]

    private static let errors = [
        #"{"error":"quota exceeded"}"#, #"{"errors":["a"]}"#, #"{"errors":true}"#,
        #"{"error":{"a":1}}"#,
        #" {"ok" : 1 , "error" : 503 }"#, #"{"error":null,"error":"twice"}"#, #"{"Error":"x"}"#,
        #"{"ERRORS":1}"#, #"{"\u0065rror":"escaped"}"#, #"{"a":{"b":[1,"}"]},"errors":[{}]}"#,
        #"{"error":"cut"#, #"{"errors":["#, #"{"errors":{"#, #"{"error":tru"#,
        #"{"a\"":1,"error":"x"}"#,
        "\n\u{FEFF}{\"error\":1}", "\u{FEFF} \u{FEFF} {\"error\":1}",
        "{\"" + String(repeating: "k", count: 9_000) + "\":1,\"error\":1}",
        #"{"error":"0"}"#, #"{"error":1e-400,"errors":0.1}"#, #"{"error":[[]]}"#,
    ]

    private static let codings: [(name: String, code: @Sendable ([UInt8]) -> [UInt8])] = [
        ("UTF-8", { $0 }), ("UTF-8 with a mark", { [0xEF, 0xBB, 0xBF] + $0 }),
        ("UTF-16LE", { [0xFF, 0xFE] + wide($0, 2, big: false) }),
        ("UTF-16BE", { [0xFE, 0xFF] + wide($0, 2, big: true) }),
        ("UTF-16LE without a mark", { wide($0, 2, big: false) }),
        ("UTF-16BE without a mark", { wide($0, 2, big: true) }),
        ("UTF-32LE", { [0xFF, 0xFE, 0, 0] + wide($0, 4, big: false) }),
        ("UTF-32BE", { [0, 0, 0xFE, 0xFF] + wide($0, 4, big: true) }),
    ]

    private static func wide(_ text: [UInt8], _ unit: Int, big: Bool) -> [UInt8] {
        String(decoding: text, as: UTF8.self).utf16.flatMap { one in
            let bytes =
                [UInt8](repeating: 0, count: unit - 2) + [UInt8(one >> 8), UInt8(one & 0xFF)]
            return big ? bytes : bytes.reversed()
        }
    }

    private func answer(
        _ status: Int32, _ body: [UInt8], _ label: String?, _ more: [(String, String)] = []
    ) -> TransferOutcome {
        var outcome = TransferOutcome(
            kind: TransferOutcome.kind(httpStatus: status), httpStatus: status, cause: "")
        outcome.headers = more.map { (name: $0.0, value: $0.1) }
        if let label { outcome.headers.append((name: "content-type", value: label)) }
        outcome.body = body
        return outcome
    }

    private func target(
        _ kind: TargetKind, _ change: (inout TargetOptions) -> Void = { _ in }
    ) throws -> Target {
        var options = TargetOptions(url: "http://127.0.0.1:9/in")
        options.kind = kind.rawValue
        if kind == .clickhouse { options.parameters = "table=logs" }
        change(&options)
        return try Target(options)
    }

    private let delivery = Delivery(
        id: "i", archiveID: "i", archiveRecords: 4, range: nil, fileName: "a.cwa", encoding: .none,
        credentials: Credentials(), nowUnixMs: 0)

    // ── Every kind, label, form and coding ──

    func testNoPageConfirmsAtAnyKind() throws {
        let labels = AnswerContentTests.labels
        let targets = try AnswerContentTests.kinds.map { try target($0) }
        for (index, page) in AnswerContentTests.pages.enumerated() {
            for (number, coding) in AnswerContentTests.codings.enumerated() {
                let body = coding.code(Array(page.utf8))
                for (turn, target) in targets.enumerated() {
                    let one = labels[(index + number + turn) % labels.count]
                    for label in sized([one], [one], labels) {
                        // What S3 and ClickHouse would confirm with.
                        let outcome = answer(
                            200, body, label, [("etag", "\"e\""), ("x-clickhouse-summary", "{}")])
                        XCTAssertFalse(
                            target.isReceipt(outcome, delivery),
                            "\(target.kind), \(label ?? "no label"), \(coding.name): "
                                + page.prefix(80))
                    }
                }
            }
        }
    }

    func testKindsWithoutAProtocolTakeAnythingElseWithoutAnError() throws {
        for kind in [TargetKind.http, .sap, .transactions] {
            let target = try target(kind)
            for (name, code) in AnswerContentTests.codings {
                for label in AnswerContentTests.labels {
                    func isReceipt(_ text: String) -> Bool {
                        target.isReceipt(answer(202, code(Array(text.utf8)), label), delivery)
                    }
                    for text in AnswerContentTests.others {
                        XCTAssertTrue(isReceipt(text), "\(kind), \(name): \(text)")
                    }
                    for text in AnswerContentTests.errors {
                        XCTAssertFalse(isReceipt(text), "\(kind), \(name): \(text)")
                    }
                }
            }
            XCTAssertTrue(target.isReceipt(answer(204, [], nil), delivery))
            XCTAssertTrue(target.isReceipt(answer(204, [], "text/html"), delivery))
            XCTAssertFalse(target.isReceipt(answer(200, Array("ok".utf8), "text/html"), delivery))
            XCTAssertTrue(target.isReceipt(answer(200, Array("{}".utf8), "text/html"), delivery))
        }
    }

    /// They have words of their own.
    func testKindsWithAProtocolKeepIt() throws {
        func isReceipt(_ kind: TargetKind, _ text: String) throws -> Bool {
            try target(kind).isReceipt(answer(200, Array(text.utf8), nil), delivery)
        }
        XCTAssertTrue(try isReceipt(.loggly, #"{"response":"ok","error":"none"}"#))
        XCTAssertTrue(try isReceipt(.splunk, #"{"text":"Success","code":0,"errors":1}"#))
        XCTAssertTrue(
            try isReceipt(.collector, #"{"id":"i","stored":true,"records":4,"error":"none"}"#))
        XCTAssertTrue(try isReceipt(.elasticsearch, #"{"took":1,"errors":false}"#))
        for kind in AnswerContentTests.kinds where kind != .elasticsearch {
            XCTAssertFalse(try isReceipt(kind, #"{"error":"quota exceeded"}"#), "\(kind)")
        }
        for text in AnswerContentTests.errors {
            XCTAssertFalse(try isReceipt(.datadog, text), text)
        }
        XCTAssertTrue(try isReceipt(.datadog, #"{"errors":[],"error":null}"#))
    }

    func testAPutThatCreatedCountsWithAPage() throws {
        let page = Array("<!DOCTYPE html><title>201 Created</title>".utf8)
        let put = try target(.http) { $0.method = "PUT" }
        XCTAssertTrue(put.isReceipt(answer(201, page, "text/html"), delivery))
        XCTAssertFalse(put.isReceipt(answer(200, page, nil), delivery))
        XCTAssertFalse(try target(.http).isReceipt(answer(201, page, nil), delivery))
        let error = Array(#"{"error":"full"}"#.utf8)
        XCTAssertFalse(put.isReceipt(answer(201, error, nil), delivery))
    }

    func testWhatTheHostExpectsDecidesAlone() throws {
        let target = try target(.http) { $0.expect = "body:accepted" }
        let page = Array("<html>accepted</html>".utf8)
        XCTAssertTrue(target.isReceipt(answer(200, page, nil), delivery))
        XCTAssertFalse(target.isReceipt(answer(200, Array("ok".utf8), nil), delivery))
    }

    /// Every answer of a server has its headers, also its pages and its errors.
    func testWhatTheHostExpectsOfHeadersConfirmsNoPage() throws {
        let page = Array("<html>Sign in</html>".utf8)
        let error = Array(#"{"error":"full"}"#.utf8)
        let headers = [("x-stored", "yes")]
        for expect in ["header:x-stored", "status:200", "header:x-stored=yes;status:200"] {
            for method in ["POST", "PUT"] {
                let target = try target(.http) { ($0.expect, $0.method) = (expect, method) }
                func isReceipt(_ status: Int32, _ body: [UInt8]) -> Bool {
                    target.isReceipt(answer(status, body, nil, headers), delivery)
                }
                XCTAssertTrue(isReceipt(200, Array("ok".utf8)), expect)
                XCTAssertFalse(isReceipt(200, page), expect)
                XCTAssertFalse(isReceipt(200, error), expect)
                XCTAssertFalse(target.isReceipt(answer(202, [], nil), delivery), expect)
            }
        }
        let put = try target(.http) { ($0.expect, $0.method) = ("header:x-stored", "PUT") }
        XCTAssertTrue(put.isReceipt(answer(201, page, nil, headers), delivery))
        XCTAssertFalse(put.isReceipt(answer(201, error, nil, headers), delivery))
        XCTAssertFalse(put.isReceipt(answer(201, page, nil), delivery))
    }

    /// A server may pack what nobody asked it to pack; a host's transport may have unpacked it.
    func testPackedPages() throws {
        let target = try target(.http)
        let page = Array("<html>Sign in</html>".utf8)
        // Stored blocks: gzip's frame and DEFLATE's, without a checksum that anyone reads.
        let stored: [UInt8] = [1, UInt8(page.count), 0, ~UInt8(page.count), 0xFF] + page
        let gzip: [UInt8] = [0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 3] + stored
        for encoding in [[], [("content-encoding", "gzip")], [("content-encoding", "x-gzip")]] {
            XCTAssertFalse(target.isReceipt(answer(200, gzip, nil, encoding), delivery))
            XCTAssertFalse(target.isReceipt(answer(200, page, nil, encoding), delivery))
        }
        XCTAssertFalse(
            target.isReceipt(answer(200, stored, nil, [("content-encoding", "deflate")]), delivery))
        let broken: [UInt8] = [0x1F, 0x8B, 9, 9, 9]
        XCTAssertTrue(target.isReceipt(answer(200, broken, nil), delivery), "no page, at least")
    }

    /// Bytes from outside: no body traps, and what begins like a page reports no error.
    func testAnyBytes() {
        var random = SplitMix(41)
        let pieces =
            AnswerContentTests.pages + AnswerContentTests.errors + AnswerContentTests.others
        for _ in 0..<sized(400, 3_000, 300_000) {
            var body: [UInt8] = []
            for _ in 0...random.below(3) {
                let piece = Array(pieces[random.below(pieces.count)].utf8)
                body += piece.prefix(random.below(piece.count + 1))
                if random.chance(3) { body += random.bytes(random.below(6)) }
            }
            if random.chance(3), !body.isEmpty {
                body[random.below(body.count)] = UInt8(random.below(256))
            }
            let outcome = answer(200, body, nil)
            let (isPage, isError) = (
                AnswerContent.isPage(outcome), AnswerContent.reportsError(outcome)
            )
            // Blanks alone count as a page if they are all that is looked at.
            if body.count < AnswerContent.lookedAtBytes { XCTAssertFalse(isPage && isError) }
        }
    }

    // ── What a probe proposes ──

    func testAnExpectationIsProposedThatTheServerMeets() throws {
        let cases: [([(String, String)], String)] = [
            ([("server", "nginx/1.22.1"), ("date", "now"), ("via", "1.1 a")], ""),
            ([("server", "a"), ("x-frame-options", "DENY"), ("x-stored", "1")], "header:x-stored"),
            (
                [
                    ("x-powered-by", "Express"), ("x-request-id", "1"), ("x-runtime", "0.1"),
                    ("x-ratelimit-limit", "1"), ("x-ratelimit-remaining-minute", "1"),
                    ("x-rate-limit-reset", "1"), ("x-aspnet-version", "4"),
                ], ""
            ),
            ([], ""),
            ([("x-\u{e4}", "1"), ("x-graylog-node-id", "z")], "header:x-graylog-node-id"),
        ]
        for (headers, expected) in cases {
            let outcome = answer(200, [], nil, headers)
            let text = Probe.expectation(outcome)
            XCTAssertEqual(text, expected)
            guard !text.isEmpty else { continue }
            XCTAssertTrue(try Expectation(text).isMet(by: outcome), text)
            XCTAssertFalse(try Expectation(text).isMet(by: answer(200, [], nil)), text)
        }
    }
}
