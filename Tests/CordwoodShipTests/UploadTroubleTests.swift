// What happens around an upload while it runs: another process changes the queue, consent is
// withdrawn, a target is removed, the disk is full, a call comes while the background sends.
// Servers are functions here, so that a test runs inside a request.

import Foundation
import Glibc
import XCTest

@testable import CordwoodCore
@testable import CordwoodShip
@testable import CordwoodStore

final class UploadTroubleTests: XCTestCase {
    private let ok = UploadResponse(status: 200)

    /// A target whose server is a function of the request's number, from 1.
    private func add(
        _ store: TestStore, _ service: UploadService, name: String = "t",
        change: (inout TargetOptions) -> Void = { _ in },
        callbacks: TargetCallbacks = TargetCallbacks(),
        _ answer: @escaping @Sendable (Int) throws -> UploadResponse
    ) throws -> ToldTransport {
        let count = Events()
        let told = ToldTransport { _ in
            count.add("request")
            return try answer(count.all.count)
        }
        var options = TargetOptions(url: "http://logs.example")
        options.name = name
        options.kind = "http"
        options.format = "text"
        options.transport = told
        change(&options)
        _ = try service.addTarget(try Target(options, callbacks: callbacks))
        return told
    }

    private func lines(_ count: Int) -> String {
        (0..<count).map { "line \($0)" }.joined(separator: "\n")
    }

    private func inThread(_ body: @escaping @Sendable () -> Void) -> DispatchSemaphore {
        let ended = DispatchSemaphore(value: 0)
        Thread.detachNewThread {
            body()
            ended.signal()
        }
        return ended
    }

    /// Removes the target during one of its callbacks, which goes on once the removal has begun.
    private func removeTarget(
        _ service: UploadService, _ order: Events, _ goOn: DispatchSemaphore
    ) {
        let removed = inThread {
            try? service.removeTarget("t")
            order.add("removed")
        }
        eventually("it is being removed") { service.currentRunners.isEmpty }
        goOn.signal()
        removed.wait()
    }

    // ── Segments that cannot be seen ──

    func testLanesThatCannotBeListedAreReportedOnce() throws {
        let store = try TestStore()
        store.addArchive(1)
        store.addArchive(2)
        unlink("\(store.paths.lanes)")
        XCTAssertEqual(symlink("\(store.paths.lanes)", "\(store.paths.lanes)"), 0, "a loop")
        let service = try store.service(coveredMs: 50)
        let told = try add(store, service) { _ in UploadResponse(status: 200) }
        XCTAssertEqual(service.pass().0, .upload)
        XCTAssertEqual(service.pass().0, .upload)
        XCTAssertEqual(told.seen.count, 0)
        let said = store.events.diagnostics
        XCTAssertEqual(said.count, 1, "\(said)")
        XCTAssertTrue(said[0].hasPrefix("archives wait:") && said[0].contains("/lanes"), said[0])
        unlink("\(store.paths.lanes)")
        XCTAssertEqual(service.pass().0, .ok)
        XCTAssertEqual(told.seen.count, 2)
    }

    // ── When the background looks again ──

    func testWhatOthersDidToTheQueueLeavesNoPlanInThePast() throws {
        let store = try TestStore()
        store.addArchive(1)
        let service = try store.service()
        _ = try add(store, service) { _ in UploadResponse(status: 500) }
        XCTAssertEqual(service.pass().0, .upload)
        XCTAssertNotEqual(service.nextWakeMonotonicMs, .max)
        let listing = QueueListing(storeDirectory: FilePath(store.root))
        XCTAssertEqual(
            try listing.quarantine(archive: StorePaths.file(ofStem: store.stem(1)), target: nil), 1)
        store.clock.advance(ms: 3_600_000)
        service.startBackground()
        XCTAssertEqual(service.nextWakeMonotonicMs, .max)
        // Nor does a target that another process has removed.
        store.addArchive(2)
        XCTAssertEqual(service.pass().0, .upload)
        try TargetRegistry(storeDirectory: FilePath(store.root)).remove(name: "t")
        store.clock.advance(ms: 3_600_000)
        service.startBackground()
        XCTAssertEqual(service.nextWakeMonotonicMs, .max)
    }

    func testARetryOfAnEarlierProcessIsPlanned() throws {
        let store = try TestStore()
        store.addArchive(1)
        let service = try store.service()
        _ = try add(store, service) { _ in UploadResponse(status: 500) }
        XCTAssertEqual(service.pass().0, .upload)
        let next = try store.service()
        _ = try add(store, next) { _ in UploadResponse(status: 200) }
        let wake = next.nextWakeMonotonicMs
        XCTAssertNotEqual(wake, .max)
        XCTAssertGreaterThan(wake, UploadClock.system.monotonicMs())
    }

