// The names a lane's records refer to (FORMAT §5): loggers, sites, resource attributes. Read from
// the lane file's region, the growth files and, after a crash of the machine, the journal. Names
// are kept in memory of this object's own, so that records may point at them for as long as it
// lives.
// SAFETY: names are copies of this object's own, freed in its deinit; views handed out hold until
// then.

@safe final class Catalog {
    @safe struct Site {
        var line: UInt32
        var style: UInt8
        @safe var file: UnsafeRawBufferPointer
        @safe var function: UnsafeRawBufferPointer
        @safe var format: UnsafeRawBufferPointer
        @safe var types: UnsafeRawBufferPointer

        /// Views of a definition's payload (FORMAT §5); nil where it does not parse.
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
        }
    }

    @safe private(set) var loggers: [UInt32: UnsafeRawBufferPointer] = unsafe [:]
    private(set) var sites: [UInt32: Site] = [:]
    private(set) var resource: [(key: String, value: String)] = []
    /// SAFETY: freed in deinit only; everything handed out points in here.
    private var kept: [UnsafeMutableRawBufferPointer] = unsafe []

    deinit { unsafe kept.forEach { unsafe $0.deallocate() } }

    @safe func logger(_ id: UInt32) -> UnsafeRawBufferPointer? {
        unsafe id == 0 ? (loggers[0] ?? Bytes.none) : loggers[id]
    }

    /// Starts over with the resource, which is a list of changes; names only ever grow.
    func beginResource() { resource = [] }

    /// Takes every entry of a region in; repeated calls with the same bytes change nothing.
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
            unsafe loggers[id] = keep(payload)
        case CatalogEntry.typeSite where id < 1 << 24 && sites[id] == nil:
            sites[id] = site(payload)
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
        let key = Bytes.string(keyBytes)
        let index = resource.firstIndex { $0.key == key }
        if unsafe value.isEmpty {
            if let index { resource.remove(at: index) }
        } else if let index {
            resource[index].value = Bytes.string(value)
        } else {
            resource.append((key, Bytes.string(value)))
        }
    }

    @safe private func keep(_ bytes: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
        guard bytes.count > 0 else { return Bytes.none }
        let copy = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes.count, alignment: 1)
        unsafe copy.copyMemory(from: bytes)
        unsafe kept.append(copy)
        return UnsafeRawBufferPointer(copy)
    }
}
