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
    /// In the order in which they were first set.
    var resource: [(key: String, value: String)] {
        attributes.compactMap { attribute in
            attribute.value.map { (key: attribute.key, value: $0) }
        }
    }
    /// Counts new entries, so that a reader can tell whether rereading helped.
    private(set) var changes: UInt64 = 0

    /// The most bytes that a catalog keeps; the rest of the file is ignored. No writer comes near
    /// this.
    private static let keptBytesMax = 128 << 20
    private static let attributesMax = 65_536
    private static let stringMax = 65_535

    private var keptBytes = 0
    /// nil: the attribute was removed.
    private var attributes: [(key: String, value: String?)] = []
    private var attributePlaces: [String: Int] = [:]
    private var removedAttributes = 0
    /// SAFETY: freed only in deinit; everything handed out points in here.
    private var kept: [UnsafeMutableRawBufferPointer] = unsafe []

    deinit { unsafe kept.forEach { unsafe $0.deallocate() } }

    @safe func logger(_ id: UInt32) -> UnsafeRawBufferPointer? {
        unsafe id == 0 ? (loggers[0] ?? Bytes.none) : loggers[id]
    }

    /// Restarts the resource, which is a list of changes; names only ever grow.
    func beginResource() {
        attributes = []
        attributePlaces = [:]
        removedAttributes = 0
    }

    /// Adds every entry of a region; repeated calls with the same bytes change nothing. Returns
    /// where the last entry ends.
    @safe @discardableResult
    func read(region: UnsafeRawBufferPointer, salt: UInt64) -> Int {
        var at = 0
        var end = 0
        while region.count &- at >= CatalogEntry.headerBytes {
            guard let entry = Catalog.entry(region, at, salt) else {
                at &+= CatalogEntry.alignment
                continue
            }
            take(entry)
            let step = CatalogEntry.alignment &- 1
            at &+= (entry.count &+ step) & ~step
            end = at
        }
        return end
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
        case CatalogEntry.typeResource:
            takeResource(payload)
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

    @safe private func takeResource(_ payload: UnsafeRawBufferPointer) {
        var at = 0
        guard let keyBytes = Bytes.str(payload, &at), let value = Bytes.str(payload, &at) else {
            return
        }
        guard keyBytes.count <= Catalog.stringMax, value.count <= Catalog.stringMax else {
            return
        }
        let key = Bytes.string(keyBytes)
        let text = unsafe value.isEmpty ? nil : Bytes.string(value)
        if let place = attributePlaces[key] {
            // An attribute that was removed and set again takes its new position.
            if attributes[place].value != nil || text == nil {
                if text == nil, attributes[place].value != nil { removedAttributes &+= 1 }
                attributes[place].value = text
                return
            }
        }
        guard text != nil else { return }
        if attributes.count >= Catalog.attributesMax {
            guard removedAttributes >= Catalog.attributesMax / 2 else { return }
            forgetRemoved()
        }
        attributePlaces[key] = attributes.count
        attributes.append((key, text))
    }

    private func forgetRemoved() {
        attributes.removeAll { $0.value == nil }
        removedAttributes = 0
        attributePlaces = [:]
        for (place, attribute) in attributes.enumerated() { attributePlaces[attribute.key] = place }
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
