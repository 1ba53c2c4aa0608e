// Answers seen from servers, word for word, and what each dialect makes of them. They complement
// the tests of each kind: a fake of ours would not think of these words.

import XCTest

@testable import CordwoodCore
@testable import CordwoodShip
@testable import CordwoodStore

final class DialectAnswerTests: XCTestCase {
    private let id = "00000000-0000-4000-8000-000000000001"

    private func target(
        _ kind: String, _ change: (inout TargetOptions) -> Void = { _ in }
    ) throws -> Target {
        var options = TargetOptions(url: "http://h:1/in")
        options.kind = kind
        change(&options)
        return try Target(options)
    }

    private func delivery(_ ordinals: [Range<UInt64>] = []) -> Delivery {
        var delivery = Delivery(
            id: id, archiveID: id, range: nil, fileName: "f", encoding: .none,
            credentials: Credentials(), nowUnixMs: 5)
        delivery.ordinals = ordinals
        delivery.entries = UInt32(ordinals.reduce(0) { $0 + $1.count })
        return delivery
    }

    private func outcome(_ status: Int32, _ body: String, type: String? = nil) -> TransferOutcome {
        var outcome = TransferOutcome(
            kind: TransferOutcome.kind(httpStatus: status), httpStatus: status,
            cause: "HTTP \(status)")
        outcome.body = Array(body.utf8)
        if let type { outcome.headers = [("content-type", type)] }
        return outcome
    }

    // ── Loki's interface ──

