// Converts ticks to monotonic time and UTC by the clock pairs of a segment (FORMAT §4), exactly to
// the last bit: products of two 64-bit differences need 128 bits and a separate sign. Built from
// bytes that may be damaged: pairs that do not ascend are left out.

import CordwoodCore

package struct ClockTable: Sendable {
    package struct Pair: Sendable, Equatable {
        package var ticks: UInt64
        package var monotonic: UInt64
        package var realtime: UInt64

        package init(ticks: UInt64, monotonic: UInt64, realtime: UInt64) {
            self.ticks = ticks
            self.monotonic = monotonic
            self.realtime = realtime
        }
    }

    package let pairs: [Pair]
    package let ticksPerSecond: UInt64

    package init(pairs: [Pair], ticksPerSecond: UInt64) {
        var kept: [Pair] = []
        kept.reserveCapacity(pairs.count)
        for pair in pairs {
            if let last = kept.last, pair.ticks < last.ticks { continue }
            kept.append(pair)
        }
        self.pairs = kept
        self.ticksPerSecond = ticksPerSecond
    }

    /// Reads a segment's header page.
    @safe init(header: UnsafeRawBufferPointer) {
        let count = min(
            Int(Bytes.u32(header, SegmentHeader.clockCount)), SegmentHeader.clockPairsMax)
        var pairs: [Pair] = []
        for index in 0..<count {
            let at = SegmentHeader.clockPairs &+ index &* ClockPair.bytes
            pairs.append(
                Pair(
                    ticks: Bytes.u64(header, at &+ ClockPair.ticks),
                    monotonic: Bytes.u64(header, at &+ ClockPair.monotonic),
                    realtime: Bytes.u64(header, at &+ ClockPair.realtime)))
        }
        self.init(
            pairs: pairs, ticksPerSecond: Bytes.u64(header, SegmentHeader.ticksPerSecond))
    }

    /// For a page of which only parts reached the disk: keeps the pairs that agree with the
    /// segment's creation time and its rate. Other pairs are from the file's previous life, or were
    /// never written.
    func agreeing(withCreated created: UInt64) -> ClockTable {
        func distance(_ a: UInt64, _ b: UInt64) -> UInt64 { a > b ? a &- b : b &- a }
        var kept: [Pair] = []
        for pair in pairs where pair.ticks != 0 && pair.realtime != 0 {
            guard let first = kept.first else {
                // The coarse clock lags by one tick of the kernel.
                if distance(pair.monotonic, created) <= 20_000_000 { kept.append(pair) }
                continue
            }
            let alone = ClockTable(pairs: [first], ticksPerSecond: ticksPerSecond)
            let span = distance(pair.monotonic, first.monotonic)
            let off = distance(alone.times(of: pair.ticks).monotonic, pair.monotonic)
            if off <= span / 100 &+ 1_000_000 { kept.append(pair) }
        }
        return ClockTable(pairs: kept, ticksPerSecond: ticksPerSecond)
    }

    /// Monotonic ns and UTC ns of `ticks`. `hint` is the pair found last: times usually ascend.
    package func times(
        of ticks: UInt64, hint: inout Int
    ) -> (monotonic: UInt64, realtime: UInt64) {
        guard !pairs.isEmpty else { return (ticks, ticks) }
        let index = lastPair(notAfter: ticks, hint: hint)
        hint = index
        let pair = pairs[index]
        let first = index == pairs.count &- 1 ? max(index &- 1, 0) : index
        let monotonic = interpolate(ticks, first)
        return (monotonic, monotonic &+ (pair.realtime &- pair.monotonic))
    }

    package func times(of ticks: UInt64) -> (monotonic: UInt64, realtime: UInt64) {
        var hint = 0
        return times(of: ticks, hint: &hint)
    }

    /// UTC of a monotonic time, from the last pair that is not after it, or from the first pair.
    package func realtime(ofMonotonic monotonic: UInt64) -> UInt64 {
        guard var best = pairs.first else { return monotonic }
        for pair in pairs where pair.monotonic <= monotonic { best = pair }
        return monotonic &+ (best.realtime &- best.monotonic)
    }

    private func lastPair(notAfter ticks: UInt64, hint: Int) -> Int {
        let count = pairs.count
        if hint < count, pairs[hint].ticks <= ticks {
            if hint &+ 1 == count || ticks < pairs[hint &+ 1].ticks { return hint }
        }
        var low = 0
        var high = count
        while low < high {
            let middle = (low &+ high) / 2
            if pairs[middle].ticks <= ticks { low = middle &+ 1 } else { high = middle }
        }
        return max(low &- 1, 0)
    }

    private func interpolate(_ ticks: UInt64, _ index: Int) -> UInt64 {
        let a = pairs[index]
        var numerator: UInt64 = 1_000_000_000
        var denominator = ticksPerSecond == 0 ? 1_000_000_000 : ticksPerSecond
        var falls = false
        if index &+ 1 < pairs.count, pairs[index &+ 1].ticks != a.ticks {
            let b = pairs[index &+ 1]
            denominator = b.ticks &- a.ticks
            falls = b.monotonic < a.monotonic
            numerator = falls ? a.monotonic &- b.monotonic : b.monotonic &- a.monotonic
        }
        let before = ticks < a.ticks
        let distance = before ? a.ticks &- ticks : ticks &- a.ticks
        let (quotient, inexact) = ClockTable.divide(distance, numerator, denominator)
        if before == falls { return a.monotonic &+ quotient }
        return a.monotonic &- quotient &- (inexact ? 1 : 0)
    }

    /// floor(a × b / c) modulo 2^64, and whether there was a remainder. `c` is not zero.
    private static func divide(
        _ a: UInt64, _ b: UInt64, _ c: UInt64
    ) -> (quotient: UInt64, inexact: Bool) {
        let product = a.multipliedFullWidth(by: b)
        // The quotient's part above 2^64 is dropped; dividing the remainder cannot overflow.
        let (quotient, rest) = c.dividingFullWidth((product.high % c, product.low))
        return (quotient, rest != 0)
    }
}
