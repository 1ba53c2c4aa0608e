// One engine's block in memory, from open to close: configuration, loggers, the lane, and the
// helper's work to keep the append path supplied. Policy (archives, uploads, threads) belongs to
// the engine above; this layer only touches segments. The block's address is never reused (R22).
// SAFETY: engine and lane blocks lie in anonymous mappings that are never unmapped, so any pointer
// to one that was ever handed out may be followed; offsets into them are those of the fields.

import CCordwood
import CShims

public enum EngineCore {
    public static let loggersMax = 65_536
    private static let namesBytesMax = 16 << 20

    /// The parameters of open; the caller checks their bounds.
    package struct Configuration {
        package var lanesDirectory: Int32
        /// Absolute path from which the directory is reopened after the host has closed its
        /// descriptor.
        package var lanesPath: String
        package var segmentBytes: UInt64
        package var overflow: UInt32
        package var processName: [UInt8]
        package var echoInLine: Bool
        package var coarseClock: Bool
        /// The descriptor from MemorySegments.openFolder. -1: segments lie on the disk.
        package var memoryDirectory: Int32
        /// The most segments that are kept for reuse.
        package var ringMax: UInt32
        /// Whether this engine handles faults in its mapped files (guard.c).
        package var guards = false
        /// Whether records may share a time that the caller holds.
        package var holdsTime = false

        package init(
            lanesDirectory: Int32, segmentBytes: UInt64, overflow: UInt32, processName: [UInt8],
            echoInLine: Bool, coarseClock: Bool = false, memoryDirectory: Int32 = -1,
            ringMax: UInt32 = 8, lanesPath: String = ""
        ) {
            self.lanesDirectory = lanesDirectory
            self.lanesPath = lanesPath
            self.segmentBytes = segmentBytes
            self.overflow = overflow
            self.processName = processName
            self.echoInLine = echoInLine
            self.coarseClock = coarseClock
            self.memoryDirectory = memoryDirectory
            self.ringMax = ringMax
        }
    }

    /// Creates the engine's memory and its lane block. Takes over the directories' descriptors on
    /// success.
    package static func open(_ configuration: Configuration) -> Result<EngineBlock, CoreError> {
        cwi_pin_module()
        Membarrier.prepare()
        guard ThreadContext.isPrepared, ThreadBlocks.makePool()
        else {
            return unsafe .failure(CoreError(status: Status.memory))
        }
        cwi_atfork_register { EngineCore.forked() }
        guard let engine = unsafe makeBlock(configuration) else {
            return unsafe .failure(CoreError(status: Status.memory))
        }
        unsafe WriteThrough.decide(engine)
        guard unsafe register(engine) else {
            unsafe cwa_store_release_u32(engine, UInt32(CWI_ENGINE_CLOSED))
            return unsafe .failure(CoreError(status: Status.limit))
        }
        return unsafe .success(engine)
    }

    /// Makes the first lane, once resource attributes and loggers are known.
    package static func start(_ engine: EngineBlock) -> Int32 {
        unsafe cwa_store_release_u32(engine, UInt32(CWI_ENGINE_OPEN))
        // In this process the opener starts the helpers, not the first record.
        _ = unsafe takesHelperStart(engine)
        unsafe engine.pointee.lane_fork_count = cwi_process_get().pointee.fork_count
        return unsafe Lanes.make(engine, engine.pointee.lane)
    }

    /// Makes the lane if a forked child has none yet. Returns a status.
    package static func makeLane(_ engine: EngineBlock) -> Int32 {
        unsafe Lanes.make(engine, engine.pointee.lane)
    }

    /// True for exactly one caller in each process.
    package static func takesHelperStart(_ engine: EngineBlock) -> Bool {
        guard let lane = unsafe engine.pointee.lane else { return false }
        let word = unsafe cwi_lane_helper_started_at(lane)
        return unsafe cwa_cas_u32(word, 0, 1)
    }

    private static var engineBytes: Int {
        unsafe (MemoryLayout<cwi_engine>.size + 4095) & ~4095
    }
    private static var loggerBytes: Int { unsafe loggersMax * MemoryLayout<cwi_logger>.stride }

