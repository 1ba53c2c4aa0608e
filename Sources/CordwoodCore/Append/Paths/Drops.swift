// Exact counts of records that could not be kept. Refused calls are counted in a slot of the mapped
// lane file, so a kill does not lose the count. The next chunk of a thread of that slot starts with
// a gap record that gives the number and the first and last times (FORMAT §3.2, §8.6). Safe
// everywhere.
// SAFETY: the slots lie in the lane file's mapping, over which close maps private memory in place;
// their index is taken modulo the number of slots. The gap record fits `Claim.preambleBytesMax`.

import CShims

enum Drops {
    /// Counts one refused call of the host. inFile: in write mode, also writes the count to the
    /// file.
    static func count(_ engine: EngineBlock, _ cause: GapCause, inFile: Bool) {
        guard let lane = unsafe engine.pointee.lane, let file = unsafe lane.pointee.file else {
            let word = unsafe cwi_engine_child_dropped_at(engine)
            _ = unsafe cwa_add_u64(word, 1)
            return
        }
        let serial = unsafe ThreadBlocks.own(engine)?.pointee.serial ?? 0
        let slot = unsafe slot(file, serial)
        let now = Machine.sharedMonotonicNs()
        _ = unsafe cwa_add_u64(causeWord(lane, cause), 1)
        // Added before the count, so a gap record that covers the count also has its cause.
        unsafe add(causes: cause.bit, to: slot)
        // CRASH: a count without its times; the reader reports it all the same.
        // ORDER: relaxed is enough for counts; the threads of a slot share the fetch-and-add (A17).
        let before = unsafe cwa_add_u64(slot + DropSlot.dropped, 1)
        if unsafe before == cwa_load_relaxed_u64(slot + DropSlot.reported) {
            unsafe cwa_store_relaxed_u64(slot + DropSlot.firstMonotonic, now)
        }
        unsafe cwa_store_relaxed_u64(slot + DropSlot.lastMonotonic, now)
        guard inFile else { return }
        // A full disk may take a second to refuse a write. After one that failed, the counts stay
        // in memory until the supply thread has written them.
        // ORDER: the count was added before by a fetch-and-add, so the supply thread has it in what
        // it writes, or finds LATE here instead of WRITING (A17).
        let late = unsafe cwi_lane_counts_late_at(lane)
        if unsafe cwa_load_acquire_u32(late) == UInt32(CWI_COUNTS_WRITTEN),
            unsafe WriteThrough.lane(engine, lane, slot, DropSlot.bytes)
        {
            return
        }
        unsafe cwa_store_release_u32(late, UInt32(CWI_COUNTS_LATE))
    }

    /// Writes the counts that the file of the lane lacks. On the supply thread, now and then.
    static func writeLate(_ engine: EngineBlock, _ lane: LaneBlock) {
        guard let file = unsafe lane.pointee.file else { return }
        let late = unsafe cwi_lane_counts_late_at(lane)
        guard unsafe cwa_load_acquire_u32(late) == UInt32(CWI_COUNTS_LATE) else { return }
        unsafe cwa_store_release_u32(late, UInt32(CWI_COUNTS_WRITING))
        // ORDER: full. What was counted before a thread found another word is written here (A17).
        cwa_fence_full()
        let isWritten = unsafe WriteThrough.lane(
            engine, lane, file + LaneHeader.dropsOffsetValue,
            Int(LaneHeader.dropsCountValue) * DropSlot.bytes)
        guard isWritten else {
            return unsafe cwa_store_release_u32(late, UInt32(CWI_COUNTS_LATE))
        }
        _ = unsafe cwa_cas_u32(late, UInt32(CWI_COUNTS_WRITING), UInt32(CWI_COUNTS_WRITTEN))
    }

    private static func add(causes: UInt64, to slot: UnsafeMutableRawPointer) {
        let word = unsafe slot + DropSlot.causes
        while true {
            // ORDER: relaxed. These bits name the causes of the counts beside them (A17).
            let before = unsafe cwa_load_relaxed_u64(word)
            if before | causes == before { return }
            if unsafe cwa_cas_u64(word, before, before | causes) { return }
        }
    }

    private static func causeWord(
        _ lane: LaneBlock, _ cause: GapCause
    ) -> UnsafeMutableRawPointer {
        unsafe cwi_lane_dropped_by_at(lane)
            + Int(cause.rawValue) * 8
    }

