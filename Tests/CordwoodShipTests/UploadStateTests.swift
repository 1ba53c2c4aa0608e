// The state of an archive at a target stays true: what counts against an archive, what another
// process did meanwhile, what a kill within a request leaves, and what a bulk answer says about
// single records. Servers are functions here.

import Foundation
import XCTest

@testable import CordwoodCore
@testable import CordwoodShip
@testable import CordwoodStore

final class UploadStateTests: XCTestCase {
    private let key = TargetKey(name: "t")

    private func add(
        _ store: TestStore, _ service: UploadService, name: String = "t",
        change: (inout TargetOptions) -> Void = { _ in },
        callbacks: TargetCallbacks = TargetCallbacks(),
        _ answer: @escaping @Sendable (UploadRequest, _ number: Int) throws -> UploadResponse
    ) throws -> ToldTransport {
        let count = Events()
        let told = ToldTransport { request in
            count.add("request")
            return try answer(request, count.all.count)
        }
        var options = TargetOptions(url: "http://logs.example")
        options.name = name
        options.kind = "http"
        options.format = "text"
        options.requestsMax = 1
        options.transport = told
        change(&options)
        _ = try service.addTarget(try Target(options, callbacks: callbacks))
        return told
    }

    private func lines(_ count: Int) -> String {
        (0..<count).map { "line \($0)" }.joined(separator: "\n")
    }

    // ── What counts against an archive ──

    /// One wrong answer on the way back is no verdict, however long the target was away or too
    /// busy.
    func testAWrongAnswerAfterAnOutageGivesNothingUp() throws {
        for status in [503, 429] {
            let store = try TestStore()
            store.addArchive(1)
            let service = try store.service()
            let told = try add(store, service) { _, number in
                let answers = [200] + Array(repeating: status, count: 4) + [404]
                return UploadResponse(status: number <= 6 ? answers[number - 1] : 200)
            }
            XCTAssertEqual(service.pass().0, .ok)
            store.addArchive(2)
            for _ in 0..<5 {
                XCTAssertEqual(service.pass().0, .upload)
                XCTAssertTrue(store.queue[0].hasPrefix("retry-"), "\(status): \(store.queue)")
            }
            XCTAssertEqual(
                store.queue[0].contains("-refused"), status == 503, "\(store.queue)")
            XCTAssertEqual(service.pass().0, .ok)
            XCTAssertEqual(told.seen.count, 7)
        }
    }

    // ── What others did meanwhile ──

    func testWhatAnotherProcessHasSentIsNotWrittenOver() throws {
        let store = try TestStore()
        store.addArchive(1)
        let service = try store.service()
        let told = try add(store, service) { _, _ in UploadResponse(status: 200) }
        // Another target keeps the archive.
        _ = try add(store, service, name: "other") { _, _ in UploadResponse(status: 500) }
        let runner = service.currentRunners[0]
        let remembered = PairState.retry(attempts: 1, notBeforeMs: 0, reason: .failed)
        runner.remember(store.stem(1), (remembered, PairRefusals.none))
        try service.outbox.set(store.stem(1), key, to: .sent(httpStatus: 200))
        for _ in 0..<2 { _ = service.pass() }
        XCTAssertEqual(told.seen.count, 0)
        XCTAssertTrue(store.queue.contains("sent-200"), "\(store.queue)")
        XCTAssertEqual(runner.unwrittenStems, [])
    }

    func testWhatAnotherProcessKeptIsNotForgotten() throws {
        let store = try TestStore()
        store.addArchive(1, content: lines(10))
        let service = try store.service()
        let told = try add(store, service) { _, _ in UploadResponse(status: 200) }
        let runner = service.currentRunners[0]
        let remembered = PairState.retry(attempts: 1, notBeforeMs: 0, reason: .failed)
        runner.remember(store.stem(1), (remembered, PairRefusals.none))
        // The other process works until the call waits for it, and gets as far as record 5.
        guard let lock = try ArchiveLock(paths: store.paths, stem: store.stem(1), target: key)
        else { return XCTFail("nobody else holds it") }
        let ended = DispatchSemaphore(value: 0)
        Thread.detachNewThread {
            _ = service.pass()
            ended.signal()
        }
        eventually("the call has begun") { runner.gate.isBusy }
        var refusals = PairRefusals()
        refusals.keep(
            RefusedRecords(PartRange(first: 2, end: 3), count: 1, httpStatus: 400, reason: "r"))
        let state = PairState.retry(
            attempts: 0, notBeforeMs: 0, reason: .stopped, progress: Progress(done: 5, lines: 1))
        try service.outbox.set(store.stem(1), key, to: state, refusals: refusals)
        release(lock)
        ended.wait()
        XCTAssertEqual(told.seen.count, 1)
        XCTAssertEqual(store.queue, ["kept-400-1"])
        XCTAssertTrue(store.hasArchive(1))
    }

    private func release(_ lock: consuming ArchiveLock) {}

