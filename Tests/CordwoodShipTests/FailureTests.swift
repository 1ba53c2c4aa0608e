// B-NET-1, B-NET-4, B-NET-5: what is known of a failed transfer, what is said of it in both
// languages, and that none of it is secret.

import CordwoodFormats
import Foundation
import XCTest

@testable import CordwoodShip

final class FailureTests: XCTestCase {
    private func outcome(
        _ status: Int32, headers: [(name: String, value: String)] = [], body: String = ""
    ) -> TransferOutcome {
        var outcome = TransferOutcome(
            kind: TransferOutcome.kind(httpStatus: status), httpStatus: status,
            cause: "HTTP \(status)")
        outcome.headers = headers
        outcome.body = Array(body.utf8)
        return outcome
    }

    private func detail(
        _ status: Int32, headers: [(name: String, value: String)] = [], body: String = ""
    ) -> FailureDetail {
        FailureDetail(
            outcome(status, headers: headers, body: body), nowUnixMs: 1_800_000_000_000)
    }

    func testB_NET_1_everyStatusIsExactlyOneCase() {
        for status in Int32(-10)...1_100 {
            let kind = TransferOutcome.kind(httpStatus: status)
            let expected: OutcomeKind =
                switch status {
                case 200...299: .success
                case 300...399: .redirection
                case 400...499: .client
                case 500...599: .server
                default: .unknown
                }
            XCTAssertEqual(kind, expected, "\(status)")
        }
        let failed = FailureDetail(
            .failed("Could not resolve host", isUnreachable: true), nowUnixMs: 0)
        XCTAssertEqual(failed.kind, .requestFailed)
        XCTAssertEqual(failed.cause, "Could not resolve host")
        XCTAssertEqual(detail(777).cause, "HTTP 777", "an unknown cause is kept")
    }

    func testB_NET_1_locationWithoutSecrets() {
        func shown(_ text: String) -> String {
            detail(302, headers: [("location", text)]).location
        }
        // Loggly's token is in the path.
        XCTAssertEqual(shown("https://a.example/inputs/s3cret/"), "https://a.example")
        XCTAssertEqual(shown("https://a.example?token=s#f"), "https://a.example")
        XCTAssertEqual(shown("https://a.example#f"), "https://a.example")
        XCTAssertEqual(shown("https://a.example\\s3cret"), "https://a.example")
        XCTAssertEqual(shown("https://u:secret@a.example:8443/b"), "https://a.example:8443")
        XCTAssertEqual(shown("//u:secret@a.example/b@c"), "//a.example")
        for relative in ["/login?next=x", "s3cret", "?s3cret", "/s3cret://a", "javascript:s3cret"] {
            XCTAssertEqual(shown(relative), "/…", relative)
        }
        XCTAssertEqual(shown(""), "")
        XCTAssertEqual(shown("http://a\u{1b}[2J/"), "http://a?[2J")
        XCTAssertEqual(
            shown("http://" + String(repeating: "x", count: 9_000)).utf8.count, 512)
        XCTAssertEqual(
            detail(404, headers: [("location", "/x")]).location, "", "of redirections only")
    }

    func testB_NET_1_retryAfter() {
        XCTAssertEqual(detail(429, headers: [("retry-after", "3")]).retryAfterMs, 3_000)
        XCTAssertEqual(
            detail(503, headers: [("retry-after", "Fri, 04 Nov 2014 23:59:59 GMT")]).retryAfterMs,
            0)
        XCTAssertNil(detail(503).retryAfterMs)
        XCTAssertNil(detail(503, headers: [("retry-after", "soon")]).retryAfterMs)
    }

