// Exchanges that Swift hosts record themselves: what is reported of one is in its record, nothing
// else is, and one that is never ended ends with its last reference.

import Cordwood
import CordwoodEngine
import CordwoodTestSupport
import CordwoodTrace
import Foundation
import XCTest

final class HTTPExchangeTests: XCTestCase {
    private var directory = ""
    private var engine: Engine!

    override func setUpWithError() throws {
        directory = StorePlace.path("exchange")
        engine = try Engine(directory: directory)
        addTeardownBlock { [engine, directory] in
            try engine?.close()
            try? FileManager.default.removeItem(atPath: directory)
        }
    }

    private func captures() throws {
        var options = HTTPCaptureOptions()
        options.isEnabled = true
        options.keepText = ["* */*"]
        try engine.setHTTPCapture(options)
    }

    private func exchanges() throws -> [CapturedExchange] {
        let reader = try ExchangeReader(path: directory)
        var found: [CapturedExchange] = []
        while let exchange = reader.next() { found.append(exchange) }
        return found
    }

    /// Rules are replaced while exchanges begin: none is released while it is about to be used.
    func testOptionsAreSetWhileExchangesBegin() throws {
        try full()
        try captures()
        let engine = try XCTUnwrap(engine)
        let ended = Counter()
        DispatchQueue.concurrentPerform(iterations: 10) { (number: Int) -> Void in
            for _ in 0..<(number < 3 ? 300 : 1_500) {
                if number < 3 {
                    var options = HTTPCaptureOptions()
                    options.isEnabled = true
                    options.keepText = ["* */*"]
                    do { try engine.setHTTPCapture(options) } catch { XCTFail("\(error)") }
                } else if let one = engine.beginHTTP(method: "GET", url: "https://h/x?token=a") {
                    ended.add(one.end() == 0)
                }
            }
        }
        XCTAssertEqual(ended.count, 7 * 1_500)
    }

    private final class Counter: @unchecked Sendable {
        private let lock = NSLock()
        private(set) var count = 0
        func add(_ isOne: Bool) { lock.withLock { count += isOne ? 1 : 0 } }
    }

    func testWhatIsToldIsKept() throws {
        try captures()
        let begun = try XCTUnwrap(
            engine.beginHTTP(
                method: "POST", url: "https://api.example.com/v1/orders?token=s3cr3t",
                headers: [
                    ("Content-Type", "application/json"), ("Authorization", "Bearer s3cr3t"),
                ],
                body: Array("{\"password\":".utf8), redirectedFrom: "0123456789abcdef",
                attempt: 2))
        begun.requestBody(Array("\"s3cr3t\",\"order\":7}".utf8))
        begun.response(
            status: 100, headers: [("X-First", "1")], protocolName: "http/1.1")
        begun.response(
            status: 403, headers: [("Content-Type", "application/json")], protocolName: "h2")
        begun.responseBody(Array("{\"error\":{\"code\":\"SY/530\",".utf8))
        begun.responseBody(Array("\"message\":\"No such team\"}}".utf8))
        begun.responseBody(hidden: 5)
        var timings = HTTPTimings()
        timings.dns = 1_000
        timings.duration = 2_000_000
        XCTAssertEqual(begun.end(timings: timings, remoteAddress: "192.0.2.1:443"), 0)
        XCTAssertEqual(begun.end(), 1, "it has ended")

        let found = try XCTUnwrap(exchanges().first)
        XCTAssertEqual(found.id, begun.id)
        XCTAssertEqual(found.method, "POST")
        XCTAssertEqual(found.url, "https://api.example.com/v1/orders?token=[redacted]")
        XCTAssertEqual(found.status, 403)
        XCTAssertEqual(found.networkProtocol, "h2")
        XCTAssertEqual(found.request.header("authorization"), "[redacted]")
        XCTAssertNil(found.response.header("X-First"))
        XCTAssertEqual(
            found.request.body.map { String(decoding: $0, as: UTF8.self) },
            "{\"password\":\"[redacted]\",\"order\":7}")
        XCTAssertEqual(found.odataCode, "SY/530")
        XCTAssertEqual(found.response.bodyBytes, 52 + 5)
        XCTAssertTrue(found.response.isNoted("not shown"))
        XCTAssertEqual(found.phases.dns, 1_000)
        XCTAssertEqual(found.duration, 2_000_000)
        XCTAssertEqual(found.peer, "192.0.2.1:443")
        XCTAssertEqual(found.redirectedFrom, "0123456789abcdef")
        XCTAssertEqual(found.attempt, 2)
    }

    func testWhoIsForgottenEnds() throws {
        try captures()
        do { _ = engine.beginHTTP(method: "GET", url: "http://127.0.0.1:1/") }
        let found = try exchanges()
        XCTAssertEqual(found.count, 1)
        XCTAssertEqual(found.first?.errorType, "abandoned")
        XCTAssertNil(found.first?.status)
    }

    func testOffAndClosedGiveNothing() throws {
        XCTAssertNil(engine.beginHTTP(method: "GET", url: "http://127.0.0.1:1/"))
        try captures()
        XCTAssertNil(engine.beginHTTP(method: "", url: "http://127.0.0.1:1/"))
        XCTAssertNil(engine.beginHTTP(method: "GET", url: ""))
        let open = try XCTUnwrap(engine.beginHTTP(method: "GET", url: "http://127.0.0.1:1/"))
        try engine.close()
        XCTAssertLessThan(open.end(), 0, "the engine is closed")
        XCTAssertNil(engine.beginHTTP(method: "GET", url: "http://127.0.0.1:1/"))
    }
}
