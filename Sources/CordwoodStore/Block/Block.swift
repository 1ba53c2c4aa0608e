// The records of one block: rows of numbers, bytes, and dictionaries. All memory is reused for the
// next block; a record costs a few appends and no allocation. One writer owns it; one thread.
// Records are `inout` parameters although nothing changes them: borrowing one would copy it.
// SAFETY: a record's views stay valid during `add`, which copies what it keeps; views of the
// rows and bytes are used only while none grows.

import CordwoodCore

/// The statistics of a block that its header and the footer record.
struct BlockSummary {
    var recordCount: UInt32 = 0
    var timeMin = UInt64.max
    var timeMax: UInt64 = 0
    var writtenMin = UInt64.max
    var writtenMax: UInt64 = 0
    var levels: UInt32 = 0
    var kinds: UInt32 = 0

    @inline(__always)
    mutating func count(_ record: borrowing RecordRef) {
        count(record, at: record.timeNs, written: record.writtenNs)
    }

    /// `timeNs`: the time shown. `writtenNs`: when it was written.
    @inline(__always)
    mutating func count(
        _ record: borrowing RecordRef, at timeNs: UInt64, written writtenNs: UInt64
    ) {
        recordCount &+= 1
        timeMin = min(timeMin, timeNs)
        timeMax = max(timeMax, timeNs)
        writtenMin = min(writtenMin, writtenNs)
        writtenMax = max(writtenMax, writtenNs)
        levels |= LevelSet.bit(record.level)
        kinds |= 1 &<< UInt32(BlockKind.stored(record.kind))
    }
}

/// Looks at each record of an archive.
protocol RecordNoter: ~Copyable {
    mutating func note(_ record: inout RecordRef)
}

struct Block: ~Copyable {
    private(set) var summary = BlockSummary()
    private(set) var people = PeopleColumns()
    private(set) var loggers: ByteTable
    var sites: ByteTable
    private(set) var formats: ByteTable
    /// Argument types of all formats.
    private var argumentColumns = 0
    /// Each is a column of up to 8 leaves, of which a block has 65,536.
    private static let argumentColumnsMost = 4_096
    private struct RecentFormat {
        var process: ObjectIdentifier
        var place: UInt32
        var index: Int
    }
    /// A cache of the format index last found for each of this block's places.
    private var recent = [RecentFormat?](repeating: nil, count: 256)
    var contexts: ByteTable

    private(set) var rows = BlockRows()
    /// Of deferred records (FORMAT §8.7).
    private(set) var arguments = GrowingBytes()
    /// FORMAT §8.1.
    var sections = GrowingBytes()
    /// Of all that are not deferred. Each ends with a newline.
    private(set) var messages = GrowingBytes()
    /// Sections as they are read back.
    var readBack = GrowingBytes()
    var scratch = GrowingBytes()
    var sectionBytesOfRecord = 0

    private let target: Int
    private let timeStepNs: UInt64

    /// `target`: a block is closed when it reaches this size. `timeStepNs`: times are rounded down
    /// to a multiple of it.
    init(seed: UInt64, target: Int, timeStepNs: UInt64 = 1) {
        self.target = target
        self.timeStepNs = max(timeStepNs, 1)
        loggers = ByteTable(seed: seed)
        sites = ByteTable(seed: seed)
        formats = ByteTable(seed: seed)
        contexts = ByteTable(seed: seed)
        _ = messages.reserve(target + 65_536)
    }

    var isEmpty: Bool { summary.recordCount == 0 }

    // `mutating` although they change nothing: reading a borrowed builder would copy it.
    @inline(__always)
    private mutating func size() -> Int {
        messages.count &+ arguments.count &+ sections.count &+ loggers.size &+ sites.size
            &+ formats.size &+ contexts.size &+ people.size &+ Int(summary.recordCount)
            &* ArchiveLimits.recordCost
    }

    /// What it holds, by which it is closed.
    var bytes: Int { mutating get { size() } }

    /// True when it is time to close the block.
    mutating func isFull() -> Bool {
        size() >= target || people.full
            || loggers.count >= BlockLimits.dictionaryMax
            || sites.count >= BlockLimits.dictionaryMax
            || formats.count >= BlockLimits.dictionaryMax
            || argumentColumns >= Self.argumentColumnsMost
            || contexts.count >= BlockLimits.dictionaryMax
    }

    enum Filled {
        case full
        /// The block must be closed before this record, which stays valid until the source moves
        /// on.
        case noRoom(RecordRef)
        case end
    }

    /// Takes records until the block is full. The loop is inside the builder because calls from
    /// outside, one per record, would move the whole builder out and back in each time.
    /// `other` also sees each record that is taken.
    mutating func fill(
        from source: any RecordSource, _ other: inout some RecordNoter & ~Copyable
    ) throws(ReadProblem) -> Filled {
        var record = RecordRef()
        while try source.next(&record) {
            let wanted =
                record.message.count &+ record.arguments.count &+ record.sections.count
                &+ record.context.count
            if !hasRoom(for: wanted) { return .noRoom(record) }
            add(&record)
            other.note(&record)
            if isFull() { return .full }
        }
        return .end
    }

    /// False if the block must be closed first: a record of this size is large and would share the
    /// block.
    @inline(__always)
    private mutating func hasRoom(for wanted: Int) -> Bool {
        wanted <= target || isEmpty || size() &+ wanted <= 2 &* target
    }

    var failed: Bool {
        people.failed || loggers.failed || sites.failed || formats.failed || contexts.failed
            || rows.failed || arguments.failed || sections.failed || messages.failed
            || scratch.failed
    }