    /// A whole number of huge pages, to which the kernel aligns large mappings: the mappings of
    /// many engines then merge into one, and a host that opens and closes engines for ever does not
    /// run out of mappings.
    private static var blockBytes: Int {
        let hugePage = 2 << 20
        let all = engineBytes + loggerBytes + 2 * Resource.halfBytes + namesBytesMax
        return (all + hugePage - 1) & ~(hugePage - 1)
    }

    /// Returns the memory of a long-closed engine to the system: its addresses stay valid and read
    /// as zero, which means closed, for ever (R22). No thread is inside a call on it any more.
    package static func retire(_ engine: EngineBlock) {
        guard unsafe cwa_load_acquire_u32(engine) == UInt32(CWI_ENGINE_CLOSED) else { return }
        let lane = unsafe engine.pointee.lane
        unsafe Mapping.discard(UnsafeMutableRawPointer(engine), bytes: blockBytes)
        if let lane = unsafe lane {
            unsafe Mapping.discard(UnsafeMutableRawPointer(lane), bytes: LanePool.bytesEach)
        }
    }

    private static func makeBlock(_ configuration: Configuration) -> EngineBlock? {
        guard
            let memory = unsafe Mapping.anonymous(bytes: blockBytes, wipedOnFork: false),
            Sites.prepare(), let laneMemory = unsafe LanePool.take()
        else { return nil }
        let resource = unsafe memory + engineBytes + loggerBytes
        let names = unsafe resource + 2 * Resource.halfBytes
        let engine = unsafe memory.assumingMemoryBound(to: cwi_engine.self)
        unsafe engine.pointee.lane = laneMemory.assumingMemoryBound(to: cwi_lane.self)
        unsafe engine.pointee.loggers = (memory + engineBytes).assumingMemoryBound(
            to: cwi_logger.self)
        unsafe engine.pointee.resource = resource.assumingMemoryBound(to: UInt8.self)
        unsafe engine.pointee.names = names.assumingMemoryBound(to: UInt8.self)
        unsafe engine.pointee.overflow = configuration.overflow
        unsafe engine.pointee.segment_bytes = configuration.segmentBytes
        unsafe engine.pointee.lanes_fd = configuration.lanesDirectory
        unsafe Descriptors.noteLanes(engine, path: configuration.lanesPath)
        unsafe engine.pointee.memory_fd = configuration.memoryDirectory
        unsafe engine.pointee.memory_uid = Machine.userID()
        unsafe engine.pointee.ring_max = configuration.ringMax
        unsafe engine.pointee.guards = configuration.guards ? 1 : 0
        unsafe engine.pointee.holds_time = configuration.holdsTime ? 1 : 0
        unsafe engine.pointee.made_limit = .max
        unsafe engine.pointee.echo = configuration.echoInLine ? 1 : 0
        unsafe engine.pointee.clock_kind =
            configuration.coarseClock
            ? SegmentHeader.clockCoarse
            : Machine.tscIsTrusted() ? SegmentHeader.clockTSC : SegmentHeader.clockMonotonic
        unsafe engine.pointee.ticks_per_second =
            unsafe engine.pointee.clock_kind == SegmentHeader.clockTSC
            ? ClockSample.ticksPerSecond() : 1_000_000_000
        let boot = Machine.bootID()
        unsafe engine.pointee.boot_id = (boot.high, boot.low)
        let machine = Machine.machineID()
        unsafe engine.pointee.machine_id = (machine.high, machine.low)
        let name = configuration.processName.prefix(LaneHeader.processNameBytesMax)
        unsafe engine.pointee.process_name_length = UInt32(name.count)
        let target = unsafe cwi_engine_process_name_at(engine)
        for (i, byte) in name.enumerated() {
            unsafe target.storeBytes(of: byte, toByteOffset: i, as: UInt8.self)
        }
        unsafe Segments.forEach(engine) { unsafe $0.pointee.fd = -1 }
        return unsafe engine
    }

