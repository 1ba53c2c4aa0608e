// Uploads to the kinds that take text or JSON, against their strict fakes: what arrives, what each
// answer means for the archive, what is sent again and what never is (UPLOADS; B-SAP-4 to B-SAP-6,
// B-ROLL-8, B-ROLL-10).

import CordwoodStore
import CordwoodTestSupport
import Foundation
import XCTest

@testable import CordwoodCore
@testable import CordwoodShip

final class TextTargetTests: XCTestCase {
    private func records(_ count: Int) -> [Given] {
        let process = CordwoodStore.ProcessInfo(
            laneID: .zero, bootID: .zero, processID: 812, name: "test", createdRealtime: 0,
            createdMonotonic: 0, resource: [])
        let thread = ThreadInfo(process: process, serial: 1, threadID: 813, name: "")
        return (0..<count).map { number in
            var given = Given(staged: Staged(thread: thread))
            given.staged.model.sequence = UInt64(number)
            given.staged.model.time = 1_763_712_930_000_000_000 + UInt64(number / 2) * 1_000
            given.staged.model.level = 9
            given.staged.model.logger = Array("app".utf8)
            // Every second record repeats the text and time of the one before.
            given.staged.model.message = Array("record \(number / 2)".utf8)
            given.staged.model.originalLength = UInt64(given.staged.model.message.count)
            return given
        }
    }

    private func send(
        _ kind: String, _ server: FakeServer, _ count: Int = 10, path: String = "",
        passes: Int = 1, _ change: (inout TargetOptions) -> Void = { _ in }
    ) throws -> (store: TestStore, results: [(UploadStatus, UploadResult)]) {
        let store = try TestStore()
        let service = try store.service(records(count))
        _ = try service.addTarget(
            store.target(server.url + path) {
                $0.kind = kind
                change(&$0)
            })
        return (store, (0..<passes).map { _ in service.pass() })
    }

    private func statuses(_ server: FakeServer) -> [Int] { server.requests.map(\.status) }

    // ── SAP ──

    private let sap =
        "/mobileservices/application/{app}/clientlogs/v1/runtime/log/application/{appId}"
        + "?deviceId={deviceId}"

    func testSAPTakesLinesAndTheArchiveGoes_B_SAP_4() throws {
        for (path, encoding) in [(sap, "none"), ("", "gzip")] {
            let server = try FakeServer("sap")
            let (store, results) = try send("sap", server, path: path) {
                $0.parameters = "application=com.a/b c\ndevice_id=ä&1"
                $0.encoding = encoding
                $0.authUser = "u"
                $0.authPassword = "p"
            }
            XCTAssertEqual(results[0].0, .ok, "\(server.requests.map(\.said))")
            XCTAssertEqual(statuses(server), [204])
            XCTAssertFalse(store.hasArchive(1))
            XCTAssertEqual(server.stored.count, 10)
            XCTAssertEqual(server.stored[0]["application"] as? String, "com.a/b c")
            XCTAssertEqual(server.stored[0]["application_id"] as? String, "com.a/b c")
            XCTAssertEqual(server.stored[0]["device"] as? String, "ä&1")
            XCTAssertEqual(
                server.requests[0].path,
                "/mobileservices/application/com.a%2Fb%20c/clientlogs/v1/runtime/log/application/"
                    + "com.a%2Fb%20c?deviceId=%C3%A4%261")
            XCTAssertEqual(server.requests[0].headers["authorization"], "Basic dTpw")
            XCTAssertEqual(
                server.requests[0].headers["content-type"], "text/plain; charset=utf-8")
            XCTAssertEqual(
                server.requests[0].headers["content-encoding"], encoding == "none" ? nil : "gzip")
        }
    }

