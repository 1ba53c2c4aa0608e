// Uploads from stores in which very many archives wait: the cost depends on what changes, not on
// how many wait, and every record arrives once.

import CordwoodCore
import CordwoodTestSupport
import Foundation
import XCTest

@testable import CordwoodShip
@testable import CordwoodStore

final class ManyArchivesTests: XCTestCase {
    private let records = 5
    private let identity = AgeIdentity.generate()

    private func add(
        _ store: TestStore, _ numbers: ClosedRange<Int>, to recipients: [AgeRecipient] = []
    ) {
        store.addArchives(numbers, records: records, to: recipients)
    }

    private func checkOnce(_ server: FaultServer, _ archives: Int) throws {
        let counts = try server.taken(identity)
        XCTAssertEqual(counts.count, archives * records, "lost")
        XCTAssertEqual(Set(counts.values), [1], "twice")
    }

    func testSmallArchivesGoAsFew() throws {
        let server = try FaultServer()
        let store = try TestStore()
        add(store, 1...200)
        let service = try store.service()
        _ = try service.addTarget(store.target(server.url))
        let (status, result) = service.pass()
        XCTAssertEqual(status, .ok)
        XCTAssertLessThanOrEqual(result.uploaded, 3)
        XCTAssertEqual(try StoreFiles.list(store.paths.archives), [])
        XCTAssertEqual(try StoreFiles.list(store.paths.queue, hidden: true), [])
        try checkOnce(server, 200)
    }

    func testFewAreSentOneByOne() throws {
        let server = try FaultServer()
        let store = try TestStore()
        add(store, 1...(UploadService.mergedMin - 1))
        let service = try store.service()
        _ = try service.addTarget(store.target(server.url))
        XCTAssertEqual(Int(service.pass().1.uploaded), UploadService.mergedMin - 1)
        try checkOnce(server, UploadService.mergedMin - 1)
    }

    /// What may have been sent goes again under its own id, never as a part of another archive.
    func testWhatWasBegunIsNotMerged() throws {
        let server = try FaultServer()
        let store = try TestStore()
        add(store, 1...100)
        let service = try store.service()
        let target = try store.target(server.url)
        _ = try service.addTarget(target)
        for number in [3, 50] {
            try Outbox(paths: store.paths).mark(store.stem(number), target.key)
        }
        XCTAssertEqual(service.pass().0, .ok)
        let keys = Set(server.requests.map { $0.headers["idempotency-key"] ?? "" })
        for number in [3, 50] {
            XCTAssertTrue(keys.contains("\"\(TestStore.id(number))\""), "\(number)")
        }
        XCTAssertLessThan(keys.count, 8)
        try checkOnce(server, 100)
    }

    /// When a body is on its way, a kill leaves the mark behind.
    func testEachIsMarkedBeforeItIsSent() throws {
        let server = try FaultServer()
        let store = try TestStore()
        add(store, 1...10)
        let service = try store.service()
        let (paths, events) = (store.paths, store.events)
        var options = TargetOptions(url: server.url)
        options.requestsMax = 1
        var callbacks = TargetCallbacks()
        callbacks.attempting = { archive, _ in
            let stem = StorePaths.stem(ofFile: archive) ?? ""
            let names = (try? StoreFiles.list(paths.queue, prefix: stem)) ?? []
            events.add(names.map { $0.hasSuffix(".retry-0-0-stopped") ? "begun" : $0 }.joined())
        }
        callbacks.completed = { archive, _, _ in
            // An only target needs no other state: the archive is gone.
            let stem = StorePaths.stem(ofFile: archive) ?? ""
            events.add(StoreFiles.exists(paths.archive(stem)) ? "still there" : "gone")
        }
        _ = try service.addTarget(try Target(options, callbacks: callbacks))
        XCTAssertEqual(service.pass().0, .ok)
        XCTAssertEqual(events.all, Array(repeating: ["begun", "gone"], count: 10).flatMap { $0 })
        XCTAssertEqual(try StoreFiles.list(store.paths.queue, hidden: true), [])
    }

