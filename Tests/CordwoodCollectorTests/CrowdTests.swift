// More clients than connections: who gets one, who gives way, what the others are told, and that
// slow work for one client holds up no other.

import CordwoodServing
import Foundation
import NIOCore
import Synchronization
import XCTest

@testable import CordwoodCollector

final class CrowdTests: CollectorCase {
    private static let health = "GET /healthz HTTP/1.1\r\nHost: t\r\n\r\n"

    private func crowd(_ count: Int, _ port: Int, from source: String = "127.0.0.1") throws
        -> [RawClient]
    {
        try (0..<count).map { _ in
            let client = try RawClient(port: port, from: source)
            client.send(CrowdTests.health)
            XCTAssertEqual(client.answer()?.status, 200)
            return client
        }
    }

    func testTheLongestWaitForARequestGivesWay() throws {
        let port = try start {
            $0.connectionsMax = 3
            $0.headTimeoutPressedMs = 0
        }
        let clients = try crowd(3, port)
        clients[0].send("POST /v1/arch")
        let newcomer = try crowd(1, port)
        XCTAssertTrue(clients[0].isClosedByPeer())
        for client in clients[1...] + newcomer {
            client.send(CrowdTests.health)
            XCTAssertEqual(client.answer()?.status, 200)
        }
    }

    func testAskingNowAndThenKeepsNoConnection() throws {
        let port = try start {
            $0.connectionsMax = 1
            $0.headTimeoutPressedMs = 300
        }
        let hog = try XCTUnwrap(crowd(1, port).first)
        eventually("the idle client that asks for health loses its connection") {
            hog.send(CrowdTests.health)
            _ = hog.answer()
            guard let client = try? RawClient(port: port) else { return false }
            client.send(CrowdTests.health)
            return client.answer()?.status == 200
        }
        XCTAssertTrue(hog.isClosedByPeer())
    }

    func testWhoCameJustNowDoesNotGiveWay() throws {
        let port = try start { $0.connectionsMax = 2 }
        let clients = try crowd(2, port)
        // The answer arrives even if bytes that are never read are on their way.
        for _ in 0..<20 {
            let client = try RawClient(port: port)
            client.send(post(archive(padding: 20_000)))
            let answer = try XCTUnwrap(client.answer())
            XCTAssertEqual(answer.status, 503)
            XCTAssertTrue(answer.head.contains("Retry-After: "), answer.head)
            XCTAssertTrue(client.isClosedByPeer(mayReset: false))
        }
        clients[0].send(CrowdTests.health)
        XCTAssertEqual(clients[0].answer()?.status, 200)
    }

    func testTheSlowestBodyGivesWay() throws {
        let port = try start {
            $0.connectionsMax = 2
            $0.stallTimeoutMs = 50
            $0.bodyBytesPerSecondMin = 0
        }
        let slow = try RawClient(port: port)
        slow.send(post("x", key: CollectorCase.id, length: 5_000_000))
        let other = try crowd(1, port)
        var newcomer: RawClient?
        eventually("the body gives way") {
            guard let client = try? RawClient(port: port) else { return false }
            client.send(CrowdTests.health)
            newcomer = client
            return client.answer()?.status == 200
        }
        let answer = try XCTUnwrap(slow.answer())
        XCTAssertEqual(answer.status, 503)
        XCTAssertTrue(answer.head.contains("Retry-After: "))
        XCTAssertTrue(slow.isClosedByPeer())
        eventually("nothing is left behind") { stored().isEmpty }
        withExtendedLifetime((other, newcomer)) {}
    }

    func testWhatIsStoredDoesNotGiveWay() throws {
        let gate = DispatchSemaphore(value: 0)
        let slow = ArchiveInspector.waiting(for: gate)
        let port = try start(inspector: slow) {
            $0.connectionsMax = 1
            $0.headTimeoutPressedMs = 0
            $0.stallTimeoutMs = 1
        }
        let client = try RawClient(port: port)
        client.send(post(archive(), key: CollectorCase.id))
        eventually("the body has arrived") { stored().count == 1 }
        let newcomer = try RawClient(port: port)
        XCTAssertEqual(newcomer.answer()?.status, 503)
        gate.signal()
        XCTAssertEqual(client.answer()?.status, 200)
    }

    func testAnAddressHasABound() throws {
        let port = try start { $0.connectionsPerAddressMax = 2 }
        let clients = try crowd(2, port, from: "127.0.0.2")
        // However often it is refused, it may come back soon: no other address is in its way.
        for _ in 0..<300 {
            let third = try RawClient(port: port, from: "127.0.0.2")
            let answer = try XCTUnwrap(third.answer())
            XCTAssertEqual(answer.status, 503)
            let text = answer.head.components(separatedBy: "Retry-After: ").last ?? ""
            let seconds = try XCTUnwrap(Int(text.prefix { $0.isNumber }))
            XCTAssertTrue((1...5).contains(seconds), "\(seconds)")
        }
        let others = try crowd(2, port)
        withExtendedLifetime((clients, others)) {}
    }

