// Decides which of many writers makes the next segment if no spare is ready, and how the others
// wait. Writers, even in signal handlers. docs/CONCURRENCY.md, A10, A12.
// SAFETY: words of the lane's and the engine's blocks, which are never unmapped.

import CCordwood
import CShims

extension Segments {
    /// Gives the engine's threads some time, if no spare is ready or sealing is behind: supply
    /// makes segments alongside the writer, and retired segments stay in the host's memory until
    /// they are sealed. Not for calls that these threads may be waiting for, nor on an alternate
    /// stack, nor in a forked child, which may have no such threads. Not for small segments either:
    /// making one takes no longer than waiting for it, and a crowd fills them faster.
    static func awaitSupply(
        _ engine: EngineBlock, _ lane: LaneBlock, _ oldWord: UInt64, _ thread: ThreadBlock?
    ) {
        guard let thread = unsafe thread, unsafe thread.pointee.depth == 0,
            unsafe engine.pointee.overflow != UInt32(CW_OVERFLOW_DROP),
            unsafe SegmentSize.of(engine) >= awaitedBytesMin,
            unsafe cwi_tls_get().pointee.helper == 0,
            unsafe !EngineCore.isForked(engine), unsafe patience(engine, lane) > 0,
            cwi_on_alternate_stack() == 0
        else { return }
        let begin = cw_monotonic_ns()
        var pause: UInt32 = 50
        unsafe EngineCore.wake(engine)
        repeat {
            ThreadIdentity.pause(microseconds: pause)
            pause = min(pause * 2, 800)
            guard unsafe cwa_load_acquire_u64(Lanes.currentWord(lane)) == oldWord else { return }
        } while unsafe cw_monotonic_ns() &- begin < patience(engine, lane)
            && !isRefused(lane) && !Quota.isUsed(engine)
            && cwa_load_acquire_u32(engine) == UInt32(CWI_ENGINE_OPEN)
        // ORDER: relaxed. A hint: a wrong one costs a wait, or spares one (A12).
        if unsafe spareCount(lane) == 0 { unsafe cwa_store_relaxed_u32(lateWord(lane), 1) }
    }

    private static var awaitedBytesMin: UInt64 { 1 << 20 }
    /// About as long as a writer takes to make a segment of the usual size in line.
    private static var supplyWaitNs: UInt64 { 5_000_000 }
    /// Under CW_OVERFLOW_BLOCK, if no spare is ready.
    private static var blockedWaitNs: UInt64 { 2_000_000_000 }
    private static var sealingWaitNs: UInt64 { 20_000_000 }

    /// How long a writer waits for what the engine's threads have not done yet.
    private static func patience(_ engine: EngineBlock, _ lane: LaneBlock) -> UInt64 {
        let lacksSpare = unsafe spareCount(lane) == 0
        if unsafe lacksSpare && engine.pointee.overflow == UInt32(CW_OVERFLOW_BLOCK) {
            return blockedWaitNs
        }
        if unsafe unsealedBytes(engine, lane) >= unsealedBytesMax { return sealingWaitNs }
        // The first segment is needed before supply can have made any. If supply came late once, it
        // may not come soon: no writer waits again until it has made a spare.
        // ORDER: relaxed. A hint (A12).
        let isFirst = unsafe (Claim.current(lane)?.pointee.in_lane ?? 0) != 0
        let isLate = unsafe cwa_load_relaxed_u32(lateWord(lane)) != 0
        return lacksSpare && !isFirst && !isLate ? supplyWaitNs : 0
    }

    /// 1: writers waited for supply in vain, and it has made no spare since.
    static func lateWord(_ lane: LaneBlock) -> UnsafeMutableRawPointer {
        unsafe cwi_lane_supply_late_at(lane)
    }

    /// How much may wait for sealing before writers are slowed down.
    static var unsealedBytesMax: UInt64 { 64 << 20 }

    /// The bytes of segments that are full and not sealed yet: they count as the host's memory.
    static func unsealedBytes(_ engine: EngineBlock, _ lane: LaneBlock) -> UInt64 {
        let table = unsafe table(engine)
        let current = unsafe Claim.current(lane)
        var bytes: UInt64 = 0
        for i in 0..<Int(CWI_SEGMENTS_MAX) where unsafe table + i != current {
            let state = unsafe cwa_load_relaxed_u32(stateWord(table + i))
            if state == open || state == sealing { unsafe bytes &+= (table + i).pointee.size }
        }
        return bytes
    }

