// B-NET-1, B-NET-2: what is known of a host's own request that failed. Every status and error is
// exactly one case, and nothing that is kept of the address is a secret.

import CordwoodFormats
import XCTest

@testable import CordwoodShip

final class RequestFailureTests: XCTestCase {
    private func failure(
        _ status: Int32, error: String = "", type: String = "", url: String = "",
        body: String = "", headers: [(name: String, value: String)] = []
    ) -> RequestFailure? {
        var result = NetworkResult()
        result.httpStatus = status
        result.error = error
        result.errorType = type
        result.url = url
        result.body = Array(body.utf8)
        result.headers = headers
        return RequestFailure(result, unixMs: 1_800_000_000_000)
    }

    func testB_NET_1_everyStatusWithAndWithoutAnError() {
        for status in Int32(-10)...1_100 {
            let kind = TransferOutcome.kind(httpStatus: status)
            let alone = failure(status)
            let broken = failure(status, error: "reset")
            switch status {
            case 0:
                XCTAssertEqual(alone?.detail.kind, .requestFailed)
                XCTAssertEqual(alone?.detail.cause, "no answer")
                XCTAssertEqual(broken?.detail.kind, .requestFailed)
            case 200...299:
                XCTAssertNil(alone, "\(status)")
                XCTAssertEqual(broken?.detail.kind, .requestFailed, "\(status)")
            default:
                XCTAssertEqual(alone?.detail.kind, kind, "\(status)")
                XCTAssertEqual(alone?.detail.cause, "HTTP \(status)")
                XCTAssertEqual(broken?.detail.kind, kind, "\(status)")
            }
            XCTAssertEqual(broken?.detail.cause, "reset")
            XCTAssertEqual(broken?.detail.httpStatus, status)
        }
        XCTAssertEqual(failure(0, type: "dns")?.detail.cause, "dns")
        XCTAssertEqual(failure(0, error: "no host", type: "dns")?.detail.cause, "dns: no host")
        XCTAssertEqual(failure(0, error: "DNS: no host", type: "dns")?.detail.cause, "DNS: no host")
        XCTAssertEqual(failure(200, type: "timeout")?.detail.kind, .requestFailed)
    }

    func testB_NET_1_addressesWithoutSecrets() {
        let cases = [
            ("https://a.example/b/c?token=s#f", "https://a.example/b/c", "https://a.example"),
            ("https://u:s@a.example:8443/b", "https://a.example:8443/b", "https://a.example:8443"),
            ("https://u:s@v@a.example?x", "https://a.example", "https://a.example"),
            ("//u:s@a.example/b@c", "//a.example/b@c", "//a.example"),
            ("u:s@a.example/b@c", "a.example/b@c", "/…"),
            ("https://a.example#u:s@b", "https://a.example", "https://a.example"),
            ("https://u:s@a.example\\b@c", "https://a.example\\b@c", "https://a.example"),
            ("/b?token=s", "/b", "/…"), ("?token=s", "", ""), ("", "", ""),
            ("http://a/\u{1b}[2J\n", "http://a/?[2J?", "http://a"),
        ]
        for (url, shown, origin) in cases {
            let found = failure(404, url: url)
            XCTAssertEqual(found?.url, shown, url)
            XCTAssertEqual(found?.origin, origin, url)
        }
        let long = failure(404, url: "http://a/" + String(repeating: "ü", count: 9_000))
        XCTAssertLessThanOrEqual(long?.url.utf8.count ?? 0, 2_052)
    }

    /// A '/', '?' or '#' in a password that is not encoded ends the host too early.
    func testB_NET_1_addressesWithAPasswordThatIsNotEncoded() {
        let cases = [
            ("https://svc:ab/cd@host/odata", "https://"),
            ("https://svc:ab?cd@host/odata", "https://"),
            ("https://svc:ab#cd@host/odata", "https://"),
            ("https://svc:1b\\cd@host/odata", "https://"),
            ("//svc:ab/cd@host", "//"), ("svc:ab/cd@host", ""),
            ("https://[svc:ab/cd@host", "https://"), ("https://svc]:7:ab/cd@host", "https://"),
            ("https://[::1]x:ab/cd@host", "https://"),
            ("https://[fe80::1]:8443/b", "https://[fe80::1]:8443/b"),
            ("https://[::1]/b:c", "https://[::1]/b:c"),
            ("a.example:8443/b:c", "a.example:8443/b:c"),
            ("https://a.example:/b", "https://a.example:/b"),
        ]
        for (url, shown) in cases {
            let found = failure(404, url: url)
            XCTAssertEqual(found?.url, shown, url)
            XCTAssertFalse(found?.origin.contains("ab") ?? true, url)
        }
        let moved = failure(302, headers: [("Location", "https://svc:ab/cd@host/odata")])
        XCTAssertEqual(moved?.detail.location, "https://")
    }

    func testB_NET_2_headersInAnyCase() {
        let body = #"{"error": {"code": "c", "message": "m"}}"#
        let found = failure(
            503, body: body, headers: [("RETRY-AFTER", "3"), ("Content-Language", "fr")])
        XCTAssertEqual(found?.detail.retryAfterMs, 3_000)
        XCTAssertEqual(found?.detail.odata?.language, "fr")
        let dated = failure(
            503,
            headers: [
                ("Retry-After", "Sun, 06 Nov 1994 08:49:47 GMT"),
                ("DATE", "Sun, 06 Nov 1994 08:49:37 GMT"),
            ])
        XCTAssertEqual(dated?.detail.retryAfterMs, 10_000)
        let moved = failure(301, headers: [("Location", "https://a.example/b?token=s")])
        XCTAssertEqual(moved?.detail.location, "https://a.example")
    }

    /// A host may return an error to us with any content.
    func testB_NET_5_anyTimeToWait() throws {
        var detail = try XCTUnwrap(failure(503)).detail
        for (ms, seconds) in [(0, 0), (1, 1), (1_000, 1), (1_001, 2)] as [(UInt64, UInt64)] {
            detail.retryAfterMs = ms
            XCTAssertTrue(detail.text(.english).hasSuffix(" It asks to wait \(seconds) s."))
        }
        detail.retryAfterMs = .max
        XCTAssertTrue(detail.text(.german).hasSuffix(" 18446744073709552 s zu warten."))
        XCTAssertTrue(detail.fields.contains { $0.value == .number(18_446_744_073_709_552) })
    }

    func testB_NET_5_ofHalfAnAnswerTheCauseIsSaid() {
        let half = failure(200, error: "reset by peer")?.detail
        XCTAssertEqual(
            half?.text(.english),
            "The server could not be reached, or did not answer. Cause: reset by peer.")
    }
}
