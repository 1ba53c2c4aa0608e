// `cordwood http`: which exchanges it lists, in which form, and how it treats malformed records.

import CordwoodTestSupport
import Foundation
import XCTest

@testable import CordwoodCLI

final class HTTPListTests: CommandCase {
    private func ids(_ arguments: String..., code: Int32 = 0) throws -> [String] {
        let json = arguments + ["--json"]
        let done = try run(json)
        XCTAssertEqual(done.code, code, done.error)
        return try done.objects().map { $0["id"] as? String ?? "" }
    }

    private func run(_ arguments: [String]) throws -> Done {
        try shell(
            "exec '\(CommandCase.program)' http "
                + (arguments + [store]).map { "'\($0)'" }.joined(separator: " "))
    }

    func testOneLineAnExchange() throws {
        try write { writer in
            writer.begin("00000000000000a1", "GET", "http://a.test/1")
            writer.begin("00000000000000b2", "POST", "http://b.test/2\u{1B}[2J")
            writer.end("00000000000000a1", "GET", "http://a.test/1", status: 404, ms: 7)
            writer.end(
                "00000000000000c3", "GET", "http://c.test/3", status: nil, ms: 10_003,
                [("error.type", .text("timeout")), ("error.message", .text("no\nanswer"))])
        }
        let lines = try run(["--utc"]).lines
        XCTAssertEqual(lines.count, 3)
        XCTAssertTrue(
            lines[0].hasPrefix("2026-09-21 14:13:20.000Z 00000000000000a1 > GET    404 "), lines[0])
        XCTAssertTrue(lines[0].contains(" 7.0 ms "), lines[0])
        XCTAssertTrue(lines[0].hasSuffix(" http://a.test/1"), lines[0])
        XCTAssertTrue(lines[1].hasSuffix("http://c.test/3  ! timeout: no\\nanswer"), lines[1])
        XCTAssertTrue(lines[1].contains(" -     "), lines[1])
        XCTAssertTrue(lines[2].contains(" POST   lost "), lines[2])
        XCTAssertTrue(
            lines[2].hasSuffix("http://b.test/2\\x1b[2J  ! its process or engine is gone"),
            lines[2])
    }

    /// Records, and the times of their lines, are in the order of writing; an exchange's own time
    /// is when it began.
    func testCatShowsWhenAnExchangeEnded() throws {
        try write { writer in
            writer.begin("a1", "GET", "http://a.test/slow")
            writer.record(kind: 0, logger: "app", message: "meanwhile", [])
            writer.end("a1", "GET", "http://a.test/slow", ms: 60_000)
            writer.record(kind: 0, logger: "app", message: "after", [])
        }
        let done = try shell("exec '\(CommandCase.program)' cat --utc '\(store)'")
        let times = done.lines.map { $0.prefix(24) }
        XCTAssertEqual(times.count, 4)
        XCTAssertEqual(times, times.sorted(), done.text)
        XCTAssertFalse(times[2].hasPrefix("2026-09-21 14:13:20"), done.text)
        let json = try shell("exec '\(CommandCase.program)' cat --json --utc '\(store)'").objects()
        XCTAssertEqual(json[2]["time"] as? String, "2026-09-21T14:13:20.000000000Z")
    }

    func testSelection() throws {
        try full()
        try write { writer in
            writer.end("a1", "GET", "http://one.test/", ms: 5)
            writer.end("a2", "POST", "https://api.two.test:8443/x", status: 404, ms: 900)
            writer.end(
                "a3", "GET", "http://two.test/", status: 503,
                [("http.conversation", .text("talk-7"))])
            writer.end("a4", "PUT", "http://one.test/", status: nil)
            writer.end("a5", "GET", "http://xtwo.test/", [("error.message", .text("broke off"))])
            writer.begin("a6", "GET", "http://one.test/")
        }
        XCTAssertEqual(try ids(), ["a1", "a2", "a3", "a4", "a5", "a6"])
        XCTAssertEqual(try ids("--failed"), ["a2", "a3", "a4", "a5", "a6"])
        XCTAssertEqual(try ids("--host", "*.two.test"), ["a2", "a3"])
        XCTAssertEqual(try ids("--host", "*.TWO.test:8443"), ["a2"])
        XCTAssertEqual(
            try ids("--host", "one.test", "--host", "two.test"), ["a1", "a3", "a4", "a6"])
        XCTAssertEqual(try ids("--host", "two.test:80"), ["a3"])
        XCTAssertEqual(try ids("--method", "post"), ["a2"])
        XCTAssertEqual(try ids("--status", "5xx,404"), ["a2", "a3"])
        XCTAssertEqual(try ids("--status", "400-499"), ["a2"])
        XCTAssertEqual(try ids("--slow", "900"), ["a2"], "nobody knows how long a lost one took")
        XCTAssertEqual(try ids("--conversation", "talk-7"), ["a3"])
        XCTAssertEqual(try ids("--level", "info"), ["a1", "a2", "a3", "a4", "a5"])
        XCTAssertEqual(try ids("--until", "2026-09-21"), [])
        XCTAssertEqual(try run(["--status", "6"]).code, 0)
        for bad in ["x", "5x", "404-", "9-1", "", "404,,500"] {
            XCTAssertEqual(try run(["--status=\(bad)"]).code, 2, bad)
        }
        XCTAssertEqual(try run(["--har", "--json"]).code, 2)
        XCTAssertEqual(try run(["--har", "-f"]).code, 2)
    }

