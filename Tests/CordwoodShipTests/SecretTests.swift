// No part of a secret that a request contained is shown, in whatever form its server repeats it:
// cut, escaped, decoded by one of our readers.

import CordwoodFormats
import XCTest

@testable import CordwoodShip
@testable import CordwoodStore

final class SecretTests: XCTestCase {
    private let token = "aB+cd/ef=gh<&>\"ij"

    private func target(_ change: (inout TargetOptions) -> Void) throws -> Target {
        var options = TargetOptions(url: "http://h:1/in")
        change(&options)
        return try Target(options)
    }

    /// The cause as in a state and a log record, and the error that is decoded from it.
    private static let ids = (0..<2).map {
        RecordID(lane: .zero, threadSerial: 1, sequence: $0)
    }

    private func shown(
        _ target: Target, _ status: Int32, _ body: [UInt8], type: String = "application/json"
    ) throws -> (cause: String, detail: FailureDetail) {
        var delivery = Delivery(
            id: "i", archiveID: "i", range: nil, fileName: "f", encoding: .none,
            credentials: target.keeper.current, nowUnixMs: 5)
        delivery.entries = 2
        delivery.ordinals = [0..<2]
        delivery.recordIDs = SecretTests.ids
        let sent = Body(BodyStream([1]), contentBytes: 1, encoding: .none)
        var outcome = try target.send(
            &delivery, sent, bytesPerSecond: 0, isStopped: { false }
        ) { _ in
            var outcome = TransferOutcome(
                kind: TransferOutcome.kind(httpStatus: status), httpStatus: status,
                cause: "HTTP \(status)")
            outcome.headers = [("content-type", type)]
            outcome.body = body
            return outcome
        }
        let request = target.request(delivery, bytesPerSecond: 0)
        SentSecrets(request, also: delivery.credentials.secrets).clean(&outcome)
        return (outcome.cause, FailureDetail(outcome, nowUnixMs: 5))
    }

    /// Whether the text contains a beginning of the token of four bytes or more.
    private func holdsPart(_ text: String) -> Bool { text.contains(token.prefix(4)) }

    /// A credential of a few bytes is hidden where it stands for itself, and spoils no word.
    func testAShortSecretGarblesNoWord() throws {
        let cases: [(secret: String, text: String, cause: String)] = [
            ("t", "certificate of t, not t2 (t)", "certificate of ***, not t2 (***)"),
            ("ab", "ab about=ab a\\u0062 abab", "*** about=*** *** abab"),
            ("abc", "xabc abcx x-abc", "xabc abcx x-***"), ("abcd", "xabcdx", "x***x"),
            ("+", "a+b", "a+b"), ("+", "a + b", "a *** b"),
        ]
        for (secret, text, cause) in cases {
            for isUser in [false, true] {
                let target = try target {
                    $0.kind = "http"
                    $0.format = "ndjson"
                    if isUser {
                        ($0.authUser, $0.authPassword) = ("someone", secret)
                    } else {
                        $0.authToken = secret
                    }
                }
                let said = try shown(target, 422, Array(text.utf8), type: "text/plain").cause
                XCTAssertEqual(said, "HTTP 422: \(cause)")
            }
        }
    }

    func testASecretAcrossACutLeavesNothing() throws {
        let http = try target {
            $0.kind = "http"
            $0.format = "ndjson"
            $0.authToken = token
        }
        let otlp = try target {
            $0.kind = "otlp"
            $0.authToken = token
        }
        let s3 = try target {
            $0.kind = "s3"
            $0.url = "https://h/bucket"
            $0.authUser = "AK"
            $0.authPassword = token
        }
        for padding in 180...310 {
            let text = String(repeating: "x", count: padding) + token + " and more"
            let plain = try shown(http, 422, Array(text.utf8), type: "text/plain").cause
            XCTAssertFalse(holdsPart(plain), plain)
            var status: [UInt8] = []
            ProtobufBytes.append(0x12, Array(text.utf8), to: &status)
            let said = try shown(otlp, 400, status, type: "application/x-protobuf").cause
            XCTAssertFalse(holdsPart(said), said)
            let xml = "<Error><Code>InvalidToken</Code><Message>\(text)</Message></Error>"
            let bucket = try shown(s3, 400, Array(xml.utf8), type: "application/xml").cause
            XCTAssertFalse(holdsPart(bucket), bucket)
        }
    }