    private static func register(_ engine: EngineBlock) -> Bool {
        let process = unsafe cwi_process_get()!
        let table = unsafe cwi_process_engines_at(process)
        for i in 0..<Int(CWI_ENGINES_MAX)
        where unsafe cwa_cas_u64(table + i * 8, 0, UInt64(UInt(bitPattern: engine))) {
            unsafe engine.pointee.index = UInt32(i)
            return true
        }
        return false
    }

    private static func unregister(_ engine: EngineBlock) {
        let table = unsafe cwi_process_engines_at(cwi_process_get()!)
        _ = unsafe cwa_cas_u64(
            table + Int(engine.pointee.index) * 8, UInt64(UInt(bitPattern: engine)), 0)
    }

    /// Runs in a child after fork(2): lets go of the parent's lock and segments. Takes no lock.
    private static func forked() {
        let process = unsafe cwi_process_get()!
        unsafe process.pointee.fork_count &+= 1
        let count = unsafe process.pointee.fork_count
        var hasLogged = false
        Sites.forked()
        let table = unsafe cwi_process_engines_at(process)
        for i in 0..<Int(CWI_ENGINES_MAX) {
            let word = unsafe (table + i * 8).load(as: UInt.self)
            guard let engine = unsafe EngineBlock(bitPattern: word) else { continue }
            // Another fork handler has logged already: this lane is the child's own.
            if unsafe engine.pointee.lane?.pointee.generation ?? 0 != 0 {
                hasLogged = true
                unsafe engine.pointee.lane_fork_count = count
                if let start = unsafe process.pointee.start_helper { unsafe start(engine) }
            } else {
                unsafe Lanes.forget(engine, nil)
            }
        }
        guard !hasLogged else { return }
        unsafe process.pointee.pool_floor = process.pointee.pool_used
        let tls = unsafe cwi_tls_get()!
        unsafe tls.pointee.current = nil
        unsafe tls.pointee.others = (nil, nil, nil)
    }

    // MARK: Loggers

    /// Makes a new handle. The caller interns names and holds its lock. nil: too many handles, or
    /// no room.
    package static func addLogger(
        _ engine: EngineBlock, name: UnsafeRawBufferPointer, enabled: UInt32
    ) -> LoggerBlock? {
        let index = unsafe engine.pointee.loggers_count
        guard Int(index) < loggersMax else { return nil }
        if index > 0, unsafe addName(engine, index, name) != Status.ok { return nil }
        unsafe engine.pointee.loggers_count = index + 1
        let logger = unsafe engine.pointee.loggers + Int(index)
        unsafe logger.pointee.id = index
        unsafe logger.pointee.engine = engine
        unsafe cwa_store_release_u32(logger, enabled)
        return unsafe logger
    }

    package static func setEnabled(_ logger: LoggerBlock, _ enabled: UInt32) {
        // ORDER: relaxed. A level may take effect late (A16).
        unsafe cwa_store_relaxed_u32(logger, enabled)
    }

    /// Keeps a logger's name for this lane and for lanes that are made later. Returns a status. The
    /// caller holds its lock.
    private static func addName(
        _ engine: EngineBlock, _ index: UInt32, _ name: UnsafeRawBufferPointer
    ) -> Int32 {
        let used = unsafe Int(engine.pointee.names_bytes)
        let bytes = (CatalogWriter.keptHeaderBytes + name.count + 3) & ~3
        guard used + bytes <= namesBytesMax else { return Status.limit }
        let entry = unsafe UnsafeMutableRawPointer(engine.pointee.names + used)
        unsafe entry.storeBytes(of: index, as: UInt32.self)
        unsafe entry.storeBytes(of: UInt32(name.count), toByteOffset: 4, as: UInt32.self)
        if let start = name.baseAddress {
            unsafe (entry + CatalogWriter.keptHeaderBytes).copyMemory(
                from: start, byteCount: name.count)
        }
        let word = unsafe cwi_engine_names_bytes_at(engine)
        // ORDER: release, then full: a maker that does not see the entry has taken the lane before
        // we look at it, and we wait for that maker (A19). Both may write the entry: duplicates are
        // legal.
        unsafe cwa_store_release_u64(word, UInt64(used + bytes))
        cwa_fence_full()
        guard let lane = unsafe Lanes.settled(engine) else { return Status.ok }
        let status = unsafe CatalogWriter.write(
            engine, lane, type: CatalogEntry.typeLogger, identifier: index,
            entry + CatalogWriter.keptHeaderBytes, name.count)
        if status != Status.ok { unsafe cwa_store_release_u64(word, UInt64(used)) }
        return status
    }

