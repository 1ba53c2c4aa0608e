// Archives sent in parts: where a body ends, how a part is named, what survives a restart, what a
// target does not want, and several targets and requests at a time.

import CordwoodStore
import Foundation
import XCTest

@testable import CordwoodCore
@testable import CordwoodShip

final class UploadPartTests: XCTestCase {
    private let id = TestStore.id(1)

    private func add(
        _ store: TestStore, _ service: UploadService, _ server: FaultServer,
        _ change: @escaping (inout TargetOptions) -> Void = { _ in }
    ) throws {
        _ = try service.addTarget(
            store.target(server.url) {
                $0.kind = "http"
                $0.format = "text"
                change(&$0)
            })
    }

    private func content(_ count: Int) -> String {
        (0..<count).map { "record \($0)" }.joined(separator: "\n")
    }

    /// The messages of all bodies that were answered with 2xx, in the order of arrival.
    private func messages(_ server: FaultServer) -> [String] {
        server.requests.map(\.number).flatMap { number in
            String(decoding: server.body(number), as: UTF8.self).split(separator: "\n")
                .compactMap { line in
                    line.range(of: "record").map { String(line[$0.lowerBound...]) }
                }
        }
    }

    private func expected(_ range: Range<Int>) -> [String] { range.map { "record \($0)" } }

    func testPartsHaveTheirOwnIdsAndTogetherEverything() throws {
        let server = try FaultServer()
        let store = try TestStore()
        store.addArchive(1, content: content(25))
        let service = try store.service()
        try add(store, service, server) { $0.bodyRecordsMax = 10 }
        let (status, result) = service.pass()
        XCTAssertEqual(status, .ok)
        XCTAssertEqual(result.uploaded, 1)
        XCTAssertEqual(
            server.requests.map { $0.headers["idempotency-key"] },
            ["\"\(id).0-9\"", "\"\(id).10-19\"", "\"\(id).20-24\""])
        XCTAssertEqual(messages(server), expected(0..<25))
        XCTAssertEqual(store.events.all, ["attempt 1", "completed ok 200"])
        XCTAssertFalse(store.hasArchive(1))
    }

    func testBytesOfABodyStayBelowTheLimit() throws {
        let server = try FaultServer()
        let store = try TestStore()
        store.addArchive(1, content: content(200))
        let service = try store.service()
        try add(store, service, server) { $0.bodyBytesMax = 1_000 }
        XCTAssertEqual(service.pass().0, .ok)
        XCTAssertTrue(server.requests.allSatisfy { $0.bytes <= 1_000 })
        XCTAssertTrue(server.requests.dropLast().allSatisfy { $0.bytes > 900 })
        XCTAssertEqual(messages(server), expected(0..<200))
    }

