// The lock that proves that a lane's owner lives. A mapping holds it instead of a descriptor: one
// page of the lane file stays mapped through an open file description of its own, which no child
// inherits. So the kernel drops the lock with the process's memory, at exec(2) and at death, and
// never earlier: neither a host that closes every descriptor nor a forked child that outlives the
// host changes that. A vfork(2) child shares the memory, and the lock with it. docs/CONCURRENCY.md,
// Adoption; RELIABILITY R31.
// SAFETY: the page has no access rights, so nothing is ever stored or loaded there; the lane's
// maker writes `life` before the lane is visible, and so does the thread that closes the lane. One
// that closes early (EarlyClose.swift) only looks whether there is one.

import CShims

enum OwnerLock {
    /// Locks a lane file that is being made under that name. Returns 0 or an errno. Where a mapping
    /// cannot hold the lock, the descriptor holds it and `life` stays nil: some file systems map no
    /// files, and overlayfs maps the file of the lower layer, which does not carry the lock.
    static func take(
        _ lane: LaneBlock, _ descriptor: Int32, _ directory: Int32, _ name: UnsafePointer<CChar>
    ) -> Int32 {
        // A child forked in between would keep the lock. A child of a raw clone(2) still can.
        cwi_fork_gate_enter()
        let own = unsafe FileCalls.open(name, in: directory, .readWrite)
        if own >= 0 {
            if Files.lock(own) { unsafe lane.pointee.life = Mapping.hold(own) }
            Files.close(own)
        }
        cwi_fork_gate_leave()
        // No other process locks a file that is being made.
        guard Files.lock(descriptor) else {
            return unsafe lane.pointee.life == nil ? Errno.last : 0
        }
        unsafe release(lane)
        return 0
    }

    /// Releases the lane; any process may lock it from here on.
    static func release(_ lane: LaneBlock) {
        guard let page = unsafe lane.pointee.life else { return }
        unsafe lane.pointee.life = nil
        unsafe Mapping.release(page, bytes: Mapping.holdBytes)
    }
}