    /// Each reason is shown once, beside a status if one came; the status's own is not repeated.
    func testWhatWentWrong() throws {
        let length = ("http.response.headers", Value.text("Content-Length: 1000000"))
        let got = ("http.response.body.size", Value.uint(10))
        let cancelled = ("http.cancelled", Value.bool(true))
        try write { writer in
            writer.end(
                "a1", "GET", "http://a.test/", status: nil,
                [
                    cancelled, ("error.type", .text("cancelled")),
                    ("error.message", .text("cancelled")),
                ])
            writer.end(
                "a2", "GET", "http://a.test/",
                [
                    length, got, cancelled, ("error.type", .text("cancelled")),
                    ("error.message", .text("KeyboardInterrupt")),
                ])
            writer.end("a3", "GET", "http://a.test/", [length, got])
            writer.end("a4", "HEAD", "http://a.test/", [length, got])
            writer.end("a5", "GET", "http://a.test/", status: 304, [length, got])
            writer.end("a6", "GET", "http://a.test/", status: 503)
            writer.end(
                "a7", "GET", "http://a.test/",
                [
                    got,
                    (
                        "http.response.headers",
                        .text("Content-Length: 1000000\nContent-Encoding: br")
                    ),
                ])
        }
        let lines = try run([]).lines
        func expect(_ index: Int, _ state: String, _ problem: String) {
            XCTAssertTrue(lines[index].contains(" \(state) "), lines[index])
            XCTAssertTrue(lines[index].hasSuffix("http://a.test/\(problem)"), lines[index])
        }
        expect(0, "gone", "  ! cancelled")
        expect(1, "200", "  ! cancelled: KeyboardInterrupt")
        expect(2, "200", "  ! left after 10 of 1000000 bytes")
        for index in [3, 4, 6] { expect(index, index == 4 ? "304" : "200", "") }
        expect(5, "503", "")
        XCTAssertEqual(try ids("--failed"), ["a1", "a2", "a6"], "who left has what he wanted")
        let left = try XCTUnwrap(run(["--json"]).objects().dropFirst(2).first)
        XCTAssertEqual(left["left_of_bytes"] as? Int, 1_000_000)
    }

    func testGrepLooksEverywhere() throws {
        try write { writer in
            writer.end("a1", "GET", "http://a.test/needle-url")
            writer.end(
                "a2", "GET", "http://a.test/", [("http.request.headers", .text("X-A: needle-q"))])
            writer.end(
                "a3", "GET", "http://a.test/",
                [("http.response.body", .bytes([0, 255] + Array("needle-body".utf8)))])
            writer.end(
                "a4", "GET", "http://a.test/", status: 403,
                [("odata.code", .text("SY/530")), ("odata.message", .text("needle-odata"))])
            writer.end("a5", "GET", "http://a.test/", [("error.message", .text("needle-error"))])
        }
        XCTAssertEqual(try ids("--grep", "needle"), ["a1", "a2", "a3", "a4", "a5"])
        XCTAssertEqual(try ids("--grep", "^X-A: needle"), ["a2"])
        XCTAssertEqual(try ids("--grep", "NEEDLE-B", "-i"), ["a3"])
        XCTAssertEqual(try ids("--grep", "SY/53[0-9]", "--failed"), ["a4"])
        XCTAssertEqual(try ids("--grep", "SY/53[0-9]", "-F", code: 1), [])
        XCTAssertEqual(try run(["--grep", "("]).code, 2)
    }

