// Who may send what, without any server: consent, covered archives, targets and their checks, the
// numbers of the header, a machine without libcurl.

import CCurl
import Foundation
import XCTest

import CordwoodCore
@testable import CordwoodShip
@testable import CordwoodStore

final class UploadRulesTests: XCTestCase {
    private let nowhere = "http://127.0.0.1:9"

    func testNothingIsSentWithoutConsent() throws {
        for consent in [Consent.pending, .denied] {
            let store = try TestStore(consent: consent)
            store.addArchive(1)
            let service = try store.service()
            _ = try service.addTarget(store.target(nowhere))
            XCTAssertEqual(service.pass().0, .consent)
            XCTAssertEqual(service.pass(explicit: false).0, .consent)
            XCTAssertEqual(store.events.all, [])
            XCTAssertTrue(store.hasArchive(1))
        }
        let store = try TestStore()
        unlink(store.root + "/store")
        let service = try store.service()
        _ = try service.addTarget(store.target(nowhere))
        XCTAssertEqual(service.pass().0, .consent)
    }

    func testDenialRemovesWhatIsNotSent() throws {
        let store = try TestStore()
        for number in 1...6 { store.addArchive(number) }
        try store.addSegment(of: 2)
        let service = try store.service()
        XCTAssertEqual(try service.removeWaiting(), 0, "nothing waits where no target is")
        _ = try service.addTarget(store.target(nowhere))
        _ = try StoreFile.setConsent(storeDirectory: FilePath(store.root), to: .denied)
        let key = service.currentRunners[0].target.key
        for (number, state) in [
            (3, PairState.quarantined(httpStatus: 400)), (4, .kept(httpStatus: 400, records: 1)),
            (5, .sent(httpStatus: 200)), (6, .unknown("newer")),
        ] { try service.outbox.set(store.stem(number), key, to: state) }
        XCTAssertEqual(try service.removeWaiting(), 3)
        XCTAssertEqual((1...6).filter(store.hasArchive), [2, 5, 6])
        XCTAssertEqual(
            store.events.all.sorted(),
            ["completed consent 0", "removed consent", "removed consent", "removed consent"])
    }

    func testCoveredArchivesWait() throws {
        let store = try TestStore()
        store.addArchive(1)
        try store.addSegment(of: 1)
        let service = try store.service(coveredMs: 50)
        _ = try service.addTarget(store.target(nowhere))
        let (status, result) = service.pass()
        XCTAssertEqual(status, .upload)
        XCTAssertEqual(result.waiting, 1)
        XCTAssertEqual(store.events.all, [])
        service.setLimits(RetentionLimits(quotaBytes: 1, archivesMax: 1, expirationDays: 1))
        XCTAssertEqual(try service.applyRetention(otherBytes: 100), 0)
    }

    func testNoTargetAndNothingWaiting() throws {
        let store = try TestStore()
        let service = try store.service()
        XCTAssertEqual(service.pass().0, .noTarget)
        _ = try service.addTarget(store.target(nowhere))
        XCTAssertEqual(service.pass().0, .end)
    }

    func testNamesAreUniqueAndRemovable() throws {
        let store = try TestStore()
        store.addArchive(1)
        let service = try store.service()
        _ = try service.addTarget(store.target(nowhere) { $0.name = "a/b@c.d" })
        XCTAssertThrowsError(
            try service.addTarget(store.target(nowhere) { $0.name = "a/b@c.d" })
        ) { XCTAssertEqual(($0 as? UploadError)?.status, .exists) }
        XCTAssertEqual(try StoreFiles.list(store.paths.targets), ["a%2Fb%40c%2Ed"])
        XCTAssertEqual(service.pass().1.failed, 1)
        XCTAssertEqual(store.queue.count, 1)
        try service.removeTarget("a/b@c.d")
        XCTAssertEqual(try StoreFiles.list(store.paths.targets), [])
        XCTAssertEqual(store.queue, [])
        XCTAssertTrue(store.hasArchive(1))
        XCTAssertThrowsError(try service.removeTarget("a/b@c.d")) {
            XCTAssertEqual(($0 as? UploadError)?.status, .notFound)
        }
        for number in 1...64 {
            _ = try service.addTarget(store.target(nowhere) { $0.name = "t\(number)" })
        }
        XCTAssertThrowsError(try service.addTarget(store.target(nowhere))) {
            XCTAssertEqual(($0 as? UploadError)?.status, .limit)
        }
    }

