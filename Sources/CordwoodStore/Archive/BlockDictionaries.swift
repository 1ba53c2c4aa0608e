// Streams 0 to 4 and 16 of an inflated block (FORMAT §11.4), to which the per-record streams refer.
// Counts are checked against the limits and the available bytes before anything is allocated.
// SAFETY: all views are slices of the payload's streams and stay valid as long as the loader keeps
// that block.

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
    /// By format.
    var shapes: [ArgumentShape] = []

    /// nil if a stream does not parse. The pointers stay valid as long as the block. For the
    /// beginning of a payload, the formats are missing.
    @safe init?(_ streams: [UnsafeRawBufferPointer]) {
        guard unsafe readProcesses(streams[0]), unsafe readThreads(streams[1]),
            unsafe readLoggers(streams[2]),
            unsafe readSites(streams[3]), unsafe readContexts(streams[4])
        else { return nil }
        if unsafe streams.count <= 16 { return }
        guard let formats = unsafe Self.formats(streams[16])
        else { return nil }
        self.formats = formats
        shapes = formats.map { ArgumentShape($0.types) }
    }

    /// Only the processes, from the beginning of a payload that has stream 0.
    @safe static func processes(_ payload: UnsafeRawBufferPointer) -> [ProcessInfo]? {
        var cursor = ByteCursor(payload)
        guard let count = cursor.word(UInt32.self), count >= 1,
            count <= UInt32(ArchiveLimits.streamsMax), let length = cursor.word(UInt32.self),
            unsafe cursor.bytes(UInt64(count - 1) * 4) != nil,
            let stream = cursor.bytes(UInt64(length))
        else { return nil }
        var found = BlockDictionaries()
        return found.readProcesses(stream) ? found.processes : nil
    }

    init() {}

    /// `least`: the minimum size of one entry.
    private static func count(_ cursor: inout ByteCursor, least: Int, max: Int) -> Int? {
        guard let count = cursor.varint(), count <= UInt64(max),
            Int(count) * least <= cursor.left
        else { return nil }
        return Int(count)
    }

    @safe private mutating func readProcesses(_ stream: UnsafeRawBufferPointer) -> Bool {
        var cursor = ByteCursor(stream)
        guard let count = Self.count(&cursor, least: 37, max: ArchiveLimits.processesMax) else {
            return false
        }
        var attributes = 0
        for _ in 0..<count {
            guard let lane = cursor.id(), let boot = cursor.id(),
                let processID = cursor.varint(), processID <= UInt64(UInt32.max),
                let realtime = cursor.varint(), let monotonic = cursor.varint(),
                let name = cursor.text(),
                let resources = Self.count(&cursor, least: 2, max: ArchiveLimits.dictionaryMax)
            else { return false }
            attributes += resources
            guard attributes <= ArchiveLimits.dictionaryMax else { return false }
            var resource: [(key: String, value: String)] = []
            resource.reserveCapacity(resources)
            for _ in 0..<resources {
                guard let key = cursor.text(), let value = cursor.text() else { return false }
                resource.append((key: key, value: value))
            }
            processes.append(
                ProcessInfo(
                    laneID: lane, bootID: boot, processID: UInt32(processID), name: name,
                    createdRealtime: realtime, createdMonotonic: monotonic, resource: resource))
        }
        return true
    }

    @safe private mutating func readThreads(_ stream: UnsafeRawBufferPointer) -> Bool {
        var cursor = ByteCursor(stream)
        guard let count = Self.count(&cursor, least: 4, max: ArchiveLimits.dictionaryMax) else {
            return false
        }
        threads.reserveCapacity(count)
        for _ in 0..<count {
            guard let process = cursor.varint(), process < UInt64(processes.count),
                let serial = cursor.varint(), serial <= UInt64(UInt32.max),
                let threadID = cursor.varint(), threadID <= UInt64(UInt32.max),
                let name = cursor.text()
            else { return false }
            threads.append(
                ThreadInfo(
                    process: processes[Int(process)], serial: UInt32(serial),
                    threadID: UInt32(threadID), name: name))
        }
        return true
    }

    @safe private mutating func readLoggers(_ stream: UnsafeRawBufferPointer) -> Bool {
        var cursor = ByteCursor(stream)
        guard let count = Self.count(&cursor, least: 1, max: ArchiveLimits.dictionaryMax) else {
            return false
        }
        unsafe loggers.reserveCapacity(count)
        for _ in 0..<count {
            guard let name = cursor.string() else { return false }
            unsafe loggers.append(name)
        }
        return true
    }

    @safe private mutating func readSites(_ stream: UnsafeRawBufferPointer) -> Bool {
        var cursor = ByteCursor(stream)
        guard let count = Self.count(&cursor, least: 3, max: ArchiveLimits.dictionaryMax) else {
            return false
        }
        sites.reserveCapacity(count)
        for _ in 0..<count {
            guard let line = cursor.varint(), line <= UInt64(UInt32.max),
                let file = cursor.string(), let function = cursor.string()
            else { return false }
            unsafe sites.append(Site(line: UInt32(line), file: file, function: function))
        }
        return true
    }

    /// From stream 16 alone; nil if it does not parse.
    @safe static func formats(_ stream: UnsafeRawBufferPointer) -> [Format]? {
        var cursor = ByteCursor(stream)
        guard let count = Self.count(&cursor, least: 6, max: ArchiveLimits.dictionaryMax) else {
            return nil
        }
        var formats: [Format] = []
        formats.reserveCapacity(count)
        for _ in 0..<count {
            guard let line = cursor.varint(), line <= UInt64(UInt32.max),
                let file = cursor.string(), let function = cursor.string(),
                let style = cursor.byte(), let format = cursor.string(),
                let types = cursor.string()
            else { return nil }
            unsafe formats.append(
                Format(
                    line: UInt32(line), file: file, function: function, style: style,
                    format: format, types: types))
        }
        return formats
    }

    @safe private mutating func readContexts(_ stream: UnsafeRawBufferPointer) -> Bool {
        var cursor = ByteCursor(stream)
        let least = 1 + TraceLayout.bytes
        guard let count = Self.count(&cursor, least: least, max: ArchiveLimits.dictionaryMax) else {
            return false
        }
        contexts.reserveCapacity(count)
        for _ in 0..<count {
            guard let fields = cursor.string(), let trace = cursor.bytes(UInt64(TraceLayout.bytes))
            else { return false }
            unsafe contexts.append(Context(fields: fields, trace: Self.meant(trace)))
        }
        return true
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

/// The size of a format's arguments (FORMAT §8.7).
@safe struct ArgumentShape {
    /// Bytes before the only string, after its length, and of one of its units. Unit 0: there is no
    /// string; -1: the types decide.
    private var before = 0
    private var after = 0
    private var unit = 0
    @safe private let types: UnsafeRawBufferPointer

    @safe init(_ types: UnsafeRawBufferPointer) {
        unsafe self.types = types
        for index in 0..<types.count {
            let type = Bytes.u8(types, index)
            let bytes = ArgumentType.fixedBytes(type)
            let isText = type == ArgumentType.text || type == ArgumentType.wide
            if bytes == 0 || isText && unit != 0 {
                unit = -1
                return
            }
            if isText {
                unit = type == ArgumentType.wide ? 4 : 1
            } else if unit == 0 {
                before &+= bytes
            } else {
                after &+= bytes
            }
        }
    }

    /// The size of the arguments that begin here; nil: they do not fit.
    @safe @inline(__always)
    func size(_ bytes: UnsafeRawBufferPointer) -> Int? {
        if unit == 0 { return before <= bytes.count ? before : nil }
        if unit < 0 { return DeferredText.size(types, bytes) }
        let word = Bytes.u32(bytes, before)
        var size = before &+ 4 &+ after
        if word != LengthWord.null { size &+= Int(word & ~LengthWord.cut) &* unit }
        return size <= bytes.count ? size : nil
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
