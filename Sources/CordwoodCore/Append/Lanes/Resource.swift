// The attributes of the program that logs (FORMAT §5). Every change is one entry of the catalog and
// one more version; a chunk's header says which version its records have. So a change cuts the
// chunks of all threads, and costs an append nothing. The engine keeps the present attributes in
// memory of its own, for lanes that are made later. docs/CONCURRENCY.md, A44.
// SAFETY: `resource` has two halves of `halfBytes` each, and never moves; only the half that
// `resource_now` does not name is written, and only as far as it reaches.

import CShims

package enum Resource {
    /// All attributes together, as stored.
    static let halfBytes = 64 << 10
    /// Versions of one lane: a chunk's header has 16 bits for them.
    static let versionsMax: UInt32 = 65_535
    /// A lane that has taken so many changes is left for a new one, whose catalog begins with what
    /// holds then.
    package static let changesMax: UInt32 = 4_096

    static func versionWord(_ lane: LaneBlock) -> UnsafeMutableRawPointer {
        unsafe cwi_lane_resource_at(lane)
    }

    /// The version for a new chunk.
    static func version(_ lane: LaneBlock) -> UInt32 {
        // ORDER: acquire. Once a version is visible, so is its entry in the catalog (A44).
        unsafe cwa_load_acquire_u32(versionWord(lane))
    }

    /// Sets an attribute for the records that any thread begins from its return on; an empty value
    /// removes it. An equal value changes nothing. Returns a status, and has changed nothing unless
    /// that is ok. The caller holds the lock under which names are added.
    /// - Parameter payload: of the entry in the catalog, of which the first `keyBytes` are the key.
    package static func set(
        _ engine: EngineBlock, _ payload: UnsafeRawBufferPointer, keyBytes: Int
    ) -> Int32 {
        guard let memory = unsafe engine.pointee.resource else { return Status.closed }
        let before = unsafe engine.pointee.resource_now
        let count = Int(UInt32(truncatingIfNeeded: before))
        let changes = before >> 32
        let now = unsafe UnsafeRawBufferPointer(
            start: memory + half(changes), count: count)
        let next = unsafe UnsafeMutableRawBufferPointer(
            start: memory + half(changes &+ 1), count: halfBytes)
        guard let result = unsafe replace(payload, keyBytes, in: now, into: next) else {
            return Status.limit
        }
        if unsafe result == count && now.elementsEqual(next.prefix(result)) { return Status.ok }
        let word = unsafe cwi_engine_resource_now_at(engine)
        // ORDER: release, then full: as for a logger's name (A19).
        unsafe cwa_store_release_u64(word, (changes &+ 1) << 32 | UInt64(result))
        cwa_fence_full()
        guard let lane = unsafe Lanes.settled(engine) else { return Status.ok }
        let status = unsafe begin(engine, lane, payload)
        if status != Status.ok { unsafe cwa_store_release_u64(word, before) }
        return status
    }

    private static func half(_ changes: UInt64) -> Int { changes & 1 == 0 ? 0 : halfBytes }

    /// The lane's next version.
    private static func begin(
        _ engine: EngineBlock, _ lane: LaneBlock, _ payload: UnsafeRawBufferPointer
    ) -> Int32 {
        let version = unsafe lane.pointee.resource &+ 1
        guard version <= versionsMax, let start = payload.baseAddress else { return Status.limit }
        let status = unsafe CatalogWriter.write(
            engine, lane, type: CatalogEntry.typeResource, identifier: version, start,
            payload.count)
        guard status == Status.ok else { return status }
        // CRASH: an entry whose version no chunk has.
        unsafe cwa_store_release_u32(versionWord(lane), version)
        unsafe ThreadBlocks.forEach(engine) { thread in
            // ORDER: release, after the version. A claim that does not find the version when it
            // looks again has published its limit before this store, which replaces it (A44).
            unsafe cwa_store_release_u64(AppendPath.limitWord(thread), 0)
        }
        if unsafe version &- lane.pointee.resource_first >= changesMax {
            _ = unsafe cwa_cas_u32(Lanes.renewWord(lane), 0, UInt32(CWI_RENEW_RESOURCES))
            unsafe EngineCore.wake(engine)
        }
        return Status.ok
    }

    /// Writes what holds now into the catalog of a new lane. False: no room.
    static func writeAll(_ engine: EngineBlock, _ lane: LaneBlock) -> Bool {
        guard let memory = unsafe engine.pointee.resource else { return true }
        // ORDER: acquire. The half that it names is whole (A44).
        let now = unsafe cwa_load_acquire_u64(cwi_engine_resource_now_at(engine))
        var rest = unsafe UnsafeRawBufferPointer(
            start: memory + half(now >> 32), count: Int(UInt32(truncatingIfNeeded: now)))
        var version: UInt32 = 0
        while let attribute = unsafe take(&rest), let start = attribute.baseAddress {
            version &+= 1
            let status = unsafe CatalogWriter.write(
                engine, lane, type: CatalogEntry.typeResource, identifier: version, start,
                attribute.count)
            guard status == Status.ok else { return false }
        }
        unsafe lane.pointee.resource = version
        unsafe lane.pointee.resource_first = version
        return true
    }

    // MARK: The attributes in a row

    /// Copies the attributes, with that one in the place of its predecessor or at the end, or
    /// without it if its value is empty. Returns the number of bytes; nil: no room.
    private static func replace(
        _ payload: UnsafeRawBufferPointer, _ keyBytes: Int,
        in now: UnsafeRawBufferPointer, into next: UnsafeMutableRawBufferPointer
    ) -> Int? {
        let key = unsafe UnsafeRawBufferPointer(rebasing: payload.prefix(keyBytes))
        // One byte is the length of an empty value.
        let removes = payload.count == keyBytes + 1
        var rest = unsafe now
        var count = 0
        var isDone = removes
        func add(_ attribute: UnsafeRawBufferPointer) -> Bool {
            guard attribute.count <= next.count - count else { return false }
            unsafe UnsafeMutableRawBufferPointer(rebasing: next[count...])
                .copyMemory(from: attribute)
            count += attribute.count
            return true
        }
        while let attribute = unsafe take(&rest) {
            if unsafe attribute.starts(with: key) {
                guard !removes else { continue }
                isDone = true
                guard unsafe add(payload) else { return nil }
            } else {
                guard unsafe add(attribute) else { return nil }
            }
        }
        if !isDone, unsafe !add(payload) { return nil }
        return count
    }

    /// The first attribute, which is taken off; nil: there is none.
    private static func take(_ rest: inout UnsafeRawBufferPointer) -> UnsafeRawBufferPointer? {
        var at = 0
        guard rest.count > 0, unsafe Bytes.str(rest, &at) != nil, unsafe Bytes.str(rest, &at) != nil
        else { return nil }
        let attribute = unsafe UnsafeRawBufferPointer(rebasing: rest[..<at])
        unsafe rest = UnsafeRawBufferPointer(rebasing: rest[at...])
        return unsafe attribute
    }
}
