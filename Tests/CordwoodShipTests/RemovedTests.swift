// What limits and denied consent remove unsent: the file `removed` against a model, with removers
// that die, torn and foreign content, its bound; and who is told, by which of several services.

import CordwoodTestSupport
import Foundation
import Glibc
import XCTest

@testable import CordwoodCore
@testable import CordwoodShip
@testable import CordwoodStore

final class RemovedTests: XCTestCase {
    private struct Died: Error {}

    private func add(_ stem: String, to store: TestStore) {
        writeAll([1], "\(store.paths.archive(stem))")
    }

    private func removed(
        _ stem: String, _ reason: RemovalReason = .quota, records: UInt64 = 1,
        untold: Set<String> = []
    ) -> RemovedArchive {
        RemovedArchive(
            stem: stem,
            sum: RemovedSum(
                reason, archives: 1, records: records, timeMin: 1_000, timeMax: 1_000 + records),
            untold: untold)
    }

    /// - Parameter dies: the process dies before the unlink.
    private func remove(
        _ stem: String, _ unsent: RemovedArchive?, in store: TestStore, dies: Bool = false
    ) {
        _ = try? RemovedFile.noting(unsent, stem: stem, storeDirectory: FilePath(store.root)) {
            if dies { throw Died() }
            unlink("\(store.paths.archive(stem))")
        }
    }

    private func sums(_ store: TestStore) -> [RemovedSum] {
        RemovedFile.sums(storeDirectory: FilePath(store.root))
    }

    private func path(_ store: TestStore) -> String { store.root + "/removed" }

    // ── The file ──

    func testModel() throws {
        for seed in 0..<sized(20, 200, 2_000) {
            let store = try TestStore(inMemory: true)
            var random = SplitMix(UInt64(seed))
            var waiting: [String] = []
            var gone: [String: RemovedArchive] = [:]
            var next = 0
            let askers = ["a", "b", RemovedArchive.host]
            for step in 0..<120 {
                let note = "seed \(seed), step \(step)"
                if waiting.isEmpty || random.below(3) == 0 {
                    waiting.append("lane.\(next)")
                    next += 1
                    add(waiting.last!, to: store)
                }
                let stem = waiting[random.below(waiting.count)]
                let reason = RemovalReason.allCases[random.below(4)]
                let untold = Set(askers.filter { _ in random.below(2) == 0 })
                let unsent = removed(
                    stem, reason, records: UInt64(random.below(1_000)), untold: untold)
                switch random.below(6) {
                case 0, 1:
                    remove(stem, unsent, in: store)
                    waiting.removeAll { $0 == stem }
                    gone[stem] = unsent
                case 2: remove(stem, unsent, in: store, dies: true)
                case 3:  // sent
                    remove(stem, nil, in: store)
                    waiting.removeAll { $0 == stem }
                case 4 where random.below(4) == 0:  // a power cut during an append
                    guard var torn = FileManager.default.contents(atPath: path(store)) else {
                        continue
                    }
                    torn.append(contentsOf: Array("archive quota lane.x 7 1".utf8))
                    if random.below(2) == 0 { torn.append(0) }
                    writeAll(Array(torn), path(store))
                default:
                    let asking = Set(askers.filter { _ in random.below(2) == 0 })
                    var told: [String: Set<String>] = [:]
                    for one in RemovedFile.claim(
                        for: asking, storeDirectory: FilePath(store.root))
                    { told[one.stem] = one.untold }
                    var wanted: [String: Set<String>] = [:]
                    for (stem, one) in gone where !one.untold.isDisjoint(with: asking) {
                        wanted[stem] = one.untold.intersection(asking)
                        gone[stem]?.untold.subtract(asking)
                    }
                    XCTAssertEqual(told, wanted, note)
                }
                for reason in RemovalReason.allCases {
                    let ours = gone.values.map(\.sum).filter { $0.reason == reason }
                    let sum = sums(store).first { $0.reason == reason }
                    XCTAssertEqual(sum?.archives ?? 0, UInt64(ours.count), note)
                    XCTAssertEqual(sum?.records ?? 0, ours.reduce(0) { $0 + $1.records }, note)
                    XCTAssertEqual(sum?.timeMax ?? 0, ours.map(\.timeMax).max() ?? 0, note)
                    XCTAssertEqual(sum?.timeMin ?? 0, ours.map(\.timeMin).min() ?? 0, note)
                }
            }
        }
    }

