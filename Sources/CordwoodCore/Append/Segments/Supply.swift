// Keeps writers supplied: allocates blocks and faults in pages ahead of them, and makes the next
// segment before the current one is full. One value, on the supply thread alone; a writer that gets
// ahead of it waits a little, and then does the same in line (SegmentMakers). docs/CONCURRENCY.md,
// A6, A11.
// SAFETY: the supply thread alone unmaps segments while it runs, so `base` stays valid during a
// check; pages are faulted in only up to the segment's size.

import CCordwood
import CShims

/// The supply thread's state between two checks.
package struct Supply: Sendable {
    private var last = Position()
    private var lookedAt: UInt64 = 0
    private(set) var bytesPerSecond: UInt64 = 0
    private var taken: UInt64 = 0

    package init() {}

    /// How far writers have come in the lane.
    struct Position {
        var segment: UInt64 = 0
        var size: UInt64 = 0
        var used: UInt64 = 0

        /// Bytes taken since an earlier check. Several segments may have been filled meanwhile: at
        /// a full rate one lasts 10 ms.
        func since(_ last: Position) -> UInt64 {
            guard segment >= last.segment, segment - last.segment <= UInt64(CWI_SEGMENTS_MAX) else {
                return used  // another lane
            }
            guard segment > last.segment else { return used > last.used ? used - last.used : 0 }
            return last.size - last.used + (segment - last.segment - 1) * size + used
        }
    }

    /// Prepares what writers will take within the next 125 ms. Returns how many ns that will last,
    /// unless the helper is woken earlier.
    package mutating func prepare(_ engine: EngineBlock) -> UInt64 {
        guard let lane = unsafe EngineCore.readyLane(engine),
            let current = unsafe Claim.current(lane),
            let base = unsafe current.pointee.base
        else {
            measure(Position(), now: cw_monotonic_ns())
            return Self.longest
        }
        let header = UnsafeMutableRawPointer(base)
        let size = unsafe current.pointee.size
        let used = unsafe min(cwa_load_relaxed_u64(header + SegmentHeader.allocated), size)
        unsafe measure(
            Position(segment: current.pointee.number, size: size, used: used),
            now: cw_monotonic_ns())
        let reserve = reserve(used)
        // Writers that outrun the page faults of the current segment fill it before these are done.
        // Then the next segment, which costs a fourth of that, is more urgent.
        if bytesPerSecond > Self.urgentBytesPerSecond, taken > size / 4,
            unsafe Segments.spareCount(lane) == 0
        {
            unsafe supplySpares(engine, lane, current, left: size - used, reserve, atMost: 1)
        }
        if unsafe current.pointee.in_lane == 0 {
            let wanted = unsafe cwa_exchange_u64(Segments.wantedWord(lane), 0)
            unsafe Segments.supply(
                engine, lane, current, upTo: min(size, max(used + reserve, wanted)))
        }
        unsafe SegmentSize.tidySpares(engine, lane)
        unsafe supplySpares(engine, lane, current, left: size - used, reserve)
        unsafe keepRing(engine, lane, isHalf: used > size / 2)
        guard bytesPerSecond > 0 else { return Self.longest }
        return min(Self.longest, max(1_000_000, reserve * 500_000_000 / bytesPerSecond))
    }

    private static let longest: UInt64 = 200_000_000

    private static let urgentBytesPerSecond: UInt64 = 256 << 20

    /// Makes the next segment before it is needed, and as many as the reserve requires. Fresh ones
    /// hold no record, so filling them with zeros costs a fourth of what their page faults would.
    private func supplySpares(
        _ engine: EngineBlock, _ lane: LaneBlock, _ current: SegmentBlock, left: UInt64,
        _ reserve: UInt64, atMost: Int = freshMax
    ) {
        let size = unsafe current.pointee.size
        let isFirst = unsafe current.pointee.in_lane != 0
        let wants = left < (isFirst ? size / 4 * 3 : size / 2)
        var count = unsafe Segments.spareCount(lane)
        let segmentBytes = unsafe SegmentSize.of(engine)
        var ready = left + UInt64(count) * segmentBytes
        while count < atMost, wants && count == 0 || ready < reserve,
            unsafe !Segments.isRefused(lane),
            // The last segments within the quota are left for writers.
            unsafe count == 0 || Quota.left(engine) >= 3 * segmentBytes,
            let spare = unsafe makeSpare(engine, lane)
        {
            let bytes = unsafe spare.pointee.size
            let first = isFirst ? Segments.firstBytes : max(reserve, bytesPerSecond)
            unsafe Segments.fill(engine, lane, spare, upTo: min(bytes, first))
            unsafe Segments.putSpare(engine, lane, spare)
            count += 1
            ready += bytes
        }
    }

    private func makeSpare(_ engine: EngineBlock, _ lane: LaneBlock) -> SegmentBlock? {
        if unsafe MemorySegments.hasRoom(engine),
            let made = unsafe Segments.make(engine, lane, inMemory: true, isWhole: true)
        {
            return unsafe made
        }
        // Such a segment lasts a second at most.
        let isWhole = unsafe bytesPerSecond >= SegmentSize.of(engine)
        return unsafe Segments.make(engine, lane, isWhole: isWhole)
    }

    /// The most spares made ahead of the writers: fewer than are kept for reuse (Recycling).
    static let freshMax = 4

    /// Decides how many segments are worth reusing at this rate and releases the rest. The kernel
    /// may have written spares back, and a store into such a page would fault: once per segment,
    /// the next spare is mapped for writing again.
    private mutating func keepRing(_ engine: EngineBlock, _ lane: LaneBlock, isHalf: Bool) {
        let ring = unsafe min(
            cwa_load_relaxed_u32(SegmentSize.ringMaxWord(engine)),
            Recycling.ring(
                bytesPerSecond: bytesPerSecond, segmentBytes: SegmentSize.of(engine)))
        // ORDER: relaxed. A hint (A22).
        unsafe cwa_store_relaxed_u32(Recycling.ringWord(engine), ring)
        while unsafe Segments.spareCount(lane) > max(1, Int(ring)),
            let spare = unsafe Segments.takeSpare(lane)
        {
            unsafe Segments.destroy(engine, lane, spare)
        }
        // A writer may take it meanwhile, but only this thread unmaps a segment that was current.
        if isHalf, !isRefreshed, let spare = unsafe Segments.nextSpare(lane) {
            unsafe Recycling.populate(spare)
        }
        isRefreshed = isHalf
    }

    private var isRefreshed = false

    /// Small programs touch little; from 256 KiB on, 1 MiB ahead is worthwhile. At a high rate, as
    /// much as an eighth of a second takes: on a busy machine the supply thread may not run for
    /// that long. Never more than was written so far: a short burst is no rate.
    private func reserve(_ used: UInt64) -> UInt64 {
        let ahead: UInt64 = used > 256 << 10 ? 1 << 20 : used > 64 << 10 ? 256 << 10 : 32 << 10
        let rated = min(bytesPerSecond / 8, taken, Self.reserveMax)
        return max(ahead, (rated + 0xFFFF) & ~0xFFFF)
    }

    private static let reserveMax: UInt64 = 64 << 20

    /// The rate rises at once and falls over a fifth of a second.
    mutating func measure(_ position: Position, now: UInt64) {
        defer { (last, lookedAt) = (position, now) }
        guard lookedAt > 0, now > lookedAt else { return }
        let new = position.since(last)
        taken &+= new
        let elapsed = max(1_000_000, now - lookedAt)
        let rate = new * 1_000_000 / (elapsed / 1_000)
        if rate >= bytesPerSecond {
            bytesPerSecond = rate
        } else {
            let fall = (bytesPerSecond - rate) / 1_000 * min(1_000, elapsed / 200_000)
            bytesPerSecond = elapsed >= Self.longest ? rate : bytesPerSecond - fall
        }
    }
}

