// The dictionaries of a block (FORMAT §11.4), to which the columns of its rows refer.
// SAFETY: all views are of bytes that BlockNames keeps as long as this; these do not move, because
// room for all of them was reserved.

import CordwoodCore

@safe struct BlockDictionaries {
    @safe struct Site {
        var line: UInt32
        @safe var file: UnsafeRawBufferPointer
        @safe var function: UnsafeRawBufferPointer
    }
    @safe struct Format {
        var line: UInt32
        @safe var file: UnsafeRawBufferPointer
        @safe var function: UnsafeRawBufferPointer
        var style: UInt8
        @safe var format: UnsafeRawBufferPointer
        @safe var types: UnsafeRawBufferPointer
    }
    @safe struct Context {
        @safe var fields: UnsafeRawBufferPointer
        /// Empty if the context has no trace.
        @safe var trace: UnsafeRawBufferPointer
    }

    var processes: [ProcessInfo] = []
    var threads: [ThreadInfo] = []
    @safe var loggers: [UnsafeRawBufferPointer] = unsafe []
    var sites: [Site] = []
    var contexts: [Context] = []
    var formats: [Format] = []

    init() {}

    /// Of a block whose dictionaries were read. Copies their bytes to `kept`, which has room for
    /// `bytes(of: content)`.
    init(_ content: borrowing BlockContent, _ kept: inout GrowingBytes) {
        let known = content.processes
        var attribute = 0
        processes.reserveCapacity(known.lane.count)
        for index in 0..<known.lane.count {
            let count = Int(known.attributes[index])
            let resource = (attribute..<attribute + count).map {
                (key: known.keys[$0].text, value: known.values[$0].text)
            }
            attribute += count
            processes.append(
                ProcessInfo(
                    laneID: known.lane[index].bytes.id(0), bootID: known.boot[index].bytes.id(0),
                    processID: UInt32(truncatingIfNeeded: known.processID[index]),
                    name: known.name[index].text, createdRealtime: known.createdRealtime[index],
                    createdMonotonic: known.createdMonotonic[index], resource: resource))
        }
        threads.reserveCapacity(content.threads.name.count)
        // Threads are read only with the processes.
        for index in 0..<content.threads.name.count where !processes.isEmpty {
            threads.append(
                ThreadInfo(
                    process: processes[Int(content.threads.process[index])],
                    serial: UInt32(truncatingIfNeeded: content.threads.serial[index]),
                    threadID: UInt32(truncatingIfNeeded: content.threads.threadID[index]),
                    name: content.threads.name[index].text))
        }
        for index in 0..<content.loggers.count {
            unsafe loggers.append(Self.keep(content.loggers[index], &kept))
        }
        for index in 0..<content.sites.line.count {
            unsafe sites.append(
                Site(
                    line: UInt32(truncatingIfNeeded: content.sites.line[index]),
                    file: Self.keep(content.sites.file[index], &kept),
                    function: Self.keep(content.sites.function[index], &kept)))
        }
        for index in 0..<content.contexts.count {
            let trace = unsafe Self.keep(content.traces[index], &kept)
            unsafe contexts.append(
                Context(
                    fields: Self.keep(content.contexts[index], &kept), trace: Self.meant(trace)))
        }
        for format in Self.formats(content) {
            unsafe formats.append(
                Format(
                    line: format.line, file: Self.keep(Slice(format.file), &kept),
                    function: Self.keep(Slice(format.function), &kept), style: format.style,
                    format: Self.keep(Slice(format.format), &kept),
                    types: Self.keep(Slice(format.types), &kept)))
        }
    }

    /// None if they were not asked for. Valid as long as the content.
    static func formats(_ content: borrowing BlockContent) -> [Format] {
        let known = content.formats
        // Argument types are read wherever later columns need them.
        return (0..<known.place.line.count).map { index in
            unsafe Format(
                line: UInt32(truncatingIfNeeded: known.place.line[index]),
                file: known.place.file[index].bytes, function: known.place.function[index].bytes,
                style: UInt8(truncatingIfNeeded: known.style[index]),
                format: known.text[index].bytes, types: known.types[index].bytes)
        }
    }

    /// Of all that the content's dictionaries have copied.
    static func bytes(of content: borrowing BlockContent) -> Int {
        var sum = 0
        func add(_ column: Flat<Slice>) {
            for index in 0..<column.count { sum &+= column[index].count }
        }
        add(content.loggers)
        add(content.sites.file)
        add(content.sites.function)
        add(content.contexts)
        add(content.traces)
        add(content.formats.place.file)
        add(content.formats.place.function)
        add(content.formats.text)
        add(content.formats.types)
        return sum
    }

    private static func keep(
        _ bytes: Slice, _ kept: inout GrowingBytes
    ) -> UnsafeRawBufferPointer {
        let start = kept.count
        kept.append(bytes.bytes)
        return unsafe UnsafeRawBufferPointer(rebasing: kept.bytes[start...])
    }

    /// Sets what the sections of a record say of it. False: they name a site that is not there.
    @safe func apply(_ stored: UnsafeRawBufferPointer, to record: inout RecordRef) -> Bool {
        var walk = SectionWalk(stored)
        while let (kind, body, _) = walk.next() {
            switch kind {
            case SectionKind.site where body.count == 4:
                let index = body.word(0, UInt32.self)
                guard index < UInt32(sites.count) else { return false }
                // FORMAT §8.7: place and format are the site's.
                if record.isDeferred { continue }
                let site = sites[Int(index)]
                record.line = site.line
                record.file = site.file
                record.function = site.function
            case SectionKind.place where !record.isDeferred: applyPlace(body, to: &record)
            case SectionKind.trace where body.count == TraceLayout.bytes:
                record.trace = Self.meant(body)
            case SectionKind.time where body.count == 8:
                record.timeNs = body.word(0, UInt64.self)
            case SectionKind.originalLength where body.count == 8:
                record.originalLength = body.word(0, UInt64.self)
            default: break
            }
        }
        return true
    }

    @safe private func applyPlace(_ body: UnsafeRawBufferPointer, to record: inout RecordRef) {
        guard let place = PlaceSection(body) else { return }
        record.line = place.line
        record.file = unsafe place.file
        record.function = unsafe place.function
    }

    /// A trace of zeros means none.
    @safe static func meant(_ trace: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
        unsafe trace.contains { $0 != 0 } ? trace : Bytes.none
    }
}

/// The body of a section 4 (FORMAT §8.1); nil: it does not fit its bytes.
@safe struct PlaceSection {
    let line: UInt32
    let file: UnsafeRawBufferPointer
    let function: UnsafeRawBufferPointer

    @safe init?(_ body: UnsafeRawBufferPointer) {
        var cursor = ByteCursor(body)
        guard let line = cursor.word(UInt32.self), let fileSize = cursor.word(UInt16.self),
            let functionSize = cursor.word(UInt16.self), let file = cursor.bytes(UInt64(fileSize)),
            let function = cursor.bytes(UInt64(functionSize))
        else { return nil }
        self.line = line
        unsafe self.file = file
        unsafe self.function = function
    }
}

extension Slice {
    /// Repairs malformed UTF-8: for names that are only shown.
    fileprivate var text: String { unsafe String(decoding: bytes, as: UTF8.self) }
}
