// The heavy half of the asymmetric fence (RELIABILITY R7): the helper's membarrier orders every
// running thread, so writers need only keep the compiler from reordering. On kernels without
// membarrier, writers issue fences themselves. docs/CONCURRENCY.md, Append.

import CShims

enum Membarrier {
    /// Asks the kernel whether it has membarrier, before any thread block exists. Registering takes
    /// milliseconds, but next to nothing while the process has one thread: open then registers it
    /// before it starts a second one, and no close waits for that.
    static func prepare() {
        let commands = cw_membarrier(Int32(MEMBARRIER_CMD_QUERY.rawValue))
        let wanted = Int32(MEMBARRIER_CMD_PRIVATE_EXPEDITED.rawValue)
        unsafe cwi_process_get()!.pointee.membarrier =
            commands > 0 && commands & wanted != 0 ? 1 : 2
        if !isMissing, cwi_has_one_thread() { register() }
    }

    /// Registers the process. Each helper calls it at its start, as the process may have had many
    /// threads at open.
    static func register() {
        _ = cw_membarrier(Int32(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED.rawValue))
    }

    static var isMissing: Bool { unsafe cwi_process_get()!.pointee.membarrier == 2 }

    /// When this returns true, every thread of the process has run a full fence.
    static func heavyFence() -> Bool {
        cwa_fence_full()
        if isMissing { return false }
        let expedited = Int32(MEMBARRIER_CMD_PRIVATE_EXPEDITED.rawValue)
        if cw_membarrier(expedited) == 0 { return true }
        // A caller may seal before the helper has registered the process; the slow command needs no
        // registration.
        register()
        if cw_membarrier(expedited) == 0
            || cw_membarrier(Int32(MEMBARRIER_CMD_GLOBAL.rawValue)) == 0
        {
            return true
        }
        goMissing()
        return false
    }

    /// The kernel has begun to refuse membarrier (a seccomp filter of the host's). From now on
    /// every writer takes the slow path and issues its own fences. When this returns, the threads
    /// that were on the hot path have left it and their stores are visible.
    private static func goMissing() {
        unsafe cwi_process_get()!.pointee.membarrier = 2
        for _ in 0..<2 {
            ThreadBlocks.markAll()
            cwa_fence_full()
            ThreadIdentity.pause(microseconds: 5_000)
        }
    }

    /// The writer's half on the slow path: a compiler fence, or a full one where membarrier is
    /// missing.
    static func lightFence() {
        if isMissing { cwa_fence_full() } else { cwa_fence_compiler() }
    }
}