    func testBoundsOfAddresses() throws {
        func peer(_ text: String) throws -> Peer {
            Peer(try SocketAddress(ipAddress: text, port: 1))
        }
        XCTAssertEqual(try peer("2001:db8::1"), try peer("2001:db8::ffff:2"))
        XCTAssertNotEqual(try peer("2001:db8::1"), try peer("2001:db8:0:1::1"))
        XCTAssertEqual(try peer("::ffff:192.0.2.1"), try peer("192.0.2.1"))
        XCTAssertNotEqual(try peer("192.0.2.1"), try peer("192.0.2.2"))
        var options = CollectorOptions(directory: "")
        for text in ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"] {
            XCTAssertEqual(options.limits.connectionsMax(of: try peer(text)), 256, text)
        }
        for text in ["192.0.2.1", "2001:db8::1", "::2"] {
            XCTAssertEqual(options.limits.connectionsMax(of: try peer(text)), 64, text)
        }
        options.connectionsMax = 2
        XCTAssertEqual(options.limits.connectionsMax(of: try peer("192.0.2.1")), 1)
        options.connectionsPerAddressMax = 9
        XCTAssertEqual(options.limits.connectionsMax(of: try peer("::1")), 2)
    }

    /// As many huge archives as a file pool has threads, and more.
    func testHugeArchivesHoldUpNobody() throws {
        let gate = DispatchSemaphore(value: 0)
        var inspector = ArchiveInspector.text
        inspector.verify = {
            let facts = try ArchiveInspector.parse($0)
            if facts.first > 1 { gate.wait() }
            return facts
        }
        inspector.identify = {
            var facts = try ArchiveInspector.parse($0)
            facts.rawBytes = facts.first > 1 ? 1 << 40 : 1
            return facts
        }
        let port = try start(inspector: inspector) { $0.stopTimeoutMs = 10_000 }
        let huge = try (2..<10).map { number in
            let client = try RawClient(port: port)
            let id = "1111111\(number)-2222-3333-4444-555555555555"
            client.send(post(archive(id: id, first: number, last: number), key: id))
            return client
        }
        eventually("the bodies have arrived") { stored().count == 8 }
        let client = try RawClient(port: port)
        client.send(post(archive(first: 1, last: 1), key: CollectorCase.id))
        XCTAssertEqual(client.hasAnswer(withinMs: 10_000), true)
        for _ in huge { gate.signal() }
        XCTAssertEqual(client.answer()?.status, 200)
        for client in huge { XCTAssertEqual(client.answer()?.status, 200) }
    }

    /// A quarter of the connections may bring them; one more is refused.
    func testLargeArchivesThatWaitHaveABound() throws {
        let gate = DispatchSemaphore(value: 0)
        var inspector = ArchiveInspector.waiting(for: gate)
        inspector.identify = {
            var facts = try ArchiveInspector.parse($0)
            facts.rawBytes = 1 << 40
            return facts
        }
        let port = try start(inspector: inspector) {
            $0.connectionsMax = 12
            $0.stopTimeoutMs = 10_000
        }
        func upload(_ number: Int) -> String {
            let id = "1111111\(number)-2222-3333-4444-555555555555"
            return post(archive(id: id, first: number, last: number), key: id)
        }
        let taken = try (1...3).map { number in
            let client = try RawClient(port: port)
            client.send(upload(number))
            eventually("the body has arrived") { stored().count == number }
            return client
        }
        // Any of the four may be refused: the three may not all be with the checks yet.
        let late = try RawClient(port: port)
        late.send(upload(4))
        let refused = try XCTUnwrap(([late] + taken).first { $0.hasAnswer(withinMs: 5_000) })
        let answer = try XCTUnwrap(refused.answer())
        XCTAssertEqual(answer.status, 503)
        XCTAssertTrue(answer.head.contains("Retry-After: "), answer.head)
        eventually("nothing is left of it") { stored().count == 3 }
        refused.send(CrowdTests.health)
        XCTAssertEqual(refused.answer()?.status, 200)
        for _ in 1...4 { gate.signal() }
        for client in taken + [late] where client !== refused {
            XCTAssertEqual(client.answer()?.status, 200)
        }
        refused.send(upload(4))
        XCTAssertEqual(refused.answer()?.status, 200)
    }

    /// The archive of a client that left is still checked, and keeps its place until then.
    func testWhoLeavesItsUploadBehindIsCounted() throws {
        let gate = DispatchSemaphore(value: 0)
        let slow = ArchiveInspector.waiting(for: gate)
        let port = try start(inspector: slow) {
            $0.connectionsMax = 3
            $0.stopTimeoutMs = 10_000
        }
        for number in 10..<99 {
            let before = Set(stored())
            let client = try RawClient(port: port)
            client.resetAtEnd()
            let id = "111111\(number)-2222-3333-4444-555555555555"
            let body = archive(id: id, first: number, last: number)
            client.send(post(body, key: id))
            // All of it: a reset discards what the collector has not read.
            eventually("it is taken or refused") {
                stored().contains { !before.contains($0) && size(of: $0) == body.utf8.count }
                    || client.hasAnswer(withinMs: 0)
            }
        }
        XCTAssertEqual(stored().count, 3)
        for _ in 0..<3 { gate.signal() }
        eventually("the places are free again") {
            let clients = (0..<3).compactMap { _ in try? RawClient(port: port) }
            for client in clients { client.send(CrowdTests.health) }
            return clients.count == 3 && clients.allSatisfy { $0.answer()?.status == 200 }
        }
    }

    func testStopsBesideHalfAHead() throws {
        let lines = Lines()
        let client = try RawClient(port: try start { $0.notice = lines.add })
        client.send(CrowdTests.health + "POST /v1/arch")
        XCTAssertEqual(client.answer()?.status, 200)
        collector?.stop()
        XCTAssertEqual(lines.all, [])
    }

    // MARK: What is told

    func testALineARefusal() throws {
        let lines = Lines()
        let port = try start {
            $0.tokens = ["right"]
            $0.notice = lines.add
        }
        for _ in 0..<13 {
            let client = try RawClient(port: port)
            client.send(post(archive()))
            XCTAssertEqual(client.answer()?.status, 401)
        }
        let line = "refused 127.0.0.1: 401 token missing or wrong"
        XCTAssertEqual(lines.all, Array(repeating: line, count: 10))
        collector?.stop()
        XCTAssertEqual(lines.all.last, "3 more refusals")
    }

    func testLinesThatCannotBeWrittenAreCounted() {
        let lines = Lines()
        let log = RefusalLog { lines.isOpen ? lines.add($0) : false }
        lines.isOpen = false
        for _ in 0..<3 { log.tell("a", "b", now: .uptimeNanoseconds(1_000_000_000)) }
        log.flush(now: .uptimeNanoseconds(12_000_000_000))
        lines.isOpen = true
        log.flush(now: .uptimeNanoseconds(21_000_000_000))
        XCTAssertEqual(lines.all, [])
        log.tell("a", "b", now: .uptimeNanoseconds(22_000_000_000))
        XCTAssertEqual(lines.all, ["3 more refusals", "refused a: b"])
    }

    func testRefusedClientsDoNotComeBackTogether() {
        /// Evenly distributed.
        func dice(_ number: Int) -> UInt64 { UInt64(number) &* 0x9E37_79B9_7F4A_7C15 }
        /// The most that come back in one second among those refused last.
        func worst(of count: Int, last: Int, seconds range: ClosedRange<Int>) -> Int {
            var times = ReturnTimes()
            var bySecond: [Int: Int] = [:]
            for number in 0..<count {
                let now = NIODeadline.uptimeNanoseconds(UInt64(number) * 100_000)
                let seconds = times.seconds(now: now, random: dice(number))
                XCTAssertTrue(range.contains(seconds), "\(seconds)")
                if number >= count - last { bySecond[seconds, default: 0] += 1 }
            }
            return bySecond.values.max() ?? 0
        }
        XCTAssertLessThan(worst(of: 50, last: 50, seconds: 1...5), 25)
        XCTAssertLessThan(worst(of: 1_000, last: 500, seconds: 1...100), 25)
        XCTAssertLessThan(worst(of: 100_000, last: 10_000, seconds: 1...600), 50)
        // A minute or two later they are forgotten.
        var times = ReturnTimes()
        for second in [0, 0, 30, 61, 200] as [Int64] {
            let now = NIODeadline.distantPast + .hours(1) + .seconds(second)
            XCTAssertTrue((1...5).contains(times.seconds(now: now, random: dice(Int(second)))))
        }
    }

    func testPaceKnowsWhoseTimeItWas() {
        func at(_ ms: Int64) -> NIODeadline { .uptimeNanoseconds(UInt64(ms) * 1_000_000) }
        var pace = Pace(now: at(0))
        pace.add(1_000)
        XCTAssertEqual(pace.endStep(now: at(1_000)), 1_000)
        // Nothing is left of the last step.
        XCTAssertEqual(pace.endStep(now: at(2_000)), 0)
        // Half of the time was ours, across the end of the step.
        pace.jobBegins(now: at(2_500))
        pace.add(100)
        XCTAssertEqual(pace.endStep(now: at(3_000)), 200)
        pace.jobEnds(now: at(3_500))
        pace.add(100)
        XCTAssertEqual(pace.endStep(now: at(4_000)), 200)
        // All of it was.
        pace.jobBegins(now: at(4_000))
        XCTAssertNil(pace.endStep(now: at(5_000)))
        XCTAssertNil(pace.endStep(now: at(6_000)))
    }
}

/// The lines that a collector reported. Any thread.
private final class Lines: Sendable {
    private let content = Mutex((lines: [String](), isOpen: true))

    var all: [String] { content.withLock { $0.lines } }

    var isOpen: Bool {
        get { content.withLock { $0.isOpen } }
        set { content.withLock { $0.isOpen = newValue } }
    }

    @Sendable func add(_ line: String) -> Bool {
        content.withLock { $0.lines.append(line) }
        return true
    }
}
