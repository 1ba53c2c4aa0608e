// Segments on a memory file system (CW_FLAG_TMPFS). The file lies in a folder of /dev/shm, and its
// name in lanes/ is a symbolic link to it; the protocol, readers and adopters all use that name.
// Nothing is ever written back under the writers; archived records are on the disk. docs/FORMAT.md
// §2.
// SAFETY: names are built in buffers on the caller's stack; a descriptor belongs to the function
// that opened it.

import CShims

package enum MemorySegments {
    /// The most bytes of them that one process's lane holds; further segments go to the disk.
    static let bytesMax: UInt64 = 128 << 20

    /// Opens the user's folder and makes it if necessary. Returns a descriptor, or an errno below
    /// 0.
    package static func openFolder() -> Int32 {
        unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: 64) { buffer in
            var path = unsafe NameBuffer(buffer)
            path.add(SegmentLink.folder)
            path.add(decimal: UInt64(Machine.userID()))
            let refused = unsafe FileCalls.makeDirectory(path.pointer)
            guard refused == 0 else { return -refused }
            let descriptor = unsafe FileCalls.openKept(path.pointer, .directory)
            guard descriptor >= 0 else { return -Errno.last }
            // Any user may make names in /dev/shm: the folder must be ours, and closed to everybody
            // else.
            let folder = FileFacts(of: descriptor)
            let isOurs = folder?.owner == Machine.userID() && folder?.isPrivate == true
            guard isOurs, FileSystem.isMemory(descriptor) else {
                FileCalls.close(descriptor)
                return isOurs ? -Errno.ENOTSUP : -Errno.EACCES
            }
            return descriptor
        }
    }

    /// Whether one more segment may be made.
    static func hasRoom(_ engine: EngineBlock) -> Bool {
        guard unsafe engine.pointee.memory_fd >= 0, unsafe !WriteThrough.isOn(engine) else {
            return false
        }
        let segmentBytes = unsafe SegmentSize.of(engine)
        var bytes = segmentBytes
        unsafe Segments.forEach(engine) { segment in
            if unsafe segment.pointee.memory_id != 0,
                unsafe cwa_load_acquire_u32(Segments.stateWord(segment)) != Segments.free
            {
                unsafe bytes &+= segment.pointee.size
            }
        }
        guard bytes <= max(bytesMax, 2 &* segmentBytes) else { return false }
        // Others use this memory, too: half of it stays free.
        guard let system = unsafe FileSystem.bytes(engine.pointee.memory_fd) else { return false }
        return system.free >= segmentBytes &+ system.all / 2
    }

    /// Makes the link of that name and the file. Returns a descriptor, or -1.
    static func create(
        _ engine: EngineBlock, _ segment: SegmentBlock, _ name: UnsafePointer<CChar>
    ) -> Int32 {
        let id = Machine.random()
        guard unsafe link(engine, id, name) else { return -1 }
        // CRASH: a link to nothing; adopters remove it. In the other order the file would stay,
        // because nothing looks for files that no store names.
        let descriptor = unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: 96) {
            buffer in
            var file = unsafe NameBuffer(buffer)
            file.add(hex: id)
            return unsafe FileCalls.openKept(
                file.pointer, in: engine.pointee.memory_fd, .newReadWrite)
        }
        if descriptor < 0 {
            unsafe FileCalls.remove(name, in: Descriptors.lanes(engine))
        } else {
            unsafe segment.pointee.memory_id = id
        }
        return descriptor
    }

    private static func link(
        _ engine: EngineBlock, _ id: UInt64, _ name: UnsafePointer<CChar>
    ) -> Bool {
        unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: 96) { buffer in
            var path = unsafe NameBuffer(buffer)
            path.add(SegmentLink.folder)
            unsafe path.add(decimal: UInt64(engine.pointee.memory_uid))
            path.add("/")
            path.add(hex: id)
            return unsafe FileCalls.link(name, in: Descriptors.lanes(engine), to: path.pointer)
        }
    }

    /// Removes the file behind the link. The link goes afterwards: a link to nothing is harmless.
    static func remove(_ engine: EngineBlock, _ segment: SegmentBlock) {
        guard unsafe segment.pointee.memory_id != 0 else { return }
        unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: 32) { buffer in
            var file = unsafe NameBuffer(buffer)
            unsafe file.add(hex: segment.pointee.memory_id)
            unsafe FileCalls.remove(file.pointer, in: engine.pointee.memory_fd)
        }
        unsafe segment.pointee.memory_id = 0
    }

    /// Puts a sealed segment on the disk under its name, even one that was there and has lost its
    /// name. False: it stays where it is.
    static func putOnDisk(
        _ engine: EngineBlock, _ lane: LaneBlock, _ segment: SegmentBlock
    ) -> Bool {
        unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: 160) { buffer in
            unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: 160) { secondBuffer in
                var temporary = unsafe NameBuffer(buffer)
                unsafe Segments.addSpareName(&temporary, lane, Machine.random())
                var second = unsafe NameBuffer(secondBuffer)
                unsafe Segments.addSpareName(&second, lane, Machine.random())
                let directory = unsafe Descriptors.lanes(engine)
                defer {
                    unsafe FileCalls.remove(temporary.pointer, in: directory)
                    unsafe FileCalls.remove(second.pointer, in: directory)
                }
                guard unsafe copy(engine, segment, temporary.pointer),
                    // CRASH: two names lead to the file in memory; once the first has become the
                    // file on the disk, adopters remove the memory file by the second.
                    unsafe segment.pointee.memory_id == 0
                        || link(engine, segment.pointee.memory_id, second.pointer),
                    unsafe replace(engine, lane, segment, temporary.pointer)
                else { return false }
                unsafe remove(engine, segment)
                return true
            }
        }
    }

    private static func replace(
        _ engine: EngineBlock, _ lane: LaneBlock, _ segment: SegmentBlock,
        _ temporary: UnsafePointer<CChar>
    ) -> Bool {
        unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: 160) { buffer in
            var name = unsafe NameBuffer(buffer)
            unsafe Segments.addFileName(&name, lane, segment, sealed: true)
            let directory = unsafe Descriptors.lanes(engine)
            return unsafe FileCalls.move(temporary, to: name.pointer, in: directory) == 0
        }
    }

    /// Copies a whole sealed segment, synced, to another name.
    private static func copy(
        _ engine: EngineBlock, _ segment: SegmentBlock, _ name: UnsafePointer<CChar>
    ) -> Bool {
        guard unsafe Descriptors.holds(segment) else { return false }
        let file = unsafe FileCalls.openKept(
            name, in: Descriptors.lanes(engine), [.write, .new])
        guard file >= 0 else { return false }
        defer { FileCalls.close(file) }
        return unsafe copy(segment.pointee.fd, to: file, until: segment.pointee.sealed_end)
            && FileCalls.syncData(file) == 0
    }

    private static func copy(_ source: Int32, to file: Int32, until end: UInt64) -> Bool {
        let step = 256 << 10
        return unsafe withUnsafeTemporaryAllocation(byteCount: step, alignment: 16) { buffer in
            var offset: UInt64 = 0
            while offset < end {
                let count = Int(min(UInt64(step), end - offset))
                let n = unsafe Files.readOnce(
                    source, into: UnsafeMutableRawBufferPointer(rebasing: buffer[..<count]),
                    at: offset)
                guard n > 0, let start = buffer.baseAddress,
                    unsafe FileCalls.write(file, start, n, at: offset) == 0
                else { return false }
                offset += UInt64(n)
            }
            return true
        }
    }
}