    func testTargetEndedByAnotherProcessSendsNoMore() throws {
        let store = try TestStore()
        store.addArchive(1)
        let service = try store.service()
        let target = try store.target(nowhere)
        _ = try service.addTarget(target)
        try TargetRegistry(storeDirectory: FilePath(store.root)).remove(name: target.name)
        XCTAssertEqual(service.pass().0, .noTarget)
        XCTAssertTrue(store.hasArchive(1))
    }

    func testTargetRemovedFromOutsideCanBeAddedAgain() throws {
        let server = try FaultServer()
        let store = try TestStore()
        store.addArchive(1)
        let service = try store.service()
        let target = try store.target(server.url)
        let first = try service.addTarget(target)
        try TargetRegistry(storeDirectory: FilePath(store.root)).remove(name: target.name)
        XCTAssertEqual(service.pass().0, .noTarget)
        let second = try service.addTarget(target)
        XCTAssertNotEqual(first, second)
        XCTAssertNil(service.target(first))
        XCTAssertThrowsError(try service.addTarget(target)) {
            XCTAssertEqual(($0 as? UploadError)?.status, .exists)
        }
        XCTAssertEqual(service.pass().0, .ok)
        XCTAssertEqual(server.requests.count, 1)
    }

    func testExpiredArchivesAreNotSent() throws {
        let store = try TestStore()
        store.addArchive(1)
        let service = try store.service()
        _ = try service.addTarget(store.target(nowhere))
        service.setLimits(RetentionLimits(quotaBytes: 0, archivesMax: 0, expirationDays: 30))
        // Boot time vouches for the days from here on.
        XCTAssertEqual(try service.applyRetention(otherBytes: 0), 0)
        store.clock.advance(ms: 31 * 86_400_000)
        let (status, result) = service.pass()
        XCTAssertEqual(status, .end)
        XCTAssertEqual(result.expired, 1)
        XCTAssertFalse(store.hasArchive(1))
        XCTAssertEqual(store.events.all, ["completed limit 0", "removed expired"])
        XCTAssertEqual(service.pass().1.expired, 0, "told once")
        // The engine's own rounds are usually faster than a call.
        store.addArchive(2)
        store.addArchive(3)
        store.clock.advance(ms: 31 * 86_400_000)
        XCTAssertEqual(try service.applyRetention(otherBytes: 0), 2)
        // A call for one kind does not pass it on.
        var ofOneKind = UploadResult()
        let kind = try XCTUnwrap(service.currentRunners.first).target.kind
        XCTAssertEqual(
            service.pass(
                explicit: true, kind: kind, deadlineMonotonicMs: .max, result: &ofOneKind), .end)
        XCTAssertEqual(ofOneKind.expired, 0)
        XCTAssertEqual(service.pass().1.expired, 2)
    }

    func testLockedArchiveIsLeftAlone() throws {
        let store = try TestStore()
        store.addArchive(1)
        let service = try store.service()
        _ = try service.addTarget(store.target(nowhere))
        service.setLimits(RetentionLimits(quotaBytes: 1, archivesMax: 0, expirationDays: 0))
        do {
            let lock = try XCTUnwrapLock(store, 1)
            XCTAssertEqual(try service.applyRetention(otherBytes: 0), 0)
            // An explicit call waits for the holder of the lock until it times out.
            XCTAssertEqual(service.pass(seconds: 0.2).1.failed, 0)
            XCTAssertEqual(lock.bytes, UInt64(store.files[1]!.count))
        }
        XCTAssertEqual(store.events.all, [])
        XCTAssertEqual(try service.applyRetention(otherBytes: 0), 1)
    }

