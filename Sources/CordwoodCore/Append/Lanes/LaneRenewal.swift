// Leaving a lane for a new one while threads log. The lane's file or its current segment has lost
// its name (to a misled adopter, or to somebody who deleted the store), its catalog cannot be made
// durable, or its resource has changed too often. Records in a file without a name are lost, so the
// engine checks ten times a second. It makes the new lane as at open and switches to it; then it
// seals the old lane and lets it go once no thread is inside an append that began there. Under the
// sealing lock, never in a handler.
// docs/CONCURRENCY.md, A36.
// SAFETY: lane blocks lie in a pool that is never unmapped; a left lane's mappings are released
// only after the grace period that `LeftLane` waits for.

import CShims

/// What remains of a lane from the moment the engine leaves it until it is let go.
@safe package struct LeftLane {
    /// A thread that was inside an append when the engine left the lane, and how far it had got.
    @safe private struct Straggler {
        var thread: ThreadBlock
        var verdict: UInt64
        var ptr: UInt64
    }

    private let lane: LaneBlock
    private var stragglers: [Straggler]
    /// The most records that may be lost: those that no archive holds.
    package fileprivate(set) var lost: UInt64 = 0
    /// The new lane reports what the old lane counted as refused.
    fileprivate var movesRefused = false
    /// The lane's former directory, if another one has taken its place.
    fileprivate var directory: Descriptors.Directory?

    /// Call once the new lane is the engine's.
    fileprivate init(_ engine: EngineBlock, _ lane: LaneBlock) {
        unsafe self.lane = unsafe lane
        stragglers = []
        // A thread that enters an append after this fence finds the new lane.
        _ = Membarrier.heavyFence()
        var busy: [Straggler] = []
        unsafe ThreadBlocks.forEach(engine) { thread in
            guard unsafe cwa_load_acquire_u64(AppendPath.busyWord(thread)) != 0 else { return }
            unsafe busy.append(
                Straggler(
                    thread: thread, verdict: Verdict.load(thread).word,
                    ptr: LeftLane.ptr(thread)))
        }
        stragglers = busy
    }

    private static func ptr(_ thread: ThreadBlock) -> UInt64 { unsafe cwa_load_relaxed_u64(thread) }

    /// Each straggler was seen idle, or further on: a later claim or record began after the fence.
    private mutating func isQuiet() -> Bool {
        stragglers.removeAll {
            unsafe cwa_load_acquire_u64(AppendPath.busyWord($0.thread)) == 0
                || Verdict.load($0.thread).word != $0.verdict || LeftLane.ptr($0.thread) != $0.ptr
        }
        return stragglers.isEmpty
    }

    /// Lets the lane go once no thread is in it any more. False: not yet.
    package mutating func letGo(_ engine: EngineBlock) -> Bool {
        guard isQuiet(), Quiescence.fence() else { return false }
        // A straggler may have made one more segment current there, in the same directory.
        unsafe EngineCore.sealLeft(engine, lane)
        unsafe EngineCore.putOnDisk(engine, namelessOnly: false, of: lane)
        unsafe dropMemory(engine)
        var isInUse = false
        unsafe Segments.forEach(engine) { segment in
            guard unsafe segment.pointee.lane == lane, unsafe segment.pointee.in_lane == 0 else {
                return
            }
            let state = unsafe cwa_load_acquire_u32(Segments.stateWord(segment))
            if state == Segments.free || state == Segments.spare { return }
            if state == Segments.sealed, unsafe Quiescence.isQuiet(engine, segment) {
                unsafe Segments.releaseMapping(segment)
            } else {
                isInUse = true
            }
        }
        guard !isInUse, let current = unsafe engine.pointee.lane,
            let first = unsafe lane.pointee.first,
            unsafe cwa_load_acquire_u32(Segments.stateWord(first)) == Segments.sealed,
            unsafe Quiescence.isQuiet(engine, first)
        else { return false }
        unsafe carryCounts(to: current)
        unsafe moveRefused(engine, to: current)
        // From here on no thread looks for it.
        unsafe current.pointee.previous = nil
        unsafe EngineCore.letGo(engine, lane)
        unsafe release(engine)
        return true
    }

    /// If the directory was deleted with the links to the lane's segments in memory, nothing else
    /// would ever remove these. Their records count as lost.
    func dropMemory(_ engine: EngineBlock) {
        guard movesRefused, directory != nil else { return }
        unsafe Segments.forEach(engine) { segment in
            guard unsafe segment.pointee.lane == lane, unsafe Quiescence.isSealedFile(segment)
            else { return }
            unsafe MemorySegments.remove(engine, segment)
        }
    }

    /// Runs after the lane has been let go.
    func release(_ engine: EngineBlock) {
        unsafe CatalogWriter.release(engine, lane)
        directory?.close()
    }

    /// Moves the refusals counted since the last check to the new lane: no reader finds the old
    /// lane's file.
    private func moveRefused(_ engine: EngineBlock, to current: LaneBlock) {
        guard movesRefused else { return }
        let more = unsafe Drops.total(engine, without: current)
        unsafe Drops.noteMore(engine, current, lost: more)
        unsafe engine.pointee.left_dropped &-= more
    }

    /// Carries over the counts that ending threads have meanwhile added to the old block.
    private func carryCounts(to current: LaneBlock) {
        func carry(_ from: UnsafeMutableRawPointer, _ to: UnsafeMutableRawPointer) {
            // ORDER: relaxed is enough for counts (A9).
            let count = unsafe cwa_exchange_u64(from, 0)
            _ = unsafe cwa_add_u64(to, count)
        }
        unsafe carry(cwi_lane_records_at(lane), cwi_lane_records_at(current))
        unsafe carry(cwi_lane_record_bytes_at(lane), cwi_lane_record_bytes_at(current))
        unsafe carry(cwi_lane_slow_appends_at(lane), cwi_lane_slow_appends_at(current))
    }
}

