// Files that have lost their names because somebody cleaned up the directory. A spare without a
// name can never be published, so it is dropped and another one is made. Writers notice when they
// give it a number (Segments.publishNext); the supply thread checks ahead of them. A sealed segment
// that no archive holds gets a file again while it is mapped. docs/CONCURRENCY.md, A11.
// SAFETY: a spare that was taken belongs to its taker alone, and so does its mapping by then.

import CShims

extension Segments {
    /// Drops a spare that the caller has taken: its mapping, its slot, and its share of the quota.
    static func dropNameless(_ engine: EngineBlock, _ lane: LaneBlock, _ spare: SegmentBlock) {
        let bytes = unsafe spare.pointee.memory_id == 0 ? spare.pointee.size : 0
        // CRASH: a file without a name, which disappears with the process.
        unsafe destroy(engine, lane, spare)
        unsafe Quota.giveBack(engine, bytes: bytes)
    }

    /// Takes back the spares that have lost their names, so no writer meets them: a writer that may
    /// not make a segment would have to refuse its record. Supply thread.
    static func dropNamelessSpares(_ engine: EngineBlock, _ lane: LaneBlock) {
        for i in 0..<Int(CWI_SPARES_MAX) {
            // ORDER: acquire, and acquire-release to take it. As Segments.takeSpare (A11).
            let word = unsafe cwa_load_acquire_u64(Lanes.spareWord(lane, i))
            guard let spare = unsafe SegmentBlock(bitPattern: UInt(word)),
                unsafe Descriptors.holds(spare), unsafe FileCalls.isNameless(spare.pointee.fd),
                unsafe cwa_cas_u64(Lanes.spareWord(lane, i), word, 0)
            else { continue }
            unsafe dropNameless(engine, lane, spare)
        }
    }
}

extension EngineCore {
    /// Called from time to time by the supply thread.
    package static func watchSpares(_ engine: EngineBlock) {
        guard let lane = unsafe readyLane(engine) else { return }
        unsafe Segments.dropNamelessSpares(engine, lane)
    }

    /// Gives a sealed segment that has lost its name a file again, under the sealing lock. No
    /// archive holds the segment. False: it is still mapped and got no file.
    package static func restoreNameless(_ engine: EngineBlock, _ number: UInt64) -> Bool {
        guard let lane = unsafe readyLane(engine) else { return true }
        var isRestored = true
        unsafe Segments.forEach(engine) { segment in
            guard unsafe Quiescence.isSealedFile(segment),
                unsafe segment.pointee.lane == lane,
                unsafe segment.pointee.number == number,
                unsafe segment.pointee.retired == 0, unsafe Descriptors.holds(segment)
            else { return }
            if unsafe MemorySegments.putOnDisk(engine, lane, segment) {
                // Its mapping belongs to another file: not for reuse.
                unsafe segment.pointee.retired = 1
            } else {
                isRestored = false
            }
        }
        return isRestored
    }
}
