// Appends that a host left by longjmp or by an asynchronous cancellation: `busy` stays set, and no
// thread will ever finish them. The thread's next call, from where it jumped to, detects this by
// comparing stack frames (R18). docs/CONCURRENCY.md, Nested and abandoned.
// SAFETY: the block is the calling thread's own. Its chunk is mapped if its verdict was open when
// `busy` was set: either it still is open, or `settling` says that the append found it open.

import CShims

enum Abandoned {
    /// The stack that the slow path uses from the host's call down to where `frame` is taken; less
    /// than a signal frame with its red zone, so a handler's own call lies further down than that.
    private static let slowPathBytes: UInt64 = 1024

    /// Call only if `busy` is set. Takes back abandoned appends: the thread's own with those nested
    /// in it, or only the nested ones. `frame`: of the caller.
    @inline(never)
    static func reclaim(_ own: ThreadBlock, from frame: UInt64) {
        var next: ThreadBlock? = unsafe own
        while let block = unsafe next {
            let busy = unsafe cwa_load_relaxed_u64(AppendPath.busyWord(block))
            guard busy != 0 else { return }
            // The stack grows down, so the frame of a running append is above this one.
            if frame &+ slowPathBytes > busy { break }
            unsafe next = block.pointee.nested
        }
        // A handler on another stack may have any address.
        guard unsafe next != nil, cwi_on_alternate_stack() == 0 else { return }
        if let engine = unsafe ThreadBlocks.engine(of: own) {
            unsafe Segments.abandonMaking(engine)
        }
        while let block = unsafe next {
            unsafe next = block.pointee.nested
            if unsafe cwa_load_relaxed_u64(AppendPath.busyWord(block)) != 0 { unsafe settle(block) }
        }
    }

    /// As reclaim, for the thread's current block. Call where a slow path begins: below frames
    /// larger than `slowPathBytes`, an abandoned append would look like one that this call
    /// interrupts, now and at every later call.
    @inline(__always)
    static func reclaimFromEntry() {
        guard let own = unsafe cwi_tls_get().pointee.current,
            unsafe cwa_load_relaxed_u64(AppendPath.busyWord(own)) != 0
        else { return }
        unsafe reclaim(own, from: UInt64(cwi_frame()))
    }

    /// If the thread's own append has ended, or none runs, no nested one can be running either.
    static func reclaimNested(_ own: ThreadBlock) {
        var next = unsafe own.pointee.nested
        while let block = unsafe next {
            unsafe next = block.pointee.nested
            if unsafe cwa_load_relaxed_u64(AppendPath.busyWord(block)) != 0 { unsafe settle(block) }
        }
    }

    /// Keeps what was committed; the rest is dropped and never written again. The block stays busy
    /// until the end, so the chunk stays mapped if the verdict was open since the append began.
    static func settle(_ block: ThreadBlock) {
        if let header = unsafe block.pointee.chunk, unsafe block.pointee.segment != nil {
            let chunk = UnsafeMutableRawPointer(header)
            let verdict = unsafe Verdict.load(block)
            if verdict.isOpen {
                // ORDER: acquire. The append may have got as far as publishing its record (A4).
                let committed = unsafe cwa_load_acquire_u32(chunk + ChunkHeader.committed)
                unsafe block.pointee.ptr = unsafe header + Int(committed)
                _ = unsafe Settle.own(block)
            } else if unsafe block.pointee.settling != 0 {
                // The append was abandoned while it settled: the length is fixed, but may not have
                // been written.
                unsafe cwa_store_release_u32(chunk + ChunkHeader.final, verdict.offset)
            }
        }
        unsafe block.pointee.settling = 0
        unsafe cwa_store_relaxed_u64(AppendPath.limitWord(block), 0)
        unsafe block.pointee.ptr = nil
        unsafe ThreadBlocks.leaveChunk(block)
        unsafe cwa_store_release_u64(AppendPath.busyWord(block), 0)
    }
}