    func testWhatWasSentBeforeTheTargetWasAddedAnewStaysSent() throws {
        let store = try TestStore()
        store.addArchive(1)
        let service = try store.service()
        try service.outbox.set(store.stem(1), key, to: .paused(attempts: 1, httpStatus: 401))
        let seen = try service.outbox.snapshot()
        try service.outbox.set(store.stem(1), key, to: .sent(httpStatus: 200))
        try service.unpause(key, in: seen)
        XCTAssertEqual(store.queue, ["sent-200"])
    }

    // ── What an error or a kill leaves ──

    /// An error after the receipt does not fail the upload.
    func testSentIsSentWhereTheTargetsCannotBeListed() throws {
        let store = try TestStore()
        store.addArchive(1)
        let service = try store.service()
        let ended = Events()
        var callbacks = TargetCallbacks()
        callbacks.completed = { _, status, _ in ended.add("\(status)") }
        let (targets, away) = (store.paths.targets, store.root + "/away")
        let told = try add(store, service, callbacks: callbacks) { _, _ in
            XCTAssertEqual(rename("\(targets)", away), 0)
            writeAll([], "\(targets)")
            return UploadResponse(status: 200)
        }
        XCTAssertEqual(service.pass().1.failed, 0)
        XCTAssertEqual(store.queue, ["sent-200"])
        XCTAssertEqual(unlink("\(targets)"), 0)
        XCTAssertEqual(rename(away, "\(targets)"), 0)
        XCTAssertEqual(service.pass().0, .end)
        XCTAssertFalse(store.hasArchive(1))
        XCTAssertEqual(told.seen.count, 1)
        XCTAssertEqual(ended.all, ["ok"])
        XCTAssertEqual([service.totals.succeeded, service.totals.failed], [1, 0])
    }

    /// During a request the state says what it said before, and where the body ends.
    func testAKillWithinARequestCountsNothing() throws {
        let store = try TestStore()
        store.addArchive(1, content: lines(40))
        let service = try store.service()
        let (paths, seen) = (store.paths, Events())
        _ = try add(store, service) { _, number in
            seen.add(try StoreFiles.list(paths.queue).joined(separator: " "))
            return UploadResponse(status: number <= 3 ? [413, 500, 413][number - 1] : 200)
        }
        XCTAssertEqual(service.pass().0, .upload)
        let before = try XCTUnwrap(store.queue.first)
        XCTAssertTrue(before.hasPrefix("retry-1-18"), before)
        XCTAssertEqual(service.pass().0, .ok)
        let shared = before.split(separator: "-").prefix(5).joined(separator: "-") + "-"
        XCTAssertTrue(shared.hasSuffix("-failed-0-"), shared)
        XCTAssertTrue(seen.all[3].contains("." + shared), "\(seen.all)")
        XCTAssertFalse(seen.all[3].hasSuffix(before), "\(seen.all)")
        XCTAssertTrue(seen.all[4].contains(".retry-0-0-stopped-"), "\(seen.all)")
    }

    // ── Bulk answers ──