    /// A small archive occupies a whole block.
    func testTheQuotaCountsWhatFilesTakeOnTheDisk() throws {
        let store = try TestStore()
        for number in 1...3 { store.addArchive(number) }
        var status = stat()
        XCTAssertEqual(lstat("\(store.paths.archive(store.stem(1)))", &status), 0)
        let each = UInt64(status.st_blocks) * 512
        XCTAssertGreaterThan(each, UInt64(status.st_size))
        let service = try store.service()
        func removed(quota: UInt64) throws -> UInt32 {
            service.setLimits(
                RetentionLimits(quotaBytes: quota, archivesMax: 0, expirationDays: 0))
            return try service.applyRetention(otherBytes: 10)
        }
        XCTAssertEqual(try removed(quota: 10 + 3 * each), 0)
        XCTAssertEqual(try removed(quota: 9 + 3 * each), 1)
        XCTAssertEqual(try removed(quota: 10 + each), 1)
    }

    /// A lease keeps every process from opening a file for writing, like an immutable file.
    func testWhatCannotBeDeletedHoldsNothingElseUp() throws {
        let store = try TestStore()
        for number in 1...4 { store.addArchive(number) }
        // Neither of these is an archive.
        XCTAssertEqual(mkdir("\(store.paths.archive("directory"))", 0o700), 0)
        XCTAssertEqual(symlink("nowhere", "\(store.paths.archive("link"))"), 0)
        let service = try store.service()
        service.setLimits(RetentionLimits(quotaBytes: 0, archivesMax: 2, expirationDays: 0))
        let former = signal(SIGIO, SIG_IGN)
        defer { signal(SIGIO, former) }
        let held = open("\(store.paths.archive(store.stem(1)))", O_RDONLY)
        let setLease: Int32 = 1_024
        XCTAssertEqual(fcntl(held, setLease, Int32(F_RDLCK)), 0, "a file system with leases")
        XCTAssertEqual(try service.applyRetention(otherBytes: 0), 2)
        XCTAssertEqual((1...4).map { store.hasArchive($0) }, [true, false, false, true])
        XCTAssertEqual(try service.applyRetention(otherBytes: 0), 0)
        store.addArchive(5)
        XCTAssertEqual(try service.applyRetention(otherBytes: 0), 1)
        XCTAssertEqual((1...5).map { store.hasArchive($0) }, [true, false, false, false, true])
        let told = store.events.diagnostics.filter { !$0.hasPrefix("a limit of the store") }
        XCTAssertEqual(told.count, 1, "\(told)")
        XCTAssertTrue(told[0].hasPrefix("an archive cannot be deleted; it"))
        XCTAssertTrue(told[0].contains(store.stem(1)))
        close(held)
        store.addArchive(6)
        XCTAssertEqual(try service.applyRetention(otherBytes: 0), 1)
        XCTAssertFalse(store.hasArchive(1))
    }

    private func XCTUnwrapLock(_ store: TestStore, _ number: Int) throws -> ArchiveLock {
        guard let lock = try ArchiveLock(paths: store.paths, stem: store.stem(number), target: nil)
        else {
            throw UploadError.notFound("lock")
        }
        return lock
    }

    func testInvalidTargetsAreRefused() throws {
        let refused: [(String, (inout TargetOptions) -> Void)] = [
            ("ftp://host", { _ in }), ("http://", { _ in }), ("http://user:pw@host", { _ in }),
            ("http://host:0", { _ in }), ("http://host:70000", { _ in }),
            ("http://ho st", { _ in }), ("http://host/\r\nX: y", { _ in }),
            ("http://[::1", { _ in }),
            ("http://host?x=1", { _ in }), ("http://host", { $0.kind = "carrier pigeon" }),
            ("http://host", { $0.format = "ndjson" }), ("http://host", { $0.encoding = "lz4" }),
            (
                "http://host",
                {
                    $0.method = "DELETE"; $0.kind = "http"
                }
            ),
            ("http://host", { $0.headers = "no colon" }),
            ("http://host", { $0.headers = "Content-Length: 3" }),
            ("http://host", { $0.headers = "A: b\rC: d" }),
            ("http://host", { $0.headers = "Bad Name: x" }),
            ("http://host", { $0.authToken = "a\nb" }),
            (
                "http://host",
                {
                    $0.authToken = "a"; $0.headers = "authorization: x"
                }
            ),
            ("http://host", { $0.name = "a\nb" }),
        ]
        for (url, change) in refused {
            var options = TargetOptions(url: url)
            change(&options)
            XCTAssertThrowsError(try Target(options), url) {
                XCTAssertEqual(($0 as? UploadError)?.status, .argument)
                XCTAssertFalse(($0 as? UploadError)?.text.contains("pw") ?? true)
            }
        }
    }

