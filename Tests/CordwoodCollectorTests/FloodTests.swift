// Clients that keep sending on one connection: what they can make the collector hold is bounded,
// and it goes on.

import Foundation
import XCTest

@testable import CordwoodCollector

final class FloodTests: CollectorCase {
    private static let megabyte = String(repeating: "x", count: 1 << 20)

    func testNothingIsTakenBehindAnUpgrade() throws {
        let port = try start()
        for head in [
            "GET /healthz HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n",
            "CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n",
        ] {
            let client = try RawClient(port: port)
            client.send(head)
            XCTAssertEqual(client.answer()?.head.contains("Connection: close"), true, head)
            let (sent, isClosed) = client.flood(FloodTests.megabyte, limit: 64 << 20)
            XCTAssertTrue(isClosed, "\(head) \(sent) bytes")
        }
    }

    /// As Java's client does in its first request.
    func testAnUploadThatOffersAnUpgradeIsTaken() throws {
        let client = try RawClient(port: try start())
        client.send(
            post(
                archive(), key: CollectorCase.id,
                headers: ["Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c"]))
        XCTAssertEqual(client.answer()?.status, 200)
        XCTAssertTrue(client.isClosedByPeer())
        XCTAssertEqual(stored(), [CollectorCase.name])
    }

    func testAnswersThatNobodyReadsEndTheReading() throws {
        // The sooner the sockets are full, the fewer requests the collector has to answer first.
        let client = try RawClient(
            port: try start { $0.headTimeoutMs = 500 }, unreadMax: 4_096)
        let padding = String(repeating: "x", count: 60)
        let request = "GET / HTTP/1.1\r\nHost: t\r\nX-Padding: \(padding)\r\n\r\n"
        let limit = 32 << 20
        XCTAssertLessThan(client.flood(request, limit: limit).sent, limit)
        XCTAssertTrue(client.isClosedByPeer())
    }

    func testManyRequestsBehindAnUpload() throws {
        let count = 7_000
        let gate = DispatchSemaphore(value: 0)
        let slow = ArchiveInspector.waiting(for: gate)
        let client = try RawClient(port: try start(inspector: slow))
        client.send(
            post(archive(), key: CollectorCase.id)
                + String(repeating: "GET / HTTP/1.1\r\n\r\n", count: count)
                + "GET /healthz HTTP/1.1\r\n\r\n")
        // All is sent before the answers begin, and the last answer outlives the end of sending.
        client.endSending()
        gate.signal()
        let answers = client.rest().components(separatedBy: "HTTP/1.1 ").dropFirst()
        XCTAssertEqual(answers.count, count + 2)
        XCTAssertEqual(answers.first?.hasPrefix("200 "), true)
        XCTAssertEqual(answers.filter { $0.hasPrefix("404 ") }.count, count)
        XCTAssertEqual(answers.last?.contains("\"ok\""), true, answers.last ?? "")
    }
}