    func testTooLargeIsHalvedAndRemembered() throws {
        let server = try FaultServer(#"[{"status":413},{"status":413}]"#)
        let store = try TestStore()
        store.addArchive(1, content: content(40))
        store.addArchive(2, content: content(40))
        let service = try store.service()
        try add(store, service, server) {
            $0.bodyRecordsMax = 40
            $0.requestsMax = 1
        }
        XCTAssertEqual(service.pass().0, .ok)
        let counts = server.requests.map { request in
            server.body(request.number).split(separator: 10).count
        }
        XCTAssertEqual(counts[0], 40)
        XCTAssertTrue((19...20).contains(counts[1]), "\(counts)")
        XCTAssertTrue(counts[2...].allSatisfy { $0 <= 10 }, "\(counts)")
        XCTAssertEqual(counts[2...].reduce(0, +), 80)
    }

    func testMessagesAreCutToFit() throws {
        let server = try FaultServer()
        let store = try TestStore()
        let long = "record " + String(repeating: "é", count: 5_000)
        store.addArchive(1, content: content(2) + "\n" + long + "\n" + content(1))
        let service = try store.service()
        try add(store, service, server) { $0.bodyBytesMax = 2_000 }
        let (status, result) = service.pass()
        XCTAssertEqual(status, .ok)
        XCTAssertEqual(result.refused, 0)
        XCTAssertTrue(server.requests.allSatisfy { $0.bytes <= 2_000 })
        let all = server.requests.map { String(decoding: server.body($0.number), as: UTF8.self) }
        XCTAssertFalse(all.joined().unicodeScalars.contains("\u{FFFD}"))
        XCTAssertEqual(messages(server).count, 4)
        XCTAssertTrue(all.joined().contains("10007"), "the original length is said")
    }

    func testProgressSurvivesARestart() throws {
        // On a kept connection that dies without an answer, libcurl would send again by itself.
        let server = try FaultServer(
            #"[{"headers":{"Connection":"close"}},{"action":"lose"}]"#)
        let store = try TestStore()
        store.addArchive(1, content: content(30))
        let service = try store.service()
        try add(store, service, server) { $0.bodyRecordsMax = 10 }
        XCTAssertEqual(service.pass().0, .upload)
        XCTAssertTrue(
            store.queue.first?.hasSuffix("-failed-10-20") ?? false, "\(store.queue)")

        // Another limit, another encoding: the part in doubt stays what it was.
        let restarted = try store.service()
        try add(store, restarted, server) { $0.bodyRecordsMax = 15 }
        XCTAssertEqual(restarted.pass().0, .ok)
        XCTAssertEqual(
            server.requests.map { $0.headers["idempotency-key"] },
            ["0-9", "10-19", "10-19", "20-29"].map { "\"\(id).\($0)\"" })
        XCTAssertEqual(server.stored["\"\(id).10-19\""]?.times, 2)
        XCTAssertEqual(server.stored["\"\(id).10-19\""]?.same, true)
        XCTAssertFalse(store.hasArchive(1))
    }

    func testFilterPassesOverRecordsAndWholeArchives() throws {
        let server = try FaultServer()
        let store = try TestStore()
        store.addArchive(1, content: content(5))
        let service = try store.service()
        try add(store, service, server) { $0.level = 13 }
        let (status, result) = service.pass()
        XCTAssertEqual(status, .end)
        XCTAssertEqual(result.uploaded, 0)
        XCTAssertEqual(server.requests.count, 0)
        XCTAssertEqual(store.events.all, ["attempt 1", "completed ok 0"])
        XCTAssertFalse(store.hasArchive(1))
        store.addArchive(2, content: content(5))
        try add(store, service, server) { $0.name = "b" }
        XCTAssertEqual(service.pass().1.uploaded, 1)
        XCTAssertEqual(messages(server), expected(0..<5))
        XCTAssertFalse(store.hasArchive(2))
    }

    func testASlowTargetHoldsUpNoOther() throws {
        let (slow, fast) = (try FaultServer(#"[{"action":"hang"}]"#), try FaultServer())
        let store = try TestStore()
        for number in 1...5 { store.addArchive(number) }
        let service = try store.service()
        _ = try service.addTarget(store.target(slow.url) { $0.name = "slow" })
        _ = try service.addTarget(store.target(fast.url) { $0.name = "fast" })
        service.startBackground()
        eventually("the fast one has all") { fast.stored.count == 5 }
        let begun = "retry-0-0-stopped"
        eventually("the states") {
            store.queue == [begun] + Array(repeating: "sent-200", count: 5)
        }
        XCTAssertEqual(slow.stored.count, 0)
        service.requestStop()
        eventually("all has ended") { store.queue.count == 6 }
    }

    /// A program adds its targets one after another: what the first one has must not be deleted
    /// before the second is registered.
    func testTheBackgroundWaitsForAllTargetsOfAProgram() throws {
        let (first, second) = (try FaultServer(), try FaultServer())
        let store = try TestStore()
        store.addArchive(1)
        let service = try store.service(settleMs: 60_000)
        let before = UploadClock.system.monotonicMs()
        try add(store, service, first) { $0.name = "first" }
        XCTAssertGreaterThanOrEqual(service.nextWakeMonotonicMs, before + 60_000)
        service.startBackground()
        let begins = service.nextWakeMonotonicMs
        XCTAssertGreaterThanOrEqual(begins, before + 60_000)
        XCTAssertEqual(store.queue, [], "nothing has begun")
        store.clock.advanceMonotonic(ms: 1_000)
        try add(store, service, second) { $0.name = "second" }
        XCTAssertGreaterThanOrEqual(service.nextWakeMonotonicMs, begins + 1_000)
        service.startBackground()
        XCTAssertEqual(store.queue, [], "nor with the second")
        store.clock.advanceMonotonic(ms: 60_000)
        service.startBackground()
        eventually("both have it") { first.stored.count == 1 && second.stored.count == 1 }
        eventually("then it goes") {
            if !store.hasArchive(1) { return true }
            // As engines do when a run has ended: the other run may still hold the archive.
            service.startBackground()
            return false
        }
        eventually("nothing is planned") { service.nextWakeMonotonicMs == .max }
    }

    func testTheBackgroundWaitsForExplicitCalls() throws {
        let server = try FaultServer()
        let store = try TestStore()
        let service = try store.service()
        try add(store, service, server)
        service.holdingBackground {
            store.addArchive(1)
            service.startBackground()
            service.holdingBackground { service.startBackground() }
            service.startBackground()
            XCTAssertEqual(service.nextWakeMonotonicMs, .max)
            XCTAssertEqual(service.pass().1.uploaded, 1, "the call's own")
        }
        store.addArchive(2)
        service.startBackground()
        eventually("the background goes on") { server.stored.count == 2 }
        eventually("its run has ended") { store.queue.isEmpty }
        XCTAssertTrue(server.stored.values.allSatisfy { $0.times == 1 })
    }

    func testRequestsAtATimeGrowAndStayBounded() throws {
        let server = try FaultServer()
        let store = try TestStore()
        for number in 1...40 { store.addArchive(number) }
        let service = try store.service()
        _ = try service.addTarget(store.target(server.url) { $0.requestsMax = 3 })
        XCTAssertEqual(service.pass().1.uploaded, 40)
        XCTAssertEqual(server.stored.count, 40)
        XCTAssertTrue(server.stored.values.allSatisfy { $0.times == 1 })
    }

    func testConditionAndDrained() throws {
        let server = try FaultServer()
        let store = try TestStore()
        store.addArchive(1)
        let service = try store.service()
        let events = store.events
        let may = Events()
        var options = TargetOptions(url: server.url)
        options.name = "t"
        var callbacks = TargetCallbacks()
        callbacks.condition = { !may.all.isEmpty }
        callbacks.drained = { events.add("drained") }
        _ = try service.addTarget(try Target(options, callbacks: callbacks))
        XCTAssertEqual(service.pass(explicit: false).0, .upload)
        XCTAssertEqual(server.requests.count, 0)
        may.add("now")
        XCTAssertEqual(service.pass(explicit: false).0, .ok)
        XCTAssertEqual(service.pass(explicit: false).0, .end)
        XCTAssertEqual(store.events.all, ["drained"])
        store.addArchive(2)
        XCTAssertEqual(service.pass().0, .ok, "an explicit call overrides the condition")
        XCTAssertEqual(store.events.all, ["drained", "drained"])
    }
}
