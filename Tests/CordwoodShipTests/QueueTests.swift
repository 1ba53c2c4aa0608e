// The queue's pure parts and its files: states in names, Retry-After, backoff, verdicts, retention
// against a plain model, the registry, the store file. No server, no sleeping.

import Foundation
import XCTest

import CordwoodCore
@testable import CordwoodFormats
@testable import CordwoodShip
@testable import CordwoodStore

final class QueueTests: XCTestCase {
    // ── States ──

    func testStatesSurviveTheirNames() {
        let states: [PairState] = [
            .retry(attempts: 7, notBeforeMs: 1_800_000_000_123, reason: .server),
            .retry(attempts: 1, notBeforeMs: 0, reason: .stopped),
            .paused(attempts: 2, httpStatus: 401), .sent(httpStatus: 204), .filtered,
            .retry(
                attempts: 0, notBeforeMs: 0, reason: .failed,
                progress: Progress(done: 7, doubt: 12)),
            .paused(attempts: 2, httpStatus: 403, progress: Progress(done: .max, doubt: 0)),
            .quarantined(httpStatus: 400, progress: Progress(done: 3, doubt: 4)),
            .quarantined(httpStatus: 0), .kept(httpStatus: 413, records: 7),
            .retry(
                attempts: 1, notBeforeMs: 2, reason: .refused,
                progress: Progress(done: 3, doubt: 0, lines: 2)), .unknown("folded-3-x"),
        ]
        for state in states {
            let suffix = state.suffix ?? ""
            XCTAssertEqual(PairState(suffix: suffix[...]), state)
        }
        for foreign in [
            "", "retry", "retry-1-2", "retry-x-2-failed", "retry-1-2-later", "sent-",
            "sent-99999999999", "paused-1", "sent-200-1",
        ] {
            XCTAssertEqual(PairState(suffix: foreign[...]), .unknown(foreign))
        }
    }

    func testOutboxMovesByRenameAndKeepsTheFurther() throws {
        let store = try TestStore()
        let outbox = Outbox(paths: store.paths)
        let (a, b) = (TargetKey(name: "a"), TargetKey(name: "b"))
        let stem = store.stem(1)
        let retry = PairState.retry(attempts: 1, notBeforeMs: 5, reason: .failed)
        try outbox.set(stem, a, to: retry)
        try outbox.set(stem, b, to: .sent(httpStatus: 200))
        XCTAssertEqual(try outbox.states(stem), [a: retry, b: .sent(httpStatus: 200)])
        try outbox.set(stem, a, to: .sent(httpStatus: 201))
        XCTAssertEqual(try outbox.snapshot().state(stem, a), .sent(httpStatus: 201))
        XCTAssertEqual(store.queue, ["sent-200", "sent-201"])
        try StoreFiles.create(store.paths.queue + "/\(stem)@a.retry-9-9-failed")
        try StoreFiles.create(store.paths.queue + "/not one of ours")
        XCTAssertEqual(try outbox.snapshot().state(stem, a), .sent(httpStatus: 201))
        try outbox.set(stem, a, to: .waiting)
        XCTAssertEqual(try outbox.states(stem), [b: .sent(httpStatus: 200)])
    }

    /// A server that is asked again refuses the same record again: it is kept once.
    func testARecordIsKeptOnce() {
        func refusal(_ ordinal: UInt64) -> RefusedRecords {
            RefusedRecords(
                PartRange(first: ordinal, end: ordinal + 1), count: 1, httpStatus: 400, reason: "r")
        }
        var refusals = PairRefusals()
        for (ordinal, isNew) in [(3, true), (4, true), (3, false), (9, true), (4, false)] {
            XCTAssertEqual(refusals.keep(refusal(UInt64(ordinal))), isNew, "\(ordinal)")
        }
        XCTAssertEqual(refusals.records, 3)
        XCTAssertEqual(refusals.lines, 2)
    }

    /// After root has worked on a store, its owner can still read the files.
    func testFilesBelongToTheOwnerOfTheirDirectory() throws {
        try XCTSkipIf(geteuid() != 0, "only root makes files for others")
        let store = try TestStore()
        for path in [store.root, "\(store.paths.queue)"] {
            XCTAssertEqual(chown(path, 1234, 1235), 0)
        }
        let queue = FilePath(try XCTUnwrap(OpenDirectory(store.root))) + "/queue"
        try StoreFiles.replace(
            queue + "/a", temporary: queue + "/.a", directory: queue, with: [1])
        try StoreFiles.create(queue + "/b")
        for name in ["a", "b"] {
            var status = stat()
            XCTAssertEqual(lstat("\(store.paths.queue)/\(name)", &status), 0)
            XCTAssertEqual([status.st_uid, status.st_gid], [1234, 1235], name)
        }
    }

