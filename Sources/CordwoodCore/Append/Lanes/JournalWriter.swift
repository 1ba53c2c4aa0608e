// Machine durability (FORMAT §10): copies new data of this process's lane to a journal and syncs
// the journal once, so a flush never write-protects the mapped pages of running threads. Files that
// no thread writes any more (released segments, full regions of the catalog) are synced in place.
// One thread at a time, not in signal handlers; a forked child has its own.
// SAFETY: copies from segments only under `copying`, while nothing is unmapped, and copies of a
// chunk only what lies below the size in its header, which only this process writes.

import CShims

/// What a flush needs from the engine's owner.
package struct JournalGuards {
    /// Runs its body while no mapping is released; passes it the segments that are sealed and that
    /// no archive holds yet.
    let copying: ((Set<UInt64>) -> Void) -> Void
    /// Syncs the files of segments that no thread writes any more, and their directory. A missing
    /// file was archived meanwhile.
    let syncing: (Set<UInt64>) -> SyncedFiles

    package init(
        copying: @escaping ((Set<UInt64>) -> Void) -> Void,
        syncing: @escaping (Set<UInt64>) -> SyncedFiles
    ) {
        self.copying = copying
        self.syncing = syncing
    }
}

/// The result of syncing segments as files.
package struct SyncedFiles {
    /// 0, or the first errno.
    package var error: Int32 = 0
    /// Segments whose content may be lost in a power cut, even if a later sync succeeds: the system
    /// reports such an error once.
    package var failed: Set<UInt64> = []

    package init() {}

    /// Records the result of syncing that segment's file.
    package mutating func add(_ number: UInt64, _ error: Int32) {
        guard error != 0 else { return }
        if self.error == 0 { self.error = error }
        if SyncedFiles.isLasting(error) { failed.insert(number) }
    }

    /// The file existed, and its dirty pages may now be clean without being on the disk.
    package static func isLasting(_ error: Int32) -> Bool {
        error == Errno.EIO || error == Errno.ENOSPC || error == Errno.EDQUOT
    }
}

