// The process's table of call sites, shared by all engines and never shrunk: each site's plan, and
// its definition in the form that catalogs hold (FORMAT §5). The first record of a site registers
// it, perhaps in a signal handler, so nothing here waits for long, allocates from the heap, or
// keeps a pointer into the host. If the site cannot be registered now, the record carries its
// definition.
// SAFETY: `sites` is a mapping of bytesMax, made before the first engine is open and never
// unmapped; entries below sites_used are complete and never change.

import CCordwood
import CShims

enum Sites {
    private static let bytesMax = Int(SitePlan.tableBytes)
    private static let indexBytes = Int(CWI_SITES_INDEX) * 4
    private static let allBytes = bytesMax + indexBytes + placesMax * 16
    /// u32 bytes of the entry, u32 hash, u32 bytes of the definition, u32 told, u32 line, u32
    /// offset and u32 bytes of the format, u32 offset and u16 bytes of the file, u16 bytes of the
    /// function; then the classes of the arguments, padded with zeros; plan; definition; padded to
    /// 8.
    private static let headerBytes = 80
    private static let classesAt = 40
    /// A cache of places by address: u64 of the addresses and the line, then the plan.
    private static let placesMax = 4096

    private static var usedWord: UnsafeMutableRawPointer {
        unsafe cwi_process_sites_used_at(cwi_process_get()!)
    }

    private static var lockWord: UnsafeMutableRawPointer {
        unsafe cwi_process_sites_lock_at(cwi_process_get()!)
    }

    /// Runs before the first engine is open. False: out of memory.
    static func prepare() -> Bool {
        guard MessageSites.prepare() else { return false }
        let process = unsafe cwi_process_get()!
        if unsafe process.pointee.sites != nil { return true }
        guard
            let memory = unsafe Mapping.anonymous(bytes: allBytes, wipedOnFork: false)
        else { return false }
        let word = unsafe cwi_process_sites_at(process)
        let index = unsafe cwi_process_sites_index_at(process)
        // Set the index first: a thread that sees the table must also see the index.
        guard
            unsafe cwa_cas_u64(index, 0, UInt64(UInt(bitPattern: memory + bytesMax)))
        else {
            unsafe Mapping.release(memory, bytes: allBytes)
            return true
        }
        unsafe cwa_store_release_u64(word, UInt64(UInt(bitPattern: memory)))
        return true
    }

    /// In a child after fork: the parent's registrar does not exist here and would never finish.
    static func forked() { unsafe cwa_store_relaxed_u32(lockWord, 0) }

    /// The plan of a site, which is registered if necessary. nil: not possible now; its records
    /// carry their definition.
    @inline(never)
    static func register(_ site: UnsafeMutablePointer<cw_site>) -> SitePlan? {
        guard let plan = unsafe registered(site, at: UnsafeMutableRawPointer(site), key: 0),
            let classes = unsafe site.pointee.arguments
        else { return nil }
        let isInlined = unsafe cwi_copy_has_mark() && plan.isAsPassed(classes)
        let number = isInlined ? cwi_copy_mark() | plan.identifier : 0
        // ORDER: release, and last: the append in a host's code writes that number without a look
        // at the plan (A21). Another copy of the library may have stored a plan of its own since:
        // the number says whose it is.
        unsafe withUnsafeMutablePointer(to: &site.pointee.inlined) {
            unsafe cwa_store_release_u32($0, number)
        }
        return plan
    }

    /// As register; also publishes the plan in `word`, or after `key` if that is not 0.
    private static func registered(
        _ site: UnsafePointer<cw_site>, at word: UnsafeMutableRawPointer, key: UInt64
    ) -> SitePlan? {
        guard unsafe site.pointee.format != nil, let classes = unsafe site.pointee.arguments else {
            return nil
        }
        return unsafe register(SiteDefinition(site), classes) { plan in
            // ORDER: release. Every open lane has the definition now (A21). Another place may have
            // used the slot: its key is cleared first, so that no thread mistakes one place for the
            // other.
            if key != 0 { unsafe cwa_exchange_u64(word, 0) }
            let plan64 = unsafe UInt64(UInt(bitPattern: plan.memory))
            unsafe cwa_store_release_u64(key == 0 ? word : word + 8, plan64)
            if key != 0 { unsafe cwa_store_release_u64(word, key) }
        }
    }

