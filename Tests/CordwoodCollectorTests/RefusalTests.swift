// Everything a client can do wrong, by accident or on purpose: each has its answer, and leaves
// nothing behind.

import CordwoodServing
import Foundation
import XCTest

@testable import CordwoodCollector

final class RefusalTests: CollectorCase {
    override func tearDownWithError() throws {
        eventually("nothing is left behind") { stored().isEmpty }
        try super.tearDownWithError()
    }

    func testToken() throws {
        let port = try start { $0.tokens = ["right-token"] }
        for header in ["", "Bearer wrong token", "Bearer right tokem", "Basic right-token"] {
            let headers = header.isEmpty ? [] : ["Authorization: " + header]
            let client = try RawClient(port: port)
            client.send(post(archive(), headers: headers))
            let answer = try XCTUnwrap(client.answer(), header)
            XCTAssertEqual(answer.status, 401, header)
            XCTAssertTrue(answer.head.contains("WWW-Authenticate: Bearer"))
        }
        let client = try RawClient(port: port)
        client.send(post("x", headers: ["Authorization: bearer right-token"]))
        XCTAssertEqual(client.answer()?.status, 400)
    }

    func testConstantTimeCompare() {
        XCTAssertTrue(Secret.isSame([1, 2, 3], [1, 2, 3]))
        for other: [UInt8] in [[], [1], [1, 2], [1, 2, 4], [1, 2, 3, 1], [1, 2, 3, 1, 2, 3]] {
            XCTAssertFalse(Secret.isSame(other, [1, 2, 3]), "\(other)")
            XCTAssertFalse(Secret.isSame([1, 2, 3], other), "\(other)")
        }
    }

    func testReasonIsEscaped() {
        let reason = "a\"b\\c\n\u{1}\u{1f}\u{7f}é…"
        XCTAssertEqual(
            Answer.error(.badRequest, reason).body,
            "{\"error\":\"a\\\"b\\\\c\\n\\u0001\\u001f\u{7f}é…\"}\n")
    }

    func testLengthIsRequired() throws {
        let port = try start()
        let client = try RawClient(port: port)
        client.send(
            "POST /v1/archives HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")
        XCTAssertEqual(client.answer()?.status, 411)
        let other = try RawClient(port: port)
        other.send("POST /v1/archives HTTP/1.1\r\nHost: t\r\n\r\n")
        XCTAssertEqual(other.answer()?.status, 411)
    }

    func testTooLarge() throws {
        let client = try RawClient(port: try start { $0.archiveBytesMax = 1000 })
        client.send(post(String(repeating: "x", count: 1001)))
        XCTAssertEqual(client.answer()?.status, 413)
        // Far too large: answered before the body arrives.
        client.send(post("", length: 1 << 50))
        XCTAssertEqual(client.answer()?.status, 413)
        XCTAssertTrue(client.isClosedByPeer())
    }

    func testDamaged() throws {
        let client = try RawClient(port: try start())
        client.send(post("not an archive", key: CollectorCase.id))
        let answer = try XCTUnwrap(client.answer())
        XCTAssertEqual(answer.status, 400)
        XCTAssertTrue(answer.body.contains("damaged"))
    }

    func testKeyOfAnotherArchive() throws {
        let client = try RawClient(port: try start())
        client.send(post(archive(), key: "11111111-2222-3333-4444-555555555555"))
        XCTAssertEqual(client.answer()?.status, 400)
        for key in ["", "x", "../../etc", "0f8fad5b-d9cb-469f-a165-70867728950", "{0f8fad5b}"] {
            client.send(post(archive(), key: key))
            XCTAssertEqual(client.answer()?.status, 400, key)
        }
    }

    func testLaneNamesReachNoPath() throws {
        let client = try RawClient(port: try start())
        let bad = [
            "../../../tmp/x", "/etc/passwd", "..", "20261121T081530Z-812-../../../../../x",
            "20261121T081530Z-812-9F3C5A0DE1B27788", "20261121T081530Z-812-9f3c5a0de1b2778",
            "20261121T081530Z--9f3c5a0de1b27788", "20261121081530ZZ-1-9f3c5a0de1b27788",
            "20261121T081530Z-812-9f3c5a0de1b27788-1",
        ]
        for lane in bad {
            client.send(post(archive(lane: lane)))
            XCTAssertEqual(client.answer()?.status, 400, lane)
        }
        client.send(post(archive(first: 9, last: 2)))
        XCTAssertEqual(client.answer()?.status, 400)
    }

    func testBodyCutShort() throws {
        let port = try start()
        do {
            let client = try RawClient(port: port)
            client.send(post(archive(), key: CollectorCase.id, length: 5000))
            eventually("the upload is received") { stored().count == 1 }
            client.endSending()
            XCTAssertEqual(client.answer()?.status, 400)
            XCTAssertTrue(client.isClosedByPeer())
        }
        let client = try RawClient(port: port)
        client.send(post(archive(), key: CollectorCase.id, length: 5000))
        eventually("the upload is received") { stored().count == 1 }
    }

