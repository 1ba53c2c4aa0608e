// What archived records leave in a lane: nothing, where consent is denied or before they expire.
// Readers that are in the middle of it, and a journal that cannot be written anew, lose nothing.

import CordwoodCore
import CordwoodStore
import CordwoodTestSupport
import Foundation
import XCTest

@testable import Cordwood
@testable import CordwoodEngine

final class LeftoverTests: XCTestCase {
    private var store = ""
    private var count = 0

    override func setUp() {
        store = StorePlace.path("leftovers")
        count = 0
    }
    override func tearDown() { try? FileManager.default.removeItem(atPath: store) }

    private func open() throws -> Engine {
        var options = EngineOptions()
        options.segmentBytes = 64 << 10
        options.expirationDays = 30
        return try Engine(directory: store, options: options)
    }

    private func write(_ log: Logger, _ records: Int) {
        for _ in 0..<records {
            // Not in the format, which lies in the lane's catalog.
            let text = "planted \(count) \(String(repeating: "x", count: 100))"
            log.info("\(text)")
            count += 1
        }
    }

    private func archive(_ engine: Engine) throws {
        try engine.roll()
        try engine.archiveWait(timeout: .seconds(60))
    }

    private func lanes() throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: store + "/lanes")
    }

    /// The files in lanes/ that have the word.
    private func found() throws -> [String] {
        let word = Data("planted ".utf8)
        return try lanes().filter {
            let path = URL(fileURLWithPath: "\(store)/lanes/\($0)")
            return (try? Data(contentsOf: path))?.range(of: word) != nil
        }
    }

    private func journal() throws -> (name: String, inode: UInt64) {
        let name = try XCTUnwrap(
            try lanes().first { $0.hasSuffix(".journal") && !$0.hasPrefix(".") })
        let facts = try FileManager.default.attributesOfItem(atPath: "\(store)/lanes/\(name)")
        return (name, try XCTUnwrap(facts[.systemFileNumber] as? UInt64))
    }

    private func pause(_ what: String, _ isDone: () throws -> Bool) throws {
        for _ in 0..<60_000 {
            if try isDone() { return }
            Thread.sleep(forTimeInterval: 0.001)
        }
        XCTFail("for a minute not: \(what)")
    }

    /// Files of archived segments become spares and segments.
    private func writeUntilReused(_ engine: Engine, _ log: Logger) throws {
        let before = try engine.stats().segmentsReused
        try pause("reuse") {
            write(log, 3_000)
            try archive(engine)
            return try engine.stats().segmentsReused > before
        }
    }

    func testAReaderGoesOnInTheArchive() throws {
        let engine = try open()
        try engine.setConsent(.denied)
        let log = engine.logger("a")
        // Some chunks of segment 0.
        write(log, 250)
        let reader = try StoreReader(path: store)
        var seen: [String] = []
        func read(atMost: Int) {
            while seen.count < atMost, let record = reader.nextRecord() {
                if record.logger == "a" { seen.append(record.message) }
            }
        }
        read(atMost: 1)
        XCTAssertNotEqual(try found(), [])
        try archive(engine)
        XCTAssertEqual(try found(), [])
        read(atMost: .max)
        XCTAssertEqual(seen.count, 250)
        for (number, message) in seen.enumerated() {
            XCTAssertTrue(message.hasPrefix("planted \(number) "), message)
        }
        XCTAssertEqual(reader.problems.count, 0)
        try engine.close()
        XCTAssertEqual(try lanes(), [])
    }

    func testWithoutThatTheLaneStaysAsItIs() throws {
        let engine = try open()
        write(engine.logger("a"), 100)
        try engine.flush(.machine, timeout: .seconds(60))
        let before = try journal()
        try archive(engine)
        XCTAssertEqual(try found().count, 2)
        XCTAssertEqual(try journal().inode, before.inode)
        try engine.services().clearExpiring()
        XCTAssertFalse(try engine.services().leavesNothing)
        try engine.close()
        XCTAssertNotEqual(try lanes(), [])
    }

    func testClearedBeforeItExpires() throws {
        let engine = try open()
        let services = try engine.services()
        let log = engine.logger("a")
        try writeUntilReused(engine, log)
        try engine.flush(.machine, timeout: .seconds(60))
        try archive(engine)
        XCTAssertNotEqual(try found(), [])
        // As if half of the thirty days had passed.
        let day: UInt64 = 86_400_000_000_000
        services.monitor.locked {
            services.keeping.leftovers.clearedNs =
                UInt64(Date().timeIntervalSince1970 * 1e9) - 15 * day
        }
        services.clearExpiring()
        try pause("clearing") { try found().isEmpty && !services.leavesNothing }
        // Then files are used again.
        try writeUntilReused(engine, log)
        try engine.close()
    }

    private func guards(
        _ services: Services, _ waiting: Set<UInt64>, _ error: Int32
    ) -> JournalGuards {
        JournalGuards(
            copying: { copy in
                services.sealing.locked {
                    copy(
                        waiting.union(
                            services.monitor.locked { services.sealedWaiting.map(\.number) }))
                }
            },
            syncing: { _ in
                var synced = SyncedFiles()
                synced.error = error
                return synced
            })
    }

    private func renew(_ services: Services) -> Int32 {
        services.journal.locked {
            services.journalWriter.renew(services.engine, services.journalGuards)
        }
    }

    /// A journal whose directory could not be synced has its name all the same.
    func testAJournalThatWasNotPublishedIsReplaced() throws {
        let engine = try open()
        let services = try engine.services()
        write(engine.logger("a"), 100)
        let failed = services.journal.locked {
            services.journalWriter.flush(services.engine, guards(services, [999], EIO))
        }
        XCTAssertEqual(failed, EIO)
        let name = EngineCore.laneName(services.engine) + ".journal"
        try Data("planted 1 ".utf8).write(to: URL(fileURLWithPath: "\(store)/lanes/\(name)"))
        XCTAssertTrue(try found().contains(name))
        try archive(engine)
        XCTAssertEqual(renew(services), 0)
        XCTAssertFalse(try found().contains(name))
        try engine.close()
    }

    func testAFailedRenewalChangesNothing() throws {
        let engine = try open()
        let services = try engine.services()
        let log = engine.logger("a")
        write(log, 100)
        try engine.flush(.machine, timeout: .seconds(60))
        XCTAssertEqual(renew(services), 0)
        let first = try journal()
        try archive(engine)
        XCTAssertEqual(try journal().inode, first.inode)

        // The new journal's name is taken by something that is not removed.
        let place = "\(store)/lanes/.\(first.name)"
        try FileManager.default.createDirectory(
            atPath: place, withIntermediateDirectories: false)
        XCTAssertNotEqual(renew(services), 0)
        write(log, 100)
        try engine.flush(.machine, timeout: .seconds(60))
        XCTAssertEqual(try journal().inode, first.inode, "a journal that was whole was given up")

        // A flush fails: the journal is not believed, whatever becomes of a renewal.
        let failed = services.journal.locked {
            services.journalWriter.flush(services.engine, guards(services, [999], EIO))
        }
        XCTAssertEqual(failed, EIO)
        XCTAssertNotEqual(renew(services), 0)
        try FileManager.default.removeItem(atPath: place)
        try engine.flush(.machine, timeout: .seconds(60))
        let second = try journal()
        XCTAssertNotEqual(second.inode, first.inode, "a journal was believed after a failed flush")

        try archive(engine)
        XCTAssertTrue(try found().contains(second.name))
        XCTAssertEqual(renew(services), 0)
        XCTAssertNotEqual(try journal().inode, second.inode)
        XCTAssertFalse(try found().contains(second.name))
        try engine.close()
    }
}