    /// The plan of that definition, which is registered if necessary; `publish` makes it known,
    /// under the lock. nil: not possible now.
    static func register(
        _ definition: SiteDefinition, _ classes: UnsafePointer<UInt8>,
        publish: (SitePlan) -> Void
    ) -> SitePlan? {
        // Making a growth file involves system calls that are cancellation points (R19).
        let cancel = cwi_disable_cancel()
        defer { cwi_restore_cancel(cancel) }
        var old = sigset_t()
        // A handler on this thread would find the lock taken for ever.
        unsafe cwi_block_signals(&old)
        defer { unsafe cwi_restore_signals(&old) }
        // A nested append never waits.
        guard unsafe cwi_process_get().pointee.sites != nil, !BlockTable().isInAppend, lock()
        else { return nil }
        defer { unsafe cwa_store_release_u32(lockWord, 0) }
        // Finds an entry if another thread was faster.
        guard let entry = unsafe find(definition, classes) ?? add(definition, classes),
            unsafe tell(entry)
        else { return nil }
        let plan = unsafe SitePlan(entry + headerBytes)
        publish(plan)
        return plan
    }

    /// The key of a place: the addresses of its strings, and its line; never 0.
    @inline(__always)
    private static func key(_ place: UnsafePointer<cw_site>) -> UInt64 {
        let format = unsafe UInt64(UInt(bitPattern: place.pointee.format))
        let file = unsafe UInt64(UInt(bitPattern: place.pointee.file))
        let line = unsafe UInt64(place.pointee.line)
        let other = (file &* 0x9E37_79B9_7F4A_7C15) ^ (line &* 0xC2B2_AE3D_27D4_EB4F)
        return ((format ^ other) &* 0xFF51_AFD7_ED55_8CCD) | 1
    }

    /// The first of the two slots that a key may occupy; the other is 16 bytes on or back.
    @inline(__always)
    private static func slot(_ key: UInt64) -> UnsafeMutableRawPointer? {
        guard let table = unsafe cwi_process_get().pointee.sites else { return nil }
        return unsafe UnsafeMutableRawPointer(table + bytesMax + indexBytes)
            + Int(key >> 52) &* 16
    }

    @inline(__always)
    private static func other(_ slot: UnsafeMutableRawPointer) -> UnsafeMutableRawPointer {
        unsafe UnsafeMutableRawPointer(bitPattern: UInt(bitPattern: slot) ^ 16)!
    }

    /// Looks up the plan of a place by its addresses; nil: not in the cache.
    @inline(__always)
    static func known(_ place: UnsafePointer<cw_site>) -> SitePlan? {
        let key = unsafe key(place)
        guard var slot = unsafe slot(key) else { return nil }
        // ORDER: acquire. Gives the plan of that key, or one that isThere refuses (A21).
        if unsafe cwa_load_acquire_u64(slot) != key {
            unsafe slot = other(slot)
            guard unsafe cwa_load_acquire_u64(slot) == key else { return nil }
        }
        let found = unsafe UInt(cwa_load_acquire_u64(slot + 8))
        guard let memory = unsafe UnsafeMutableRawPointer(bitPattern: found),
            unsafe isThere(place, memory - headerBytes)
        else { return nil }
        return unsafe SitePlan(memory)
    }

    /// As register.
    @inline(never)
    static func placeSlow(_ place: UnsafePointer<cw_site>) -> SitePlan? {
        let key = unsafe key(place)
        guard var slot = unsafe slot(key) else { return nil }
        // The slot that has the key, else an empty one, else the first.
        let second = unsafe other(slot)
        let inFirst = unsafe cwa_load_relaxed_u64(slot)
        let inSecond = unsafe cwa_load_relaxed_u64(second)
        if inSecond == key || inSecond == 0 && inFirst != key && inFirst != 0 {
            unsafe slot = second
        }
        return unsafe registered(place, at: slot, key: key)
    }

    /// A key is only a hash of addresses. Two places may share one, another place may have it after
    /// its module was unloaded, and one place may have other types each time (a template). So this
    /// compares everything that a definition says; the slot's two words need not belong together.
    @inline(__always)
    private static func isThere(
        _ place: UnsafePointer<cw_site>, _ entry: UnsafeMutableRawPointer
    ) -> Bool {
        let bytes = unsafe Int(entry.load(fromByteOffset: 24, as: UInt32.self))
        guard unsafe entry.load(fromByteOffset: 16, as: UInt32.self) == place.pointee.line,
            unsafe bytes == Int(place.pointee.count), let format = unsafe place.pointee.format,
            let classes = unsafe place.pointee.arguments
        else { return false }
        let own = unsafe Int(entry.load(fromByteOffset: 20, as: UInt32.self))
        let passed = unsafe SitePlan(entry + headerBytes).count
        var at = 0
        repeat {
            // Lists of classes are zero-padded to a multiple of 8.
            guard
                unsafe entry.load(fromByteOffset: classesAt + at, as: UInt64.self)
                    == UnsafeRawPointer(classes).loadUnaligned(fromByteOffset: at, as: UInt64.self)
            else { return false }
            at &+= 8
        } while at <= passed
        let file = unsafe entry + Int(entry.load(fromByteOffset: 28, as: UInt32.self))
        let fileBytes = unsafe Int(entry.load(fromByteOffset: 32, as: UInt16.self))
        let functionBytes = unsafe Int(entry.load(fromByteOffset: 34, as: UInt16.self))
        return unsafe cwi_same_text(place.pointee.file, file, fileBytes)
            && cwi_same_text(
                place.pointee.function,
                file + fileBytes + SiteDefinition.prefixBytes(functionBytes),
                functionBytes)
            && Memory.isSame(entry + own, format, bytes)
    }

