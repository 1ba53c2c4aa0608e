// A close whose time is over while helpers still archive or upload. The host has closed the engine
// and every record that it was told is kept lies in the lane; if the process ends before its
// helpers do, nobody may call that an unclean stop. So the lane is marked as closed at once. Its
// lock stays with the helpers, and goes by them. docs/CONCURRENCY.md, A13; FORMAT §3.1.
// SAFETY: the address of a lane's file stays mapped for ever, as private memory once the lane has
// been let go; a store there has no effect.

import CShims

extension EngineCore {
    /// Call after closeHandles, on the closing thread. Takes no lock, because a slow disk may hold
    /// up the threads that have them. Does nothing if
    /// - a thread is still inside an append: its record may still be kept;
    /// - a descriptor holds the lock: adopters then take a closed lane without asking for the lock,
    ///   and would archive once more what the helpers are archiving;
    /// - records are written by pwrite(2): other machines may see the file but not the lock, and
    ///   the disk may keep the caller waiting.
    package static func closeEarly(_ engine: EngineBlock) {
        guard unsafe waitForQuiet(engine, Deadline(timeoutMs: 0)),
            unsafe !WriteThrough.isOn(engine),
            let lane = unsafe readyLane(engine), unsafe lane.pointee.life != nil
        else { return }
        unsafe markClosed(UnsafeMutableRawPointer(lane.pointee.file)!, LaneHeader.closedEarly)
    }

    /// The lane's file says from here on that its process has closed it. The first time counts.
    static func markClosed(_ file: UnsafeMutableRawPointer, _ value: UInt32) {
        if unsafe cwa_load_acquire_u32(file + LaneHeader.closed) == 0 {
            unsafe file.storeBytes(
                of: cw_realtime_ns(), toByteOffset: LaneHeader.closedRealtime, as: UInt64.self)
        }
        // ORDER: release. Pairs with the lock: a reader that finds it free and then reads the
        // header does not see 0. If helpers let the lane go at this moment, the early value may
        // stay, which only costs readers more looks (A13).
        unsafe cwa_store_release_u32(file + LaneHeader.closed, value)
    }
}