    /// The answer to a bulk request: the fate of each document, by its record's number.
    @Sendable private static func bulk(
        _ request: UploadRequest, _ fate: (Int) -> Int
    ) throws -> UploadResponse {
        let ids = String(decoding: try request.content(), as: UTF8.self).split(separator: "\n")
            .compactMap { line -> Substring? in
                line.contains(#""_id":""#) ? line.split(separator: "\"")[5] : nil
            }
        let items = try ids.map { id in
            let number = try XCTUnwrap(Int(id.suffix(8), radix: 16))
            return #"{"create":{"_id":"\#(id)","status":\#(fate(number))}}"#
        }
        return answer(items)
    }

    @Sendable private static func answer(_ items: [String]) -> UploadResponse {
        UploadResponse(
            status: 200, headers: [("Content-Type", "application/json")],
            body: Array(#"{"errors":true,"items":[\#(items.joined(separator: ","))]}"#.utf8))
    }

    private func bulkTarget(_ options: inout TargetOptions) {
        options.kind = "elasticsearch"
        options.format = nil
        options.encoding = "none"
    }

    /// A record that is too large and one that is refused are kept once each, whether the part goes
    /// again as the answer asks or, after a restart, whole.
    func testAPartThatIsTakenInPartsForgetsNothing() throws {
        let process = CordwoodStore.ProcessInfo(
            laneID: .zero, bootID: .zero, processID: 812, name: "test", createdRealtime: 0,
            createdMonotonic: 0, resource: [])
        let thread = ThreadInfo(process: process, serial: 1, threadID: 813, name: "")
        let records = (0..<4).map { number in
            var given = Given(staged: Staged(thread: thread))
            given.staged.model.sequence = UInt64(number)
            let size = number == 1 ? 20_000 : 1
            given.own = [(Array("field".utf8), .text([UInt8](repeating: 0x61, count: size)))]
            given.dress()
            return given
        }
        for restarts in [false, true] {
            let store = try TestStore()
            let service = try store.service(records)
            let change: (inout TargetOptions) -> Void = {
                self.bulkTarget(&$0)
                $0.bodyBytesMax = 10_000
            }
            let asked = Events()
            let fate: @Sendable (Int) -> Int = { number in
                asked.add("\(number)")
                let isFirst = asked.all.filter { $0 == "\(number)" }.count == 1
                return number == 2 ? 400 : number == 3 && isFirst ? 429 : isFirst ? 201 : 409
            }
            _ = try add(store, service, change: change) { request, _ in
                try UploadStateTests.bulk(request, fate)
            }
            XCTAssertEqual(service.pass().1.refused, 2)
            XCTAssertTrue(store.queue[0].hasPrefix("retry-1-"), "\(store.queue)")
            let next = restarts ? try store.service() : service
            if restarts {
                _ = try add(store, next, change: change) { request, _ in
                    try UploadStateTests.bulk(request, fate)
                }
            }
            XCTAssertEqual(next.pass().1.refused, 0)
            XCTAssertEqual(
                asked.all.joined(), restarts ? "023023" : "0233", "the first is too large")
            XCTAssertEqual(store.queue, ["kept-0-2"], "\(restarts)")
        }
    }

    /// An answer about a record that was not sent says nothing about those that were.
    func testOrdinalsOfNobodyLoseNothing() throws {
        for status in [400, 429] {
            let store = try TestStore()
            store.addArchive(1, content: lines(2))
            let service = try store.service()
            let told = try add(store, service, change: bulkTarget) { _, _ in
                let id = "\(TestStore.id(1))-\(UInt64.max)"
                return UploadStateTests.answer([
                    #"{"create":{"_id":"\#(id)","status":\#(status)}}"#
                ])
            }
            for _ in 0..<3 { XCTAssertNotEqual(service.pass().0, .ok) }
            XCTAssertTrue(store.hasArchive(1), "\(status)")
            XCTAssertFalse(store.queue.contains { $0.hasPrefix("sent") }, "\(store.queue)")
            XCTAssertGreaterThan(told.seen.count, 0)
        }
    }

    /// The queue shows the server's text, without the secrets in it.
    func testARefusalInsideA200SaysWhy() throws {
        let store = try TestStore()
        store.addArchive(1, content: lines(2))
        let service = try store.service()
        _ = try add(
            store, service,
            change: {
                self.bulkTarget(&$0)
                $0.authToken = "s3cret-token"
            }
        ) { _, _ in
            UploadResponse(
                status: 200, body: Array(#"{"error":{"reason":"no s3cret-token"}}"#.utf8))
        }
        XCTAssertEqual(service.pass().0, .upload)
        let causes = try QueueListing(storeDirectory: FilePath(store.root)).list().map(\.cause)
        XCTAssertEqual(causes, [#"HTTP 200: {"error":{"reason":"no ***"}}"#])
    }

    func testWhereNothingIsWantedThereWasNoTransfer() throws {
        let store = try TestStore()
        store.addArchive(1)
        let service = try store.service()
        let told = try add(store, service, change: { $0.level = 17 }) { _, _ in
            UploadResponse(status: 200)
        }
        let (status, result) = service.pass()
        XCTAssertEqual(status, .end)
        XCTAssertEqual(told.seen.count, 0)
        XCTAssertEqual(result.lastOutcome, OutcomeKind.none)
    }

    func testABodyTakenInPartCountsItsBytes() throws {
        let store = try TestStore()
        store.addArchive(1, content: lines(2))
        let service = try store.service()
        _ = try add(store, service, change: bulkTarget) { request, _ in
            try UploadStateTests.bulk(request) { $0 == 0 ? 201 : 429 }
        }
        let (status, result) = service.pass()
        XCTAssertEqual(status, .upload)
        XCTAssertEqual(result.records, 1)
        XCTAssertGreaterThan(result.bytesSent, 0)
        XCTAssertEqual(service.totals.bytes, result.bytesSent)
    }

    /// Nothing of the body was taken: that proves nothing, and the other archives wait, too.
    func testABulkRequestOfWhichNothingIsTakenIsNoSuccess() throws {
        for (status, reason) in [(429, "-busy-"), (500, "-failed-")] {
            let store = try TestStore()
            for number in [1, 2] { store.addArchive(number, content: lines(3)) }
            let service = try store.service()
            let told = try add(store, service, change: bulkTarget) { request, _ in
                try UploadStateTests.bulk(request) { _ in status }
            }
            _ = service.pass(explicit: false)
            XCTAssertEqual(told.seen.count, status == 429 ? 1 : 2)
            XCTAssertTrue(store.queue[0].contains(reason), "\(store.queue)")
            XCTAssertFalse(service.currentRunners[0].isOpen)
            XCTAssertFalse(service.currentRunners[0].learned.isEncodingProven)
        }
    }
}