package final class JournalWriter: @unchecked Sendable {
    // SAFETY: used only under the owner's lock.
    private static let compactBytes: UInt64 = 32 << 20
    private static let batchBytes = 1 << 20
    private static let batchKeptBytes = 4 << 20

    private struct Place: Hashable {
        var segment: UInt64
        var chunk: UInt64
    }

    /// A journal's file, and what it holds.
    private struct File {
        var descriptor: Int32 = -1
        /// The identity of the file that the descriptor was opened for: the host may have closed it
        /// and opened a file of its own under that number.
        var device: UInt64 = 0
        var inode: UInt64 = 0
        var salt: UInt64 = 0
        var bytes: UInt64 = 0
        var synced: [Place: UInt32] = [:]
        /// The region of the catalog that is being filled, and how much of it the journal holds.
        var catalogRegion: UInt32 = 0
        var catalogSynced: UInt64 = 0
        /// The segments of which it has frames.
        var headers: Set<UInt64> = []
        /// Sealed segments that it holds to their end, and that are not archived yet.
        var whole: Set<UInt64> = []

        var isThere: Bool {
            cwi_fd_is(descriptor, device, inode) && !FileCalls.isNameless(descriptor)
        }

        func close() {
            if cwi_fd_is(descriptor, device, inode) { Files.close(descriptor) }
        }
    }

    private var file = File()
    private var generation: UInt32 = 0
    private var batch = GrowingBytes()
    /// Regions below this one are full and were synced as files.
    private var catalogsDone: UInt32 = 0
    /// Sealed segments that were synced as files and are not archived yet.
    private var filesDone: Set<UInt64> = []
    /// 0, or the error of this flush or the last one.
    private var failure: Int32 = 0
    /// Segments whose files could not be synced; they stay here until an archive holds them (R36).
    private var unsynced: Set<UInt64> = []
    private var unsyncedError: Int32 = 0
    /// The segments of a journal that could not be published, which may have its name all the same.
    private var stray: Set<UInt64> = []

    package init() {}

    deinit { file.close() }

    /// Makes every record committed so far durable. Returns 0 or an errno.
    package func flush(_ engine: EngineBlock, _ guards: JournalGuards) -> Int32 {
        guard let lane = unsafe EngineCore.readyLane(engine) else { return 0 }
        unsafe follow(lane)
        // After a failed sync, nothing in the old file is trusted: a new one is written from memory
        // (R36). The same goes for a file that has lost its name, or whose descriptor the host has
        // closed.
        let fresh = failure != 0 || file.bytes > JournalWriter.compactBytes || !file.isThere
        failure = unsafe write(engine, lane, guards, fresh: fresh)
        guard failure == 0 else { return failure }
        // ORDER: relaxed. This thread set it, or will see it at its next flush (A36).
        if unsafe Lanes.isUnusable(lane) { return Errno.EIO }
        return pendingError
    }

    /// Where archived records must not be left: writes the journal anew without those that archives
    /// hold. Returns 0 or an errno; the journal is then as it was, and so is what the next flush
    /// makes of it.
    package func renew(_ engine: EngineBlock, _ guards: JournalGuards) -> Int32 {
        // Its file may have lost its name, or its descriptor: what it holds stays on the disk.
        guard let lane = unsafe EngineCore.readyLane(engine),
            unsafe lane.pointee.generation == generation
        else { return 0 }
        var hasArchived = false
        guards.copying { waiting in
            let held = unsafe heldSegments(engine, lane, waiting)
            unsynced.formIntersection(held)
            hasArchived = !file.headers.union(stray).isSubset(of: held)
        }
        guard hasArchived else { return 0 }
        guard unsynced.isEmpty else { return unsyncedError }
        let former = failure
        let error = unsafe write(engine, lane, guards, fresh: true)
        failure = error == 0 ? 0 : former
        return error
    }

    /// No flush follows: the lane is let go.
    package func end() {
        file.close()
        file = File()
    }

    /// fresh: into a new file, which takes the former one's place once all of it is durable. If
    /// that fails, the former one stays.
    private func write(
        _ engine: EngineBlock, _ lane: LaneBlock, _ guards: JournalGuards, fresh: Bool
    ) -> Int32 {
        let former = file
        failure = 0
        var result = unsafe fresh ? begin(engine, lane) : 0
        if result == 0 { result = unsafe add(engine, lane, guards) }
        // If a segment's file could not be synced, the old journal may hold its only copy.
        if result == 0, fresh {
            unsafe result = unsynced.isEmpty ? publish(engine, lane) : unsyncedError
        }
        guard fresh else { return result }
        if result == 0 {
            former.close()
            stray = []
        } else {
            file.close()
            stray.formUnion(file.headers)
            batch.clear(keeping: JournalWriter.batchKeptBytes)
            unsafe withName(lane, ".", ".journal") {
                unsafe FileCalls.remove($0, in: Descriptors.lanes(engine))
            }
            file = former
        }
        return result
    }

    /// Adds what is new to the file, and syncs it.
    private func add(
        _ engine: EngineBlock, _ lane: LaneBlock, _ guards: JournalGuards
    ) -> Int32 {
        // Copied twice: the names of a frame precede it, and so do those of records that arrived
        // meanwhile.
        unsafe copyCatalog(lane)
        var released: Set<UInt64> = []
        guards.copying { waiting in
            unsafe copySegments(engine, lane, waiting)
            file.whole.formIntersection(waiting)
            filesDone.formIntersection(waiting)
            // Archives are synced first, so they hold every segment that has left the lane.
            unsafe unsynced.formIntersection(heldSegments(engine, lane, waiting))
            released = waiting.subtracting(file.whole).subtracting(filesDone)
                .subtracting(unsynced)
        }
        unsafe copyCatalog(lane)
        var result = failure != 0 ? failure : writeBatch()
        if result == 0 { result = FileCalls.syncData(file.descriptor) }
        if result == 0 { result = unsafe syncFiles(engine, lane, released, guards) }
        return result
    }

    private func keepUnsynced(_ numbers: Set<UInt64>, _ error: Int32) {
        guard !numbers.isEmpty else { return }
        unsynced.formUnion(numbers)
        unsyncedError = error
    }

    /// 0, or the errno of a failed sync that affected segments which neither an archive nor the
    /// journal holds.
    package var pendingError: Int32 { unsynced.isSubset(of: file.whole) ? 0 : unsyncedError }

    /// Switches to that lane: each lane has a journal of its own.
    private func follow(_ lane: LaneBlock) {
        guard unsafe lane.pointee.generation != generation else { return }
        unsafe generation = lane.pointee.generation
        end()
        unsynced = []
        stray = []
        catalogsDone = 0
        filesDone = []
    }

    /// Syncs in place the files that no thread writes any more.
    private func syncFiles(
        _ engine: EngineBlock, _ lane: LaneBlock, _ released: Set<UInt64>, _ guards: JournalGuards
    ) -> Int32 {
        if !released.isEmpty {
            var synced = guards.syncing(released)
            // Segment 0 is part of the lane file.
            if released.contains(0) {
                unsafe synced.add(0, FileCalls.syncData(Descriptors.lane(engine, lane)))
            }
            keepUnsynced(synced.failed, synced.error)
            guard synced.error == 0 else { return synced.error }
            filesDone.formUnion(released)
        }
        let region = file.catalogRegion
        while catalogsDone < region {
            let error = unsafe syncCatalog(engine, lane, catalogsDone)
            // No other file and no archive holds a full region: from here on a power cut may take
            // names of this lane, so the engine must leave it for a new one.
            if SyncedFiles.isLasting(error) || error == Errno.ENOENT {
                // ORDER: relaxed. A request on its own (A36).
                unsafe Lanes.setUnusable(lane)
            }
            guard error == 0 else { return error }
            catalogsDone += 1
            guard catalogsDone == region else { continue }
            return unsafe FileCalls.sync(Descriptors.lanes(engine))
        }
        return 0
    }

    private func syncCatalog(_ engine: EngineBlock, _ lane: LaneBlock, _ index: UInt32) -> Int32 {
        guard index > 0 else { return unsafe FileCalls.syncData(Descriptors.lane(engine, lane)) }
        return unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: 160) { buffer in
            var name = unsafe NameBuffer(buffer)
            unsafe CatalogWriter.addFileName(&name, lane, index)
            let file = unsafe FileCalls.open(
                name.pointer, in: Descriptors.lanes(engine), .read)
            guard file >= 0 else { return Errno.last }
            defer { Files.close(file) }
            return FileCalls.syncData(file)
        }
    }

    private func begin(_ engine: EngineBlock, _ lane: LaneBlock) -> Int32 {
        var made = File()
        made.catalogRegion = file.catalogRegion
        made.salt = Machine.random()
        file = made
        batch.clear(keeping: JournalWriter.batchKeptBytes)
        guard batch.reserve(JournalHeader.bytes) else { return Errno.ENOMEM }
        made.descriptor = unsafe withName(lane, ".", ".journal") {
            let directory = unsafe Descriptors.lanes(engine)
            // A journal that could not be synced is not reused, not even emptied.
            unsafe FileCalls.remove($0, in: directory)
            return unsafe FileCalls.open($0, in: directory, .newReadWrite)
        }
        guard made.descriptor >= 0 else { return Errno.last }
        unsafe cwi_fd_identity(made.descriptor, &made.device, &made.inode)
        file = made
        batch.append(word: JournalHeader.magicValue)
        batch.append(word: UInt64(1))
        unsafe batch.append(word: lane.pointee.id.0)
        unsafe batch.append(word: lane.pointee.id.1)
        batch.append(word: file.salt)
        addZeros(JournalHeader.bytes - batch.count)
        unsafe frame(
            JournalFrame.kindLaneHeader, 0, 0, 0, nil, UnsafeRawPointer(lane.pointee.file), 4096)
        return 0
    }

    /// Puts the new journal in place of the old one and makes the path to it durable too.
    /// CRASH: before the rename the old journal is in place and the flush has not returned; the new
    /// one has a name that means nothing, and adopters remove it.
    private func publish(_ engine: EngineBlock, _ lane: LaneBlock) -> Int32 {
        let renamed = unsafe withName(lane, ".", ".journal") { temporary in
            unsafe withName(lane, "", ".journal") { name in
                unsafe FileCalls.move(temporary, to: name, in: Descriptors.lanes(engine))
            }
        }
        guard renamed == 0 else { return renamed }
        let error = unsafe FileCalls.sync(Descriptors.lanes(engine))
        guard error == 0 else { return error }
        let parent = unsafe FileCalls.openKept(
            "..", in: Descriptors.lanes(engine), .directory)
        guard parent >= 0 else { return Errno.last }
        defer { FileCalls.close(parent) }
        return FileCalls.sync(parent)
    }

    /// The segments of which no archive holds all: those that wait for one, and open ones.
    private func heldSegments(
        _ engine: EngineBlock, _ lane: LaneBlock, _ waiting: Set<UInt64>
    ) -> Set<UInt64> {
        var held = waiting
        unsafe Segments.forEach(engine) { segment in
            guard unsafe Segments.hasState(segment, Segments.open, Segments.sealing),
                unsafe segment.pointee.lane == lane
            else { return }
            unsafe held.insert(segment.pointee.number)
        }
        return held
    }

    private func copySegments(
        _ engine: EngineBlock, _ lane: LaneBlock, _ waiting: Set<UInt64>
    ) {
        unsafe Segments.forEach(engine) { segment in
            let state = unsafe cwa_load_acquire_u32(Segments.stateWord(segment))
            guard state == Segments.open || state == Segments.sealing || state == Segments.sealed,
                unsafe segment.pointee.lane == lane,
                // An archive holds it.
                unsafe state != Segments.sealed || waiting.contains(segment.pointee.number),
                let base = unsafe segment.pointee.base
            else { return }
            // Readers do not see what memory holds: the file is synced as it is (A25).
            if unsafe Lost.isLost(segment) {
                let error = unsafe FileCalls.syncData(segment.pointee.fd)
                if error != 0 { failure = error }
                if SyncedFiles.isLasting(error) {
                    unsafe keepUnsynced([segment.pointee.number], error)
                }
                return
            }
            unsafe copySegment(segment, UnsafeMutableRawPointer(base))
            if state == Segments.sealed { unsafe file.whole.insert(segment.pointee.number) }
        }
    }

    private func copyCatalog(_ lane: LaneBlock) {
        var region = unsafe lane.pointee.catalog
        var used: UInt64 = 0
        let ran = unsafe CatalogWriter.locked(lane) {
            unsafe region = unsafe lane.pointee.catalog
            used = unsafe lane.pointee.catalog_used
            if unsafe file.catalogRegion != lane.pointee.catalog_index { file.catalogSynced = 0 }
            file.catalogRegion = unsafe lane.pointee.catalog_index
        }
        if !ran { failure = Errno.EIO }
        guard let region = unsafe region, used > file.catalogSynced else { return }
        unsafe frame(
            JournalFrame.kindCatalog, UInt64(file.catalogRegion), file.catalogSynced, 0, nil,
            UnsafeRawPointer(region) + Int(file.catalogSynced), Int(used - file.catalogSynced))
        file.catalogSynced = used
    }

    private func copySegment(_ segment: SegmentBlock, _ base: UnsafeMutableRawPointer) {
        let ready = unsafe cwa_load_acquire_u64(base + SegmentHeader.ready)
        let bound = unsafe min(cwa_load_acquire_u64(base + SegmentHeader.allocated), ready)
        var offset = UInt64(SegmentHeader.bytes)
        var isNew = unsafe file.headers.insert(segment.pointee.number).inserted
        while offset + UInt64(ChunkHeader.bytes) <= bound {
            let chunk = unsafe base + Int(offset)
            guard unsafe cwa_load_acquire_u64(chunk) == segment.pointee.salt else {
                offset += UInt64(ChunkHeader.granule)
                continue
            }
            let size = unsafe UInt64(chunk.load(fromByteOffset: ChunkHeader.size, as: UInt32.self))
            let final = unsafe cwa_load_acquire_u32(chunk + ChunkHeader.final)
            // ORDER: acquire. All bytes up to here are complete (A4).
            let committed = unsafe cwa_load_acquire_u32(chunk + ChunkHeader.committed)
            let to = final != 0 ? final : committed
            let place = unsafe Place(segment: segment.pointee.number, chunk: offset)
            let from = file.synced[place] ?? UInt32(ChunkHeader.bytes)
            if to > from, UInt64(to) <= size {
                if isNew {
                    unsafe frame(
                        JournalFrame.kindSegmentHeader, segment.pointee.number, 0, 0, nil, base,
                        4096)
                    isNew = false
                }
                unsafe frame(
                    JournalFrame.kindChunk, segment.pointee.number, offset, from, chunk,
                    chunk + Int(from), Int(to - from))
                file.synced[place] = to
            }
            offset += max(size, UInt64(ChunkHeader.granule))
        }
        if isNew { unsafe file.headers.remove(segment.pointee.number) }
    }

    /// Adds one frame. The content is copied here, so the bytes checksummed are the bytes written.
    private func frame(
        _ kind: UInt32, _ segment: UInt64, _ chunk: UInt64, _ from: UInt32,
        _ chunkHeader: UnsafeRawPointer?, _ content: UnsafeRawPointer, _ count: Int
    ) {
        guard batch.reserve(JournalFrame.headerBytes + count + 8) else {
            failure = Errno.ENOMEM
            return
        }
        addZeros(-batch.count & 7)
        let start = batch.count
        batch.append(word: file.salt)
        batch.append(word: UInt32(JournalFrame.headerBytes + count))
        batch.append(word: UInt32(0))
        batch.append(word: UInt64(kind))
        batch.append(word: segment)
        batch.append(word: chunk)
        batch.append(word: from)
        batch.append(word: from &+ UInt32(count))
        if let chunkHeader = unsafe chunkHeader {
            unsafe batch.append(UnsafeRawBufferPointer(start: chunkHeader, count: 64))
        } else {
            addZeros(64)
        }
        unsafe batch.append(UnsafeRawBufferPointer(start: content, count: count))
        let crc = unsafe cwi_crc32c(
            0, batch.base + start + 16, JournalFrame.headerBytes + count - 16)
        batch.store(crc, at: start + JournalFrame.crc)
        if batch.count > JournalWriter.batchBytes, failure == 0 { failure = writeBatch() }
    }

    private func writeBatch() -> Int32 {
        addZeros(-batch.count & 7)
        defer { batch.clear(keeping: JournalWriter.batchKeptBytes) }
        guard !batch.failed else { return Errno.ENOMEM }
        let count = batch.count
        let error =
            unsafe count == 0
            ? 0 : FileCalls.write(file.descriptor, batch.base, count, at: file.bytes)
        file.bytes += UInt64(count)
        return error
    }

    private func addZeros(_ count: Int) { for _ in 0..<count { batch.append(UInt8(0)) } }

    private func withName<T>(
        _ lane: LaneBlock, _ prefix: StaticString, _ suffix: StaticString,
        _ body: (UnsafePointer<CChar>) -> T
    ) -> T {
        unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: 160) { buffer in
            var name = unsafe NameBuffer(buffer)
            name.add(prefix)
            unsafe Lanes.addName(&name, lane)
            name.add(suffix)
            return unsafe body(name.pointer)
        }
    }
}