    func testDerivedNameIsStableAndHoldsNoSecret() throws {
        var options = TargetOptions(url: "https://Logs.Example.com/bulk/TOKEN/")
        options.kind = "http"
        let name = try Target(options).name
        XCTAssertEqual(name, try Target(options).name)
        XCTAssertTrue(name.hasPrefix("http-logs.example.com-archive-"), name)
        XCTAssertFalse(name.contains("TOKEN"))
        options.format = "ndjson"
        XCTAssertNotEqual(name, try Target(options).name)
        XCTAssertEqual(try Target(options).origin, "https://logs.example.com")
    }

    func testMissingLibraryHasAReason() {
        func probe(_ name: String) -> (Int32, String) {
            withUnsafeTemporaryAllocation(of: CChar.self, capacity: 200) { text in
                text.initialize(repeating: 0)
                let code = cwi_curl_probe(name, text.baseAddress, text.count)
                return (code, String(cString: text.baseAddress!))
            }
        }
        XCTAssertEqual(probe("libno-such-curl.so.4").0, -1)
        XCTAssertTrue(probe("libno-such-curl.so.4").1.contains("was not found"))
        XCTAssertEqual(probe("libm.so.6").0, -1)
        XCTAssertTrue(probe("libm.so.6").1.contains("too old"))
        XCTAssertEqual(probe("libcurl.so.4").0, 0)
    }

    func testNumbersAreTheHeaders() throws {
        let headers = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .appendingPathComponent("../../include/cordwood").standardized
        let header = try ["cordwood.h", "upload.h"].map {
            try String(contentsOf: headers.appendingPathComponent($0), encoding: .utf8)
        }.joined()
        let statuses: [(String, UploadStatus)] = [
            ("CW_E_ARGUMENT", .argument), ("CW_E_CLOSED", .closed), ("CW_E_NOT_FOUND", .notFound),
            ("CW_E_PERMISSION", .permission), ("CW_E_IO", .io), ("CW_E_FULL", .full),
            ("CW_E_MEMORY", .memory), ("CW_E_LIMIT", .limit), ("CW_E_TIMEOUT", .timeout),
            ("CW_E_BUSY", .busy), ("CW_E_VERSION", .version), ("CW_E_DAMAGED", .damaged),
            ("CW_E_CONSENT", .consent), ("CW_E_NO_TARGET", .noTarget), ("CW_E_UPLOAD", .upload),
            ("CW_E_UNSUPPORTED", .unsupported), ("CW_E_EXISTS", .exists), ("CW_OK", .ok),
            ("CW_END", .end),
        ]
        for (name, status) in statuses {
            XCTAssertTrue(header.contains(" \(name) = \(status.rawValue)"), name)
        }
        let outcomes: [(String, OutcomeKind)] = [
            ("NONE", .none), ("SUCCESS", .success), ("REQUEST_FAILED", .requestFailed),
            ("REDIRECTION", .redirection), ("CLIENT", .client), ("SERVER", .server),
            ("UNKNOWN", .unknown),
        ]
        for (name, kind) in outcomes {
            XCTAssertTrue(header.contains("CW_OUTCOME_\(name) = \(kind.rawValue)"), name)
        }
        let words: [(String, UInt32)] = [
            ("CW_REMOVED_QUOTA", RemovalReason.quota.rawValue),
            ("CW_REMOVED_COUNT", RemovalReason.count.rawValue),
            ("CW_REMOVED_EXPIRED", RemovalReason.expired.rawValue),
            ("CW_REMOVED_CONSENT", RemovalReason.consent.rawValue),
            ("CW_CONSENT_GRANTED", Consent.granted.rawValue),
            ("CW_CONSENT_PENDING", Consent.pending.rawValue),
            ("CW_CONSENT_DENIED", Consent.denied.rawValue),
        ]
        for (name, number) in words { XCTAssertTrue(header.contains("\(name) = \(number)"), name) }
    }
}