    func testMembersOfJSON() throws {
        try write { writer in
            writer.end(
                "a1", "POST", "http://a.test:81/", status: 500, ms: 12,
                [
                    ("server.port", .uint(81)), ("http.dns", .uint(1_500_000)),
                    ("http.wait", .uint(9_000_000)), ("http.conversation", .text("c")),
                    ("http.attempt", .uint(2)), ("http.redirected_from", .text("a0")),
                    ("http.request.headers", .text("A: 1\nB:2\nC\n:path: /x")),
                    ("http.request.headers.note", .text("cut")),
                    ("http.request.body", .text("plain")), ("http.request.body.size", .uint(5)),
                    ("http.response.body", .bytes([0xff, 0])),
                    ("http.response.body.size", .uint(99)),
                    ("http.response.body.note", .text("cut, unpacked")),
                    ("txn.id", .text("TXN1-X")), ("odata.code", .text("E1")),
                    ("network.protocol", .text("h2")), ("http.cancelled", .bool(true)),
                ])
        }
        let object = try XCTUnwrap(run(["--json"]).objects().first)
        XCTAssertEqual(object["state"] as? String, "done")
        XCTAssertEqual(object["time"] as? String, "2026-09-21T14:13:20.000Z")
        XCTAssertEqual(object["duration_ms"] as? Double, 12)
        XCTAssertEqual(object["phases_ms"] as? [String: Double], ["dns": 1.5, "wait": 9])
        XCTAssertEqual(object["odata"] as? [String: String], ["code": "E1"])
        XCTAssertEqual(object["cancelled"] as? Bool, true)
        XCTAssertEqual(object["port"] as? Int, 81)
        XCTAssertEqual(object["transaction"] as? String, "TXN1-X")
        XCTAssertNil(object["error"])
        let request = try XCTUnwrap(object["request"] as? [String: Any])
        XCTAssertEqual(request["body"] as? String, "plain")
        XCTAssertEqual(request["headers_note"] as? String, "cut")
        XCTAssertEqual(
            request["headers"] as? [[String: String]],
            [
                ["name": "A", "value": "1"], ["name": "B", "value": "2"],
                ["name": "C", "value": ""], ["name": ":path", "value": "/x"],
            ])
        let response = try XCTUnwrap(object["response"] as? [String: Any])
        XCTAssertEqual(response["body_base64"] as? String, "/wA=")
        XCTAssertEqual(response["body_bytes"] as? Int, 99)
        XCTAssertEqual(response["body_note"] as? String, "cut, unpacked")
    }

    /// Fields that are missing, of the wrong type, repeated, or of any size.
    func testHostileRecords() throws {
        try full()
        let huge = [UInt8](repeating: 0x5b, count: 1 << 20)
        try write { writer in
            writer.record(kind: 4, logger: "HTTP", [])
            writer.record(kind: 4, logger: "HTTP", [("http.op", .text("begin"))])
            writer.record(
                kind: 4, logger: "HTTP",
                [
                    ("http.id", .uint(7)), ("http.op", .bool(true)), ("url.full", .double(1)),
                    ("http.response.status_code", .text("200")), ("http.duration", .int(-5)),
                    ("http.start", .text("now")), ("http.request.body", .uint(1)),
                ])
            writer.record(
                kind: 4, logger: "HTTP", time: 1,
                [
                    ("http.id", .text("big")), ("http.op", .text("end")),
                    ("http.start", .uint(.max)), ("http.duration", .uint(.max)),
                    ("http.dns", .uint(.max)), ("http.tls", .uint(.max)),
                    ("http.response.status_code", .uint(.max)),
                    ("http.response.body.size", .uint(.max)),
                    ("http.response.headers", .bytes([10, 58, 10, 10, 255, 58])),
                    ("http.response.headers", .text("Content-Type: application/json")),
                    ("http.response.body", .bytes(huge)),
                ])
            writer.end("same", "GET", "http://a.test/")
            writer.end("same", "GET", "http://a.test/")
            writer.begin("same", "GET", "http://a.test/")
        }
        for arguments in [
            [], ["--json"], ["--har"], ["--grep", "nothing-there"], ["--slow", "1"],
        ] {
            let done = try run(arguments)
            XCTAssertEqual(done.code, arguments.first == "--grep" ? 1 : 0, "\(arguments)")
            XCTAssertEqual(done.error, "")
        }
        XCTAssertEqual(try run([]).lines.count, 7)
        for arguments in [[], ["--json"], ["--har"], ["--curl"]] {
            let done = try run(["show", "big"] + arguments)
            XCTAssertEqual(done.code, 0, "\(arguments) \(done.error)")
            XCTAssertLessThan(done.out.count, 8 * huge.count)
        }
    }

    func testBodyOf64MiB() throws {
        try full()
        let huge = [UInt8](repeating: 0x20, count: 64 << 20)
        try write(segmentBytes: 256 << 20) { writer in
            writer.end(
                "big", "GET", "http://a.test/",
                [
                    ("http.response.body", .bytes(huge)),
                    ("http.response.body.size", .uint(UInt64(huge.count))),
                ])
        }
        let done = try run([])
        XCTAssertEqual(done.lines.count, 1)
        XCTAssertTrue(done.text.contains(" 64.0M http://a.test/"), done.text)
        XCTAssertEqual(try run(["--grep", "[^ ]{3}/x"]).code, 1)
    }
}