extension Segments {
    /// The bytes faulted in by one system call: longer calls hold up a writer's own fault.
    private static let step: UInt64 = 256 << 10

    /// Fewer populated bytes ahead than this wake the helper.
    private static let least: UInt64 = 512 << 10

    private static func populatedWord(_ segment: SegmentBlock) -> UnsafeMutableRawPointer {
        unsafe cwi_segment_populated_at(segment)
    }

    /// Grows and pre-faults in steps, on the supply thread. Pages that writers have already faulted
    /// in cost next to nothing.
    static func supply(
        _ engine: EngineBlock, _ lane: LaneBlock, _ segment: SegmentBlock, upTo: UInt64
    ) {
        let base = unsafe UnsafeMutableRawPointer(segment.pointee.base)!
        var populated = unsafe cwa_load_relaxed_u64(populatedWord(segment))
        while populated < upTo {
            let end = min(upTo, populated + step)
            guard unsafe grow(engine, lane, segment, upTo: end, nil),
                unsafe Mapping.populate(base + Int(populated), bytes: Int(end - populated))
            else { return }
            populated = end
            unsafe cwa_store_relaxed_u64(populatedWord(segment), populated)
        }
    }

    /// The same for a fresh spare, which no thread stores to yet.
    static func fill(
        _ engine: EngineBlock, _ lane: LaneBlock, _ spare: SegmentBlock, upTo: UInt64
    ) {
        let base = unsafe UnsafeMutableRawPointer(spare.pointee.base)!
        var populated = unsafe cwa_load_relaxed_u64(populatedWord(spare))
        while populated < upTo {
            let end = min(upTo, populated + step)
            guard unsafe grow(engine, lane, spare, upTo: end, nil),
                unsafe zeroAndPopulate(spare, base, populated, end - populated)
            else { return }
            populated = end
            unsafe cwa_store_relaxed_u64(populatedWord(spare), populated)
        }
    }