    /// Calls refused for that cause, in the lanes that `total` covers.
    static func total(_ engine: EngineBlock, of cause: GapCause) -> UInt64 {
        var sum: UInt64 = 0
        var next: LaneBlock? = unsafe engine.pointee.lane
        while let lane = unsafe next {
            unsafe sum &+= cwa_load_relaxed_u64(causeWord(lane, cause))
            unsafe next = lane.pointee.previous
        }
        return sum
    }

    /// Before a lane is ready, it takes over the calls that were refused while there was no lane.
    static func takeOver(_ engine: EngineBlock, _ lane: LaneBlock) {
        guard let file = unsafe lane.pointee.file else { return }
        let word = unsafe cwi_engine_child_dropped_at(engine)
        let count = unsafe cwa_exchange_u64(word, 0)
        guard count > 0 else { return }
        let slot = unsafe slot(file, 0)
        unsafe slot.storeBytes(of: count, toByteOffset: DropSlot.dropped, as: UInt64.self)
        let cause = unsafe Refusal.noted(engine).cause
        _ = unsafe cwa_add_u64(causeWord(lane, cause), count)
        unsafe slot.storeBytes(of: cause.bit, toByteOffset: DropSlot.causes, as: UInt64.self)
        let now = Machine.sharedMonotonicNs()
        unsafe slot.storeBytes(of: now, toByteOffset: DropSlot.firstMonotonic, as: UInt64.self)
        unsafe slot.storeBytes(of: now, toByteOffset: DropSlot.lastMonotonic, as: UInt64.self)
        _ = unsafe WriteThrough.lane(engine, lane, slot, DropSlot.bytes)
    }

    /// All refused calls of this engine: in its lane, in one that it is leaving, and in those that
    /// it has let go.
    /// current: a lane whose calls are left out.
    static func total(_ engine: EngineBlock, without current: LaneBlock? = nil) -> UInt64 {
        var sum = unsafe engine.pointee.child_dropped &+ engine.pointee.left_dropped
        var next: LaneBlock? = unsafe engine.pointee.lane
        while let lane = unsafe next {
            if unsafe lane != current { unsafe sum &+= total(lane) }
            unsafe next = lane.pointee.previous
        }
        return sum
    }

    /// Those counted in the file of that lane.
    static func total(_ lane: LaneBlock) -> UInt64 {
        guard let file = unsafe lane.pointee.file else { return 0 }
        return (0..<UInt32(LaneHeader.dropsCountValue)).reduce(0) {
            unsafe $0 &+ cwa_load_relaxed_u64(slot(file, $1) + DropSlot.dropped)
        }
    }

    /// Records in a lane that no thread uses yet that this many records may be lost, between
    /// `since` and now. The first thread that logs there starts with the gap record.
    static func note(
        _ engine: EngineBlock, _ lane: LaneBlock, lost: UInt64, since: UInt64
    ) {
        guard lost > 0, let file = unsafe lane.pointee.file else { return }
        let slot = unsafe slot(file, 1)
        unsafe slot.storeBytes(of: lost, toByteOffset: DropSlot.dropped, as: UInt64.self)
        unsafe slot.storeBytes(of: since, toByteOffset: DropSlot.firstMonotonic, as: UInt64.self)
        unsafe slot.storeBytes(
            of: Machine.sharedMonotonicNs(), toByteOffset: DropSlot.lastMonotonic, as: UInt64.self)
        _ = unsafe WriteThrough.lane(engine, lane, slot, DropSlot.bytes)
    }

    /// The same for a lane in use: a later chunk of a thread of that slot reports it, or the reader
    /// does.
    static func noteMore(_ engine: EngineBlock, _ lane: LaneBlock, lost: UInt64) {
        guard lost > 0, let file = unsafe lane.pointee.file else { return }
        let slot = unsafe slot(file, 1)
        // ORDER: relaxed is enough for counts (A17).
        if unsafe cwa_load_relaxed_u64(slot + DropSlot.firstMonotonic) == 0 {
            // Not before the lane began; the exact time is unknown.
            let began = unsafe cwa_load_relaxed_u64(file + LaneHeader.createdMonotonic)
            unsafe cwa_store_relaxed_u64(slot + DropSlot.firstMonotonic, began)
        }
        unsafe cwa_store_relaxed_u64(slot + DropSlot.lastMonotonic, Machine.sharedMonotonicNs())
        _ = unsafe cwa_add_u64(slot + DropSlot.dropped, lost)
        _ = unsafe WriteThrough.lane(engine, lane, slot, DropSlot.bytes)
    }

    /// Running totals that a gap record covers.
    struct Gap {
        var from: UInt64
        var to: UInt64
        var causes: UInt64
    }

