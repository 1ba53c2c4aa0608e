// The lane's catalog: the names that records refer to by number (FORMAT §5). A definition is
// complete in the lane before any record uses its number. Writers take space by CAS and store the
// salt last, so a kill leaves at worst a hole that readers step over.
// SAFETY: `catalog` points into the lane file or a growth file, mapped for the life of the process;
// an entry is written only where `catalog_used` leaves room for all of it.

import CShims

package enum CatalogWriter {
    /// A logger's name in the engine's own memory, for lanes that are made later: id, bytes (u32
    /// each), the name, padded to 4.
    static let keptHeaderBytes = 8

    /// Writes everything the engine knows into a new lane. False: no room.
    static func writeAll(_ engine: EngineBlock, _ lane: LaneBlock) -> Bool {
        guard unsafe Sites.writeAll(engine, lane), unsafe Resource.writeAll(engine, lane) else {
            return false
        }
        guard let names = unsafe engine.pointee.names else { return true }
        let word = unsafe cwi_engine_names_bytes_at(engine)
        // ORDER: acquire. The entries below it are complete (A19).
        let used = unsafe Int(cwa_load_acquire_u64(word))
        var at = 0
        while at + keptHeaderBytes <= used {
            let entry = unsafe UnsafeRawPointer(names) + at
            let count = unsafe Int(entry.load(fromByteOffset: 4, as: UInt32.self))
            let status = unsafe write(
                engine, lane, type: CatalogEntry.typeLogger,
                identifier: entry.load(as: UInt32.self), entry + keptHeaderBytes, count)
            guard status == Status.ok else { return false }
            at += (keptHeaderBytes + count + 3) & ~3
        }
        return true
    }

    private static func lockWord(_ lane: LaneBlock) -> UnsafeMutableRawPointer {
        unsafe cwi_lane_catalog_lock_at(lane)
    }

    /// Runs the body while no other thread adds an entry. All signals are blocked: a handler on
    /// this thread would wait for itself. False: another thread has held the lock for a second.
    static func locked(_ lane: LaneBlock, _ body: () -> Void) -> Bool {
        var old = sigset_t()
        unsafe cwi_block_signals(&old)
        defer { unsafe cwi_restore_signals(&old) }
        let own = cw_gettid()
        let bound = cw_monotonic_ns() &+ 1_000_000_000
        // ORDER: acquire-release. One writer at a time moves catalog_used and the region (A20).
        while unsafe !cwa_cas_u32(lockWord(lane), 0, own) {
            guard cw_monotonic_ns() < bound else { return false }
            ThreadIdentity.yield()
        }
        body()
        unsafe cwa_store_release_u32(lockWord(lane), 0)
        return true
    }

    /// Appends one entry. Returns a status: full if no more space can be had.
    package static func write(
        _ engine: EngineBlock, _ lane: UnsafeMutablePointer<cwi_lane>, type: UInt8,
        identifier: UInt32, _ payload: UnsafeRawPointer, _ count: Int
    ) -> Int32 {
        var status = Status.full
        let ran = unsafe locked(lane) {
            unsafe status = append(engine, lane, type, identifier, payload, count)
        }
        return ran ? status : Status.full
    }

    private static func append(
        _ engine: EngineBlock, _ lane: UnsafeMutablePointer<cwi_lane>, _ type: UInt8,
        _ identifier: UInt32, _ payload: UnsafeRawPointer, _ count: Int
    ) -> Int32 {
        let length = CatalogEntry.headerBytes + count
        let rounded = UInt64((length + CatalogEntry.alignment - 1) & ~(CatalogEntry.alignment - 1))
        guard length <= CatalogEntry.lengthMax else { return Status.limit }
        if unsafe lane.pointee.catalog_used + rounded > lane.pointee.catalog_bytes {
            let status = unsafe growFile(engine, lane, atLeast: rounded)
            guard status == Status.ok else { return status }
        }
        invariant(
            unsafe lane.pointee.catalog_used + rounded <= lane.pointee.catalog_bytes
                && lane.pointee.catalog_used % UInt64(CatalogEntry.alignment) == 0,
            "an entry lies within its catalog's region")
        let entry = unsafe UnsafeMutableRawPointer(
            lane.pointee.catalog + Int(lane.pointee.catalog_used))
        unsafe lane.pointee.catalog_used = unsafe lane.pointee.catalog_used + rounded
        unsafe entry.storeBytes(
            of: UInt32(length), toByteOffset: CatalogEntry.length, as: UInt32.self)
        unsafe entry.storeBytes(of: UInt32(type), toByteOffset: CatalogEntry.type, as: UInt32.self)
        unsafe entry.storeBytes(
            of: identifier, toByteOffset: CatalogEntry.identifier, as: UInt32.self)
        unsafe (entry + CatalogEntry.headerBytes).copyMemory(from: payload, byteCount: count)
        let crc = unsafe cwi_crc32c(0, entry + 16, length - 16)
        unsafe entry.storeBytes(of: crc, toByteOffset: CatalogEntry.crc, as: UInt32.self)
        guard unsafe WriteThrough.catalogEntry(engine, lane, entry, length) else {
            return Status.full
        }
        // CRASH: before this store the entry does not exist, and no record refers to it.
        // ORDER: release. The entry exists once its salt does (A19).
        unsafe cwa_store_release_u64(entry, lane.pointee.salt)
        guard unsafe WriteThrough.catalogEntry(engine, lane, entry, 8) else { return Status.full }
        return Status.ok
    }

    /// `<lane>.catalog-<index>`
    static func addFileName(_ name: inout NameBuffer, _ lane: LaneBlock, _ index: UInt32) {
        unsafe Lanes.addName(&name, lane)
        name.add(".catalog-")
        name.add(decimal: UInt64(index))
    }

    /// Removes the files of a lane that cannot be made after all.
    static func removeFiles(_ engine: EngineBlock, _ lane: LaneBlock) {
        for index in unsafe 0..<lane.pointee.catalog_index {
            unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: 160) { buffer in
                var name = unsafe NameBuffer(buffer)
                unsafe addFileName(&name, lane, index + 1)
                unsafe FileCalls.remove(name.pointer, in: Descriptors.lanes(engine))
            }
        }
    }

    /// Starts a new growth file as the region to fill. The rest of the old region stays unused.
    private static func growFile(
        _ engine: EngineBlock, _ lane: LaneBlock, atLeast: UInt64
    ) -> Int32 {
        let index = unsafe lane.pointee.catalog_index + 1
        guard index <= UInt32(CatalogHeader.filesMax) else { return Status.limit }
        // 64 KiB, 256 KiB, then 1 MiB each: most programs have a few hundred call sites.
        let usual = UInt64(64 << 10) << min(4, 2 * UInt64(index - 1))
        let bytes = max(usual, (atLeast + UInt64(CatalogHeader.bytes) + 4095) & ~4095)
        return unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: 160) { buffer in
            var name = unsafe NameBuffer(buffer)
            unsafe addFileName(&name, lane, index)
            let descriptor = unsafe FileCalls.open(
                name.pointer, in: Descriptors.lanes(engine), .newReadWrite)
            guard descriptor >= 0 else { return Status.of(errno: Errno.last) }
            // CRASH: a growth file without its magic holds nothing and is removed with its lane.
            defer { Files.close(descriptor) }
            let error = unsafe WriteThrough.allocate(
                engine, descriptor, bytes: bytes, isFirst: false)
            // If a step below fails, the mapping stays until this file is tried again.
            guard error == 0,
                let file = unsafe map(engine, lane, index, descriptor, Int(bytes)),
                unsafe WriteThrough.isOn(engine) || Mapping.populate(file, bytes: Int(bytes))
            else {
                unsafe FileCalls.remove(name.pointer, in: Descriptors.lanes(engine))
                return error == 0 ? Status.full : Status.of(errno: error)
            }
            unsafe file.storeBytes(of: 1, toByteOffset: CatalogHeader.version, as: UInt32.self)
            unsafe file.storeBytes(
                of: UInt32(bytes), toByteOffset: CatalogHeader.fileBytes, as: UInt32.self)
            unsafe file.storeBytes(
                of: lane.pointee.id.0, toByteOffset: CatalogHeader.laneID, as: UInt64.self)
            unsafe file.storeBytes(
                of: lane.pointee.id.1, toByteOffset: CatalogHeader.laneID + 8, as: UInt64.self)
            unsafe file.storeBytes(
                of: lane.pointee.salt, toByteOffset: CatalogHeader.salt, as: UInt64.self)
            unsafe cwa_store_release_u64(file, CatalogHeader.magicValue)
            if unsafe WriteThrough.isOn(engine),
                unsafe FileCalls.write(descriptor, file, CatalogHeader.bytes, at: 0) != 0
            {
                unsafe FileCalls.remove(name.pointer, in: Descriptors.lanes(engine))
                return Status.full
            }
            unsafe lane.pointee.catalog =
                unsafe file.assumingMemoryBound(to: UInt8.self) + CatalogHeader.bytes
            unsafe lane.pointee.catalog_bytes = bytes - UInt64(CatalogHeader.bytes)
            unsafe lane.pointee.catalog_used = 0
            unsafe lane.pointee.catalog_index = index
            return Status.ok
        }
    }

    // MARK: Mappings, kept for the engine's life

    /// Records the mapping, so that children forked from here on let go of it.
    private static func map(
        _ engine: EngineBlock, _ lane: LaneBlock, _ index: UInt32, _ descriptor: Int32,
        _ bytes: Int
    ) -> UnsafeMutableRawPointer? {
        cwi_fork_gate_enter()
        defer { cwi_fork_gate_leave() }
        let region = unsafe regions(engine, lane) + Int(index)
        if let old = unsafe region.pointee.base {
            unsafe region.pointee.base = nil
            unsafe Mapping.release(old, bytes: Int(region.pointee.bytes))
        }
        let file = unsafe WriteThrough.memory(engine, descriptor, bytes: bytes)
        unsafe region.pointee.bytes = UInt64(bytes)
        unsafe region.pointee.base = unsafe file
        return unsafe file
    }

    /// A child replaces the mappings with other memory.
    static func forget(_ engine: EngineBlock) {
        for index in 0..<2 * Int(CWI_CATALOGS_MAX) {
            let region = unsafe regions(engine) + index
            guard let base = unsafe region.pointee.base else { continue }
            unsafe Mapping.overlay(base, bytes: Int(region.pointee.bytes))
            unsafe region.pointee.base = nil
        }
    }

    /// Releases the mappings of a lane that gets no more names.
    static func release(_ engine: EngineBlock, _ lane: LaneBlock) {
        for index in 0..<Int(CWI_CATALOGS_MAX) {
            let region = unsafe regions(engine, lane) + index
            cwi_fork_gate_enter()
            if let base = unsafe region.pointee.base {
                unsafe region.pointee.base = nil
                unsafe Mapping.release(base, bytes: Int(region.pointee.bytes))
            }
            cwi_fork_gate_leave()
        }
    }

    private static func regions(
        _ engine: EngineBlock, _ lane: LaneBlock
    ) -> UnsafeMutablePointer<cwi_catalog> {
        unsafe regions(engine) + Int(lane.pointee.catalog_set & 1) * Int(CWI_CATALOGS_MAX)
    }

    private static func regions(_ engine: EngineBlock) -> UnsafeMutablePointer<cwi_catalog> {
        let start = unsafe cwi_engine_catalogs_at(engine)
        return unsafe start.assumingMemoryBound(to: cwi_catalog.self)
    }
}