extension EngineCore {
    /// Bounded, because each lane takes 64 KiB of address space for ever.
    static let renewalsMax: UInt32 = 1_000

    /// In a child of fork(2): its lane did not replace another one.
    static func isForked(_ engine: EngineBlock) -> Bool {
        unsafe Int32(
            bitPattern: engine.pointee.lane_generation &- engine.pointee.renewals) > 1
    }

    /// True: the engine has left as many lanes as it may and no longer checks for trouble.
    package static func hasLeftAll(_ engine: EngineBlock) -> Bool {
        unsafe engine.pointee.lanes_left >= renewalsMax
    }

    package enum LaneTrouble: Sendable {
        /// All is well, or the state cannot be determined.
        case none
        /// The lane's file or its current segment has lost its name.
        case nameless
        /// Their directory has lost its name.
        case directoryGone
        /// The host closed its descriptor, and it was not found again. Nothing is known to be lost.
        case directoryLost
        /// Its catalog cannot be written or made durable.
        case unusable
        /// The resource has changed so often that another lane is due. Nothing is wrong with it.
        case resources
    }

    /// Whether that is the directory of the engine's lane.
    package static func isLanes(_ engine: EngineBlock, _ device: UInt64, _ inode: UInt64) -> Bool {
        unsafe engine.pointee.lanes_device == device && engine.pointee.lanes_inode == inode
    }

    /// Whether a reader can find what is written now.
    package static func laneTrouble(_ engine: EngineBlock) -> LaneTrouble {
        guard let lane = unsafe readyLane(engine), unsafe lane.pointee.previous == nil else {
            return .none
        }
        let directory = unsafe Descriptors.lanes(engine)
        guard directory >= 0 else { return unsafe trouble(engine, lane) }
        if FileCalls.isNameless(directory) { return .directoryGone }
        let isLaneThere = unsafe isNamed(
            directory, lane.pointee.lock_device, lane.pointee.lock_inode
        ) { name in
            unsafe Lanes.addName(&name, lane)
            name.add(".lane")
        }
        guard isLaneThere else { return trouble(directory) }
        if let current = unsafe Claim.current(lane), unsafe current.pointee.in_lane == 0,
            unsafe current.pointee.memory_id == 0
        {
            let isThere = unsafe isNamed(
                directory, current.pointee.device, current.pointee.inode
            ) { name in
                unsafe Segments.addFileName(&name, lane, current, sealed: false)
            }
            guard isThere else { return trouble(directory) }
        }
        // ORDER: relaxed. A request on its own (A36).
        let request = unsafe cwa_load_relaxed_u32(Lanes.renewWord(lane))
        if request == UInt32(CWI_RENEW_RESOURCES) {
            return unsafe hasLeftAll(engine) ? .none : .resources
        }
        return request != 0 ? .unusable : .none
    }

