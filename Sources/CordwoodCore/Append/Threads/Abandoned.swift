// Appends that a host left by longjmp, or by an asynchronous cancellation: `busy` stays set, and
// nobody will ever finish them. The thread's next call from where it jumped to finds that out by
// its frame (R18). docs/CONCURRENCY.md, Nested and abandoned.
// SAFETY: the block is the calling thread's own. Its chunk is mapped where its verdict was open
// when `busy` was set: it is open still, or `settling` says that the append found it open.

import CShims
import Glibc

enum Abandoned {
    /// Stack that the slow path takes from the host's call down to here, and less than a signal
    /// frame with its red zone: a handler's own call is further down than that.
    private static let slowPathBytes: UInt64 = 1024

    /// Only where `busy` is set. Takes back what was left: the thread's append with those nested in
    /// it, or the nested ones alone.
    @inline(never)
    static func reclaim(_ own: ThreadBlock) {
        let frame = UInt64(cwi_frame())
        var next: ThreadBlock? = unsafe own
        while let block = unsafe next {
            let busy = unsafe cwa_load_relaxed_u64(AppendPath.busyWord(block))
            guard busy != 0 else { return }
            // The stack grows down: a running append's frame is above this one.
            if frame &+ slowPathBytes > busy { break }
            unsafe next = block.pointee.nested
        }
        // A handler on another stack may lie anywhere.
        guard unsafe next != nil, cwi_on_alternate_stack() == 0 else { return }
        if let engine = unsafe ThreadBlocks.engine(of: own) {
            unsafe Segments.abandonMaking(engine)
        }
        while let block = unsafe next {
            unsafe next = block.pointee.nested
            if unsafe cwa_load_relaxed_u64(AppendPath.busyWord(block)) != 0 { unsafe settle(block) }
        }
    }

    /// Where the thread's own append has ended, or none runs, nothing nested can run either.
    static func reclaimNested(_ own: ThreadBlock) {
        var next = unsafe own.pointee.nested
        while let block = unsafe next {
            unsafe next = block.pointee.nested
            if unsafe cwa_load_relaxed_u64(AppendPath.busyWord(block)) != 0 { unsafe settle(block) }
        }
    }

    /// What was committed is kept; what was not is left, and never written again. Busy until the
    /// end, so the chunk's mapping stays where the verdict was open since the append began.
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
                // It was left while it settled: the length is fixed, and perhaps not written.
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
