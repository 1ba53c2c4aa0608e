// A flush to the machine keeps its deadline, and calls that wait together share one sync.

import CordwoodCore
import Foundation
import XCTest

@testable import Cordwood
@testable import CordwoodEngine

final class FlusherTests: XCTestCase {
    private static func start(_ body: @escaping @Sendable () -> Void) -> Bool {
        Thread.detachNewThread(body)
        return true
    }

    func testDeadlineWhileTheDiskHangs() {
        let flusher = Flusher()
        let disk = DispatchSemaphore(value: 0)
        let hang: @Sendable () -> Int32 = {
            disk.wait()
            return 0
        }
        XCTAssertEqual(
            flusher.flush(Deadline(timeoutMs: 20), start: Self.start, sync: hang), .timeout)
        disk.signal()
        disk.signal()
        XCTAssertEqual(
            flusher.flush(Deadline(timeoutMs: .max), start: Self.start, sync: hang), .done(0))
        flusher.stop()
        XCTAssertEqual(
            flusher.flush(Deadline(timeoutMs: .max), start: Self.start, sync: hang), .closed)
    }

    func testCallsThatWaitTogetherShareASync() {
        let flusher = Flusher()
        let disk = DispatchSemaphore(value: 0)
        let began = DispatchSemaphore(value: 0)
        let syncs = Syncs()
        let sync: @Sendable () -> Int32 = {
            syncs.add()
            began.signal()
            disk.wait()
            return 5
        }
        let callers = DispatchGroup()
        func call() {
            callers.enter()
            Thread.detachNewThread {
                XCTAssertEqual(
                    flusher.flush(Deadline(timeoutMs: .max), start: Self.start, sync: sync),
                    .done(5))
                callers.leave()
            }
        }
        call()
        began.wait()
        // These come while the first sync runs, which does not cover them; one more does.
        for _ in 0..<8 { call() }
        while flusher.waitingCount < 8 { sched_yield() }
        disk.signal()
        disk.signal()
        callers.wait()
        XCTAssertEqual(syncs.count, 2)
        flusher.stop()
    }

    func testWithoutAThreadTheCallSyncs() {
        let flusher = Flusher()
        for error in [0, EIO] {
            XCTAssertEqual(
                flusher.flush(Deadline(timeoutMs: 0), start: { _ in false }, sync: { error }),
                .done(error))
        }
        flusher.stop()
        XCTAssertEqual(
            flusher.flush(Deadline(timeoutMs: 0), start: { _ in false }, sync: { 0 }), .closed)
    }
}

private final class Syncs: @unchecked Sendable {
    // SAFETY: changed and read under the lock.
    private let lock = NSLock()
    private var held = 0

    func add() { lock.withLock { held += 1 } }
    var count: Int { lock.withLock { held } }
}
