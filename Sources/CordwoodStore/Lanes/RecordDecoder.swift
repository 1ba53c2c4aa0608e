// Builds a RecordRef from a stream's current record (FORMAT §8): finds the parts, resolves logger
// and site. Copies only the words of a gap.
// SAFETY: a record's views point into its stream's buffer, the catalog and `scratch`, none of which
// changes before the source moves on; each is a checked slice. Nothing calls back while the
// unchecked property is used.

import CordwoodFormats
import CordwoodCore

@safe final class RecordDecoder {
    let catalog: Catalog
    /// The last decoded record refers to a name that the catalog does not hold (yet).
    private(set) var hasMissed = false
    private var loggerID = UInt32.max
    @safe private var loggerName = Bytes.none
    @exclusivity(unchecked)
    private var recentSites = [(id: UInt32, site: Catalog.Site)?](repeating: nil, count: 64)
    /// The words of a gap record; valid until the next one.
    let scratch = ReadBuffer()
    /// Makes the text of deferred records; nil leaves them as they are.
    var text: DeferredText? = DeferredText()

    init(catalog: Catalog) { self.catalog = catalog }

    func decode(_ stream: StreamCursor, into record: inout RecordRef) {
        hasMissed = false
        let bytes = unsafe stream.buffer.bytes
        record.begin(stream.thread)
        record.monotonicNs = stream.monotonic
        record.writtenNs = stream.realtime
        record.timeNs = stream.realtime
        record.sequence = stream.sequence
        let at = stream.start
        let level = Bytes.u8(bytes, at &+ RecordHeader.level)
        record.level = level <= 24 ? level : 0
        if stream.isUnverified || stream.lacksResource { record.flags.insert(.unverified) }
        if Bytes.u16(bytes, at &+ RecordHeader.flags) & RecordHeader.flagTruncated != 0 {
            record.flags.insert(.truncated)
        }
        if stream.context.count > 0 {
            record.context =
                unsafe Bytes.slice(bytes, stream.context.at, stream.context.count) ?? Bytes.none
        }
        if stream.traceAt > 0 {
            record.trace =
                unsafe Bytes.slice(bytes, stream.traceAt, TraceLayout.bytes) ?? Bytes.none
        }
        let payload = Self.part(
            bytes, at &+ RecordHeader.payload, stream.length &- RecordHeader.payload)
        let id = Bytes.u32(bytes, at &+ RecordHeader.identifier)
        switch Bytes.u8(bytes, at &+ RecordHeader.type) {
        case RecordType.text: text(&record, payload, id)
        case RecordType.rich: rich(&record, payload, id)
        case RecordType.site: site(&record, payload, id)
        case RecordType.described: described(&record, payload, id)
        default: gap(&record, payload, stream)
        }
        // The catalog lost the name in a power cut (FORMAT §5).
        if hasMissed { record.flags.insert(.unverified) }
    }

    @safe private func logger(_ id: UInt32) -> UnsafeRawBufferPointer {
        if id == loggerID { return loggerName }
        guard let name = catalog.logger(id) else {
            hasMissed = true
            return Bytes.literal("?")
        }
        loggerID = id
        loggerName = unsafe name
        return unsafe name
    }

    /// `Bytes.slice`, inlined: nothing if they do not lie within.
    @safe @inline(__always)
    private static func part(
        _ bytes: UnsafeRawBufferPointer, _ at: Int, _ count: Int
    ) -> UnsafeRawBufferPointer {
        guard at >= 0, count > 0, count <= bytes.count &- at, let start = bytes.baseAddress else {
            return Bytes.none
        }
        return unsafe UnsafeRawBufferPointer(start: start + at, count: count)
    }

    /// The first definition of a site wins, so a cached one stays valid.
    @inline(__always)
    private func siteOf(_ id: UInt32) -> Catalog.Site? {
        let slot = Int(id & 63)
        if let known = unsafe recentSites[slot], known.id == id { return known.site }
        return siteOfCatalog(id, slot)
    }

    private func siteOfCatalog(_ id: UInt32, _ slot: Int) -> Catalog.Site? {
        guard let site = catalog.sites[id] else {
            hasMissed = true
            return nil
        }
        unsafe recentSites[slot] = (id, site)
        return site
    }

    /// Slot and running total of a gap record (FORMAT §8.6).
    func gapCounted(_ stream: StreamCursor) -> (slot: UInt32, to: UInt64)? {
        let bytes = unsafe stream.buffer.bytes
        let at = stream.start &+ RecordHeader.payload
        guard Bytes.u8(bytes, stream.start &+ RecordHeader.type) == RecordType.gap,
            stream.length >= RecordHeader.payload &+ GapPayload.bytes
        else { return nil }
        return (Bytes.u32(bytes, at &+ GapPayload.slot), Bytes.u64(bytes, at &+ GapPayload.to))
    }

    @safe private func text(
        _ record: inout RecordRef, _ payload: UnsafeRawBufferPointer, _ id: UInt32
    ) {
        record.logger = logger(id)
        record.message = unsafe payload
        record.originalLength = UInt64(payload.count)
        if record.flags.contains(.truncated), payload.count >= 8 {
            record.message = unsafe Bytes.slice(payload, 8, payload.count &- 8) ?? Bytes.none
            record.originalLength = Bytes.u64(payload, 0)
        }
    }

