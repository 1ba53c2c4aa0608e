// Settling a chunk: fixing its length once and for all. Its thread and the helper may both try; the
// CAS on `verdict` decides, and who loses writes the winner's value. docs/CONCURRENCY.md, A3.
// SAFETY: the owner follows its chunk only while busy; the helper only where the chunk lies in the
// segment it holds and the salt says it is that segment's.

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
    /// Only while `busy` is set. The owner settles its present chunk at its own end and goes to the
    /// slow path next time. True: everything it has committed is kept; false: the helper settled it
    /// shorter. hasCommitted: a record has been committed since `busy` was set. leaves: false: the
    /// block still names the segment, until the caller calls `leaveChunk`.
    static func own(
        _ thread: ThreadBlock, hasCommitted: Bool = false, leaves: Bool = true
    ) -> Bool {
        // A handler of the host's that forked in the midst of a call leaves nothing of it.
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
            // Open while busy: whoever wins now, the mapping stays until we are idle. Abandoned
            // wants to know that.
            unsafe thread.pointee.settling = 1
            cwa_fence_compiler()
            // ORDER: acquire-release. Whoever wins fixes the length; the other reads it (A3).
            if unsafe cwa_cas_u64(Verdict.address(thread), verdict.word, mine.word) {
                settled = unsafe written(thread, chunk, mine)
            } else {
                settled = unsafe Verdict.load(thread)
            }
            cwa_fence_compiler()
            unsafe thread.pointee.settling = 0
        }
        // What this append committed, it committed below a limit it saw while busy: the mapping
        // stays until we are idle. (Of a lost segment a length may be short of older records.)
        // CRASH: the helper may be about to write the length; without it a reader goes by
        // `committed` and shows what the caller now writes again (R2).
        if hasCommitted, settled.offset < end {
            unsafe cwa_store_release_u32(
                UnsafeMutableRawPointer(chunk) + ChunkHeader.final, settled.offset)
        }
        let bytes = max(settled.offset, UInt32(ChunkHeader.bytes)) &- UInt32(ChunkHeader.bytes)
        unsafe thread.pointee.record_bytes = unsafe thread.pointee.record_bytes &+ UInt64(bytes)
        // ORDER: relaxed. Only this thread gives the limit a value again (A2).
        unsafe cwa_store_relaxed_u64(AppendPath.limitWord(thread), 0)
        unsafe thread.pointee.ptr = nil
        if leaves { unsafe ThreadBlocks.leaveChunk(thread) }
        return settled.offset >= end
    }

    /// The owner's verdict has won: the length stands in the chunk. Of a lost segment only what its
    /// file has is kept (A25).
    private static func written(
        _ thread: ThreadBlock, _ chunk: UnsafeMutablePointer<UInt8>, _ mine: Verdict
    ) -> Verdict {
        let header = UnsafeMutableRawPointer(chunk)
        if let segment = unsafe thread.pointee.segment, unsafe Lost.isLost(segment) {
            let kept = unsafe Lost.committed(segment, header)
            return Verdict(claim: mine.claim, open: false, offset: min(kept, mine.offset))
        }
        // Busy with this chunk, we keep its mapping; where the helper has won, the segment may be
        // gone already, and the helper has written the length (R2).
        unsafe cwa_store_release_u32(header + ChunkHeader.final, mine.offset)
        return mine
    }

    /// The helper settles a block's chunk if it lies in that segment; `limit` is poisoned and a
    /// heavy fence has run since.
    static func forced(_ thread: ThreadBlock, in segment: UnsafeMutablePointer<cwi_segment>) {
        let chunkWord = unsafe cwi_thread_chunk_at(thread)
        for _ in 0..<4 {
            let verdict = unsafe Verdict.load(thread)
            // ORDER: acquire, between two looks at the verdict: both belong to one claim (A3).
            let word = unsafe cwa_load_acquire_u64(chunkWord)
            guard let chunk = unsafe UnsafeMutableRawPointer(bitPattern: UInt(word)) else { return }
            let offset = unsafe chunk - UnsafeMutableRawPointer(segment.pointee.base)
            // An idle thread keeps the address of a chunk that was settled long ago; another
            // segment may be mapped there now.
            guard offset >= 0, unsafe UInt64(offset) < segment.pointee.size,
                // ORDER: acquire. Before the second look at the verdict: of the same claim (A3).
                unsafe cwa_load_acquire_u64(ThreadBlocks.saltWord(thread)) == segment.pointee.salt
            else { return }
            guard verdict.isOpen else {
                // The owner has settled it and may not have written the length yet: write the same.
                guard unsafe Verdict.load(thread).word == verdict.word else { continue }
                unsafe cwa_store_release_u32(chunk + ChunkHeader.final, verdict.offset)
                return
            }
            // ORDER: acquire. Everything up to here is whole (A4).
            let committed =
                unsafe Lost.isLost(segment)
                ? Lost.committed(segment, chunk)
                : cwa_load_acquire_u32(chunk + ChunkHeader.committed)
            let mine = Verdict(claim: verdict.claim, open: false, offset: committed)
            // The claim id in the expected value makes this fail where the owner has moved on (R2).
            if unsafe cwa_cas_u64(Verdict.address(thread), verdict.word, mine.word) {
                unsafe cwa_store_release_u32(chunk + ChunkHeader.final, committed)
                if unsafe Lost.isLost(segment) { unsafe Lost.fix(segment, chunk, committed) }
                return
            }
        }
    }
}
