// B-SAP-9 and B-NET-3 as Swift hosts see them: a policy over the host's own settings, and an upload
// that fails as a typed error, from a call and from a task. Port 9 has no listener.

import CordwoodCore
import CordwoodStore
import CordwoodTestSupport
import Foundation
import XCTest

@testable import Cordwood
@testable import CordwoodEngine
@testable import CordwoodShip

final class PolicyEngineTests: XCTestCase {
    private func directory() throws -> String {
        let path = StorePlace.path("policy")
        addTeardownBlock { try? FileManager.default.removeItem(atPath: path) }
        return path
    }

    func testB_SAP_9_replacesAndGivesBack() throws {
        var options = EngineOptions()
        options.level = .warn
        let engine = try Engine(directory: directory(), options: options)
        defer { _ = try? engine.close() }
        let log = engine.logger("app.db")
        try engine.applyPolicy(json: #"{"levels": {"app": "trace"}}"#)
        XCTAssertTrue(log.isEnabled(.trace))
        XCTAssertThrowsError(try engine.applyPolicy(json: #"{"levels": {"app": "x"}}"#)) { error in
            XCTAssertEqual((error as? CordwoodError)?.status, -1)
        }
        XCTAssertTrue(log.isEnabled(.trace))
        try engine.applyPolicy(json: "{}")
        XCTAssertFalse(log.isEnabled(.info))
        XCTAssertTrue(log.isEnabled(.warn))
    }

    /// B-ROLL-5: on a busy machine the first look at the files may come late.
    func testTheQuotaHoldsFromTheStart() throws {
        var options = EngineOptions()
        options.quotaBytes = 4 << 20
        for _ in 0..<8 {
            let engine = try Engine(directory: directory(), options: options)
            XCTAssertLessThan(Quota.left(engine.block), 4 << 20)
            try engine.close()
        }
    }

    func testParametersOfTargetsStartNoSecondLine() throws {
        let engine = try Engine(directory: directory())
        defer { _ = try? engine.close() }
        for word in ["a\nservice=b", "a\r\nservice=b", "a\rb", "a\0b"] {
            XCTAssertThrowsError(
                try engine.addTarget(.loki("http://127.0.0.1:9", tenant: word)), word
            ) { error in XCTAssertEqual((error as? CordwoodError)?.status, -1) }
        }
    }

    func testB_SAP_9_limitsUnderAPolicy() throws {
        var options = EngineOptions()
        options.quotaBytes = 1 << 30
        options.archivesMax = 5
        options.policyAllow = .all
        let settings = try Settings(directory: "/nowhere", options: options)
        func limits(_ json: String) throws -> RunningLimits {
            RunningLimits(settings, try PolicyDocument(json: Array(json.utf8)))
        }
        let host = RunningLimits(settings, nil)
        XCTAssertEqual(try limits("{}"), host)
        XCTAssertEqual(host.segmentBytes, 16 << 20)
        XCTAssertEqual(host.uploadIntervalSeconds, 30)
        XCTAssertTrue(host.isUploadEnabled)
        XCTAssertEqual(try limits(#"{"max_file_size_bytes": 100000}"#).segmentBytes, 1 << 20)
        XCTAssertEqual(try limits(#"{"max_file_size_bytes": 1100000}"#).segmentBytes, 1_114_112)
        XCTAssertEqual(
            try limits(#"{"quota_bytes": 33554432}"#).segmentBytes, 4 << 20, "an eighth")
        XCTAssertEqual(try limits(#"{"quota_bytes": 0}"#).retention.quotaBytes, 0)
        XCTAssertEqual(try limits(#"{"max_files": 0}"#).retention.archivesMax, 0)
        XCTAssertEqual(try limits(#"{"expiration_days": 2}"#).retention.expirationDays, 2)
        XCTAssertEqual(try limits(#"{"expiration_days": 2}"#).retention.archivesMax, 5)
        XCTAssertEqual(try limits(#"{"upload_interval_s": 7}"#).uploadIntervalSeconds, 7)
        XCTAssertEqual(try limits(#"{"upload_interval_s": 0}"#).uploadIntervalSeconds, 30)
        XCTAssertFalse(try limits(#"{"enabled": false}"#).isUploadEnabled)
        XCTAssertEqual(host.archiveMethod, .dense)
        XCTAssertEqual(try limits(#"{"archive_method": "plain"}"#).archiveMethod, .plain)
    }

    /// Whatever the host's limits and the policy's are.
    func testWhatAPolicyMayLose() throws {
        var random = SplitMix(5)
        func pick<N: FixedWidthInteger>(_ numbers: [N]) -> N {
            numbers.randomElement(using: &random)!
        }
        func strict<N: FixedWidthInteger>(_ limit: N) -> N { limit == 0 ? .max : limit }
        for _ in 0..<2_000 {
            var options = EngineOptions()
            options.quotaBytes = pick([0, 1 << 20, 1 << 24, 1 << 30])
            options.archivesMax = pick([0, 3, 10, 500])
            options.expirationDays = pick([0, 1, 30])
            options.segmentBytes = pick([0, 1 << 17, 1 << 21, 1 << 26])
            options.policyAllow = PolicyAllowance(rawValue: pick([0, 1, 2, 3]))
            let quota: UInt64 = pick([0, 1, 1 << 22, 1 << 26, 1 << 31])
            let (files, days): (UInt64, UInt64) = (pick([0, 1, 12, 900]), pick([0, 1, 7, 60]))
            let file: UInt64 = pick([0, 1 << 16, 1 << 20, 1 << 22, 1 << 27])
            let level: UInt8 = pick([1, 21, 22, 24, 255])
            let json = """
                {"quota_bytes": \(quota), "max_files": \(files), "expiration_days": \(days),
                 "max_file_size_bytes": \(file), "levels": {"": \(level)}}
                """
            let running = RunningLimits(
                try Settings(directory: "/nowhere", options: options),
                try PolicyDocument(json: Array(json.utf8)))
            let erases = options.policyAllow.contains(.erase)
            func check(
                _ key: String, _ wanted: UInt64, _ own: UInt64, _ got: UInt64, _ floor: UInt64
            ) {
                let least = erases ? min(floor, strict(own)) : strict(own)
                XCTAssertEqual(strict(got), max(strict(wanted), least), "\(key): \(json)")
                XCTAssertEqual(
                    running.withheld.contains(key), strict(wanted) < least, "\(key): \(json)")
            }
            check(
                "quota_bytes", quota, options.quotaBytes, running.retention.quotaBytes,
                16 << 20)
            check(
                "max_files", files, UInt64(options.archivesMax),
                UInt64(running.retention.archivesMax), 10)
            check(
                "expiration_days", days, UInt64(options.expirationDays),
                UInt64(running.retention.expirationDays), 1)
            // 0 is the library's own size; a quota holds segments down, the host's own one too.
            let size = { (bytes: UInt64) in bytes == 0 ? Settings.segmentBytesDefault : bytes }
            let least = min(erases ? 1 << 20 : .max, size(options.segmentBytes))
            XCTAssertEqual(
                running.segmentBytes,
                Settings.segmentBytes(
                    max(size(file), least), quotaBytes: running.retention.quotaBytes), json)
            XCTAssertEqual(
                running.withheld.contains("max_file_size_bytes"), size(file) < least, json)
            let isHeard = level <= 21 || options.policyAllow.contains(.off)
            XCTAssertEqual(running.levels.count, isHeard ? 1 : 0, json)
            XCTAssertEqual(running.withheld.contains("levels"), !isHeard, json)
        }
    }

    func testArchivesArePlainWhileTheHelperIsBehind() throws {
        let engine = try Engine(directory: directory())
        defer { _ = try? engine.close() }
        let services = try engine.services()
        XCTAssertEqual(services.form.method, .dense)
        XCTAssertEqual(services.form(segmentsWaiting: 4).method, .dense)
        XCTAssertEqual(services.form(segmentsWaiting: 5).method, .plain)
        try engine.applyPolicy(json: #"{"archive_method": "plain"}"#)
        XCTAssertEqual(services.form.method, .plain)
        try engine.applyPolicy(json: "{}")
        XCTAssertEqual(services.form.method, .dense)
    }

    func testTheTimeStepIsBounded() throws {
        var options = EngineOptions()
        XCTAssertEqual(try Settings(directory: "/nowhere", options: options).form.timeStepNs, 1)
        options.archiveTimeStepNs = 10_000
        XCTAssertEqual(
            try Settings(directory: "/nowhere", options: options).form.timeStepNs, 10_000)
        options.archiveTimeStepNs = 10_001
        XCTAssertThrowsError(try Settings(directory: "/nowhere", options: options)) { error in
            XCTAssertEqual((error as? CordwoodError)?.status, Status.limit)
        }
    }

    /// Explicit uploads in a row, each refused, keep asking for a look: it is made all the same.
    func testB_SAP_9_wishesDoNotPutALookOff() throws {
        final class Looks: @unchecked Sendable {
            // SAFETY: guarded by the lock.
            private let lock = NSLock()
            private var messages: [String] = []
            func note(_ message: String) { lock.withLock { messages.append(message) } }
            var all: [String] { lock.withLock { messages } }
        }
        var options = PolicyOptions(url: "http://127.0.0.1:9/policy")
        options.intervalSeconds = 3_600
        // Without wishes the next look would be a second away, or more.
        let keeper = PolicyKeeper(
            try PolicySource(options), directory: FilePath(try directory()), soonMs: 100)
        let looks = Looks()
        let ended = expectation(description: "stopped")
        Thread.detachNewThread {
            keeper.run(apply: { _ in true }, report: { looks.note($0.message) })
            ended.fulfill()
        }
        let bound = Date().addingTimeInterval(20)
        while looks.all.count < 3, Date() < bound {
            keeper.lookSoon()
            usleep(1_000)
        }
        keeper.stop()
        wait(for: [ended], timeout: 20)
        XCTAssertEqual(
            Array(looks.all.prefix(3)),
            [String](repeating: "no policy came; the last one holds", count: 3))
    }

    func testB_SAP_9_levelsOfHostAndPolicy() {
        var table = LevelTable(root: 9, [(prefix: "a", level: 13), (prefix: "a.b", level: 17)])
        table = table.following([(prefix: "", level: 5), (prefix: "a.b", level: 1)])
        XCTAssertEqual(
            ["x", "a", "ax", "a.b", "a.b.c", "a.bc"].map { table.threshold($0) },
            [5, 13, 5, 1, 1, 13])
        table = table.setting("a.b", 21)!
        XCTAssertEqual(table.threshold("a.b.c"), 21, "the host named it again")
        table = table.following([])
        XCTAssertEqual(["x", "a", "a.b"].map { table.threshold($0) }, [9, 13, 21])
    }

    private func engineWithNobody() throws -> Engine {
        let engine = try Engine(directory: directory())
        var target = TargetOptions.http("http://127.0.0.1:9/p?key=secret", format: "ndjson")
        target.name = "nobody"
        try engine.addTarget(target)
        engine.logger("a").info("x")
        return engine
    }

    private func check(_ error: any Error) {
        guard let error = error as? CordwoodError,
            case .requestFailed(let failure)? = error.transfer
        else { return XCTFail("\(error)") }
        XCTAssertEqual(failure.target, "nobody")
        XCTAssertFalse(failure.detail.cause.isEmpty)
        let german = error.transfer!.localizedDescription(language: "de-DE")
        XCTAssertTrue(german.hasPrefix("Der Server war nicht zu erreichen"), german)
        XCTAssertFalse("\(error.transfer!)".contains("secret"))
    }

    func testB_NET_3_typedError() throws {
        let engine = try engineWithNobody()
        defer { _ = try? engine.close() }
        XCTAssertNil(try engine.lastTransferError())
        XCTAssertThrowsError(try engine.upload(timeout: .seconds(20))) { check($0) }
        XCTAssertNotNil(try engine.lastTransferError(target: "nobody"))
        XCTAssertNil(try engine.lastTransferError(target: "somebody"))
    }

    func testB_NET_3_fromATask() async throws {
        let engine = try engineWithNobody()
        do {
            _ = try await engine.upload()
            XCTFail("nobody took it")
        } catch {
            check(error)
        }
        try engine.close()
    }

    func testB_NET_1_everyOutcomeIsACase() {
        for raw in Int32(0)...6 {
            let kind = OutcomeKind(rawValue: raw)!
            let failure = TransferFailure(
                detail: FailureDetail(
                    kind: kind, httpStatus: 0, cause: "c", location: "", retryAfterMs: nil,
                    odata: nil),
                target: "t", archive: "a", attempt: 1, unixMs: 0)
            let error = TransferError(failure)
            XCTAssertEqual(error.failure, failure)
            switch (error, kind) {
            case (.requestFailed, .requestFailed), (.redirection, .redirection),
                (.client, .client), (.server, .server), (.unknown, .unknown), (.unknown, .none),
                (.unknown, .success):
                break
            default: XCTFail("\(kind)")
            }
        }
    }
}
