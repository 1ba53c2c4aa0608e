// 403s: a firewall before the server dislikes the content of some bodies. Whatever records it
// dislikes, at every kind that sends records, all others arrive exactly once, and those alone are
// kept, with their places; also with processes that are killed on the way. A target that refuses
// everything is asked seldom. The model is a server that looks for marked records.

import CordwoodTestSupport
import Foundation
import XCTest

@testable import CordwoodCore
@testable import CordwoodShip
@testable import CordwoodStore

final class UploadForbiddenTests: XCTestCase {
    private static let kinds = [
        "http", "sap", "loggly", "s3", "otlp", "loki", "elasticsearch", "splunk", "datadog",
        "clickhouse",
    ]

    private func add(
        _ store: TestStore, _ service: UploadService, _ server: Firewall,
        _ change: (inout TargetOptions) -> Void = { _ in }
    ) throws {
        _ = try service.addTarget(
            store.target("http://127.0.0.1:9/in") {
                $0.name = "t"
                $0.kind = server.kind
                $0.transport = server
                switch server.kind {
                case "http": $0.format = "ndjson"
                case "s3": ($0.format, $0.encoding) = ("ndjson", "none")
                case "otlp": ($0.format, $0.encoding) = ("otlp-json", "none")
                case "clickhouse": ($0.parameters, $0.encoding) = ("table=logs", "none")
                default: $0.encoding = "none"
                }
                change(&$0)
            })
    }

    private func content(_ archive: Int, _ count: Int) -> String {
        (0..<count).map { "\(archive)r\($0)x" }.joined(separator: "\n")
    }

    /// The records that the queue names as refused.
    private func kept(_ store: TestStore, _ archive: Int) throws -> [UInt64] {
        let outbox = Outbox(paths: store.paths)
        let key = TargetKey(name: "t")
        let state = try outbox.states(store.stem(archive))[key] ?? .waiting
        guard case .kept(403, _) = state else { return [] }
        return try XCTUnwrap(outbox.refusals(store.stem(archive), key, state)).kept
            .flatMap { Array($0.range.first..<$0.range.end) }.sorted()
    }

    private func background(_ service: UploadService) {
        var result = UploadResult()
        _ = service.pass(explicit: false, deadlineMonotonicMs: .max, result: &result)
    }

    // ── One of several ──

    /// Wherever it is, one call delivers everything else, and keeps the one record.
    func testOneCallDeliversAllButTheDislikedRecord() throws {
        for archive in [1, 3, 6] {
            let server = Firewall("http", dislikes: ["\(archive)r7x"])
            let store = try TestStore(inMemory: true)
            for number in 1...6 { store.addArchive(number, content: content(number, 20)) }
            let service = try store.service()
            try add(store, service, server)
            let (status, result) = service.pass()
            XCTAssertEqual(status, .upload)
            XCTAssertEqual([result.uploaded, result.quarantined, result.waiting], [5, 1, 0])
            XCTAssertEqual(store.queue, ["kept-403-1"], "\(archive)")
            XCTAssertEqual(try kept(store, archive), [7])
            XCTAssertEqual(server.taken.count, 119)
            XCTAssertTrue(server.taken.values.allSatisfy { $0.count == 1 })
            XCTAssertLessThan(server.refused, 10)
            let entry = try XCTUnwrap(
                QueueListing(storeDirectory: FilePath(store.root)).list().first)
            XCTAssertEqual(entry.cause, "HTTP 403: Request blocked.")
        }
    }

