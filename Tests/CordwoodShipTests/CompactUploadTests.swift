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

    func testEachRecordArrivesOnce() throws {
        var merged = 0
        for seed in 0..<12 {
            var random = SplitMix(UInt64(seed))
            let server = try FaultServer()
            let store = try TestStore()
            store.addArchives(1...archives, records: 50)
            let service = try store.service()
            let requests = UInt32(1 + seed % 3)
            _ = try service.addTarget(store.target(server.url) { $0.requestsMax = requests })
            merged += try compactBesidePasses(store, service, seed, &random)
            let counts = try server.taken(identity)
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
            store.addArchives(1...archives, records: 50, to: [identity.recipient])
            let service = try store.service()
            _ = try service.addTarget(store.target(server.url) { $0.requestsMax = 2 })
            merged += try compactBesidePasses(store, service, seed, &random)
            let counts = try server.taken(identity)
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
            store.addArchives(1...archives, records: 50)
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
                let counts = try server.taken(identity)
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