    /// Whatever the file holds, nothing crashes, and the next line counts.
    func testRubbish() throws {
        let store = try TestStore(inMemory: true)
        for number in 0..<40 {
            add("lane.\(number)", to: store)
            remove("lane.\(number)", removed("lane.\(number)", untold: ["a"]), in: store)
        }
        let whole = readAll(path(store))
        let most = String(UInt64.max)
        let texts = [
            "cordwood removed\nformat 1\nsum quota \(most) \(most) \(most) \(most)\n"
                + "sum quota \(most) 1 0 0\narchive quota lane 99999999999999999999 1 1\n",
            "cordwood removed\nformat 1\narchive quota ../store 1 1 1 a\narchive\nsum\n \n\n",
            "cordwood removed\nformat 1", "cordwood removed\n", "\n", "", "format 1\n",
        ]
        for seed in 0..<sized(300, 3_000, 30_000) {
            var random = SplitMix(UInt64(seed))
            var bytes = seed < texts.count ? Array(texts[seed].utf8) : whole
            if seed >= texts.count {
                for _ in 0...random.below(8) {
                    bytes[random.below(bytes.count)] = UInt8(truncatingIfNeeded: random.below(256))
                }
                if random.below(3) == 0 { bytes.removeLast(random.below(bytes.count)) }
            }
            writeAll(bytes, path(store))
            let isNewer = (try? RemovedFile.read(FilePath(store.root))) == nil
            _ = sums(store)
            _ = RemovedFile.claim(for: ["a", "b"], storeDirectory: FilePath(store.root))
            add("fresh", to: store)
            remove("fresh", removed("fresh", .expired, records: 5, untold: ["z"]), in: store)
            let sum = sums(store).first { $0.reason == .expired }
            if !isNewer { XCTAssertGreaterThanOrEqual(sum?.records ?? 0, 5, "seed \(seed)") }
            let told = RemovedFile.claim(for: ["z"], storeDirectory: FilePath(store.root))
            if !isNewer { XCTAssertTrue(told.contains { $0.stem == "fresh" }, "seed \(seed)") }
        }
    }

    func testForeignFiles() throws {
        let store = try TestStore()
        let newer = Array("cordwood removed\nformat 2\nmore\n".utf8)
        writeAll(newer, path(store))
        add("one", to: store)
        remove("one", removed("one", untold: ["a"]), in: store)
        XCTAssertEqual(readAll(path(store)), newer)
        XCTAssertEqual(sums(store), [])
        XCTAssertFalse(StoreFiles.exists(store.paths.archive("one")))
        // Nothing can take the place of a directory: the removal goes on.
        unlink(path(store))
        XCTAssertEqual(mkdir(path(store), 0o700), 0)
        add("two", to: store)
        remove("two", removed("two", untold: ["a"]), in: store)
        XCTAssertFalse(StoreFiles.exists(store.paths.archive("two")))
        XCTAssertEqual(sums(store), [])
        rmdir(path(store))
        XCTAssertEqual(symlink(store.root + "/store", path(store)), 0)
        add("three", to: store)
        remove("three", removed("three", untold: ["a"]), in: store)
        XCTAssertEqual(sums(store).map(\.archives), [1])
        XCTAssertTrue(readAll(store.root + "/store").starts(with: Array("cordwood store".utf8)))
    }