    func testGreptimeSaysHowManyRowsItHas() throws {
        let target = try target("loki")
        func isReceipt(_ body: String) -> Bool {
            target.isReceipt(outcome(200, body, type: "application/json"), delivery())
        }
        XCTAssertTrue(isReceipt(#"{"output":[{"affectedrows":4}],"execution_time_ms":3}"#))
        XCTAssertTrue(isReceipt(#"{"code":0,"output":[{"affectedrows":4}]}"#))
        for body in [
            #"{"code":1004,"error":"no such table","execution_time_ms":0}"#,
            #"{"code":1004,"output":[]}"#, #"{"output":[],"error":"x"}"#,
            #"{"code":"x","output":[]}"#,
            "{}", "[]", "ok", #"{"status":"success"}"#,
        ] {
            XCTAssertFalse(isReceipt(body), body)
        }
    }

    // ── Elasticsearch's ──

    private func item(_ number: Int, _ status: Int, _ type: String = "") -> String {
        let error = type.isEmpty ? "" : #","error":{"type":"\#(type)","reason":"r"}"#
        return #"{"create":{"_id":"\#(id(number))","status":\#(status)\#(error)}}"#
    }

    private func id(_ number: Int) -> RecordID {
        RecordID(lane: LaneID(high: 5, low: 9), threadSerial: 2, sequence: UInt64(number))
    }

    /// A delivery whose records have these ids.
    private func delivery(of ordinals: [Range<UInt64>]) -> Delivery {
        var made = delivery(ordinals)
        made.recordIDs = ordinals.joined().map { id(Int($0)) }
        return made
    }

    private func bulk(
        _ items: String..., of ordinals: [Range<UInt64>]
    ) throws -> AnswerVerdict? {
        let body = #"{"errors":true,"items":[\#(items.joined(separator: ","))]}"#
        return try target("elasticsearch").dialect.verdict(
            outcome(200, body), delivery(of: ordinals))
    }

    /// A cluster at its shard limit answers 400 to each document (validation_exception: "this
    /// action would add [2] shards, but this cluster currently has [1000]/[1000] …").
    func testDocumentsPayForNoIndexFault() throws {
        for type in [
            "validation_exception", "invalid_index_name_exception", "index_closed_exception",
        ] {
            XCTAssertEqual(
                try bulk(item(0, 400, type), item(1, 400, type), of: [0..<2]), .stray, type)
            XCTAssertEqual(
                try bulk(item(0, 201), item(1, 400, type), of: [0..<2]), .stray, type)
            XCTAssertEqual(
                try bulk(item(0, 403), item(1, 400, type), of: [0..<2]), .pause, type)
        }
    }

    /// Another fault of the cluster, whose name we do not know (a missing pipeline:
    /// illegal_argument_exception), refuses everything: halves are sent, and nothing is kept before
    /// the target has taken something.
    func testABodyOfWhichNothingIsTakenIsNoMatterOfItsDocuments() throws {
        let type = "illegal_argument_exception"
        XCTAssertEqual(
            try bulk(item(0, 400, type), item(1, 400, type), of: [0..<2]), .refuse)
        XCTAssertEqual(try bulk(item(7, 400, type), of: [7..<8]), .refuse)
        XCTAssertEqual(
            try bulk(item(0, 400, type), item(1, 409), of: [0..<2]),
            .sent(Refused(count: 1, ordinals: [0])))
        XCTAssertEqual(
            try bulk(item(0, 400, type), item(1, 400, "document_parsing_exception"), of: [0..<2]),
            .sent(Refused(count: 2, ordinals: [0, 1])))
    }

    func testIDsThatAreNotOfThisPartProveNothing() throws {
        XCTAssertEqual(
            try bulk(item(3, 201), item(4, 400), of: [3..<5]),
            .sent(Refused(count: 1, ordinals: [4])))
        XCTAssertEqual(try bulk(item(3, 201), item(5, 400), of: [3..<5]), .stray)
        XCTAssertEqual(try bulk(item(2, 429), item(4, 201), of: [3..<5]), .stray)
        // It says nothing about the others.
        XCTAssertEqual(try bulk(item(4, 400), of: [3..<5]), .stray)
    }

    /// One document of two, or one of them twice: the other one is not there.
    func testASuccessThatLeavesDocumentsOutIsNone() throws {
        func success(_ items: String...) throws -> AnswerVerdict? {
            let body = #"{"errors":false,"items":[\#(items.joined(separator: ","))]}"#
            return try target("elasticsearch").dialect.verdict(
                outcome(200, body), delivery(of: [0..<2]))
        }
        XCTAssertEqual(try success(item(0, 201), item(1, 201)), .sent(.none))
        XCTAssertEqual(try success(item(1, 201), item(0, 409)), .sent(.none), "in any order")
        XCTAssertEqual(try success(item(0, 201)), .stray)
        XCTAssertEqual(try success(), .stray)
        XCTAssertEqual(try success(item(0, 201), item(0, 201)), .stray)
    }

    // ── Datadog's ──

    func testDatadogsErrorsAreNoReceipt() throws {
        let target = try target("datadog")
        func isReceipt(_ body: String) -> Bool {
            target.isReceipt(outcome(202, body, type: "application/json"), delivery())
        }
        for body in ["", "{}", #"{"errors":[]}"#, #"{"status":"ok"}"#] {
            XCTAssertTrue(isReceipt(body), body)
        }
        for body in [#"{"errors":[{"detail":"x"}]}"#, #"{"errors":"x"}"#, "ok"] {
            XCTAssertFalse(isReceipt(body), body)
        }
    }

    /// Record ids do not contain the records' numbers: the part knows which record has which id.
    func testRecordsOwnIDsOfAnswers() throws {
        let lane = LaneID(high: 0x0102_0304_0506_0708, low: 9)
        var delivery = delivery([3..<5, 9..<10])
        delivery.recordIDs = [7, 8, 9].map {
            RecordID(lane: lane, threadSerial: 2, sequence: $0)
        }
        func item(_ sequence: UInt64, _ status: Int) -> String {
            let id = RecordID(lane: lane, threadSerial: 2, sequence: sequence)
            return #"{"create":{"_id":"\#(id)","status":\#(status),"error":{"type":"t"}}}"#
        }
        func verdict(_ items: String...) throws -> AnswerVerdict? {
            let body = #"{"errors":true,"items":[\#(items.joined(separator: ","))]}"#
            return try target("elasticsearch").dialect.verdict(outcome(200, body), delivery)
        }
        XCTAssertEqual(
            try verdict(item(7, 201), item(8, 409), item(9, 400)),
            .sent(Refused(count: 1, ordinals: [9])))
        XCTAssertEqual(
            try verdict(item(9, 201), item(7, 400), item(8, 201)),
            .sent(Refused(count: 1, ordinals: [3])), "in any order")
        XCTAssertEqual(try verdict(item(7, 201), item(8, 201), item(10, 400)), .stray)
        XCTAssertEqual(try verdict(item(7, 201), item(8, 400)), .stray, "one is missing")
    }

    func testVictoriaLogsGetsNoLineThatItWouldDrop() throws {
        let none = try target("elasticsearch") { $0.parameters = "index_in=none" }
        XCTAssertEqual(none.dialect.limits.entryBytes, 256_000)
        XCTAssertEqual(try target("elasticsearch").dialect.limits.entryBytes, 0)
        let process = CordwoodStore.ProcessInfo(
            laneID: .zero, bootID: .zero, processID: 812, name: "test", createdRealtime: 0,
            createdMonotonic: 0, resource: [])
        let thread = ThreadInfo(process: process, serial: 1, threadID: 813, name: "")
        var given = Given(staged: Staged(thread: thread))
        given.staged.model.level = 9
        given.staged.model.message = [UInt8](repeating: 0x78, count: 300_000)
        given.staged.model.originalLength = 300_000
        let server = try FakeServer("elasticsearch")
        let store = try TestStore()
        let service = try store.service([given])
        _ = try service.addTarget(
            store.target(server.url + "/insert/elasticsearch?_msg_field=message") {
                $0.kind = "elasticsearch"
                $0.parameters = "index_in=none"
            })
        XCTAssertEqual(service.pass().0, .ok, "\(server.requests.map(\.said))")
        let document = try XCTUnwrap(server.stored.first?["document"] as? Row)
        let message = try XCTUnwrap(document["message"] as? String)
        XCTAssertTrue(message.hasSuffix("… (300000 bytes)"), String(message.suffix(40)))
    }

    // ── Loggly's ──

    func testAnAnswerOfLogglysIsNoPage() throws {
        let target = try target("loggly") { $0.authToken = "t" }
        for body in [#"{"response" : "ok"}"#, "\n  {\"response\":\"ok\"}"] {
            XCTAssertTrue(target.isReceipt(outcome(200, body, type: "text/html"), delivery()))
        }
        let http = try self.target("http") { $0.format = "ndjson" }
        for page in ["<html>{}</html>", " \n<p>", "Please sign in", "\u{FEFF}<html>"] {
            XCTAssertFalse(
                http.isReceipt(outcome(200, page, type: "text/html; charset=utf-8"), delivery()),
                page)
        }
    }

    // ── Probes ──

    private func finding(
        _ kind: String, _ status: Int32, _ body: String, type: String = "application/json"
    ) throws -> Probe.Finding {
        try target(kind).dialect.probe.read(outcome(status, body, type: type))
    }

    func testProbesKnowServersThatAnswerInTheirOwnWay() throws {
        let healthy = Probe.Finding.fine("an event collector is healthy")
        for text in [
            #"{"text":"HEC is healthy","code":17}"#, #"{"text":"Success","code":200}"#,
            #"{"text":"Success","code":0}"#,
        ] {
            XCTAssertEqual(try finding("splunk", 200, text), healthy, text)
        }
        XCTAssertEqual(
            try finding("splunk", 503, #"{"text":"HEC is unhealthy","code":18}"#), .wrong("code 18")
        )
        XCTAssertEqual(
            try finding("splunk", 400, #"{"text":"No data","code":0}"#), .wrong("code 0"))
        XCTAssertEqual(
            try finding("otlp", 500, #"{"message":"internal error: no records"}"#),
            .wrong("a receiver answers, but not to an empty export"))
        XCTAssertEqual(
            try finding("otlp", 200, #"{"partial_success":{"rejected_log_records":0}}"#),
            .fine("a receiver takes an empty export"))
        XCTAssertEqual(try finding("otlp", 502, "<p>bad gateway</p>", type: "text/html"), .foreign)
        XCTAssertEqual(try finding("otlp", 404, #"{"message":"Route not found"}"#), .foreign)
        // Fluent Bit 5.1.1, to which no harmless export can be sent.
        XCTAssertEqual(
            try finding("otlp", 400, "invalid request: deserialisation error", type: "text/plain"),
            .fine("Fluent Bit is there, which takes no export without records"))
    }
}