    /// The directory was not found.
    private static func trouble(_ engine: EngineBlock, _ lane: LaneBlock) -> LaneTrouble {
        guard unsafe Descriptors.isLanesPathGone(engine) else { return .none }
        let found = unsafe MappedFiles.directory(
            levels: 1, engine.pointee.lanes_device, engine.pointee.lanes_inode)
        guard found == -1 else {
            FileCalls.close(found)
            return .none
        }
        return unsafe Descriptors.isLaneDeleted(lane) ? .directoryGone : .directoryLost
    }

    /// A file lost its name, perhaps together with its directory.
    private static func trouble(_ directory: Int32) -> LaneTrouble {
        FileCalls.isDeleted(directory) ? .directoryGone : .nameless
    }

    /// False: the name leads nowhere or to another file. True also if that cannot be determined.
    private static func isNamed(
        _ directory: Int32, _ device: UInt64, _ inode: UInt64,
        _ add: (inout NameBuffer) -> Void
    ) -> Bool {
        unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: 160) { buffer in
            var name = unsafe NameBuffer(buffer)
            add(&name)
            return unsafe FileCalls.isNamed(name.pointer, in: directory, device, inode)
        }
    }

    /// Makes a new lane and leaves the old one for it. The caller holds the sealing lock, the
    /// journal's, and the lock under which names are added.
    /// known: the number of records and refusals that archives hold or that were reported as lost,
    /// so all others may be lost; nil: none is lost.
    /// since: monotonic ns when all was well. lanesDirectory: a descriptor of the directory that
    /// has taken the old one's place, which this function takes over; -1: the old one is still
    /// there.
    /// Returns nil if no lane can be made now; the engine then keeps the one it has.
    package static func renewLane(
        _ engine: EngineBlock, known: UInt64?, since: UInt64, lanesDirectory: Int32 = -1
    ) -> LeftLane? {
        guard let old = unsafe readyLane(engine), unsafe old.pointee.previous == nil,
            unsafe !hasLeftAll(engine),
            let memory = unsafe UnsafeMutableRawPointer(engine.pointee.unused_lane)
                ?? LanePool.take()
        else {
            FileCalls.close(lanesDirectory)
            return nil
        }
        var left: Descriptors.Directory?
        if lanesDirectory >= 0 {
            unsafe Segments.setElsewhere(old, true)
            unsafe left = Descriptors.replaceLanes(engine, .init(lanesDirectory))
        }
        unsafe memory.initializeMemory(as: UInt8.self, repeating: 0, count: LanePool.bytesEach)
        let new = unsafe memory.assumingMemoryBound(to: cwi_lane.self)
        unsafe engine.pointee.unused_lane = unsafe new
        unsafe new.pointee.helper_started = 1
        unsafe new.pointee.services_mark = old.pointee.services_mark
        unsafe new.pointee.catalog_set = old.pointee.catalog_set ^ 1
        let lost = known.map { unsafe lostAtMost(engine, Drops.total(engine), $0) } ?? 0
        var isMade = false
        // No site is added in between, so the new lane has every site that a record may refer to.
        let ran = Sites.locked {
            guard unsafe Lanes.build(engine, new, renews: true) == Status.ok else { return }
            isMade = true
            unsafe Drops.note(engine, new, lost: lost, since: since)
            unsafe new.pointee.previous = unsafe old
            // Cleared before a child forked from here on can have the lane as its own.
            unsafe engine.pointee.unused_lane = nil
            let word = unsafe cwi_engine_lane_at(engine)
            // CRASH: two lanes of one process, each complete.
            // ORDER: release. Once the address is visible, so is everything in the lane (A36).
            unsafe cwa_store_release_u64(word, UInt64(UInt(bitPattern: new)))
        }
        guard ran, isMade else {
            if let left {
                unsafe Descriptors.replaceLanes(engine, left).close()
                unsafe Segments.setElsewhere(old, false)
            }
            return nil
        }
        unsafe engine.pointee.lanes_left &+= 1
        var leaving = unsafe LeftLane(engine, old)
        leaving.directory = left
        unsafe sealLeft(engine, old)
        if let known {
            // Adds what the old lane kept or refused until it was sealed.
            let refused = unsafe Drops.total(engine, without: new)
            let all = unsafe lostAtMost(engine, refused, known)
            if all > lost { unsafe Drops.noteMore(engine, new, lost: all - lost) }
            leaving.lost = max(all, lost)
            leaving.movesRefused = true
            unsafe engine.pointee.left_dropped &-= refused
        }
        return leaving
    }

    /// Seals the open segments of a lane that the engine has left. No segment becomes current there
    /// any more.
    static func sealLeft(_ engine: EngineBlock, _ lane: LaneBlock) {
        unsafe Segments.forEach(engine) { segment in
            let state = unsafe cwa_load_acquire_u32(Segments.stateWord(segment))
            guard state == Segments.open || state == Segments.sealing,
                unsafe segment.pointee.lane == lane
            else { return }
            _ = unsafe Sealer.seal(engine, lane, segment)
        }
    }

    /// More records than a segment of the present size can hold: each needs at least its header.
    package static func recordsMax(_ engine: EngineBlock) -> UInt64 {
        unsafe SegmentSize.of(engine) / UInt64(RecordHeader.bytes)
    }

    /// Makes a later gap record report that many more.
    package static func tellLost(_ engine: EngineBlock, _ count: UInt64) {
        guard let lane = unsafe readyLane(engine) else { return }
        unsafe Drops.noteMore(engine, lane, lost: count)
    }

    /// Records that were kept or refused and are not known to be in an archive, plus one per thread
    /// that may have stored its record without counting it yet. Refusals count even if they were
    /// reported, because those gap records may be lost.
    private static func lostAtMost(
        _ engine: EngineBlock, _ refused: UInt64, _ known: UInt64
    ) -> UInt64 {
        var most = unsafe counts(engine).records &+ refused
        unsafe ThreadBlocks.forEach(engine) { _ in most &+= 1 }
        return most - min(most, known)
    }
}