    /// One writer makes the segment; the others check every few microseconds whether it exists.
    /// After a millisecond without a result, one of them also becomes a maker, and after another
    /// millisecond the next: a stopped maker holds up no other writer, and a crowd does not make
    /// one segment each. nil: another segment is current now, or none can be made.
    static func makeInLine(
        _ engine: EngineBlock, _ lane: LaneBlock, _ oldWord: UInt64, _ thread: ThreadBlock?
    ) -> SegmentBlock? {
        let maker = unsafe makerWord(lane)
        let tid = cw_gettid()
        // A nested append does wait for a maker: makers block their signals, so it is another
        // thread. It never waits for a slot; some slots are reserved for nested appends.
        let isNested = unsafe !waits(thread)
        let waitsForSlot = unsafe thread != nil && !isNested
        // If sealing has fallen behind and every slot is taken, the writer is slowed down for a
        // bounded time. If the disk or the quota is full, the record is refused at once.
        let patience = cw_monotonic_ns() &+ 2_000_000_000
        // Segment 0 is small. Writers that filled a larger one before supply came will fill this
        // one, too.
        let isSoonFull = unsafe (SegmentBlock(bitPattern: UInt(oldWord))?.pointee.in_lane ?? 1) == 0
        var turn = Turn()
        while unsafe cwa_load_acquire_u64(Lanes.currentWord(lane)) == oldWord {
            if let spare = unsafe takeSpare(lane) { return unsafe spare }
            let hasSlot = unsafe isNested || hasFreeSlot(engine)
            let held = unsafe cwa_load_relaxed_u32(maker)
            var isMaker = held == tid
            if turn.hasCome(word: UInt64(held), isFree: held == 0, waits: hasSlot) {
                isMaker = unsafe cwa_cas_u32(maker, held, tid) || isMaker
            }
            if hasSlot, isMaker,
                let made = unsafe make(engine, lane, isWhole: isSoonFull, isNested: isNested)
            {
                // Fill it once for all waiting threads, instead of a page or a chunk at a time in
                // each of them.
                let bytes = unsafe isSoonFull ? made.pointee.ready : firstBytes
                unsafe fill(engine, lane, made, upTo: bytes)
                return unsafe made
            }
            // A slot that has become free may belong to another thread by now: go round again.
            guard waitsForSlot || hasSlot && !isMaker, unsafe !isRefused(lane),
                unsafe !Quota.isUsed(engine)
            else { return nil }
            guard cw_monotonic_ns() < patience else {
                // Slots are not being released: the next calls do not wait for one again.
                unsafe refuse(engine, lane, .notReady, ns: 1_000_000_000)
                return nil
            }
            if !hasSlot { unsafe EngineCore.wake(engine) }
            turn.pause(yields: hasSlot)
        }
        return nil
    }

    /// A nested append waits for a maker at most (makeInLine): anything else may be held by its own
    /// thread, which resumes only after it.
    static func waits(_ thread: ThreadBlock?) -> Bool {
        unsafe thread.map { unsafe $0.pointee.depth == 0 } ?? true
    }

    /// The last free slots are reserved for nested appends, which cannot wait for one.
    private static let nestedSlots = 32

    /// True if there is a slot that any append may take.
    static func hasFreeSlot(_ engine: EngineBlock) -> Bool {
        let table = unsafe table(engine)
        var count = 0
        for i in 0..<Int(CWI_SEGMENTS_MAX)
        where unsafe cwa_load_relaxed_u32(stateWord(table + i)) == free {
            count += 1
            if count > nestedSlots { return true }
        }
        return false
    }

    /// The calling thread left an append in which it may have been the maker.
    static func abandonMaking(_ engine: EngineBlock) {
        guard let lane = unsafe engine.pointee.lane else { return }
        _ = unsafe cwa_cas_u32(makerWord(lane), cw_gettid(), 0)
    }

    static func makerWord(_ lane: LaneBlock) -> UnsafeMutableRawPointer {
        unsafe cwi_lane_segment_maker_at(lane)
    }
}

/// Waits for another thread's work. A turn comes when the word is free, or has not changed for a
/// millisecond. The thread that takes the turn changes the word, so they go one at a time.
struct Turn {
    private var word: UInt64 = 0
    private var until: UInt64 = 0
    private var yields = 0

    mutating func hasCome(word now: UInt64, isFree: Bool, waits: Bool = true) -> Bool {
        if isFree { return true }
        let time = cw_monotonic_ns()
        if until == 0 || now != word || !waits {
            word = now
            until = time &+ 1_000_000
        }
        return time >= until
    }

    /// Yields a few times, then sleeps: a spinning thread takes the processor from the one that
    /// makes room.
    mutating func pause(yields isSoon: Bool = true) {
        yields += 1
        if isSoon, yields <= 8 {
            ThreadIdentity.yield()
        } else {
            ThreadIdentity.pause(microseconds: 50)
        }
    }
}
