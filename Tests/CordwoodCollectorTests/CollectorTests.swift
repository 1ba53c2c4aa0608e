// What is taken and answered, and that nothing is stored unacknowledged, or twice.

import Foundation
import XCTest

@testable import CordwoodCollector

final class CollectorTests: CollectorCase {
    func testStoresAnArchiveUnderItsOwnName() throws {
        let client = try RawClient(port: try start())
        client.send(post(archive(padding: 3_000_000), key: CollectorCase.id))
        let answer = try XCTUnwrap(client.answer())
        XCTAssertEqual(answer.status, 200)
        XCTAssertEqual(
            answer.body, "{\"id\":\"\(CollectorCase.id)\",\"stored\":true,\"records\":7}\n")
        XCTAssertEqual(stored(), [CollectorCase.name])
        let path = "\(directory)/archives/\(CollectorCase.name)"
        XCTAssertEqual(
            try String(contentsOfFile: path, encoding: .utf8), archive(padding: 3_000_000))
        let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions]
        XCTAssertEqual(mode as? Int, 0o600)
    }

    func testDirectoryIsAStore() throws {
        _ = try start()
        let text = try String(contentsOfFile: directory + "/store", encoding: .utf8)
        XCTAssertTrue(text.hasPrefix("cordwood store\nformat 1\n"), text)
        XCTAssertTrue(FileManager.default.fileExists(atPath: directory + "/lanes"))
    }

    func testARepeatedIdIsAnsweredAndStoredOnce() throws {
        let client = try RawClient(port: try start())
        for _ in 0..<3 {
            client.send(post(archive(), key: CollectorCase.id))
            XCTAssertEqual(client.answer()?.status, 200)
        }
        client.send(post(archive()))
        XCTAssertEqual(client.answer()?.status, 200)
        XCTAssertEqual(stored(), [CollectorCase.name])
    }

    func testAnArchiveThatWasRemovedIsTakenAgain() throws {
        let client = try RawClient(port: try start())
        client.send(post(archive(), key: CollectorCase.id))
        XCTAssertEqual(client.answer()?.status, 200)
        unlink("\(directory)/archives/\(CollectorCase.name)")
        client.send(post(archive(), key: CollectorCase.id))
        XCTAssertEqual(client.answer()?.status, 200)
        XCTAssertEqual(stored(), [CollectorCase.name])
    }

    private static let merged = "7c9e6679-7425-40de-944b-e07fc1f90ae7"
    private static let mergedName = "\(CollectorCase.lane).00000001-00000004+3.7c9e6679742540de.cwa"

    /// An archive that replaces others keeps its name, and those are not taken again.
    func testWhatACompactedArchiveReplacesIsKnown() throws {
        let whole =
            "\(CollectorTests.merged) \(CollectorCase.lane) 1 4 whole +3 \(CollectorCase.id)\n"
        var client = try RawClient(port: try start())
        client.send(post(whole, key: CollectorTests.merged))
        XCTAssertEqual(client.answer()?.status, 200)
        XCTAssertEqual(stored(), [CollectorTests.mergedName])
        for _ in 0..<2 {
            client.send(post(archive(), key: CollectorCase.id))
            XCTAssertEqual(client.answer()?.status, 200)
            XCTAssertEqual(stored(), [CollectorTests.mergedName])
            collector?.stop()
            client = try RawClient(port: try start())
        }
    }

    /// `cordwood compact` in the collector's own directory.
    func testWhatIsCompactedBeneathItIsKnown() throws {
        let client = try RawClient(port: try start())
        client.send(post(archive(), key: CollectorCase.id))
        XCTAssertEqual(client.answer()?.status, 200)
        let whole =
            "\(CollectorTests.merged) \(CollectorCase.lane) 1 4 whole +3 \(CollectorCase.id)\n"
        try whole.write(
            toFile: "\(directory)/archives/\(CollectorTests.mergedName)", atomically: true,
            encoding: .utf8)
        unlink("\(directory)/archives/\(CollectorCase.name)")
        client.send(post(archive(), key: CollectorCase.id))
        XCTAssertEqual(client.answer()?.status, 200)
        XCTAssertEqual(stored(), [CollectorTests.mergedName])
    }

    /// A client that is slow, or a stranger who knows the id, keeps nobody from sending it.
    func testABodyUnderWayKeepsNobodyFromItsId() throws {
        let port = try start()
        let first = try RawClient(port: port)
        let whole = archive(padding: 1000)
        first.send(post(String(whole.prefix(500)), key: CollectorCase.id, length: whole.count))
        eventually("the first upload is received") { stored().count == 1 }
        let second = try RawClient(port: port)
        second.send(post(archive(), key: CollectorCase.id))
        XCTAssertEqual(second.answer()?.status, 200)
        first.send(String(whole.dropFirst(500)))
        XCTAssertEqual(first.answer()?.status, 200)
        eventually("it is there once") { stored() == [CollectorCase.name] }
    }

    func testPipelinedRequestsAreAnsweredInOrder() throws {
        let client = try RawClient(port: try start())
        let other = "11111111-2222-3333-4444-555555555555"
        client.send(
            post(archive(), key: CollectorCase.id)
                + post(archive(id: other, first: 3, last: 3), key: other)
                + "GET /healthz HTTP/1.1\r\nHost: test\r\n\r\n")
        XCTAssertEqual(client.answer()?.body.contains(CollectorCase.id), true)
        XCTAssertEqual(client.answer()?.body.contains(other), true)
        XCTAssertEqual(client.answer()?.status, 200)
        XCTAssertEqual(stored().count, 2)
    }

    func testIdsSurviveARestartAndLeftoversDoNot() throws {
        var client = try RawClient(port: try start())
        client.send(post(archive(), key: CollectorCase.id))
        XCTAssertEqual(client.answer()?.status, 200)
        collector?.stop()
        let leftover = "\(directory)/archives/.incoming-0123456789abcdef"
        _ = FileManager.default.createFile(atPath: leftover, contents: Data([1]))
        client = try RawClient(port: try start())
        XCTAssertEqual(stored(), [CollectorCase.name])
        // The id alone proves nothing.
        client.send(post("damaged", key: CollectorCase.id))
        XCTAssertEqual(client.answer()?.status, 400)
        client.send(post(archive(), key: CollectorCase.id))
        XCTAssertEqual(client.answer()?.status, 200)
        XCTAssertEqual(stored(), [CollectorCase.name])
    }

    func testTwoCollectorsDoNotShareADirectory() throws {
        _ = try start()
        let second = Collector(
            options: CollectorOptions(directory: directory), inspector: .text)
        XCTAssertThrowsError(try second.start()) {
            guard case CollectorError.inUse = $0 else { return XCTFail("\($0)") }
        }
    }

    func testListensOnAddressesOnly() throws {
        XCTAssertThrowsError(try start { $0.host = "example.com" }) {
            guard case CollectorError.listen = $0 else { return XCTFail("\($0)") }
        }
    }

    func testRefusesTheFirstUploadsWhenTold() throws {
        let client = try RawClient(
            port: try start {
                $0.refuseFirst = 2
                $0.retryAfterSeconds = 7
            })
        for _ in 0..<2 {
            client.send(post(archive(), key: CollectorCase.id))
            let answer = try XCTUnwrap(client.answer())
            XCTAssertEqual(answer.status, 503)
            XCTAssertTrue(answer.head.contains("Retry-After: 7"))
        }
        client.send(post(archive(), key: CollectorCase.id))
        XCTAssertEqual(client.answer()?.status, 200)
    }

    func testContinueIsSentOnlyWhenTheBodyIsWanted() throws {
        let client = try RawClient(port: try start())
        let request = post(archive(), key: CollectorCase.id, headers: ["Expect: 100-continue"])
        let head = String(request.dropLast(archive().count))
        client.send(head)
        XCTAssertEqual(client.answer()?.status, 100)
        client.send(archive())
        XCTAssertEqual(client.answer()?.status, 200)
        client.send(head.replacingOccurrences(of: "/v1/archives", with: "/elsewhere"))
        XCTAssertEqual(client.answer()?.status, 404)
        XCTAssertTrue(client.isClosedByPeer())
    }

    func testStopFinishesWhatIsBeingStored() throws {
        let gate = DispatchSemaphore(value: 0)
        let slow = ArchiveInspector.waiting(for: gate)
        let client = try RawClient(port: try start(inspector: slow) { $0.stopTimeoutMs = 10_000 })
        client.send(post(archive(), key: CollectorCase.id))
        eventually("the body has arrived") { stored().count == 1 }
        let stopped = expectation(description: "stopped")
        let collector = self.collector
        Thread.detachNewThread {
            collector?.stop()
            stopped.fulfill()
        }
        gate.signal()
        XCTAssertEqual(client.answer()?.status, 200)
        XCTAssertTrue(client.isClosedByPeer())
        wait(for: [stopped], timeout: 20)
        XCTAssertEqual(stored(), [CollectorCase.name])
    }
}
