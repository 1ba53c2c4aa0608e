// Uploads against a real server on loopback with scripted answers: what each answer means for the
// archive, its state and the host's callbacks (UPLOADS, Answers; B-ROLL; B-SAP-6).

import Foundation
import Glibc
import XCTest

import CordwoodCore
@testable import CordwoodShip
@testable import CordwoodStore

final class UploadServerTests: XCTestCase {
    private let id1 = "\"\(TestStore.id(1))\""

    private func run(
        _ answers: String, passes: Int = 1, archives: Int = 1,
        _ change: (inout TargetOptions) -> Void = { _ in }
    ) throws -> (TestStore, FaultServer, UploadService, [(UploadStatus, UploadResult)]) {
        let server = try FaultServer(answers)
        let store = try TestStore()
        for number in 1...archives { store.addArchive(number) }
        let service = try store.service()
        _ = try service.addTarget(store.target(server.url, change))
        let results = (0..<passes).map { _ in service.pass() }
        return (store, server, service, results)
    }

    func testSuccessDeletesAndCallsBackOnce() throws {
        let (store, server, service, results) = try run("[]", passes: 2)
        XCTAssertEqual(results[0].0, .ok)
        XCTAssertEqual(results[0].1.uploaded, 1)
        let file = try XCTUnwrap(store.files[1])
        XCTAssertEqual(results[0].1.bytesSent, UInt64(file.count))
        XCTAssertEqual(results[0].1.lastHTTPStatus, 200)
        XCTAssertEqual(results[1].0, .end)
        XCTAssertFalse(store.hasArchive(1))
        XCTAssertEqual(store.queue, [])
        XCTAssertEqual(store.events.all, ["attempt 1", "completed ok 200"])
        XCTAssertEqual(service.totals.bytes, UInt64(file.count))
        let request = try XCTUnwrap(server.requests.first)
        XCTAssertEqual(request.method, "POST")
        XCTAssertEqual(request.path, "/v1/archives")
        XCTAssertEqual(request.headers["content-length"], "\(file.count)")
        XCTAssertEqual(request.headers["content-type"], "application/vnd.cordwood.archive")
        XCTAssertEqual(request.headers["idempotency-key"], id1)
        XCTAssertNil(request.headers["expect"])
        XCTAssertFalse(request.headers.values.contains { $0.contains(store.root) })
        XCTAssertEqual(server.body(1), file)
    }