    // ── What cannot be written ──

    /// With any state appended, the name is longer than file systems allow.
    private func addArchiveOfALongName(_ store: TestStore) {
        let stem = String(repeating: "s", count: 242) + "-00000001"
        store.addArchive(1)
        XCTAssertEqual(
            rename("\(store.paths.archive(store.stem(1)))", "\(store.paths.archive(stem))"), 0)
    }

    func testWhatCouldNotBeWrittenDownIsNotSentAgain() throws {
        let store = try TestStore()
        addArchiveOfALongName(store)
        let ended = Events()
        var callbacks = TargetCallbacks()
        callbacks.completed = { _, status, _ in ended.add("\(status)") }
        let service = try store.service()
        let told = try add(
            store, service, change: { $0.format = "archive" }, callbacks: callbacks
        ) { _ in UploadResponse(status: 200) }
        // Another target keeps the archive.
        _ = try add(store, service, name: "other") { _ in UploadResponse(status: 500) }
        for _ in 0..<5 { _ = service.pass() }
        XCTAssertEqual(told.seen.count, 1)
        XCTAssertEqual(ended.all, ["ok"])
    }

    func testWhatCouldNotBeWrittenDownHasItsPause() throws {
        let store = try TestStore()
        addArchiveOfALongName(store)
        let service = try store.service()
        let told = try add(store, service, change: { $0.format = "archive" }) { _ in
            UploadResponse(status: 500)
        }
        for _ in 0..<5 { _ = service.pass(explicit: false) }
        XCTAssertEqual(told.seen.count, 1)
        XCTAssertGreaterThan(service.nextWakeMonotonicMs, UploadClock.system.monotonicMs())
        store.clock.advance(ms: 3_600_000)
        _ = service.pass(explicit: false)
        XCTAssertEqual(told.seen.count, 2)
        XCTAssertEqual(
            store.events.diagnostics.filter { $0.hasPrefix("what came of") }.count, 1)
    }

    // ── What cannot be read ──

    func testWhatIsDamagedIsKeptWhenTheRestIsSent() throws {
        let store = try TestStore()
        // The first record fills a block of its own.
        var maker = RecordMaker(seed: 1)
        store.addArchive(
            1, records: RecordMaker.largeBlocks(seed: 1, count: 1, others: 0) + maker.records(2))
        var bytes = store.files[1]!
        bytes[1 << 19] ^= 1
        writeAll(bytes, "\(store.paths.archive(store.stem(1)))")
        let ended = Events()
        var callbacks = TargetCallbacks()
        callbacks.completed = { _, status, _ in ended.add("\(status)") }
        let service = try store.service()
        let told = try add(store, service, callbacks: callbacks) { _ in
            UploadResponse(status: 200)
        }
        XCTAssertEqual(service.pass().0, .upload)
        XCTAssertEqual(told.seen.count, 1)
        XCTAssertTrue(store.hasArchive(1))
        XCTAssertEqual(store.queue, ["quarantined-0-2-0"])
        XCTAssertEqual(ended.all, ["damaged"])
        XCTAssertTrue(store.events.diagnostics.contains { $0.contains("checksum of the block at") })
        XCTAssertEqual(service.pass().1.failed, 0)
        XCTAssertEqual(told.seen.count, 1)
    }

    func testWhatCannotBeReadNowIsTriedAgain() throws {
        let store = try TestStore()
        store.addArchive(1)
        // A lease refuses every open that does not wait.
        let former = signal(SIGIO, SIG_IGN)
        defer { signal(SIGIO, former) }
        let held = open("\(store.paths.archive(store.stem(1)))", O_RDWR)
        let setLease: Int32 = 1_024
        XCTAssertEqual(fcntl(held, setLease, Int32(F_WRLCK)), 0, "a file system with leases")
        let service = try store.service()
        let told = try add(store, service) { _ in UploadResponse(status: 200) }
        XCTAssertNil(try service.archives()[0].summary)
        XCTAssertEqual(service.pass().1.failed, 1)
        XCTAssertEqual(told.seen.count, 0)
        XCTAssertEqual(store.queue, [])
        close(held)
        store.clock.advance(ms: 3_600_000)
        XCTAssertEqual(service.pass().0, .ok)
        XCTAssertEqual(told.seen.count, 1)
        XCTAssertFalse(store.hasArchive(1))
    }

