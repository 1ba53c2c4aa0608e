// Keeping writers supplied: blocks allocated and pages faulted in ahead of them, and the next
// segment made before the current one is full. One value, on the supply thread alone; a writer that
// gets ahead of it does the same in line (Segments). docs/CONCURRENCY.md, A6, A11.
// SAFETY: the supply thread alone unmaps segments while it runs, so `base` holds through a look;
// what is faulted in ends at the segment's size.

import CCordwood
import CShims
import Glibc

/// What the supply thread remembers between two looks.
package struct Supply: Sendable {
    private var segment: UInt64 = 0
    private var used: UInt64 = 0
    private var lookedAt: UInt64 = 0
    private(set) var bytesPerSecond: UInt64 = 0

    package init() {}

    /// Sees to it that what writers take within the next 50 ms lies ready. Returns for how many ns
    /// it will do, unless somebody wakes the helper.
    package mutating func prepare(_ engine: EngineBlock) -> UInt64 {
        guard let lane = unsafe EngineCore.readyLane(engine),
            let current = unsafe Claim.current(lane),
            let base = unsafe current.pointee.base
        else { return Self.longest }
        let header = UnsafeMutableRawPointer(base)
        let size = unsafe current.pointee.size
        let used = unsafe min(cwa_load_relaxed_u64(header + SegmentHeader.allocated), size)
        unsafe measure(current.pointee.number, used)
        let reserve = reserve(used)
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

    /// The next segment before it is needed, and as many as the reserve takes. Fresh ones hold no
    /// record, so they are filled with zeros at a fourth of what their page faults would cost.
    private func supplySpares(
        _ engine: EngineBlock, _ lane: LaneBlock, _ current: SegmentBlock, left: UInt64,
        _ reserve: UInt64
    ) {
        let size = unsafe current.pointee.size
        let isFirst = unsafe current.pointee.in_lane != 0
        let wants = left < (isFirst ? size / 4 * 3 : size / 2)
        var count = unsafe Segments.spareCount(lane)
        let segmentBytes = unsafe SegmentSize.of(engine)
        var ready = left + UInt64(count) * segmentBytes
        while count < Self.freshMax, wants && count == 0 || ready < reserve,
            unsafe !Segments.isRefused(lane),
            // The last ones within the quota are for what is written.
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
            let made = unsafe Segments.make(engine, lane, inMemory: true)
        {
            return unsafe made
        }
        return unsafe Segments.make(engine, lane)
    }

    /// Spares made ahead of the writers, at most: fewer than are kept for use again (Recycling).
    private static let freshMax = 4

    /// How many segments are worth using again at this rate; what is too many goes. The kernel may
    /// have written spares back, and a store into such a page would fault: the next one is mapped
    /// for writing again once for each segment.
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
        // Whoever takes it meanwhile: this thread alone unmaps what was current.
        if isHalf, !isRefreshed, let spare = unsafe Segments.nextSpare(lane) {
            unsafe Recycling.populate(spare)
        }
        isRefreshed = isHalf
    }

    private var isRefreshed = false

    /// Small programs touch little; from 256 KiB on a segment is worth 1 MiB ahead (PROTOCOL,
    /// performance trap 2).
    private func reserve(_ used: UInt64) -> UInt64 {
        let ahead: UInt64 = used > 256 << 10 ? 1 << 20 : used > 64 << 10 ? 256 << 10 : 32 << 10
        return min(16 << 20, max(ahead, (bytesPerSecond / 20 + 0xFFFF) & ~0xFFFF))
    }

    /// The rate rises at once and falls over a fifth of a second.
    private mutating func measure(_ number: UInt64, _ nowUsed: UInt64) {
        let now = cw_monotonic_ns()
        defer { (segment, used, lookedAt) = (number, nowUsed, now) }
        guard lookedAt > 0, now > lookedAt else { return }
        let taken = number == segment && nowUsed >= used ? nowUsed - used : nowUsed
        let elapsed = max(1_000_000, now - lookedAt)
        let rate = taken * 1_000_000 / (elapsed / 1_000)
        if rate >= bytesPerSecond {
            bytesPerSecond = rate
        } else {
            let fall = (bytesPerSecond - rate) / 1_000 * min(1_000, elapsed / 200_000)
            bytesPerSecond = elapsed >= Self.longest ? rate : bytesPerSecond - fall
        }
    }
}

extension Segments {
    /// Bytes faulted in by one system call: longer ones hold up a writer's own fault.
    private static let step: UInt64 = 256 << 10

    /// Room where fewer populated bytes lie ahead wakes the helper.
    private static let least: UInt64 = 512 << 10

    private static func populatedWord(_ segment: SegmentBlock) -> UnsafeMutableRawPointer {
        unsafe cwi_segment_populated_at(segment)
    }

    /// Grows and pre-faults, in steps, from the supply thread. Pages that writers have faulted in,
    /// where they got ahead, cost next to nothing.
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

    /// The same for a fresh spare, in which nobody stores yet.
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

    /// Bytes that the caller alone may store to and has not stored to yet. False: they cannot be
    /// had.
    private static func zeroAndPopulate(
        _ segment: SegmentBlock, _ base: UnsafeMutableRawPointer, _ offset: UInt64,
        _ bytes: UInt64
    ) -> Bool {
        // A child forked by a handler in here finds another file under the descriptor's number.
        var mask = sigset_t()
        unsafe cwi_block_signals(&mask)
        defer { unsafe cwi_restore_signals(&mask) }
        // And one that was forked before may have made its own segment in this slot.
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

    /// Fewer bytes are faulted in faster than they are written.
    private static let zeroedBytesMin: UInt64 = 32 << 10

    /// A chunk that the calling thread has claimed, beyond what is pre-faulted. False: its pages
    /// cannot be had, and storing there would kill the host.
    static func faultIn(
        _ segment: SegmentBlock, _ base: UnsafeMutableRawPointer, _ offset: UInt64,
        _ bytes: UInt64
    ) -> Bool {
        guard unsafe offset &+ bytes > cwa_load_relaxed_u64(populatedWord(segment)) else {
            return true
        }
        return unsafe zeroAndPopulate(segment, base, offset, bytes)
    }

    /// A writer took a large chunk that ends here: true where the helper should look now, not when
    /// it meant to.
    static func runsShort(_ segment: SegmentBlock, _ end: UInt64) -> Bool {
        let populated = unsafe cwa_load_relaxed_u64(populatedWord(segment))
        return unsafe populated < segment.pointee.size && populated < end + least
    }
}