    func testOrphansGoAndOnlyThey() throws {
        let store = try TestStore()
        store.addArchive(1)
        let outbox = Outbox(paths: store.paths)
        let target = try store.target("http://host")
        try TargetRegistry(storeDirectory: FilePath(store.root)).register(target.registration)
        let sent = PairState.sent(httpStatus: 200)
        try outbox.set(store.stem(1), target.key, to: sent)
        try outbox.set(store.stem(1), TargetKey(name: "gone"), to: sent)
        try outbox.set(store.stem(2), target.key, to: sent)
        try outbox.removeOrphans()
        XCTAssertEqual(
            try StoreFiles.list(store.paths.queue), ["\(store.stem(1))@\(target.key.text).sent-200"]
        )
    }

    func testTargetKeysAreSafeAndDistinct() {
        XCTAssertEqual(TargetKey(name: "plain-Name_1").text, "plain-Name_1")
        XCTAssertEqual(TargetKey(name: "../é").text, "%2E%2E%2F%C3%A9")
        let long = String(repeating: "x", count: 255)
        XCTAssertLessThanOrEqual(TargetKey(name: long).text.utf8.count, 80)
        XCTAssertNotEqual(TargetKey(name: long), TargetKey(name: long.dropLast() + "y"))
    }

    func testLockFollowsTheNameNotTheFile() throws {
        let store = try TestStore()
        store.addArchive(1)
        let path = store.paths.archive(store.stem(1))
        func isFree() throws -> Bool {
            try ArchiveLock(paths: store.paths, stem: store.stem(1), target: nil) != nil
        }
        if let lock = try ArchiveLock(paths: store.paths, stem: store.stem(1), target: nil) {
            XCTAssertFalse(try isFree())
            try lock.deleteArchive(paths: store.paths)
        }
        XCTAssertFalse(try isFree())
        XCTAssertFalse(StoreFiles.exists(path))
        store.addArchive(1)
        XCTAssertTrue(try isFree())
    }

    func testTargetsShareAnArchiveAndWhoDeletesIsAlone() throws {
        let store = try TestStore()
        store.addArchive(1)
        let (a, b) = (TargetKey(name: "a"), TargetKey(name: "b"))
        func has(_ target: TargetKey?) throws -> Bool {
            try ArchiveLock(paths: store.paths, stem: store.stem(1), target: target) != nil
        }
        let first = try ArchiveLock(paths: store.paths, stem: store.stem(1), target: a)
        guard let first else { return XCTFail("no lock") }
        XCTAssertFalse(try has(a))
        XCTAssertFalse(try has(nil))
        if let second = try ArchiveLock(paths: store.paths, stem: store.stem(1), target: b) {
            XCTAssertFalse(first.widen())
            XCTAssertFalse(second.widen())
        } else {
            XCTFail("targets keep each other out")
        }
        XCTAssertTrue(first.widen())
        XCTAssertFalse(try has(b))
        XCTAssertEqual(first.bytes, UInt64(store.files[1]!.count))
    }

    /// Trying again what was given up names the archives that are locked at the moment.
    func testWhatCannotBeTriedAgainIsSaid() throws {
        let store = try TestStore()
        let outbox = Outbox(paths: store.paths)
        let target = try store.target("http://host")
        try TargetRegistry(storeDirectory: FilePath(store.root)).register(target.registration)
        for number in 1...3 {
            store.addArchive(number)
            try outbox.set(store.stem(number), target.key, to: .quarantined(httpStatus: 400))
        }
        let service = try store.service()
        if let lock = try ArchiveLock(paths: store.paths, stem: store.stem(2), target: nil) {
            XCTAssertThrowsError(try service.retryQuarantined(target: nil)) {
                XCTAssertTrue("\($0)".contains(lock.stem), "\($0)")
            }
        }
        XCTAssertEqual(
            store.queue, ["quarantined-400", "retry-0-0-stopped", "retry-0-0-stopped"])
        XCTAssertEqual(try service.retryQuarantined(target: nil), 1)
        XCTAssertEqual(try service.retryQuarantined(target: nil), 0)
    }