    func testSlowBody() throws {
        let client = try RawClient(port: try start { $0.stallTimeoutMs = 200 })
        client.send(post("part", key: CollectorCase.id, length: 5000))
        XCTAssertEqual(client.answer()?.status, 408)
        XCTAssertTrue(client.isClosedByPeer())
    }

    /// Writing each piece must not count as time that the disk took.
    func testTrickledBody() throws {
        let client = try RawClient(port: try start { $0.stallTimeoutMs = 200 })
        client.send(post("", key: CollectorCase.id, length: 50_000_000))
        var sent = 0
        while !client.hasAnswer(withinMs: 20) && sent < 1_000 {
            client.send("x")
            sent += 1
        }
        XCTAssertLessThan(sent, 1_000, "the trickle goes on")
        XCTAssertEqual(client.answer()?.status, 408)
        XCTAssertTrue(client.isClosedByPeer())
    }

    func testWithoutATokenNoBodyIsWaitedFor() throws {
        let port = try start {
            $0.tokens = ["right"]
            $0.stallTimeoutMs = 60_000
        }
        for (line, status) in [
            ("POST /v1/archives", 401), ("PUT /v1/archives", 405), ("POST /elsewhere", 404),
            ("GET /healthz", 200),
        ] {
            for length in ["5000000", "5000000 "] {
                let client = try RawClient(port: port)
                client.send("\(line) HTTP/1.1\r\nHost: t\r\nContent-Length: \(length)\r\n\r\nx")
                XCTAssertEqual(client.answer()?.status, status, line)
                XCTAssertTrue(client.isClosedByPeer(), line)
            }
        }
    }

    func testSlowHead() throws {
        let client = try RawClient(port: try start { $0.headTimeoutMs = 200 })
        client.send("POST /v1/arch")
        XCTAssertTrue(client.isClosedByPeer())
    }

    func testHeadersTooLarge() throws {
        let client = try RawClient(port: try start())
        client.send(post("x", headers: ["X-Long: " + String(repeating: "y", count: 100_000)]))
        XCTAssertEqual(client.answer()?.status, 431)
        XCTAssertTrue(client.isClosedByPeer())
    }

    func testNotHTTP() throws {
        let client = try RawClient(port: try start())
        client.send("\u{16}\u{3}\u{1} hello\r\n\r\n")
        XCTAssertEqual(client.answer()?.status, 400)
        XCTAssertTrue(client.isClosedByPeer())
    }

    func testPathsAndMethods() throws {
        let client = try RawClient(port: try start())
        for (line, status) in [
            ("GET /", 404), ("GET /v1/archives/x", 404), ("GET /v1/archives", 405),
            ("DELETE /v1/archives", 405), ("POST /healthz", 405), ("GET /healthz", 200),
            ("GET /healthz?x=1", 200), ("PUT /healthz", 405), ("GET /../../etc/passwd", 404),
        ] {
            client.send("\(line) HTTP/1.1\r\nHost: t\r\nContent-Length: 0\r\n\r\n")
            XCTAssertEqual(client.answer()?.status, status, line)
        }
    }

    /// A body after an answer to HEAD would be taken for the next answer.
    func testHeadHasNoBody() throws {
        let port = try start()
        for (path, status) in [("/healthz", 200), ("/v1/archives", 405), ("/", 404)] {
            let client = try RawClient(port: port)
            client.send(
                "HEAD \(path) HTTP/1.1\r\nHost: t\r\n\r\n"
                    + "GET \(path) HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n")
            let parts = client.rest().components(separatedBy: "\r\n\r\n")
            XCTAssertEqual(parts.count, 3, path)
            XCTAssertTrue(parts.allSatisfy { !$0.isEmpty }, path)
            for head in parts.dropLast() {
                XCTAssertTrue(head.hasPrefix("HTTP/1.1 \(status) "), head)
                XCTAssertTrue(
                    head.lowercased().contains("content-length: \(parts[2].utf8.count)"), head)
            }
        }
    }

    func testAnAnswerToRubbishAfterHeadHasItsBody() throws {
        let client = try RawClient(port: try start())
        client.send("HEAD / HTTP/1.1\r\nHost: t\r\n\r\nrubbish\r\n\r\n")
        let parts = client.rest().components(separatedBy: "\r\n\r\n")
        XCTAssertEqual(parts.last, "{\"error\":\"not a valid HTTP request\"}\n")
    }

    func testTooManyConnections() throws {
        let port = try start { $0.connectionsMax = 2 }
        let health = "GET /healthz HTTP/1.1\r\nHost: t\r\n\r\n"
        var clients: [RawClient] = []
        for _ in 0..<2 {
            let client = try RawClient(port: port)
            client.send(health)
            XCTAssertEqual(client.answer()?.status, 200)
            clients.append(client)
        }
        let third = try RawClient(port: port)
        XCTAssertEqual(third.answer()?.status, 503)
        clients.removeAll()
        eventually("a place is free again") {
            guard let client = try? RawClient(port: port) else { return false }
            client.send(health)
            return client.answer()?.status == 200
        }
    }
}
