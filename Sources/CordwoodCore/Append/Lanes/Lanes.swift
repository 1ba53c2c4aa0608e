// This process's lane: its first file with lock, identity, catalog and segment 0. It is made at
// open, and again by the first record of a forked child, which finds its lane block wiped to zero.
// So this code takes nothing from the heap and touches no lock that a thread of the parent might
// hold.
// SAFETY: the lane block is the engine's and never unmapped; `file` maps the whole lane file, and
// its address stays valid: close and a forked child map private memory over it in place.

import CCordwood
import CShims

package enum Lanes {
    static var readyState: UInt32 { UInt32(CWI_LANE_READY) }

    static func currentWord(_ lane: LaneBlock) -> UnsafeMutableRawPointer {
        unsafe cwi_lane_current_at(lane)
    }

    static func spareWord(_ lane: LaneBlock, _ index: Int) -> UnsafeMutableRawPointer {
        unsafe cwi_lane_spare_at(lane) + index * 8
    }

    /// A36: nonzero if the engine must leave the lane for a new one.
    static func renewWord(_ lane: LaneBlock) -> UnsafeMutableRawPointer {
        unsafe cwi_lane_renew_at(lane)
    }

    /// Its catalog cannot be written or made durable: the engine leaves the lane.
    static func setUnusable(_ lane: LaneBlock) {
        // ORDER: relaxed. A request on its own (A36).
        unsafe cwa_store_relaxed_u32(renewWord(lane), UInt32(CWI_RENEW_UNUSABLE))
    }

    static func isUnusable(_ lane: LaneBlock) -> Bool {
        unsafe cwa_load_relaxed_u32(renewWord(lane)) == UInt32(CWI_RENEW_UNUSABLE)
    }

    static func serialWord(_ lane: LaneBlock) -> UnsafeMutableRawPointer {
        unsafe cwi_lane_next_serial_at(lane)
    }

    /// The lane, ready for claims. nil: closed, or it could not be made (`whyNot`). waits: false in
    /// a nested append, which never waits.
    static func ready(_ engine: EngineBlock, waits: Bool) -> LaneBlock? {
        guard let lane = unsafe engine.pointee.lane else { return nil }
        // ORDER: acquire. Once the lane is ready, everything in it is visible (A7).
        if unsafe cwa_load_acquire_u32(lane) == readyState { return unsafe lane }
        return unsafe make(engine, lane, waits: waits) == Status.ok ? lane : nil
    }

    /// Waits until no thread is making the lane, and returns it if it is ready. nil: no lane,
    /// or its maker takes over a second.
    static func settled(_ engine: EngineBlock) -> LaneBlock? {
        let bound = cw_monotonic_ns() &+ 1_000_000_000
        while let lane = unsafe engine.pointee.lane {
            let state = unsafe cwa_load_acquire_u32(lane)
            if state == readyState { return unsafe lane }
            guard state == UInt32(CWI_LANE_MAKING), cw_monotonic_ns() < bound else { return nil }
            ThreadIdentity.yield()
        }
        return nil
    }

    static func whyNot(_ engine: EngineBlock) -> Int32 {
        guard let lane = unsafe engine.pointee.lane else { return Status.closed }
        let state = unsafe cwa_load_acquire_u32(lane)
        return state == UInt32(CWI_LANE_CLOSED) ? Status.closed : Status.full
    }

    /// Makes the lane if it does not exist: at open, or in a forked child.
    package static func make(
        _ engine: EngineBlock, _ lane: UnsafeMutablePointer<cwi_lane>, waits: Bool = true
    ) -> Int32 {
        if unsafe cwa_load_acquire_u32(lane) == readyState { return Status.ok }
        // A handler that jumped out of here would leave the lane half made for ever.
        var mask = sigset_t()
        unsafe cwi_block_signals(&mask)
        defer { unsafe cwi_restore_signals(&mask) }
        let none = UInt32(CWI_LANE_NONE)
        let making = UInt32(CWI_LANE_MAKING)
        let thread = cw_gettid()
        let bound = cw_monotonic_ns() &+ (waits ? 1_000_000_000 : 0)
        while true {
            let state = unsafe cwa_load_acquire_u32(lane)
            if state == readyState { return Status.ok }
            if state == UInt32(CWI_LANE_CLOSED) { return Status.closed }
            if state == UInt32(CWI_LANE_FAILED) {
                guard unsafe cw_monotonic_ns() >= cwa_load_relaxed_u64(fullUntilWord(lane)) else {
                    return Status.full
                }
                _ = unsafe cwa_cas_u32(lane, state, none)
                continue
            }
            if state == none, unsafe cwa_cas_u32(lane, none, making) { break }
            // Another thread is making the lane and never waits for us; a handler on that thread
            // gives up. The wait is bounded, because a handler may have interrupted the maker
            // before it stored its number.
            if unsafe lane.pointee.maker_tid == thread || cw_monotonic_ns() >= bound {
                return Status.full
            }
            ThreadIdentity.yield()
        }
        unsafe lane.pointee.maker_tid = thread
        unsafe forget(engine, lane)
        unsafe Descriptors.beginAnew(engine)
        let status = unsafe build(engine, lane)
        unsafe lane.pointee.maker_tid = 0
        if status != Status.ok {
            unsafe cwa_store_relaxed_u64(fullUntilWord(lane), cw_monotonic_ns() &+ 100_000_000)
            unsafe cwa_store_release_u32(lane, UInt32(CWI_LANE_FAILED))
        } else if cwi_in_crash() == 0, unsafe isForked(engine),
            let start = unsafe cwi_process_get().pointee.start_helper
        {
            unsafe start(engine)
        }
        return status
    }

    /// A child of fork(2) whose lane is its first. After a raw clone(2) no handler has run, and the
    /// heap may be locked for ever: the helpers then start with the child's first call that needs
    /// them.
    private static func isForked(_ engine: EngineBlock) -> Bool {
        let count = unsafe cwi_process_get().pointee.fork_count
        guard unsafe engine.pointee.lane_generation > 1,
            unsafe engine.pointee.lane_fork_count != count
        else { return false }
        unsafe engine.pointee.lane_fork_count = count
        return true
    }

    private static func fullUntilWord(_ lane: LaneBlock) -> UnsafeMutableRawPointer {
        unsafe cwi_lane_full_until_ns_at(lane)
    }

    /// A child lets go of its parent's segments. It maps other memory in their place, so nothing it
    /// does can reach the parent's files, and it does not reuse the thread blocks of the parent's
    /// threads.
    static func forget(_ engine: EngineBlock, _ lane: LaneBlock?) {
        let process = unsafe cwi_process_get()!
        // On a second attempt in the same process, its own blocks lie below the mark.
        if unsafe engine.pointee.lane_generation > 0, unsafe lane?.pointee.generation ?? 0 == 0 {
            unsafe process.pointee.pool_floor = process.pointee.pool_used
        }
        unsafe Segments.forEach(engine) { segment in
            if let base = unsafe segment.pointee.base {
                if unsafe segment.pointee.in_lane == 0 {
                    unsafe Mapping.overlay(
                        UnsafeMutableRawPointer(base), bytes: Int(segment.pointee.size))
                } else {
                    unsafe Mapping.overlay(
                        UnsafeMutableRawPointer(base) - LaneHeader.segmentOffsetValue,
                        bytes: LaneHeader.fileBytesValue)
                    // Closing makes the kernel drop our share of the lock. We never unlock it,
                    // which would take the parent's lock away (R31).
                }
            }
            unsafe Descriptors.close(
                segment.pointee.fd, segment.pointee.device, segment.pointee.inode)
            unsafe segment.pointee.fd = -1
            unsafe segment.pointee.base = nil
            unsafe segment.pointee.state = Segments.free
        }
        unsafe CatalogWriter.forget(engine)
    }

    /// The caller alone has the block. Returns a status. renews: the lane replaces another one of
    /// this process.
    static func build(
        _ engine: EngineBlock, _ lane: LaneBlock, renews: Bool = false
    ) -> Int32 {
        // A child finds both words or neither; this process never mistakes itself for a child
        // (isForked).
        cwi_fork_gate_enter()
        if renews { unsafe engine.pointee.renewals &+= 1 }
        unsafe engine.pointee.lane_generation &+= 1
        cwi_fork_gate_leave()
        unsafe lane.pointee.generation = engine.pointee.lane_generation
        unsafe lane.pointee.process_id = Machine.processID()
        unsafe lane.pointee.id = (Machine.random(), Machine.random())
        unsafe lane.pointee.salt = Machine.random()
        unsafe nameLane(lane)
        return unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: 160) { buffer in
            unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: 160) { finalBuffer in
                var temporary = unsafe NameBuffer(buffer)
                temporary.add(".")
                unsafe addName(&temporary, lane)
                temporary.add(".lane")
                var name = unsafe NameBuffer(finalBuffer)
                unsafe addName(&name, lane)
                name.add(".lane")
                return unsafe makeFile(engine, lane, temporary.pointer, name.pointer)
            }
        }
    }

    /// Makes the file under a temporary name, locks it, fills it and renames it: a lane is locked
    /// by the time it becomes visible (R32). Its catalog follows, and the lane is ready.
    private static func makeFile(
        _ engine: EngineBlock, _ lane: LaneBlock, _ temporary: UnsafePointer<CChar>,
        _ name: UnsafePointer<CChar>
    ) -> Int32 {
        let directory = unsafe Descriptors.lanes(engine)
        guard let segment = unsafe Segments.takeSlot(engine) else {
            unsafe Refusal(cause: .notReady, number: 0).note(engine)
            return Status.full
        }
        unsafe lane.pointee.first = unsafe segment
        unsafe segment.pointee.lane = unsafe lane
        // As in Segments.makeFile: a child that kept the descriptor would keep the lock.
        cwi_fork_gate_enter()
        let descriptor = unsafe FileCalls.openKept(temporary, in: directory, .newReadWrite)
        if descriptor >= 0 { unsafe Descriptors.note(segment, descriptor) }
        cwi_fork_gate_leave()
        guard descriptor >= 0 else {
            let number = Errno.last
            unsafe Refusal.note(engine, errno: number)
            unsafe letGo(segment)
            return Status.of(errno: number)
        }
        // CRASH: the file is no lane and holds nothing; adopters remove it once it is old.
        var error = unsafe OwnerLock.take(lane, descriptor, directory, temporary)
        let bytes = LaneHeader.fileBytesValue
        if error == 0 {
            error = unsafe WriteThrough.allocate(
                engine, descriptor, bytes: UInt64(bytes), isFirst: true)
        }
        if error == 0, let file = unsafe map(engine, segment, descriptor) {
            if unsafe !Mapping.populate(file, bytes: bytes) { error = Errno.ENOSPC }
            if error == 0 { error = unsafe fill(engine, lane, descriptor, file) }
            if error == 0 { error = unsafe FileCalls.move(temporary, to: name, in: directory) }
            // CRASH: a lane without records and with an incomplete catalog; no record needs the
            // names.
            // The catalog is written after the rename, under the locked name: growth files without
            // a lane count as leftovers of an adopter and are removed.
            if error == 0, unsafe !CatalogWriter.writeAll(engine, lane) {
                error = Errno.ENOSPC
                unsafe CatalogWriter.removeFiles(engine, lane)
                unsafe FileCalls.remove(name, in: directory)
            }
            if error == 0 {
                unsafe Drops.takeOver(engine, lane)
                unsafe cwa_store_release_u32(lane, readyState)
                return Status.ok
            }
            // Hides the file: refusals would be counted there.
            unsafe lane.pointee.file = nil
            unsafe lane.pointee.catalog = nil
            unsafe lane.pointee.current = nil
            cwi_fork_gate_enter()
            unsafe segment.pointee.base = nil
            unsafe Mapping.release(file, bytes: bytes)
            cwi_fork_gate_leave()
        } else if error == 0 {
            error = Errno.last
        }
        unsafe OwnerLock.release(lane)
        unsafe FileCalls.remove(temporary, in: directory)
        unsafe lane.pointee.lock_fd = -1
        // A child closes the number only if it still refers to this file.
        FileCalls.close(descriptor)
        unsafe letGo(segment)
        unsafe Refusal.note(engine, errno: error)
        return Status.of(errno: error)
    }

    /// Frees the slot of a first segment.
    static func letGo(_ segment: SegmentBlock) {
        unsafe segment.pointee.base = nil
        unsafe segment.pointee.fd = -1
        unsafe segment.pointee.in_lane = 0
        unsafe cwa_store_release_u32(Segments.stateWord(segment), Segments.free)
    }

    private static func map(
        _ engine: EngineBlock, _ segment: SegmentBlock, _ descriptor: Int32
    ) -> UnsafeMutableRawPointer? {
        cwi_fork_gate_enter()
        defer { cwi_fork_gate_leave() }
        guard
            let file = unsafe WriteThrough.memory(
                engine, descriptor, bytes: LaneHeader.fileBytesValue)
        else { return nil }
        unsafe segment.pointee.base =
            unsafe file.assumingMemoryBound(to: UInt8.self) + LaneHeader.segmentOffsetValue
        unsafe segment.pointee.in_lane = 1
        return unsafe file
    }

    private static func fill(
        _ engine: EngineBlock, _ lane: LaneBlock, _ descriptor: Int32,
        _ file: UnsafeMutableRawPointer
    ) -> Int32 {
        unsafe lane.pointee.file = unsafe file.assumingMemoryBound(to: UInt8.self)
        unsafe Descriptors.noteLane(lane, descriptor)
        unsafe lane.pointee.catalog = unsafe lane.pointee.file + LaneHeader.catalogOffsetValue
        unsafe lane.pointee.catalog_bytes = UInt64(LaneHeader.catalogBytesValue)
        unsafe lane.pointee.catalog_used = 0
        unsafe lane.pointee.catalog_index = 0
        unsafe writeHeader(engine, lane, file)
        let segment = unsafe lane.pointee.first!
        unsafe segment.pointee.size = UInt64(LaneHeader.segmentBytesValue)
        unsafe segment.pointee.ready = unsafe segment.pointee.size
        unsafe segment.pointee.populated = unsafe segment.pointee.size
        unsafe segment.pointee.salt = Machine.random()
        unsafe segment.pointee.number = 0
        unsafe segment.pointee.generation = 0
        unsafe segment.pointee.lost = 0
        unsafe segment.pointee.retired = 0
        unsafe segment.pointee.memory_id = 0
        unsafe segment.pointee.file_offset = UInt64(LaneHeader.segmentOffsetValue)
        unsafe Segments.writeHeader(engine, lane, segment)
        unsafe cwa_store_release_u32(Segments.stateWord(segment), Segments.open)
        unsafe lane.pointee.current = unsafe segment
        guard unsafe WriteThrough.isOn(engine) else { return 0 }
        let error = unsafe FileCalls.write(descriptor, file, LaneHeader.fileBytesValue, at: 0)
        return unsafe error == 0 && !WriteThrough.header(engine, segment) ? Errno.EIO : error
    }

    private static func writeHeader(
        _ engine: EngineBlock, _ lane: LaneBlock, _ file: UnsafeMutableRawPointer
    ) {
        func put32(_ value: UInt32, _ offset: Int) {
            unsafe file.storeBytes(of: value, toByteOffset: offset, as: UInt32.self)
        }
        func put64(_ value: UInt64, _ offset: Int) {
            unsafe file.storeBytes(of: value, toByteOffset: offset, as: UInt64.self)
        }
        put32(1, LaneHeader.version)
        put32(UInt32(LaneHeader.fileBytesValue), LaneHeader.fileBytes)
        if unsafe lane.pointee.life != nil {
            put64(LaneHeader.compatLockIsLife, LaneHeader.compat)
        }
        unsafe put64(lane.pointee.id.0, LaneHeader.laneID)
        unsafe put64(lane.pointee.id.1, LaneHeader.laneID + 8)
        unsafe put64(engine.pointee.boot_id.0, LaneHeader.bootID)
        unsafe put64(engine.pointee.boot_id.1, LaneHeader.bootID + 8)
        unsafe put64(engine.pointee.machine_id.0, LaneHeader.machineID)
        unsafe put64(engine.pointee.machine_id.1, LaneHeader.machineID + 8)
        unsafe put64(lane.pointee.salt, LaneHeader.salt)
        unsafe put32(lane.pointee.process_id, LaneHeader.processID)
        put32(Machine.realUserID(), LaneHeader.userID)
        unsafe put64(Machine.processStart(lane.pointee.process_id), LaneHeader.processStart)
        put64(Machine.processNamespace(), LaneHeader.processNamespace)
        put64(cw_realtime_ns(), LaneHeader.createdRealtime)
        Machine.readTimeNamespace()
        put64(Machine.sharedMonotonicNs(), LaneHeader.createdMonotonic)
        put32(UInt32(LaneHeader.catalogOffsetValue), LaneHeader.catalogOffset)
        put32(UInt32(LaneHeader.catalogBytesValue), LaneHeader.catalogBytes)
        put32(UInt32(LaneHeader.dropsOffsetValue), LaneHeader.dropsOffset)
        put32(UInt32(LaneHeader.dropsCountValue), LaneHeader.dropsCount)
        put32(UInt32(LaneHeader.segmentOffsetValue), LaneHeader.segmentOffset)
        put32(UInt32(LaneHeader.segmentBytesValue), LaneHeader.segmentBytes)
        unsafe file.storeBytes(
            of: UInt16(engine.pointee.process_name_length),
            toByteOffset: LaneHeader.processNameBytes, as: UInt16.self)
        let name = unsafe UnsafeRawPointer(cwi_engine_process_name_at(engine))
        unsafe (file + LaneHeader.processName).copyMemory(
            from: name, byteCount: Int(engine.pointee.process_name_length))
        unsafe writePlace(engine, file)
        put64(LaneHeader.magicValue, LaneHeader.magic)
    }

    /// Records the lane's machine, and how its records reach the file.
    private static func writePlace(_ engine: EngineBlock, _ file: UnsafeMutableRawPointer) {
        let length = unsafe Machine.hostName(
            UnsafeMutableRawBufferPointer(
                start: file + LaneHeader.hostName, count: LaneHeader.hostNameBytesMax))
        unsafe file.storeBytes(
            of: UInt16(length), toByteOffset: LaneHeader.hostNameBytes, as: UInt16.self)
        unsafe file.storeBytes(
            of: engine.pointee.write_mode, toByteOffset: LaneHeader.written, as: UInt32.self)
    }

    /// `YYYYMMDDThhmmssZ-<pid>-<random>`
    private static func nameLane(_ lane: LaneBlock) {
        let start = unsafe cwi_lane_name_at(lane)
        let capacity = Int(CWI_LANE_NAME_MAX)
        let buffer = unsafe UnsafeMutableBufferPointer(
            start: start.assumingMemoryBound(to: CChar.self), count: capacity)
        var name = unsafe NameBuffer(buffer)
        addTime(&name, cw_realtime_ns() / 1_000_000_000)
        name.add("Z-")
        unsafe name.add(decimal: UInt64(lane.pointee.process_id))
        name.add("-")
        name.add(hex: Machine.random())
        unsafe lane.pointee.name_length = UInt32(name.count)
    }

    /// `YYYYMMDDThhmmss`, UTC. Avoids gmtime_r, which takes a lock: if a thread of the parent held
    /// it at the fork, it stays taken in this child for ever.
    private static func addTime(_ name: inout NameBuffer, _ seconds: UInt64) {
        // Days to civil date: years begin in March, and an era has 400 of them.
        let shifted = seconds / 86_400 + 719_468
        let era = shifted / 146_097
        let dayOfEra = shifted % 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let marched = (5 * dayOfYear + 2) / 153
        let month = marched < 10 ? marched + 3 : marched - 9
        name.add(decimal: yearOfEra + era * 400 + (month <= 2 ? 1 : 0), digits: 4)
        name.add(decimal: month, digits: 2)
        name.add(decimal: dayOfYear - (153 * marched + 2) / 5 + 1, digits: 2)
        name.add("T")
        name.add(decimal: seconds / 3_600 % 24, digits: 2)
        name.add(decimal: seconds / 60 % 60, digits: 2)
        name.add(decimal: seconds % 60, digits: 2)
    }

    static func addName(_ name: inout NameBuffer, _ lane: LaneBlock) {
        let start = unsafe UnsafeRawPointer(cwi_lane_name_at(lane))
        unsafe name.add(start.assumingMemoryBound(to: CChar.self), Int(lane.pointee.name_length))
    }
}