    // ── Waiting ──

    func testRetryAfter() {
        // 1994-11-06T08:49:37Z
        let date: UInt64 = 784_111_777_000
        for text in [
            "Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994", "Wed, 06 Nov 1994 08:49:37 GMT",
            "Noday, 06 Nov 1994 08:49:37 GMT",
        ] {
            XCTAssertEqual(RetryAfter.delayMs(text, nowUnixMs: date - 5_000), 5_000, text)
            XCTAssertEqual(RetryAfter.delayMs(text, nowUnixMs: date + 5_000), 0, text)
        }
        let day: UInt64 = 86_400_000
        XCTAssertEqual(RetryAfter.delayMs("Fri, 06 Nov 2099 08:49:37 GMT", nowUnixMs: date), day)
        XCTAssertEqual(RetryAfter.delayMs(" 120 ", nowUnixMs: date), 120_000)
        XCTAssertEqual(RetryAfter.delayMs("0", nowUnixMs: date), 0)
        XCTAssertEqual(RetryAfter.delayMs("999999", nowUnixMs: date), day)
        XCTAssertEqual(RetryAfter.delayMs("99999999999999999999999", nowUnixMs: date), day)
        for text in [
            "", "soon", "-3", "1.5", "06 Nov", "Sun, 99 Nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 08:61:37 GMT", "Sun, 06 Nov 1994 08:49 GMT",
        ] {
            XCTAssertNil(RetryAfter.delayMs(text, nowUnixMs: date), text)
        }
    }

    /// A date counts from the server's own, whatever our clock says.
    func testADateCountsFromTheServersClock() {
        var outcome = TransferOutcome(kind: .server, httpStatus: 503, cause: "")
        outcome.headers = [
            ("date", "Sun, 06 Nov 1994 08:49:37 GMT"),
            ("retry-after", "Sun, 06 Nov 1994 08:49:47 GMT"),
        ]
        let now: UInt64 = 784_111_777_000
        let hour: UInt64 = 3_600_000
        for wrong in [now, now - hour, now + hour, now - 48 * hour, now + 48 * hour, 0] {
            XCTAssertEqual(RetryAfter.delayMs(outcome, nowUnixMs: wrong), 10_000)
            XCTAssertEqual(
                AnswerVerdict.retry(outcome, nowUnixMs: wrong), .retry(.server, delayMs: 10_000))
            XCTAssertEqual(FailureDetail(outcome, nowUnixMs: wrong).retryAfterMs, 10_000)
        }
        outcome.headers[1].value = "7"
        XCTAssertEqual(RetryAfter.delayMs(outcome, nowUnixMs: 0), 7_000)
        outcome.headers[1].value = "Sun, 06 Nov 1994 08:49:00 GMT"
        XCTAssertEqual(RetryAfter.delayMs(outcome, nowUnixMs: 0), 0, "a past date means now")
        for date in ["", "today", "Thu, 01 Jan 1960 00:00:00 GMT"] {
            outcome.headers = [("date", date), ("retry-after", "Sun, 06 Nov 1994 08:49:47 GMT")]
            XCTAssertEqual(RetryAfter.delayMs(outcome, nowUnixMs: now), 10_000, date)
        }
        outcome.headers = []
        XCTAssertNil(RetryAfter.delayMs(outcome, nowUnixMs: now))
    }

    func testBackoffGrowsWithinItsBounds() {
        for attempts in UInt32(1)...40 {
            let most = Backoff.delayMs(attempts: attempts, random: UInt64.max)
            XCTAssertEqual(Backoff.delayMs(attempts: attempts, random: 0), 1_000)
            XCTAssertEqual(most, min(3_600_000, 1_000 << UInt64(min(attempts, 20))))
        }
        XCTAssertEqual(Backoff.delayMs(attempts: UInt32.max, random: UInt64.max), 3_600_000)
    }

    func testNowIsBelievedThreeTimes() {
        for attempts in UInt32(1)...3 {
            XCTAssertEqual(Backoff.soonMs(attempts: attempts, random: UInt64.max), 1_000)
        }
        for attempts in UInt32(4)...40 {
            XCTAssertEqual(
                Backoff.soonMs(attempts: attempts, random: UInt64.max),
                Backoff.delayMs(attempts: attempts - 3, random: UInt64.max))
        }
        var outcome = TransferOutcome(kind: .server, httpStatus: 503, cause: "")
        outcome.headers = [(name: "retry-after", value: "Fri, 04 Nov 2014 23:59:59 GMT")]
        XCTAssertEqual(
            AnswerVerdict.retry(outcome, nowUnixMs: 1_800_000_000_000), .retry(.failed, delayMs: 0))
    }

