// Uploads beside a compacting program: whatever the timing, a target gets each record once.

import CordwoodCore
import CordwoodTestSupport
import Foundation
import XCTest

@testable import CordwoodShip
@testable import CordwoodStore

final class CompactUploadTests: XCTestCase {
    private let archives = 8
    private let identity = AgeIdentity.generate()

    /// Records of one thread; each archive's records follow those of the one before.
    private func add(_ store: TestStore, _ number: Int, to recipients: [AgeRecipient] = []) {
        let process = CordwoodStore.ProcessInfo(
            laneID: LaneID(high: 1, low: 2), bootID: .zero, processID: 812, name: "test",
            createdRealtime: 0, createdMonotonic: 0, resource: [])
        let thread = ThreadInfo(process: process, serial: 1, threadID: 812, name: "main")
        store.addArchive(
            number,
            records: (0..<50).map { index in
                var staged = Staged(thread: thread)
                staged.model.sequence = UInt64(number) << 32 | UInt64(index)
                staged.model.level = 9
                staged.model.monotonic = UInt64(number * 1_000 + index)
                staged.model.written = staged.model.monotonic
                staged.model.time = staged.model.monotonic
                staged.model.message = Array("record \(index) of \(number)".utf8)
                staged.model.originalLength = UInt64(staged.model.message.count)
                return staged
            }, recipients: recipients)
    }

    /// How often the server took each record.
    private func taken(_ server: FaultServer) throws -> [UInt64: Int] {
        var counts: [UInt64: Int] = [:]
        var keys: Set<String> = []
        for request in server.requests
        where keys.insert(request.headers["idempotency-key"] ?? "").inserted {
            let path = NSTemporaryDirectory() + "taken-\(UUID().uuidString).cwa"
            writeAll(server.body(request.number), path)
            defer { unlink(path) }
            for record in drain(
                try ArchiveSource.open(path: FilePath(path), identities: [identity])
            ).records {
                counts[record.sequence, default: 0] += 1
            }
        }
        return counts
    }

    func testEachRecordArrivesOnce() throws {
        var merged = 0
        for seed in 0..<12 {
            var random = SplitMix(UInt64(seed))
            let server = try FaultServer()
            let store = try TestStore()
            for number in 1...archives { add(store, number) }
            let service = try store.service()
            let requests = UInt32(1 + seed % 3)
            _ = try service.addTarget(store.target(server.url) { $0.requestsMax = requests })
            merged += try compactBesidePasses(store, service, seed, &random)
            let counts = try taken(server)
            XCTAssertEqual(counts.count, archives * 50, "seed \(seed): lost")
            XCTAssertEqual(Set(counts.values), [1], "seed \(seed): twice")
        }
        XCTAssertGreaterThan(merged, 0, "they never met")
    }

    /// Archives that wait encrypted are compacted with the key, and uploaded without it.
    func testEachEncryptedRecordArrivesOnce() throws {
        try full()
        var merged = 0
        for seed in 0..<6 {
            var random = SplitMix(UInt64(seed))
            let server = try FaultServer()
            let store = try TestStore()
            for number in 1...archives { add(store, number, to: [identity.recipient]) }
            let service = try store.service()
            _ = try service.addTarget(store.target(server.url) { $0.requestsMax = 2 })
            merged += try compactBesidePasses(store, service, seed, &random)
            let counts = try taken(server)
            XCTAssertEqual(counts.count, archives * 50, "seed \(seed): lost")
            XCTAssertEqual(Set(counts.values), [1], "seed \(seed): twice")
        }
        XCTAssertGreaterThan(merged, 0, "they never met")
    }

    /// Compacts beside a pass that uploads, at a moment given by the seed, or before it with seed
    /// 0; then uploads the rest. Returns how many archives were merged.
    private func compactBesidePasses(
        _ store: TestStore, _ service: UploadService, _ seed: Int, _ random: inout SplitMix
    ) throws -> Int {
        let ended = expectation(description: "compacted")
        let (root, identity) = (store.root, self.identity)
        let pause = UInt32(random.below(12_000))
        let counted = Counted()
        Thread.detachNewThread {
            if seed > 0 { usleep(pause) }
            let summary = try? StoreCompactor.compact(
                directory: FilePath(root), ageSeconds: 0, identities: [identity])
            counted.set(summary?.archivesIn ?? -1)
            ended.fulfill()
        }
        if seed > 0 { _ = service.pass() }
        wait(for: [ended], timeout: 60)
        XCTAssertGreaterThanOrEqual(counted.value, 0)
        for _ in 0..<5 where try !StoreFiles.list(store.paths.archives).isEmpty {
            _ = service.pass()
        }
        XCTAssertEqual(try StoreFiles.list(store.paths.archives), [], "seed \(seed)")
        return counted.value
    }

    /// One target already has the archives, and another one nothing yet.
    func testEachRecordArrivesOnceAtEachTarget() throws {
        try full()
        var merged = 0
        for seed in 0..<8 {
            var random = SplitMix(UInt64(seed))
            let (first, second) = (try FaultServer(), try FaultServer())
            let store = try TestStore()
            for number in 1...archives { add(store, number) }
            let early = try store.service()
            // Registered, so what the first one has stays for it.
            let later = try store.target(second.url) { $0.name = "later" }
            try TargetRegistry(storeDirectory: FilePath(store.root)).register(
                RegisteredTarget(
                    key: later.key, name: "later", kind: "http", format: "archive",
                    encoding: "none", origin: ""))
            _ = try early.addTarget(store.target(first.url) { $0.name = "first" })
            _ = early.pass()
            XCTAssertEqual(try StoreFiles.list(store.paths.archives).count, archives)
            let service = try store.service()
            _ = try service.addTarget(store.target(first.url) { $0.name = "first" })
            _ = try service.addTarget(later)
            merged += try compactBesidePasses(store, service, seed, &random)
            for server in [first, second] {
                let counts = try taken(server)
                XCTAssertEqual(counts.count, archives * 50, "seed \(seed): lost")
                XCTAssertEqual(Set(counts.values), [1], "seed \(seed): twice")
            }
        }
        XCTAssertGreaterThan(merged, 0, "they never met")
    }

    private final class Counted: @unchecked Sendable {
        // SAFETY: guarded by the lock.
        private let lock = NSLock()
        private var number = 0
        var value: Int { lock.withLock { number } }
        func set(_ new: Int) { lock.withLock { number = new } }
    }
}