    /// ASP.NET writes `+` as \u002B, Gson `=` as \u003d, PHP `/` as \/, and all escape quotes.
    func testASecretIsFoundInEveryEscape() throws {
        let target = try target {
            $0.kind = "http"
            $0.format = "ndjson"
            $0.authToken = token
        }
        func written(_ escape: (UInt8) -> String) -> String {
            token.utf8.map { byte in
                let isPlain = (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte & 0xDF)
                return isPlain ? String(UnicodeScalar(byte)) : escape(byte)
            }.joined()
        }
        func hex(_ byte: UInt8) -> String { String(byte, radix: 16) }
        let json = [
            written { "\\u00\(hex($0))" }, written { "\\u00\(hex($0).uppercased())" },
            written { ([0x22, 0x2F].contains($0) ? "\\" : "") + String(UnicodeScalar($0)) },
            token.utf8.map { "\\u00\(hex($0))" }.joined(), written { "%\(hex($0))" },
        ]
        for text in json {
            let body = #"{"error":{"code":"c","message":{"lang":"en","value":"no: \#(text)."}}}"#
            let (cause, detail) = try shown(target, 400, Array(body.utf8))
            XCTAssertEqual(detail.odata?.message, "no: ***.", text)
            XCTAssertTrue(cause.contains("no: ***."), cause)
        }
        for text in [written { "&#\($0);" }, written { "&#x\(hex($0));" }] {
            let body = "<error><code>c</code><message xml:lang='en'>no: \(text).</message></error>"
            let (_, detail) = try shown(target, 400, Array(body.utf8), type: "application/xml")
            XCTAssertEqual(detail.odata?.message, "no: ***.", text)
        }
    }

    func testEscapesAreReadAsFarAsTheyGo() {
        func read(_ text: String) -> String? {
            let bytes = Array(text.utf8)
            return Escape.read(bytes, 0).map { found in
                String(decoding: found.bytes, as: UTF8.self) + "|"
                    + String(decoding: bytes[found.end...], as: UTF8.self)
            }
        }
        let cases = [
            (#"\u00fcx"#, "ü|x"), (#"\ud83d\ude00x"#, "😀|x"), (#"\/x"#, "/|x"), (#"\\n"#, #"\|n"#),
            ("%41x", "A|x"), ("&amp;x", "&|x"), ("&#228;", "ä|"), ("&#x10FFFF;", "\u{10FFFF}|"),
        ]
        for (text, found) in cases { XCTAssertEqual(read(text), found, text) }
        for text in [
            "\\", "\\u", #"\u00f"#, #"\ud83d"#, #"\ud83dx"#, #"\ud83d\u0041"#, #"\n"#, "%", "%4",
            "%4g",
            "&", "&#", "&#;", "&#x;", "&#xZ;", "&#99999999;", "&#1114112;", "&copy;", "&amp", "x",
        ] {
            XCTAssertNil(read(text), text)
        }
    }

    func testWhatNoSecretMayLookLikeStays() {
        let request = TransferRequest(
            method: "POST", url: "http://h/", headers: [], body: nil, settings: TransportSettings())
        let secrets = SentSecrets(request, also: [#"p\w%41&"#])
        XCTAssertEqual(secrets.cleaned(#"a p\w%41& b"#), "a *** b")
        XCTAssertEqual(secrets.cleaned(#"a p\\w%2541&amp; b"#), "a *** b")
        XCTAssertEqual(secrets.cleaned(#"100% \n & \"x\" p\w%41"#), #"100% \n & \"x\" p\w%41"#)
        XCTAssertEqual(SentSecrets(request).cleaned("a\\u0041"), "a\\u0041")
    }

    /// It is signed in where nobody else would look for it.
    func testTheSessionTokenOfS3IsASecret() throws {
        let target = try target {
            $0.kind = "s3"
            $0.url = "https://h/bucket"
            $0.authUser = "AK"
            $0.authPassword = "secret-key"
            $0.parameters = "session_token=\(token)"
        }
        XCTAssertEqual(target.keeper.current.token, token)
        let xml = "<Error><Code>InvalidToken</Code><Message>not \(token)</Message></Error>"
        let cause = try shown(target, 400, Array(xml.utf8), type: "application/xml").cause
        XCTAssertEqual(cause, "HTTP 400: InvalidToken: not ***")
        let own = try self.target {
            $0.kind = "s3"
            $0.url = "https://h/bucket"
            $0.authUser = "AK"
            $0.authPassword = "secret-key"
            $0.authToken = "given"
            $0.parameters = "session_token=\(token)"
        }
        XCTAssertEqual(own.keeper.current.token, "given")
        XCTAssertThrowsError(
            try self.target {
                $0.kind = "s3"
                $0.url = "https://h/bucket"
                $0.authUser = "AK"
                $0.parameters = "session_token=not ascii ü"
            })
    }

    func testTypesOfDocumentsErrorsHoldNoSecret() throws {
        let target = try target {
            $0.kind = "elasticsearch"
            $0.authToken = "t0ken-of-ours"
        }
        let type = String(repeating: "x", count: 60) + "t0ken-of-ours"
        let id = SecretTests.ids[0]
        let item = #"{"create":{"_id":"\#(id)","status":400,"error":{"type":"\#(type)"}}}"#
        let other = #"{"create":{"_id":"\#(SecretTests.ids[1])","status":201}}"#
        let body = #"{"errors":true,"items":[\#(item),\#(other)]}"#
        XCTAssertEqual(
            try shown(target, 200, Array(body.utf8)).cause,
            "HTTP 200: 400 " + String(repeating: "x", count: 60) + "***")
    }

    func testTheHostsTransportSaysNoSecret() throws {
        let host = ToldTransport { _ in
            throw UploadTransportError(String(repeating: "x", count: 250) + "h3ader-of-ours")
        }
        let outcome = try HostTransport(host).send("http://h/", headers: "X-Key: h3ader-of-ours")
        XCTAssertEqual(outcome.cause, String(repeating: "x", count: 250) + "***")
    }
}
