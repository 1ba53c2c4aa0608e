// Thread blocks whose thread is gone without having given them back: one that logged from a
// thread-local destructor after ours had run for the last time, that died inside an append, or
// whose destructor could not be set without the heap; and alternate stacks of such threads. Only
// the supply thread, under the sealing lock, so that no sealer looks at the block meanwhile (R20).
// SAFETY: blocks are never unmapped; a thread that is gone stores into its block no more, and
// where the block's verdict is open its chunk is mapped.

import CShims
import Glibc

/// When to look for threads that are gone: after many new blocks, and now and then.
package struct Reaping: Sendable {
    private var used: UInt32 = 0
    private var next: UInt64 = 0

    package init() {}

    package mutating func isDue(_ now: UInt64) -> Bool {
        // ORDER: relaxed. How many have been taken, more or less.
        let count = unsafe cwa_load_relaxed_u32(ThreadBlocks.usedWord(cwi_process_get()))
        guard count &- used >= ThreadBlocks.reapEvery || now >= next else { return false }
        used = count
        next = now + 10_000_000_000
        return true
    }
}

extension EngineCore {
    /// Gives back what threads that are gone have left. How many.
    @discardableResult
    package static func reapThreads(_ engine: EngineBlock) -> Int {
        var count = 0
        let pid = UInt32(getpid())
        unsafe ThreadBlocks.forEach(engine) { block in
            // What is nested goes with its thread's own. Whatever else has that number by now, in
            // this process or another, keeps the block: it will be gone one day. A block that a
            // child of vfork(2) took by its own number is that of the thread that called it.
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
