// What real servers answered (Tests/TestSupport/fakes/recorded.json, made by record.py), and what
// we make of it.

import Foundation
import XCTest

@testable import CordwoodShip
@testable import CordwoodStore

final class RecordedAnswerTests: XCTestCase {
    private struct Entry: Decodable {
        struct Answer: Decodable {
            var status: Int32
            var headers: [String: String]
            var body: String
        }
        var server: String
        var version: String?
        var source: String?
        var kind: String
        var `case`: String
        var entries: Int
        var means: String
        var answer: Answer
    }

    static let recordID = "0198c0de000040008000000000000001"
    static let archiveID = "0198c0de-0000-4000-8000-000000000001"

    private func entries() throws -> [Entry] {
        let file = URL(fileURLWithPath: FakeServer.script).deletingLastPathComponent()
            .appendingPathComponent("recorded.json")
        return try JSONDecoder().decode([Entry].self, from: Data(contentsOf: file))
    }

    /// The meaning for an attempt whose target has taken that encoding before.
    private func meaning(_ entry: Entry) throws -> String {
        var options = TargetOptions(url: "http://127.0.0.1:9/recorded")
        options.kind = entry.kind
        if entry.kind == "http" { options.format = "ndjson" }
        if entry.kind == "clickhouse" { options.parameters = "table=logs" }
        if entry.kind == "elasticsearch", entry.server != "Elasticsearch" {
            options.parameters = "index_in=none"
        }
        let target = try Target(options)
        var delivery = Delivery(
            id: RecordedAnswerTests.archiveID, archiveID: RecordedAnswerTests.archiveID, range: nil,
            fileName: "", encoding: .gzip, credentials: Credentials(), nowUnixMs: 5)
        delivery.entries = UInt32(entry.entries)
        delivery.ordinals = [0..<UInt64(entry.entries)]
        // As in the bodies that record.py sent.
        delivery.recordIDs = (0..<entry.entries).compactMap {
            RecordID(RecordedAnswerTests.recordID + String(format: "%016x", $0))
        }
        delivery.isEncodingProven = true
        var outcome = TransferOutcome(
            kind: TransferOutcome.kind(httpStatus: entry.answer.status),
            httpStatus: entry.answer.status, cause: "HTTP \(entry.answer.status)")
        outcome.headers = entry.answer.headers.map { ($0.key, $0.value) }
        outcome.body = Array(entry.answer.body.utf8)
        if outcome.kind == .success, !target.isReceipt(outcome, delivery) { return "stray" }
        let verdict =
            target.dialect.verdict(outcome, delivery)
            ?? AnswerVerdict.judge(
                outcome, isCollector: false, isOnlyIfAbsent: false, isEncodingProven: true,
                nowUnixMs: 5)
        return switch verdict {
        case .sent(let refused): refused.count == 0 ? "sent" : "sent, \(refused.count) refused"
        case .partly(let again, let refused, _, _):
            "\(again.count) again, \(refused.count) refused"
        case .retry: "retry"
        case .pause: "pause"
        case .forbid: "forbid"
        case .shrink: "shrink"
        case .simplify: "simplify"
        case .refuse: "refuse"
        case .stray: "stray"
        }
    }

    func testWhatRealServersAnswered() throws {
        let entries = try entries()
        XCTAssertGreaterThan(entries.count, 20)
        for entry in entries {
            let what = "\(entry.server), kind \(entry.kind): \(entry.case)"
            XCTAssertNotNil(entry.version ?? entry.source, what)
            XCTAssertEqual(try meaning(entry), entry.means, what)
        }
    }
}
