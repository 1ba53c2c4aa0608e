// Thread blocks: where a thread's writing state in one engine lives, how it is found, nested and
// given back. The pool belongs to the process, is never unmapped and reads as zero in a forked
// child. A block is changed by its owner; the helper only poisons `limit` and settles `verdict`.

import CShims

enum ThreadBlocks {
    /// Makes the pool; called by the first open.
    static func makePool() -> Bool {
        let process = cwi_process_get()!
        if process.pointee.pool != nil { return true }
        let bytes = Int(CWI_THREADS_MAX) * MemoryLayout<cwi_thread>.size
        guard let pool = Mapping.anonymous(bytes: bytes, wipedOnFork: true) else { return false }
        let word = UnsafeMutableRawPointer(process)
        if !cwa_cas_u64(word, 0, UInt64(UInt(bitPattern: pool))) {
            Mapping.release(pool, bytes: bytes)
        }
        return true
    }

    /// Engines whose every append takes the slow path mark their pointer in the block, so that the
    /// hot path's comparison fails: no extra branch there.
    static func mark(_ engine: EngineBlock) -> EngineBlock {
        let slow =
            engine.pointee.clock_kind != SegmentHeader.clockTSC || engine.pointee.echo != 0
            || engine.pointee.write_mode != 0 || Membarrier.isMissing
        return slow ? EngineBlock(bitPattern: UInt(bitPattern: engine) | 1)! : engine
    }

    /// The calling thread's block for that engine, taken from the pool at its first record.
    static func own(_ engine: EngineBlock) -> ThreadBlock? {
        let tls = cwi_tls_get()!
        let mark = mark(engine)
        if let current = tls.pointee.current, current.pointee.engine == mark { return current }
        return withUnsafeMutablePointer(to: &tls.pointee.others) { others in
            others.withMemoryRebound(to: ThreadBlock?.self, capacity: othersCount) { others in
                for i in 0..<othersCount {
                    guard let other = others[i], other.pointee.engine == mark else { continue }
                    others[i] = tls.pointee.current
                    tls.pointee.current = other
                    return other
                }
                return takeOwn(tls, others, mark)
            }
        }
    }

    private static var othersCount: Int { Int(CWI_THREAD_ENGINES_MAX) - 1 }

    private static func takeOwn(
        _ tls: UnsafeMutablePointer<cwi_tls>, _ others: UnsafeMutablePointer<ThreadBlock?>,
        _ mark: EngineBlock
    ) -> ThreadBlock? {
        var victim = -1
        if let displaced = tls.pointee.current, displaced.pointee.engine != nil {
            // A block inside whose append we are must stay.
            for _ in 0..<othersCount where victim < 0 {
                let i = Int(tls.pointee.next_victim) % othersCount
                tls.pointee.next_victim &+= 1
                let isBusy = others[i].map { cwa_load_relaxed_u64(AppendPath.busyWord($0)) != 0 }
                if isBusy != true { victim = i }
            }
            guard victim >= 0 else { return nil }
        }
        guard let block = take(mark, depth: 0) else { return nil }
        ThreadContext.registerThread()
        if let displaced = tls.pointee.current {
            if displaced.pointee.engine != nil, victim >= 0 {
                if let evicted = others[victim] { giveBack(evicted) }
                others[victim] = displaced
            }
        }
        tls.pointee.current = block
        return block
    }

    /// A free block of the pool, owned by the caller.
    private static func take(_ mark: EngineBlock, depth: UInt32) -> ThreadBlock? {
        let process = cwi_process_get()!
        guard let pool = process.pointee.pool else { return nil }
        let used = Int(cwa_load_acquire_u32(usedWord(process)))
        let known = min(used, Int(CWI_THREADS_MAX))
        let free = UInt32(CWI_THREAD_FREE)
        let owned = UInt32(CWI_THREAD_OWNED)
        let floor = min(known, Int(process.pointee.pool_floor))
        for i in floor..<known {
            let state = UnsafeMutableRawPointer(pool + i) + stateOffset
            if cwa_load_relaxed_u32(state) == free, cwa_cas_u32(state, free, owned) {
                return prepare(pool + i, mark, depth)
            }
        }
        while true {
            let index = Int(cwa_add_u32(usedWord(process), 1))
            guard index < Int(CWI_THREADS_MAX) else {
                cwa_store_relaxed_u32(usedWord(process), UInt32(CWI_THREADS_MAX))
                return nil
            }
            let state = UnsafeMutableRawPointer(pool + index) + stateOffset
            if cwa_cas_u32(state, free, owned) { return prepare(pool + index, mark, depth) }
        }
    }

    private static func prepare(
        _ block: ThreadBlock, _ mark: EngineBlock, _ depth: UInt32
    ) -> ThreadBlock {
        block.pointee.ptr = nil
        block.pointee.chunk = nil
        block.pointee.segment = nil
        block.pointee.base_ticks = 0
        block.pointee.serial = 0
        block.pointee.chunk_bytes = 0
        block.pointee.chunk_sequence = 0
        block.pointee.records = 0
        block.pointee.record_bytes = 0
        block.pointee.slow_appends = 0
        block.pointee.context_stale = 0
        block.pointee.nested = nil
        block.pointee.tid = cw_gettid()
        cw_thread_name(
            UnsafeMutableRawPointer(block) + MemoryLayout<cwi_thread>.offset(of: \.name)!)
        block.pointee.depth = depth
        block.pointee.busy = 0
        cwa_store_relaxed_u64(AppendPath.limitWord(block), 0)
        // ORDER: release. The helper that finds the engine here finds the words above (A8).
        cwa_store_release_u64(
            UnsafeMutableRawPointer(block) + engineOffset, UInt64(UInt(bitPattern: mark)))
        return block
    }

