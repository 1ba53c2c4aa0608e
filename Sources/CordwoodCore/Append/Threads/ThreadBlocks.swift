// Thread blocks: the home of a thread's writing state in one engine, and how it is found, nested
// and given back. The pool belongs to the process, is never unmapped and reads as zero in a forked
// child. Only the owner changes a block; the helper only poisons `limit` and settles `verdict`.
// SAFETY: blocks are indexed below CWI_THREADS_MAX in the one pool.

import CShims

enum ThreadBlocks {
    /// Makes the pool. The first open calls it.
    static func makePool() -> Bool {
        let process = unsafe cwi_process_get()!
        if unsafe process.pointee.pool != nil { return true }
        let bytes = unsafe Int(CWI_THREADS_MAX) * MemoryLayout<cwi_thread>.size
        guard let pool = unsafe Mapping.anonymous(bytes: bytes, wipedOnFork: true) else {
            return false
        }
        let word = UnsafeMutableRawPointer(process)
        if unsafe !cwa_cas_u64(word, 0, UInt64(UInt(bitPattern: pool))) {
            unsafe Mapping.release(pool, bytes: bytes)
        }
        return true
    }

    /// Marks the engine pointer in the block if every append of the engine takes the slow path (1),
    /// or if its time does not come from the processor's counter (2). The hot path's comparison
    /// then fails, without an extra branch there.
    static func mark(_ engine: EngineBlock) -> EngineBlock {
        let slow =
            unsafe engine.pointee.echo != 0 || engine.pointee.write_mode != 0
            || Membarrier.isMissing
        let system =
            unsafe engine.pointee.clock_kind != SegmentHeader.clockTSC
            || engine.pointee.holds_time != 0
        let marks = (slow ? 1 : 0) | (system ? AppendPath.clockMark : 0)
        return unsafe EngineBlock(bitPattern: UInt(bitPattern: engine) | marks)!
    }

    /// The clock that the append in the header reads by itself where the engine is marked, or 0.
    private static func clock(_ mark: EngineBlock) -> UInt32 {
        guard let engine = unsafe EngineBlock(bitPattern: UInt(bitPattern: mark) & ~3),
            unsafe engine.pointee.clock_kind == SegmentHeader.clockCoarse,
            unsafe engine.pointee.holds_time == 0
        else { return 0 }
        return SegmentHeader.clockCoarse
    }

    /// The calling thread's block for that engine; the thread's first record takes it from the
    /// pool. Until it is busy, a handler may give it to another engine: enterOwn checks again.
    static func own(_ engine: EngineBlock) -> ThreadBlock? {
        let table = BlockTable()
        while true {
            let mark = unsafe mark(engine)
            guard let at = unsafe table.index(of: mark) else {
                guard unsafe takeOwn(table, mark) else { return nil }
                continue
            }
            guard let block = unsafe table[at], unsafe block.pointee.engine == mark else {
                continue
            }
            if at == 0 { return unsafe block }
            let displaced = unsafe table[0]
            guard unsafe table.replace(at, block, by: displaced) else { continue }
            // For a moment the block is in no place.
            if unsafe !table.replace(0, displaced, by: block) {
                _ = unsafe table.place(block, isNew: false)
            }
        }
    }

    /// The calling thread's block for this engine, if the thread used the engine last.
    static func known(_ engine: EngineBlock) -> ThreadBlock? {
        guard let current = unsafe cwi_tls_get().pointee.current,
            unsafe self.engine(of: current) == engine
        else { return nil }
        return unsafe current
    }

    /// False: no block is available.
    private static func takeOwn(_ table: BlockTable, _ mark: EngineBlock) -> Bool {
        let isFull = table.isFull
        var block: ThreadBlock?
        if isFull {
            guard let current = unsafe table[0], let evicted = unsafe table.evict(for: current)
            else { return false }
            unsafe convert(evicted, mark)
            unsafe block = evicted
        } else {
            unsafe block = take(mark, depth: 0)
        }
        guard let block = unsafe block else { return false }
        // If registering would allocate, inside an allocation that a handler interrupted, the
        // Reaper gives the block back instead.
        if cwi_tls_registers_in_place() { ThreadContext.registerThread() }
        return unsafe table.place(block, isNew: !isFull)
    }

    /// The number of new blocks after which it is time to look for ended threads.
    static let reapEvery: UInt32 = 1024

