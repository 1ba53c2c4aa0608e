// Decides when a sealed segment's mapping may be released, or its file reused: only once no thread
// can store into it any more (CONCURRENCY, Quiescence). One thread at a time per engine, under the
// sealing lock. docs/CONCURRENCY.md, Quiescence.
// SAFETY: thread and segment blocks lie in memory that is never unmapped; a mapping is followed
// here only while its slot is SEALED, and only this thread changes that.

import CShims

enum Quiescence {
    /// After this, a thread that is idle, or busy with a chunk published in another segment, cannot
    /// store into a sealed one any more: it sets busy before it loads any segment pointer (R6).
    /// False: no fence could be issued now.
    static func fence() -> Bool { Membarrier.heavyFence() || Membarrier.isMissing }

    /// Call after `fence`. A busy thread may touch the segment that its block names, and no other:
    /// a claiming thread first names the segment and then checks that it is current (Claim.hold).
    static func isQuiet(_ engine: EngineBlock, _ segment: SegmentBlock) -> Bool {
        var inUse = false
        unsafe ThreadBlocks.forEach(engine) { thread in
            guard unsafe cwa_load_acquire_u64(AppendPath.busyWord(thread)) != 0 else { return }
            // ORDER: acquire. If the thread names another segment by now, or none, its last store
            // into the previous one is visible (ThreadBlocks.setSegment).
            let held = unsafe cwa_load_acquire_u64(ThreadBlocks.segmentWord(thread))
            if held == UInt64(UInt(bitPattern: segment)) { inUse = true }
        }
        return !inUse
    }

    static func isSealedFile(_ segment: SegmentBlock) -> Bool {
        // ORDER: acquire, and first: while a slot is in the making, its words belong to the maker
        // (A5).
        unsafe cwa_load_acquire_u32(Segments.stateWord(segment)) == Segments.sealed
            && segment.pointee.in_lane == 0
    }
}

extension EngineCore {
    /// Unmaps quiet sealed segments, except those worth reusing once they are archived (Recycling):
    /// the oldest, as many as the supply thread wants, with numbers below `keptBelow`. The archiver
    /// is too far behind for the others to stay in memory until then.
    package static func releaseQuiet(_ engine: EngineBlock, keptBelow: UInt64 = .max) {
        let spent = unsafe spentSegments(engine, keptBelow)
        guard unsafe !spent.isEmpty, Quiescence.fence() else { return }
        for i in unsafe spent.indices {
            let segment = unsafe spent[i]
            if unsafe !isAwaited(segment), unsafe Quiescence.isQuiet(engine, segment) {
                unsafe Segments.releaseMapping(segment)
            }
        }
    }

    /// Releases the pages of segments that are not worth reusing. They then no longer count as the
    /// host's memory; the file has them. Only of quiet segments, and not of private memory, which
    /// has no file behind it.
    package static func letPagesGo(_ engine: EngineBlock, keptBelow: UInt64 = .max) {
        guard unsafe !WriteThrough.isOn(engine) else { return }
        let spent = unsafe spentSegments(engine, keptBelow)
        guard unsafe !spent.isEmpty, Quiescence.fence() else { return }
        for i in unsafe spent.indices {
            let segment = unsafe spent[i]
            // A thread that still stores there must not meet a page that cannot be provided again.
            guard unsafe segment.pointee.populated != 0, unsafe !Lost.isLost(segment),
                unsafe Quiescence.isQuiet(engine, segment)
            else { continue }
            // From here on it cannot become a spare.
            unsafe segment.pointee.populated = 0
            unsafe Mapping.discard(
                UnsafeMutableRawPointer(segment.pointee.base)!, bytes: Int(segment.pointee.size))
        }
    }

    /// The sealed segments that are not worth keeping for reuse.
    private static func spentSegments(
        _ engine: EngineBlock, _ keptBelow: UInt64
    ) -> [SegmentBlock] {
        var kept: [SegmentBlock] = unsafe []
        var spent: [SegmentBlock] = unsafe []
        unsafe Segments.forEach(engine) { segment in
            guard unsafe Quiescence.isSealedFile(segment) else { return }
            if unsafe segment.pointee.number < keptBelow, unsafe Recycling.mayServe(engine, segment)
            {
                unsafe kept.append(segment)
            } else {
                unsafe spent.append(segment)
            }
        }
        let wanted = unsafe Recycling.wanted(engine)
        if unsafe kept.count > wanted {
            unsafe kept.sort { unsafe $0.pointee.number < $1.pointee.number }
            unsafe spent += kept[wanted...]
        }
        return unsafe spent
    }

    /// The segment lies in memory and is not archived. A flush to the machine copies it from there
    /// to the journal, and closing the engine puts it on the disk.
    private static func isAwaited(_ segment: SegmentBlock) -> Bool {
        unsafe segment.pointee.memory_id != 0 && segment.pointee.retired == 0
    }
}
