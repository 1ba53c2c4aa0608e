// The names that a lane's records refer to (FORMAT §5): loggers, sites, resource attributes. Read
// from the lane file's region, the growth files and, after a crash of the machine, the journal.
// This object keeps copies of the names in its own memory, so records may point at them as long as
// it lives.
// SAFETY: names are copies of this object's own, freed in its deinit; views handed out stay valid
// until then.

import CordwoodCore

@safe final class Catalog {
    @safe struct Site {
        var line: UInt32
        var style: UInt8
        @safe var file: UnsafeRawBufferPointer
        @safe var function: UnsafeRawBufferPointer
        @safe var format: UnsafeRawBufferPointer
        @safe var types: UnsafeRawBufferPointer
        /// Size of all arguments together; -1: variable, or a type is not known.
        var fixedBytes: Int

        /// Views of a definition's payload (FORMAT §5); nil if it does not parse.
        init?(_ payload: UnsafeRawBufferPointer) {
            var at = SiteLayout.strings
            guard let file = Bytes.str(payload, &at),
                let function = Bytes.str(payload, &at),
                let format = Bytes.str(payload, &at),
                let types = Bytes.slice(
                    payload, at, Int(Bytes.u8(payload, SiteLayout.argumentCount)))
            else { return nil }
            line = Bytes.u32(payload, SiteLayout.line)
            style = Bytes.u8(payload, SiteLayout.style)
            self.file = unsafe file
            self.function = unsafe function
            self.format = unsafe format
            self.types = unsafe types
            fixedBytes = Site.fixedBytes(types)
        }

        @safe private static func fixedBytes(_ types: UnsafeRawBufferPointer) -> Int {
            var sum = 0
            for index in 0..<types.count {
                let type = Bytes.u8(types, index)
                let bytes = ArgumentType.fixedBytes(type)
                guard bytes > 0, type != ArgumentType.text, type != ArgumentType.wide else {
                    return -1
                }
                sum &+= bytes
            }
            return sum
        }
    }

    @safe private(set) var loggers: [UInt32: UnsafeRawBufferPointer] = unsafe [:]
    private(set) var sites: [UInt32: Site] = [:]
    /// The resource's newest version.
    var resourceVersion: Int { resourceChanges.count }
    /// Counts versions that were defined once more, otherwise.
    private(set) var redefinitions = 0
    /// Counts new entries, so that a reader can tell whether rereading helped.
    private(set) var changes: UInt64 = 0

    /// The most bytes that a catalog keeps; the rest of the file is ignored. No writer comes near
    /// this.
    private static let keptBytesMax = 128 << 20
    private static let versionsMax = Int(Resource.versionsMax)
    private static let stringMax = 65_535

    private var keptBytes = 0
    /// By version, from 1 on; nil: not there (yet). An empty value removes the attribute.
    private var resourceChanges: [(key: String, value: String)?] = []
    private var resource = ResourceState()
    /// The state after each 1,024 versions, so that going back takes few steps.
    private var marks = [ResourceState()]
    private static let markEvery = 1_024
    /// SAFETY: freed only in deinit; everything handed out points in here.
    private var kept: [UnsafeMutableRawBufferPointer] = unsafe []

    deinit { unsafe kept.forEach { unsafe $0.deallocate() } }

    @safe func logger(_ id: UInt32) -> UnsafeRawBufferPointer? {
        unsafe id == 0 ? (loggers[0] ?? Bytes.none) : loggers[id]
    }

    /// The attributes of that version, in the order in which they were first set. nil: this change
    /// or one before it is missing, or they exceed the limit.
    func resource(_ version: Int) -> [(key: String, value: String)]? {
        if version < resource.version {
            resource = marks[min(version / Catalog.markEvery, marks.count - 1)]
        }
        while resource.version < version {
            guard resource.version < resourceChanges.count,
                let change = resourceChanges[resource.version], resource.take(change)
            else { return nil }
            if resource.version == marks.count * Catalog.markEvery {
                resource.forgetRemoved()
                marks.append(resource)
            }
        }
        return resource.attributes
    }

    /// Adds every entry of a region; repeated calls with the same bytes change nothing.
    @safe func read(region: UnsafeRawBufferPointer, salt: UInt64) {
        var at = 0
        while region.count &- at >= CatalogEntry.headerBytes {
            guard let entry = Catalog.entry(region, at, salt) else {
                at &+= CatalogEntry.alignment
                continue
            }
            take(entry)
            let step = CatalogEntry.alignment &- 1
            at &+= (entry.count &+ step) & ~step
        }
    }

