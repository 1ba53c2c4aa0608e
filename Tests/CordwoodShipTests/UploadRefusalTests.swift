// What a server refuses stays on the disk, what it takes is there, and a passing wrong answer costs
// only a few requests and some time.

import CordwoodTestSupport
import Foundation
import XCTest

@testable import CordwoodCore
@testable import CordwoodShip
@testable import CordwoodStore

final class UploadRefusalTests: XCTestCase {
    private func add(
        _ store: TestStore, _ service: UploadService, _ url: String,
        _ change: @escaping (inout TargetOptions) -> Void = { _ in }
    ) throws {
        _ = try service.addTarget(
            store.target(url) {
                $0.name = "t"
                $0.kind = "http"
                $0.format = "text"
                $0.requestsMax = 1
                change(&$0)
            })
    }

    private func content(_ count: Int, poison: Set<Int> = []) -> String {
        (0..<count).map { poison.contains($0) ? "poison \($0)" : "record \($0)" }
            .joined(separator: "\n")
    }

    /// The numbers of the records that were answered with 2xx.
    private func taken(_ server: FaultServer) -> [Int] {
        decodedLines(server.directory + "/requests.jsonl").filter { (request: Answered) in
            (200...299).contains(request.status)
        }.flatMap { request in
            String(decoding: server.body(request.number), as: UTF8.self).split(separator: "\n")
                .compactMap { $0.split(separator: " ").last.flatMap { Int($0) } }
        }
    }

    private struct Answered: Decodable {
        var number: Int
        var status: Int
    }

    private func listing(_ store: TestStore) -> QueueListing {
        QueueListing(storeDirectory: FilePath(store.root))
    }

    // ── One record ──

    /// Wherever the record is, the others are taken, and it is kept with its place and the reason.
    func testARecordThatIsRefusedAloneIsKept() throws {
        for poison in [0, 499, 999] {
            let server = try FaultServer(rules: ["poison=poison"])
            let store = try TestStore()
            store.addArchive(1, content: content(1_000, poison: [poison]))
            store.addArchive(2, content: content(3))
            let service = try store.service()
            try add(store, service, server.url)
            var passes = 0
            while !store.queue.contains("kept-400-1"), passes < 20 {
                XCTAssertEqual(service.pass().0, .upload, "\(poison)")
                store.clock.advance(ms: 86_400_000)
                passes += 1
            }
            XCTAssertEqual(store.queue, ["kept-400-1"], "\(poison)")
            XCTAssertFalse(store.hasArchive(2))
            XCTAssertTrue(store.hasArchive(1))
            let wanted = (0..<1_000).filter { $0 != poison } + Array(0..<3)
            XCTAssertEqual(taken(server).sorted(), wanted.sorted(), "\(poison)")
            XCTAssertLessThan(server.requests.count, 60)
            XCTAssertEqual(service.totals.refused, 1)
            XCTAssertEqual(service.totals.quarantined, 1)
            let entry = try XCTUnwrap(listing(store).list().first)
            XCTAssertEqual(entry.state.word, "kept")
            XCTAssertEqual(entry.cause, "HTTP 400")
            let refusals = try service.outbox.refusals(
                store.stem(1), TargetKey(name: "t"), entry.state)
            XCTAssertEqual(
                refusals?.kept.map(\.range),
                [PartRange(first: UInt64(poison), end: UInt64(poison) + 1)])
        }
    }

    /// No other archive proves that the target takes anything, and none is needed.
    func testARecordOfTheOnlyArchiveIsKept() throws {
        for poison in [0, 5, 7] {
            let server = try FaultServer(rules: ["poison=poison"])
            let store = try TestStore()
            store.addArchive(1, content: content(8, poison: [poison]))
            let service = try store.service()
            try add(store, service, server.url)
            for _ in 0..<8 where store.queue != ["kept-400-1"] { _ = service.pass() }
            XCTAssertEqual(store.queue, ["kept-400-1"], "\(poison)")
            XCTAssertEqual(taken(server).sorted(), (0..<8).filter { $0 != poison }, "\(poison)")
        }
    }

