// `cordwood transactions` and the exports of transactions: figures against a plain count, funnels,
// deletion, limits, malformed records.

import CordwoodEngine
import CordwoodStore
import CordwoodTestSupport
import CordwoodTrace
import Foundation
import XCTest

@testable import Cordwood
@testable import CordwoodCLI

final class TransactionsVerbTests: CommandCase {
    private func id(_ usecase: Int, _ number: Int) -> String {
        let digits = String(number, radix: 16, uppercase: true)
        let zeros = String(repeating: "0", count: 12 - digits.count)
        return "TXN\(usecase)-586AB00B-0A2C-4E61-9C53-\(zeros)\(digits)"
    }

    private static let second: UInt64 = 1_000_000_000
    private static let start: UInt64 = 1_790_000_000 * second

    /// A record `ms` after the start; nil: now, which retention does not delete.
    private func note(
        _ writer: Writer, _ id: String, _ op: String, ms: UInt64?, event: Int64? = nil,
        error: String? = nil, _ more: [(String, Value)] = []
    ) {
        var fields: [(String, Value)] = [("txn.op", .text(op)), ("txn.id", .text(id))]
        if let event { fields.append(("txn.event", .int(event))) }
        if let error { fields.append(("txn.error.code", .text(error))) }
        let uuid = id.suffix(36).filter { $0 != "-" }
        var trace = stride(from: 0, to: 32, by: 2).map { at -> UInt8 in
            let from = uuid.index(uuid.startIndex, offsetBy: at)
            return UInt8(uuid[from..<uuid.index(from, offsetBy: 2)], radix: 16) ?? 0
        }
        trace += [0, 0, 0, 0, 0, 0, 0, op == "join" ? 2 : 1, 1]
        writer.record(
            kind: 3, logger: "Transactions", time: ms.map { Self.start + $0 * 1_000_000 } ?? 0,
            message: "\(id) \(op)", trace: trace, fields + more)
    }

    func testFiguresAndFunnel() throws {
        try write { writer in
            // Ten begin. All but the last two have event 0, half have 1; four end, after 10…40 ms.
            for number in 0..<10 {
                let id = id(17, number)
                note(writer, id, "begin", ms: 0, [("txn.usecase.name", .text("Check\u{1B}out"))])
                if number < 8 {
                    note(writer, id, "event", ms: 1, event: 0, [("txn.event.name", .text("cart"))])
                }
                if number < 5 {
                    note(writer, id, "event", ms: 2, event: 1, error: number == 4 ? "42" : nil)
                    note(writer, id, "event", ms: 3, event: 1)
                }
                if number < 4 { note(writer, id, "end", ms: UInt64(10 * (number + 1))) }
            }
            note(writer, id(-3, 99), "event", ms: 5, event: -1)
        }
        let objects = try run("transactions", store, "--json").objects()
        XCTAssertEqual(objects.count, 2)
        XCTAssertEqual(objects[0]["usecase"] as? Int, -3)
        let figures = objects[1]
        XCTAssertEqual(figures["count"] as? Int, 10)
        XCTAssertEqual(figures["ended"] as? Int, 4)
        XCTAssertEqual(figures["with_errors"] as? Int, 1)
        XCTAssertEqual(figures["stopped_at_once"] as? Int, 2)
        XCTAssertEqual(
            figures["duration_ms"] as? [String: Double], ["p50": 20, "p95": 40, "max": 40])
        let funnel = try XCTUnwrap(figures["funnel"] as? [[String: Any]])
        XCTAssertEqual(funnel.map { $0["event"] as? Int }, [0, 1])
        XCTAssertEqual(funnel.map { $0["reached"] as? Int }, [8, 5])
        XCTAssertEqual(funnel.map { $0["share"] as? Double }, [0.8, 0.5])
        XCTAssertEqual(funnel.map { $0["stopped"] as? Int }, [3, 1])
        XCTAssertEqual(funnel[0]["name"] as? String, "cart")
        XCTAssertEqual(
            try run("transactions", store, "--usecase", "17").text,
            """
            use case 17 Check\\x1bout
              transactions 10, ended 4, with errors 1
              took p50 20.0 ms, p95 40.0 ms, max 40.0 ms
                 reached   share  stopped  event
                      10  100.0%        2  (begun)
                       8   80.0%        3  0 cart
                       5   50.0%        1  1

            """)
    }

