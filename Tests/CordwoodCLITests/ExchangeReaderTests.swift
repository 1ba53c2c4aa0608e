// The readers for Swift programs: a store's exchanges in order and live, the bounds on open ones,
// URLs and hosts in their parts.

import Cordwood
import CordwoodEngine
import CordwoodStore
import CordwoodTestSupport
import CordwoodTrace
import Foundation
import XCTest

final class ExchangeReaderTests: CommandCase {
    private var now: UInt64 { UInt64(Date().timeIntervalSince1970) * 1_000_000_000 }

    func testOrderAndFollowing() throws {
        let engine = try Engine(directory: store)
        let writer = Writer(engine: engine)
        writer.begin("a1", "GET", "http://a.test/1", at: now)
        writer.begin("a2", "GET", "http://a.test/2", at: now)
        writer.end("a2", "GET", "http://a.test/2", at: now)
        let whole = try ExchangeReader(path: store)
        XCTAssertEqual(whole.next()?.id, "a2")
        let open = try XCTUnwrap(whole.next())
        XCTAssertEqual(open.id, "a1")
        XCTAssertTrue(open.isOpen)
        XCTAssertFalse(open.isFailed)
        XCTAssertNil(whole.next())
        XCTAssertNil(whole.next())

        var options = ReaderOptions()
        options.follow = true
        let live = try ExchangeReader(path: store, options: options)
        /// Waits for the exchange in that state; others may come first, since one that just ended
        /// may be shown open before.
        func wait(_ id: String, isOpen: Bool) -> CapturedExchange? {
            for _ in 0..<12_000 {
                while let exchange = live.next() {
                    if exchange.id == id, exchange.isOpen == isOpen { return exchange }
                }
                usleep(5_000)
            }
            return nil
        }
        XCTAssertNotNil(wait("a2", isOpen: false))
        writer.begin("a3", "GET", "http://a.test/3", at: now)
        XCTAssertNotNil(wait("a3", isOpen: true))
        writer.end("a1", "GET", "http://a.test/1", status: 500, at: now)
        XCTAssertEqual(wait("a1", isOpen: false)?.isFailed, true)
        writer.end("a3", "GET", "http://a.test/3", at: now)
        XCTAssertNotNil(wait("a3", isOpen: false))
        XCTAssertNil(live.next())
        XCTAssertTrue(try engine.close())
    }

    /// Beyond the limit the oldest comes first, and none is lost or shown twice as open.
    func testOpenOnesAreBounded() throws {
        try full()
        let count = ExchangeGatherer.openMax + 500
        let start = now
        try write { writer in
            for number in 0..<count {
                writer.begin("id\(number)", "GET", "http://a.test/", at: start + UInt64(number))
            }
            writer.end("id\(count - 1)", "GET", "http://a.test/", at: start)
        }
        let reader = try ExchangeReader(path: store)
        var open: [String] = []
        var ended: [String] = []
        while let exchange = reader.next() {
            let isEnded = !exchange.isOpen && !exchange.isLost
            if isEnded { ended.append(exchange.id) } else { open.append(exchange.id) }
        }
        XCTAssertEqual(ended, ["id\(count - 1)"])
        XCTAssertEqual(open, (0..<(count - 1)).map { "id\($0)" })
    }

    func testOpenOnesAreBoundedInBytes() throws {
        let long = String(repeating: "x", count: 900_000)
        let start = now
        try write { writer in
            for number in 0..<100 {
                writer.begin("id\(number)", "GET", long, at: start + UInt64(number))
            }
        }
        let reader = try StoreReader(path: store)
        var gatherer = ExchangeGatherer()
        var early = 0
        while let record = try reader.advance() {
            gatherer.take(record) { _ in early += 1 }
        }
        XCTAssertGreaterThan(early, 20)
        XCTAssertLessThanOrEqual(
            gatherer.openCount * long.utf8.count, ExchangeGatherer.openBytesMax)
        XCTAssertEqual(early + gatherer.openCount, 100)
    }

    func testURLsTakenApart() {
        func parts(_ text: String) -> CapturedURL { CapturedURL(Array(text.utf8)) }
        for (text, scheme, host, port, target) in [
            ("http://a.test", "http", "a.test", 80, ""),
            ("HTTPS://u:p@a.test:8443/x?y#z", "https", "a.test", 8443, "/x?y"),
            ("http://[::1]:81/", "http", "[::1]", 81, "/"),
            ("http://[::1]?q", "http", "[::1]", 80, "?q"), ("/only", "", "", 0, "/only"),
            ("", "", "", 0, ""), ("ws://a:999999999999999999999/", "ws", "a", 0, "/"),
        ] as [(String, String, String, UInt64, String)] {
            let found = parts(text)
            XCTAssertEqual(found.scheme, scheme, text)
            XCTAssertEqual(found.host, host, text)
            XCTAssertEqual(found.effectivePort ?? 0, port, text)
            XCTAssertEqual(String(decoding: found.target, as: UTF8.self), target, text)
        }
        let items = CapturedURL.items(Array("a=1+2&b=%zz%4&=x&&c=d=e".utf8)[...])
        XCTAssertEqual(
            items.map { String(decoding: $0.name + [0x3d] + $0.value, as: UTF8.self) },
            ["a=1 2", "b=%zz%4", "=x", "c=d=e"])
    }

    func testHostsAndStatuses() {
        var exchange = CapturedExchange()
        func isHost(_ url: String, _ pattern: String) -> Bool {
            exchange.urlBytes = Array(url.utf8)
            var filter = ExchangeFilter()
            filter.hosts = [pattern]
            return filter.matches(exchange, now: 0)
        }
        XCTAssertTrue(isHost("http://A.test/", "a.TEST"))
        XCTAssertTrue(isHost("http://b.a.test/", "*.a.test"))
        XCTAssertFalse(isHost("http://ba.test/", "*.a.test"))
        XCTAssertTrue(isHost("https://a.test/", "a.test:443"))
        XCTAssertFalse(isHost("https://a.test/", "a.test:80"))
        XCTAssertTrue(isHost("http://[::1]:81/", "::1"))
        XCTAssertTrue(isHost("http://[::1]:81/", "[::1]:81"))
        XCTAssertFalse(isHost("http://[::1]:81/", "[::1]:82"))
        for odd in ["", ":", "*", "*.", "]:", "a.test:x"] {
            XCTAssertFalse(isHost("http://a.test/", odd), odd)
        }
        XCTAssertEqual(ExchangeFilter.status("5XX"), 500...599)
        for odd in ["", "-", "5x", "xxx", "404-", "5xxx", "+4", "0x1", "99999999999999999999"] {
            XCTAssertNil(ExchangeFilter.status(odd), odd)
        }
    }
}