    @safe private func rich(
        _ record: inout RecordRef, _ payload: UnsafeRawBufferPointer, _ id: UInt32
    ) {
        record.logger = logger(id)
        record.sections = unsafe payload
        var originalLength: UInt64?
        var deferredSite: Catalog.Site?
        var siteID: UInt32?
        var arguments: UnsafeRawBufferPointer?
        var sections = SectionIterator(payload)
        while let (kind, bytes) = sections.next() {
            switch kind {
            case SectionKind.message: record.message = unsafe bytes
            case SectionKind.site:
                siteID = Bytes.u32(bytes, 0)
                deferredSite = siteOf(Bytes.u32(bytes, 0))
            case SectionKind.definition: deferredSite = unsafe Catalog.Site(bytes)
            case SectionKind.arguments: unsafe arguments = unsafe bytes
            case SectionKind.place: place(&record, bytes)
            case SectionKind.trace where bytes.count >= TraceLayout.bytes:
                record.trace = unsafe bytes
            case SectionKind.time where bytes.count >= 8: record.timeNs = Bytes.u64(bytes, 0)
            case SectionKind.kind: record.kind = Bytes.u8(bytes, 0)
            case SectionKind.originalLength where bytes.count >= 8:
                originalLength = Bytes.u64(bytes, 0)
            default: break
            }
        }
        if let arguments = unsafe arguments {
            // Its text is made from these arguments.
            if let site = deferredSite {
                deferred(&record, site, arguments)
                record.placeNumber = siteID.map { $0 &+ 1 } ?? 0
                return
            }
            return unknown(&record, siteID ?? .max, arguments)
        }
        if let site = deferredSite { place(&record, site) }
        record.originalLength = originalLength ?? UInt64(record.message.count)
    }

    /// FORMAT §8.7.
    @safe private func site(
        _ record: inout RecordRef, _ payload: UnsafeRawBufferPointer, _ id: UInt32
    ) {
        record.logger = logger(id)
        let arguments = Self.part(payload, 4, payload.count &- 4)
        guard payload.count >= 4, let site = siteOf(Bytes.u32(payload, 0)) else {
            return unknown(&record, Bytes.u32(payload, 0), arguments)
        }
        deferred(&record, site, arguments)
        record.placeNumber = Bytes.u32(payload, 0) &+ 1
    }

    /// For a site that is in no catalog (the store was copied while it was written): shows its
    /// number and the raw arguments.
    @safe private func unknown(
        _ record: inout RecordRef, _ site: UInt32, _ arguments: UnsafeRawBufferPointer
    ) {
        scratch.clear()
        var text = Array("? site \(site):".utf8)
        for index in 0..<min(arguments.count, 4_096) {
            text.append(0x20)
            Hex.append(Bytes.u8(arguments, index), to: &text)
        }
        unsafe text.withUnsafeBytes { scratch.append($0) }
        record.message = unsafe scratch.bytes
        record.originalLength = UInt64(text.count)
        record.flags.insert(.unverified)
    }

    @safe private func described(
        _ record: inout RecordRef, _ payload: UnsafeRawBufferPointer, _ id: UInt32
    ) {
        record.logger = logger(id)
        let length = Int(Bytes.u32(payload, 0))
        guard let definition = Bytes.slice(payload, 4, length),
            let site = unsafe Catalog.Site(definition)
        else { return }
        deferred(
            &record, site,
            unsafe Bytes.slice(payload, 4 &+ length, payload.count &- 4 &- length) ?? Bytes.none)
    }

    @safe @inline(__always)
    private func deferred(
        _ record: inout RecordRef, _ site: Catalog.Site, _ arguments: UnsafeRawBufferPointer
    ) {
        record.line = site.line
        record.file = site.file
        record.function = site.function
        record.isDeferred = true
        record.style = site.style
        record.format = site.format
        record.argumentTypes = site.types
        // Excludes the record's padding. Arguments that do not parse leave only the format.
        let isFixed = site.fixedBytes >= 0 && site.fixedBytes <= arguments.count
        let size = isFixed ? site.fixedBytes : DeferredText.size(site.types, arguments) ?? 0
        record.arguments = Self.part(arguments, 0, size)
        text?.render(&record)
    }

    private func place(_ record: inout RecordRef, _ site: Catalog.Site) {
        record.line = site.line
        record.file = site.file
        record.function = site.function
    }

    @safe private func place(_ record: inout RecordRef, _ bytes: UnsafeRawBufferPointer) {
        let fileCount = Int(Bytes.u16(bytes, 4))
        let functionCount = Int(Bytes.u16(bytes, 6))
        record.line = Bytes.u32(bytes, 0)
        record.file = unsafe Bytes.slice(bytes, 8, fileCount) ?? Bytes.none
        record.function = unsafe Bytes.slice(bytes, 8 &+ fileCount, functionCount) ?? Bytes.none
    }

    /// The running totals of a damaged one may go backwards: it reports nothing.
    @safe private func gap(
        _ record: inout RecordRef, _ payload: UnsafeRawBufferPointer, _ stream: StreamCursor
    ) {
        let clock = unsafe stream.segment?.clock
        let first = Bytes.u64(payload, GapPayload.firstMonotonic)
        let last = Bytes.u64(payload, GapPayload.lastMonotonic)
        let from = Bytes.u64(payload, GapPayload.from)
        let run = Gap.Run(
            slot: Bytes.u32(payload, GapPayload.slot), from: from,
            to: max(from, Bytes.u64(payload, GapPayload.to)))
        Gap(
            runs: [run], first: clock?.realtime(ofMonotonic: first) ?? first,
            last: clock?.realtime(ofMonotonic: last) ?? last,
            causes: Bytes.u64(payload, GapPayload.causes)
        ).show(in: &record, scratch)
    }
}