    func testEachTargetGetsEachRecordOnce() throws {
        let servers = [try FaultServer(), try FaultServer("[200, 503, 200]")]
        let store = try TestStore()
        add(store, 1...150)
        let service = try store.service()
        for (name, server) in zip(["a", "b"], servers) {
            _ = try service.addTarget(store.target(server.url) { $0.name = name })
        }
        for _ in 0..<5 where try !StoreFiles.list(store.paths.archives).isEmpty {
            _ = service.pass()
        }
        XCTAssertEqual(try StoreFiles.list(store.paths.archives), [])
        XCTAssertEqual(try StoreFiles.list(store.paths.queue, hidden: true), [])
        for server in servers { try checkOnce(server, 150) }
    }

    /// A firewall that dislikes some records dislikes every merged archive that has them: they are
    /// cut out, whichever archives have them, and nothing is merged that was refused.
    func testDislikedRecordsAreCutOutOfMergedArchives() throws {
        for seed in SplitMix.seeds(40, core: 3) {
            var random = SplitMix(seed)
            let names = (1...200).flatMap { archive in (0..<5).map { "\(archive)r\($0)x" } }
            let disliked = Set((0..<4).map { _ in names[random.below(names.count)] })
            let server = Firewall("http", dislikes: disliked)
            let store = try TestStore(inMemory: true)
            for archive in 0..<200 {
                store.addArchive(
                    archive + 1,
                    content: names[archive * 5..<archive * 5 + 5].joined(separator: "\n"))
            }
            let service = try store.service()
            _ = try service.addTarget(
                store.target("http://127.0.0.1:9/in") {
                    ($0.name, $0.kind, $0.format, $0.transport) = ("t", "http", "ndjson", server)
                })
            var rounds = 0
            func waits() throws -> Bool {
                try Outbox(paths: store.paths).snapshot().pairs.values
                    .contains { $0.values.contains { !$0.isFinal } }
            }
            repeat {
                _ = service.pass(explicit: rounds % 2 == 0)
                store.clock.advance(ms: 3_700_000)
                rounds += 1
            } while try waits() && rounds < 100
            let what = "seed \(seed), \(disliked), \(store.queue)"
            XCTAssertLessThan(rounds, 100, what)
            XCTAssertEqual(Set(server.taken.keys), Set(names).subtracting(disliked), what)
            XCTAssertTrue(server.taken.values.allSatisfy { $0.count == 1 }, what)
            XCTAssertEqual(service.totals.refused, UInt64(disliked.count), what)
            XCTAssertLessThan(server.asked, 120, what)
        }
    }

    /// A server that is no collector may refuse a whole archive for one record.
    func testArchivesThatGoWholeAreNotMerged() throws {
        let server = try FaultServer()
        let store = try TestStore()
        add(store, 1...70)
        let service = try store.service()
        _ = try service.addTarget(
            store.target(server.url) { ($0.kind, $0.format) = ("http", "archive") })
        XCTAssertEqual(service.pass().1.uploaded, 70)
        try checkOnce(server, 70)
    }

    private func names(_ store: TestStore) throws -> [String] {
        try StoreFiles.list(store.paths.archives).filter { $0.hasSuffix(".cwa") }.sorted()
    }

    private func merge(_ store: TestStore, _ names: [String], _ look: () -> Void = {}) throws -> Int
    {
        try StoreCompactor.merge(names, directory: FilePath(store.root), identities: []) {
            look()
            return false
        }
    }

    /// A denial of consent removes what is older than it.
    func testAMergedArchiveIsAsOldAsItsMembers() throws {
        let store = try TestStore()
        add(store, 1...8)
        for (index, name) in try names(store).enumerated() {
            let time = timespec(tv_sec: 1_000_000 + index, tv_nsec: 7)
            let path = "\(store.paths.archives)/\(name)"
            XCTAssertEqual(utimensat(AT_FDCWD, path, [time, time], 0), 0)
        }
        XCTAssertEqual(try merge(store, names(store)), 1)
        let left = try names(store)
        XCTAssertEqual(left.count, 1)
        let path = store.paths.archives + "/" + (left.first ?? "")
        XCTAssertEqual(StoreFiles.modifiedNs(path), 1_000_007_000_000_007)
    }

