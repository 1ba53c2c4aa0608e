// What a server sees of 100,000 engines that return after an outage, second by second: the real
// Backoff and the real parsing of Retry-After, under the rules of uploading (docs/UPLOADS.md). A
// client without an answer tries again at the time in its state, not at its timer's next tick. With
// CORDWOOD_STORM=FILE the curves are written there, for Benchmarks/storm.py to draw.

import CordwoodStore
import CordwoodTestSupport
import Foundation
import XCTest

@testable import CordwoodShip

private func below(_ bound: Int, _ dice: inout SplitMix) -> Int {
    Int(dice.next().multipliedFullWidth(by: UInt64(bound)).high)
}

/// Time in whole seconds; every client has one target.
private struct Storm {
    enum Waiting {
        /// Backoff as it is.
        case ours
        /// The same ceilings without jitter.
        case ceilings
        /// No backoff: every tick of a 30 s timer that started with the client.
        case ticks
    }

    var clients = 100_000
    /// Nothing answers before this second.
    var outageS = 3_600
    var horizonS = 3 * 3_600
    /// Clients first have something to send within this many seconds, evenly spread.
    var firstWithinS = 1
    var waiting = Waiting.ours
    /// Requests per second that the server can take; the others get 503 without Retry-After.
    var capacity = Int.max
    /// The archives that wait at each client.
    var archives = 1
    /// A refusal holds all archives of the client, as `RetryReason.busy` does; false: only its own.
    var holdsTarget = true

    struct Result {
        var requests: [Int]
        var refused = 0
        /// Second in which the last archive was taken; nil: not within the horizon.
        var doneS: Int?

        /// The most requests in one second, from then on.
        func peak(from second: Int) -> Int { requests[second...].max() ?? 0 }
    }

    func run(seed: UInt64 = 1) -> Result {
        var dice = SplitMix(seed)
        var result = Result(requests: Array(repeating: 0, count: horizonS))
        var due = Array(repeating: [Int32](), count: horizonS)
        for client in 0..<clients { due[below(firstWithinS, &dice)].append(Int32(client)) }
        var pairs = Array(
            repeating: (attempts: UInt32(0), notBefore: Int32(0)), count: clients * archives)
        var left = clients * archives
        let sent = UInt32.max
        for second in 0..<horizonS {
            var room = second < outageS ? 0 : capacity
            // Which client comes first within a second is chance.
            var now = due[second]
            due[second] = []
            if capacity < now.count { shuffle(&now, &dice) }
            for client in now {
                let first = Int(client) * archives
                var wake = Int32.max
                var hold = Int32(0)
                for pair in first..<first + archives where pairs[pair].attempts != sent {
                    if pairs[pair].notBefore <= second, hold <= second {
                        result.requests[second] += 1
                        if room > 0 {
                            room -= 1
                            left -= 1
                            pairs[pair].attempts = sent
                            if left == 0 { result.doneS = second }
                            continue
                        }
                        result.refused += 1
                        pairs[pair].attempts += 1
                        let delay = delayS(pairs[pair].attempts, second, &dice)
                        pairs[pair].notBefore = Int32(clamping: second + delay)
                        if holdsTarget || second < outageS {
                            hold = max(hold, pairs[pair].notBefore)
                        }
                    }
                    wake = min(wake, pairs[pair].notBefore)
                }
                wake = max(wake, hold, Int32(second + 1))
                if wake < horizonS, wake != .max { due[Int(wake)].append(client) }
            }
            if left == 0 { break }
        }
        return result
    }

    /// Rounded up: a client never comes early.
    private func delayS(_ attempts: UInt32, _ second: Int, _ dice: inout SplitMix) -> Int {
        switch waiting {
        case .ours: Int((Backoff.delayMs(attempts: attempts, random: dice.next()) + 999) / 1_000)
        case .ceilings:
            Int((Backoff.delayMs(attempts: attempts, random: .max) + 999) / 1_000)
        case .ticks: 30
        }
    }

    private func shuffle(_ list: inout [Int32], _ dice: inout SplitMix) {
        for index in stride(from: list.count - 1, to: 0, by: -1) {
            list.swapAt(index, below(index + 1, &dice))
        }
    }
}

final class StormTests: XCTestCase {
    private var isFull: Bool { ProcessInfo.processInfo.environment["CORDWOOD_STORM"] != nil }
    nonisolated(unsafe) private static var curves: [String: [Int]] = [:]

    override class func tearDown() {
        guard let path = ProcessInfo.processInfo.environment["CORDWOOD_STORM"] else { return }
        let data = try? JSONSerialization.data(
            withJSONObject: curves, options: [.sortedKeys])
        try? data?.write(to: URL(fileURLWithPath: path))
        curves = [:]
    }

