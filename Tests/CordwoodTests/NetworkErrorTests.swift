// NetworkError without Foundation's URLSession (B-NET-3, B-NET-4): its cases, its record with
// the task's context, and that secrets which a server repeats are in no record.

import Cordwood
import Foundation
import XCTest

final class NetworkErrorTests: MessageCase {
    private func error(_ status: Int32, _ body: String = "") throws -> NetworkError {
        var result = NetworkResult()
        result.httpStatus = status
        result.body = Array(body.utf8)
        result.method = "GET"
        result.url = "https://me:hush@api.example.com/teams?token=hush"
        result.exchangeID = "9f3c5a0de1b27788"
        return try XCTUnwrap(NetworkError(result))
    }

    func testB_NET_3_eachCase() throws {
        func word(_ error: NetworkError) -> String {
            switch error {
            case .requestFailed: "request_failed"
            case .redirection: "redirection"
            case .client: "client"
            case .server: "server"
            case .unknown: "unknown"
            }
        }
        for status: Int32 in [0, 302, 404, 500, 700] {
            let error = try error(status)
            XCTAssertEqual(word(error), error.detail.kind.word)
            XCTAssertEqual("\(error)", error.localizedDescription())
            XCTAssertNotEqual("\(error)", error.localizedDescription(language: "de"))
            let now = Date().timeIntervalSince1970 * 1_000
            XCTAssertLessThan(abs(now - Double(error.failure.unixMs)), 60_000)
        }
        var fine = NetworkResult()
        fine.httpStatus = 204
        XCTAssertNil(NetworkError(fine))
    }

    func testB_NET_4_itsRecord() throws {
        let body =
            #"{"error": {"code": "c", "message": {"lang": "en", "value": "m"}, "innererror":"#
            + #" {"transactionid": "TX1"}}}"#
        let error = try error(403, body)
        let ids = try XCTUnwrap(
            TraceIDs(traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"))
        Context.with(["user": "ann", "cause": "not this"]) {
            Context.withTrace(ids) {
                XCTAssertEqual(error.log(to: log, "teams", fields: ["page": 2]), 0)
            }
        }
        XCTAssertEqual(error.log(to: log, level: .trace), 1, "below the threshold")
        let record = try XCTUnwrap(records().first)
        XCTAssertEqual(
            record.message, "teams: GET https://api.example.com/teams: \(error)")
        XCTAssertTrue(record.message.contains("transaction TX1"))
        XCTAssertEqual(
            record.fields.map { "\($0.key)" },
            [
                "http.request.method", "url.full", "http.status", "cause", "outcome",
                "transaction.id", "error.code", "error.message", "http.id", "page", "user",
            ])
        XCTAssertEqual(record.fields.first { $0.key == "cause" }?.value, .string("HTTP 403"))
        XCTAssertEqual(
            record.fields.first { $0.key == "http.id" }?.value, .string("9f3c5a0de1b27788"))
        XCTAssertEqual(record.traceID, "4bf92f3577b34da6a3ce929d0e0e4736")
        XCTAssertEqual(record.level, Level.warn.number)
        XCTAssertEqual(try records().count, 1)
    }

    func testB_NET_4_secretsAreReplacedByTheEnginesRules() throws {
        var options = HTTPCaptureOptions()
        options.redactPatterns = ["ACME-[0-9]+"]
        let body = #"{"error": {"code": "ACME-1", "message": "password=hush ACME-2"}}"#
        let error = try error(500, body)
        XCTAssertEqual(error.log(to: log), 0, "by the usual rules, where the host gave none")
        try engine.setHTTPCapture(options)
        XCTAssertEqual(error.log(to: log), 0)
        let found = try records()
        XCTAssertEqual(found.map(\.level), [Level.error.number, Level.error.number])
        for record in found {
            let text = record.message + "\(record.fields)"
            XCTAssertFalse(text.contains("hush"), text)
        }
        XCTAssertTrue(found[0].message.contains("ACME-2"))
        XCTAssertFalse((found[1].message + "\(found[1].fields)").contains("ACME-"))
        try engine.close()
        XCTAssertLessThan(error.log(to: log), 0)
    }

    func testExchangeNoteFollowsTheTask() async {
        let note = ExchangeNote()
        XCTAssertNil(note.id)
        let seen = await Context.with(exchangeNote: note) {
            await Context.with(["a": 1]) { Context.fields.map(\.key) }
        }
        XCTAssertEqual(seen, ["a"])
        XCTAssertNil(note.id)
    }
}