    func testServerErrorIsRetriedByExplicitCall() throws {
        let (store, server, _, results) = try run(#"[{"status":500}]"#, passes: 2)
        XCTAssertEqual(results[0].0, .upload)
        XCTAssertEqual(results[0].1.failed, 1)
        XCTAssertEqual(results[0].1.waiting, 1)
        XCTAssertEqual(results[0].1.lastOutcome, .server)
        XCTAssertEqual(results[1].0, .ok)
        XCTAssertEqual(server.requests.count, 2)
        XCTAssertEqual(Set(server.requests.map { $0.headers["idempotency-key"] }), [id1])
        XCTAssertEqual(store.events.all, ["attempt 1", "attempt 2", "completed ok 200"])
    }

    func testBackgroundKeepsToBackoff() throws {
        let (store, server, service, _) = try run(#"[{"status":500}]"#)
        XCTAssertEqual(store.queue, ["retry-1-\(store.clock.unixMs + 2_000)-failed"])
        XCTAssertEqual(service.pass(explicit: false).0, .upload)
        XCTAssertEqual(server.requests.count, 1)
        XCTAssertEqual(
            Double(service.nextWakeMonotonicMs),
            Double(UploadClock.system.monotonicMs() + 2_000), accuracy: 500)
        store.clock.advance(ms: 2_000)
        XCTAssertEqual(service.pass(explicit: false).0, .ok)
        XCTAssertFalse(store.hasArchive(1))
        XCTAssertEqual(service.nextWakeMonotonicMs, UInt64.max)
    }

    func testRetryAfterHoldsExplicitCallsAndSurvivesRestart() throws {
        let (store, server, _, results) = try run(
            #"[{"status":503,"headers":{"Retry-After":"1"}}]"#, passes: 2, archives: 2)
        XCTAssertEqual(results[0].1.failed, 1)
        XCTAssertEqual(results[0].1.waiting, 2)
        XCTAssertEqual(results[1].0, .upload)
        XCTAssertEqual(results[1].1.failed, 0)
        XCTAssertEqual(server.requests.count, 1)
        let restarted = try store.service()
        _ = try restarted.addTarget(store.target(server.url))
        XCTAssertEqual(restarted.pass().0, .upload)
        XCTAssertEqual(server.requests.count, 1)
        // An eighth is added, since a server says the same to all clients.
        store.clock.advance(ms: 1_125)
        XCTAssertEqual(restarted.pass().0, .ok)
        XCTAssertEqual(server.requests.count, 3)
    }

    /// 429 and 503 hold the whole target in the background, 500 only its archive.
    func testABusyServerIsAskedByOneRequest() throws {
        for (status, requests) in [(503, 1), (429, 1), (500, 3)] {
            let answers = Array(repeating: "{\"status\":\(status)}", count: 3)
            let server = try FaultServer("[" + answers.joined(separator: ",") + "]")
            let store = try TestStore()
            for number in 1...3 { store.addArchive(number) }
            let service = try store.service()
            _ = try service.addTarget(store.target(server.url))
            XCTAssertEqual(service.pass(explicit: false).0, .upload)
            XCTAssertEqual(server.requests.count, requests, "\(status)")
            XCTAssertEqual(service.pass(explicit: false).0, .upload)
            XCTAssertEqual(server.requests.count, requests, "\(status)")
            XCTAssertEqual(store.queue.count, requests, "\(store.queue)")
            // An explicit call does not wait: it was asked for.
            _ = service.pass()
            XCTAssertEqual(server.requests.count, requests + 3, "\(status)")
        }
    }

    func testTooManyRequestsWithoutHeaderBacksOff() throws {
        let (store, _, _, results) = try run(#"[{"status":429}]"#, passes: 2)
        XCTAssertEqual(results[0].1.lastOutcome, .client)
        XCTAssertEqual(results[1].0, .ok)
        XCTAssertFalse(store.hasArchive(1))
    }

    func testDroppedConnectionIsRequestFailed() throws {
        for action in ["drop", "half"] {
            let (store, _, _, results) = try run("[{\"action\":\"\(action)\"}]", passes: 2)
            XCTAssertEqual(results[0].0, .upload, action)
            XCTAssertEqual(results[0].1.lastOutcome, .requestFailed, action)
            XCTAssertEqual(results[0].1.lastHTTPStatus, 0, action)
            XCTAssertEqual(results[1].0, .ok, action)
            let line = try XCTUnwrap(store.events.diagnostics.first)
            XCTAssertTrue(line.contains("an upload failed"), line)
        }
    }

    /// A compacting program died before it removed the old archives: they go, and the new one is
    /// sent once they are gone.
    func testOfACompactedArchiveOnlyTheWholeIsSent() throws {
        let server = try FaultServer()
        let store = try TestStore()
        for number in 1...3 { store.addArchive(number) }
        let id = try store.addContainer(1...2)
        let service = try store.service(coveredMs: 50)
        _ = try service.addTarget(store.target(server.url))
        // One of the old archives is locked.
        var held = try ArchiveLock(
            paths: store.paths, stem: store.stem(1), target: TargetKey(name: "other"))
        XCTAssertFalse(held == nil)
        XCTAssertEqual(service.pass().1.uploaded, 1)
        XCTAssertEqual(Array(server.stored.keys), ["\"\(TestStore.id(3))\""])
        XCTAssertTrue(store.hasArchive(1))
        XCTAssertFalse(store.hasArchive(2))
        held = nil
        XCTAssertEqual(service.pass().1.uploaded, 1)
        XCTAssertFalse(store.hasArchive(1))
        XCTAssertEqual(
            Set(server.stored.keys), ["\"\(TestStore.id(3))\"", "\"\(id)\""])
        XCTAssertEqual(try StoreFiles.list(store.paths.archives), [])
    }

    /// What an archive says of others counts only if it covers them, and only what it has is
    /// removed for it.
    func testNobodyIsReplacedByWhatLacksTheRecords() throws {
        let server = try FaultServer()
        let store = try TestStore()
        for number in 1...3 { store.addArchive(number) }
        try store.addContainer(1...2, covering: 7...7)
        let service = try store.service(coveredMs: 50)
        _ = try service.addTarget(store.target(server.url))
        XCTAssertEqual(service.pass().1.uploaded, 4)
        XCTAssertEqual(try StoreFiles.list(store.paths.archives), [])
        for number in 4...5 { store.addArchive(number) }
        try store.addContainer(4...5, lacking: 1)
        _ = service.pass()
        XCTAssertTrue(store.hasArchive(5))
        XCTAssertEqual(try CompactionLeftovers.remove(directory: FilePath(store.root)), 0)
        XCTAssertTrue(store.hasArchive(5))
    }

    func testConflictIsRetriedAtCollectorOnly() throws {
        let (store, _, _, results) = try run(#"[{"status":409}]"#, passes: 2)
        XCTAssertEqual(results[0].1.waiting, 1)
        XCTAssertEqual(results[1].0, .ok)
        XCTAssertFalse(store.hasArchive(1))
        let (other, _, _, refused) = try run(#"[{"status":409}]"#) { $0.kind = "http" }
        XCTAssertEqual(refused[0].1.waiting, 1, "it may pass")
        XCTAssertTrue(other.queue[0].hasSuffix("-refused"), "\(other.queue)")
    }

    /// The archive cannot be deleted; it still counts as sent, and is not sent again.
    func testSentIsSentWhereTheArchiveCannotBeDeleted() throws {
        let server = try FaultServer()
        let store = try TestStore()
        store.addArchive(1)
        // A link is not followed: it cannot be synced, which is how a deletion begins.
        XCTAssertEqual(symlink("\(store.paths.queue)", "\(store.paths.lanes)"), 0)
        let service = try store.service()
        _ = try service.addTarget(store.target(server.url))
        XCTAssertEqual(service.pass().0, .ok)
        XCTAssertEqual(service.pass().0, .end)
        XCTAssertEqual(store.queue, ["sent-200"])
        XCTAssertEqual(server.requests.count, 1)
        XCTAssertTrue(store.hasArchive(1))
        let said = store.events.diagnostics.filter { $0.hasPrefix("archives stay") }
        XCTAssertEqual(said.count, 1, "\(store.events.diagnostics)")
        unlink("\(store.paths.lanes)")
        XCTAssertEqual(service.pass().0, .end)
        XCTAssertFalse(store.hasArchive(1))
    }

    /// One archive is always refused while the others are taken: in the end it is given up.
    func testWhatIsRefusedWhileOthersAreTakenIsGivenUp() throws {
        let server = try FaultServer(rules: ["poison=archive 1"])
        let store = try TestStore()
        for number in [1, 2] { store.addArchive(number) }
        let service = try store.service()
        _ = try service.addTarget(store.target(server.url) { $0.requestsMax = 1 })
        XCTAssertEqual(service.pass().0, .upload)
        XCTAssertEqual(server.requests.count, 1, "an explicit call is one question")
        XCTAssertTrue(store.queue[0].hasSuffix("-refused"), "\(store.queue)")
        XCTAssertEqual(service.pass().1.uploaded, 1, "the other one is asked about first")
        XCTAssertTrue(store.queue[0].hasSuffix("-failed"), "\(store.queue)")
        for number in [3, 4] {
            XCTAssertTrue(store.queue[0].hasPrefix("retry-"), "\(store.queue)")
            store.addArchive(number)
            XCTAssertEqual(service.pass().0, .upload)
            XCTAssertEqual(service.pass().0, .upload)
        }
        XCTAssertTrue(store.hasArchive(1))
        XCTAssertEqual(store.queue, ["quarantined-400"], "refused three times between others")
        XCTAssertEqual(service.totals.quarantined, 1)
        XCTAssertEqual(
            store.events.all.filter { $0.hasPrefix("completed") }.sorted(),
            Array(repeating: "completed ok 200", count: 3) + ["completed upload 400"])
        service.setLimits(RetentionLimits(quotaBytes: 1, archivesMax: 0, expirationDays: 0))
        XCTAssertEqual(try service.applyRetention(otherBytes: 0), 1)
        XCTAssertEqual(store.events.all.last, "removed quota")
        XCTAssertEqual(store.events.all.filter { $0.hasPrefix("completed") }.count, 4)
    }

    func testRefusedCredentialsPauseTheTarget() throws {
        let (store, server, service, results) = try run(
            #"[{"status":401}]"#, archives: 2
        ) { $0.authToken = "old-secret" }
        XCTAssertEqual(results[0].0, .upload)
        XCTAssertEqual(results[0].1.waiting, 2)
        XCTAssertEqual(server.requests.count, 1)
        XCTAssertEqual(store.queue, ["paused-1-401"])
        store.clock.advance(ms: 100_000_000)
        XCTAssertEqual(service.pass(explicit: false).0, .upload)
        XCTAssertEqual(server.requests.count, 1)
        XCTAssertFalse(store.events.diagnostics.joined().contains("old-secret"))

        let restarted = try store.service()
        _ = try restarted.addTarget(store.target(server.url) { $0.authToken = "new-secret" })
        XCTAssertEqual(restarted.pass(explicit: false).0, .ok)
        XCTAssertEqual(server.requests.last?.headers["authorization"], "Bearer new-secret")
        let files = try StoreFiles.list(store.paths.targets).map {
            try XCTUnwrap(StoreFiles.read(store.paths.targets + "/" + $0))
        }
        XCTAssertFalse(String(decoding: files.joined(), as: UTF8.self).contains("secret"))
    }

    func testExplicitCallTriesPausedAgain() throws {
        let (store, _, _, results) = try run(#"[{"status":403}]"#, passes: 2)
        XCTAssertEqual(results[0].1.waiting, 1)
        XCTAssertEqual(results[1].0, .ok)
        XCTAssertEqual(store.events.all, ["attempt 1", "attempt 2", "completed ok 200"])
    }

    func testRedirections() throws {
        let (store, server, _, results) = try run(
            #"[{"status":302,"headers":{"Location":"/other"}}]"#)
        XCTAssertEqual(results[0].1.lastOutcome, .redirection)
        XCTAssertEqual(server.requests.count, 1)
        XCTAssertTrue(store.queue[0].hasSuffix("-refused"), "\(store.queue)")

        let (followed, target, _, fine) = try run(
            #"[{"status":307,"headers":{"Location":"/other"}}]"#)
        XCTAssertEqual(fine[0].0, .ok)
        XCTAssertEqual(target.requests.map { $0.path }, ["/v1/archives", "/other"])
        XCTAssertEqual(target.body(2), followed.files[1])
        XCTAssertFalse(followed.hasArchive(1))

        let elsewhere = try FaultServer()
        let answer = "[{\"status\":307,\"headers\":{\"Location\":\"\(elsewhere.url)/x\"}}]"
        let (kept, _, _, refused) = try run(answer) { $0.authToken = "secret" }
        XCTAssertEqual(refused[0].1.lastHTTPStatus, 307)
        XCTAssertEqual(elsewhere.requests.count, 0)
        XCTAssertTrue(kept.queue[0].hasSuffix("-refused"), "\(kept.queue)")
    }

    func testRedirectionsEnd() throws {
        for status in [307, 308] {
            let loop = "{\"status\":\(status),\"headers\":{\"Location\":\"/again\"}}"
            let answers = Array(repeating: loop, count: 10).joined(separator: ",")
            let (store, server, _, results) = try run("[\(answers)]")
            XCTAssertEqual(server.requests.count, 6)
            XCTAssertTrue(store.queue[0].hasSuffix("-refused"), "\(store.queue)")
            XCTAssertEqual(results[0].1.lastHTTPStatus, Int32(status))
            let entry = try QueueListing(storeDirectory: FilePath(store.root)).list().first
            XCTAssertEqual(entry?.cause, "HTTP \(status): more than 5 redirections")
        }
    }

    func testLostAcknowledgementIsStoredOnceAfterRestart() throws {
        let (store, server, _, results) = try run(#"[{"action":"lose"}]"#)
        XCTAssertEqual(results[0].1.lastOutcome, .requestFailed)
        XCTAssertTrue(store.hasArchive(1))
        XCTAssertEqual(server.stored[id1]?.times, 1)
        let restarted = try store.service()
        _ = try restarted.addTarget(store.target(server.url))
        XCTAssertEqual(restarted.pass().0, .ok)
        XCTAssertEqual(server.stored.count, 1)
        XCTAssertEqual(server.stored[id1]?.times, 2)
        XCTAssertEqual(server.stored[id1]?.same, true)
        XCTAssertFalse(store.hasArchive(1))
    }

    /// The server that these tests trust stores no body of a client that died.
    func testServerKeepsNoCutBody() throws {
        let server = try FaultServer()
        let fd = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = in_port_t(server.port).bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        let connected = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(fd, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        XCTAssertEqual(connected, 0)
        let head = "POST / HTTP/1.1\r\nHost: a\r\nIdempotency-Key: k\r\nContent-Length: 100\r\n\r\n"
        let sent = Array((head + "ten bytes.").utf8)
        XCTAssertEqual(write(fd, sent, sent.count), sent.count)
        close(fd)
        eventually("the request") { !server.requests.isEmpty }
        XCTAssertEqual(server.requests.map(\.bytes), [10])
        XCTAssertEqual(server.stored.count, 0)
        XCTAssertEqual(server.body(1), [])
    }

    func testCrashBetweenAnswerAndDeletion() throws {
        let server = try FaultServer()
        let store = try TestStore()
        store.addArchive(1)
        let service = try store.service()
        let target = try store.target(server.url)
        _ = try service.addTarget(target)
        // The state left by a process that dies after writing it.
        try Outbox(paths: store.paths).set(store.stem(1), target.key, to: .sent(httpStatus: 200))
        XCTAssertEqual(service.pass().0, .end)
        XCTAssertFalse(store.hasArchive(1))
        XCTAssertEqual(store.queue, [])
        XCTAssertEqual(server.requests.count, 0)
    }

    func testDeletedOnlyWhenAllRegisteredTargetsHaveIt() throws {
        let (first, second) = (try FaultServer(), try FaultServer(#"[{"status":500}]"#))
        let store = try TestStore()
        store.addArchive(1)
        let service = try store.service()
        _ = try service.addTarget(store.target(first.url))
        _ = try service.addTarget(store.target(second.url))
        XCTAssertEqual(service.pass().0, .upload)
        XCTAssertTrue(store.hasArchive(1))
        XCTAssertEqual(service.pass().0, .ok)
        XCTAssertFalse(store.hasArchive(1))
        XCTAssertEqual(first.requests.count, 1)
        XCTAssertEqual(second.requests.count, 2)
    }

    /// The other target belongs to another process, so nothing is sent to it here.
    func testAnotherProcessTargetKeepsTheArchive() throws {
        let (first, second) = (try FaultServer(), try FaultServer())
        let store = try TestStore()
        store.addArchive(1)
        let (service, other) = (try store.service(), try store.service())
        _ = try service.addTarget(store.target(first.url))
        _ = try other.addTarget(store.target(second.url))
        XCTAssertEqual(service.pass().0, .ok)
        XCTAssertTrue(store.hasArchive(1))
        XCTAssertEqual(other.pass().0, .ok)
        XCTAssertFalse(store.hasArchive(1))
        XCTAssertEqual([first.requests.count, second.requests.count], [1, 1])
    }

    func testUnreachableHoldsTheTargetInTheBackground() throws {
        let store = try TestStore()
        store.addArchive(1)
        store.addArchive(2)
        let service = try store.service()
        let silent = SilentPort(queue: nil)
        _ = try service.addTarget(store.target("http://127.0.0.1:\(silent.port)"))
        let (status, result) = service.pass(explicit: false)
        XCTAssertEqual(status, .upload)
        XCTAssertEqual(result.failed, 1)
        XCTAssertEqual(result.waiting, 2)
        XCTAssertEqual(result.lastOutcome, .requestFailed)
        XCTAssertEqual(service.pass().1.failed, 2)
    }

    func testDeadlineAndStopBreakOff() throws {
        let server = try FaultServer(#"[{"action":"hang"},{"action":"hang"}]"#)
        let store = try TestStore()
        store.addArchive(1)
        let service = try store.service()
        _ = try service.addTarget(store.target(server.url))
        let begin = UploadClock.system.monotonicMs()
        var result = UploadResult()
        XCTAssertEqual(
            service.pass(explicit: true, deadlineMonotonicMs: begin + 200, result: &result),
            .timeout)
        XCTAssertLessThan(UploadClock.system.monotonicMs() - begin, 25_000)
        XCTAssertEqual(result.failed, 1)
        XCTAssertEqual(result.waiting, 1)
        XCTAssertEqual(store.queue, ["retry-1-0-stopped"])
        let cause = "the time of the upload call ran out"
        XCTAssertEqual(
            try QueueListing(storeDirectory: FilePath(store.root)).list().map(\.cause), [cause])
        XCTAssertEqual(service.failures.last(target: nil)?.detail.cause, cause)
        XCTAssertEqual(store.events.diagnostics.count, 1, "\(store.events.diagnostics)")

        let ended = expectation(description: "pass ends")
        DispatchQueue.global().async {
            XCTAssertEqual(service.pass(explicit: false).0, .closed)
            ended.fulfill()
        }
        eventually("two requests") { server.requests.count >= 2 }
        XCTAssertEqual(service.pass(explicit: true, seconds: 0).0, .timeout)
        service.requestStop()
        wait(for: [ended], timeout: 30)
        XCTAssertEqual(service.pass().0, .closed)
        XCTAssertTrue(store.hasArchive(1))
        XCTAssertEqual(
            try QueueListing(storeDirectory: FilePath(store.root)).list().map(\.cause),
            ["the engine closed"])
    }

    func testTwoUploadersAndRetentionSendEverythingOnce() throws {
        let server = try FaultServer()
        let store = try TestStore()
        let services = try (0..<2).map { _ in try store.service() }
        for service in services {
            _ = try service.addTarget(store.target(server.url))
            service.setLimits(RetentionLimits(quotaBytes: 1, archivesMax: 0, expirationDays: 0))
        }
        for number in 1...30 { store.addArchive(number) }
        let work = DispatchGroup()
        for service in services {
            DispatchQueue.global().async(group: work) { _ = service.pass(explicit: false) }
        }
        DispatchQueue.global().async(group: work) {
            for _ in 1...20 { _ = try? services[0].applyRetention(otherBytes: 0) }
        }
        XCTAssertEqual(work.wait(timeout: .now() + 60), .success)
        XCTAssertEqual(Set(server.stored.values.map { $0.times }).subtracting([1]), [])
        let removed = store.events.all.filter { $0.hasPrefix("removed") }.count
        XCTAssertEqual(server.stored.count + removed, 30)
        XCTAssertEqual(try StoreFiles.list(store.paths.archives), [])
        _ = services[0].pass(explicit: false)
        XCTAssertEqual(store.queue, [])
    }

    func testByteRateHoldsInTheBackgroundUntilSomebodyWaits() throws {
        let server = try FaultServer()
        let store = try TestStore()
        store.addArchive(1, content: String(repeating: "0123456789abcdef", count: 300_000))
        let service = try store.service()
        _ = try service.addTarget(store.target(server.url) { $0.bytesPerSecond = 50_000 })
        XCTAssertEqual(service.pass(explicit: false, seconds: 0.3).0, .timeout)
        XCTAssertTrue(store.hasArchive(1))
        let ended = expectation(description: "background pass ends")
        DispatchQueue.global().async {
            XCTAssertEqual(service.pass(explicit: false, seconds: 90).0, .ok)
            ended.fulfill()
        }
        eventually("two events") { store.events.all.count >= 2 }
        XCTAssertEqual(service.pass().0, .end)
        wait(for: [ended], timeout: 20)
        XCTAssertFalse(store.hasArchive(1))
    }

    func testUnreadableFileKeepsNoOtherBack() throws {
        let server = try FaultServer()
        let store = try TestStore()
        // A link is not followed, so this archive cannot be read.
        XCTAssertEqual(symlink("/etc/hostname", "\(store.paths.archive(store.stem(1)))"), 0)
        store.addArchive(2)
        let service = try store.service()
        _ = try service.addTarget(store.target(server.url))
        let (status, result) = service.pass()
        XCTAssertEqual(status, .upload)
        XCTAssertEqual(result.uploaded, 1)
        XCTAssertFalse(store.hasArchive(2))
        XCTAssertEqual(service.nextWakeMonotonicMs, UInt64.max)
    }

    func testWithdrawnConsentPlansNothing() throws {
        let (store, _, service, _) = try run(#"[{"status":500}]"#)
        XCTAssertNotEqual(service.nextWakeMonotonicMs, UInt64.max)
        _ = try StoreFile.setConsent(storeDirectory: FilePath(store.root), to: .pending)
        XCTAssertEqual(service.pass(explicit: false).0, .consent)
        XCTAssertEqual(service.nextWakeMonotonicMs, UInt64.max)
    }

    func testUnknownCertificateIsRefused() throws {
        let store = try TestStore()
        let pem = store.root + "/server.pem"
        let make = Process()
        make.executableURL = URL(fileURLWithPath: "/usr/bin/openssl")
        make.arguments = [
            "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj",
            "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", pem,
            "-out", pem + ".crt",
        ]
        make.standardError = FileHandle.nullDevice
        try make.run()
        make.waitUntilExit()
        let both =
            try Data(contentsOf: URL(fileURLWithPath: pem))
            + Data(contentsOf: URL(fileURLWithPath: pem + ".crt"))
        try both.write(to: URL(fileURLWithPath: pem))
        let server = try FaultServer(pem: pem)
        store.addArchive(1)
        let service = try store.service()
        _ = try service.addTarget(store.target(server.url) { $0.authToken = "secret" })
        let (status, result) = service.pass()
        XCTAssertEqual(status, .upload)
        XCTAssertEqual(result.lastOutcome, .requestFailed)
        XCTAssertEqual(server.requests.count, 0)
        XCTAssertTrue(store.queue.first?.hasSuffix("unreachable") ?? false, "\(store.queue)")
        let cause = store.events.diagnostics.joined()
        XCTAssertTrue(cause.lowercased().contains("certificate"), cause)
    }

    func testLargeBodyIsStreamedWhole() throws {
        let server = try FaultServer()
        let store = try TestStore()
        let content = String(repeating: "0123456789abcdef", count: 300_000)
        store.addArchive(1, content: content)
        let service = try store.service()
        _ = try service.addTarget(
            store.target(server.url + "/{id}/{name}") {
                $0.kind = "http"
                $0.method = "PUT"
                $0.headers = "X-Empty:\nX-Team: red: blue"
            })
        XCTAssertEqual(service.pass().0, .ok)
        let request = try XCTUnwrap(server.requests.first)
        XCTAssertEqual(request.method, "PUT")
        XCTAssertEqual(
            request.path, "/\(id1.dropFirst().dropLast())/\(store.stem(1)).cwa")
        XCTAssertEqual(request.headers["x-team"], "red: blue")
        XCTAssertEqual(request.headers["x-empty"], "")
        XCTAssertGreaterThan(request.bytes, content.utf8.count)
        XCTAssertEqual(server.body(1), store.files[1])
    }
}