    func testSAPPolicyPauses_B_SAP_5() throws {
        let server = try FakeServer("sap", #"{"policy":"off"}"#)
        let (store, results) = try send("sap", server) {
            $0.parameters = "application=a\ndevice_id=d"
        }
        XCTAssertEqual(results[0].0, .upload)
        XCTAssertTrue(store.queue[0].hasPrefix("paused-1-403"), "\(store.queue)")
        XCTAssertTrue(store.hasArchive(1))
        let target = try store.target(server.url) {
            $0.kind = "sap"
            $0.parameters = "application=a\ndevice_id=d"
        }
        var outcome = TransferOutcome(kind: .client, cause: "HTTP 403")
        outcome.httpStatus = 403
        XCTAssertTrue(target.dialect.asksForPolicy(outcome))
        outcome.httpStatus = 401
        XCTAssertFalse(target.dialect.asksForPolicy(outcome))
    }

    func testSAPFormIsRefused_B_SAP_6() throws {
        let faults = #"{"faults":[{"status":400},{"status":400},{"status":400}]}"#
        let server = try FakeServer("sap", faults)
        let (store, results) = try send("sap", server) {
            $0.parameters = "application=a\ndevice_id=d"
        }
        XCTAssertEqual(results[0].0, .upload)
        XCTAssertTrue(store.queue[0].contains("-refused"), "\(store.queue)")
        XCTAssertTrue(store.hasArchive(1))
        let later = try FakeServer("sap", #"{"faults":[{"status":500}]}"#)
        let (kept, twice) = try send("sap", later, passes: 2) {
            $0.parameters = "application=a\ndevice_id=d"
        }
        XCTAssertEqual(twice.map(\.0), [.upload, .ok])
        XCTAssertFalse(kept.hasArchive(1))
    }

    // ── Loggly ──

    func testLogglyIsNeverCompressed_B_ROLL_8() throws {
        let store = try TestStore()
        for encoding in ["gzip", "zstd", "lz4"] {
            XCTAssertThrowsError(
                try store.target("http://h") {
                    $0.kind = "loggly"
                    $0.encoding = encoding
                })
        }
        XCTAssertEqual(
            try store.target("http://h") { $0.kind = "loggly" }.encoding, BodyEncoding.none)
    }

    func testLogglyTakesLines_B_ROLL_10() throws {
        for format in ["json", "text"] {
            let server = try FakeServer(
                "loggly",
                #"{"token":"s3/cret"}"#.replacingOccurrences(
                    of: "/", with: "%2F"))
            let (store, results) = try send("loggly", server, path: "/bulk/{token}") {
                $0.format = format
                $0.authToken = "s3/cret"
                $0.parameters = "tags=web,größe 1"
            }
            XCTAssertEqual(results[0].0, .ok, "\(server.requests.map(\.said))")
            let request = try XCTUnwrap(server.requests.first)
            XCTAssertEqual(request.path, "/bulk/s3%2Fcret/tag/web,gr%C3%B6%C3%9Fe%201/")
            XCTAssertNil(request.headers["authorization"])
            XCTAssertEqual(
                request.headers["content-type"],
                format == "json" ? "application/json" : "text/plain")
            XCTAssertEqual(server.stored.count, 10)
            let event = try XCTUnwrap(server.stored[2]["event"] as? Row)
            if format == "json" {
                XCTAssertEqual(event["timestamp"] as? String, "2025-11-21T08:15:30.000001Z")
                XCTAssertEqual(event["time"] as? String, "2025-11-21T08:15:30.000001000Z")
                XCTAssertEqual(event["message"] as? String, "record 1")
            } else {
                XCTAssertEqual(
                    event["text"] as? String,
                    "2025-11-21 08:15:30.000Z INFO  test[812:813] app: record 1")
            }
            XCTAssertFalse(store.hasArchive(1))
            XCTAssertFalse(store.events.diagnostics.joined().contains("cret"))
        }
    }

    func testAnotherAnswerThanLogglysIsNoSuccess() throws {
        let answers = [
            #"<html>sign in</html>"#, #"{"response":"no"}"#, #"{"response":"ok""#, "",
            #"{"other":{"response":"ok"}}"#, #"["ok"]"#, #"{"response":"ok"} {}"#,
        ]
        let faults = answers.map { ["status": 200, "body": $0] as [String: Any] }
        let json = try JSONSerialization.data(withJSONObject: ["faults": faults])
        let server = try FakeServer("loggly", utf8(json))
        let (store, results) = try send("loggly", server, passes: answers.count + 1) {
            $0.authToken = "t"
        }
        XCTAssertEqual(
            results.map(\.0), Array(repeating: .upload, count: answers.count) + [.ok])
        XCTAssertEqual(server.stored.count, 10)
        XCTAssertFalse(store.hasArchive(1))
    }

    // ── Loki ──

    func testLokiKeepsLinesThatAreAlike() throws {
        let server = try FakeServer("loki", #"{"tenant":"acme"}"#)
        let (store, results) = try send("loki", server) { $0.parameters = "tenant=acme" }
        XCTAssertEqual(results[0].0, .ok, "\(server.requests.map(\.said))")
        XCTAssertEqual(statuses(server), [204])
        XCTAssertEqual(server.requests[0].headers["content-encoding"], "gzip")
        XCTAssertEqual(
            server.stored.map { $0["line"] as? String ?? "" },
            (0..<10).map { "record \($0 / 2)" })
        XCTAssertFalse(store.hasArchive(1))
    }

    func testLokiRepetitionIsMerged() throws {
        let server = try FakeServer("loki", #"{"faults":[{"action":"lose"}]}"#)
        let (_, results) = try send("loki", server, passes: 2)
        XCTAssertEqual(results.map(\.0), [.upload, .ok])
        XCTAssertEqual(server.requests.count, 2)
        XCTAssertEqual(server.stored.count, 10)
    }

    func testLokiIgnoresSomeLines() throws {
        let server = try FakeServer("loki", #"{"oldest_ns":1763712930000001500}"#)
        let (store, results) = try send("loki", server, passes: 2) { $0.bodyRecordsMax = 5 }
        XCTAssertEqual(results.map(\.0), [.upload, .end])
        XCTAssertEqual(statuses(server), [400, 204])
        XCTAssertEqual(results[0].1.refused, 4)
        XCTAssertEqual(server.stored.count, 6)
        XCTAssertEqual(store.queue, ["kept-400-4"])
        XCTAssertTrue(store.hasArchive(1))
        let other = try FakeServer("loki", #"{"oldest_ns":1763712930000001500}"#)
        let (dropped, ends) = try send("loki", other, passes: 2) {
            $0.bodyRecordsMax = 5
            $0.parameters = "refused=drop"
        }
        XCTAssertEqual(ends.map(\.0), [.ok, .end])
        XCTAssertFalse(dropped.hasArchive(1), "the host said so")
    }

    /// Answers of Loki 3 (its distributor; an ingester, for two streams and for one line).
    func testLokiCountsFromEveryForm() throws {
        let dialect = try TestStore().target("http://h:3100") { $0.kind = "loki" }.dialect
        let delivery = Delivery(
            id: "id", archiveID: "id", range: nil, fileName: "", encoding: .gzip,
            credentials: Credentials(), nowUnixMs: 5)
        func refused(_ body: String) -> AnswerVerdict? {
            var outcome = TransferOutcome(kind: .client, cause: "HTTP 400")
            outcome.httpStatus = 400
            outcome.body = Array(body.utf8)
            return dialect.verdict(outcome, delivery)
        }
        let old =
            "entry for stream '{a=\"b\"}' has timestamp too old: 2025-10-01T00:00:00Z, "
            + "oldest acceptable timestamp is: 2025-11-16T00:00:00Z"
        XCTAssertEqual(refused("498 errors like: \(old)\n"), .sent(Refused(count: 498)))
        XCTAssertEqual(
            refused("2 errors like: \(old); 1 errors like: max entry size exceeded"),
            .sent(Refused(count: 3)))
        let behind =
            "entry with timestamp 2025-11-01 00:00:00 +0000 UTC ignored, "
            + "reason: 'entry too far behind, entry timestamp is: …',\n"
        XCTAssertEqual(
            refused("\(behind)\(behind)user 'fake', total ignored: 2 out of 5 for stream: {}"),
            .sent(Refused(count: 2)))
        XCTAssertEqual(refused(old), .sent(Refused(count: 1)))
        // For streams it does not say how many lines they had (pkg/distributor, pkg/validation).
        let missing = "missing required labels 'team' for user 'fake' for stream '{a=\"b\"}'"
        XCTAssertEqual(
            refused("1 errors like: \(missing) (policy: ''); 1 errors like: \(missing) …"), .stray)
        XCTAssertEqual(refused("900 errors like: \(old); 1 errors like: \(missing)"), .stray)
        XCTAssertEqual(
            refused("2 errors like: stream '{a=\"b\"}' has label value too long: 'c'"), .stray)
        let many = String(repeating: "1 errors like: \(old); ", count: 1_000)
        XCTAssertEqual(refused(many + "1 errors like: \(missing)"), .stray)
        XCTAssertEqual(refused(many), .sent(Refused(count: 1_000)))
        XCTAssertNil(refused(missing), "the one stream's records are found by halves")
        XCTAssertNil(refused("parse error"))
        XCTAssertNil(refused("0 errors like: nothing"))
    }

    /// Loki stores nothing of a stream with bad labels, and counts the stream as one error.
    func testLokiThatRefusesStreamsHasNothingOfThem() throws {
        let server = try FakeServer("loki", #"{"enforced":"team"}"#)
        let mixed = records(10).enumerated().map { number, given in
            var given = given
            given.staged.model.level = number % 2 == 0 ? 9 : 17
            return given
        }
        let store = try TestStore()
        let service = try store.service(mixed)
        _ = try service.addTarget(store.target(server.url) { $0.kind = "loki" })
        let (end, result) = service.pass()
        XCTAssertEqual(end, .upload)
        XCTAssertEqual(result.refused, 0)
        XCTAssertTrue(server.requests[0].said.contains("1 errors like: missing required labels"))
        XCTAssertTrue(server.stored.isEmpty)
        XCTAssertTrue(store.hasArchive(1))
        XCTAssertTrue(store.queue[0].contains("-refused"), "\(store.queue)")
    }

    func testLokiAnswersThatAreNotAboutLines() throws {
        try full()
        let off = try FakeServer("loki", #"{"metadata":false}"#)
        let (paused, _) = try send("loki", off)
        XCTAssertTrue(paused.queue[0].contains("-refused"), "\(paused.queue)")
        let (_, plain) = try send("loki", off) { $0.parameters = "metadata=off" }
        XCTAssertEqual(plain[0].0, .ok)
        let busy = try FakeServer("loki", #"{"faults":[{"status":429},{"status":500}]}"#)
        let (_, later) = try send("loki", busy, passes: 3)
        XCTAssertEqual(later.map(\.0), [.upload, .upload, .ok])
        let grpc = "rpc error: trying to send message larger than max (9 vs. 8)"
        let large = try FakeServer(
            "loki", #"{"faults":[{"status":500,"body":"\#(grpc)"}]}"#)
        let (_, halves) = try send("loki", large, 6_000)
        XCTAssertEqual(halves[0].0, .ok)
        XCTAssertGreaterThan(large.requests.count, 2)
        XCTAssertEqual(large.stored.count, 6_000)
        let bad = try FakeServer(
            "loki",
            #"{"faults":[{"status":400,"body":"parse error"},{"status":400},{"status":400}]}"#)
        let (kept, _) = try send("loki", bad)
        XCTAssertTrue(kept.queue[0].contains("-refused"), "\(kept.queue)")
    }

    // ── Elasticsearch ──

    func testElasticsearchAsksAgainForSomeDocuments() throws {
        let server = try FakeServer("elasticsearch", #"{"busy":1,"token":"key"}"#)
        let (store, results) = try send("elasticsearch", server, 20, passes: 2) {
            $0.authToken = "key"
        }
        XCTAssertEqual(results.map(\.0), [.upload, .ok], "\(server.requests.map(\.said))")
        XCTAssertEqual(server.stored.count, 20)
        XCTAssertEqual(server.requests[0].path.prefix(28), "/logs-cordwood-default/_bulk")
        XCTAssertTrue(
            server.requests[1].said.contains("00000013\""), server.requests[1].said)
        XCTAssertFalse(server.requests[1].said.contains("00000004\""), "only what it asked for")
        XCTAssertFalse(store.hasArchive(1))
    }

    func testElasticsearchStoresOnceWhateverIsLost() throws {
        let server = try FakeServer(
            "elasticsearch", #"{"faults":[{"action":"lose"},{},{"action":"lose"}]}"#)
        let (store, results) = try send("elasticsearch", server, 20, passes: 3) {
            $0.bodyRecordsMax = 7
            $0.requestsMax = 1
        }
        // On a connection that was used before, libcurl itself sends a request again.
        XCTAssertEqual(results[0].0, .upload)
        XCTAssertTrue(results.contains { $0.0 == .ok })
        XCTAssertTrue(server.requests[1].said.contains("409"))
        XCTAssertEqual(results.reduce(0) { $0 + $1.1.refused }, 0, "there already is no refusal")
        XCTAssertEqual(server.stored.count, 20)
        XCTAssertEqual(
            server.stored.map { $0["_id"] as? String ?? "" },
            (0..<20).map { String(format: "%031x1%016x", 0, $0) })
        XCTAssertFalse(store.hasArchive(1))
    }

    func testElasticsearchRefusesSomeDocuments() throws {
        let server = try FakeServer("elasticsearch", #"{"refuse":"record 3"}"#)
        let (store, results) = try send("elasticsearch", server, passes: 2)
        XCTAssertEqual(results.map(\.0), [.upload, .end])
        XCTAssertEqual(results[0].1.refused, 2)
        XCTAssertEqual(server.stored.count, 8)
        XCTAssertEqual(store.queue, ["kept-200-2"])
    }

    /// A full disk makes an index read-only, a role may not write, a template is missing: the
    /// archive waits, and what is really refused stays refused.
    func testElasticsearchThatForbidsPauses() throws {
        for (status, type) in [
            (401, "security_exception"), (403, "cluster_block_exception"),
            (404, "index_not_found_exception"),
        ] {
            let server = try FakeServer(
                "elasticsearch", #"{"forbid":[\#(status),2],"busy":1,"refuse":"record 4"}"#)
            let (store, results) = try send("elasticsearch", server, 20, passes: 2)
            XCTAssertEqual(results.map(\.0), [.upload, .upload])
            XCTAssertEqual(results.map(\.1.refused), [0, 0])
            let state = status == 404 ? "retry-2" : "paused-2-200"
            XCTAssertTrue(store.queue.first?.hasPrefix(state) ?? false, "\(store.queue)")
            XCTAssertTrue(store.hasArchive(1))
            let said = store.events.diagnostics.filter { $0.contains("\(status) \(type)") }
            XCTAssertEqual(said.count, 2, "\(store.events.diagnostics)")
            let later = try store.service()
            _ = try later.addTarget(store.target(server.url) { $0.kind = "elasticsearch" })
            let (end, result) = later.pass()
            XCTAssertEqual(end, .upload, "\(store.events.diagnostics)")
            XCTAssertEqual(result.refused, 2)
            XCTAssertEqual(server.stored.count, 18)
            XCTAssertTrue(server.requests[2].said.contains("409"))
            XCTAssertEqual(store.queue, ["kept-200-2"])
        }
    }

    func testElasticsearchThatDoesNotSayIsNoSuccess() throws {
        let server = try FakeServer("elasticsearch", #"{"unreadable":true}"#)
        let (store, results) = try send("elasticsearch", server, passes: 2)
        XCTAssertEqual(results.map(\.0), [.upload, .upload])
        XCTAssertTrue(store.hasArchive(1))
        XCTAssertEqual(server.stored.count, 10, "stored, but it did not say so")
    }

    func testBulkAnswersAreReadStrictly() {
        func read(_ text: String, _ numbers: Range<UInt64>...) -> BulkAnswer? {
            bulkAnswer(text, numbers)
        }
        let ids = "00000000000000000000000000000001000000000000000"
        func item(_ number: String, _ status: String) -> String {
            #"{"create":{"_id":"\#(ids)\#(number)","status":\#(status)}}"#
        }
        XCTAssertEqual(read(#"{"errors":false}"#)?.again, [])
        let many = [item("0", "201"), item("7", "429"), item("8", "503"), item("9", "400")]
        let answer = read(
            #" { "took" : 3.5e1, "errors":true, "items":[\#(many.joined(separator: " , "))]}  "#,
            0..<1, 7..<10)
        XCTAssertEqual(answer?.again, [7, 8])
        XCTAssertEqual(answer?.refused.count, 1)
        XCTAssertEqual(answer?.isForbidden, false)
        XCTAssertEqual(answer?.reasons, ["429", "503", "400"])
        let typed = item("1", "403").dropLast(2) + #","error":{"type":"a\n\u00e9b"}}}"#
        let forbidden = read(#"{"errors":true,"items":[\#(item("0", "400")),\#(typed)]}"#, 0..<2)
        XCTAssertEqual(forbidden?.isForbidden, true)
        XCTAssertEqual(forbidden?.reasons, ["403 a???b"])
        let nested = item("1", "409").dropLast(2) + #","error":{"a":[null,true,"\"}"]}}}"#
        XCTAssertEqual(read(#"{"errors":true,"items":[\#(nested)]}"#, 1..<2)?.refused, [])
        let deep = String(repeating: "[", count: 100_000)
        let bad = [
            "", "{}", "[]", "{", #"{"errors":true}"#, #"{"errors":true,"items":[]}"#,
            #"{"errors":"false"}"#, #"{"errors":false} x"#, #"{"errors":false,}"#,
            #"{"items":[\#(item("0", "201"))]}"#,
            #"{"errors":true,"items":[{"create":{"_id":"other-1","status":400}}]}"#,
            #"{"errors":true,"items":[\#(item("x", "400"))]}"#,
            #"{"errors":true,"items":[\#(item("01", "400"))]}"#,
            #"{"errors":true,"items":[\#(item("99999999999999999999", "400"))]}"#,
            #"{"errors":true,"items":[\#(item("1", "-1"))]}"#,
            #"{"errors":true,"items":[\#(item("1", "\"400\""))]}"#,
            #"{"errors":false,"a":\#(deep)"#, #"{"errors":false,"a":"\"#, #"{"errors":false,"a":}"#,
            "{\"errors\":false,\"a\":\"\u{1}\"}",
        ]
        for text in bad { XCTAssertNil(read(text, 1..<2), text) }
        XCTAssertNil(read(#"{"errors":true,"items":[{"create":{"status":400}}]}"#))
    }

    private func bulkAnswer(_ text: String, _ ordinals: [Range<UInt64>]) -> BulkAnswer? {
        var delivery = Delivery(
            id: "id", archiveID: encodedArchiveID, range: nil, fileName: "f", encoding: .none,
            credentials: Credentials(), nowUnixMs: 5)
        delivery.ordinals = ordinals
        delivery.recordIDs = ordinals.joined().map {
            RecordID(lane: .zero, threadSerial: 1, sequence: $0)
        }
        delivery.entries = UInt32(ordinals.reduce(0) { $0 + $1.count })
        return BulkAnswer(Array(text.utf8), delivery)
    }

    /// Answers of VictoriaLogs 1.36 and Fluent Bit 3.2: documents in order, without ids.
    func testBulkAnswersWithoutIDsAreReadByPlace() {
        let two = #"{"create":{"status":201}},{"create":{"status":201}}"#
        XCTAssertEqual(
            bulkAnswer(#"{"took":0,"errors":false,"items":[\#(two)]}"#, [0..<2])?.refused, [])
        let mixed =
            #"{"create":{"status":201,"result":"created"}},{"create":{"status":400}},"#
            + #"{"create":{"status":429}}"#
        let answer = bulkAnswer(#"{"errors":true,"items":[\#(mixed)]}"#, [5..<6, 9..<11])
        XCTAssertEqual(answer?.refused, [9])
        XCTAssertEqual(answer?.again, [10])
        // With another number of items than were sent, none counts.
        XCTAssertNil(bulkAnswer(#"{"errors":true,"items":[\#(mixed)]}"#, [5..<6]))
        for items in ["[]", "{}", "null", #"[{"create":{"status":201}}]"#, "[\(two),\(two)]"] {
            XCTAssertNil(bulkAnswer(#"{"errors":false,"items":\#(items)}"#, [0..<2]), items)
        }
        XCTAssertNotNil(bulkAnswer(#"{"took":1,"errors":false}"#, [0..<2]), "it names none")
        XCTAssertNil(bulkAnswer(#"{"errors":true,"items":[\#(two)]}"#, [0..<3]))
    }

    // ── Splunk, Datadog ──

    func testSplunk() throws {
        let server = try FakeServer("splunk", #"{"busy":1,"token":"key","channel":"c-1"}"#)
        let (store, results) = try send("splunk", server, passes: 2) {
            $0.authToken = "key"
            $0.parameters = "channel=c-1\nhost=h\nsourcetype=st"
        }
        XCTAssertEqual(results.map(\.0), [.upload, .ok], "\(server.requests.map(\.said))")
        XCTAssertEqual(statuses(server), [503, 200])
        XCTAssertEqual(server.stored.count, 10)
        XCTAssertEqual(server.stored[0]["sourcetype"] as? String, "st")
        XCTAssertFalse(store.hasArchive(1))
        for (parameters, token, state) in [
            ("index=other", "token", "retry-1"), ("", "wrong", "paused-1-403"),
        ] {
            let (paused, _) = try send("splunk", try FakeServer("splunk")) {
                $0.authToken = token
                $0.parameters = parameters
            }
            XCTAssertTrue(paused.queue[0].hasPrefix(state), "\(paused.queue)")
        }
        let fault = #"{"status":400,"body":"{\"code\":6}"}"#
        let faults = "[\(fault),\(fault),\(fault)]"
        let (refused, _) = try send("splunk", try FakeServer("splunk", "{\"faults\":\(faults)}"))
        XCTAssertTrue(refused.queue[0].contains("-refused"), "\(refused.queue)")
        let (waiting, _) = try send(
            "splunk", try FakeServer("splunk", #"{"faults":[{"status":200,"body":"OK"}]}"#))
        XCTAssertTrue(waiting.hasArchive(1))
        XCTAssertTrue(waiting.queue[0].hasPrefix("retry-1-"), "\(waiting.queue)")
    }

    func testDatadog() throws {
        let server = try FakeServer("datadog", #"{"busy":1,"token":"key"}"#)
        let (store, results) = try send("datadog", server, 2_500, passes: 2) {
            $0.authToken = "key"
            $0.parameters = "ddtags=env:a,b:c\nhostname=h\nservice=s\nddsource=swift"
        }
        XCTAssertEqual(results.map(\.0), [.upload, .ok], "\(server.requests.map(\.said))")
        XCTAssertEqual(statuses(server), [429, 202, 202, 202])
        XCTAssertEqual(server.stored.count, 2_500)
        XCTAssertEqual(server.stored[0]["ddtags"] as? String, "env:a,b:c")
        XCTAssertEqual(server.stored[2_499]["message"] as? String, "record 1249")
        XCTAssertFalse(store.hasArchive(1))
        let (paused, _) = try send("datadog", server) { $0.authToken = "wrong" }
        XCTAssertTrue(paused.queue[0].hasPrefix("paused-1-403"), "\(paused.queue)")
    }

    // ── ClickHouse ──

    func testClickHouseRequestsAndAnswers() throws {
        let store = try TestStore()
        func target(_ url: String, _ parameters: String) throws -> Target {
            try store.target(url) {
                $0.kind = "clickhouse"
                $0.parameters = parameters
                $0.authUser = "u"
                $0.authPassword = "p"
            }
        }
        let named = try target("http://h:8123", "table=db.logs\ndeduplicate=on")
        let delivery = Delivery(
            id: "id.1-2", archiveID: "id", range: nil, fileName: "", encoding: .gzip,
            credentials: named.keeper.current, nowUnixMs: 5)
        let request = named.request(delivery, bytesPerSecond: 0)
        XCTAssertEqual(
            request.url,
            "http://h:8123/?query=INSERT%20INTO%20db.logs%20FORMAT%20JSONEachRow"
                + "&insert_deduplication_token=id.1-2")
        XCTAssertTrue(
            request.headers.contains(RequestHeader(name: "X-ClickHouse-User", value: "u")))
        XCTAssertTrue(
            request.headers.contains(RequestHeader(name: "X-ClickHouse-Key", value: "p")))
        XCTAssertFalse(request.headers.contains { $0.lowercasedName == "authorization" })
        func verdict(_ status: Int32, _ body: String, code: String? = nil) -> AnswerVerdict? {
            var outcome = TransferOutcome(
                kind: TransferOutcome.kind(httpStatus: status), cause: "HTTP \(status)")
            outcome.httpStatus = status
            outcome.body = Array(body.utf8)
            if let code { outcome.headers = [(name: "x-clickhouse-exception-code", value: code)] }
            return named.dialect.verdict(outcome, delivery)
        }
        XCTAssertNil(verdict(200, ""))
        XCTAssertEqual(verdict(200, "", code: "241"), .retry(.failed, delayMs: nil))
        XCTAssertEqual(verdict(200, "Code: 241, e.displayText()"), .retry(.failed, delayMs: nil))
        XCTAssertEqual(verdict(500, "Code: 193, Wrong password"), .pause)
        XCTAssertEqual(verdict(404, "Code: 60. DB::Exception: no table"), .stray)
        XCTAssertEqual(verdict(400, "Code: 117. Unknown field found: x"), .stray)
        XCTAssertNil(verdict(400, "Code: 117. Incorrect data"))
        XCTAssertNil(verdict(400, "Code: 27. Cannot parse input"))
        XCTAssertNil(verdict(500, "Code: 252. Too many parts"))
    }

    // ── Options ──

    func testOptionsThatContradictAreRefused() throws {
        let store = try TestStore()
        let bad: [(String, String, String)] = [
            ("sap", "http://h", "application=a"), ("sap", "http://h", ""),
            ("sap", "http://h/{app}", "device_id=d"), ("sap", "http://h/x", "app=a"),
            ("loggly", "http://h/bulk/t/tag/x/", "tags=a"), ("loggly", "http://h", "tags=,"),
            ("loggly", "http://h/bulk/t?x", "tags=a"), ("loki", "http://h", "labels=level=x"),
            ("loki", "http://h", "labels=9a=x"), ("loki", "http://h", "metadata=no"),
            ("loki", "http://h", "labels=a=1,a=2"), ("loki", "http://h?x", ""),
            ("elasticsearch", "http://h", "index=Up"), ("elasticsearch", "http://h", "index=_x"),
            ("elasticsearch", "http://h", "auth=basic"), ("splunk", "http://h", "idx=a"),
            ("datadog", "http://h", "tags=a"), ("clickhouse", "http://h", ""),
            ("clickhouse", "http://h/?query=x", "table=a"),
            ("clickhouse", "http://h", "table=a b"), ("clickhouse", "http://h", "table=a;drop"),
        ]
        for (kind, url, parameters) in bad {
            XCTAssertThrowsError(
                try store.target(url) {
                    $0.kind = kind
                    $0.parameters = parameters
                }, "\(kind) \(url) \(parameters)")
        }
        XCTAssertThrowsError(
            try store.target("http://h") {
                $0.kind = "loki"
                $0.bodyBytesMax = 1_000
            })
        for kind in ["loggly", "loki", "elasticsearch", "splunk", "datadog"] {
            XCTAssertThrowsError(
                try store.target("http://h") {
                    $0.kind = kind
                    $0.method = "PUT"
                }, kind)
        }
        let plain = try store.target("http://h/x") {
            $0.kind = "sap"
            $0.bodyRecordsMax = 9
        }
        XCTAssertEqual(plain.dialect.limits.entries, 9)
    }
}