    func testNothingIsMergedAfterADenial() throws {
        let store = try TestStore()
        add(store, 1...8)
        let before = try names(store)
        _ = try StoreFile.setConsent(storeDirectory: FilePath(store.root), to: .denied)
        XCTAssertEqual(try merge(store, before), 0)
        XCTAssertEqual(try names(store), before)
    }

    /// Another process merged one of them and died before it removed it.
    func testWhatADeadProcessMergedIsNotMergedAgain() throws {
        let (store, other) = (try TestStore(), try TestStore())
        add(store, 1...8)
        add(other, 1...2)
        XCTAssertEqual(try merge(other, names(other)), 1)
        let made = try XCTUnwrap(names(other).first)
        let before = try names(store)
        // It appears after the listing.
        let merged = try merge(store, before) {
            writeAll(
                readAll("\(other.paths.archives)/\(made)"), "\(store.paths.archives)/\(made)")
        }
        XCTAssertEqual(merged, 0)
        XCTAssertEqual(Set(try names(store)), Set(before + [made]))
    }

    /// Encrypted archives that no key here opens go as they are, over few connections.
    func testLockedArchivesGoOneByOne() throws {
        let server = try FaultServer()
        let store = try TestStore()
        add(store, 1...80, to: [identity.recipient])
        let service = try store.service()
        _ = try service.addTarget(store.target(server.url) { $0.requestsMax = 1 })
        XCTAssertEqual(service.pass().1.uploaded, 80)
        XCTAssertEqual(server.connections, 1)
        try checkOnce(server, 80)
    }

    /// A call answers for archives that another process merges while it sends.
    func testReplacementsAreSentByTheSameCall() throws {
        let server = try FaultServer()
        let store = try TestStore()
        add(store, 1...20)
        let service = try store.service()
        let (root, merged) = (store.root, Events())
        var options = TargetOptions(url: server.url)
        options.requestsMax = 1
        var callbacks = TargetCallbacks()
        callbacks.attempting = { _, _ in
            guard merged.all.isEmpty else { return }
            let made = try? StoreCompactor.compact(directory: FilePath(root), ageSeconds: 0)
            merged.add("\(made?.archivesIn ?? -1)")
        }
        _ = try service.addTarget(try Target(options, callbacks: callbacks))
        let (status, result) = service.pass()
        XCTAssertEqual(status, .ok)
        XCTAssertEqual(result.waiting, 0)
        XCTAssertNotEqual(merged.all, ["0"])
        try checkOnce(server, 20)
    }

    // ── The kept listing ──

    /// A model beside it: what a new listing sees.
    private func check(
        _ kept: KeptListing, _ known: inout Set<String>, _ store: TestStore, _ what: String
    ) throws {
        let seen = try Outbox(paths: store.paths, kept: kept).snapshot().pairs
        XCTAssertEqual(seen, try Outbox(paths: store.paths).snapshot().pairs, what)
        let (all, changes) = try kept.takeArchives()
        if let all { known = all }
        for change in changes {
            if change.isAdded { known.insert(change.stem) } else { known.remove(change.stem) }
        }
        let stems = try StoreFiles.list(store.paths.archives).compactMap {
            StorePaths.stem(ofFile: $0)
        }
        XCTAssertEqual(known, Set(stems), what)
        XCTAssertEqual(
            Set(try kept.targetKeys()),
            Set(try TargetRegistry(storeDirectory: store.paths.root).keys()), what)
    }

