// What the supply thread remembers of the clocks between two checks: when the next pair is due,
// whether UTC was set, and whether the processor's counter has changed its course (a suspend, a
// reset, a move to another machine). Under the sealing lock. docs/FORMAT.md §4; RELIABILITY R30.
// SAFETY: the current segment stays mapped under the sealing lock.

import CShims

package struct ClockWatch: Sendable {
    private var last: ClockSample?
    private var nextPairNs: UInt64 = 0
    private var pairs = 0
    /// A pair could not be added yet: check again soon.
    package private(set) var isWaiting = false

    /// A larger step of UTC is passed to readers at once.
    private static let stepNs: UInt64 = 1_000_000

    package init() {}

    /// True: from here on ticks mean other times, and the segment must be rolled.
    package mutating func look(_ engine: EngineBlock) -> Bool {
        var sample = unsafe ClockSample.take(engine)
        defer { last = sample }
        isWaiting = false
        guard let last else {
            nextPairNs = sample.monotonic &+ 10_000_000
            return false
        }
        // Until two pairs have refined it, the rate comes from a fifth of a millisecond.
        let tolerance: UInt64 = pairs < 2 ? 5 : 50
        if unsafe ClockWatch.hasJumped(engine, last, sample, tolerance) {
            unsafe EngineCore.endEpoch(engine, last: last, now: sample)
            pairs = 0
            nextPairNs = sample.monotonic &+ 10_000_000
            return true
        }
        let step = Int64(bitPattern: sample.offset &- last.offset)
        guard sample.monotonic >= nextPairNs || step.magnitude > ClockWatch.stepNs else {
            return false
        }
        guard unsafe EngineCore.addClockPair(engine) else {
            // The coarse clock has not advanced since the segment's last pair, and UTC may have
            // been set in between: the next check sees that step again.
            sample.realtime = sample.monotonic &+ last.offset
            isWaiting = true
            return false
        }
        pairs += 1
        nextPairNs =
            sample.monotonic
            &+ (pairs < 2 ? 100_000_000 : pairs < 10 ? 1_000_000_000 : 10_000_000_000)
        return false
    }

    /// The counter went back, or differs from the clock by more than 1 ms plus a `tolerance`th of
    /// the time.
    private static func hasJumped(
        _ engine: EngineBlock, _ last: ClockSample, _ now: ClockSample, _ tolerance: UInt64
    ) -> Bool {
        guard unsafe engine.pointee.clock_kind == SegmentHeader.clockTSC else { return false }
        guard now.ticks > last.ticks else { return true }
        let rate = unsafe max(1, engine.pointee.ticks_per_second)
        let product = (now.ticks - last.ticks).multipliedFullWidth(by: 1_000_000_000)
        guard product.high < rate else { return true }
        let told = rate.dividingFullWidth(product).quotient
        let passed = now.monotonic &- last.monotonic
        let apart = told > passed ? told - passed : passed - told
        return apart > 1_000_000 + passed / tolerance
    }
}

extension ClockSample {
    /// From monotonic time to UTC, modulo 2^64.
    var offset: UInt64 { realtime &- monotonic }
}

extension EngineCore {
    /// Adds a pair from before the jump to the current segment; if the segment is still empty, one
    /// from after it. Measures the rate anew: with the old rate, the next check would find a jump
    /// again.
    static func endEpoch(_ engine: EngineBlock, last: ClockSample, now: ClockSample) {
        unsafe engine.pointee.rate_ticks = 0
        unsafe engine.pointee.ticks_per_second = ClockSample.ticksPerSecond()
        guard let lane = unsafe readyLane(engine), let current = unsafe Claim.current(lane),
            let base = unsafe current.pointee.base
        else { return }
        let header = UnsafeMutableRawPointer(base)
        if unsafe isEmpty(current) {
            unsafe ClockPairs.restart(now, in: header)
        } else {
            unsafe ClockPairs.add(last, to: header)
        }
        _ = unsafe WriteThrough.header(engine, current)
    }
}
