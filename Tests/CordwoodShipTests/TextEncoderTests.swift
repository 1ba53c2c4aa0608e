// Encoders of text and JSON: the bytes of one record by hand; hostile records by seed, whose bodies
// the strict fakes take and read back as what went in, within every limit, each record once.

import CordwoodStore
import CordwoodTestSupport
import Foundation
import XCTest

@testable import CordwoodCore
@testable import CordwoodShip

final class TextEncoderTests: XCTestCase {
    private var held: TestStore?
    private var store: TestStore { get throws { try XCTUnwrap(held) } }

    override func setUpWithError() throws { held = try TestStore() }
    override func tearDown() { held = nil }

    private func target(
        _ kind: String, _ url: String, _ change: (inout TargetOptions) -> Void = { _ in }
    ) throws -> Target {
        try store.target(url) {
            $0.kind = kind
            change(&$0)
        }
    }

    // ── One record by hand ──

    private func golden(_ target: Target, _ given: Given? = nil) throws -> String {
        let (bodies, _, _) = try store.bodies([given ?? Given.plain()], target)
        XCTAssertEqual(bodies.count, 1)
        return utf8(bodies[0])
    }

    func testGoldenSAP() throws {
        let target = try target("http", "http://h/x") { $0.format = "sap" }
        XCTAssertEqual(
            try golden(target),
            #"#2025-11-21T08:15:30.123+00:00#WARN#0102030405060708090a0b0c0d0e0f10#net.http#"#
                + #"a.c:7 main#say "hi" _1\n\nOops: bad\nat a\nat b#"# + "\n")
    }

    func testGoldenJSONArray() throws {
        let target = try target("http", "http://h/x") { $0.format = "json" }
        let object =
            #"{"time":"2025-11-21T08:15:30.123456789Z","level":"WARN","logger":"net.http","#
            + #""message":"say \"hi\" #1\n","pid":812,"tid":813,"file":"a.c","line":7,"#
            + #""function":"main","fields":{"order":7,"a.b":"x#y","ok":true,"#
            + #""exception.type":"Oops","exception.message":"bad","#
            + #""exception.stacktrace":"at a\nat b"},"#
            + #""trace_id":"0102030405060708090a0b0c0d0e0f10","span_id":"1112131415161718","#
            + #""kind":"log","process":"shop","service":"web","host":"h1","#
            + #""resource":{"service.version":"2.0"},"record_id":"\#(Given.plainID)"}"#
        XCTAssertEqual(try golden(target), "[\(object)]\n")
        let (bodies, _, _) = try store.bodies([Given.plain(), Given.plain()], target)
        XCTAssertEqual(utf8(bodies[0]), "[\(object),\n\(object)]\n")
    }

    func testGoldenLoggly() throws {
        let target = try target("loggly", "http://h")
        let line = try golden(target)
        XCTAssertTrue(
            line.hasPrefix(
                #"{"timestamp":"2025-11-21T08:15:30.123456Z","time":"2025-11-21T08:15:30.1234567"#
                    + #"89Z","level":"WARN","logger":"net.http","message":"say \"hi\" #1\n","#),
            line)
        XCTAssertTrue(
            line.hasSuffix(
                #""kind":"log","process":"shop","service":"web","host":"h1","#
                    + #""resource":{"service.version":"2.0"},"record_id":"\#(Given.plainID)"}"#
                    + "\n"), line)
        let text = try self.target("loggly", "http://h") { $0.format = "text" }
        XCTAssertEqual(
            try golden(text),
            #"2025-11-21 08:15:30.123Z WARN  shop[812:813] net.http: say "hi" #1\n order=7 "#
                + #"a.b=x#y order=8 ok=true exception.type=Oops exception.message=bad "#
                + #"exception.stacktrace="at a\nat b" (a.c:7)"# + "\n")
    }

    func testGoldenLoki() throws {
        let target = try target("loki", "http://h") { $0.parameters = "labels=env=prod" }
        XCTAssertEqual(
            try golden(target),
            #"{"streams":[{"stream":{"service_name":"web","level":"warn","env":"prod"},"values":"#
                + #"[["1763712930123456789","say \"hi\" #1\n",{"severity":"WARN","#
                + #""logger":"net.http","pid":"812","tid":"813","thread":"main","process":"shop","#
                + #""file":"a.c","line":"7","function":"main","#
                + #""trace_id":"0102030405060708090a0b0c0d0e0f10","span_id":"1112131415161718","#
                + #""kind":"log","record_id":"\#(Given.plainID)","order":"7","a_b":"x#y","#
                + #""ok":"true","exception_type":"Oops","exception_message":"bad","#
                + #""exception_stacktrace":"at a\nat b","host_name":"h1","#
                + #""service_version":"2.0"}]]}]}"#)
        let label = try self.target("loki", "http://h") { $0.parameters = "labels=order=x" }
        XCTAssertTrue(try golden(label).contains(#""order_2":"7","#), "no field hides a label")
        let plain = try self.target("loki", "http://h") { $0.parameters = "metadata=off" }
        XCTAssertTrue(
            try golden(plain).contains(
                #"["1763712930123456789","say \"hi\" #1\n severity=WARN logger=net.http pid=812 "#))
    }

    func testGoldenElasticsearch() throws {
        let target = try target("elasticsearch", "http://h")
        XCTAssertEqual(
            try golden(target),
            #"{"create":{"_id":"\#(Given.plainID)"}}"# + "\n"
                + #"{"@timestamp":"2025-11-21T08:15:30.123456789Z","log.level":"WARN","#
                + #""message":"say \"hi\" #1\n","log.logger":"net.http","service.name":"web","#
                + #""host.name":"h1","service.version":"2.0","process.pid":812,"#
                + #""process.name":"shop","process.thread.id":813,"process.thread.name":"main","#
                + #""log.origin.file.name":"a.c","log.origin.file.line":7,"#
                + #""log.origin.function":"main","error.type":"Oops","error.message":"bad","#
                + #""error.stack_trace":"at a\nat b","#
                + #""trace.id":"0102030405060708090a0b0c0d0e0f10","span.id":"1112131415161718","#
                + #""event.sequence":5,"cordwood.kind":"log","#
                + #""labels":{"a_b":"x#y","ok":"true"},"numeric_labels":{"order":7}}"# + "\n")
    }

    func testGoldenSplunk() throws {
        let target = try target("splunk", "http://h") { $0.parameters = "index=main\nsource=s" }
        XCTAssertEqual(
            try golden(target),
            #"{"time":1763712930.123456789,"host":"h1","source":"s","sourcetype":"_json","#
                + #""index":"main","event":{"message":"say \"hi\" #1\n","level":"WARN","#
                + #""logger":"net.http","service":"web","pid":812,"tid":813,"thread":"main","#
                + #""process":"shop","file":"a.c","line":7,"function":"main","#
                + #""trace_id":"0102030405060708090a0b0c0d0e0f10","span_id":"1112131415161718","#
                + #""sequence":5,"kind":"log","record_id":"\#(Given.plainID)"},"#
                + #""fields":{"order":"7","a_b":"x#y","ok":"true","exception_type":"Oops","#
                + #""exception_message":"bad","exception_stacktrace":"at a\nat b","#
                + #""service_version":"2.0"}}"# + "\n")
    }

    func testGoldenDatadog() throws {
        let target = try target("datadog", "http://h") { $0.parameters = "ddtags=env:prod,a:b" }
        XCTAssertEqual(
            try golden(target),
            #"[{"timestamp":1763712930123,"time":"2025-11-21T08:15:30.123456789Z","#
                + #""status":"warn","level":"WARN","message":"say \"hi\" #1\n","service":"web","#
                + #""hostname":"h1","ddsource":"cordwood","ddtags":"env:prod,a:b","#
                + #""logger":{"name":"net.http","thread_name":"main","method_name":"main"},"#
                + #""pid":812,"tid":813,"process":"shop","file":"a.c","line":7,"#
                + #""error":{"kind":"Oops","message":"bad","stack":"at a\nat b"},"#
                + #""trace_id":"0102030405060708090a0b0c0d0e0f10","span_id":"1112131415161718","#
                + #""sequence":5,"kind":"log","record_id":"\#(Given.plainID)","#
                + #""fields":{"order":7,"a.b":"x#y","ok":true},"#
                + #""resource":{"service.version":"2.0"}}]"#
                + "\n")
    }

    func testGoldenClickHouse() throws {
        let target = try target("clickhouse", "http://h") { $0.parameters = "table=logs" }
        XCTAssertEqual(
            try golden(target),
            #"{"record_id":"\#(Given.plainID)","time_ns":1763712930123456789,"level":"WARN","#
                + #""level_number":13,"service":"web","host":"h1","logger":"net.http","#
                + #""message":"say \"hi\" #1\n","pid":812,"tid":813,"process":"shop","#
                + #""thread":"main","file":"a.c","line":7,"function":"main","#
                + #""trace_id":"0102030405060708090a0b0c0d0e0f10","span_id":"1112131415161718","#
                + #""sequence":5,"kind":"log","#
                + #""fields":"{\"order\":7,\"a.b\":\"x#y\",\"ok\":true,"#
                + #"\"exception.type\":\"Oops\",\"exception.message\":\"bad\","#
                + #"\"exception.stacktrace\":\"at a\\nat b\"}","#
                + #""resource":"{\"service.version\":\"2.0\"}"}"# + "\n")
    }

    func testEmptyRecord() throws {
        var given = Given.plain()
        given = Given(staged: Staged(thread: given.staged.thread))
        given.staged.model.kind = 1
        for (kind, url) in TextEncoderTests.jsonKinds {
            let body = try golden(try target(kind, url), given)
            let last = try XCTUnwrap(body.split(separator: "\n").last)
            XCTAssertNotNil(try? JSONSerialization.jsonObject(with: Data(last.utf8)), body)
            XCTAssertTrue(body.contains("\"gap\""), body)
        }
        let sap = try target("http", "http://h/x") { $0.format = "sap" }
        XCTAssertEqual(try store.bodies([given], sap).bodies, [], "no log, no line")
        given.staged.model.kind = 0
        XCTAssertEqual(try golden(sap, given), "#1970-01-01T00:00:00.000+00:00#INFO#####\n")
    }

    // ── Hostile records ──

    static let jsonKinds = [
        ("loggly", "http://h"), ("loki", "http://h"), ("elasticsearch", "http://h"),
        ("splunk", "http://h"), ("datadog", "http://h"),
        ("clickhouse", "http://h/?query=INSERT%20INTO%20logs%20FORMAT%20JSONEachRow"),
    ]

    private var seeds: [UInt64] {
        sized([1], [1, 2], Array(1...20))
    }

    /// Short records, and some whose message exceeds the limit of an entry.
    private func hostile(_ seed: UInt64, _ count: Int = 200) -> [Given] {
        var maker = HostileMaker(seed: seed)
        var all = maker.records(count)
        for size in [70_000, 262_144, 1_200_000] {
            let letters = [UInt8](repeating: 0x61, count: size)
            all.insert(maker.record(message: letters), at: maker.random.below(all.count))
        }
        for size in [66_000, 300_000] {
            let text = [0xff] + maker.text(40)
            var mixed: [UInt8] = []
            while mixed.count < size { mixed += text }
            all.insert(maker.record(message: mixed), at: maker.random.below(all.count))
        }
        return all
    }

    /// What was sent of a message: all of it, or a beginning and the mark of a cut.
    private func assertMessage(
        _ shown: String, of given: Given, _ seed: UInt64, line: UInt = #line
    ) {
        if shown == given.message { return }
        let mark = "… (\(given.model.originalLength) bytes)"
        XCTAssertTrue(shown.hasSuffix(mark), "seed \(seed): no mark of a cut", line: line)
        XCTAssertGreaterThan(given.model.message.count, 60_000, "seed \(seed)", line: line)
        XCTAssertTrue(
            utf8(given.model.message).hasPrefix(shown.dropLast(mark.count)),
            "seed \(seed): not its beginning", line: line)
    }

    private func assertText(
        _ shown: Any?, _ expected: String, _ seed: UInt64, _ what: String, line: UInt = #line
    ) {
        XCTAssertEqual(
            shown as? String ?? "", expected, "seed \(seed): \(what)", line: line)
    }

    private func values(_ object: Any?) -> [String] {
        ((object as? Row) ?? [:]).values.compactMap { $0 as? String }.sorted()
    }

    private func assertSame(
        _ rows: [Row], _ given: [Given], _ seed: UInt64, line: UInt = #line
    ) -> Bool {
        XCTAssertEqual(rows.count, given.count, "seed \(seed)", line: line)
        return rows.count == given.count
    }

    private func check(
        _ seed: UInt64, _ kind: String, _ target: Target, path: String,
        headers: [String: String] = [:], settings: String = "{}", _ given: [Given]
    ) throws -> [Row] {
        let made = try store.bodies(given, target)
        let limits = target.dialect.limits
        XCTAssertEqual(made.oversized, 0, "seed \(seed)")
        if limits.bytes > 0 {
            XCTAssertTrue(made.bodies.allSatisfy { $0.count <= limits.bytes }, "seed \(seed)")
        }
        if limits.entries > 0 {
            XCTAssertTrue(made.entries.allSatisfy { $0 <= limits.entries }, "seed \(seed)")
        }
        XCTAssertEqual(try store.bodies(given, target).bodies, made.bodies, "the same again")
        var headers = headers
        headers["content-type"] = target.dialect.contentType
        return try FakeServer.check(
            kind, made.bodies, path: path, headers: headers, settings: settings)
    }

    func testHostileSAP_B_SAP_4() throws {
        let url = "http://h/mobileservices"
        for seed in seeds {
            let given = hostile(seed)
            let target = try target("sap", url) { $0.bodyBytesMax = 2_000_000 }
            let path =
                "/mobileservices/application/a/clientlogs/v1/runtime/log/application/b?deviceId=c"
            let rows = try check(seed, "sap", target, path: path, given)
            let logs = given.filter { $0.model.kind == 0 }
            guard assertSame(rows, logs, seed) else { return }
            func column(_ text: String) -> String {
                var out = ""
                for scalar in text.unicodeScalars {
                    switch scalar {
                    case "#": out += "_"
                    case "\n": out += "\\n"
                    case "\r": out += "\\r"
                    default: out.unicodeScalars.append(scalar)
                    }
                }
                return out
            }
            for (row, record) in zip(rows, logs) {
                assertText(row["source"], column(utf8(record.model.logger)), seed, "source")
                let place =
                    record.model.file.isEmpty && record.model.line == 0
                    ? "" : "\(utf8(record.model.file)):\(record.model.line)"
                let function = utf8(record.model.function)
                let separator = place.isEmpty || function.isEmpty ? "" : " "
                assertText(row["location"], column(place + separator + function), seed, "location")
                var message = record.message
                var hasType = false
                for (name, text) in record.exceptionFields {
                    message += name == "exception.message" && hasType ? ": " : "\n"
                    message += utf8(text)
                    hasType = name == "exception.type"
                }
                let shown = row["message"] as? String ?? ""
                if shown != column(message) { XCTFail("seed \(seed): \(shown.prefix(300))") }
                let correlation =
                    record.own.first { $0.key == Array("correlation_id".utf8) }
                    ?? record.context.first { $0.key == Array("correlation_id".utf8) }
                assertText(
                    row["correlation"],
                    correlation.map { column($0.value.shown) } ?? record.traceID,
                    seed, "correlation")
                let level = record.model.level
                let severity =
                    level == 0 || (9...12).contains(level)
                    ? "INFO"
                    : level < 9 ? "DEBUG" : level < 17 ? "WARN" : level < 21 ? "ERROR" : "FATAL"
                assertText(row["severity"], severity, seed, "severity")
            }
        }
    }

    func testHostileLoggly_B_ROLL_10() throws {
        try full()
        for seed in seeds {
            let given = hostile(seed)
            let target = try target("loggly", "http://h")
            let rows = try check(seed, "loggly", target, path: "/bulk/T/tag/a,b/", given)
            guard assertSame(rows, given, seed) else { return }
            for (row, record) in zip(rows, given) {
                XCTAssertEqual(row["tags"] as? [String], ["a", "b"])
                let event = row["event"] as? Row ?? [:]
                assertMessage(event["message"] as? String ?? "", of: record, seed)
                assertText(event["logger"], utf8(record.model.logger), seed, "logger")
                assertText(event["trace_id"], record.traceID, seed, "trace_id")
                assertText(event["span_id"], record.spanID, seed, "span_id")
                if let cut = event["message_base64"] as? String {
                    let bytes = Array(Data(base64Encoded: cut) ?? Data())
                    XCTAssertTrue(record.model.message.starts(with: bytes), "seed \(seed)")
                } else if record.model.message.count < 60_000 {
                    XCTAssertTrue(record.isWhole, "seed \(seed)")
                }
                assertTyped(event["fields"], record.fields, seed)
            }
            let text = try self.target("loggly", "http://h") { $0.format = "text" }
            let lines = try check(seed, "loggly", text, path: "/bulk/T/tag/a/", given)
            _ = assertSame(lines, given, seed)
        }
    }

    /// Typed fields under their own keys; keys that JSON cannot tell apart count once.
    private func assertTyped(
        _ object: Any?, _ fields: [[UInt8]: Given.Value], _ seed: UInt64, line: UInt = #line
    ) {
        let shown = object as? Row ?? [:]
        let names = Set(fields.keys.map { utf8($0) })
        for (key, value) in fields where fields.keys.filter({ utf8($0) == utf8(key) }).count == 1 {
            let found = shown[utf8(key)]
            let isSame: Bool
            switch value {
            case .int(let number): isSame = (found as? NSNumber)?.int64Value == number
            case .uint(let number): isSame = (found as? NSNumber)?.uint64Value == number
            case .bool(let truth): isSame = (found as? Bool) == truth
            case .double(let number) where number.isFinite:
                // Foundation sometimes misreads the last digit.
                isSame =
                    abs(((found as? NSNumber)?.doubleValue ?? 0) - number) <= abs(number) / 1e15
            case .json(let text):
                let whole = try? JSONSerialization.jsonObject(
                    with: Data(text), options: .fragmentsAllowed)
                isSame = (found as? NSObject)?.isEqual(whole) == true
            default: isSame = found as? String == value.shown
            }
            XCTAssertTrue(
                isSame, "seed \(seed): \(utf8(key)): \(found ?? "nothing"), not \(value)",
                line: line)
        }
        XCTAssertGreaterThanOrEqual(shown.count, names.count, "seed \(seed)", line: line)
    }

    func testHostileDatadog() throws {
        try full()
        for seed in seeds {
            let given = hostile(seed, 1_100)
            let target = try target("datadog", "http://h")
            let rows = try check(
                seed, "datadog", target, path: "/api/v2/logs",
                headers: ["dd-api-key": "token"], given)
            guard assertSame(rows, given, seed) else { return }
            for (row, record) in zip(rows, given) {
                assertMessage(row["message"] as? String ?? "", of: record, seed)
                assertText(row["record_id"], record.staged.recordID, seed, "id")
                assertText(
                    (row["logger"] as? Row)?["name"], utf8(record.model.logger), seed, "logger")
                assertTyped(
                    row["fields"],
                    record.fields.filter { record.exception(utf8($0.key)) == nil }, seed)
                let error = row["error"] as? Row
                assertText(
                    error?["stack"], record.exception("exception.stacktrace") ?? "", seed, "stack")
            }
        }
    }

    func testHostileSplunk() throws {
        try full()
        for seed in seeds {
            let given = hostile(seed)
            let target = try target("splunk", "http://h") { $0.parameters = "index=main" }
            let rows = try check(
                seed, "splunk", target, path: "/services/collector/event",
                headers: ["authorization": "Splunk token"], given)
            guard assertSame(rows, given, seed) else { return }
            for (row, record) in zip(rows, given) {
                let event = row["event"] as? Row ?? [:]
                assertMessage(event["message"] as? String ?? "", of: record, seed)
                XCTAssertEqual((event["line"] as? NSNumber)?.uint32Value ?? 0, record.model.line)
                XCTAssertEqual((event["sequence"] as? NSNumber)?.uint64Value, record.model.sequence)
                var expected = record.fields.values.map(\.shown)
                expected += others(record, without: ["service.name", "host.name"])
                XCTAssertEqual(values(row["fields"]), expected.sorted(), "seed \(seed)")
            }
        }
    }

    private func others(_ record: Given, without known: [String]) -> [String] {
        var found: [String: String] = [:]
        for (key, value) in record.staged.thread.process.resource { found[key] = value }
        return found.filter { !known.contains($0.key) }.map(\.value)
    }

    func testHostileElasticsearch() throws {
        for seed in seeds {
            let given = hostile(seed)
            let target = try target("elasticsearch", "http://h")
            let path = target.request(delivery(target), bytesPerSecond: 0).url.dropFirst(8)
            let rows = try check(seed, "elasticsearch", target, path: String(path), given)
            guard assertSame(rows, given, seed) else { return }
            for (row, record) in zip(rows, given) {
                assertText(row["_id"], record.staged.recordID, seed, "id")
                let document = row["document"] as? Row ?? [:]
                assertMessage(document["message"] as? String ?? "", of: record, seed)
                assertText(
                    document["error.type"], record.exception("exception.type") ?? "", seed, "type")
                let numbers = (document["numeric_labels"] as? Row ?? [:]).count
                let labels = (document["labels"] as? Row ?? [:]).count
                let fields = record.fields.filter { record.exception(utf8($0.key)) == nil }
                let known = ["service.name", "service.version", "host.name"]
                XCTAssertEqual(
                    numbers + labels, fields.count + others(record, without: known).count)
            }
        }
    }

    private func delivery(_ target: Target) -> Delivery {
        Delivery(
            id: encodedArchiveID, archiveID: encodedArchiveID, range: nil, fileName: "a.cwa",
            encoding: .none, credentials: target.keeper.current, nowUnixMs: 1)
    }

    func testHostileLoki() throws {
        try full()
        for (seed, parameters) in seeds.flatMap({ [($0, ""), ($0, "metadata=off")] }) {
            let given = hostile(seed)
            let target = try target("loki", "http://h") { $0.parameters = parameters }
            let rows = try check(
                seed, "loki", target, path: "/loki/api/v1/push",
                settings: parameters.isEmpty ? "{}" : #"{"metadata":false}"#, given)
            guard assertSame(rows, given, seed), parameters.isEmpty else { continue }
            let byID = Dictionary(uniqueKeysWithValues: given.map { ($0.staged.recordID, $0) })
            for row in rows {
                let metadata = row["metadata"] as? Row ?? [:]
                let id = metadata["record_id"] as? String ?? ""
                let record = try XCTUnwrap(byID[id], "seed \(seed)")
                let line = row["line"] as? String ?? ""
                if record.model.message.count < 60_000 {
                    XCTAssertTrue(line.hasPrefix(record.message), "seed \(seed)")
                }
                assertText(metadata["logger"], utf8(record.model.logger), seed, "logger")
                let time = try XCTUnwrap(UInt64(row["time"] as? String ?? ""))
                XCTAssertLessThan(time &- record.model.time, 1_000, "seed \(seed)")
                let labels = try XCTUnwrap(row["labels"] as? Row)
                XCTAssertEqual(Set(labels.keys), ["service_name", "level"])
            }
        }
    }

    func testHostileClickHouse() throws {
        for seed in seeds {
            let given = hostile(seed)
            let target = try target("clickhouse", "http://h") { $0.parameters = "table=logs" }
            let body = try store.bodies(given, target).bodies.flatMap { $0 }
            let rows = FakeServer.rows(Data(body))
            guard assertSame(rows, given, seed) else { return }
            for (row, record) in zip(rows, given) {
                assertMessage(row["message"] as? String ?? "", of: record, seed)
                XCTAssertEqual((row["time_ns"] as? NSNumber)?.uint64Value, record.model.time)
                let fields = (row["fields"] as? String).flatMap {
                    try? JSONSerialization.jsonObject(with: Data($0.utf8))
                }
                assertTyped(fields, record.fields, seed)
                for (key, value) in row {
                    XCTAssertTrue(value is String || value is NSNumber, "flat: \(key)")
                }
            }
        }
    }

    func testHostileJSONArray() throws {
        try full()
        for seed in seeds {
            let given = hostile(seed)
            let target = try target("http", "http://h/x") {
                $0.format = "json"
                $0.bodyBytesMax = 100_000
            }
            let made = try store.bodies(given, target)
            XCTAssertTrue(made.bodies.allSatisfy { $0.count <= 100_000 })
            let rows = try made.bodies.flatMap {
                try XCTUnwrap(JSONSerialization.jsonObject(with: Data($0)) as? [Row])
            }
            guard assertSame(rows, given, seed) else { return }
            for (row, record) in zip(rows, given) {
                assertMessage(row["message"] as? String ?? "", of: record, seed)
                assertTyped(row["fields"], record.fields, seed)
            }
        }
    }

    /// A line of ndjson equals that of `cat --json`, except for the mark of a cut message.
    func testHostileNDJSON() throws {
        for seed in seeds {
            let given = hostile(seed)
            let target = try target("http", "http://h/x") {
                $0.format = "ndjson"
                $0.bodyBytesMax = 100_000
            }
            let made = try store.bodies(given, target)
            XCTAssertTrue(made.bodies.allSatisfy { $0.count <= 100_000 })
            let lines = made.bodies.flatMap { $0.split(separator: 10) }
            let source = FakeSource(given.map(\.staged))
            for (line, record) in zip(lines, given) {
                let row = try XCTUnwrap(
                    JSONSerialization.jsonObject(with: Data(line)) as? Row, "seed \(seed)")
                assertMessage(row["message"] as? String ?? "", of: record, seed)
                guard let read = try source.advance(), record.mark.isEmpty, line.count < 60_000
                else { continue }
                var plain: [UInt8] = []
                JSONLine.append(read, to: &plain)
                XCTAssertEqual(Array(line) + [10], plain, "seed \(seed)")
            }
            XCTAssertEqual(lines.count, given.count)
            let flat = try self.target("http", "http://h/x") {
                $0.format = "ndjson"
                $0.parameters = "fields=text"
            }
            let rows = try store.bodies(given, flat).bodies.flatMap { $0.split(separator: 10) }
            XCTAssertEqual(rows.count, given.count)
            for (line, record) in zip(rows, given) {
                let row = try JSONSerialization.jsonObject(with: Data(line)) as? Row
                let fields = Data(try XCTUnwrap(row?["fields"] as? String, "seed \(seed)").utf8)
                assertTyped(try JSONSerialization.jsonObject(with: fields), record.fields, seed)
            }
        }
    }

    /// The output of `cat`: UTF-8 whatever was logged, and no forged lines.
    func testHostileText() throws {
        for seed in seeds {
            let given = hostile(seed).filter { $0.model.message.count < 60_000 }
            let target = try target("http", "http://h/x") { $0.format = "text" }
            let body = try store.bodies(given, target).bodies[0]
            XCTAssertNotNil(String(validating: body, as: UTF8.self), "seed \(seed)")
            var plain: [UInt8] = []
            let source = FakeSource(given.map(\.staged))
            while let read = try source.advance() {
                TextLine.append(read, to: &plain, utc: true, color: false)
            }
            XCTAssertTrue(plain == body, "seed \(seed)")
            let starts = body.split(separator: 10).count { $0.first.map { $0 != 0x20 } ?? false }
            XCTAssertEqual(starts, given.count, "seed \(seed)")
        }
    }

    func testSmallerBodiesHoldTheSame() throws {
        let given = hostile(3).filter { $0.model.message.count < 60_000 }
        for (kind, url) in TextEncoderTests.jsonKinds where kind != "loki" {
            let target = try target(kind, url)
            let whole = try store.bodies(given, target)
            let halves = try store.bodies(given, target, bytesMax: 32_768)
            XCTAssertGreaterThan(halves.bodies.count, whole.bodies.count, kind)
            XCTAssertEqual(
                halves.entries.reduce(0, +), whole.entries.reduce(0, +), kind)
        }
    }
}
