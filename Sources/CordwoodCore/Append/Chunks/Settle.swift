// Settling a chunk fixes its length once and for all. Both its thread and the helper may try: the
// CAS on `verdict` decides, and the loser writes the winner's value. docs/CONCURRENCY.md, A3.
// SAFETY: the owner follows its chunk pointer only while busy; the helper only if the chunk lies in
// the segment that it holds and the salt identifies that segment.

import CShims

/// {claim id 32, open 1, offset 31}
struct Verdict {
    var word: UInt64

    init(word: UInt64) { self.word = word }

    init(claim: UInt32, open: Bool, offset: UInt32) {
        word = UInt64(claim) << 32 | (open ? 1 << 31 : 0) | UInt64(offset & 0x7FFF_FFFF)
    }

    var claim: UInt32 { UInt32(word >> 32) }
    var isOpen: Bool { word & (1 << 31) != 0 }
    var offset: UInt32 { UInt32(word & 0x7FFF_FFFF) }

    static func address(_ thread: ThreadBlock) -> UnsafeMutableRawPointer {
        unsafe cwi_thread_verdict_at(thread)
    }

    static func load(_ thread: ThreadBlock) -> Verdict {
        // ORDER: acquire. Pairs with the CAS of the other side (A3).
        unsafe Verdict(word: cwa_load_acquire_u64(address(thread)))
    }
}

enum Settle {
    /// Call only while `busy` is set. The owner settles its present chunk at its own end and takes
    /// the slow path next time. True: everything it has committed is kept; false: the helper
    /// settled the chunk shorter.
    /// hasCommitted: a record has been committed since `busy` was set. leaves: if false, the block
    /// keeps naming the segment until the caller calls `leaveChunk`.
    static func own(
        _ thread: ThreadBlock, hasCommitted: Bool = false, leaves: Bool = true
    ) -> Bool {
        // In a child that one of the host's handlers forked in the middle of a call, nothing is
        // left.
        guard let chunk = unsafe thread.pointee.chunk, let ptr = unsafe thread.pointee.ptr,
            unsafe thread.pointee.segment != nil, unsafe ptr > chunk
        else {
            unsafe ThreadBlocks.leaveChunk(thread)
            return true
        }
        let end = unsafe UInt32(truncatingIfNeeded: ptr - chunk)
        let verdict = unsafe Verdict.load(thread)
        var settled = verdict
        if verdict.isOpen {
            let mine = Verdict(claim: verdict.claim, open: false, offset: end)
            // The verdict was open while we were busy: whoever wins now, the mapping stays until we
            // are idle. `settling` tells Abandoned so.
            unsafe thread.pointee.settling = 1
            cwa_fence_compiler()
            // ORDER: acquire-release. The winner fixes the length; the loser reads it (A3).
            if unsafe cwa_cas_u64(Verdict.address(thread), verdict.word, mine.word) {
                settled = unsafe written(thread, chunk, mine)
            } else {
                settled = unsafe Verdict.load(thread)
            }
            cwa_fence_compiler()
            unsafe thread.pointee.settling = 0
        }
        invariant(!settled.isOpen, "a settled chunk has a length")
        invariant(
            unsafe settled.offset <= thread.pointee.chunk_bytes
                && end <= thread.pointee.chunk_bytes,
            "a chunk is settled within its size")
        // This append committed its record below a limit that it saw while busy, so the mapping
        // stays until we are idle. (In a lost segment the length may fall short of older records.)
        // CRASH: the helper may be about to write the length; without it a reader goes by
        // `committed` and shows what the caller now writes again (R2).
        if hasCommitted, settled.offset < end {
            unsafe cwa_store_release_u32(
                UnsafeMutableRawPointer(chunk) + ChunkHeader.final, settled.offset)
        }
        let bytes = max(settled.offset, UInt32(ChunkHeader.bytes)) &- UInt32(ChunkHeader.bytes)
        unsafe thread.pointee.record_bytes = unsafe thread.pointee.record_bytes &+ UInt64(bytes)
        // ORDER: relaxed. Only this thread makes the limit nonzero again (A2).
        unsafe cwa_store_relaxed_u64(AppendPath.limitWord(thread), 0)
        unsafe thread.pointee.ptr = nil
        if leaves { unsafe ThreadBlocks.leaveChunk(thread) }
        return settled.offset >= end
    }

    /// The owner's verdict has won: writes the length into the chunk. In a lost segment, only what
    /// its file holds is kept (A25).
    private static func written(
        _ thread: ThreadBlock, _ chunk: UnsafeMutablePointer<UInt8>, _ mine: Verdict
    ) -> Verdict {
        let header = UnsafeMutableRawPointer(chunk)
        if let segment = unsafe thread.pointee.segment, unsafe Lost.isLost(segment) {
            let kept = unsafe Lost.committed(segment, header)
            return Verdict(claim: mine.claim, open: false, offset: min(kept, mine.offset))
        }
        // While we are busy with this chunk, its mapping stays. If the helper had won, the segment
        // might be gone already, and the helper would have written the length (R2).
        unsafe cwa_store_release_u32(header + ChunkHeader.final, mine.offset)
        return mine
    }

    /// The helper settles a block's chunk if it lies in that segment. `limit` has been poisoned,
    /// and a heavy fence has run since.
    static func forced(_ thread: ThreadBlock, in segment: UnsafeMutablePointer<cwi_segment>) {
        let chunkWord = unsafe cwi_thread_chunk_at(thread)
        for _ in 0..<4 {
            let verdict = unsafe Verdict.load(thread)
            // ORDER: acquire, between two loads of the verdict: both belong to one claim (A3).
            let word = unsafe cwa_load_acquire_u64(chunkWord)
            guard let chunk = unsafe UnsafeMutableRawPointer(bitPattern: UInt(word)) else { return }
            let offset = unsafe chunk - UnsafeMutableRawPointer(segment.pointee.base)
            // An idle thread keeps the address of a chunk that was settled long ago; another
            // segment may be mapped there now.
            guard offset >= 0, unsafe UInt64(offset) < segment.pointee.size,
                // ORDER: acquire. Before the second load of the verdict, so both belong to the same
                // claim (A3).
                unsafe cwa_load_acquire_u64(ThreadBlocks.saltWord(thread)) == segment.pointee.salt
            else { return }
            guard verdict.isOpen else {
                // The owner has settled it but may not have written the length yet: write the same
                // length.
                guard unsafe Verdict.load(thread).word == verdict.word else { continue }
                unsafe cwa_store_release_u32(chunk + ChunkHeader.final, verdict.offset)
                return
            }
            // ORDER: acquire. All bytes up to here are complete (A4).
            let committed =
                unsafe Lost.isLost(segment)
                ? Lost.committed(segment, chunk)
                : cwa_load_acquire_u32(chunk + ChunkHeader.committed)
            invariant(
                unsafe Lost.isLost(segment)
                    || committed >= UInt32(ChunkHeader.bytes)
                        && committed
                            <= chunk.load(fromByteOffset: ChunkHeader.size, as: UInt32.self),
                "the helper settles a chunk within its size")
            let mine = Verdict(claim: verdict.claim, open: false, offset: committed)
            // The expected value contains the claim id, so the CAS fails if the owner has moved on
            // (R2).
            if unsafe cwa_cas_u64(Verdict.address(thread), verdict.word, mine.word) {
                unsafe cwa_store_release_u32(chunk + ChunkHeader.final, committed)
                if unsafe Lost.isLost(segment) { unsafe Lost.fix(segment, chunk, committed) }
                return
            }
        }
    }
}