    /// An archive that goes whole cannot be cut: the others go, and it is given up after three
    /// refusals, each but the first after something else was taken.
    func testAnArchiveThatCannotBeCutIsQuarantined() throws {
        let store = try TestStore(inMemory: true)
        for number in 1...3 { store.addArchive(number, content: content(number, 4)) }
        let server = Firewall("http", dislikes: ["2r1x"])
        let service = try store.service()
        try add(store, service, server) {
            $0.format = "archive"
            $0.requestsMax = 1
        }
        let (status, result) = service.pass()
        XCTAssertEqual(status, .upload)
        XCTAssertEqual([result.uploaded, result.quarantined, result.waiting], [2, 0, 1])
        XCTAssertEqual(server.refused, 2)
        for _ in 0..<3 { XCTAssertEqual(service.pass().1.quarantined, 0, "nothing was taken") }
        store.addArchive(4, content: content(4, 1))
        XCTAssertEqual(service.pass().1.quarantined, 1)
        XCTAssertEqual(store.queue, ["quarantined-403"])
        XCTAssertTrue(store.hasArchive(2))
        XCTAssertEqual(server.refused, 2 + 3 + 1)
        server.like(["2r1x"])
        XCTAssertEqual(try service.retryQuarantined(target: "t"), 1)
        XCTAssertEqual(service.pass().0, .ok)
    }

    /// New records go while an old one is at fault, and the hour's refusals are limited.
    func testARefusedArchiveHoldsUpNoOther() throws {
        let store = try TestStore(inMemory: true)
        let disliked = Set((0..<40).map { "1r\($0 * 3)x" })
        let server = Firewall("http", dislikes: disliked)
        store.addArchive(1, content: content(1, 120))
        store.addArchive(2, content: content(2, 3))
        let service = try store.service()
        try add(store, service, server)
        var hours = 0
        for number in 3..<60 where store.hasArchive(1) {
            store.addArchive(number, content: content(number, 3))
            let before = server.refused
            background(service)
            XCTAssertFalse(store.hasArchive(number), "\(number): \(store.queue)")
            XCTAssertLessThanOrEqual(server.refused - before, ForbiddenBodies.perHourMax)
            store.clock.advance(ms: ForbiddenBodies.hourMs + 1)
            // What it took long ago proves nothing: another archive has to show it again.
            if number % 2 == 0 { store.clock.advanceMonotonic(ms: ForbiddenBodies.hourMs) }
            hours += 1
            if try !kept(store, 1).isEmpty { break }
        }
        XCTAssertEqual(try kept(store, 1), (0..<40).map { UInt64($0 * 3) })
        XCTAssertLessThan(hours, 40)
        XCTAssertTrue(server.taken.values.allSatisfy { $0.count == 1 })
    }

    // ── All of them ──

    /// A target that refuses everything gets one archive, then another, then tests with growing
    /// pauses; and once it takes something, everything, without intervention.
    func testATargetThatRefusesEverythingIsAskedSeldom() throws {
        let store = try TestStore(inMemory: true)
        for number in 1...20 { store.addArchive(number, content: content(number, 8)) }
        let all = Set((1...20).flatMap { a in (0..<8).map { "\(a)r\($0)x" } })
        let server = Firewall("http", dislikes: all)
        let service = try store.service()
        try add(store, service, server)
        background(service)
        XCTAssertEqual(server.asked, 2)
        XCTAssertEqual(store.queue, ["paused-1-403-0-8", "paused-1-403-0-8"])
        background(service)
        XCTAssertEqual(server.asked, 2)
        for minute in 1...600 {
            store.clock.advance(ms: 60_000)
            background(service)
            if minute == 60 { XCTAssertLessThanOrEqual(server.asked, 16) }
        }
        XCTAssertLessThanOrEqual(server.asked, 28)
        XCTAssertEqual(service.totals.refused, 0, "nothing is given up")
        XCTAssertTrue(server.taken.isEmpty)
        server.like(all)
        for _ in 0..<3 {
            store.clock.advance(ms: 8 * 3_600_000)
            background(service)
        }
        XCTAssertEqual(store.queue, [])
        XCTAssertEqual(Set(server.taken.keys), all)
    }

