// What 0.1 named otherwise still compiles, and does what its new form does.

import Cordwood
import CordwoodCore
import CordwoodEngine
import Foundation
import XCTest

final class DeprecatedTests: MessageCase {
    /// Answers with one status and records the timeouts of the requests.
    private final class Server: UploadTransport, @unchecked Sendable {
        let status: Int
        private let lock = NSLock()
        private var times: [[UInt64]] = []

        init(_ status: Int) { self.status = status }

        @available(*, deprecated, message: "as what it tests")
        func send(_ request: UploadRequest) throws -> UploadResponse {
            lock.withLock {
                times.append([UInt64(request.connectTimeoutMs), request.timeoutMs])
            }
            XCTAssertEqual(request.connectTimeout, .milliseconds(Int64(request.connectTimeoutMs)))
            XCTAssertEqual(request.timeout, .milliseconds(Int64(request.timeoutMs)))
            return UploadResponse(status: status)
        }

        func take() -> [[UInt64]] {
            lock.withLock {
                defer { times = [] }
                return times
            }
        }
    }

    @available(*, deprecated, message: "as what it tests")
    private func target(_ server: Server) -> TargetOptions {
        var options = TargetOptions.http("http://logs.example/in")
        options.transport = server
        options.connectTimeoutMs = 1_500
        options.requestTimeoutMs = 2_000
        XCTAssertEqual(options.connectTimeout, .milliseconds(1_500))
        XCTAssertEqual(options.requestTimeout, .seconds(2))
        return options
    }

    @available(*, deprecated, message: "as what it tests")
    func testTimeoutsOfATarget() throws {
        var options = TargetOptions(url: "http://logs.example/in")
        XCTAssertEqual([options.connectTimeoutMs, options.requestTimeoutMs], [0, 0])
        options.requestTimeout = .microseconds(1_001)
        XCTAssertEqual(options.requestTimeoutMs, 2, "rounded up")
        options.requestTimeout = .seconds(Int64.max)
        XCTAssertEqual(options.requestTimeoutMs, .max)
        options.requestTimeoutMs = 0
        XCTAssertNil(options.requestTimeout)
    }

    @available(*, deprecated, message: "as what it tests")
    func testUpload() throws {
        let server = Server(200)
        try engine.addTarget(target(server))
        log.info("one")
        XCTAssertEqual(try engine.upload(timeoutMs: 60_000).uploaded, 1)
        let times = server.take()
        XCTAssertEqual(times.map { $0[0] }, [1_500])
        XCTAssertGreaterThanOrEqual(times[0][1], 2_000)
        log.info("two")
        var result = UploadResult()
        XCTAssertEqual(try engine.upload(timeoutMs: .max, result: &result), Status.ok)
        XCTAssertEqual(result.uploaded, 1)
        log.info("three")
        XCTAssertEqual(try engine.upload(timeout: .seconds(60)).uploaded, 1)
    }

    @available(*, deprecated, message: "as what it tests")
    func testUploadThatFails() throws {
        try engine.addTarget(target(Server(503)))
        log.info("one")
        var result = UploadResult()
        XCTAssertEqual(try engine.upload(timeoutMs: 60_000, result: &result), Status.upload)
        XCTAssertEqual(result.failed, 1)
        for call in [{ try self.engine.upload(timeoutMs: 60_000) }, { try self.engine.upload() }] {
            XCTAssertThrowsError(try call()) {
                XCTAssertEqual(($0 as? CordwoodError)?.status, Status.upload)
            }
        }
    }

    @available(*, deprecated, message: "as what it tests")
    func testUploadInTheBackground() throws {
        try engine.addTarget(target(Server(200)))
        log.info("one")
        let done = expectation(description: "done")
        try engine.uploadAsync { status, result in
            XCTAssertEqual(status, Status.ok)
            XCTAssertEqual(result.uploaded, 1)
            done.fulfill()
        }
        wait(for: [done], timeout: 120)
    }

    @available(*, deprecated, message: "as what it tests")
    func testTransactions() throws {
        let one = try engine.transaction(7)
        XCTAssertEqual(one.attach(), Status.ok)
        log.info("inside")
        XCTAssertEqual(one.detach(), Status.ok)
        XCTAssertEqual(one.detach(), Status.argument)
        one.with { log.info("inside its body") }
        for record in try records() {
            XCTAssertEqual(
                record.fields.first { $0.key == "txn.id" }?.value, .string(one.id), record.message)
        }
        var result = UploadResult()
        XCTAssertEqual(
            try engine.flushTransactions(timeoutMs: 60_000, result: &result), Status.noTarget)
        for call in [
            { try self.engine.flushTransactions(timeoutMs: 60_000) },
            { try self.engine.flushTransactions(timeout: .seconds(60)) },
        ] {
            XCTAssertThrowsError(try call()) {
                XCTAssertEqual(($0 as? CordwoodError)?.status, Status.noTarget)
            }
        }
    }

    @available(*, deprecated, message: "as what it tests")
    func testFlushArchiveAndClose() throws {
        log.info("one")
        try engine.flush(.machine, timeoutMs: 60_000)
        try engine.flush(timeoutMs: .max)
        try engine.roll()
        try engine.archiveWait(timeoutMs: 60_000)
        XCTAssertEqual(try engine.stats().archivesWritten, 1)
        XCTAssertTrue(try engine.close(timeoutMs: 60_000))
        XCTAssertThrowsError(try engine.flush(timeoutMs: 0)) {
            XCTAssertEqual(($0 as? CordwoodError)?.status, Status.closed)
        }
    }

    @available(*, deprecated, message: "as what it tests")
    func testUploadWithoutAnEngine() throws {
        log.info("one")
        try engine.roll()
        try engine.archiveWait()
        try engine.close()
        let options = target(Server(200))
        let outcome = try StoreUploader.upload(
            directory: store, target: options, timeoutMs: 60_000)
        XCTAssertEqual(outcome.status, Status.ok)
        XCTAssertEqual(outcome.result.uploaded, 1)
        let session = try StoreUploader.Session(directory: store, target: options)
        XCTAssertEqual(try session.upload(timeoutMs: .max).status, Status.end)
        XCTAssertEqual(try session.upload(timeout: .seconds(60)).status, Status.end)
    }
}