    /// Takes a free block of the pool; the caller owns it.
    private static func take(_ mark: EngineBlock, depth: UInt32) -> ThreadBlock? {
        let process = unsafe cwi_process_get()!
        guard let pool = unsafe process.pointee.pool else { return nil }
        let used = unsafe Int(cwa_load_acquire_u32(usedWord(process)))
        let known = min(used, Int(CWI_THREADS_MAX))
        let free = UInt32(CWI_THREAD_FREE)
        let owned = UInt32(CWI_THREAD_OWNED)
        let floor = unsafe min(known, Int(process.pointee.pool_floor))
        for i in floor..<known {
            let state = unsafe cwi_thread_state_at(pool + i)
            if unsafe cwa_load_relaxed_u32(state) == free, unsafe cwa_cas_u32(state, free, owned) {
                return unsafe prepareNew(pool + i, mark, depth)
            }
        }
        while true {
            let index = unsafe Int(cwa_add_u32(usedWord(process), 1))
            guard index < Int(CWI_THREADS_MAX) else {
                unsafe cwa_store_relaxed_u32(usedWord(process), UInt32(CWI_THREADS_MAX))
                return nil
            }
            // Many new blocks: ended threads may have left theirs (Reaper).
            if index % Int(reapEvery) == Int(reapEvery) - 1,
                let engine = unsafe EngineBlock(bitPattern: UInt(bitPattern: mark) & ~3)
            {
                unsafe EngineCore.wake(engine)
            }
            let state = unsafe cwi_thread_state_at(pool + index)
            if unsafe cwa_cas_u32(state, free, owned) {
                return unsafe prepareNew(pool + index, mark, depth)
            }
        }
    }

    private static func prepareNew(
        _ block: ThreadBlock, _ mark: EngineBlock, _ depth: UInt32
    ) -> ThreadBlock {
        unsafe block.pointee.nested = nil
        unsafe block.pointee.own = nil
        unsafe prepare(block, mark, depth)
        return unsafe block
    }

    private static func prepare(_ block: ThreadBlock, _ mark: EngineBlock, _ depth: UInt32) {
        unsafe block.pointee.ptr = nil
        unsafe leaveChunk(block)
        unsafe block.pointee.base_ticks = 0
        unsafe block.pointee.copy = cwi_copy_mark()
        unsafe block.pointee.clock = clock(mark)
        unsafe block.pointee.serial = 0
        unsafe block.pointee.chunk_bytes = 0
        unsafe block.pointee.chunk_sequence = 0
        unsafe block.pointee.records = 0
        unsafe block.pointee.record_bytes = 0
        unsafe block.pointee.slow_appends = 0
        unsafe block.pointee.context_stale = 0
        unsafe block.pointee.tid = cw_gettid()
        unsafe block.pointee.pid = Machine.processID()
        unsafe cw_thread_name(cwi_thread_name_at(block))
        unsafe block.pointee.depth = depth
        unsafe block.pointee.settling = 0
        unsafe cwa_store_relaxed_u64(AppendPath.busyWord(block), 0)
        unsafe cwa_store_relaxed_u64(AppendPath.limitWord(block), 0)
        // ORDER: release. A helper that finds the engine here finds the words above (A8).
        unsafe cwa_store_release_u64(cwi_thread_engine_at(block), UInt64(UInt(bitPattern: mark)))
    }

    /// Enters an append in the calling thread's block for that engine.
    static func enterOwn(_ engine: EngineBlock) -> ThreadBlock? {
        while true {
            guard let own = unsafe own(engine), let thread = unsafe enter(own) else { return nil }
            // While busy, it stays the engine's; before that, a handler may have changed it.
            if unsafe self.engine(of: own) == engine { return unsafe thread }
            unsafe cwa_store_release_u64(AppendPath.busyWord(thread), 0)
        }
    }

    /// Enters an append in the block itself, or in a nested one if this thread is already inside an
    /// append. nil: nested too deeply.
    static func enter(_ own: ThreadBlock) -> ThreadBlock? {
        if unsafe cwa_load_relaxed_u64(AppendPath.busyWord(own)) != 0 {
            unsafe Abandoned.reclaim(own, from: UInt64(cwi_frame()))
        } else {
            unsafe Abandoned.reclaimNested(own)
        }
        var block = unsafe own
        for depth in 0..<UInt32(CWI_NESTING_MAX) {
            if unsafe cwa_load_relaxed_u64(AppendPath.busyWord(block)) == 0 {
                unsafe cwa_store_relaxed_u64(AppendPath.busyWord(block), UInt64(cwi_frame()))
                // A compiler fence, or a full one where membarrier is missing (R6, R7).
                Membarrier.lightFence()
                if unsafe block.pointee.context_stale != 0 {
                    unsafe block.pointee.context_stale = 0
                    _ = unsafe Settle.own(block)
                }
                return unsafe block
            }
            if unsafe block.pointee.nested == nil {
                guard let mark = unsafe own.pointee.engine,
                    let nested = unsafe take(mark, depth: depth + 1)
                else { return nil }
                unsafe nested.pointee.own = own
                unsafe block.pointee.nested = nested
            }
            unsafe block = block.pointee.nested!
        }
        return nil
    }

    /// Settles and frees a block of the calling thread, and those nested in it.
    static func giveBack(_ block: ThreadBlock) {
        var next: ThreadBlock? = unsafe block
        while let block = unsafe next {
            unsafe next = block.pointee.nested
            unsafe leaveEngine(block)
            unsafe cwa_store_release_u32(cwi_thread_state_at(block), UInt32(CWI_THREAD_FREE))
        }
    }

