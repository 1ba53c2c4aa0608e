// The lock that says a lane's owner lives. A mapping holds it, and not a descriptor: one page
// of the lane file stays mapped by a description of its own, which no child inherits. So the kernel
// drops the lock with the process's memory, at exec(2) and at death, and never before: neither a
// host that closes every descriptor nor one that a forked child outlives changes that. A vfork(2)
// child shares the memory, and the lock with it. docs/CONCURRENCY.md, Adoption; PROTOCOL R31.
// SAFETY: the page has no access rights, so nothing is ever stored or loaded there; `life` is
// written by the lane's maker before the lane is seen and by the thread that closes it.

import CShims
import Glibc

enum OwnerLock {
    /// Locks a lane file that is being made under that name. 0 or an errno. Where a mapping holds
    /// nothing the lock is the descriptor's, and `life` stays nil: some file systems map no file,
    /// and overlayfs maps the file of the layer below, on which the lock does not lie.
    static func take(
        _ lane: LaneBlock, _ descriptor: Int32, _ directory: Int32, _ name: UnsafePointer<CChar>
    ) -> Int32 {
        // A child that is forked in between would keep the lock. One of a raw clone(2) can.
        cwi_fork_gate_enter()
        let own = unsafe cwi_file_open_at(directory, name, O_RDWR, 0)
        if own >= 0 {
            if flock(own, LOCK_EX | LOCK_NB) == 0 { unsafe lane.pointee.life = Mapping.hold(own) }
            cwi_file_close(own)
        }
        cwi_fork_gate_leave()
        // Nobody else locks a file that is being made.
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
            return unsafe lane.pointee.life == nil ? errno : 0
        }
        unsafe release(lane)
        return 0
    }

    /// The lane is nobody's from here on.
    static func release(_ lane: LaneBlock) {
        guard let page = unsafe lane.pointee.life else { return }
        unsafe lane.pointee.life = nil
        unsafe Mapping.release(page, bytes: Mapping.holdBytes)
    }
}