    /// However many archives there are, every second test goes on with the one that was halved
    /// furthest, until the target takes a part of it.
    func testTestsGoDeepIfEveryArchiveHoldsADislikedRecord() throws {
        let store = try TestStore(inMemory: true)
        for number in 1...30 { store.addArchive(number, content: content(number, 32)) }
        let server = Firewall("http", dislikes: Set((1...30).map { "\($0)r0x" }))
        let service = try store.service()
        try add(store, service, server)
        var tests = 0
        while server.taken.isEmpty, tests < 40 {
            background(service)
            store.clock.advance(ms: 7 * 3_600_000)
            tests += 1
        }
        XCTAssertLessThan(tests, 20)
    }

    /// A call asks two archives, and one at the next call; 401 ends it at once, as does a 403 of
    /// SAP, whose policy says so.
    func testWhatRefusesUsEndsTheCall() throws {
        for (kind, status, asked) in [("http", 403, 2), ("http", 401, 1), ("sap", 403, 1)] {
            let store = try TestStore(inMemory: true)
            for number in 1...5 { store.addArchive(number, content: content(number, 1)) }
            let all = Set((1...5).map { "\($0)r0x" })
            let server = Firewall(kind, dislikes: all, status: status)
            let service = try store.service()
            try add(store, service, server)
            XCTAssertEqual(service.pass().0, .upload)
            XCTAssertEqual(server.asked, asked, "\(kind) \(status)")
            store.clock.advance(ms: 1_000)
            background(service)
            XCTAssertEqual(server.asked, asked, "\(kind) \(status)")
            server.like(all)
            XCTAssertEqual(service.pass().0, .ok, "\(kind) \(status)")
        }
    }

    /// A token that expires while an archive waits for its hour: no record is given up for that.
    func testWhatWasTakenLongAgoProvesNothing() throws {
        let store = try TestStore(inMemory: true)
        store.addArchive(1, content: content(1, 40))
        store.addArchive(2, content: content(2, 1))
        let server = Firewall("http", dislikes: Set((0..<40).map { "1r\($0)x" }))
        let service = try store.service()
        try add(store, service, server)
        background(service)
        XCTAssertLessThanOrEqual(server.refused, ForbiddenBodies.againPerHourMax)
        let given = service.totals.refused
        for _ in 1...6 {
            let before = server.refused
            store.clock.advance(ms: ForbiddenBodies.hourMs + 1)
            store.clock.advanceMonotonic(ms: ForbiddenBodies.hourMs)
            background(service)
            XCTAssertLessThan(server.refused - before, ForbiddenBodies.perHourMax)
        }
        XCTAssertEqual(service.totals.refused, given)
        server.like(Set((0..<40).map { "1r\($0)x" }))
        for _ in 0..<3 {
            store.clock.advance(ms: 8 * 3_600_000)
            background(service)
        }
        XCTAssertEqual(server.taken.count, 41 - Int(given), "\(store.queue)")
    }

    /// What the target took before it refused an archive says nothing about that archive: the
    /// credentials may have expired in between.
    func testWhatWasTakenBeforeProvesNothing() throws {
        for format in ["archive", "ndjson"] {
            for isKnown in [false, true] {
                let store = try TestStore(inMemory: true)
                let server = Firewall("http", dislikes: ["2r0x", "3r0x"])
                let service = try store.service()
                try add(store, service, server) {
                    $0.format = format
                    $0.requestsMax = 1
                }
                store.addArchive(1, content: content(1, 1))
                XCTAssertEqual(service.pass().0, .ok)
                // A refusal of another kind came from another process.
                store.addArchive(2, content: content(2, 1))
                if isKnown {
                    try Outbox(paths: store.paths).set(
                        store.stem(2), TargetKey(name: "t"),
                        to: .retry(
                            attempts: 1, notBeforeMs: 0, reason: .refused, progress: .start))
                }
                for _ in 0..<6 { _ = service.pass() }
                XCTAssertEqual(service.totals.quarantined, 0, "\(format) \(isKnown)")
                XCTAssertEqual(service.totals.refused, 0, "\(format) \(isKnown)")
            }
        }
    }

