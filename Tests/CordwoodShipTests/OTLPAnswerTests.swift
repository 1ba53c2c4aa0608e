// What an OTLP receiver's answers mean: empty successes, partial ones in either form, statuses, and
// a 400 that may be about the size.

import XCTest

@testable import CordwoodShip

final class OTLPAnswerTests: XCTestCase {
    /// ExportLogsServiceResponse{partial_success{rejected_log_records: 3, error_message: "old"}}
    private let partial: [UInt8] = [0x0A, 7, 0x08, 3, 0x12, 3] + Array("old".utf8)

    private func success(_ json: String) -> OTLPAnswer? { OTLPAnswer(Array(json.utf8)) }

    func testSuccessMaySayNothing() {
        XCTAssertEqual(success(""), OTLPAnswer())
        XCTAssertEqual(success("{}"), OTLPAnswer())
        XCTAssertEqual(success(#"{"partialSuccess":{}}"#), OTLPAnswer())
        XCTAssertEqual(OTLPAnswer([0x0A, 0]), OTLPAnswer())
    }

    func testPartialSuccessInBothForms() {
        let expected = OTLPAnswer(rejected: 3, message: "old")
        XCTAssertEqual(OTLPAnswer(partial), expected)
        XCTAssertEqual(
            success(#"{"partialSuccess":{"rejectedLogRecords":"3","errorMessage":"old"}}"#),
            expected)
        XCTAssertEqual(
            success(
                "{ \"partialSuccess\" : {\n\"rejectedLogRecords\" : 3, \"errorMessage\": \"old\" }}"
            ),
            expected)
        // A warning: all records were taken.
        XCTAssertEqual(
            success(#"{"partialSuccess":{"errorMessage":"slow \"down\""}}"#),
            OTLPAnswer(rejected: 0, message: #"slow "down""#))
    }

    func testNamesWithinStringsAreNoNames() {
        let text = #"{"partialSuccess":{"errorMessage":"\"rejectedLogRecords\":7"}}"#
        XCTAssertEqual(success(text)?.rejected, 0)
    }

    /// JSON of proto3 may also use the names of the .proto file, as Quickwit 0.8 does.
    func testNamesOfTheProtoFile() {
        XCTAssertEqual(
            success(#"{"partial_success":{"rejected_log_records":0,"error_message":""}}"#),
            OTLPAnswer())
        XCTAssertEqual(
            success(#"{"partial_success":{"rejected_log_records":"3","error_message":"old"}}"#),
            OTLPAnswer(rejected: 3, message: "old"))
        XCTAssertNil(success(#"{"partial_success":{},"took":1}"#))
    }

    /// A collector that names each record it refused.
    func testALongMessageHidesNoCount() throws {
        let long = String(repeating: "x", count: 200_000)
        let json = try XCTUnwrap(
            success(#"{"partialSuccess":{"errorMessage":"\#(long)","rejectedLogRecords":"5"}}"#))
        XCTAssertEqual(json.rejected, 5)
        var inner: [UInt8] = []
        ProtobufBytes.append(0x12, Array(long.utf8), to: &inner)
        inner += [0x08, 5]
        var message: [UInt8] = []
        ProtobufBytes.append(0x0A, inner, to: &message)
        XCTAssertEqual(OTLPAnswer(message), json)
        XCTAssertEqual(OTLPAnswer.shown(json.message).utf8.count, OTLPAnswer.messageBytesMax)
    }

    func testHostileAnswersSayNothing() {
        for cut in 0..<partial.count {
            _ = OTLPAnswer(Array(partial[..<cut]))
        }
        let wild: [[UInt8]] = [
            [UInt8](repeating: 0xFF, count: 100), [0x0A, 0xFF, 0xFF, 0xFF, 0xFF, 0x0F],
            [0x0A, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01, 1], [0x0B], [0x09],
            [0x0A, 0x0B, 0x08] + [UInt8](repeating: 0xFF, count: 9) + [0x01],
        ]
        for bytes in wild {
            XCTAssertEqual(OTLPAnswer(bytes)?.rejected ?? 0, 0)
            _ = OTLPAnswer.failure(bytes)
        }
        func rejected(_ number: String) -> UInt32? {
            success("{\"partialSuccess\":{\"rejectedLogRecords\":\(number)}}")?.rejected
        }
        XCTAssertEqual(rejected("99999999999999"), .max)
        XCTAssertNil(rejected("99999999999999999999999999"))
        XCTAssertEqual(rejected("-4"), 0)
        XCTAssertEqual(rejected("\"-4\""), 0)
        XCTAssertEqual(rejected("[3]"), 0)
        XCTAssertNil(success(#"{"rejectedLogRecords":3}"#))
        XCTAssertNil(success(#"{"partialSuccess":{"errorMessage":"ab"#))
        XCTAssertEqual(OTLPAnswer.shown("a\u{1}\nb"), "a  b")
    }

    // ── The dialect ──

    private func dialect(_ format: String = "otlp-protobuf", url: String = "http://h:4318/base/")
        throws -> any Dialect
    {
        var options = TargetOptions(url: url)
        options.kind = "otlp"
        options.format = format
        return try Target(options).dialect
    }

    private func delivery(
        _ encoding: BodyEncoding = .gzip, bytes: UInt64 = 0, isProven: Bool = true
    ) -> Delivery {
        var delivery = Delivery(
            id: "i", archiveID: "i", range: nil, fileName: "a.cwa", encoding: encoding,
            credentials: Credentials(), nowUnixMs: 0)
        delivery.contentBytes = bytes
        delivery.isEncodingProven = isProven
        return delivery
    }

    private func outcome(_ status: Int32, _ body: [UInt8] = [], type: String? = nil)
        -> TransferOutcome
    {
        var outcome = TransferOutcome(
            kind: TransferOutcome.kind(httpStatus: status), httpStatus: status,
            cause: "HTTP \(status)")
        outcome.body = body
        if let type { outcome.headers = [("content-type", type)] }
        return outcome
    }

    func testPathIsAppendedOnce() throws {
        XCTAssertEqual(try dialect().url(delivery()), "http://h:4318/base/v1/logs")
        XCTAssertEqual(
            try dialect(url: "https://h/v1/logs").url(delivery()), "https://h/v1/logs")
    }

    func testEverySuccessIsOneAndCountsWhatIsRefused() throws {
        let dialect = try dialect()
        for status: Int32 in [200, 201, 202, 204] {
            XCTAssertEqual(
                dialect.verdict(outcome(status), delivery()), .sent(.none), "\(status)")
        }
        XCTAssertEqual(dialect.verdict(outcome(200, partial), delivery()), .sent(Refused(count: 3)))
        XCTAssertEqual(dialect.verdict(outcome(200, [0xFF]), delivery()), .stray)
    }

    /// Quickwit answers protobuf with JSON, OpenObserve calls its protobuf JSON, and a missing type
    /// may mean either.
    func testTheContentSaysWhichFormItIs() throws {
        let json = Array(#"{"partialSuccess":{"rejectedLogRecords":"3"}}"#.utf8)
        for format in ["otlp-protobuf", "otlp-json"] {
            let dialect = try dialect(format)
            for type in [nil, "application/json; x", "application/x-protobuf", "text/plain"] {
                for body in [json, partial] {
                    let outcome = outcome(200, body, type: type)
                    XCTAssertTrue(dialect.isReceipt(outcome, delivery()), "\(format) \(type ?? "")")
                    XCTAssertEqual(
                        dialect.verdict(outcome, delivery()), .sent(Refused(count: 3)),
                        "\(format) \(type ?? "")")
                }
            }
        }
    }

    func testCauseSaysWhatTheReceiverSaid() throws {
        let dialect = try dialect()
        let body = Body(BodyStream([]), contentBytes: 0, encoding: .none)
        let request = TransferRequest(
            method: "POST", url: "http://h", headers: [], body: nil, settings: TransportSettings())
        let said = try dialect.send(request, delivery(), body) { _ in outcome(200, partial) }
        XCTAssertEqual(said.cause, "HTTP 200, 3 records refused: old")
        // google.rpc.Status{code: 3, message: "bad"}
        let status: [UInt8] = [0x08, 3, 0x12, 3] + Array("bad".utf8)
        let refused = try dialect.send(request, delivery(), body) { _ in outcome(400, status) }
        XCTAssertEqual(refused.cause, "HTTP 400: bad")
        let json = Array(#"{"code":3,"message":"bad"}"#.utf8)
        let other = try dialect.send(request, delivery(), body) { _ in outcome(400, json) }
        XCTAssertEqual(other.cause, "HTTP 400: bad")
    }

    /// Many collectors answer 400 to bodies that are too large.
    func testLargeBodiesAreHalvedOn400() throws {
        let dialect = try dialect()
        let large: UInt64 = 3 << 20
        XCTAssertEqual(dialect.verdict(outcome(400), delivery(bytes: large)), .shrink)
        XCTAssertEqual(
            dialect.verdict(outcome(400), delivery(.none, bytes: large, isProven: false)), .shrink)
        // The encoding is the likelier reason: that is the rule for every target.
        XCTAssertNil(dialect.verdict(outcome(400), delivery(bytes: large, isProven: false)))
        // It is not about the size.
        XCTAssertNil(dialect.verdict(outcome(400), delivery(bytes: 1 << 20)))
        for status: Int32 in [401, 404, 413, 415, 429, 500, 502, 503, 504] {
            XCTAssertNil(dialect.verdict(outcome(status), delivery(bytes: large)), "\(status)")
        }
    }
}