    func testVerdictOfEveryStatus() {
        let retryable: Set<Int32> = [408, 425, 429, 500, 502, 503, 504, 507]
        for isCollector in [true, false] {
            for status in Int32(100)...699 {
                let kind = TransferOutcome.kind(httpStatus: status)
                let outcome = TransferOutcome(kind: kind, httpStatus: status, cause: "")
                let verdict = AnswerVerdict.judge(
                    outcome, isCollector: isCollector, isOnlyIfAbsent: false,
                    isEncodingProven: true, nowUnixMs: 0)
                switch status {
                case 200...299: XCTAssertEqual(verdict, .sent(.none))
                case 401: XCTAssertEqual(verdict, .pause)
                case 403: XCTAssertEqual(verdict, .forbid)
                case 413: XCTAssertEqual(verdict, .shrink)
                case 415: XCTAssertEqual(verdict, .simplify)
                case 429, 503: XCTAssertEqual(verdict, .retry(.busy, delayMs: nil), "\(status)")
                case 409 where isCollector, _ where retryable.contains(status):
                    XCTAssertEqual(verdict, .retry(.failed, delayMs: nil), "\(status)")
                case 400, 422: XCTAssertEqual(verdict, .refuse, "\(status)")
                default: XCTAssertEqual(verdict, .stray, "\(status)")
                }
            }
        }
    }

    func testHoldIgnoresTimesOfAnotherClock() {
        let now: UInt64 = 1_800_000_000_000
        let key = TargetKey(name: "t")
        func hold(_ state: PairState, isOpen: Bool = false) -> TargetHold {
            TargetHold(
                OutboxSnapshot(pairs: ["a": [key: state]]), key, isOpen: isOpen, nowMs: now)
        }
        let soon = PairState.retry(attempts: 1, notBeforeMs: now + 1_000, reason: .server)
        XCTAssertFalse(hold(soon).allows(.waiting, explicit: true, nowMs: now))
        XCTAssertTrue(hold(soon).allows(soon, explicit: false, nowMs: now + 1_000))
        let wrong = PairState.retry(attempts: 1, notBeforeMs: now * 2, reason: .server)
        XCTAssertTrue(hold(wrong).allows(wrong, explicit: false, nowMs: now))
        let away = PairState.retry(attempts: 1, notBeforeMs: now + 1_000, reason: .unreachable)
        XCTAssertFalse(hold(away).allows(.waiting, explicit: false, nowMs: now))
        XCTAssertTrue(hold(away).allows(away, explicit: true, nowMs: now))
        let busy = PairState.retry(attempts: 1, notBeforeMs: now + 1_000, reason: .busy)
        XCTAssertFalse(hold(busy).allows(.waiting, explicit: false, nowMs: now))
        XCTAssertTrue(hold(busy).allows(busy, explicit: true, nowMs: now))
        let refused = PairState.retry(attempts: 1, notBeforeMs: now + 1_000, reason: .refused)
        XCTAssertFalse(hold(refused).allows(.waiting, explicit: false, nowMs: now))
        XCTAssertTrue(hold(refused).allows(refused, explicit: true, nowMs: now))
        XCTAssertTrue(hold(refused).isProbing)
        XCTAssertTrue(hold(refused, isOpen: true).allows(refused, explicit: false, nowMs: now))
        var taken = hold(refused)
        taken.noteTaken()
        XCTAssertTrue(taken.allows(.waiting, explicit: false, nowMs: now))
        XCTAssertFalse(taken.isProbing)
        let failed = PairState.retry(attempts: 1, notBeforeMs: now + 1_000, reason: .failed)
        XCTAssertTrue(hold(failed).allows(.waiting, explicit: false, nowMs: now))
        XCTAssertFalse(hold(failed).allows(failed, explicit: false, nowMs: now))
        XCTAssertEqual(hold(failed).wakeMs(failed, nowMs: now), now + 1_000)
    }

    // ── Retention ──

