// NetworkError without Foundation's URLSession (B-NET-3, B-NET-4): its cases, its record with the
// task's context, and that no record contains secrets that a server repeats.

import Cordwood
import CordwoodCore
import CordwoodEngine
import CordwoodShip
import CordwoodStore
import CordwoodTrace
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

    /// Each text is redacted by itself: what we put before one must not hide a secret's name.
    func testB_NET_4_secretsAreReplacedInTheMessageAsInTheFields() throws {
        let texts = ["pwd=Hunter2", "pin=Hunter2", "password: Hunter2", "iban=Hunter2 of 7"]
        for text in texts {
            let odata = #"{"error": {"code": "X", "message": "\#(text)"}}"#
            XCTAssertEqual(try error(400, odata).log(to: log), 0)
            let listed =
                #"{"error": {"code": "\#(text)", "message": "m", "details": [{"code": "\#(text)","#
                + #" "message": "\#(text)", "target": "\#(text)"}]}}"#
            XCTAssertEqual(try error(400, listed).log(to: log), 0)
            var lost = NetworkResult()
            lost.error = text
            XCTAssertEqual(try XCTUnwrap(NetworkError(lost)).log(to: log), 0)
        }
        let found = try records()
        XCTAssertEqual(found.count, 3 * texts.count)
        for record in found {
            let text = record.message + "\(record.fields)"
            XCTAssertFalse(text.contains("Hunter2"), text)
            XCTAssertTrue(record.message.contains("[redacted]"), text)
        }
        XCTAssertTrue(
            found[0].message.hasSuffix(" The server says: “pwd=[redacted]” (code X)."),
            found[0].message)
    }

    /// The part that was cut off may have been what reveals a secret.
    func testB_NET_4_secretsThatWereCut() throws {
        let start = "see https://me:Hunter2"
        let more = String(repeating: "x", count: 4_093 - start.utf8.count)
        let body = #"{"error": {"code": "X", "message": "\#(more) \#(start)pass@a.example/"}}"#
        XCTAssertEqual(try error(400, body).log(to: log), 0)
        var result = NetworkResult()
        result.httpStatus = 404
        let path = String(repeating: "x", count: 2_010)
        result.url = "https://a.example/\(path)/eyJhbGciOiJIUzI1Ni"
        let cut = try XCTUnwrap(NetworkError(result))
        XCTAssertTrue(cut.failure.url.hasSuffix("/eyJhbGciOiJIUzI1Ni"))
        XCTAssertEqual(cut.log(to: log), 0)
        result.url += "IsInR5cCI6IkpXVCJ9"
        XCTAssertEqual(try XCTUnwrap(NetworkError(result)).log(to: log), 0)
        let found = try records().map { $0.message + "\($0.fields)" }
        XCTAssertFalse(found[0].contains("Hunter2"))
        XCTAssertTrue(found[1].contains("eyJ"), "it is whole, and no token")
        XCTAssertFalse(found[2].contains("eyJ"))
    }

    func testExchangeNoteFollowsTheTask() async {
        let note = ExchangeNote()
        XCTAssertNil(note.id)
        let seen = await Context.with(exchangeNote: note) {
            await Task.yield()
            return Context.with(["a": 1]) { Context.fields.map(\.key) }
        }
        XCTAssertEqual(seen, ["a"])
        XCTAssertNil(note.id)
    }
}