    /// Enters an append: the block itself, or a nested one where this thread is inside an append
    /// already. nil: too deep.
    static func enter(_ own: ThreadBlock) -> ThreadBlock? {
        if cwa_load_relaxed_u64(AppendPath.busyWord(own)) != 0 { Abandoned.reclaim(own) }
        var block = own
        for depth in 0..<UInt32(CWI_NESTING_MAX) {
            if cwa_load_relaxed_u64(AppendPath.busyWord(block)) == 0 {
                cwa_store_relaxed_u64(AppendPath.busyWord(block), UInt64(cwi_frame()))
                // A compiler fence, or a full one where membarrier is missing (R6, R7).
                Membarrier.lightFence()
                if block.pointee.context_stale != 0 {
                    block.pointee.context_stale = 0
                    _ = Settle.own(block)
                }
                return block
            }
            if block.pointee.nested == nil {
                guard let mark = own.pointee.engine,
                    let nested = take(mark, depth: depth + 1)
                else { return nil }
                nested.pointee.serial = own.pointee.serial
                nested.pointee.lane_generation = own.pointee.lane_generation
                block.pointee.nested = nested
            }
            block = block.pointee.nested!
        }
        return nil
    }

    /// Settles and frees a block of the calling thread, with those nested in it.
    static func giveBack(_ block: ThreadBlock) {
        var next: ThreadBlock? = block
        while let block = next {
            next = block.pointee.nested
            if let engine = engine(of: block), let lane = engine.pointee.lane {
                // Busy like an append: what is settled here must stay mapped meanwhile.
                cwa_store_relaxed_u64(AppendPath.busyWord(block), UInt64(cwi_frame()))
                Membarrier.lightFence()
                _ = Settle.own(block)
                cwa_store_release_u64(AppendPath.busyWord(block), 0)
                let words = UnsafeMutableRawPointer(lane)
                _ = cwa_add_u64(words + laneRecordsOffset, block.pointee.records)
                _ = cwa_add_u64(words + laneBytesOffset, block.pointee.record_bytes)
                _ = cwa_add_u64(words + laneSlowOffset, block.pointee.slow_appends)
            }
            block.pointee.records = 0
            block.pointee.record_bytes = 0
            block.pointee.slow_appends = 0
            cwa_store_release_u64(UnsafeMutableRawPointer(block) + engineOffset, 0)
            cwa_store_release_u32(
                UnsafeMutableRawPointer(block) + stateOffset, UInt32(CWI_THREAD_FREE))
        }
    }

    /// The block's engine without the mark; nil: free, or a forked child's zero.
    static func engine(of block: ThreadBlock) -> EngineBlock? {
        let word = cwa_load_acquire_u64(UnsafeMutableRawPointer(block) + engineOffset)
        return EngineBlock(bitPattern: UInt(word) & ~1)
    }

    /// Calls body with every block that belongs to the engine.
    static func forEach(_ engine: EngineBlock, _ body: (ThreadBlock) -> Void) {
        let process = cwi_process_get()!
        guard let pool = process.pointee.pool else { return }
        let used = min(
            Int(cwa_load_acquire_u32(usedWord(process))), Int(CWI_THREADS_MAX))
        for i in 0..<used where self.engine(of: pool + i) == engine { body(pool + i) }
    }

    static func threadExits(_ tls: UnsafeMutablePointer<cwi_tls>?) {
        guard let tls else { return }
        tls.pointee.registered = 0
        if let current = tls.pointee.current { giveBack(current) }
        tls.pointee.current = nil
        withUnsafeMutablePointer(to: &tls.pointee.others) { others in
            others.withMemoryRebound(to: ThreadBlock?.self, capacity: othersCount) { others in
                for i in 0..<othersCount {
                    if let other = others[i] { giveBack(other) }
                    others[i] = nil
                }
            }
        }
        ThreadContext.release(tls)
    }

    private static func usedWord(
        _ process: UnsafeMutablePointer<cwi_process>
    ) -> UnsafeMutableRawPointer {
        UnsafeMutableRawPointer(process) + MemoryLayout<cwi_process>.offset(of: \.pool_used)!
    }

    static func saltWord(_ block: ThreadBlock) -> UnsafeMutableRawPointer {
        UnsafeMutableRawPointer(block) + MemoryLayout<cwi_thread>.offset(of: \.salt)!
    }

    private static var stateOffset: Int { MemoryLayout<cwi_thread>.offset(of: \.state)! }
    private static var engineOffset: Int { MemoryLayout<cwi_thread>.offset(of: \.engine)! }
    private static var laneRecordsOffset: Int { MemoryLayout<cwi_lane>.offset(of: \.records)! }
    private static var laneSlowOffset: Int { MemoryLayout<cwi_lane>.offset(of: \.slow_appends)! }
    private static var laneBytesOffset: Int { MemoryLayout<cwi_lane>.offset(of: \.record_bytes)! }
}
