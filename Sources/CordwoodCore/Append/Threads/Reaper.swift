// Reclaims thread blocks that an ended thread did not give back: it logged from a thread-local
// destructor after ours had run for the last time, it died inside an append, or its destructor
// could not be set without the heap. Also reclaims the alternate stacks of such threads. Only on
// the supply thread, under the sealing lock, so that no sealer looks at the block meanwhile (R20).
// SAFETY: blocks are never unmapped; an ended thread no longer stores into its block, and if the
// block's verdict is open, its chunk is mapped.

import CShims

/// When to look for ended threads: after many new blocks, and from time to time.
package struct Reaping: Sendable {
    private var used: UInt32 = 0
    private var next: UInt64 = 0

    package init() {}

    package mutating func isDue(_ now: UInt64) -> Bool {
        // ORDER: relaxed. An approximate count of the blocks taken.
        let count = unsafe cwa_load_relaxed_u32(ThreadBlocks.usedWord(cwi_process_get()))
        guard count &- used >= ThreadBlocks.reapEvery || now >= next else { return false }
        used = count
        next = now + 10_000_000_000
        return true
    }
}

extension EngineCore {
    /// Gives back what ended threads have left. Returns how many.
    @discardableResult
    package static func reapThreads(_ engine: EngineBlock) -> Int {
        var count = 0
        let pid = Machine.processID()
        unsafe ThreadBlocks.forEach(engine) { block in
            // Nested blocks go with their thread's own block. If another thread has that number by
            // now, in this process or another, the block is kept: that thread will end one day,
            // too. A block that a child of vfork(2) took under its own number belongs to the thread
            // that called it.
            guard unsafe block.pointee.depth == 0, unsafe block.pointee.pid == pid,
                unsafe cwi_thread_is_gone(block.pointee.tid)
            else { return }
            unsafe ThreadBlocks.giveBack(block)
            count += 1
        }
        cwi_crash_stacks_reap()
        return count
    }
}