    /// The handles made so far, by index and name; index 0 is the root.
    package static func loggerNames(_ engine: EngineBlock) -> [(Int, String)] {
        guard unsafe engine.pointee.loggers_count > 0, let names = unsafe engine.pointee.names
        else { return [] }
        var result: [(Int, String)] = [(0, "")]
        var at = 0
        let used = unsafe Int(engine.pointee.names_bytes)
        while at + CatalogWriter.keptHeaderBytes <= used {
            let entry = unsafe UnsafeRawPointer(names) + at
            let count = unsafe Int(entry.load(fromByteOffset: 4, as: UInt32.self))
            let index = unsafe Int(entry.load(as: UInt32.self))
            if unsafe index < Int(engine.pointee.loggers_count) {
                let bytes = unsafe UnsafeRawBufferPointer(
                    start: entry + CatalogWriter.keptHeaderBytes, count: count)
                unsafe result.append((index, String(decoding: bytes, as: UTF8.self)))
            }
            at += (CatalogWriter.keptHeaderBytes + count + 3) & ~3
        }
        return result
    }

    // MARK: The helper's work

    /// Wakes the helper with one system call; only slow paths do so.
    static func wake(_ engine: EngineBlock) {
        let word = unsafe cwi_engine_wake_at(engine)
        // ORDER: acquire-release. Pairs with the helper's load before it goes to sleep (A14).
        if unsafe cwa_exchange_u32(word, 1) == 0 {
            unsafe cwi_futex_wake(word.assumingMemoryBound(to: UInt32.self))
        }
    }

    package static func wakeHelper(_ engine: EngineBlock) { unsafe wake(engine) }

    /// Sleeps until woken or until the time is up.
    package static func sleep(_ engine: EngineBlock, ns: UInt64) {
        let word = unsafe cwi_engine_wake_at(engine)
        if unsafe cwa_load_acquire_u32(word) == 0 {
            _ = unsafe cwi_futex_wait(word.assumingMemoryBound(to: UInt32.self), 0, ns)
        }
        _ = unsafe cwa_exchange_u32(word, 0)
    }

    /// The first call on a helper thread.
    package static func helperStarts(_ engine: EngineBlock) { Membarrier.register() }

    /// Adds a clock pair to the current segment. False: it already has a pair of this moment.
    @discardableResult
    package static func addClockPair(_ engine: EngineBlock) -> Bool {
        guard let lane = unsafe readyLane(engine) else { return true }
        let added = unsafe Sealer.addClockPair(engine, lane, also: nil)
        unsafe refineRate(engine)
        return added
    }

    /// The rate measured at open is accurate to 0.1 %. Over seconds it becomes exact, and new
    /// segments, which have only one clock pair at first, start with the exact rate.
    private static func refineRate(_ engine: EngineBlock) {
        guard unsafe engine.pointee.clock_kind == SegmentHeader.clockTSC else { return }
        let sample = ClockSample.take(tsc: true)
        if unsafe engine.pointee.rate_ticks == 0 {
            unsafe engine.pointee.rate_ticks = sample.ticks
            unsafe engine.pointee.rate_monotonic = sample.monotonic
            return
        }
        let ticks = unsafe sample.ticks &- engine.pointee.rate_ticks
        let ns = unsafe sample.monotonic &- engine.pointee.rate_monotonic
        guard ns > 5_000_000 else { return }
        let product = ticks.multipliedFullWidth(by: 1_000_000_000)
        guard product.high < ns else { return }
        unsafe engine.pointee.ticks_per_second = ns.dividingFullWidth(product).quotient
    }