    func testSeveralThatAreRefusedAndARetryOfThoseAlone() throws {
        let poison: Set<Int> = [0, 1, 2, 17, 40, 41, 99]
        let server = try FaultServer(rules: ["poison=poison"])
        let store = try TestStore()
        store.addArchive(1, content: content(100, poison: poison))
        store.addArchive(2, content: content(1))
        let service = try store.service()
        try add(store, service, server.url)
        for _ in 0..<40 where !store.queue.contains("kept-400-7") {
            _ = service.pass()
            store.clock.advance(ms: 86_400_000)
        }
        XCTAssertEqual(store.queue, ["kept-400-7"])
        XCTAssertEqual(
            taken(server).sorted(), ((0..<100).filter { !poison.contains($0) } + [0]).sorted())

        // The server has been fixed: only what was kept goes, under an id of its own.
        let mended = try FaultServer()
        let restarted = try store.service()
        try add(store, restarted, mended.url)
        XCTAssertEqual(restarted.pass().0, .end, "kept is kept")
        XCTAssertEqual(try restarted.retryQuarantined(target: "t"), 1)
        let (status, result) = restarted.pass()
        XCTAssertEqual(status, .ok)
        XCTAssertEqual(result.records, 7)
        XCTAssertEqual(taken(mended), poison.sorted())
        XCTAssertEqual(mended.requests.count, 1)
        XCTAssertTrue(mended.stored.keys.allSatisfy { $0.hasSuffix("-r1\"") }, "\(mended.stored)")
        XCTAssertFalse(store.hasArchive(1))
        XCTAssertEqual(try restarted.retryQuarantined(target: nil), 0)
    }

    /// If the list of kept records can no longer be read, everything goes again: twice is better
    /// than never.
    func testAListThatIsDamagedLosesNothing() throws {
        let server = try FaultServer(rules: ["poison=poison"])
        let store = try TestStore()
        store.addArchive(1, content: content(10, poison: [5]))
        let service = try store.service()
        try add(store, service, server.url) { $0.bodyRecordsMax = 1 }
        let (status, result) = service.pass()
        XCTAssertEqual(status, .upload)
        XCTAssertEqual(service.totals.bytes, result.bytesSent, "those of the last body, too")
        XCTAssertEqual(store.queue, ["kept-400-1"])
        let name = try XCTUnwrap(StoreFiles.list(store.paths.queue).first)
        writeAll([], "\(store.paths.queue)/\(name)")
        let mended = try FaultServer()
        let restarted = try store.service()
        try add(store, restarted, mended.url)
        XCTAssertEqual(try restarted.retryQuarantined(target: nil), 1)
        XCTAssertEqual(restarted.pass().0, .ok)
        XCTAssertEqual(taken(mended), Array(0..<10))
        XCTAssertFalse(store.hasArchive(1))
    }

