// Following readers of Swift hosts wait without a thread and end with their task. A name that
// appears in the store wakes them, and the times between looks are those of FollowWait.

import CShims
import CordwoodCore
import CordwoodEngine
import Foundation
import XCTest

@testable import Cordwood
@testable import CordwoodStore

final class FollowTests: MessageCase {
    /// A wait that no time ends.
    private func endless() -> FollowWait {
        var times = FollowWait(isGrowing: false, held: nil)
        times.latest = .max
        return times
    }

    private func watch() throws -> DirectoryWatch { try StoreReader(path: store).makeWatch() }

    /// Events that have already reported that something may have changed.
    private func events() async throws -> FollowEvents {
        let events = FollowEvents(try watch())
        try await events.wait(endless())
        return events
    }

    private func threads() -> Int { DirectoryListing("/proc/self/task").names.count }

    /// More sequences wait than the pool has threads. Other tasks still run, on the pool's own
    /// threads: Dispatch would add one for each thread that is blocked.
    func testWaitingSequencesHoldNoThread() async throws {
        let count = 4 * ProcessInfo.processInfo.activeProcessorCount + 24
        let before = threads()
        let engine = self.engine!, log = self.log!
        log.info("first")
        let begun = (0..<count).map { expectation(description: "begun \($0)") }
        let ended = (0..<count).map { expectation(description: "ended \($0)") }
        let tasks = (0..<count).map { number in
            Task {
                var found: [String] = []
                for try await record in engine.reader(.follow) {
                    guard record.logger == "message" else { continue }
                    found.append(record.message)
                    if found.count == 1 { begun[number].fulfill() }
                    if found.count == 3 { break }
                }
                ended[number].fulfill()
                return found
            }
        }
        await fulfillment(of: begun, timeout: 120)
        let others = (0..<count).map { expectation(description: "other \($0)") }
        for other in others { Task { other.fulfill() } }
        await fulfillment(of: others, timeout: 120)
        XCTAssertLessThan(threads() - before, count / 2)
        log.info("second")
        // A lane that begins.
        let second = try Engine(directory: store)
        second.logger("message").info("third")
        await fulfillment(of: ended, timeout: 120)
        for task in tasks {
            let found = try await task.value
            XCTAssertEqual(found, ["first", "second", "third"])
        }
        try second.close()
    }

    /// Cancelled during the wait, and before it.
    func testCancellationEndsTheWait() async throws {
        let times = endless()
        for waitsFirst in [true, false] {
            let events = try await events()
            let begun = expectation(description: "begun")
            let ended = expectation(description: "ended")
            let task = Task {
                while !waitsFirst, !Task.isCancelled { await Task.yield() }
                begun.fulfill()
                defer { ended.fulfill() }
                try await events.wait(times)
            }
            if waitsFirst { await fulfillment(of: [begun], timeout: 120) }
            task.cancel()
            await fulfillment(of: waitsFirst ? [ended] : [begun, ended], timeout: 120)
            do {
                try await task.value
                XCTFail("the wait was not cancelled")
            } catch is CancellationError {}
        }
    }

    func testCancellationEndsTheSequence() async throws {
        let engine = self.engine!
        let begun = expectation(description: "begun")
        let ended = expectation(description: "ended")
        log.info("first")
        let task = Task {
            defer { ended.fulfill() }
            for try await record in engine.reader(.follow) where record.message == "first" {
                begun.fulfill()
            }
        }
        await fulfillment(of: [begun], timeout: 120)
        task.cancel()
        await fulfillment(of: [ended], timeout: 120)
        do {
            try await task.value
            XCTFail("the sequence ended without an error")
        } catch is CancellationError {}
    }

    /// Names in lanes/ and archives/, before the wait and during it; one change is reported once.
    func testNamesEndTheWait() async throws {
        let times = endless()
        let events = try await events()
        for (number, place) in ["lanes", "archives", "lanes"].enumerated() {
            let begun = expectation(description: "begun")
            let ended = expectation(description: "ended")
            let task = Task {
                begun.fulfill()
                defer { ended.fulfill() }
                try await events.wait(times)
            }
            if number > 0 { await fulfillment(of: [begun], timeout: 120) }
            TestFiles.write([1], to: "\(store)/\(place)/.new-\(number)")
            if number == 0 { await fulfillment(of: [begun], timeout: 120) }
            await fulfillment(of: [ended], timeout: 120)
            try await task.value
        }
    }

    /// The command line's way of waiting.
    func testNamesEndTheBlockingWait() throws {
        let watch = try watch()
        let thread = Thread { [store] in TestFiles.write([1], to: "\(store)/archives/.new") }
        thread.start()
        endless().block(watch)
        var one = pollfd(fd: watch.descriptor, events: Int16(POLLIN), revents: 0)
        XCTAssertEqual(poll(&one, 1, 0), 0, "the change was taken")
    }

    /// Records are held back 100 ms for slower threads; the reader looks again sooner.
    func testTimes() throws {
        let ms: UInt64 = 1_000_000
        var options = ReaderOptions()
        options.follow = true
        let growing = try StoreReader(path: store, options: options)
        while growing.nextRecord() != nil {}
        var times = growing.followWait()
        XCTAssertEqual(times.latest - times.earliest, 80 * ms)
        // Seen while it is held, unless this thread was stopped for as long.
        var isHeld = false
        for _ in 0..<1_000 where !isHeld {
            while growing.nextRecord() != nil {}
            let before = cw_monotonic_ns()
            log.info("young")
            let after = cw_monotonic_ns()
            guard growing.nextRecord() == nil else { continue }
            isHeld = true
            times = growing.followWait()
            XCTAssertGreaterThanOrEqual(times.latest, before + 100 * ms)
            XCTAssertLessThanOrEqual(times.latest, max(times.earliest, after + 100 * ms + 1))
        }
        XCTAssertTrue(isHeld)
        for strange: UInt64 in [.max / 2, .max] {
            let ahead = FollowWait(isGrowing: true, held: strange)
            XCTAssertLessThanOrEqual(
                ahead.latest - ahead.earliest, 100 * ms, "a time that is no record's")
        }
        try engine.close()
        let still = try StoreReader(path: store, options: options)
        while still.nextRecord() != nil {}
        times = still.followWait()
        XCTAssertEqual(times.latest - times.earliest, 990 * ms)
    }
}
