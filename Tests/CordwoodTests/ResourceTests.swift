// Attributes of the program that logs hold for the records that follow (FORMAT §5): whoever sets
// them, records that were written before keep theirs, live, sealed and archived.

import Cordwood
import CordwoodCore
import CordwoodEngine
import CordwoodStore
import CordwoodTestSupport
import Foundation
import XCTest

final class ResourceTests: XCTestCase {
    private var store = ""

    override func setUp() { store = TestFiles.directory() }
    override func tearDown() { TestFiles.remove(store) }

    private struct Shown {
        var text: String
        var user: String?
        var chunk: UInt64
        var lane: String
    }

    private func read() throws -> [Shown] {
        let reader = try StoreReader(path: store)
        var found: [Shown] = []
        while let record = reader.nextRecord() {
            guard record.logger == "users" else { continue }
            let user = record.resource.last { $0.key == "user.id" }?.value
            found.append(
                Shown(
                    text: record.message, user: user, chunk: record.sequence >> 32,
                    lane: String("\(record.recordID)".prefix(24))))
        }
        XCTAssertEqual(reader.problems.count, 0, "\(reader.problems.prefix(3))")
        return found
    }

    private func lanes() throws -> Set<String> {
        Set(
            try FileManager.default.contentsOfDirectory(atPath: store + "/lanes").filter {
                $0.hasSuffix(".lane") && !$0.hasPrefix(".")
            })
    }

    /// Each message is the user at that time.
    private func compare(_ written: [String], _ what: String) throws {
        let found = try read()
        XCTAssertEqual(found.map(\.text), written, what)
        for shown in found where (shown.user ?? "") != shown.text {
            return XCTFail("\(what): \(shown.text)'s record is \(shown.user ?? "nobody")'s")
        }
    }

    func testEarlierRecordsKeepTheirUser() throws {
        for seed in SplitMix.seeds(60, core: 12) {
            var random = SplitMix(seed)
            var options = EngineOptions()
            options.segmentBytes = 64 << 10
            let engine = try Engine(directory: store, options: options)
            let log = engine.logger("users")
            var (user, written): (String, [String]) = ("", [])
            for _ in 0..<Int.random(in: 1...60, using: &random) {
                switch random.next() % 16 {
                case 0: try engine.roll()
                case 1: try engine.archiveWait(timeout: .seconds(60))
                case 2...7:
                    user = ["", "a", "b", "c"].randomElement(using: &random)!
                    try engine.setResource("user.id", user)
                case 8: try engine.setResource("other", "\(random.next() % 3)")
                default:
                    for _ in 0..<(random.next() % 40) {
                        written.append(user)
                        XCTAssertEqual(log.log(.info, user), 0)
                    }
                }
                if random.next() % 8 == 0 { try compare(written, "seed \(seed), live") }
            }
            XCTAssertTrue(try engine.close())
            try compare(written, "seed \(seed), closed")
            _ = try StoreArchiver.archiveDead(directory: FilePath(store))
            try compare(written, "seed \(seed), archived")
            TestFiles.remove(store)
            store = TestFiles.directory()
        }
    }

    func testAnEqualValueChangesNothing() throws {
        let engine = try Engine(directory: store)
        let log = engine.logger("users")
        try engine.setResource("user.id", "a")
        log.log(.info, "a")
        for _ in 0..<20_000 { try engine.setResource("user.id", "a") }
        try engine.setResource("no such", "")
        log.log(.info, "a")
        try engine.setResource("user.id", "b")
        log.log(.info, "b")
        let found = try read()
        XCTAssertEqual(found.map(\.chunk), [found[0].chunk, found[0].chunk, found[0].chunk + 1])
        XCTAssertEqual(Set(found.map(\.lane)).count, 1)
        XCTAssertTrue(try engine.close())
    }

    /// A lane takes 4,096 changes; the next one begins with what holds then.
    func testManyChangesBeginALane() throws {
        let engine = try Engine(directory: store)
        let log = engine.logger("users")
        try engine.setResource("first", "stays")
        var written: [String] = []
        let deadline = Deadline(afterMs: 60_000)
        let begun = try lanes()
        while try lanes().isSubset(of: begun), !deadline.hasPassed {
            for _ in 0..<500 {
                written.append("\(written.count)")
                try engine.setResource("user.id", written.last!)
                log.log(.info, written.last!)
            }
        }
        try compare(written, "\(written.count) changes")
        XCTAssertGreaterThan(Set(try read().map(\.lane)).count, 1)
        XCTAssertTrue(try engine.close(timeout: .seconds(60)))
        _ = try StoreArchiver.archiveDead(directory: FilePath(store))
        try compare(written, "archived")
        let reader = try StoreReader(path: store)
        var warnings = 0
        while let record = reader.nextRecord() {
            if record.logger == "users" {
                XCTAssertTrue(record.resource.contains { $0 == ("first", "stays") })
            } else if record.message.contains("belong in the context") {
                warnings += 1
            }
        }
        XCTAssertGreaterThan(warnings, 0)
    }

    /// The catalog cannot grow any more: nothing has changed, and a later call succeeds.
    func testAChangeThatFailsChangesNothing() throws {
        let engine = try Engine(directory: store)
        let log = engine.logger("users")
        try engine.setResource("user.id", "a")
        log.log(.info, "a")
        var old = rlimit()
        getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &old)
        let long = String(repeating: "x", count: 4_000)
        try engine.setResource("pad", long)
        var none = old
        none.rlim_cur = 0
        setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &none)
        // A helper may have grown it ahead.
        var (user, count, hasFailed) = ("a", 0, false)
        while count < 1_000, !hasFailed {
            do {
                try engine.setResource("user.id", "\(count)\(long)")
                user = "\(count)\(long)"
                count += 1
            } catch { hasFailed = true }
        }
        setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &old)
        XCTAssertTrue(hasFailed, "\(count) changes")
        log.log(.info, user)
        try engine.setResource("user.id", "b")
        log.log(.info, "b")
        try compare(["a", user, "b"], "after a change that failed")
        XCTAssertTrue(try engine.close())
    }

    func testAResourceHasABound() throws {
        let engine = try Engine(directory: store)
        let log = engine.logger("users")
        let long = String(repeating: "x", count: 4_096)
        var kept = 0
        while kept < 40 {
            do { try engine.setResource("\(kept)", long) } catch {
                XCTAssertEqual(error.status, Status.limit)
                XCTAssertTrue(error.text.contains("64 KiB"), error.text)
                break
            }
            kept += 1
        }
        XCTAssertTrue((14...16).contains(kept), "\(kept)")
        try engine.setResource("0", "short")
        try engine.setResource("user.id", "a")
        log.log(.info, "a")
        try compare(["a"], "beside many attributes")
        XCTAssertTrue(try engine.close())
    }
}