    /// All of them fail in one second, and again for an hour: the worst case for a return.
    func test_a_fleet_that_comes_back_does_not_storm() {
        let storm = Storm()
        let result = storm.run()
        let peak = result.peak(from: storm.outageS)
        XCTAssertLessThan(peak, 250, "requests in the worst second after the return")
        XCTAssertNotNil(result.doneS)
        XCTAssertLessThan(result.doneS ?? .max, 2 * storm.outageS + 60)
        StormTests.curves["ours"] = result.requests
        guard isFull else { return }
        for (name, waiting) in [("ceilings", Storm.Waiting.ceilings), ("ticks", .ticks)] {
            var other = storm
            other.waiting = waiting
            let found = other.run()
            XCTAssertEqual(found.peak(from: storm.outageS), storm.clients, name)
            StormTests.curves[name] = found.requests
        }
    }

    /// Timers that started together do not bring clients together again: whether they began within
    /// one second or within 30, the server sees the same after an hour.
    func test_ticks_do_not_bring_clients_together() throws {
        try full()
        var storm = Storm()
        storm.clients = 50_000
        let together = storm.run().peak(from: storm.outageS)
        storm.firstWithinS = 30
        let apart = storm.run(seed: 2).peak(from: storm.outageS)
        XCTAssertLessThan(together, 2 * apart)
        XCTAssertLessThan(apart, 2 * together)
    }

    /// Without an outage: a fleet that starts at once comes at once; spread over one interval of
    /// the timer it does not.
    func test_a_fleet_that_starts() {
        var storm = Storm()
        storm.clients = 100_000
        storm.outageS = 0
        storm.horizonS = 600
        let together = storm.run()
        XCTAssertEqual(together.peak(from: 0), storm.clients)
        storm.firstWithinS = 30
        let spread = storm.run()
        XCTAssertLessThan(spread.peak(from: 0), storm.clients / 25)
        StormTests.curves["start_together"] = together.requests
        StormTests.curves["start_spread"] = spread.requests
    }

    /// A server with room for a twentieth of them per second gets everything, with few refusals for
    /// each client.
    func test_a_server_with_too_little_room() {
        var storm = Storm()
        storm.clients = 20_000
        storm.outageS = 0
        storm.capacity = 1_000
        let result = storm.run()
        XCTAssertLessThan(result.doneS ?? .max, 120)
        XCTAssertLessThan(result.refused, 6 * storm.clients)
    }

    /// With a backlog at each client, a busy server gets one request, not one for each archive.
    func test_backlogs_at_a_server_with_too_little_room() {
        var storm = Storm()
        storm.clients = 2_000
        storm.archives = 20
        storm.outageS = 0
        storm.capacity = 200
        let held = storm.run()
        storm.holdsTarget = false
        let each = storm.run()
        print(
            "storm: 2,000 clients × 20 archives at 200 requests/s: \(held.refused) refusals in "
                + "\(held.doneS ?? -1) s; were each archive held by itself, \(each.refused) in "
                + "\(each.doneS ?? -1) s")
        XCTAssertLessThan(held.refused, each.refused / 10)
        // The last of them are stragglers either way.
        XCTAssertLessThan(held.doneS ?? .max, (each.doneS ?? 0) * 11 / 10)
        StormTests.curves["backlog_held"] = held.requests
        StormTests.curves["backlog_each"] = each.requests
    }

    /// A date in Retry-After is the same moment for all: what we add spreads them after it.
    func test_a_date_of_the_server_is_no_moment_for_all() throws {
        try full()
        var dice = SplitMix(1)
        let now: UInt64 = 1_800_000_000_000
        var outcome = TransferOutcome(kind: .server, httpStatus: 503, cause: "HTTP 503")
        outcome.headers = [("retry-after", "Fri, 15 Jan 2027 09:00:00 GMT")]
        var perSecond: [UInt64: Int] = [:]
        for client in 0..<UInt64(100_000) {
            // Asked within ten minutes, about an hour before.
            let asked = now - 3_600_000 + client * 6
            let verdict = AnswerVerdict.judge(
                outcome, isCollector: false, isOnlyIfAbsent: false, isEncodingProven: true,
                nowUnixMs: asked)
            guard case .retry(.server, let delayMs?) = verdict else {
                return XCTFail("\(verdict)")
            }
            let more = Backoff.spreadMs(delayMs: delayMs, random: dice.next())
            XCTAssertLessThanOrEqual(more, delayMs / 8)
            XCTAssertEqual(Backoff.spreadMs(delayMs: 29_999, random: dice.next()), 0)
            perSecond[(asked + delayMs + more) / 1_000, default: 0] += 1
        }
        let peak = perSecond.values.max() ?? 0
        print("storm: of 100,000 clients that were told one date, \(peak) come in one second")
        XCTAssertLessThan(peak, 1_000)
    }
}