    func testListAndRecords() throws {
        let one = id(17, 1)
        try write { writer in
            note(writer, one, "begin", ms: 0)
            note(
                writer, one, "event", ms: 2_000, event: 1, error: "42",
                [
                    ("txn.error.description", .text("Baad!\n"))
                ])
            note(writer, id(18, 2), "begin", ms: 1)
        }
        // The server's part is in another store and was logged in between.
        let client = store
        let server = folder + "/server"
        let engine = try Engine(directory: server)
        let writer = Writer(engine: engine)
        note(writer, one, "join", ms: 500)
        note(writer, one, "event", ms: 600, event: 7)
        note(writer, one, "end", ms: 700, [("txn.duration_ns", .uint(200_000_000))])
        XCTAssertTrue(try engine.close())
        let lines = try run("transactions", client, server, "--list", "--utc").lines
        XCTAssertEqual(
            lines,
            [
                "2026-09-21 14:13:20.000Z \(one)    2 events   1 errors       700.0 ms ended",
                "2026-09-21 14:13:20.001Z \(id(18, 2))    0 events   0 errors         0.0 ms open",
            ])
        let list = try run("transactions", client, server, "--list", "--json").objects()
        XCTAssertEqual(list[0]["last_event"] as? Int, 1)
        XCTAssertEqual(list[0]["duration_ms"] as? Double, 700)
        let moments = try run("transactions", client, server, "--id", one, "--json").objects()
        XCTAssertEqual(
            moments.map { $0["operation"] as? String },
            ["begin", "join", "event", "end", "event"])
        XCTAssertEqual(moments[4]["error_description"] as? String, "Baad!\n")
        XCTAssertEqual(moments[1]["span_id"] as? String, "0000000000000002")
        let text = try run("transactions", client, server, "--id", one).lines
        XCTAssertTrue(text[4].hasSuffix(" event 1  ! 42: Baad!\\n"), text[4])
        XCTAssertTrue(text[3].hasSuffix(" end after 200.0 ms"), text[3])
        XCTAssertEqual(try run("transactions", client, "--id", id(1, 1)).code, 1)
        XCTAssertEqual(try run("transactions", client, "--id", "TXN1").code, 2)
        XCTAssertEqual(try run("transactions", client, "--list", "--delete-all").code, 2)
    }

    func testDeletedOnesAreNotShown() throws {
        let (one, two) = (id(1, 1), id(2, 2))
        try write { writer in
            for id in [one, two] {
                writer.record(
                    kind: 3, logger: "Transactions",
                    [("txn.op", .text("event")), ("txn.id", .text(id)), ("txn.event", .int(5))])
            }
        }
        func shown() throws -> [String] {
            try run("transactions", store, "--list", "--json").objects().map {
                $0["id"] as? String ?? ""
            }
        }
        XCTAssertEqual(try shown(), [one, two])
        XCTAssertEqual(try run("transactions", store, "--delete", one).code, 0)
        XCTAssertEqual(try shown(), [two])
        for format in ["transactions", "otlp-spans"] {
            let text = try run("export", store, "--format", format).text
            XCTAssertFalse(text.contains(one), format)
        }
        XCTAssertTrue(try run("export", store, "--format", "transactions").text.contains(two))
        XCTAssertEqual(try run("transactions", store, "--delete-all").code, 0)
        XCTAssertEqual(try shown(), [])
        XCTAssertEqual(try run("transactions", store, "--delete", "TXN").code, 2)
        XCTAssertEqual(try run("transactions", folder + "/no", "--delete", one).code, 5)
        try Data("cordwood deleted\nformat 2\n".utf8).write(
            to: URL(fileURLWithPath: store + "/deleted"))
        let done = try run("transactions", store)
        XCTAssertEqual(done.code, 4)
        XCTAssertTrue(done.error.contains("newer"), done.error)
    }

    func testHostileRecords() throws {
        try full()
        try write { writer in
            let one = id(1, 1)
            writer.record(kind: 3, logger: "Transactions", [])
            writer.record(kind: 3, logger: "Transactions", [("txn.id", .text(one))])
            note(writer, one, "explode", ms: 0)
            note(writer, one.lowercased(), "event", ms: 0, event: 1)
            note(writer, one, "event", ms: 0, event: 1 << 40)
            note(writer, one, "event", ms: 0, [("txn.event", .text("1"))])
            note(writer, one, "end", ms: 0, [("txn.duration_ns", .uint(.max))])
            for number in 0..<6_000 {
                note(writer, id(number, number), "event", ms: 0, event: Int64(number))
                note(writer, one, "event", ms: 1, event: Int64(number))
            }
        }
        for arguments in [
            ["transactions", store, "--json"], ["transactions", store, "--list"],
            ["export", store, "--format", "transactions"],
            ["export", store, "--format", "otlp-spans"], ["transactions", store, "--id", id(1, 1)],
        ] {
            let done = try shell(
                "exec '\(CommandCase.program)' "
                    + arguments.map { "'\($0)'" }.joined(separator: " "))
            XCTAssertEqual(done.code, 0, "\(arguments) \(done.error)")
        }
        let done = try run("transactions", store, "--json")
        XCTAssertEqual(done.lines.count, TransactionFigures.usecasesMax)
        XCTAssertTrue(done.error.contains("1904 transactions"), done.error)
    }

    /// Beyond the limit the one that was idle longest goes, and nothing is lost.
    func testGathererIsBounded() throws {
        var moments: [TransactionMoment] = []
        try write { writer in
            for number in 0..<1_000 { note(writer, id(1, number), "begin", ms: nil) }
            for number in 0..<1_000 { note(writer, id(1, number), "event", ms: nil, event: 1) }
        }
        let reader = try StoreReader(path: store)
        while let record = try reader.advance() {
            if let moment = TransactionMoment(record) { moments.append(moment) }
        }
        XCTAssertEqual(moments.count, 2_000)
        for (held, wanted) in [(1_000, 1_000), (10, 2_000), (1, 2_000)] {
            var gatherer = TransactionGatherer(heldMax: held)
            var count = 0
            var events: UInt64 = 0
            let sink = { (one: StoredTransaction) in
                count += 1
                events += one.events
            }
            for moment in moments { gatherer.take(moment, sink) }
            gatherer.finish(sink)
            XCTAssertEqual(count, wanted)
            XCTAssertEqual(events, 1_000)
        }
    }
}