extension Descriptors {
    /// True if the path leads nowhere any more, or to another directory.
    static func isLanesPathGone(_ engine: EngineBlock) -> Bool {
        guard let path = unsafe lanesPath(engine) else { return false }
        return unsafe !FileCalls.isNamed(
            path, engine.pointee.lanes_device, engine.pointee.lanes_inode)
    }

    /// False also if that is not known: no descriptor leads to the lane's file, and the system does
    /// not say what is mapped.
    fileprivate static func isLaneDeleted(_ lane: LaneBlock) -> Bool {
        if unsafe isLaneFile(lane, lane.pointee.lock_fd) {
            return unsafe FileCalls.isNameless(lane.pointee.lock_fd)
        }
        return unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: 160) { buffer in
            var name = unsafe NameBuffer(buffer)
            unsafe Lanes.addName(&name, lane)
            name.add(".lane")
            return unsafe MappedFiles.isDeleted(name.pointer)
        }
    }

    /// A descriptor of lanes/, or -1 if the host closed it, and which directory that is.
    struct Directory {
        var descriptor: Int32
        var device: UInt64 = 0
        var inode: UInt64 = 0

        init(_ descriptor: Int32) {
            self.descriptor = descriptor
            unsafe cwi_fd_identity(descriptor, &device, &inode)
        }

        init(_ descriptor: Int32, _ device: UInt64, _ inode: UInt64) {
            (self.descriptor, self.device, self.inode) = (descriptor, device, inode)
        }

        func close() { Descriptors.close(descriptor, device, inode) }
    }

    /// Switches to another directory. Calls that still use the old one go on until the caller
    /// closes it.
    static func replaceLanes(_ engine: EngineBlock, _ new: Directory) -> Directory {
        var old = unsafe Directory(
            engine.pointee.lanes_fd, engine.pointee.lanes_device, engine.pointee.lanes_inode)
        let known = UInt32(bitPattern: old.descriptor)
        // The host closed it, and the new one may have its number.
        if !cwi_fd_is(old.descriptor, old.device, old.inode) { old.descriptor = -1 }
        unsafe engine.pointee.lanes_device = new.device
        unsafe engine.pointee.lanes_inode = new.inode
        let word = unsafe cwi_engine_lanes_fd_at(engine)
        // ORDER: acquire-release. A writer that found the old one lost may have been faster (A28).
        if unsafe !cwa_cas_u32(word, known, UInt32(bitPattern: new.descriptor)) { new.close() }
        return old
    }
}