    func testB_NET_2_decodedForClientAndServerErrorsOnly() {
        let body = #"{"error": {"code": "c", "message": {"lang": "en", "value": "m"}}}"#
        for status: Int32 in [400, 404, 500] {
            XCTAssertEqual(detail(status, body: body).odata?.message, "m", "\(status)")
        }
        for status: Int32 in [302, 600] { XCTAssertNil(detail(status, body: body).odata) }
        XCTAssertEqual(
            detail(400, headers: [("content-language", "fr")], body: #"{"error":{"code":"c"}}"#)
                .odata?.language, "fr")
    }

    func testB_NET_2_fieldsOfTheRecord() {
        let body =
            #"{"error": {"code": "c", "message": {"lang": "en", "value": "m"}, "innererror":"#
            + #" {"transactionid": "TX1", "errordetails": [{"code": "d", "message": "n","#
            + #" "propertyref": "P", "severity": "error"}]}}}"#
        let fields = detail(400, headers: [("retry-after", "2")], body: body).fields
        let found = Dictionary(fields.map { ($0.key, $0.value) }, uniquingKeysWith: { a, _ in a })
        XCTAssertEqual(found["outcome"], .text("client"))
        XCTAssertEqual(found["transaction.id"], .text("TX1"))
        XCTAssertEqual(found["error.code"], .text("c"))
        XCTAssertEqual(found["error.message"], .text("m"))
        XCTAssertEqual(found["error.detail"], .text("error d: n (P)"))
        XCTAssertEqual(found["retry_after_s"], .number(2))
        XCTAssertEqual(detail(404).fields.map(\.key), ["outcome"])
        let many = (1...9).map { "{\"code\": \"d\($0)\", \"message\": \"n\"}" }
        let all = detail(
            400,
            body: #"{"error": {"code": "c", "message": "m", "details": ["#
                + many.joined(separator: ",") + "]}}"
        ).fields.map { $0.key }
        XCTAssertEqual(
            all.filter { $0.hasPrefix("error.detail") },
            ["error.detail"] + (2...8).map { "error.detail_\($0)" }, "no key twice")
    }

    func testB_NET_5_everyCaseInBothLanguages() {
        var seen: Set<String> = []
        for language in OutcomeLanguage.allCases {
            for raw in Int32(0)...6 {
                let text = "\(OutcomeKind(rawValue: raw)!.sentence(language))"
                XCTAssertTrue(text.hasSuffix("."), text)
                XCTAssertTrue(seen.insert(text).inserted, "twice: \(text)")
            }
        }
        XCTAssertEqual(seen.count, 14)
    }

    func testB_NET_5_languages() {
        for tag in ["de", "DE", "de-AT", "de_DE.UTF-8", "de@euro"] {
            XCTAssertEqual(OutcomeLanguage(tag), .german, tag)
        }
        for tag in [nil, "", "en", "en-GB", "fr", "deu", "d", "C", "POSIX"] {
            XCTAssertEqual(OutcomeLanguage(tag), .english, tag ?? "nil")
        }
    }

    func testB_NET_5_whatIsKnownIsSaid() {
        let failed = FailureDetail(.failed("Connection timed out"), nowUnixMs: 0)
        XCTAssertEqual(
            failed.text(.english),
            "The server could not be reached, or did not answer. Cause: Connection timed out.")
        XCTAssertEqual(
            failed.text(.german),
            "Der Server war nicht zu erreichen oder hat nicht geantwortet. Ursache: Connection "
                + "timed out.")
        let moved = detail(302, headers: [("location", "https://b.example/x?t=secret")])
        XCTAssertEqual(
            moved.text(.english),
            "The server points to another address. HTTP 302. Address: https://b.example.")
        XCTAssertEqual(
            moved.text(.german),
            "Der Server verweist auf eine andere Adresse. HTTP 302. Adresse: https://b.example.")
        let body =
            #"{"error": {"code": "SY/530", "message": {"lang": "en", "value": "No such team"},"#
            + #" "innererror": {"transactionid": "TX1"}}}"#
        let client = detail(413, headers: [("retry-after", "2")], body: body)
        XCTAssertEqual(
            client.text(.english),
            "The server refused what was sent. HTTP 413: too large. The server says: “No such "
                + "team” (code SY/530, transaction TX1). It asks to wait 2 s.")
        XCTAssertEqual(
            client.text(.german),
            "Der Server hat die Daten abgelehnt. HTTP 413: die Daten sind zu groß. Der Server "
                + "meldet: „No such team“ (Code SY/530, Transaktion TX1). Er bittet, 2 s zu warten."
        )
        for status: Int32 in [401, 403, 404, 407, 408, 413, 415, 429, 503, 507] {
            XCTAssertNotEqual(
                detail(status).text(.english).count,
                "\(detail(status).kind.sentence(.english)) HTTP \(status).".count)
            XCTAssertNotEqual(detail(status).text(.english), detail(status).text(.german))
        }
        XCTAssertEqual(
            detail(500).text(.german), "Auf dem Server ist ein Fehler aufgetreten. HTTP 500.")
        XCTAssertEqual(
            detail(700).text(.english),
            "The server gave an answer that is not understood. HTTP 700.")
    }

    func testB_NET_4_lastOfEachTarget() {
        let log = FailureLog()
        XCTAssertNil(log.last(target: nil))
        func failure(_ target: String, _ status: Int32) -> TransferFailure {
            TransferFailure(
                detail: detail(status), target: target, archive: "a.cwa", attempt: 1, unixMs: 5)
        }
        log.note(failure("a", 500))
        log.note(failure("b", 404))
        XCTAssertEqual(log.last(target: "a")?.detail.httpStatus, 500)
        XCTAssertEqual(log.last(target: nil)?.target, "b")
        log.note(failure("a", 503))
        XCTAssertEqual(log.last(target: nil)?.detail.httpStatus, 503)
        XCTAssertNil(log.last(target: "c"))
        for number in 0..<1_000 { log.note(failure("t\(number)", 500)) }
        XCTAssertNil(log.last(target: "a"), "bounded")
        XCTAssertEqual(log.last(target: "t999")?.detail.httpStatus, 500)
    }
}