    /// Replaces the current segment so that its content can be sealed. Covers every append that
    /// returned before the call. Returns a status; ok if the current segment is empty.
    package static func roll(_ engine: EngineBlock) -> Int32 {
        guard let lane = unsafe readyLane(engine) else { return Status.ok }
        guard let current = unsafe Claim.current(lane) else { return Status.ok }
        guard unsafe !isEmpty(current) else { return Status.ok }
        return unsafe Segments.publishNext(engine, lane, after: current, nil)
    }

    /// False: the process has as many segments mapped as it may.
    package static func hasFreeSlot(_ engine: EngineBlock) -> Bool {
        unsafe Segments.hasFreeSlot(engine)
    }

    /// True if no chunk was claimed in it.
    static func isEmpty(_ segment: SegmentBlock) -> Bool {
        guard let base = unsafe segment.pointee.base else { return true }
        if unsafe Lost.isLost(segment) { return false }
        return unsafe cwa_load_acquire_u64(UnsafeMutableRawPointer(base) + SegmentHeader.allocated)
            <= UInt64(SegmentHeader.bytes)
    }

    /// When the current segment was published, ns of `Machine.sharedMonotonicNs`; 0 if it is empty.
    package static func currentSince(_ engine: EngineBlock) -> UInt64 {
        guard let lane = unsafe readyLane(engine), let current = unsafe Claim.current(lane),
            unsafe !isEmpty(current),
            let base = unsafe current.pointee.base
        else { return 0 }
        return unsafe UnsafeRawPointer(base).load(
            fromByteOffset: SegmentHeader.createdMonotonic, as: UInt64.self)
    }

    /// Seals every published segment except the current one; with `all`, the current one too, after
    /// which nothing can be appended. atMost: seals at most that many, the oldest first. Returns
    /// the numbers sealed by this call, ascending.
    package static func sealRetired(
        _ engine: EngineBlock, all: Bool, atMost: Int = .max
    ) -> [SealedSegment] {
        guard let lane = unsafe readyLane(engine) else { return [] }
        var due: [SegmentBlock] = unsafe []
        unsafe Segments.forEach(engine) { segment in
            let state = unsafe cwa_load_acquire_u32(Segments.stateWord(segment))
            // SEALING: an earlier attempt could not write the end to the file; try again.
            guard state == Segments.open || state == Segments.sealing else { return }
            // A segment is open for a moment before it becomes current and must not be sealed then,
            // but one that holds a chunk has been current. Check for empty first, for current
            // second.
            let wasCurrent = unsafe segment.pointee.in_lane != 0 || !isEmpty(segment)
            guard unsafe segment.pointee.lane == lane,
                unsafe all || wasCurrent && readCurrent(lane) != segment
            else { return }
            unsafe due.append(segment)
        }
        unsafe due.sort { unsafe $0.pointee.number < $1.pointee.number }
        var sealed: [SealedSegment] = []
        for i in unsafe due.indices where sealed.count < atMost {
            let segment = unsafe due[i]
            if unsafe Sealer.seal(engine, lane, segment) {
                unsafe sealed.append(
                    SealedSegment(
                        number: segment.pointee.number, generation: segment.pointee.generation))
            }
        }
        return sealed
    }

    /// True if a segment is no longer current and not sealed. Only on the supply thread, which
    /// alone unmaps segments.
    package static func isSealingDue(_ engine: EngineBlock) -> Bool {
        guard let lane = unsafe readyLane(engine) else { return false }
        var isDue = false
        unsafe Segments.forEach(engine) { segment in
            let state = unsafe cwa_load_acquire_u32(Segments.stateWord(segment))
            guard state == Segments.open || state == Segments.sealing else { return }
            if unsafe segment.pointee.lane == lane, unsafe readCurrent(lane) != segment {
                isDue = true
            }
        }
        return isDue
    }

    private static func readCurrent(_ lane: LaneBlock) -> SegmentBlock? {
        unsafe SegmentBlock(bitPattern: UInt(cwa_load_acquire_u64(Lanes.currentWord(lane))))
    }