extension EngineCore {
    /// Puts sealed segments that lie in memory on the disk, under the sealing lock: all of them
    /// before the lane is let go, or only those whose names somebody has removed.
    /// of: limits this to one lane.
    package static func putOnDisk(
        _ engine: EngineBlock, namelessOnly: Bool, of only: UnsafeMutablePointer<cwi_lane>? = nil
    ) {
        guard unsafe engine.pointee.memory_fd >= 0, unsafe readyLane(engine) != nil else { return }
        var changed = false
        unsafe Segments.forEach(engine) { segment in
            guard unsafe Quiescence.isSealedFile(segment), unsafe segment.pointee.memory_id != 0,
                unsafe !namelessOnly || FileCalls.isNameless(segment.pointee.fd),
                let lane = unsafe segment.pointee.lane, unsafe only == nil || only == lane,
                // Links in a lane's former directory stay valid.
                unsafe !Segments.isElsewhere(lane)
            else { return }
            let isOnDisk = unsafe MemorySegments.putOnDisk(engine, lane, segment)
            changed = changed || isOnDisk
            // In the end, segments for which the disk has no room stay in memory, under their
            // names.
            if isOnDisk || !namelessOnly { unsafe segment.pointee.retired = 1 }
        }
        if changed { _ = unsafe FileCalls.sync(Descriptors.lanes(engine)) }
    }
}