    /// What cannot be read now is not damaged: nothing goes twice, nothing is forgotten.
    func testAListThatCannotBeReadNowIsReadLater() throws {
        let fails = Array(repeating: "{}", count: 5) + [#"{"status":500}"#]
        let server = try FaultServer("[\(fails.joined(separator: ","))]")
        let store = try TestStore()
        store.addArchive(1, content: content(10))
        let service = try store.service()
        try add(store, service, server.url) { $0.bodyRecordsMax = 1 }
        XCTAssertEqual(service.pass().0, .upload)
        let key = TargetKey(name: "t")
        var refusals = PairRefusals()
        refusals.keep(
            RefusedRecords(PartRange(first: 2, end: 3), count: 1, httpStatus: 400, reason: "r"))
        try service.outbox.set(
            store.stem(1), key,
            to: .retry(
                attempts: 1, notBeforeMs: 0, reason: .failed,
                progress: Progress(done: 5, doubt: 6, lines: 1)), refusals: refusals)
        func path() throws -> String {
            "\(store.paths.queue)/" + (try XCTUnwrap(StoreFiles.list(store.paths.queue).first))
        }
        // A link in its place is not followed.
        let away = store.root + "/away"
        XCTAssertEqual(rename(try path(), away), 0)
        XCTAssertEqual(
            symlink("nowhere", "\(store.paths.queue)/\(store.stem(1))@t.retry-1-0-failed-5-6-1"), 0)
        XCTAssertThrowsError(try listing(store).retry(archive: nil, target: nil))
        for _ in 0..<3 {
            XCTAssertEqual(service.pass().0, .upload)
            XCTAssertEqual(server.requests.count, 6)
            XCTAssertTrue(store.queue[0].hasSuffix("-5-6-1"), "\(store.queue)")
        }
        XCTAssertEqual(rename(away, try path()), 0)
        XCTAssertEqual(service.pass().0, .upload)
        XCTAssertEqual(store.queue, ["kept-400-1"])
        XCTAssertEqual(taken(server), Array(0..<10))
    }

    func testTheHostMaySayThatWhatIsRefusedIsDropped() throws {
        let server = try FaultServer(rules: ["poison=poison"])
        let store = try TestStore()
        store.addArchive(1, content: content(10, poison: [5]))
        let service = try store.service()
        try add(store, service, server.url) {
            $0.bodyRecordsMax = 1
            $0.parameters = "refused=drop"
        }
        let (status, result) = service.pass()
        XCTAssertEqual(status, .ok)
        XCTAssertEqual(result.refused, 1)
        XCTAssertFalse(store.hasArchive(1))
    }

    // ── Too large ──

    /// A server that takes nothing has nothing: everything stays, and it is not flooded.
    func testAServerThatAlwaysSaysTooLargeGetsNothingAndLosesNothing() throws {
        try full()
        let server = try FaultServer(rules: ["limit=1"])
        let store = try TestStore()
        store.addArchive(1, content: content(1_000))
        let service = try store.service()
        try add(store, service, server.url)
        for _ in 0..<10 {
            let (status, result) = service.pass()
            XCTAssertEqual(status, .upload)
            XCTAssertEqual(result.refused, 0)
            XCTAssertEqual(result.uploaded, 0)
            XCTAssertEqual(result.failed, 1)
            store.clock.advance(ms: 86_400_000)
        }
        XCTAssertTrue(store.hasArchive(1))
        XCTAssertTrue(store.queue[0].contains("-refused"), "\(store.queue)")
        XCTAssertLessThan(server.requests.count, 160)
        XCTAssertTrue(store.events.all.allSatisfy { !$0.hasPrefix("completed") })
    }

    /// A limit that goes away: in the end everything has arrived once, and nothing is kept.
    func testAPassingLimitLosesNothing() throws {
        try full()
        // After the ninth, each record goes by itself.
        for count in [1, 9, 11, 18] {
            let answers = Array(repeating: #"{"status":413}"#, count: count)
            let server = try FaultServer("[\(answers.joined(separator: ","))]")
            let store = try TestStore()
            store.addArchive(1, content: content(250))
            let service = try store.service()
            try add(store, service, server.url)
            for _ in 0..<10 where store.hasArchive(1) {
                _ = service.pass()
                store.clock.advance(ms: 86_400_000)
            }
            XCTAssertFalse(store.hasArchive(1), "\(count): \(store.queue)")
            XCTAssertEqual(taken(server).sorted(), Array(0..<250), "\(count)")
            XCTAssertEqual(service.totals.refused, 0, "\(count)")
        }
    }

    func testOneThatIsTooLargeForItsServerIsKept() throws {
        let server = try FaultServer(rules: ["limit=2000"])
        let store = try TestStore()
        let large = "record 5" + String(repeating: " x", count: 2_000) + " 5"
        store.addArchive(1, content: content(5) + "\n" + large + "\n" + "record 6\nrecord 7")
        let service = try store.service()
        try add(store, service, server.url)
        let (status, result) = service.pass()
        XCTAssertEqual(status, .upload)
        XCTAssertEqual(store.queue, ["kept-413-1"])
        XCTAssertEqual([result.refused, result.quarantined], [1, 1])
        XCTAssertEqual(taken(server), [0, 1, 2, 3, 4, 6, 7])
        XCTAssertEqual(store.events.all.last, "completed upload 413")
    }

    func testLearntLimitsGrowAgain() {
        var limits = LearnedLimits(encoding: .gzip)
        func take(_ count: Int, met: UInt64 = 0, at nowMs: UInt64 = 0) {
            for index in 0..<count {
                limits.note(
                    LearnedLimits.Taken(encoding: .gzip, bytesMax: index == 0 ? met : 0),
                    nowMs: nowMs, bodyBytesMax: 10_000)
            }
        }
        take(1)
        XCTAssertEqual(limits.bytesMax, 0, "no limit was met")
        take(1, met: 1_000)
        XCTAssertEqual(limits.bytesMax, 1_000)
        take(15)
        XCTAssertEqual(limits.bytesMax, 1_000)
        take(1)
        XCTAssertEqual(limits.bytesMax, 1_250)
        take(1, met: 1_000)
        take(100)
        XCTAssertEqual(limits.bytesMax, 1_000, "it was refused right after it had grown")
        take(16, at: LearnedLimits.fixedMs)
        XCTAssertEqual(limits.bytesMax, 1_250, "an hour later it is tried again")
        take(16 * 20, at: LearnedLimits.fixedMs)
        XCTAssertEqual(limits.bytesMax, 0, "dropped when it reaches the target's own limit")
    }

    // ── The way there ──

    /// One answer that is not about an archive gives up none: the target rests, one archive asks,
    /// and when the way is free again all arrive without intervention.
    func testAPassingWrongAnswerCostsARest() throws {
        try full()
        for status in [302, 400, 404, 422, 501] {
            let answers = Array(repeating: "{\"status\":\(status)}", count: 5)
            let server = try FaultServer("[\(answers.joined(separator: ","))]")
            let store = try TestStore()
            for number in 1...10 { store.addArchive(number, content: "record \(number)") }
            let service = try store.service()
            try add(store, service, server.url)
            var minutes = 0
            while !store.queue.isEmpty || minutes == 0, minutes < 500 {
                let before = server.requests.count
                _ = service.pass(explicit: false)
                XCTAssertTrue(
                    store.queue.allSatisfy { $0.hasPrefix("retry-") }, "\(store.queue)")
                if server.requests.count < 5 {
                    XCTAssertLessThanOrEqual(server.requests.count - before, 2, "\(status)")
                }
                store.clock.advance(ms: 60_000)
                minutes += 1
            }
            XCTAssertTrue((1...10).allSatisfy { !store.hasArchive($0) }, "\(status)")
            XCTAssertEqual(taken(server).sorted(), Array(1...10), "\(status)")
            XCTAssertLessThan(minutes, 60, "\(status)")
        }
    }

    func testRestsGrowAndEnd() {
        XCTAssertEqual(Backoff.restMs(refusals: 1, random: 0), 60_000)
        XCTAssertEqual(Backoff.restMs(refusals: 4, random: 0), 480_000)
        XCTAssertEqual(Backoff.restMs(refusals: 9, random: 0), 15_360_000)
        for refusals in UInt32(10)...40 {
            XCTAssertEqual(Backoff.restMs(refusals: refusals, random: 0), 21_600_000)
        }
        XCTAssertEqual(Backoff.restMs(refusals: .max, random: .max), 21_600_000 / 8 * 9)
    }

    /// A part of a long archive that is refused on the way goes again unchanged.
    func testAfterProgressTheCountStartsAnew() throws {
        let server = try FaultServer(#"[{"status":429},{},{},{"status":429},{},{"status":429}]"#)
        let store = try TestStore()
        store.addArchive(1, content: content(40))
        let service = try store.service()
        try add(store, service, server.url) { $0.bodyRecordsMax = 10 }
        for _ in 0..<3 {
            XCTAssertEqual(service.pass().0, .upload)
            XCTAssertTrue(store.queue[0].hasPrefix("retry-1-"), "\(store.queue)")
        }
        XCTAssertEqual(service.pass().0, .ok)
        XCTAssertEqual(taken(server), Array(0..<40))
    }

    func testWhoHasARateIsAskedOften() {
        for attempts in UInt32(1)...6 {
            XCTAssertEqual(Backoff.busyMs(attempts: attempts, random: .max), 2_000)
        }
        XCTAssertEqual(Backoff.busyMs(attempts: 7, random: .max), 4_000)
        XCTAssertEqual(Backoff.busyMs(attempts: 40, random: .max), 3_600_000)
    }

    // ── What a 2xx says ──

    func testAnyWebServersAnswerIsNoReceipt() throws {
        let pages = [
            (200, "application/json", "{}"), (200, "text/html", "<html></html>"), (204, "", ""),
            (200, "application/json", #"{"id":"another","stored":true}"#),
            (200, "application/json", #"{"id":"ID","stored":false}"#),
            (200, "application/json", #"{"id":"ID","stored":true}"#),
            (200, "application/json", #"{"id":"ID","stored":true,"records":2}"#),
        ]
        for (status, type, text) in pages {
            let text = text.replacingOccurrences(
                of: "ID", with: TestStore.id(1))
            let answer = try JSONSerialization.data(withJSONObject: [
                ["status": status, "body": text, "headers": ["Content-Type": type]] as [String: Any]
            ])
            let server = try FaultServer(String(decoding: answer, as: UTF8.self))
            let store = try TestStore()
            store.addArchive(1)
            let service = try store.service()
            _ = try service.addTarget(store.target(server.url))
            XCTAssertEqual(service.pass().0, .upload, text)
            XCTAssertTrue(store.hasArchive(1), text)
            XCTAssertTrue(store.queue[0].hasSuffix("-refused"), "\(store.queue)")
        }
    }

    func testWhatTheHostExpects() throws {
        try full()
        func send(
            _ answer: String, _ expect: String, method: String? = nil
        ) throws -> UploadStatus {
            let server = try FaultServer("[\(answer)]")
            let store = try TestStore()
            store.addArchive(1, content: content(1))
            let service = try store.service()
            try add(store, service, server.url) {
                $0.expect = expect
                $0.method = method
            }
            let (status, _) = service.pass()
            XCTAssertEqual(store.hasArchive(1), status != .ok)
            return status
        }
        let answer = #"{"status":202,"body":"it is accepted","headers":{"X-Stored":"yes"}}"#
        for expect in [
            "status:202", "header:x-stored", "header:X-Stored=yes", "body:accepted",
            "status:202;header:X-Stored=yes; body:accepted",
        ] { XCTAssertEqual(try send(answer, expect), .ok, expect) }
        for expect in ["status:200", "header:x-other", "header:X-Stored=no", "body:refused"] {
            XCTAssertEqual(try send(answer, expect), .upload, expect)
        }
        let page = #"{"status":201,"body":"<p>","headers":{"Content-Type":"text/html"}}"#
        XCTAssertEqual(try send(page, ""), .upload)
        XCTAssertEqual(try send(page, "", method: "PUT"), .ok, "Apache's mod_dav")
        XCTAssertEqual(try send(page, "status:201"), .upload, "a page of the same server")
        XCTAssertEqual(try send(page, "status:201", method: "PUT"), .ok)
        XCTAssertEqual(try send(page, "status:201;body:<p>"), .ok)
        let store = try TestStore()
        for wrong in ["status:404", "status", "header:", "header:=x", "body:", "cookie:x", ";"] {
            XCTAssertThrowsError(
                try store.target("http://127.0.0.1:9") {
                    $0.kind = "http"
                    $0.expect = wrong
                }, wrong)
        }
        XCTAssertThrowsError(
            try store.target("http://127.0.0.1:9") { $0.expect = "status:200" })
    }
}
