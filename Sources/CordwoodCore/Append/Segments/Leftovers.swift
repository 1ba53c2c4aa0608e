// What archived records leave in a lane that is still used: segment 0, which lies in the lane file
// and so is never removed, and files that were used before. Where nothing may be left, segment 0 is
// overwritten and no file is used again. Under the sealing lock. docs/CONCURRENCY.md, Leftovers.
// SAFETY: segment 0 stays mapped until its lane is let go, which takes the sealing lock; its
// private copy, if it has one, is as long as the segment.

import CShims

package enum Leftovers {
    /// The state of segment 0 (`retired` of its slot).
    fileprivate static var cleared: UInt32 { 1 }

    /// Sets how many files may be kept for reuse, at once for 0.
    static func limitRing(_ engine: EngineBlock, _ ringMax: UInt32) {
        // ORDER: relaxed. A bound for a hint, and the hint (A22). Supply may store an older hint
        // once more; what is used again meanwhile, `isFresh` finds.
        unsafe cwa_store_relaxed_u32(SegmentSize.ringMaxWord(engine), ringMax)
        if ringMax == 0 { unsafe cwa_store_relaxed_u32(Recycling.ringWord(engine), 0) }
    }

    /// An empty segment is not sealed. So that it is, all of it is claimed, if another one is
    /// ready: on a full disk it is the room that is left.
    fileprivate static func fill(
        _ engine: EngineBlock, _ lane: LaneBlock, _ segment: SegmentBlock
    ) {
        guard let base = unsafe segment.pointee.base, unsafe EngineCore.isEmpty(segment) else {
            return
        }
        if unsafe Segments.spareCount(lane) == 0,
            let spare = unsafe Segments.make(engine, lane, isWhole: false)
        {
            unsafe Segments.putSpare(engine, lane, spare)
        }
        guard unsafe Segments.spareCount(lane) > 0 else { return }
        // A claim that never gets a header (A5).
        _ = unsafe cwa_add_u64(
            UnsafeMutableRawPointer(base) + SegmentHeader.allocated, segment.pointee.size)
    }

    /// Writes zeros over the chunks of an archived segment 0: in its file, and in the private
    /// memory of write mode and of a lost segment.
    fileprivate static func overwrite(
        _ engine: EngineBlock, _ lane: LaneBlock, _ first: SegmentBlock
    ) -> Bool {
        let offset = unsafe first.pointee.file_offset
        guard
            unsafe overwrite(
                Descriptors.lane(engine, lane), segmentAt: offset, bytes: first.pointee.size)
        else { return false }
        if unsafe WriteThrough.isOn(engine) || Lost.isLost(first),
            let base = unsafe UnsafeMutableRawPointer(first.pointee.base)
        {
            unsafe (base + SegmentHeader.bytes).initializeMemory(
                as: UInt8.self, repeating: 0,
                count: Int(first.pointee.size) - SegmentHeader.bytes)
        }
        return true
    }

    /// Overwrites the chunks of an archived segment in that file with zeros. By system calls: a
    /// store into a file that somebody has cut would kill the host. A file that was cut does not
    /// grow again.
    package static func overwrite(
        _ descriptor: Int32, segmentAt offset: UInt64, bytes: UInt64
    ) -> Bool {
        guard let file = FileFacts(of: descriptor) else { return false }
        let begin = offset &+ UInt64(SegmentHeader.bytes)
        let end = min(file.bytes, offset &+ bytes)
        guard end > begin else { return true }
        var dead = SegmentHeader.stateDead
        // A reader that has copied zeros finds this state when it checks the header (R11).
        guard
            unsafe FileCalls.write(
                descriptor, &dead, 4, at: offset &+ UInt64(SegmentHeader.state)) == 0
        else { return false }
        cwa_fence_full()
        // CRASH: dead, with its records: the lane's header says that archives hold them, and
        // adopters remove the file.
        return FileCalls.writeZeros(descriptor, offset: begin, bytes: end - begin) == 0
    }
}

