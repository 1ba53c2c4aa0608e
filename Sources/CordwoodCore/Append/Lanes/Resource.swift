// The attributes of the program that logs (FORMAT §5). Each change is an entry of the catalog and a
// new version; a chunk's header says which version its records have. A change therefore ends the
// current chunk of every thread, and an append costs nothing more. The engine keeps the current
// attributes in its own memory, for lanes that are made later. docs/CONCURRENCY.md, A44.
// SAFETY: `resource` is memory of the engine's block, two halves of `halfBytes` each. Only the half
// that `resource_now` does not name is written, and never more than `halfBytes` of it.

import CShims

package enum Resource {
    /// The limit of all attributes together, as stored (FORMAT §1).
    package static let halfBytes = 64 << 10
    /// A chunk's header has 16 bits for the version.
    package static let versionsMax: UInt32 = 65_535
    /// After so many changes, the engine leaves the lane for a new one, whose catalog begins with
    /// the current attributes.
    package static let changesMax: UInt32 = 4_096

    static func versionWord(_ lane: LaneBlock) -> UnsafeMutableRawPointer {
        unsafe cwi_lane_resource_at(lane)
    }

    /// The version for a new chunk.
    static func version(_ lane: LaneBlock) -> UInt32 {
        // ORDER: acquire. Once a version is visible, so is its entry in the catalog (A44).
        unsafe cwa_load_acquire_u32(versionWord(lane))
    }

    /// Sets an attribute for the records that threads begin once this has returned; an empty value
    /// removes it. Returns a status; unless it is ok, nothing has changed. Setting the value that
    /// the attribute has does nothing. The caller holds the lock under which names are added.
    /// - Parameter payload: the catalog entry's. Its first `keyBytes` bytes are the key.
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

    /// Begins the lane's next version. Returns a status.
    private static func begin(
        _ engine: EngineBlock, _ lane: LaneBlock, _ payload: UnsafeRawBufferPointer
    ) -> Int32 {
        let version = unsafe lane.pointee.resource &+ 1
        guard version <= versionsMax, let start = payload.baseAddress else { return Status.limit }
        let status = unsafe CatalogWriter.write(
            engine, lane, type: CatalogEntry.typeResource, identifier: version, start,
            payload.count)
        guard status == Status.ok else { return status }
        // CRASH: the catalog has a version that no chunk names.
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

    /// Writes the current attributes into the catalog of a new lane. False: no room.
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

    // MARK: Lists of attributes, each as a catalog entry's payload

    /// Copies the list `now` to `next`, with one attribute replaced, added at the end or, if its
    /// value is empty, left out. Returns the number of bytes; nil: it does not fit.
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

    /// Removes the first attribute from the list and returns it. nil: the list is empty.
    private static func take(_ rest: inout UnsafeRawBufferPointer) -> UnsafeRawBufferPointer? {
        var at = 0
        guard rest.count > 0, unsafe Bytes.str(rest, &at) != nil, unsafe Bytes.str(rest, &at) != nil
        else { return nil }
        let attribute = unsafe UnsafeRawBufferPointer(rebasing: rest[..<at])
        unsafe rest = UnsafeRawBufferPointer(rebasing: rest[at...])
        return unsafe attribute
    }
}
