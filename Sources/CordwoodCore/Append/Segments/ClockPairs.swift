// The clock pairs in a segment's header (FORMAT §4, §6.1). One writer: the helper, under the
// sealing lock, or the maker of a segment before it is published. docs/CONCURRENCY.md, A18.
// SAFETY: the header page is mapped while the segment is held; the table is clockPairsMax pairs
// long, and no index exceeds it.

import CShims

enum ClockPairs {
    static func store(_ sample: ClockSample, at target: UnsafeMutableRawPointer) {
        unsafe target.storeBytes(of: sample.ticks, as: UInt64.self)
        unsafe target.storeBytes(of: sample.monotonic, toByteOffset: 8, as: UInt64.self)
        unsafe target.storeBytes(of: sample.boottime, toByteOffset: 16, as: UInt64.self)
        unsafe target.storeBytes(of: sample.realtime, toByteOffset: 24, as: UInt64.self)
    }

    /// Appends a pair; drops every second one when the table is full. False: the pair is not later
    /// than the last, for example within one tick of the coarse clock.
    @discardableResult
    static func add(_ sample: ClockSample, to header: UnsafeMutableRawPointer) -> Bool {
        let sequence = unsafe cwa_load_relaxed_u32(header + SegmentHeader.clockSequence)
        let pairs = unsafe header + SegmentHeader.clockPairs
        var count = unsafe Int(cwa_load_relaxed_u32(header + SegmentHeader.clockCount))
        guard count > 0, count <= SegmentHeader.clockPairsMax else { return false }
        let last = unsafe pairs + (count - 1) * ClockPair.bytes
        guard unsafe sample.ticks > last.load(as: UInt64.self),
            unsafe sample.monotonic >= last.load(fromByteOffset: 8, as: UInt64.self)
        else { return false }
        // ORDER: release twice around the change: a reader that copied under an odd or a changed
        // number copies again (A18).
        unsafe cwa_store_release_u32(header + SegmentHeader.clockSequence, sequence | 1)
        cwa_fence_full()
        if count == SegmentHeader.clockPairsMax { count = unsafe thin(pairs, count) }
        unsafe store(sample, at: pairs + count * ClockPair.bytes)
        unsafe cwa_store_release_u32(header + SegmentHeader.clockCount, UInt32(count + 1))
        unsafe cwa_store_release_u32(header + SegmentHeader.clockSequence, (sequence | 1) &+ 1)
        return true
    }

    /// Sets the only pair of a segment that holds no record.
    static func restart(_ sample: ClockSample, in header: UnsafeMutableRawPointer) {
        let sequence = unsafe cwa_load_relaxed_u32(header + SegmentHeader.clockSequence)
        // ORDER: release twice around the change, as in `add` (A18).
        unsafe cwa_store_release_u32(header + SegmentHeader.clockSequence, sequence | 1)
        cwa_fence_full()
        unsafe store(sample, at: header + SegmentHeader.clockPairs)
        unsafe cwa_store_release_u32(header + SegmentHeader.clockCount, 1)
        unsafe cwa_store_release_u32(header + SegmentHeader.clockSequence, (sequence | 1) &+ 1)
    }

    private static func thin(_ pairs: UnsafeMutableRawPointer, _ count: Int) -> Int {
        var kept = 1
        var i = 2
        while i < count - 1 {
            unsafe memmove(
                pairs + kept * ClockPair.bytes, pairs + i * ClockPair.bytes, ClockPair.bytes)
            kept += 1
            i += 2
        }
        unsafe memmove(
            pairs + kept * ClockPair.bytes, pairs + (count - 1) * ClockPair.bytes, ClockPair.bytes)
        return kept + 1
    }
}

extension ClockSample {
    /// Samples with the ticks of the engine's records. The coarse clock lags by up to one tick of
    /// the kernel: its sample is of the moment that it shows, so no later record is older.
    static func take(_ engine: EngineBlock) -> ClockSample {
        let kind = unsafe engine.pointee.clock_kind
        guard kind == SegmentHeader.clockCoarse else {
            return take(tsc: kind == SegmentHeader.clockTSC).shared
        }
        let shown = cw_coarse_ns()
        var sample = take(tsc: false)
        let ahead = sample.monotonic &- shown
        sample.ticks = shown
        sample.monotonic = shown
        sample.boottime &-= ahead
        sample.realtime &-= ahead
        return sample.shared
    }

    /// Ticks stay what records have.
    private var shared: ClockSample {
        var sample = self
        sample.monotonic = Machine.shared(monotonic: monotonic)
        sample.boottime = Machine.shared(boottime: boottime)
        return sample
    }
}
