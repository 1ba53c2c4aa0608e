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

    /// Converts the ticks between two neighbouring pairs, or after the last one. `Line()` converts
    /// none.
    package struct Line {
        fileprivate var first: UInt64 = 1
        fileprivate var last: UInt64 = 0
        /// A point of the line, and its slope: `ns` per `ticks`.
        fileprivate var origin = Pair(ticks: 0, monotonic: 0, realtime: 0)
        fileprivate var ns: UInt64 = 1
        fileprivate var ticks: UInt64 = 1
        /// The monotonic clock goes back.
        fileprivate var falls = false
        /// UTC − monotonic ns.
        fileprivate var offset: UInt64 = 0

        @inline(__always)
        package func has(_ ticks: UInt64) -> Bool { ticks >= first && ticks <= last }

        /// Monotonic ns and UTC ns.
        @inline(__always)
        package func times(of ticks: UInt64) -> (monotonic: UInt64, realtime: UInt64) {
            let isBefore = ticks < origin.ticks
            let distance = isBefore ? origin.ticks &- ticks : ticks &- origin.ticks
            let (quotient, rest) = scaled(distance)
            let monotonic =
                isBefore == falls
                ? origin.monotonic &+ quotient
                : origin.monotonic &- quotient &- (rest > 0 ? 1 : 0)
            return (monotonic, monotonic &+ offset)
        }

        /// floor(distance × ns / ticks) modulo 2^64, and the remainder.
        @inline(__always)
        private func scaled(_ distance: UInt64) -> (quotient: UInt64, remainder: UInt64) {
            let product = distance.multipliedFullWidth(by: ns)
            if product.high == 0 { return product.low.quotientAndRemainder(dividingBy: ticks) }
            // The quotient's part above 2^64 is dropped; dividing the remainder cannot overflow.
            return ticks.dividingFullWidth((product.high % ticks, product.low))
        }
    }

    /// Monotonic ns and UTC ns of `ticks`.
    package func times(of ticks: UInt64) -> (monotonic: UInt64, realtime: UInt64) {
        line(at: ticks).times(of: ticks)
    }

    /// The line that converts `ticks`. A table without pairs takes ticks as ns.
    package func line(at ticks: UInt64) -> Line {
        var line = Line(first: 0, last: .max)
        guard !pairs.isEmpty else { return line }
        let index = lastPair(notAfter: ticks)
        let isLast = index == pairs.count &- 1
        if index > 0 { line.first = pairs[index].ticks }
        if !isLast { line.last = pairs[index &+ 1].ticks &- 1 }
        let from = isLast ? max(index &- 1, 0) : index
        line.origin = pairs[from]
        line.offset = pairs[index].realtime &- pairs[index].monotonic
        line.ns = 1_000_000_000
        line.ticks = ticksPerSecond == 0 ? 1_000_000_000 : ticksPerSecond
        if from &+ 1 < pairs.count, pairs[from &+ 1].ticks != line.origin.ticks {
            let next = pairs[from &+ 1]
            line.ticks = next.ticks &- line.origin.ticks
            line.falls = next.monotonic < line.origin.monotonic
            line.ns =
                line.falls
                ? line.origin.monotonic &- next.monotonic : next.monotonic &- line.origin.monotonic
        }
        return line
    }

    /// UTC of a monotonic time, from the last pair that is not after it, or from the first pair.
    package func realtime(ofMonotonic monotonic: UInt64) -> UInt64 {
        guard var best = pairs.first else { return monotonic }
        for pair in pairs where pair.monotonic <= monotonic { best = pair }
        return monotonic &+ (best.realtime &- best.monotonic)
    }

    /// The index of the last pair that is not later than `ticks`; 0 if all pairs are later.
    private func lastPair(notAfter ticks: UInt64) -> Int {
        var low = 0
        var high = pairs.count
        while low < high {
            let middle = (low &+ high) / 2
            if pairs[middle].ticks <= ticks { low = middle &+ 1 } else { high = middle }
        }
        return max(low &- 1, 0)
    }
}