extension EngineCore {
    package static func limitRing(_ engine: EngineBlock, _ ringMax: UInt32) {
        unsafe Leftovers.limitRing(engine, ringMax)
    }

    /// The lanes that this process has at present.
    package static func laneNames(_ engine: EngineBlock) -> Set<String> {
        var names: Set<String> = []
        var lane = unsafe readyLane(engine)
        while let each = unsafe lane {
            unsafe names.insert(laneName(each))
            unsafe lane = each.pointee.previous
        }
        return names
    }

    package enum FirstSegment: Sendable {
        /// No archive holds it yet, or nothing of it is left.
        case done
        /// It was overwritten: the lane file is to be synced (`syncCleared`).
        case overwritten
        /// A thread is still in it, or its file cannot be written: to be tried again.
        case waits
    }

    /// Overwrites segment 0 if archives hold it, as the lane's header says.
    package static func clearFirst(_ engine: EngineBlock) -> FirstSegment {
        guard let lane = unsafe readyLane(engine), let file = unsafe lane.pointee.file,
            let first = unsafe lane.pointee.first,
            unsafe first.pointee.retired != Leftovers.cleared,
            unsafe cwa_load_acquire_u64(
                UnsafeMutableRawPointer(file) + LaneHeader.archivedBelow) > 0
        else { return .done }
        guard unsafe Segments.hasState(first, Segments.sealed), Quiescence.fence(),
            unsafe Quiescence.isQuiet(engine, first),
            unsafe Leftovers.overwrite(engine, lane, first)
        else { return .waits }
        return .overwritten
    }

    /// Syncs the lane file of that name. False: the zeros may not be on the disk.
    package static func syncCleared(_ engine: EngineBlock, of name: String) -> Bool {
        guard let lane = unsafe readyLane(engine), unsafe laneName(lane) == name else {
            return true
        }
        let error = unsafe FileCalls.syncData(Descriptors.lane(engine, lane))
        // The system reports a lost page once, and the file has the names of the lane, too.
        // ORDER: relaxed. A request on its own (A36).
        if SyncedFiles.isLasting(error) { unsafe Lanes.setUnusable(lane) }
        return error == 0
    }

    /// Segment 0 of the lane of that name needs no further look. Under the sealing lock, in which a
    /// lane is let go.
    package static func markCleared(_ engine: EngineBlock, of name: String) {
        guard let lane = unsafe readyLane(engine), unsafe laneName(lane) == name,
            let first = unsafe lane.pointee.first
        else { return }
        unsafe first.pointee.retired = Leftovers.cleared
    }

    /// Removes spares that were segments before, and replaces such a current segment. False: a
    /// segment that is in use, or is not archived yet, lies in such a file. On the supply thread,
    /// which alone unmaps.
    package static func dropReused(_ engine: EngineBlock) -> Bool {
        guard let lane = unsafe readyLane(engine) else { return true }
        for index in 0..<Int(CWI_SPARES_MAX) {
            // ORDER: acquire, and acquire-release to take it. As Segments.takeSpare (A11).
            let word = unsafe cwa_load_acquire_u64(Lanes.spareWord(lane, index))
            guard let spare = unsafe SegmentBlock(bitPattern: UInt(word)),
                unsafe spare.pointee.generation > 1,
                unsafe cwa_cas_u64(Lanes.spareWord(lane, index), word, 0)
            else { continue }
            unsafe Segments.destroy(engine, lane, spare)
        }
        var isFresh = true
        if let current = unsafe Claim.current(lane), unsafe current.pointee.generation > 1 {
            unsafe Leftovers.fill(engine, lane, current)
            _ = unsafe roll(engine)
        }
        unsafe Segments.forEach(engine) { segment in
            guard unsafe !Segments.hasState(segment, Segments.free, Segments.making),
                unsafe segment.pointee.lane == lane, unsafe segment.pointee.generation > 1,
                // Archived, and only not unmapped yet.
                unsafe !(segment.pointee.retired != 0 && Quiescence.isSealedFile(segment))
            else { return }
            isFresh = false
        }
        return isFresh
    }
}