    /// The lane's name, or empty if there is no lane yet.
    package static func laneName(_ engine: EngineBlock) -> String {
        unsafe readyLane(engine).map { unsafe laneName($0) } ?? ""
    }

    static func laneName(_ lane: LaneBlock) -> String {
        unsafe withUnsafeBytes(of: lane.pointee.name) {
            unsafe String(decoding: $0.prefix(Int(lane.pointee.name_length)), as: UTF8.self)
        }
    }

    /// Marks segment 0 as archived in the lane file of that name and syncs it. Returns 0 or an
    /// errno; 0 too if the engine has left that lane.
    package static func markArchived(
        _ engine: EngineBlock, of name: String, below number: UInt64
    ) -> Int32 {
        guard let lane = unsafe readyLane(engine), unsafe laneName(lane) == name,
            let file = unsafe lane.pointee.file
        else { return 0 }
        // CRASH: before this store the archive's name says that segment 0 is covered.
        unsafe cwa_store_release_u64(
            UnsafeMutableRawPointer(file) + LaneHeader.archivedBelow, number)
        guard unsafe WriteThrough.lane(engine, lane, UnsafeMutableRawPointer(file), 4096) else {
            return EIO
        }
        return unsafe FileCalls.syncData(Descriptors.lane(engine, lane))
    }

    package struct Counts {
        package var records: UInt64 = 0
        package var bytes: UInt64 = 0
        package var dropped: UInt64 = 0
        package var slow: UInt64 = 0
        /// Breakdown of `dropped` by cause; `other` holds the rest.
        package var causes: [GapCause: UInt64] = [:]
    }

    package static func counts(_ engine: EngineBlock) -> Counts {
        var counts = Counts()
        var lane = unsafe engine.pointee.lane
        while let each = unsafe lane {
            unsafe counts.records &+= each.pointee.records
            unsafe counts.bytes &+= each.pointee.record_bytes
            unsafe counts.slow &+= each.pointee.slow_appends
            unsafe lane = each.pointee.previous
        }
        unsafe ThreadBlocks.forEach(engine) { thread in
            unsafe counts.records &+= thread.pointee.records
            unsafe counts.bytes &+= thread.pointee.record_bytes
            unsafe counts.slow &+= thread.pointee.slow_appends
            if let chunk = unsafe thread.pointee.chunk, let ptr = unsafe thread.pointee.ptr,
                unsafe ptr > chunk
            {
                unsafe counts.bytes &+= UInt64(max(0, ptr - chunk - ChunkHeader.bytes))
            }
        }
        counts.dropped = unsafe Drops.total(engine)
        var rest = counts.dropped
        for cause in GapCause.allCases where cause != .other {
            let count = unsafe min(rest, Drops.total(engine, of: cause))
            counts.causes[cause] = count
            rest -= count
        }
        counts.causes[.other] = rest
        return counts
    }

    // MARK: Close

    /// From here on no append begins; running ones finish, and handles report closed.
    package static func closeHandles(_ engine: EngineBlock) {
        for i in unsafe 0..<Int(engine.pointee.loggers_count) {
            unsafe cwa_store_relaxed_u32(engine.pointee.loggers + i, 0)
        }
        unsafe cwa_store_release_u32(engine, UInt32(CWI_ENGINE_CLOSING))
        cwa_fence_full()
        // An append that a handler on this thread left by longjmp would otherwise be waited for.
        if let own = unsafe ThreadBlocks.known(engine) {
            let isBusy = unsafe cwa_load_relaxed_u64(AppendPath.busyWord(own)) != 0
            unsafe isBusy
                ? Abandoned.reclaim(own, from: UInt64(cwi_frame()))
                : Abandoned.reclaimNested(own)
        }
        _ = Membarrier.heavyFence()
    }