    func testRetentionKeepsItsPromises() {
        var seed: UInt64 = 20_261_121
        func random(_ bound: UInt64) -> UInt64 {
            seed = seed &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return (seed >> 33) % bound
        }
        let now = 100 * Retention.dayNs
        for round in 0..<2_000 {
            let items = (0..<Int(random(12))).map { index in
                RetentionItem(
                    stem: "\(index)", bytes: random(100),
                    writtenNs: random(3) == 0 ? 0 : (90 + UInt64(index)) * Retention.dayNs,
                    isPinned: random(4) == 0)
            }
            let limits = RetentionLimits(
                quotaBytes: random(500), archivesMax: UInt32(random(8)),
                expirationDays: UInt32(random(12)))
            let other = random(200)
            let removed = Retention.decide(
                items: items, otherBytes: other, limits: limits, nowNs: now)
            let names = Set(removed.map { $0.stem })
            let kept = items.filter { !names.contains($0.stem) }
            let free = kept.filter { !$0.isPinned }
            let note = "round \(round)"
            XCTAssertEqual(names.count, removed.count, note)
            XCTAssertFalse(items.contains { $0.isPinned && names.contains($0.stem) }, note)
            XCTAssertFalse(
                free.contains {
                    Retention.isExpired($0.writtenNs, days: limits.expirationDays, nowNs: now)
                }, note)
            let bytes = kept.reduce(other) { $0 + $1.bytes }
            if limits.quotaBytes > 0 && bytes > limits.quotaBytes { XCTAssertEqual(free, [], note) }
            if limits.archivesMax > 0 && kept.count > Int(limits.archivesMax) {
                XCTAssertEqual(free, [], note)
            }
            // Of those not expired, the oldest were removed, and none too many.
            let forced = removed.filter { $0.reason != .expired }
            if let last = forced.last, let oldest = free.first {
                XCTAssertLessThan(Int(last.stem)!, Int(oldest.stem)!, note)
                let size = items.first { $0.stem == last.stem }!.bytes
                let isNeeded =
                    limits.quotaBytes > 0 && bytes + size > limits.quotaBytes
                    || limits.archivesMax > 0 && kept.count + 1 > Int(limits.archivesMax)
                XCTAssertTrue(isNeeded, note)
            }
        }
    }

    func testUnlimitedRemovesNothing() {
        let item = RetentionItem(stem: "a", bytes: UInt64.max, writtenNs: 1, isPinned: false)
        XCTAssertTrue(
            Retention.decide(
                items: [item, item], otherBytes: UInt64.max, limits: .unlimited, nowNs: UInt64.max
            ).isEmpty)
    }

    // ── Registry and store file ──

    func testRegistryTellsWhoWithoutSecrets() throws {
        let store = try TestStore()
        let registry = TargetRegistry(storeDirectory: FilePath(store.root))
        let target = try store.target("https://host:8443/bulk/TOKEN?k=SECRET") {
            $0.kind = "http"
            $0.name = "my target"
            $0.authToken = "SECRET"
            $0.headers = "X-Key: SECRET"
        }
        try registry.register(target.registration)
        try registry.register(target.registration)
        XCTAssertEqual(try registry.list(), [target.registration])
        XCTAssertEqual(try registry.list().first?.origin, "https://host:8443")
        let bytes = try XCTUnwrap(StoreFiles.read(store.paths.targets + "/my%20target"))
        let text = String(decoding: bytes, as: UTF8.self)
        XCTAssertFalse(text.contains("SECRET") || text.contains("TOKEN"), text)
        try registry.remove(name: "my target")
        XCTAssertEqual(try registry.list(), [])
    }