    /// Prepares bytes that only the caller may store to and has not stored to yet. False: they
    /// cannot be provided.
    private static func zeroAndPopulate(
        _ segment: SegmentBlock, _ base: UnsafeMutableRawPointer, _ offset: UInt64,
        _ bytes: UInt64
    ) -> Bool {
        // In a child that a handler forks in here, the descriptor's number means another file.
        var mask = sigset_t()
        unsafe cwi_block_signals(&mask)
        defer { unsafe cwi_restore_signals(&mask) }
        // A child that was forked earlier may have made its own segment in this slot.
        guard unsafe UnsafeMutableRawPointer(segment.pointee.base) == base else { return false }
        // Memory file systems allocate pages, not blocks.
        if bytes >= zeroedBytesMin, unsafe segment.pointee.memory_id == 0,
            unsafe Descriptors.holds(segment)
        {
            _ = unsafe FileCalls.writeZeros(
                segment.pointee.fd, offset: segment.pointee.file_offset &+ offset, bytes: bytes)
        }
        return unsafe Mapping.populate(base + Int(offset), bytes: Int(bytes))
    }

    /// Below this size, faulting in is faster than writing.
    private static let zeroedBytesMin: UInt64 = 32 << 10

    /// Faults in a chunk that the calling thread has claimed beyond the pre-faulted part. False:
    /// its pages cannot be provided, and storing there would kill the host.
    static func faultIn(
        _ segment: SegmentBlock, _ base: UnsafeMutableRawPointer, _ offset: UInt64,
        _ bytes: UInt64
    ) -> Bool {
        guard unsafe offset &+ bytes > cwa_load_relaxed_u64(populatedWord(segment)) else {
            return true
        }
        return unsafe zeroAndPopulate(segment, base, offset, bytes)
    }

    /// True if a writer's large chunk that ends here means that the helper should check now,
    /// earlier than planned.
    static func runsShort(_ segment: SegmentBlock, _ end: UInt64) -> Bool {
        let populated = unsafe cwa_load_relaxed_u64(populatedWord(segment))
        return unsafe populated < segment.pointee.size && populated < end + least
    }
}
