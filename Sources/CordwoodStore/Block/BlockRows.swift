// The records of a block that was read whole (docs/BLOCK.md), one after another.
// SAFETY: lends the memory of the decoder and of this value, until either moves on.

import CordwoodCore

struct BlockRows: ~Copyable {
    private let content: BlockContent
    private let dictionaries: BlockDictionaries
    private var arguments = GrowingBytes()
    private var sections = GrowingBytes()
    private var row = 0
    private var deferred = 0
    private var sectioned = 0
    private var plain = 0
    private var argumentsAt = 0
    private var sectionsAt = 0
    /// Of each thread's next record.
    private var expected: [UInt64]

    /// All columns of the rows were read, from the first row on. `size`: the block's.
    init(_ content: BlockContent, size: Int) throws(DenseProblem) {
        self.content = content
        dictionaries = BlockDictionaries(content)
        expected = Array(repeating: 0, count: dictionaries.threads.count)
        try content.arguments.write(content.format, atMost: size, into: &arguments)
        try content.sections.write(
            content.kind, content.time, content.offset, atMost: size, into: &sections)
        if arguments.failed || sections.failed { throw .memory }
    }

    /// False: the end.
    mutating func next(_ record: inout RecordRef) throws(DenseProblem) -> Bool {
        guard row < content.rows else { return false }
        let bits = UInt8(truncatingIfNeeded: content.kind[row])
        let who = Int(content.thread[row])
        record.begin(dictionaries.threads[who])
        record.monotonicNs = content.time[row]
        record.writtenNs = content.time[row] &+ content.offset[row]
        record.timeNs = record.writtenNs
        record.sequence = expected[who] &+ content.sequence[row]
        expected[who] = record.sequence &+ 1
        let level = UInt8(truncatingIfNeeded: content.level[row])
        record.level = level <= 24 ? level : 0
        record.kind = bits & BlockKind.mask
        if bits & BlockKind.truncated != 0 { record.flags.insert(.truncated) }
        if bits & BlockKind.unverified != 0 { record.flags.insert(.unverified) }
        record.logger = unsafe dictionaries.loggers[Int(content.logger[row])]
        if bits & BlockKind.deferred != 0 {
            try takeArguments(&record)
        } else {
            record.message = content.messages[plain].bytes
            record.originalLength = UInt64(record.message.count)
            plain += 1
        }
        let context = Int(content.context[row])
        if context > 0 {
            record.context = dictionaries.contexts[context - 1].fields
            record.trace = dictionaries.contexts[context - 1].trace
        }
        if bits & BlockKind.hasSections != 0 {
            let size = content.sections.bytes(of: sectioned)
            record.sections = unsafe Slice(sections.bytes).part(sectionsAt, size).bytes
            sectionsAt += size
            sectioned += 1
            guard dictionaries.apply(record.sections, to: &record) else { throw .damaged }
        }
        row += 1
        return true
    }

    private mutating func takeArguments(_ record: inout RecordRef) throws(DenseProblem) {
        let index = Int(content.format[deferred])
        let found = dictionaries.formats[index]
        let rest = unsafe Slice(arguments.bytes).part(argumentsAt, .max)
        guard let size = dictionaries.shapes[index].size(rest.bytes) else { throw .damaged }
        record.isDeferred = true
        record.line = found.line
        record.file = found.file
        record.function = found.function
        record.style = found.style
        record.format = found.format
        record.argumentTypes = found.types
        record.arguments = rest.part(0, size).bytes
        argumentsAt += size
        deferred += 1
    }
}

extension BlockDictionaries {
    /// Valid as long as the content.
    init(_ content: BlockContent) {
        self.init()
        var attribute = 0
        let known = content.processes
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
        for index in 0..<content.threads.name.count {
            threads.append(
                ThreadInfo(
                    process: processes[Int(content.threads.process[index])],
                    serial: UInt32(truncatingIfNeeded: content.threads.serial[index]),
                    threadID: UInt32(truncatingIfNeeded: content.threads.threadID[index]),
                    name: content.threads.name[index].text))
        }
        for index in 0..<content.loggers.count {
            unsafe loggers.append(content.loggers[index].bytes)
        }
        for index in 0..<content.sites.line.count {
            unsafe sites.append(
                Site(
                    line: UInt32(truncatingIfNeeded: content.sites.line[index]),
                    file: content.sites.file[index].bytes,
                    function: content.sites.function[index].bytes))
        }
        for index in 0..<content.contexts.count {
            unsafe contexts.append(
                Context(
                    fields: content.contexts[index].bytes,
                    trace: Self.meant(content.traces[index].bytes)))
        }
        let formats = content.formats
        for index in 0..<formats.types.count {
            unsafe self.formats.append(
                Format(
                    line: UInt32(truncatingIfNeeded: formats.place.line[index]),
                    file: formats.place.file[index].bytes,
                    function: formats.place.function[index].bytes,
                    style: UInt8(truncatingIfNeeded: formats.style[index]),
                    format: formats.text[index].bytes, types: formats.types[index].bytes))
        }
        shapes = self.formats.map { ArgumentShape($0.types) }
    }
}

extension Slice {
    /// Repairs malformed UTF-8: for names that are only shown.
    fileprivate var text: String { unsafe String(decoding: bytes, as: UTF8.self) }
}