    func testHalfAnObjectionIsNoLastWord() throws {
        let server = try FaultServer(#"[{"action": "half", "status": 400, "body": "because"}]"#)
        let store = try TestStore()
        store.addArchive(1)
        let service = try store.service()
        _ = try service.addTarget(
            store.target(server.url) {
                $0.kind = "http"
                $0.format = "text"
            })
        XCTAssertEqual(service.pass().0, .upload)
        XCTAssertEqual(store.queue.map { $0.prefix(5) }, ["retry"])
        XCTAssertFalse(store.queue[0].hasSuffix("-refused"), "\(store.queue)")
        XCTAssertEqual(service.pass().0, .ok)
        XCTAssertFalse(store.hasArchive(1))
    }

    // ── Consent ──

    func testDenialBreaksOffAndRemoves() throws {
        let store = try TestStore()
        store.addArchive(1, content: lines(8))
        let root = store.root
        let service = try store.service()
        let told = try add(store, service, change: { $0.bodyRecordsMax = 1 }) { number in
            if number == 3 {
                _ = try StoreFile.setConsent(storeDirectory: FilePath(root), to: .denied)
            }
            return UploadResponse(status: 200)
        }
        _ = service.pass()
        XCTAssertEqual(told.seen.count, 3)
        XCTAssertTrue(store.hasArchive(1), "it was being sent")
        // What came after the denial stays.
        let denied = StoreFiles.modifiedNs(FilePath(store.root + "/" + StoreFile.fileName))
        eventually("the file system's clock goes on") {
            store.addArchive(2)
            return StoreFiles.modifiedNs(store.paths.archive(store.stem(2))) > denied
        }
        service.startBackground()
        XCTAssertFalse(store.hasArchive(1))
        XCTAssertTrue(store.hasArchive(2))
        XCTAssertEqual(store.events.all.filter { $0 == "removed consent" }.count, 1)
    }

    // ── Turns ──

    func testTheBackgroundGivesWayBetweenParts() throws {
        let store = try TestStore()
        store.addArchive(1, content: lines(6))
        let service = try store.service()
        let (entered, goOn) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        let told = try add(store, service, change: { $0.bodyRecordsMax = 1 }) { number in
            if number == 1 {
                entered.signal()
                goOn.wait()
            }
            return UploadResponse(status: 200)
        }
        service.startBackground()
        entered.wait()
        let ended = inThread { _ = service.pass(explicit: true) }
        eventually("the call waits") { service.currentRunners[0].gate.shouldYield }
        goOn.signal()
        ended.wait()
        XCTAssertEqual(told.seen.count, 6, "each part once, whoever sent it")
        XCTAssertFalse(store.hasArchive(1))
        let keys = told.seen.map { request in
            request.headers.first { $0.name == "Idempotency-Key" }?.value ?? ""
        }
        XCTAssertEqual(Set(keys).count, 6)
    }

    func testACallKeepsToWhatTheServerSaidMeanwhile() throws {
        let store = try TestStore()
        store.addArchive(1)
        let service = try store.service()
        let (entered, goOn) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        let told = try add(store, service) { _ in
            entered.signal()
            goOn.wait()
            return UploadResponse(status: 503, headers: [(name: "Retry-After", value: "3600")])
        }
        service.startBackground()
        entered.wait()
        let ended = inThread { _ = service.pass(explicit: true) }
        eventually("the call waits") { service.currentRunners[0].gate.shouldYield }
        goOn.signal()
        ended.wait()
        XCTAssertEqual(told.seen.count, 1)
    }

    // ── Archives that are made during a call ──

    func testACallAnswersForTheArchivesThatItFound() throws {
        let store = try TestStore()
        store.addArchive(1)
        let service = try store.service()
        let drained = Events()
        var callbacks = TargetCallbacks()
        callbacks.drained = { drained.add("drained") }
        let told = try add(store, service, callbacks: callbacks) { number in
            if number == 1 { store.addArchive(2) }
            return UploadResponse(status: 200)
        }
        let (status, result) = service.pass()
        XCTAssertEqual(status, .ok)
        XCTAssertEqual([result.uploaded, result.failed, result.waiting], [1, 0, 0])
        XCTAssertTrue(store.hasArchive(2))
        XCTAssertEqual(drained.all, [], "another archive waits")
        XCTAssertEqual(service.pass().0, .ok)
        XCTAssertEqual(told.seen.count, 2)
        XCTAssertEqual(drained.all, ["drained"])
    }

    /// Its records waited when the call began.
    func testACallAnswersForWhatReplacedItsArchives() throws {
        let store = try TestStore()
        for number in 1...3 { store.addArchive(number) }
        let service = try store.service()
        _ = try add(store, service, change: { $0.requestsMax = 1 }) { number in
            if number == 1 {
                _ = try store.addContainer(2...3)
                for number in 2...3 { unlink("\(store.paths.archive(store.stem(number)))") }
            }
            return UploadResponse(status: 200)
        }
        let (status, result) = service.pass()
        XCTAssertEqual(status, .ok)
        XCTAssertEqual([result.uploaded, result.waiting], [2, 0])
    }

    /// An archiver makes an archive before it removes the segments. A call that comes in between
    /// sends that archive, too.
    func testACallWaitsForSegmentsThatAreBeingRemoved() throws {
        let store = try TestStore()
        for number in 1...2 { store.addArchive(number) }
        try store.addSegment(of: 1)
        let service = try store.service()
        let told = try add(store, service) { number in
            for name in try StoreFiles.list(store.paths.lanes) where number == 1 {
                unlink("\(store.paths.lanes)/\(name)")
            }
            return UploadResponse(status: 200)
        }
        let (status, result) = service.pass()
        XCTAssertEqual(status, .ok)
        XCTAssertEqual([result.uploaded, result.waiting], [2, 0])
        XCTAssertEqual(told.seen.count, 2)
    }

    // ── Targets ──

    func testOneOfManyAddsATarget() throws {
        let store = try TestStore()
        let service = try store.service()
        let outcomes = Events()
        DispatchQueue.concurrentPerform(iterations: 16) { _ in
            do {
                var options = TargetOptions(url: "http://logs.example")
                options.name = "t"
                _ = try service.addTarget(try Target(options))
                outcomes.add("added")
            } catch {
                outcomes.add((error as? UploadError)?.status == .exists ? "exists" : "\(error)")
            }
        }
        XCTAssertEqual(outcomes.all.filter { $0 == "added" }.count, 1)
        XCTAssertEqual(outcomes.all.filter { $0 == "exists" }.count, 15)
        XCTAssertEqual(service.currentRunners.count, 1)
    }

    func testNoCallbackOutlivesItsTarget() throws {
        let store = try TestStore()
        store.addArchive(1)
        let service = try store.service()
        let (entered, goOn) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        let order = Events()
        var callbacks = TargetCallbacks()
        callbacks.drained = {
            entered.signal()
            goOn.wait()
            order.add("drained")
        }
        _ = try add(store, service, callbacks: callbacks) { _ in UploadResponse(status: 200) }
        let sent = inThread { _ = service.pass() }
        entered.wait()
        removeTarget(service, order, goOn)
        sent.wait()
        XCTAssertEqual(order.all, ["drained", "removed"])
    }

    func testRetentionTellsNobodyWhoseTargetIsRemoved() throws {
        let store = try TestStore()
        for number in 1...3 { store.addArchive(number) }
        let (entered, goOn) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        let order = Events()
        let owner = Owner(order: order, archives: "\(store.paths.archives)")
        let service = try store.service()
        service.delegate = owner
        var callbacks = TargetCallbacks()
        callbacks.completed = { _, _, _ in
            entered.signal()
            goOn.wait()
            order.add("completed")
        }
        _ = try add(store, service, callbacks: callbacks) { _ in UploadResponse(status: 500) }
        var limits = RetentionLimits.unlimited
        limits.archivesMax = 1
        service.setLimits(limits)
        let kept = inThread { _ = try? service.applyRetention(otherBytes: 0) }
        entered.wait()
        removeTarget(service, order, goOn)
        kept.wait()
        XCTAssertEqual(order.all.filter { $0 == "completed" }.count, 1)
        let completed = try XCTUnwrap(order.all.firstIndex(of: "completed"))
        XCTAssertLessThan(completed, try XCTUnwrap(order.all.firstIndex(of: "removed")))
        XCTAssertEqual(order.all.filter { $0 == "told" }.count, 2)
        withExtendedLifetime(owner) {}
    }

    private final class Owner: UploadDelegate {
        let order: Events
        let archives: String
        var hearsRemovals: Bool { true }

        init(order: Events, archives: String) {
            self.order = order
            self.archives = archives
        }

        func report(_ diagnostic: UploadDiagnostic) {}

        func archiveRemoved(_ archiveName: String, _ reason: RemovalReason) {
            order.add("told")
            // Another process may apply its own limits meanwhile.
            XCTAssertNoThrow(try StoreFiles.lockDirectory(FilePath(archives)).number)
        }
    }
}