    /// Runs the body while no thread registers a site. False: a registrar does not release the
    /// lock.
    static func locked(_ body: () -> Void) -> Bool {
        var old = sigset_t()
        // A handler on this thread would find the lock taken for ever.
        unsafe cwi_block_signals(&old)
        defer { unsafe cwi_restore_signals(&old) }
        guard lock() else { return false }
        body()
        unsafe cwa_store_release_u32(lockWord, 0)
        return true
    }

    /// False: another thread holds the lock and does not release it; a registrar may be making a
    /// file.
    private static func lock() -> Bool {
        let own = cw_gettid()
        let bound = cw_monotonic_ns() &+ 10_000_000
        while unsafe !cwa_cas_u32(lockWord, 0, own) {
            guard cw_monotonic_ns() < bound else { return false }
            ThreadIdentity.yield()
        }
        return true
    }

    /// Finds a site with the same definition: the host was loaded again, or a template has it
    /// twice.
    private static func find(
        _ definition: SiteDefinition, _ classes: UnsafePointer<UInt8>
    ) -> UnsafeMutableRawPointer? {
        let process = unsafe cwi_process_get()!
        var slot = Int(definition.hash) & (Int(CWI_SITES_INDEX) - 1)
        while true {
            let place = unsafe Int(process.pointee.sites_index[slot])
            guard place != 0 else { return nil }
            let entry = unsafe UnsafeMutableRawPointer(process.pointee.sites + (place - 1) * 8)
            if unsafe entry.load(fromByteOffset: 4, as: UInt32.self) == definition.hash {
                let plan = unsafe SitePlan(entry + headerBytes)
                let count = unsafe Int(entry.load(fromByteOffset: 8, as: UInt32.self))
                let kept = unsafe UnsafeRawBufferPointer(
                    start: entry + headerBytes + plan.bytes, count: count)
                if unsafe definition.isSame(kept, plan, classes) { return unsafe entry }
            }
            slot = (slot + 1) & (Int(CWI_SITES_INDEX) - 1)
        }
    }

    private static func add(
        _ definition: SiteDefinition, _ classes: UnsafePointer<UInt8>
    ) -> UnsafeMutableRawPointer? {
        let process = unsafe cwi_process_get()!
        let used = unsafe Int(process.pointee.sites_used)
        let number = unsafe process.pointee.sites_count
        let most =
            headerBytes + SitePlan.bytesMax + definition.bytesMax + 8
        guard number < UInt32(CWI_SITES_MAX), used + most <= bytesMax else { return nil }
        let entry = unsafe UnsafeMutableRawPointer(process.pointee.sites + used)
        let plan = unsafe SitePlan(entry + headerBytes)
        unsafe plan.make(format: definition.format, style: definition.style, classes: classes)
        let start = unsafe entry + headerBytes + plan.bytes
        let count = unsafe definition.write(plan, to: start)
        var format = definition.formatOffset
        var end = count
        if definition.isRewritten(plan), let own = unsafe definition.format.baseAddress {
            // `isThere` compares with the host's original format.
            unsafe (start + count).copyMemory(from: own, byteCount: definition.format.count)
            format = count
            unsafe end += definition.format.count
        }
        let bytes = (headerBytes + plan.bytes + end + 7) & ~7
        unsafe entry.storeBytes(of: UInt32(bytes), as: UInt32.self)
        unsafe entry.storeBytes(of: definition.hash, toByteOffset: 4, as: UInt32.self)
        unsafe entry.storeBytes(of: UInt32(count), toByteOffset: 8, as: UInt32.self)
        unsafe describe(definition, classes, entry, start, format)
        plan.identifier = number
        unsafe process.pointee.sites_count = number + 1
        // ORDER: release, then full: a maker of a lane that does not see the entry has taken the
        // lane before we look at it, and we wait for that maker (A19, A21).
        unsafe cwa_store_release_u64(usedWord, UInt64(used + bytes))
        var slot = Int(definition.hash) & (Int(CWI_SITES_INDEX) - 1)
        while unsafe process.pointee.sites_index[slot] != 0 {
            slot = (slot + 1) & (Int(CWI_SITES_INDEX) - 1)
        }
        unsafe process.pointee.sites_index[slot] = UInt32(used / 8 + 1)
        return unsafe entry
    }