    /// Seals everything, marks the lane as closed and releases its lock. The block stays for ever
    /// and reads as closed. False: a thread stayed inside an append for a second. The engine is
    /// then parked with its lock and files, because that record may still be kept.
    package static func finish(_ engine: EngineBlock, left: LeftLane?) -> Bool {
        guard unsafe waitForQuiet(engine, Deadline(afterMs: 1_000)) else { return false }
        if let lane = unsafe readyLane(engine) {
            _ = unsafe sealRetired(engine, all: true)
            unsafe putOnDisk(engine, namelessOnly: false)
            if let previous = unsafe lane.pointee.previous {
                unsafe sealLeft(engine, previous)
                unsafe left?.dropMemory(engine)
                unsafe lane.pointee.previous = nil
                unsafe letGo(engine, previous)
                unsafe left?.release(engine)
            }
            unsafe engine.pointee.ring = 0
            unsafe letGo(engine, lane)
            unsafe releaseQuiet(engine)
        } else if let lane = unsafe engine.pointee.lane {
            unsafe cwa_store_release_u32(lane, UInt32(CWI_LANE_CLOSED))
        }
        unsafe cwa_store_release_u32(engine, UInt32(CWI_ENGINE_CLOSED))
        unsafe unregister(engine)
        unsafe Descriptors.closeLanes(engine)
        unsafe FileCalls.close(engine.pointee.memory_fd)
        unsafe engine.pointee.memory_fd = -1
        return true
    }

    /// Marks a lane as closed and releases its file and its lock. All its segments are sealed, and
    /// no append that began there is still running.
    static func letGo(_ engine: EngineBlock, _ lane: LaneBlock) {
        while let spare = unsafe Segments.takeSpare(lane) {
            unsafe Segments.destroy(engine, lane, spare)
        }
        let file = unsafe UnsafeMutableRawPointer(lane.pointee.file)!
        // CRASH: before this, the lane looks like one whose process died; nothing else differs.
        unsafe markClosed(file, LaneHeader.closedFinally)
        // Includes the counts of refused records, which the file may not have taken.
        _ = unsafe WriteThrough.lane(engine, lane, file, LaneHeader.catalogOffsetValue)
        unsafe cwa_store_release_u32(lane, UInt32(CWI_LANE_CLOSED))
        unsafe engine.pointee.left_dropped &+= Drops.total(lane)
        // Late calls may still read the drop slots, so the address stays and the file goes. A child
        // forked meanwhile finds no descriptor that another file may own by then.
        unsafe Mapping.overlay(file, bytes: LaneHeader.fileBytesValue)
        let descriptor = unsafe lane.pointee.lock_fd
        _ = unsafe CatalogWriter.locked(lane) {
            unsafe lane.pointee.lock_fd = -1
            if let first = unsafe lane.pointee.first { unsafe Lanes.letGo(first) }
            unsafe lane.pointee.first = nil
        }
        unsafe Descriptors.close(
            descriptor, lane.pointee.lock_device, lane.pointee.lock_inode)
        unsafe OwnerLock.release(lane)
    }

    /// Call after closeHandles. Waits until the threads that were inside an append have left it;
    /// later ones see CLOSING.
    @discardableResult
    package static func waitForQuiet(_ engine: EngineBlock, _ deadline: Deadline) -> Bool {
        while true {
            var isBusy = false
            unsafe ThreadBlocks.forEach(engine) {
                if unsafe cwa_load_acquire_u64(AppendPath.busyWord($0)) != 0 { isBusy = true }
            }
            guard isBusy else { return true }
            if deadline.hasPassed { return false }
            ThreadIdentity.pause(microseconds: 100)
        }
    }

    /// Undoes an open that failed before it handed out any handle.
    package static func dispose(_ engine: EngineBlock) {
        unsafe cwa_store_release_u32(engine, UInt32(CWI_ENGINE_CLOSED))
        unsafe Descriptors.closeLanes(engine)
        unsafe FileCalls.close(engine.pointee.memory_fd)
        unsafe unregister(engine)
    }

    static func readyLane(_ engine: EngineBlock) -> LaneBlock? {
        guard let lane = unsafe engine.pointee.lane,
            unsafe cwa_load_acquire_u32(lane) == Lanes.readyState
        else {
            return nil
        }
        return unsafe lane
    }
}

/// Why an open failed: a status of the header.
package struct CoreError: Error {
    package var status: Int32
}