    func testAKeptListingIsAsANewOne() throws {
        for seed in SplitMix.seeds(80, core: 8) {
            var random = SplitMix(seed)
            let store = try TestStore(inMemory: true)
            // Without events, as on a network file system, it lists anew.
            let kept = KeptListing(store.paths, wantsEvents: seed % 2 == 0)
            let paths = store.paths
            var known: Set<String> = []
            let states = ["sent-200", "filtered", "retry-0-0-stopped", "retry-2-7-busy", "odd"]
            func name() -> String {
                let state = states[random.below(states.count)]
                return "a\(random.below(6)).0-0.x@t\(random.below(3)).\(state)"
            }
            for step in 0..<60 {
                for _ in 0..<random.below(4) {
                    let (directory, one, other) =
                        switch random.below(3) {
                        case 0: (paths.queue, name(), name())
                        case 1:
                            (
                                paths.archives, "a\(random.below(6)).0-0.x.cwa",
                                "a\(random.below(6)).0-0.x.cwa"
                            )
                        default:
                            (paths.targets, "t\(random.below(3))", "t\(random.below(3))")
                        }
                    switch random.below(4) {
                    case 0, 1: writeAll([1], "\(directory)/\(one)")
                    case 2: unlink("\(directory)/\(one)")
                    default: rename("\(directory)/\(one)", "\(directory)/\(other)")
                    }
                }
                try check(kept, &known, store, "seed \(seed), step \(step)")
            }
        }
    }

    /// The kernel keeps so many events; the rest are lost.
    func testLostEventsListAnew() throws {
        let store = try TestStore(inMemory: true)
        let (queue, kept) = ("\(store.paths.queue)", KeptListing(store.paths))
        var known: Set<String> = []
        writeAll([], queue + "/a@t.sent-200")
        try check(kept, &known, store, "first")
        let text = try String(
            contentsOfFile: "/proc/sys/fs/inotify/max_queued_events", encoding: .utf8)
        let most = Int(text.trimmingCharacters(in: .whitespacesAndNewlines)) ?? 16_384
        // Each renaming is two events.
        for _ in 0...most / 4 {
            rename(queue + "/a@t.sent-200", queue + "/b@t.sent-200")
            rename(queue + "/b@t.sent-200", queue + "/a@t.sent-200")
        }
        rename(queue + "/a@t.sent-200", queue + "/c@t.filtered")
        try check(kept, &known, store, "after lost events")
    }

    // ── What is durable ──

    /// A directory that is away cannot be synced: this fails if anything is to be.
    private func isSynced(_ kept: KeptListing, _ store: TestStore) -> Bool {
        let (queue, away) = ("\(store.paths.queue)", store.root + "/away")
        XCTAssertEqual(rename(queue, away), 0)
        defer { XCTAssertEqual(rename(away, queue), 0) }
        return (try? kept.sync()) != nil
    }

    /// What changed since the last sync is synced once, and again if that failed.
    func testStatesAreSyncedOnce() throws {
        let store = try TestStore(inMemory: true)
        let kept = KeptListing(store.paths)
        let outbox = Outbox(paths: store.paths, kept: kept)
        XCTAssertTrue(isSynced(kept, store), "nothing has changed")
        for number in 1...2 {
            try outbox.set(store.stem(number), TargetKey(name: "t"), to: .filtered)
            for _ in 0..<2 { XCTAssertFalse(isSynced(kept, store), "\(number)") }
            try kept.sync()
            XCTAssertTrue(isSynced(kept, store), "\(number)")
        }
    }

    func testARunLeavesNothingUnsynced() throws {
        let server = try FaultServer()
        let store = try TestStore()
        add(store, 1...3)
        let service = try store.service()
        let kept = service.keepListing()
        let other = try store.target("http://127.0.0.1:9") { $0.name = "other" }
        try TargetRegistry(storeDirectory: store.paths.root).register(other.registration)
        _ = try service.addTarget(store.target(server.url))
        XCTAssertEqual(service.pass().1.uploaded, 3)
        XCTAssertEqual(store.queue, ["sent-200", "sent-200", "sent-200"])
        XCTAssertTrue(isSynced(kept, store))
    }

    /// Beside a run, states are listed and synced together, also those that it did not write.
    func testWhatIsWrittenBesideRunsIsSynced() throws {
        let store = try TestStore(inMemory: true)
        for number in 1...2 { store.addArchive(number) }
        let service = try store.service()
        let kept = service.keepListing()
        let target = try store.target("http://127.0.0.1:9")
        let paused = PairState.paused(attempts: 1, httpStatus: 401)
        try service.outbox.set(store.stem(1), target.key, to: paused)
        try kept.sync()
        _ = try service.addTarget(target)
        XCTAssertEqual(store.queue, ["retry-1-0-stopped"])
        XCTAssertTrue(isSynced(kept, store), "of a target that was added again")
        let until = store.clock.unixMs + 60_000
        let away = PairState.retry(attempts: 1, notBeforeMs: until, reason: .unreachable)
        service.currentRunners[0].remember(store.stem(2), (away, PairRefusals.none))
        service.startBackground()
        XCTAssertEqual(store.queue, ["retry-1-0-stopped", away.suffix ?? ""])
        XCTAssertTrue(isSynced(kept, store), "that could not be written before")
    }