    /// Undoes a gap record whose chunk was not written: the next one reports it.
    static func takeBack(_ gap: Gap?, _ lane: LaneBlock, _ thread: ThreadBlock) {
        guard let gap, let file = unsafe lane.pointee.file else { return }
        unsafe add(causes: gap.causes, to: slot(file, thread.pointee.serial))
        _ = unsafe cwa_cas_u64(reportingWord(lane, thread.pointee.serial), gap.to, gap.from)
    }

    /// Writes the gap record at the start of a chunk if one is due; returns the new end.
    static func writeGap(
        _ thread: ThreadBlock, _ lane: LaneBlock, _ start: UnsafeMutableRawPointer,
        _ gap: inout Gap?
    ) -> UnsafeMutableRawPointer {
        guard let file = unsafe lane.pointee.file else { return unsafe start }
        let slot = unsafe slot(file, thread.pointee.serial)
        let reporting = unsafe reportingWord(lane, thread.pointee.serial)
        let to = unsafe cwa_load_relaxed_u64(slot + DropSlot.dropped)
        let from = unsafe cwa_load_relaxed_u64(reporting)
        // Only one thread of the slot reports the count. The file says so once the chunk exists, so
        // a kill in between leaves the count to the reader (A17).
        // `to` is smaller if the lane file was cut under us.
        guard to > from, unsafe cwa_cas_u64(reporting, from, to) else { return unsafe start }
        // CRASH: the causes are taken and no gap record has them: the reader reports the count
        // without a cause.
        let causes = unsafe cwa_exchange_u64(slot + DropSlot.causes, 0)
        gap = Gap(from: from, to: to, causes: causes)
        let length = RecordHeader.bytes + GapPayload.bytes
        unsafe start.storeBytes(of: UInt32(length), as: UInt32.self)
        unsafe start.storeBytes(of: 0, toByteOffset: 4, as: UInt64.self)
        unsafe start.storeBytes(of: UInt32(RecordType.gap) << 8, toByteOffset: 12, as: UInt32.self)
        let payload = unsafe start + RecordHeader.bytes
        unsafe payload.storeBytes(
            of: UInt64(thread.pointee.serial % UInt32(LaneHeader.dropsCountValue)), as: UInt64.self)
        unsafe payload.storeBytes(of: from, toByteOffset: GapPayload.from, as: UInt64.self)
        unsafe payload.storeBytes(of: to, toByteOffset: GapPayload.to, as: UInt64.self)
        unsafe payload.storeBytes(
            of: cwa_load_relaxed_u64(slot + DropSlot.firstMonotonic),
            toByteOffset: GapPayload.firstMonotonic, as: UInt64.self)
        unsafe payload.storeBytes(
            of: cwa_load_relaxed_u64(slot + DropSlot.lastMonotonic),
            toByteOffset: GapPayload.lastMonotonic, as: UInt64.self)
        unsafe payload.storeBytes(of: causes, toByteOffset: GapPayload.causes, as: UInt64.self)
        return unsafe start + length
    }

    /// The chunk that may start with a gap record exists: records in the file what it covers.
    static func noteReported(_ thread: ThreadBlock, _ engine: EngineBlock, _ lane: LaneBlock) {
        guard let file = unsafe lane.pointee.file else { return }
        let slot = unsafe slot(file, thread.pointee.serial)
        let to = unsafe cwa_load_relaxed_u64(reportingWord(lane, thread.pointee.serial))
        // CRASH: the gap record exists and `reported` does not say so; readers go by the larger.
        if unsafe cwa_load_relaxed_u64(slot + DropSlot.reported) != to {
            unsafe cwa_store_release_u64(slot + DropSlot.reported, to)
            _ = unsafe WriteThrough.lane(engine, lane, slot, DropSlot.bytes)
        }
    }

    private static func reportingWord(
        _ lane: LaneBlock, _ serial: UInt32
    ) -> UnsafeMutableRawPointer {
        unsafe cwi_lane_reporting_at(lane)
            + Int(serial % UInt32(LaneHeader.dropsCountValue)) * 8
    }

    private static func slot(
        _ file: UnsafeMutablePointer<UInt8>, _ serial: UInt32
    ) -> UnsafeMutableRawPointer {
        let index = Int(serial % UInt32(LaneHeader.dropsCountValue))
        return unsafe UnsafeMutableRawPointer(file) + LaneHeader.dropsOffsetValue + index
            * DropSlot.bytes
    }
}