    /// Two refusals may come from one of several servers.
    func testARecordIsGivenUpAfterThreeRefusals() throws {
        let store = try TestStore(inMemory: true)
        let server = Firewall("http", dislikes: ["1r0x"])
        let service = try store.service()
        try add(store, service, server) { $0.requestsMax = 1 }
        store.addArchive(1, content: content(1, 1))
        store.addArchive(2, content: content(2, 1))
        XCTAssertEqual(service.pass().1.waiting, 1)
        XCTAssertEqual([server.refused, Int(service.totals.refused)], [2, 0])
        store.addArchive(3, content: content(3, 1))
        _ = service.pass()
        XCTAssertEqual(store.queue, ["kept-403-1"])
        XCTAssertEqual(service.totals.refused, 1)
    }

    /// However many archives hold a disliked record, and whoever calls, a process has at most 16
    /// bodies refused within an hour; a call after that has one.
    func testManyDislikedArchivesAreRefusedSeldom() throws {
        for (requests, isExplicit) in [(1, false), (4, false), (16, false), (4, true)] {
            // Fewer than are merged.
            let store = try TestStore(inMemory: true)
            for number in 1...60 { store.addArchive(number, content: content(number, 2)) }
            let bad = stride(from: 2, through: 60, by: 2)
            let server = Firewall("http", dislikes: Set(bad.map { "\($0)r1x" }))
            let service = try store.service()
            try add(store, service, server) { $0.requestsMax = UInt32(requests) }
            let what = "\(requests), \(isExplicit)"
            for call in 0..<4 {
                if isExplicit { _ = service.pass() } else { background(service) }
                XCTAssertLessThanOrEqual(
                    server.refused, ForbiddenBodies.perHourMax + (isExplicit ? call : 0), what)
                store.clock.advance(ms: 60_000)
            }
            // Beside other requests two refusals in a row may end each run first.
            XCTAssertTrue(
                requests > 1 && server.refused < ForbiddenBodies.perHourMax
                    || store.events.diagnostics.contains { $0.contains("bodies within an hour") },
                what)
            // Programs go on: each hour something else shows who is at fault.
            for hour in 0..<60 {
                store.addArchive(101 + hour, content: "fine")
                let before = server.refused
                background(service)
                XCTAssertLessThanOrEqual(server.refused - before, ForbiddenBodies.perHourMax, what)
                store.clock.advance(ms: ForbiddenBodies.hourMs + 1)
            }
            XCTAssertEqual(server.taken.count, 90, what)
            XCTAssertEqual(service.totals.refused, 30, what)
        }
    }

    /// A call sends none of what was refused before, once the hour allows no more, and says so.
    func testACallDoesNotExceedTheHour() throws {
        let store = try TestStore(inMemory: true)
        let server = Firewall("http", dislikes: Set((0..<40).map { "1r\($0 * 3)x" }))
        store.addArchive(1, content: content(1, 120))
        store.addArchive(2, content: content(2, 3))
        let service = try store.service()
        try add(store, service, server)
        XCTAssertEqual(service.pass().0, .upload)
        XCTAssertEqual(server.refused, ForbiddenBodies.againPerHourMax)
        for _ in 0..<5 { XCTAssertEqual(service.pass().1.waiting, 1) }
        XCTAssertEqual(server.refused, ForbiddenBodies.againPerHourMax)
        XCTAssertTrue(
            store.events.diagnostics.contains { $0.hasPrefix("what the target refused waits") })
    }

    /// A call also stops sending new archives then, though the target takes others. The next call
    /// sends one.
    func testACallEndsWhereTheHourIsSpent() throws {
        let store = try TestStore(inMemory: true)
        for number in 1...60 { store.addArchive(number, content: content(number, 2)) }
        let server = Firewall("http", dislikes: Set((1...30).map { "\($0 * 2)r1x" }))
        let service = try store.service()
        try add(store, service, server) { $0.requestsMax = 1 }
        for call in 0..<3 {
            XCTAssertEqual(service.pass().0, .upload)
            XCTAssertEqual(server.refused, ForbiddenBodies.perHourMax + call)
        }
    }