    /// Of which nobody is ever told: the file stays small, the sums exact, and the latest named.
    func testBound() throws {
        let store = try TestStore(inMemory: true)
        let count = sized(3_000, 6_000, 20_000)
        var largest = 0
        for number in 0..<count {
            let stem = "20261121T081530Z-812-9f3c5a0de1b27788.\(number)"
            let untold: Set<String> = ["target", RemovedArchive.host]
            remove(stem, removed(stem, records: 3, untold: untold), in: store)
            largest = max(largest, Int(StoreFiles.size(FilePath(path(store)))))
        }
        XCTAssertLessThanOrEqual(largest, RemovedFile.bytesMax)
        XCTAssertGreaterThan(largest, RemovedFile.bytesMax / 2)
        XCTAssertEqual(sums(store).map(\.archives), [UInt64(count)])
        XCTAssertEqual(sums(store).map(\.records), [UInt64(count * 3)])
        let told = RemovedFile.claim(for: ["target"], storeDirectory: FilePath(store.root))
        XCTAssertGreaterThan(told.count, 1_000)
        XCTAssertTrue(told.last!.stem.hasSuffix(".\(count - 1)"))
        XCTAssertEqual(sums(store).map(\.archives), [UInt64(count)])
    }

    // ── Who is told ──

    /// A process with a service of its own.
    private final class Host: UploadDelegate, Sendable {
        let events = Events()
        let hearsRemovals: Bool
        let service: UploadService

        init(_ store: TestStore, _ targets: [String], hears: Bool = true) throws {
            hearsRemovals = hears
            service = try store.service()
            service.delegate = self
            for name in targets {
                var options = TargetOptions(url: "http://127.0.0.1:9")
                options.name = name
                var callbacks = TargetCallbacks()
                let events = self.events
                callbacks.completed = { archive, status, _ in
                    events.add("\(name) \(archive) \(status)")
                }
                _ = try service.addTarget(Target(options, callbacks: callbacks))
            }
        }

        func report(_ diagnostic: UploadDiagnostic) {
            let fields = diagnostic.fields.map { "\($0.key)=\($0.value)" }
            events.diagnose(diagnostic.message + " " + fields.joined(separator: " "))
        }

        func archiveRemoved(_ archiveName: String, _ reason: RemovalReason) {
            if hearsRemovals { events.add("removed \(archiveName) \(reason)") }
        }

        /// What it was told since the last call.
        private(set) nonisolated(unsafe) var seen = 0
        func news() -> [String] {
            defer { seen = events.all.count }
            return events.all[seen...].sorted()
        }
    }

    private let quota = RetentionLimits(quotaBytes: 1, archivesMax: 0, expirationDays: 0)

    func testEachRemovalIsToldOnce() throws {
        let store = try TestStore()
        let (one, two) = (try Host(store, ["a", "b"]), try Host(store, ["b"]))
        let tool = try Host(store, [], hears: false)
        store.addArchive(1)
        let file = StorePaths.file(ofStem: store.stem(1))
        tool.service.setLimits(quota)
        XCTAssertEqual(try tool.service.applyRetention(otherBytes: 0), 1)
        XCTAssertEqual(tool.news(), [])
        two.service.startBackground()
        XCTAssertEqual(two.news(), ["b \(file) full", "removed \(file) quota"])
        one.service.startBackground()
        XCTAssertEqual(one.news(), ["a \(file) full"])
        // What a host removes it tells itself, at once; others, what it cannot tell.
        store.addArchive(2)
        let next = StorePaths.file(ofStem: store.stem(2))
        two.service.setLimits(quota)
        XCTAssertEqual(try two.service.applyRetention(otherBytes: 0), 1)
        XCTAssertEqual(two.news(), ["b \(next) full", "removed \(next) quota"])
        for _ in 0..<2 {
            two.service.startBackground()
            one.service.startBackground()
        }
        XCTAssertEqual(two.news(), [])
        XCTAssertEqual(one.news(), ["a \(next) full"])
        XCTAssertEqual(sums(store).map(\.archives), [2])
    }