    /// For every kind: a target made from a registration makes the same bodies.
    func testRegistrationsTellHowBodiesAreMade() throws {
        let store = try TestStore()
        let registry = TargetRegistry(storeDirectory: FilePath(store.root))
        for kind in TargetKind.allCases {
            for format in kind.formats {
                for encoding in kind.encodings(format) {
                    let target = try store.target(
                        kind == .s3 || kind == .sap ? "https://h/b" : "https://h"
                    ) {
                        $0.kind = kind.rawValue
                        $0.name = "one"
                        $0.format = format.rawValue
                        $0.encoding = encoding.rawValue
                        if kind == .clickhouse { $0.parameters = "table=t\nhost=h" }
                        if kind == .loki { $0.parameters = "tenant=SECRET\nlabels=a=b,c=d" }
                        guard format != .archive else { return }
                        $0.level = 9
                        $0.loggers = "app.db, other"
                        $0.bodyRecordsMax = 5
                        $0.bodyBytesMax = 99_000
                    }
                    try registry.register(target.registration)
                    let found = try XCTUnwrap(registry.list().first)
                    let made = try Target(registered: found)
                    XCTAssertEqual(made.registration, target.registration)
                    XCTAssertEqual(made.filter, target.filter)
                    XCTAssertEqual(made.dialect.limits, target.dialect.limits)
                    XCTAssertEqual(made.dialect.contentType, target.dialect.contentType)
                }
            }
        }
        let odd = try store.target("https://h") {
            $0.kind = "http"
            $0.name = "one"
            $0.format = "json"
            $0.loggers = "a\nbodies 1"
        }
        try registry.register(odd.registration)
        XCTAssertNil(try XCTUnwrap(registry.list().first).bodies, "a name is a line of its own")
    }

    func testStoreFileKeepsWhatItDoesNotKnow() throws {
        let store = try TestStore(consent: .pending)
        let path = store.root + "/store"
        let made = try XCTUnwrap(StoreFile.read(storeDirectory: FilePath(store.root)))
        XCTAssertEqual(made.id, "00000000000000010000000000000002")
        XCTAssertEqual(made.created, "1970-01-01T00:00:00Z")
        XCTAssertEqual(made.consent, .pending)
        let text = String(decoding: made.bytes, as: UTF8.self) + "color blue\nshape  round \n"
        try text.write(toFile: path, atomically: true, encoding: .utf8)
        let changed = try StoreFile.setConsent(storeDirectory: FilePath(store.root), to: .denied)
        XCTAssertEqual(changed.consent, .denied)
        let after = try String(contentsOfFile: path, encoding: .utf8)
        XCTAssertTrue(after.hasSuffix("consent denied\ncolor blue\nshape  round \n"), after)
        let again = try StoreFile.open(
            storeDirectory: FilePath(store.root), consent: .granted, idBytes: (9, 9),
            createdUnixSeconds: 9)
        XCTAssertEqual(again.id, made.id)
        XCTAssertEqual(again.consent, .denied)
        XCTAssertFalse(StoreFiles.exists(FilePath(store.root + "/.store.new")))
    }

    func testStoreFileOfOtherVersions() throws {
        let id = "id 00000000000000010000000000000002\n"
        func parse(_ text: String) throws -> StoreFile {
            try StoreFile.parse(Array(text.utf8), path: "store")
        }
        func status(_ text: String) -> UploadStatus? {
            do { _ = try parse(text) } catch { return (error as? UploadError)?.status }
            return nil
        }
        XCTAssertEqual(status("cordwood store\nformat 2\n" + id), .version)
        XCTAssertEqual(status("cordwood store\nformat 1\nincompat 1\n" + id), .version)
        XCTAssertEqual(status("cordwood store\nformat 1\nincompat x\n" + id), .version)
        XCTAssertEqual(status("cordwood store\n" + id), .damaged)
        XCTAssertEqual(status("cordwood store\nformat 1\nid 12\n"), .damaged)
        XCTAssertEqual(status("something\n"), .damaged)
        XCTAssertEqual(status(""), .damaged)
        let newer = try parse("cordwood store\nformat 1\ncompat 4\nconsent maybe\n" + id)
        XCTAssertEqual(newer.consent, .pending)
        let store = try TestStore()
        try Data(newer.bytes).write(to: URL(fileURLWithPath: store.root + "/store"))
        XCTAssertThrowsError(
            try StoreFile.setConsent(storeDirectory: FilePath(store.root), to: .granted)
        ) {
            XCTAssertEqual(($0 as? UploadError)?.status, .version)
        }
    }

    func testCalendar() {
        XCTAssertEqual(Times.text(seconds: 951_782_400), "2000-02-29T00:00:00Z")
        XCTAssertEqual(Times.text(seconds: 1_795_248_930), "2026-11-21T08:15:30Z")
        for day in stride(from: Int64(0), to: 100_000, by: 37) {
            let text = Times.text(seconds: day * 86_400)
            let parts = text.prefix(10).split(separator: "-").map { Int64($0)! }
            XCTAssertEqual(Times.days(year: parts[0], month: parts[1], day: parts[2]), day)
        }
    }
}