    /// A busy archive and a target with a rate: once others are answered so, none waits alone.
    func testARateIsNoFaultOfAnArchive() throws {
        let store = try TestStore(inMemory: true)
        let service = try store.service()
        try add(store, service, Firewall("http", dislikes: []))
        let runner = try XCTUnwrap(service.currentRunners.first)
        func take() {
            let taken = LearnedLimits.Taken(encoding: .none, bytesMax: 0)
            _ = runner.learn(taken, of: "x", .system)
        }
        take()
        XCTAssertTrue(runner.noteBusy("a", attempt: 3))
        XCTAssertTrue(runner.noteBusy("a", attempt: 4), "it stays so")
        XCTAssertFalse(runner.noteBusy("b", attempt: 1))
        XCTAssertFalse(runner.noteBusy("a", attempt: 5), "the target has a rate")
        take()
        XCTAssertTrue(runner.noteBusy("a", attempt: 6))
    }

    // ── Generated ──

    private struct Course {
        var kind: String
        var counts: [Int]
        var dislikes: Set<String>
        var isExplicit: Bool
        var recordsMax: UInt32
        var requestsMax: UInt32
        /// The requests in which the process is killed.
        var kills: Set<Int>
        /// Every archive holds several disliked records, and no other comes.
        var isDense = false

        static func dense(_ seed: UInt64) -> Course {
            var course = Course(seed)
            var random = SplitMix(seed)
            course.isDense = true
            course.counts = (0..<Int.random(in: 1...4, using: &random)).map { _ in
                Int.random(in: 16...60, using: &random)
            }
            course.dislikes = []
            for (index, count) in course.counts.enumerated() {
                for _ in 0..<4 {
                    let record = Int.random(in: 0..<count, using: &random)
                    course.dislikes.insert("\(index + 1)r\(record)x")
                }
            }
            return course
        }

        init(_ seed: UInt64) {
            var random = SplitMix(seed)
            kind = UploadForbiddenTests.kinds.filter { $0 != "sap" }.randomElement(using: &random)!
            counts = (0..<Int.random(in: 1...7, using: &random)).map { _ in
                Bool.random(using: &random) ? 1 : Int.random(in: 1...40, using: &random)
            }
            let isRich = Int.random(in: 0..<8, using: &random) == 0
            dislikes = []
            for (index, count) in counts.enumerated() {
                let share = isRich ? 2 : Int.random(in: 3...60, using: &random)
                for record in 0..<count where Int.random(in: 0..<share, using: &random) == 0 {
                    dislikes.insert("\(index + 1)r\(record)x")
                }
            }
            isExplicit = Bool.random(using: &random)
            recordsMax = Bool.random(using: &random) ? 0 : UInt32.random(in: 1...15, using: &random)
            requestsMax = UInt32.random(in: 1...4, using: &random)
            kills = []
            if Bool.random(using: &random) {
                for _ in 0..<4 { kills.insert(Int.random(in: 1...30, using: &random)) }
            }
        }

        var records: Set<String> {
            Set(
                counts.enumerated().flatMap { index, count in
                    (0..<count).map { "\(index + 1)r\($0)x" }
                })
        }
    }