    /// Stores what `isThere` compares.
    private static func describe(
        _ definition: SiteDefinition, _ classes: UnsafePointer<UInt8>,
        _ entry: UnsafeMutableRawPointer, _ payload: UnsafeMutableRawPointer, _ formatAt: Int
    ) {
        let format = unsafe payload + formatAt - entry
        unsafe entry.storeBytes(of: definition.line, toByteOffset: 16, as: UInt32.self)
        unsafe entry.storeBytes(of: UInt32(format), toByteOffset: 20, as: UInt32.self)
        unsafe entry.storeBytes(
            of: UInt32(definition.format.count), toByteOffset: 24, as: UInt32.self)
        let file = unsafe payload + SiteLayout.strings - entry
        let prefix = unsafe SiteDefinition.prefixBytes(definition.file.count)
        unsafe entry.storeBytes(of: UInt32(file + prefix), toByteOffset: 28, as: UInt32.self)
        unsafe entry.storeBytes(
            of: UInt16(definition.file.count), toByteOffset: 32, as: UInt16.self)
        unsafe entry.storeBytes(
            of: UInt16(definition.function.count), toByteOffset: 34, as: UInt16.self)
        var index = 0
        while index < SitePlan.argumentsMax, unsafe classes[index] != UInt8(CW_ARG_NONE) {
            unsafe entry.storeBytes(
                of: classes[index], toByteOffset: classesAt + index, as: UInt8.self)
            index += 1
        }
        while index < headerBytes - classesAt {
            unsafe entry.storeBytes(of: 0, toByteOffset: classesAt + index, as: UInt8.self)
            index += 1
        }
    }

    /// Writes a definition to every open lane, once. False: try again later.
    private static func tell(_ entry: UnsafeMutableRawPointer) -> Bool {
        let told = unsafe entry + 12
        if unsafe told.load(as: UInt32.self) != 0 { return true }
        cwa_fence_full()
        let plan = unsafe SitePlan(entry + headerBytes)
        let number = plan.identifier
        let table = unsafe cwi_process_engines_at(cwi_process_get()!)
        for index in 0..<Int(CWI_ENGINES_MAX) {
            // ORDER: acquire. An engine in the table is complete (A15).
            let word = unsafe cwa_load_acquire_u64(table + index * 8)
            guard let engine = unsafe EngineBlock(bitPattern: UInt(word)),
                unsafe cwa_load_acquire_u32(engine) == UInt32(CWI_ENGINE_OPEN),
                let lane = unsafe engine.pointee.lane
            else { continue }
            let state = unsafe cwa_load_acquire_u32(lane)
            // A forked child has no lane yet; the thread that makes one writes the whole table.
            if state != Lanes.readyState && state != UInt32(CWI_LANE_MAKING) { continue }
            guard unsafe lane.pointee.maker_tid != cw_gettid(),
                let lane = unsafe Lanes.settled(engine)
            else { return false }
            let status = unsafe CatalogWriter.write(
                engine, lane, type: CatalogEntry.typeSite, identifier: number,
                entry + headerBytes + plan.bytes,
                Int(entry.load(fromByteOffset: 8, as: UInt32.self)))
            // No room: from now on the site's records carry their definition.
            if status != Status.ok {
                plan.identifier = SitePlan.described
                plan.isPlain = false
            }
        }
        unsafe told.storeBytes(of: 1, as: UInt32.self)
        return true
    }

    /// Writes all sites into a new lane. False: no room.
    static func writeAll(_ engine: EngineBlock, _ lane: LaneBlock) -> Bool {
        guard let sites = unsafe cwi_process_get().pointee.sites else { return true }
        // ORDER: acquire. The entries below it are complete (A21).
        let used = unsafe Int(cwa_load_acquire_u64(usedWord))
        var at = 0
        while at < used {
            let entry = unsafe UnsafeMutableRawPointer(sites + at)
            let plan = unsafe SitePlan(entry + headerBytes)
            if plan.identifier != SitePlan.described {
                let status = unsafe CatalogWriter.write(
                    engine, lane, type: CatalogEntry.typeSite, identifier: plan.identifier,
                    entry + headerBytes + plan.bytes,
                    Int(entry.load(fromByteOffset: 8, as: UInt32.self)))
                guard status == Status.ok else { return false }
            }
            at += unsafe Int(entry.load(as: UInt32.self))
        }
        return true
    }
}