    mutating func add(_ record: inout RecordRef) {
        let who = people.index(record.thread)
        let late = timeStepNs == 1 ? 0 : record.monotonicNs % timeStepNs
        let name =
            unsafe record.logger.count <= ArchiveLimits.stringMax
            ? record.logger
            : UnsafeRawBufferPointer(rebasing: record.logger.prefix(ArchiveLimits.stringMax))
        let logger = loggers.index(name)
        let plain =
            unsafe record.sections.isEmpty && record.context.isEmpty && record.trace.isEmpty
            && (record.isDeferred
                || record.line == 0 && record.file.isEmpty && record.function.isEmpty)
        let whole = record.message.count <= ArchiveLimits.messageMax
        let message =
            unsafe whole
            ? record.message
            : UnsafeRawBufferPointer(rebasing: record.message.prefix(ArchiveLimits.messageMax))
        var cut = !whole
        var context = 0
        sectionBytesOfRecord = 0
        if !plain || cut || !record.flags.isEmpty || record.timeNs != record.writtenNs
            || record.originalLength > UInt64(message.count)
        {
            context = contextNumber(&record)
            cut = appendSections(&record, cut: cut, budget: ArchiveLimits.sectionsMax)
        }
        var text = message.count
        if record.isDeferred {
            let keeps = Block.keepsArguments(&record)
            text = formatIndex(&record, keeps)
            if keeps { arguments.append(record.arguments) }
        } else {
            messages.append(message)
            messages.append(0x0a)
        }
        rows.append(
            BlockRow(
                time: record.monotonicNs &- late, offset: record.writtenNs &- record.monotonicNs,
                sequence: people.sequenceStep(thread: who, sequence: record.sequence),
                context: UInt32(truncatingIfNeeded: context),
                sections: UInt32(truncatingIfNeeded: sectionBytesOfRecord),
                text: UInt32(truncatingIfNeeded: text),
                thread: UInt16(truncatingIfNeeded: who),
                logger: UInt16(truncatingIfNeeded: logger), kind: kind(&record, cut: cut),
                level: record.level))
        let isOwn = late != 0 && Block.hasOwnTime(record)
        summary.count(
            record, at: isOwn ? record.timeNs : record.timeNs &- late,
            written: record.writtenNs &- late)
    }

    /// An event's own time is not rounded.
    private static func hasOwnTime(_ record: borrowing RecordRef) -> Bool {
        if record.timeNs != record.writtenNs { return true }
        var walk = SectionWalk(record.sections)
        while let (kind, body, _) = walk.next() {
            if kind == SectionKind.time { return body.count == 8 }
        }
        return false
    }

    /// False: they do not parse, or are larger than anything our writers store (CW_STRING_MAX).
    /// Only the format is kept.
    private static func keepsArguments(_ record: inout RecordRef) -> Bool {
        unsafe record.arguments.count <= ArchiveLimits.messageMax
            && (!record.arguments.isEmpty || record.argumentTypes.isEmpty)
    }

    /// Index of the record's format.
    private mutating func formatIndex(_ record: inout RecordRef, _ keepsArguments: Bool) -> Int {
        guard record.placeNumber > 0, keepsArguments else {
            return formatSaid(&record, keepsArguments)
        }
        // `people` holds the process as long as the block, so no other object takes over its
        // identity.
        let process = ObjectIdentifier(record.thread.process)
        let slot = Int(record.placeNumber & 255)
        if let known = recent[slot], known.place == record.placeNumber, known.process == process {
            return known.index
        }
        let index = formatSaid(&record, true)
        recent[slot] = RecentFormat(process: process, place: record.placeNumber, index: index)
        return index
    }

    private mutating func formatSaid(_ record: inout RecordRef, _ keepsArguments: Bool) -> Int {
        putPlace(&record)
        scratch.append(keepsArguments ? record.style : 1)
        scratch.append(string: record.format, max: ArchiveLimits.stringMax)
        scratch.append(string: keepsArguments ? record.argumentTypes : Bytes.none, max: 255)
        let known = formats.count
        let index = unsafe formats.index(scratch.bytes)
        if formats.count > known { argumentColumns &+= min(record.argumentTypes.count, 255) }
        return index
    }

    @inline(__always)
    private func kind(_ record: inout RecordRef, cut: Bool) -> UInt8 {
        var bits = BlockKind.stored(record.kind)
        if cut || record.flags.contains(.truncated) { bits |= BlockKind.truncated }
        if record.flags.contains(.unverified) { bits |= BlockKind.unverified }
        if record.isDeferred { bits |= BlockKind.deferred }
        if sectionBytesOfRecord > 0 { bits |= BlockKind.hasSections }
        return bits
    }

    mutating func removeAll() {
        summary = BlockSummary()
        people.removeAll()
        loggers.removeAll()
        sites.removeAll()
        formats.removeAll()
        argumentColumns = 0
        for slot in recent.indices { recent[slot] = nil }
        contexts.removeAll()
        rows.removeAll()
        arguments.removeAll()
        sections.removeAll()
        messages.removeAll()
    }
}

/// FORMAT §11.2: bit (level − 1). Bit 31 means records without a level or with one that has no bit,
/// so a level filter must never skip a block that has it.
enum LevelSet {
    static func bit(_ level: UInt8) -> UInt32 {
        level >= 1 && level <= 31 ? 1 &<< UInt32(level - 1) : 1 &<< 31
    }

    /// All bits that a filter for `level` and above accepts.
    static func atLeast(_ level: UInt8) -> UInt32 {
        level <= 1 ? .max : (level > 31 ? 1 &<< 31 : UInt32.max &<< UInt32(level - 1))
    }
}