    private func run(_ seed: UInt64, _ course: Course) throws {
        let what = "seed \(seed), \(course)"
        var store = try TestStore(inMemory: true)
        for (index, count) in course.counts.enumerated() {
            store.addArchive(index + 1, content: content(index + 1, count))
        }
        let server = Firewall(course.kind, dislikes: course.dislikes)
        var killed: TestStore?
        server.arrives = seed % 2 == 0
        server.dies = { number in
            guard course.kills.contains(number) else { return false }
            killed = try? store.copy()
            return killed != nil
        }
        var service = try store.service()
        let options: (inout TargetOptions) -> Void = {
            $0.bodyRecordsMax = course.recordsMax
            $0.requestsMax = course.kills.isEmpty ? course.requestsMax : 1
        }
        try add(store, service, server, options)
        func isOver() -> Bool {
            (1...course.counts.count).allSatisfy { archive in
                !store.hasArchive(archive)
                    || ((try? kept(store, archive)) ?? []).isEmpty == false
            }
        }
        var rounds = 0
        while !isOver(), rounds < 400 {
            // Programs go on; without other archives nothing shows that the last one is at fault.
            if !course.isDense, rounds % 4 == 3 { store.addArchive(100 + rounds, content: "fine") }
            let refused = server.refused
            _ = service.pass(explicit: course.isExplicit)
            XCTAssertLessThanOrEqual(server.refused - refused, ForbiddenBodies.perHourMax, what)
            // The next process goes on from what the dead one left.
            if let copy = killed {
                server.revive()
                copy.clock.jump(ms: Int64(store.clock.unixMs) - Int64(copy.clock.unixMs))
                store = copy
                service = try store.service()
                try add(store, service, server, options)
                killed = nil
            }
            store.clock.advance(ms: 3_700_000)
            rounds += 1
        }
        XCTAssertTrue(isOver(), "\(what): \(store.queue)")
        for archive in 1...course.counts.count {
            let named = try kept(store, archive).map { "\(archive)r\($0)x" }
            let wanted = course.dislikes.filter { $0.hasPrefix("\(archive)r") }
            XCTAssertEqual(Set(named), wanted, what)
            XCTAssertEqual(named.count, wanted.count, what)
        }
        XCTAssertEqual(
            Set(server.taken.keys), course.records.subtracting(course.dislikes), what)
        let repeated = server.taken.filter { $0.value.count > 1 }
        XCTAssertTrue(repeated.isEmpty, "\(what): under several ids: \(repeated)")
    }

    func testEverySetOfDislikedRecords() throws {
        for seed in SplitMix.seeds(800, core: 40) { try run(seed, Course(seed)) }
    }

    /// Nothing but such archives, and nothing else ever comes.
    func testEveryArchiveHoldsDislikedRecords() throws {
        for seed in SplitMix.seeds(200, core: 6) { try run(seed, .dense(seed)) }
    }

    // ── 429 and 503 ──

    /// An archive whose body is answered so again and again delays no other, old or new.
    func testAnArchiveThatIsAlwaysBusyHoldsUpNoOther() throws {
        for status in [429, 503] {
            let store = try TestStore(inMemory: true)
            store.startsThreads = false
            for number in 1...4 { store.addArchive(number, content: content(number, 2)) }
            let server = Firewall("http", dislikes: ["1r0x"], status: status)
            let service = try store.service()
            try add(store, service, server)
            background(service)
            XCTAssertEqual(server.asked, 1)
            store.clock.advance(ms: 10_000)
            background(service)
            XCTAssertEqual(server.taken.count, 6, "the next test is another archive")
            for number in 5..<12 {
                store.addArchive(number, content: content(number, 2))
                store.clock.advance(ms: 3_000)
                background(service)
                if number > 6 {
                    XCTAssertFalse(store.hasArchive(number), "\(status): \(store.queue)")
                }
            }
            XCTAssertTrue(store.hasArchive(1))
        }
    }

    /// A time that the server names holds for all; then another archive goes first.
    func testAServersTimeHoldsForAllAndAnotherArchiveTests() throws {
        let store = try TestStore(inMemory: true)
        store.startsThreads = false
        for number in 1...3 { store.addArchive(number, content: content(number, 2)) }
        let server = Firewall("http", dislikes: ["1r0x"], status: 503)
        server.headers = [("Retry-After", "20")]
        let service = try store.service()
        try add(store, service, server)
        background(service)
        store.clock.advance(ms: 19_000)
        XCTAssertEqual(service.pass().0, .upload)
        XCTAssertEqual(server.asked, 1)
        XCTAssertTrue(
            store.events.diagnostics.contains {
                $0.hasPrefix("the server asked us to wait") && $0.contains("not_before")
            }, "\(store.events.diagnostics)")
        store.clock.advance(ms: 1_001)
        background(service)
        XCTAssertEqual(server.taken.count, 4)
    }
}