    /// The background wakes for it, although nothing waits.
    func testATargetAddedLateIsTold() throws {
        let store = try TestStore()
        _ = try Host(store, ["a"])
        store.addArchive(1)
        _ = try UploadService(storeDirectory: FilePath(store.root)).removeWaiting()
        let host = try Host(store, ["a"])
        XCTAssertNotEqual(host.service.nextWakeMonotonicMs, .max)
        host.service.startBackground()
        XCTAssertEqual(host.news().count, 2)
        XCTAssertEqual(host.service.nextWakeMonotonicMs, .max)
    }

    /// A target that was told how it ended is not told again.
    func testFinalStatesAreNotToldAgain() throws {
        let store = try TestStore()
        let host = try Host(store, ["a", "b"])
        store.addArchive(1, content: "1\n2\n3\n4\n5")
        let key = TargetKey(name: "a")
        try host.service.outbox.set(
            store.stem(1), key, to: .kept(httpStatus: 400, records: 2))
        try host.service.outbox.set(
            store.stem(1), TargetKey(name: "b"),
            to: .retry(
                attempts: 1, notBeforeMs: 0, reason: .failed, progress: Progress(done: 1)))
        _ = try UploadService(storeDirectory: FilePath(store.root)).removeWaiting()
        host.service.startBackground()
        let file = StorePaths.file(ofStem: store.stem(1))
        XCTAssertEqual(host.news(), ["b \(file) consent", "removed \(file) consent"])
        // 2 are missing at one target, 4 at the other.
        XCTAssertEqual(sums(store).map(\.records), [4])
        XCTAssertGreaterThan(sums(store)[0].timeMin, 0)
    }

    /// A remover died before the unlink; the archive was sent, or merged into another one, later.
    func testNoLossThatDidNotHappen() throws {
        let store = try TestStore()
        let host = try Host(store, ["a"])
        store.addArchive(1)
        remove(store.stem(1), removed(store.stem(1), untold: ["a", "@"]), in: store, dies: true)
        host.service.startBackground()
        XCTAssertEqual(host.news(), [])
        XCTAssertEqual(sums(store), [])
        try host.service.outbox.set(
            store.stem(1), TargetKey(name: "a"), to: .sent(httpStatus: 200))
        try Janitor(service: host.service).deleteDone()
        XCTAssertFalse(store.hasArchive(1))
        host.service.startBackground()
        XCTAssertEqual(host.news(), [])
        XCTAssertEqual(sums(store), [])
    }

    func testTheLimitIsNamedOnce() throws {
        let store = try TestStore()
        store.addArchive(1)
        let ending = try Host(store, [])
        ending.service.setLimits(quota)
        ending.service.requestStop()
        XCTAssertEqual(try ending.service.applyRetention(otherBytes: 0), 1)
        XCTAssertEqual(ending.events.diagnostics, [])
        for round in 1...3 {
            let host = try Host(store, [])
            for number in [2 * round, 2 * round + 1] { store.addArchive(number) }
            host.service.setLimits(
                RetentionLimits(quotaBytes: 1, archivesMax: 0, expirationDays: 30))
            XCTAssertEqual(try host.service.applyRetention(otherBytes: 0), 2)
            XCTAssertEqual(host.events.diagnostics.count, round == 1 ? 1 : 0)
            for line in host.events.diagnostics {
                XCTAssertTrue(line.hasPrefix("a limit of the store deletes its oldest"), line)
                for part in ["quota_bytes=number(1)", "archives=number(2)", "records=number(2)"] {
                    XCTAssertTrue(line.contains(part), line)
                }
            }
            store.addArchive(100 + round)
            host.service.setLimits(.standard)
            _ = try host.service.applyRetention(otherBytes: 0)
            store.clock.advance(ms: 31 * 86_400_000)
            XCTAssertEqual(try host.service.applyRetention(otherBytes: 0), 1)
            XCTAssertEqual(host.events.diagnostics.count, round == 1 ? 2 : 0)
            for line in host.events.diagnostics.dropFirst() {
                XCTAssertTrue(line.contains("expiration_days=number(30)"), line)
                XCTAssertTrue(line.contains("limit=text(\"the default\")"), line)
            }
        }
    }
}
