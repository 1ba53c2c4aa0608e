// Descriptors that live as long as the engine, in a host that may close descriptors it does not
// own: daemons close all of them, and the next files they open get the same numbers. So each
// descriptor is compared with its recorded identity before anything is written, grown, locked or
// closed through it; a lost one is reopened by name. System calls only: any thread, handlers and
// children too.
// SAFETY: names are built in buffers on the stack; the engine's path never changes once it is set.

import CShims

enum Descriptors {
    // MARK: The directory lanes/

    /// Records the directory's identity and path. The path is absolute, or none.
    static func noteLanes(_ engine: EngineBlock, path: String) {
        guard let lanes = unsafe FileFacts(of: engine.pointee.lanes_fd) else { return }
        unsafe engine.pointee.lanes_device = lanes.device
        unsafe engine.pointee.lanes_inode = lanes.inode
        unsafe engine.pointee.lanes_owner = lanes.owner
        unsafe engine.pointee.lanes_group = lanes.group
        let bytes = Array(path.utf8)
        guard bytes.first == 47, bytes.count < Int(CWI_PATH_MAX) else { return }
        let target = unsafe cwi_engine_lanes_path_at(engine)
        for (i, byte) in bytes.enumerated() {
            unsafe target.storeBytes(of: byte, toByteOffset: i, as: UInt8.self)
        }
    }

    /// The directory's descriptor, reopened if the host has closed it. -1: it was not found.
    static func lanes(_ engine: EngineBlock) -> Int32 {
        let known = unsafe engine.pointee.lanes_fd
        if unsafe isLanes(engine, known) { return known }
        var again = unsafe lanesPath(engine).map { unsafe FileCalls.openKept($0, .directory) } ?? -1
        if unsafe !isLanes(engine, again) {
            FileCalls.close(again)
            again = unsafe lookForLanes(engine)
        }
        guard again >= 0 else { return -1 }
        let word = unsafe cwi_engine_lanes_fd_at(engine)
        // ORDER: acquire-release. Of the threads that found it lost, one replaces it (A28).
        if unsafe cwa_cas_u32(word, UInt32(bitPattern: known), UInt32(bitPattern: again)) {
            return again
        }
        FileCalls.close(again)
        let other = unsafe engine.pointee.lanes_fd
        return unsafe isLanes(engine, other) ? other : -1
    }

    /// Where a file of this process is mapped. After a look in vain the next one has to wait,
    /// because every refusal would read the list of mappings.
    private static func lookForLanes(_ engine: EngineBlock) -> Int32 {
        let word = unsafe cwi_engine_lanes_look_ns_at(engine)
        let now = cw_monotonic_ns()
        // ORDER: relaxed, here and below. A bound on work; it guards nothing (A28).
        guard unsafe now >= cwa_load_relaxed_u64(word) else { return -1 }
        let found = unsafe MappedFiles.directory(
            levels: 1, engine.pointee.lanes_device, engine.pointee.lanes_inode)
        if found == -1 { unsafe cwa_store_relaxed_u64(word, now &+ MappedFiles.pauseNs) }
        return found
    }

    /// nil: it is not known.
    static func lanesPath(_ engine: EngineBlock) -> UnsafePointer<CChar>? {
        let path = unsafe UnsafeRawPointer(cwi_engine_lanes_path_at(engine))
        guard unsafe path.load(as: UInt8.self) == 47 else { return nil }
        return unsafe path.assumingMemoryBound(to: CChar.self)
    }

    /// A child of fork(2) that has no lane yet has no file mapped, either. If the directory was
    /// moved after the child closed its descriptors, or deleted, it begins with one at the path;
    /// nothing is lost by that. Its helper completes the store. The caller makes the first lane.
    static func beginAnew(_ engine: EngineBlock) {
        let known = unsafe lanes(engine)
        guard known < 0 ? unsafe isLanesPathGone(engine) : FileCalls.isNameless(known),
            let path = unsafe lanesPath(engine)
        else { return }
        // Too large for the stack of a handler.
        let bytes = Int(CWI_PATH_MAX)
        guard let memory = unsafe Mapping.anonymous(bytes: bytes, wipedOnFork: false) else {
            return
        }
        defer { unsafe Mapping.release(memory, bytes: bytes) }
        var name = unsafe NameBuffer(
            UnsafeMutableBufferPointer(
                start: memory.assumingMemoryBound(to: CChar.self), count: bytes))
        unsafe name.add(path, strlen(path) - "/lanes".utf8.count)
        let error = unsafe cwi_make_directory_again(
            memory.assumingMemoryBound(to: CChar.self), engine.pointee.lanes_owner,
            engine.pointee.lanes_group)
        guard error == 0 || error == EEXIST else { return }
        // With the dot, a link of that name is followed, as at open.
        name.add("/.")
        let directory = unsafe FileCalls.openKept(name.pointer, .directory)
        defer { FileCalls.close(directory) }
        // The user who deleted the store may have left a link to another one's directory.
        guard let facts = FileFacts(of: directory),
            unsafe facts.mayFollow(owner: engine.pointee.lanes_owner)
        else { return }
        _ = unsafe cwi_make_directory_at(directory, "lanes")
        let again = unsafe FileCalls.openKept("lanes", in: directory, .directory)
        guard again >= 0 else { return }
        unsafe replaceLanes(engine, Directory(again)).close()
    }

