// Iterates over the records of one inflated payload (FORMAT §11.4). The payload's checksum matched,
// yet its content is checked as if it had not: nil means damage, and ends the block.

import CordwoodCore

struct BlockRecords {
    enum NextRecord {
        case record(RecordRef)
        case end
        case damaged
    }

    let dictionaries: BlockDictionaries
    private(set) var left: UInt32
    private var expected: [UInt64]
    private var thread: ByteCursor
    private var time: ByteCursor
    private var offset: ByteCursor
    private var sequence: ByteCursor
    private var level: ByteCursor
    private var kind: ByteCursor
    private var logger: ByteCursor
    private var context: ByteCursor
    private var length: ByteCursor
    private var sectionLength: ByteCursor
    private var sections: ByteCursor
    private var messages: ByteCursor
    private var format: ByteCursor
    private var arguments: ByteCursor
    private var lastTime: UInt64 = 0
    private var lastOffset: UInt64 = 0

    /// SAFETY: `payload` must stay valid as long as this value and its records are used.
    @safe init?(_ payload: UnsafeRawBufferPointer, recordCount: UInt32) {
        guard let streams = Self.streams(payload),
            unsafe streams[9].count == Int(recordCount),
            unsafe streams[10].count == Int(recordCount),
            let dictionaries = BlockDictionaries(streams)
        else { return nil }
        self.dictionaries = dictionaries
        left = recordCount
        expected = Array(repeating: 0, count: dictionaries.threads.count)
        thread = unsafe ByteCursor(streams[5])
        time = unsafe ByteCursor(streams[6])
        offset = unsafe ByteCursor(streams[7])
        sequence = unsafe ByteCursor(streams[8])
        level = unsafe ByteCursor(streams[9])
        kind = unsafe ByteCursor(streams[10])
        logger = unsafe ByteCursor(streams[11])
        context = unsafe ByteCursor(streams[12])
        length = unsafe ByteCursor(streams[13])
        sectionLength = unsafe ByteCursor(streams[14])
        sections = unsafe ByteCursor(streams[15])
        messages = unsafe ByteCursor(streams[19])
        format = unsafe ByteCursor(streams[17])
        arguments = unsafe ByteCursor(streams[18])
    }

    /// The known streams; others are skipped.
    @safe private static func streams(_ payload: UnsafeRawBufferPointer)
        -> [UnsafeRawBufferPointer]?
    {
        var cursor = ByteCursor(payload)
        guard let count = cursor.word(UInt32.self), count >= UInt32(ArchiveLimits.streams),
            count <= UInt32(ArchiveLimits.streamsMax),
            var lengths = unsafe cursor.bytes(UInt64(count) * 4).map(ByteCursor.init)
        else { return nil }
        var found: [UnsafeRawBufferPointer] = unsafe []
        while let length = lengths.word(UInt32.self) {
            guard let stream = cursor.bytes(UInt64(length)) else { return nil }
            if unsafe found.count < ArchiveLimits.streams { unsafe found.append(stream) }
        }
        return unsafe cursor.left == 0 ? found : nil
    }

    /// True if the per-record streams are used up.
    var isSpent: Bool {
        thread.left | time.left | offset.left | sequence.left | level.left | kind.left | logger.left
            | context.left | length.left | sectionLength.left | sections.left | messages.left
            | format.left | arguments.left == 0
    }

    mutating func next() -> NextRecord {
        guard left > 0 else { return isSpent ? .end : .damaged }
        guard let record = decode() else {
            left = 0
            return .damaged
        }
        left -= 1
        return .record(record)
    }

    private mutating func decode() -> RecordRef? {
        guard let who = thread.varint(), who < UInt64(expected.count),
            let timeStep = time.zigzag(), let offsetStep = offset.zigzag(),
            let sequenceStep = sequence.zigzag(), let level = level.byte(), let bits = kind.byte(),
            let name = logger.varint(), unsafe name < UInt64(dictionaries.loggers.count),
            let context = context.varint(), context <= UInt64(dictionaries.contexts.count)
        else { return nil }
        var record = RecordRef(thread: dictionaries.threads[Int(who)])
        lastTime &+= timeStep
        lastOffset &+= offsetStep
        record.monotonicNs = lastTime
        record.writtenNs = lastTime &+ lastOffset
        record.timeNs = record.writtenNs
        record.sequence = expected[Int(who)] &+ sequenceStep
        expected[Int(who)] = record.sequence &+ 1
        record.level = level <= 24 ? level : 0
        record.kind = bits & BlockKind.mask
        if bits & BlockKind.truncated != 0 { record.flags.insert(.truncated) }
        if bits & BlockKind.unverified != 0 { record.flags.insert(.unverified) }
        record.logger = unsafe dictionaries.loggers[Int(name)]
        if bits & BlockKind.deferred != 0 {
            guard takeArguments(&record) else { return nil }
        } else {
            guard let size = length.varint(), let message = messages.bytes(size),
                messages.byte() != nil
            else { return nil }
            record.message = unsafe message
            record.originalLength = UInt64(message.count)
        }
        if context > 0 {
            let found = dictionaries.contexts[Int(context) - 1]
            record.context = found.fields
            record.trace = found.trace
        }
        if bits & BlockKind.hasSections != 0 {
            guard let size = sectionLength.varint(), let found = sections.bytes(size) else {
                return nil
            }
            record.sections = unsafe found
            guard apply(found, to: &record) else { return nil }
        }
        return record
    }

    private mutating func takeArguments(_ record: inout RecordRef) -> Bool {
        guard let index = format.varint(), index < UInt64(dictionaries.formats.count) else {
            return false
        }
        let found = dictionaries.formats[Int(index)]
        guard let size = DeferredText.size(found.types, unsafe arguments.rest),
            let bytes = arguments.bytes(UInt64(size))
        else { return false }
        record.isDeferred = true
        record.line = found.line
        record.file = found.file
        record.function = found.function
        record.style = found.style
        record.format = found.format
        record.argumentTypes = found.types
        record.arguments = unsafe bytes
        return true
    }

    @safe private func apply(_ stored: UnsafeRawBufferPointer, to record: inout RecordRef) -> Bool {
        var walk = SectionWalk(stored)
        while let (kind, body, _) = walk.next() {
            switch kind {
            case SectionKind.site where body.count == 4:
                let index = body.word(0, UInt32.self)
                guard index < UInt32(dictionaries.sites.count) else { return false }
                let site = dictionaries.sites[Int(index)]
                record.line = site.line
                record.file = site.file
                record.function = site.function
            case SectionKind.place: applyPlace(body, to: &record)
            case SectionKind.trace where body.count == TraceLayout.bytes:
                record.trace = BlockDictionaries.meant(body)
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
        var cursor = ByteCursor(body)
        guard let line = cursor.word(UInt32.self), let fileSize = cursor.word(UInt16.self),
            let functionSize = cursor.word(UInt16.self), let file = cursor.bytes(UInt64(fileSize)),
            let function = cursor.bytes(UInt64(functionSize))
        else { return }
        record.line = line
        record.file = unsafe file
        record.function = unsafe function
    }
}