    @safe private static func entry(
        _ region: UnsafeRawBufferPointer, _ at: Int, _ salt: UInt64
    ) -> UnsafeRawBufferPointer? {
        guard Bytes.u64(region, at &+ CatalogEntry.salt) == salt else { return nil }
        let length = Int(Bytes.u32(region, at &+ CatalogEntry.length))
        guard length >= CatalogEntry.headerBytes, length <= CatalogEntry.lengthMax,
            let entry = Bytes.slice(region, at, length),
            let covered = Bytes.slice(entry, 16, length &- 16),
            Checksum.crc(covered) == Bytes.u32(entry, CatalogEntry.crc)
        else { return nil }
        return unsafe entry
    }

    @safe private func take(_ entry: UnsafeRawBufferPointer) {
        let id = Bytes.u32(entry, CatalogEntry.identifier)
        let start = CatalogEntry.payload
        let payload = unsafe Bytes.slice(entry, start, entry.count &- start) ?? Bytes.none
        switch Bytes.u8(entry, CatalogEntry.type) {
        case CatalogEntry.typeLogger where id < 1 << 24:
            if let old = unsafe loggers[id], Bytes.equal(old, payload) { return }
            guard payload.count <= Catalog.stringMax, hasRoom(payload.count) else { return }
            unsafe loggers[id] = keep(payload)
            changes &+= 1
        case CatalogEntry.typeSite where id < 1 << 24 && sites[id] == nil:
            guard hasRoom(payload.count), let site = site(payload) else { return }
            sites[id] = site
            changes &+= 1
        case CatalogEntry.typeResource where id > 0 && id <= UInt32(Catalog.versionsMax):
            takeResource(payload, Int(id))
        default:
            break
        }
    }

    @safe private func site(_ payload: UnsafeRawBufferPointer) -> Site? {
        guard var site = unsafe Site(payload) else { return nil }
        site.file = keep(site.file)
        site.function = keep(site.function)
        site.format = keep(site.format)
        site.types = keep(site.types)
        return site
    }

    /// The last definition of a version counts: one before it had failed, so no chunk has it.
    @safe private func takeResource(_ payload: UnsafeRawBufferPointer, _ version: Int) {
        var at = 0
        guard let keyBytes = Bytes.str(payload, &at), let valueBytes = Bytes.str(payload, &at),
            keyBytes.count <= Catalog.stringMax, valueBytes.count <= Catalog.stringMax
        else { return }
        let (key, value) = (Bytes.string(keyBytes), Bytes.string(valueBytes))
        while resourceChanges.count < version { resourceChanges.append(nil) }
        let old = resourceChanges[version - 1]
        if let old, old == (key, value) { return }
        guard hasRoom(payload.count) else { return }
        if old != nil { redefinitions &+= 1 }
        keptBytes &+= payload.count
        resourceChanges[version - 1] = (key, value)
        if version <= resource.version {
            resource = ResourceState()
            marks = [resource]
        }
        changes &+= 1
    }

    private func hasRoom(_ bytes: Int) -> Bool { keptBytes &+ bytes <= Catalog.keptBytesMax }

    @safe private func keep(_ bytes: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
        guard bytes.count > 0 else { return Bytes.none }
        keptBytes &+= bytes.count
        let copy = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes.count, alignment: 1)
        unsafe copy.copyMemory(from: bytes)
        unsafe kept.append(copy)
        return UnsafeRawBufferPointer(copy)
    }
}

/// The attributes as of one version. A value.
private struct ResourceState {
    private(set) var version = 0
    /// nil: removed. An attribute that is set again takes a new place.
    private var all: [(key: String, value: String?)] = []
    private var places: [String: Int] = [:]
    /// Of all keys and values.
    private var bytes = 0

    var attributes: [(key: String, value: String)] {
        all.compactMap { attribute in attribute.value.map { (key: attribute.key, value: $0) } }
    }

    /// False: the attributes would exceed what a writer keeps. Nothing has changed then.
    mutating func take(_ change: (key: String, value: String)) -> Bool {
        let (key, value) = change
        let place = places[key]
        let before = place.map { key.utf8.count + (all[$0].value?.utf8.count ?? 0) } ?? 0
        let after = value.isEmpty ? 0 : key.utf8.count + value.utf8.count
        guard bytes - before + after <= Resource.halfBytes else { return false }
        bytes += after - before
        version += 1
        if let place {
            all[place].value = value.isEmpty ? nil : value
            if value.isEmpty { places[key] = nil }
        } else if !value.isEmpty {
            places[key] = all.count
            all.append((key, value))
        }
        return true
    }

    mutating func forgetRemoved() {
        all.removeAll { $0.value == nil }
        places = [:]
        for (place, attribute) in all.enumerated() { places[attribute.key] = place }
    }
}