    private static func isLanes(_ engine: EngineBlock, _ descriptor: Int32) -> Bool {
        unsafe cwi_fd_is(
            descriptor, engine.pointee.lanes_device, engine.pointee.lanes_inode)
    }

    static func closeLanes(_ engine: EngineBlock) {
        let known = unsafe engine.pointee.lanes_fd
        if unsafe isLanes(engine, known) { FileCalls.close(known) }
    }

    // MARK: The lane file, even when its segment is gone

    static func noteLane(_ lane: LaneBlock, _ descriptor: Int32) {
        unsafe lane.pointee.lock_fd = descriptor
        unsafe cwi_fd_identity(
            descriptor, &lane.pointee.lock_device, &lane.pointee.lock_inode)
    }

    /// The lane file's descriptor, reopened if the host has closed it. -1: it cannot be reopened.
    static func lane(_ engine: EngineBlock, _ lane: LaneBlock) -> Int32 {
        let known = unsafe lane.pointee.lock_fd
        if unsafe isLaneFile(lane, known) { return known }
        // ORDER: acquire. Once the state is visible, so are the slot's words (A5).
        if let first = unsafe lane.pointee.first,
            unsafe cwa_load_acquire_u32(Segments.stateWord(first)) != Segments.free,
            unsafe first.pointee.in_lane != 0
        {
            return unsafe regain(engine, lane, first) ? lane.pointee.lock_fd : -1
        }
        let again = unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: 160) { buffer in
            var name = unsafe NameBuffer(buffer)
            unsafe Lanes.addName(&name, lane)
            name.add(".lane")
            return unsafe FileCalls.openKept(name.pointer, in: lanes(engine), .readWrite)
        }
        guard again >= 0 else { return -1 }
        let word = unsafe cwi_lane_lock_fd_at(lane)
        // ORDER: acquire-release. As above (A28).
        if unsafe isLaneFile(lane, again),
            unsafe cwa_cas_u32(word, UInt32(bitPattern: known), UInt32(bitPattern: again))
        {
            return again
        }
        FileCalls.close(again)
        let other = unsafe lane.pointee.lock_fd
        return unsafe isLaneFile(lane, other) ? other : -1
    }

    static func isLaneFile(_ lane: LaneBlock, _ descriptor: Int32) -> Bool {
        unsafe cwi_fd_is(descriptor, lane.pointee.lock_device, lane.pointee.lock_inode)
    }

    // MARK: Segments; the first one's is the lane file

    static func note(_ segment: SegmentBlock, _ descriptor: Int32) {
        unsafe segment.pointee.fd = descriptor
        unsafe cwi_fd_identity(
            descriptor, &segment.pointee.device, &segment.pointee.inode)
    }

    static func holds(_ segment: SegmentBlock) -> Bool {
        unsafe cwi_fd_is(segment.pointee.fd, segment.pointee.device, segment.pointee.inode)
    }

    /// Makes sure that the descriptor refers to the segment's file. False: it cannot be reopened.
    static func regain(
        _ engine: EngineBlock, _ lane: LaneBlock, _ segment: SegmentBlock
    ) -> Bool {
        if unsafe holds(segment) { return true }
        guard unsafe segment.pointee.memory_id == 0, unsafe segment.pointee.inode != 0 else {
            return false
        }
        let known = unsafe segment.pointee.fd
        let lane = unsafe segment.pointee.lane ?? lane
        let again = unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: 160) { buffer in
            var name = unsafe NameBuffer(buffer)
            if unsafe segment.pointee.in_lane != 0 {
                unsafe Lanes.addName(&name, lane)
                name.add(".lane")
            } else if unsafe segment.pointee.number == 0 {
                unsafe Segments.addSpareName(&name, lane, segment.pointee.spare_id)
            } else {
                unsafe Segments.addFileName(&name, lane, segment, sealed: false)
            }
            return unsafe FileCalls.openKept(name.pointer, in: lanes(engine), .readWrite)
        }
        guard again >= 0 else { return false }
        let word = unsafe cwi_segment_fd_at(segment)
        // ORDER: acquire-release. As above (A28).
        if unsafe cwi_fd_is(again, segment.pointee.device, segment.pointee.inode),
            unsafe cwa_cas_u32(word, UInt32(bitPattern: known), UInt32(bitPattern: again))
        {
            if unsafe segment.pointee.in_lane != 0 { unsafe lane.pointee.lock_fd = again }
            return true
        }
        FileCalls.close(again)
        return unsafe holds(segment)
    }

    /// Closes the descriptor if it still refers to that file.
    static func close(_ descriptor: Int32, _ device: UInt64, _ inode: UInt64) {
        if cwi_fd_is(descriptor, device, inode) { FileCalls.close(descriptor) }
    }
}