    /// Settles a block that was taken out of the table, and those nested in it, and makes them the
    /// calling thread's for another engine. None of them goes through the pool: an append that this
    /// one interrupted may have found the block and not be busy yet, or may be about to look at a
    /// nested one (Abandoned.reclaimNested), and must not meet another thread's data (A35).
    private static func convert(_ evicted: ThreadBlock, _ mark: EngineBlock) {
        var next: ThreadBlock? = unsafe evicted
        while let block = unsafe next {
            unsafe next = block.pointee.nested
            unsafe leaveEngine(block)
            unsafe prepare(block, mark, block.pointee.depth)
        }
    }

    private static func leaveEngine(_ block: ThreadBlock) {
        if let engine = unsafe engine(of: block), let lane = unsafe engine.pointee.lane {
            if unsafe cwa_load_relaxed_u64(AppendPath.busyWord(block)) != 0 {
                unsafe Abandoned.settle(block)
            }
            // Busy, as in an append: the chunk being settled must stay mapped meanwhile.
            unsafe cwa_store_relaxed_u64(AppendPath.busyWord(block), UInt64(cwi_frame()))
            Membarrier.lightFence()
            _ = unsafe Settle.own(block)
            unsafe cwa_store_release_u64(AppendPath.busyWord(block), 0)
            _ = unsafe cwa_add_u64(cwi_lane_records_at(lane), block.pointee.records)
            _ = unsafe cwa_add_u64(cwi_lane_record_bytes_at(lane), block.pointee.record_bytes)
            _ = unsafe cwa_add_u64(cwi_lane_slow_appends_at(lane), block.pointee.slow_appends)
        }
        unsafe block.pointee.records = 0
        unsafe block.pointee.record_bytes = 0
        unsafe block.pointee.slow_appends = 0
        unsafe cwa_store_release_u64(cwi_thread_engine_at(block), 0)
    }

    /// The block's engine without the mark. nil: the block is free, or wiped to zero in a forked
    /// child.
    static func engine(of block: ThreadBlock) -> EngineBlock? {
        let word = unsafe cwa_load_acquire_u64(cwi_thread_engine_at(block))
        return unsafe EngineBlock(bitPattern: UInt(word) & ~3)
    }

    /// Calls body with every block that belongs to the engine.
    static func forEach(_ engine: EngineBlock, _ body: (ThreadBlock) -> Void) {
        let process = unsafe cwi_process_get()!
        guard let pool = unsafe process.pointee.pool else { return }
        let used = unsafe min(
            Int(cwa_load_acquire_u32(usedWord(process))), Int(CWI_THREADS_MAX))
        for i in 0..<used where unsafe self.engine(of: pool + i) == engine { unsafe body(pool + i) }
    }

    /// Marks every block in use: its thread takes the slow path from now on.
    static func markAll() {
        let process = unsafe cwi_process_get()!
        guard let pool = unsafe process.pointee.pool else { return }
        let used = unsafe min(
            Int(cwa_load_acquire_u32(usedWord(process))), Int(CWI_THREADS_MAX))
        for i in 0..<used {
            let word = unsafe cwi_thread_engine_at(pool + i)
            let engine = unsafe cwa_load_relaxed_u64(word)
            if engine != 0 { _ = unsafe cwa_cas_u64(word, engine, engine | 1) }
        }
    }

    static func threadExits(_ tls: UnsafeMutablePointer<cwi_tls>?) {
        guard let tls = unsafe tls else { return }
        unsafe tls.pointee.registered = 0
        // Remove it from the table first: a handler would mistake a block that another thread has
        // by then for ours.
        let table = unsafe BlockTable(tls)
        for i in 0..<BlockTable.count {
            guard let block = unsafe table.take(i) else { continue }
            // A handler that jumped out of a change of the table may have left the block there
            // twice.
            for k in 0..<BlockTable.count where unsafe table[k] == block {
                _ = unsafe table.take(k)
            }
            unsafe giveBack(block)
        }
        unsafe ThreadContext.release(tls)
        cwi_crash_thread_ends()
    }

    static func usedWord(
        _ process: UnsafeMutablePointer<cwi_process>
    ) -> UnsafeMutableRawPointer {
        unsafe cwi_process_pool_used_at(process)
    }

    /// Detaches the block from its chunk.
    static func leaveChunk(_ block: ThreadBlock) {
        let word = unsafe cwi_thread_chunk_at(block)
        // ORDER: relaxed. A sealer that still sees the chunk finds its verdict closed (A3).
        unsafe cwa_store_relaxed_u64(word, 0)
        unsafe setSegment(block, nil)
    }

    /// Sets the one segment that the block's thread may touch while it is busy; nil: none.
    static func setSegment(
        _ block: ThreadBlock, _ segment: UnsafeMutablePointer<cwi_segment>?
    ) {
        // ORDER: release. A thread that sees another segment here, or none, has seen the last store
        // into the previous one: the length of the chunk that was left (A29, Quiescence).
        unsafe cwa_store_release_u64(segmentWord(block), UInt64(UInt(bitPattern: segment)))
    }

    static func segmentWord(_ block: ThreadBlock) -> UnsafeMutableRawPointer {
        unsafe cwi_thread_segment_at(block)
    }

    static func saltWord(_ block: ThreadBlock) -> UnsafeMutableRawPointer {
        unsafe cwi_thread_salt_at(block)
    }
}