    /// A crash left them: of an archive that is gone, of a target that is, and a body's name.
    func testAPassRemovesOrphans() throws {
        let store = try TestStore(inMemory: true)
        store.addArchive(1)
        let service = try store.service()
        let kept = service.keepListing()
        let target = try store.target("http://127.0.0.1:9")
        _ = try service.addTarget(target)
        let (outbox, queue) = (Outbox(paths: store.paths), store.paths.queue)
        let stays = PairState.quarantined(httpStatus: 400)
        try outbox.set(store.stem(1), target.key, to: stays)
        try outbox.set(store.stem(1), TargetKey(name: "gone"), to: .sent(httpStatus: 200))
        try outbox.set(
            store.stem(2), target.key,
            to: .retry(
                attempts: 0, notBeforeMs: 0, reason: .stopped))
        writeAll([], "\(queue)/" + StorePaths.body(of: store.stem(2), thread: 7))
        XCTAssertEqual(service.pass().0, .end)
        XCTAssertEqual(
            try StoreFiles.list(queue, hidden: true),
            ["\(store.stem(1))@\(target.key.text).quarantined-400"])
        withExtendedLifetime(kept) {}
    }

    // ── A call's time ──

    func testTheTimeOfACallHoldsWhileItMerges() throws {
        let store = try TestStore()
        add(store, 1...(UploadService.mergedMin + 6))
        let service = try store.service()
        _ = try service.addTarget(store.target("http://127.0.0.1:9"))
        let before = try names(store)
        XCTAssertEqual(service.pass(seconds: 0).0, .timeout)
        XCTAssertEqual(try names(store), before)
        // Another process merges.
        let lock = try StoreFiles.lockDirectory(store.paths.queue)
        defer { _ = lock.number }
        let begunMs = UploadClock.system.monotonicMs()
        XCTAssertEqual(service.pass(seconds: 0.1).0, .timeout)
        XCTAssertLessThan(UploadClock.system.monotonicMs() - begunMs, 5_000)
        XCTAssertEqual(try names(store), before)
    }

    // ── Targets that nobody sends to ──

    func testAForsakenTargetIsTold() throws {
        let server = try FaultServer()
        let store = try TestStore()
        add(store, 1...2)
        let wrong = try store.target("http://127.0.0.1:1/typo")
        try TargetRegistry(storeDirectory: store.paths.root).register(wrong.registration)
        let service = try store.service()
        _ = try service.addTarget(store.target(server.url))
        XCTAssertEqual(service.pass().0, .ok)
        let told = store.events.diagnostics.filter { $0.hasPrefix("archives still wait") }
        XCTAssertEqual(told.count, 1)
        let words = ["archives=number(2)", "since=", "remove", wrong.name, "http://127.0.0.1:1"]
        for word in words { XCTAssertTrue(told.first?.contains(word) ?? false, word) }
        XCTAssertTrue(store.hasArchive(1))
        // Once, and not of a target that was given a name.
        _ = service.pass()
        let named = try store.target("http://127.0.0.1:1/other") { $0.name = "archive" }
        try TargetRegistry(storeDirectory: store.paths.root).register(named.registration)
        _ = service.pass()
        XCTAssertEqual(
            store.events.diagnostics.count { $0.hasPrefix("archives still wait") }, 1)
        try TargetRegistry(storeDirectory: store.paths.root).remove(name: wrong.name)
        try TargetRegistry(storeDirectory: store.paths.root).remove(name: "archive")
        _ = service.pass()
        XCTAssertFalse(store.hasArchive(1))
    }
}
