// Write mode, for files whose mapped stores cannot be trusted, because the file system has no
// preallocation or a full disk could kill the host by SIGBUS. Segments are then private memory, and
// every append is also written to the file before it returns. The rest of the protocol is
// unchanged. Slower (two system calls per record), equally safe against the death of the process.
// docs/CONCURRENCY.md, Write mode.
// SAFETY: callers pass bytes within the segment, lane file or catalog region they name, which a
// claim, the sealing lock or the engine's own lock keeps in place meanwhile.

import CShims

enum WriteThrough {
    static func isOn(_ engine: EngineBlock) -> Bool { unsafe engine.pointee.write_mode != 0 }

    /// Chooses mapping only if the file system is known to keep what preallocation promised.
    /// Decided once, at open, before the first lane is made: a forked child inherits the answer.
    static func decide(_ engine: EngineBlock) {
        let lanes = unsafe engine.pointee.lanes_fd
        guard !FileSystem(lanes).keepsMappings(directory: lanes) else { return }
        unsafe engine.pointee.write_mode = 1
    }

    /// The memory that represents a file: its mapping, or private memory in write mode. nil: errno
    /// gives the reason.
    static func memory(
        _ engine: EngineBlock, _ descriptor: Int32, bytes: Int
    ) -> UnsafeMutableRawPointer? {
        unsafe isOn(engine)
            ? Mapping.anonymous(bytes: bytes, wipedOnFork: false)
            : Mapping.file(descriptor, offset: 0, bytes: bytes)
    }

    /// Allocates blocks for a new file. Returns 0 or an errno. Turns write mode on if a first file
    /// shows that there is no preallocation.
    static func allocate(
        _ engine: EngineBlock, _ descriptor: Int32, bytes: UInt64, isFirst: Bool
    ) -> Int32 {
        if unsafe isOn(engine) { return 0 }
        let error = FileCalls.allocate(descriptor, offset: 0, bytes: bytes)
        guard isFirst, error == Errno.EOPNOTSUPP || error == Errno.ENOSYS else { return error }
        unsafe engine.pointee.write_mode = 1
        return 0
    }

    /// Reopens the file if a host has closed it, as daemons do with every descriptor.
    private static func isOpen(_ engine: EngineBlock, _ segment: SegmentBlock) -> Bool {
        guard let lane = unsafe segment.pointee.lane else { return false }
        return unsafe Descriptors.regain(engine, lane, segment)
    }

    /// Writes bytes of a segment as they are in memory now. False: the file system refuses them;
    /// errno gives the reason.
    static func segment(
        _ engine: EngineBlock, _ segment: SegmentBlock, _ start: UnsafeMutableRawPointer,
        _ count: Int
    ) -> Bool {
        guard unsafe isOn(engine) else { return true }
        guard let base = unsafe segment.pointee.base else { return false }
        let offset = unsafe start - UnsafeMutableRawPointer(base)
        guard offset >= 0, unsafe isOpen(engine, segment) else { return false }
        return unsafe isDone(
            FileCalls.write(
                segment.pointee.fd, start, count, at: segment.pointee.file_offset + UInt64(offset)))
    }

    /// True for 0; otherwise sets errno.
    private static func isDone(_ error: Int32) -> Bool {
        if error != 0 { Errno.last = error }
        return error == 0
    }

    /// Writes a segment's header. In the file, `allocated` is the whole segment: readers stop at
    /// the end of the file, so claims need not be written in order. False: as above.
    static func header(_ engine: EngineBlock, _ segment: SegmentBlock) -> Bool {
        guard unsafe isOn(engine) else { return true }
        guard let base = unsafe segment.pointee.base, unsafe isOpen(engine, segment) else {
            return false
        }
        return unsafe withUnsafeTemporaryAllocation(byteCount: SegmentHeader.bytes, alignment: 8) {
            copy in
            let page = copy.baseAddress!
            unsafe page.copyMemory(from: base, byteCount: SegmentHeader.bytes)
            unsafe page.storeBytes(
                of: segment.pointee.size, toByteOffset: SegmentHeader.allocated, as: UInt64.self)
            return unsafe isDone(
                FileCalls.write(
                    segment.pointee.fd, page, SegmentHeader.bytes, at: segment.pointee.file_offset))
        }
    }

    /// Writes what sealing has fixed: the headers of chunks, and a file as long as the segment.
    /// False: it will be tried again; readers go by `committed` until then.
    static func sealed(_ engine: EngineBlock, _ segment: SegmentBlock, end: UInt64) -> Bool {
        guard unsafe isOn(engine) else { return true }
        let base = unsafe UnsafeMutableRawPointer(segment.pointee.base)!
        var offset = UInt64(SegmentHeader.bytes)
        while offset + UInt64(ChunkHeader.bytes) <= end {
            let chunk = unsafe base + Int(offset)
            guard unsafe cwa_load_acquire_u64(chunk) == segment.pointee.salt else {
                offset += UInt64(ChunkHeader.granule)
                continue
            }
            guard unsafe self.segment(engine, segment, chunk, ChunkHeader.bytes) else {
                return false
            }
            let size = unsafe chunk.load(fromByteOffset: ChunkHeader.size, as: UInt32.self)
            offset += max(UInt64(size), UInt64(ChunkHeader.granule))
        }
        let whole = unsafe segment.pointee.file_offset + end
        guard unsafe isOpen(engine, segment),
            let file = unsafe FileFacts(of: segment.pointee.fd)
        else { return false }
        guard file.bytes < whole else { return true }
        return unsafe FileCalls.resize(segment.pointee.fd, to: whole)
    }

    /// Writes bytes of the lane file: its header, a drop slot, a catalog entry.
    static func lane(
        _ engine: EngineBlock, _ lane: LaneBlock, _ start: UnsafeMutableRawPointer, _ count: Int
    ) -> Bool {
        guard unsafe isOn(engine), let file = unsafe lane.pointee.file else { return true }
        let offset = unsafe start - UnsafeMutableRawPointer(file)
        let descriptor = unsafe Descriptors.lane(engine, lane)
        guard descriptor >= 0 else { return false }
        return unsafe FileCalls.write(descriptor, start, count, at: UInt64(offset)) == 0
    }

    /// Writes an entry of the region being filled, first without its salt and then with it.
    static func catalogEntry(
        _ engine: EngineBlock, _ lane: LaneBlock, _ entry: UnsafeMutableRawPointer, _ count: Int
    ) -> Bool {
        guard unsafe isOn(engine) else { return true }
        guard unsafe lane.pointee.catalog_index > 0 else {
            return unsafe self.lane(engine, lane, entry, count)
        }
        let region = unsafe UnsafeMutableRawPointer(lane.pointee.catalog)!
        return unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: 160) { buffer in
            var name = unsafe NameBuffer(buffer)
            unsafe CatalogWriter.addFileName(&name, lane, lane.pointee.catalog_index)
            let descriptor = unsafe FileCalls.openKept(
                name.pointer, in: Descriptors.lanes(engine), .readWrite)
            if descriptor < 0, Errno.last == Errno.ENOENT {
                // Readers no longer find the names in it.
                // ORDER: relaxed. A request on its own (A36).
                unsafe Lanes.setUnusable(lane)
            }
            guard descriptor >= 0 else { return false }
            defer { FileCalls.close(descriptor) }
            let offset = unsafe CatalogHeader.bytes + (entry - region)
            return unsafe FileCalls.write(descriptor, entry, count, at: UInt64(offset)) == 0
        }
    }
}
