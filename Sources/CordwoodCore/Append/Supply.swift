// Keeping writers supplied: blocks allocated and pages faulted in ahead of them, and the next
// segment made before the current one is full. One value, on the supply thread alone; a writer that
// gets ahead of it does the same in line (Segments). docs/CONCURRENCY.md, A6, A11.
// SAFETY: the supply thread alone unmaps segments while it runs, so `base` holds through a look;
// what is faulted in ends at the segment's size.

import CCordwood
import CShims

/// What the supply thread remembers between two looks.
public struct Supply: Sendable {
    private var segment: UInt64 = 0
    private var used: UInt64 = 0
    private var lookedAt: UInt64 = 0
    private(set) var bytesPerSecond: UInt64 = 0

    public init() {}

    /// Sees to it that what writers take within the next 50 ms lies ready. Returns for how many ns
    /// it will do, unless somebody wakes the helper.
    public mutating func prepare(_ engine: EngineBlock) -> UInt64 {
        guard let lane = unsafe EngineCore.readyLane(engine),
            let current = unsafe lane.pointee.current,
            let base = unsafe current.pointee.base
        else { return Self.longest }
        let header = UnsafeMutableRawPointer(base)
        let size = unsafe current.pointee.size
        let used = unsafe min(cwa_load_relaxed_u64(header + SegmentHeader.allocated), size)
        unsafe measure(current.pointee.number, used)
        let reserve = reserve(used)
        if unsafe current.pointee.in_lane == 0 {
            unsafe Segments.supply(engine, lane, current, upTo: min(size, used + reserve))
        }
        let wantsSpare = unsafe used > (current.pointee.in_lane != 0 ? size / 4 : size / 2)
        if wantsSpare || size - used < reserve, unsafe !Segments.hasSpare(lane),
            let spare = unsafe Segments.make(engine, lane)
        {
            let first = unsafe current.pointee.in_lane != 0 ? Segments.firstBytes : reserve
            unsafe Segments.supply(engine, lane, spare, upTo: min(spare.pointee.size, first))
            unsafe Segments.putSpare(engine, lane, spare)
        }
        guard bytesPerSecond > 0 else { return Self.longest }
        return min(Self.longest, max(1_000_000, reserve * 500_000_000 / bytesPerSecond))
    }

    private static let longest: UInt64 = 200_000_000

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
        unsafe UnsafeMutableRawPointer(segment) + MemoryLayout<cwi_segment>.offset(of: \.populated)!
    }

    /// Grows and pre-faults, in steps, from the supply thread.
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

    /// A writer took a large chunk that ends here: true where the helper should look now, not when
    /// it meant to.
    static func runsShort(_ segment: SegmentBlock, _ end: UInt64) -> Bool {
        let populated = unsafe cwa_load_relaxed_u64(populatedWord(segment))
        return unsafe populated < segment.pointee.size && populated < end + least
    }
}
