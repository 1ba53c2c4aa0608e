// Iterates over the records of one inflated payload (FORMAT §11.4). The payload's checksum matched,
// but its content is checked as if it had not: nil means damage, and ends the block.

import CordwoodCore
import Synchronization

/// Unique numbers for the names in blocks' dictionaries. Any thread.
enum BlockNumbers {
    private static let taken = Atomic<UInt64>(0)

    /// The first of `count` numbers that are used nowhere else.
    static func take(_ count: UInt64) -> UInt64 {
        // ORDER: relaxed. All that matters is that no number is given twice (A42).
        taken.wrappingAdd(count, ordering: .relaxed).oldValue &+ 1
    }
}

struct BlockRecords {
    enum Step {
        case record
        case end
        case damaged
    }

    let dictionaries: BlockDictionaries
    /// That of the first thread with the first logger; threads are one count of loggers apart.
    private let firstNames: UInt64
    private let firstFormat: UInt64
    private let loggerCount: UInt64
    var left: UInt32
    let recordCount: Int
    var expected: [UInt64]
    var thread: ByteCursor
    var time: ByteCursor
    var offset: ByteCursor
    var sequence: ByteCursor
    var level: ByteCursor
    var kind: ByteCursor
    var logger: ByteCursor
    var context: ByteCursor
    var length: ByteCursor
    var sectionLength: ByteCursor
    var sections: ByteCursor
    var messages: ByteCursor
    var format: ByteCursor
    var arguments: ByteCursor
    /// The format of the current record, if it is deferred.
    private(set) var formatIndex = 0
    /// Results of `pass`: this many of the next rows are unwanted, and the row after them is
    /// wanted, or not checked yet.
    var scan: RowScan?
    var unwanted: UInt32 = 0
    var isAheadWanted = false
    /// `next` reports it.
    var isDamaged = false
    var lastTime: UInt64 = 0
    var lastOffset: UInt64 = 0

    /// SAFETY: `payload` must stay valid as long as this value and its records are used.
    @safe init?(_ payload: UnsafeRawBufferPointer, recordCount: UInt32) {
        guard let streams = Self.streams(payload),
            unsafe streams[9].count == Int(recordCount),
            unsafe streams[10].count == Int(recordCount),
            let dictionaries = BlockDictionaries(streams)
        else { return nil }
        self.dictionaries = dictionaries
        loggerCount = unsafe UInt64(dictionaries.loggers.count)
        firstNames = BlockNumbers.take(UInt64(dictionaries.threads.count) &* loggerCount)
        firstFormat = BlockNumbers.take(UInt64(dictionaries.formats.count))
        left = recordCount
        self.recordCount = Int(recordCount)
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

    /// The known streams; others are skipped. `through`: the streams up to that one, of a payload
    /// that may end after it.
    @safe static func streams(
        _ payload: UnsafeRawBufferPointer, through last: Int = .max
    ) -> [UnsafeRawBufferPointer]? {
        var cursor = ByteCursor(payload)
        guard let count = cursor.word(UInt32.self), count >= UInt32(ArchiveLimits.streams),
            count <= UInt32(ArchiveLimits.streamsMax),
            var lengths = unsafe cursor.bytes(UInt64(count) * 4).map(ByteCursor.init)
        else { return nil }
        var found: [UnsafeRawBufferPointer] = unsafe []
        while let length = lengths.word(UInt32.self) {
            guard let stream = cursor.bytes(UInt64(length)) else { return nil }
            if unsafe found.count < ArchiveLimits.streams { unsafe found.append(stream) }
            if unsafe found.count > last { return unsafe found }
        }
        return unsafe cursor.left == 0 ? found : nil
    }

    /// The end of the stream in the payload that begins with these bytes; nil: more bytes are
    /// needed.
    @safe static func end(ofStream last: Int, _ payload: UnsafeRawBufferPointer) -> Int? {
        let count = Int(payload.word(0, UInt32.self))
        guard last < count, payload.count >= 4 &+ (last &+ 1) &* 4 else { return nil }
        var end = 4 &+ count &* 4
        for stream in 0...last { end &+= Int(payload.word(4 &+ stream &* 4, UInt32.self)) }
        return end
    }

    /// True if the per-record streams are used up.
    var isSpent: Bool {
        thread.left | time.left | offset.left | sequence.left | level.left | kind.left | logger.left
            | context.left | length.left | sectionLength.left | sections.left | messages.left
            | format.left | arguments.left == 0
    }

    /// True if the next record is in this block and not older. If all belong to one process, the
    /// current one then does not affect the order of later ones.
    var isFollowedInOrder: Bool {
        var peeked = time
        guard left > 0, let step = peeked.zigzag() else { return false }
        return Int64(bitPattern: step) >= 0
    }

    /// Whether texts of each format, and plain messages, may contain the bytes; and what strings
    /// must contain for that, numbers aside. Call before `next`.
    func odds(
        _ wanted: TextSearch
    ) -> (formats: [TextSearch.Odds], pieces: [TextSearch], plain: Bool) {
        let all = unsafe arguments.rest
        // Pieces that occur, and pieces that do not.
        var (found, missing): ([TextSearch], [TextSearch]) = ([], [])
        let formats = dictionaries.formats.map { format in
            let odds = wanted.odds(of: format.format, style: format.style, types: format.types)
            guard case .with(let pieces, let numbers) = odds else { return odds }
            for piece in pieces where !found.contains(piece) && !missing.contains(piece) {
                if piece.isIn(all) { found.append(piece) } else { missing.append(piece) }
            }
            let isPossible = !numbers.isEmpty || pieces.contains { found.contains($0) }
            return isPossible ? odds : .never
        }
        return unsafe (formats, found, wanted.isIn(messages.rest))
    }

    /// Whether fields of a record may show what is searched for. Call before `next`.
    func mayHaveInFields(_ search: FieldSearch) -> Bool {
        let stored = unsafe dictionaries.contexts.map(\.fields) + [sections.rest]
        guard unsafe stored.contains(where: { search.hasLast($0) }) else { return false }
        guard let longest = search.anywhere, unsafe !stored.contains(where: { longest.isIn($0) })
        else { return true }
        let (formats, _, plain) = odds(longest)
        return plain || formats.contains { $0.isPossible }
    }

    /// The monotonic time of the next record. nil: the block has ended or is damaged, as `next`
    /// reports.
    var nextTime: UInt64? {
        var peeked = time
        guard left > 0, !isDamaged, let step = peeked.zigzag() else { return nil }
        return lastTime &+ step
    }

    /// The monotonic time of the last record if no record is older than the one before it.
    var lastInOrder: UInt64? {
        unsafe BlockTimes.inOrder(time.rest, left)?.last
    }

    mutating func next(into record: inout RecordRef) -> Step {
        guard left > 0 else { return isSpent ? .end : .damaged }
        guard !isDamaged, decode(into: &record) else {
            left = 0
            return .damaged
        }
        left &-= 1
        if unwanted > 0 { unwanted &-= 1 } else { isAheadWanted = false }
        return .record
    }

    /// Reads the next record. False: it is after one of these times, or the block has ended or is
    /// damaged, as `next` reports.
    @inline(__always)
    mutating func next(
        into record: inout RecordRef, through lastMonotonic: UInt64, offset: UInt64,
        _ lastOrdering: UInt64
    ) -> Bool {
        var peeked = time
        guard left > 0, !isDamaged, let step = peeked.zigzag() else { return false }
        let next = lastTime &+ step
        guard next <= lastMonotonic, next &+ offset <= lastOrdering else { return false }
        isDamaged = !decode(into: &record)
        if isDamaged { return false }
        left &-= 1
        return true
    }

    /// The messages of the next rows, which are then passed. These rows are plain program records
    /// without sections; none is older than the one before it or after these times. nil: there is
    /// no such row, or the caller must ask for records, which report damage.
    mutating func takeTexts(
        through lastMonotonic: UInt64, offset: UInt64, _ lastOrdering: UInt64
    ) -> RunTexts? {
        var next = self
        let rows = isDamaged ? 0 : next.walkTexts(lastMonotonic, offset, lastOrdering)
        // Rows with longer name and thread indexes are read one by one.
        guard rows > 0, next.level.skip(UInt64(rows)),
            Self.isOctets(thread, rows, below: min(expected.count, 128)),
            unsafe Self.isOctets(logger, rows, below: min(dictionaries.loggers.count, 128)),
            Self.isOctets(context, rows, below: min(dictionaries.contexts.count &+ 1, 128))
        else { return nil }
        let isLast = rows == Int(left)
        for _ in 0..<rows {
            guard let who = next.thread.byte(), let step = next.sequence.zigzag() else {
                return nil
            }
            if !isLast { next.expected[Int(who)] &+= step &+ 1 }
        }
        _ = next.logger.skip(UInt64(rows))
        _ = next.context.skip(UInt64(rows))
        next.left &-= UInt32(rows)
        guard next.left > 0 || next.isSpent else { return nil }
        let size = messages.left &- next.messages.left
        let found = unsafe UnsafeRawBufferPointer(start: messages.rest.baseAddress, count: size)
        self = next
        return unsafe RunTexts(bytes: found, count: rows)
    }

    /// Steps over the times, kinds and messages of those rows; returns their number.
    private mutating func walkTexts(
        _ lastMonotonic: UInt64, _ offset: UInt64, _ lastOrdering: UInt64
    ) -> Int {
        var (times, offsets, kinds, lengths, texts) = (time, self.offset, kind, length, messages)
        // After the last of these rows.
        var ends = (times, offsets, kinds, lengths, texts)
        var (latest, toUTC, rows) = (lastTime, lastOffset, 0)
        while rows < Int(left) {
            guard let step = times.zigzag(), let offsetStep = offsets.zigzag(), kinds.byte() == 0,
                let size = lengths.varint(), texts.skip(size), texts.byte() == 0x0A
            else { break }
            let now = latest &+ step
            guard now >= latest, now <= lastMonotonic, now &+ offset <= lastOrdering else { break }
            (latest, toUTC, rows) = (now, toUTC &+ offsetStep, rows &+ 1)
            ends = (times, offsets, kinds, lengths, texts)
        }
        (time, self.offset, kind, length, messages) = ends
        (lastTime, lastOffset) = (latest, toUTC)
        return rows
    }

    /// Whether the next rows have one byte each in that column, all below `end`.
    private static func isOctets(_ column: ByteCursor, _ rows: Int, below end: Int) -> Bool {
        let bytes = unsafe column.rest
        guard bytes.count >= rows else { return false }
        var most: UInt8 = 0
        for index in 0..<rows { unsafe most = max(most, bytes[index]) }
        return Int(most) < end
    }

    private mutating func decode(into record: inout RecordRef) -> Bool {
        guard let who = thread.varint(), who < UInt64(expected.count),
            let timeStep = time.zigzag(), let offsetStep = offset.zigzag(),
            let sequenceStep = sequence.zigzag(), let level = level.byte(), let bits = kind.byte(),
            let name = logger.varint(), unsafe name < UInt64(dictionaries.loggers.count),
            let context = context.varint(), context <= UInt64(dictionaries.contexts.count)
        else { return false }
        record.begin(dictionaries.threads[Int(who)])
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
        record.namesNumber = firstNames &+ who &* loggerCount &+ name
        if bits & BlockKind.deferred != 0 {
            guard takeArguments(&record) else { return false }
        } else {
            guard let size = length.varint(), let message = messages.bytes(size),
                messages.byte() != nil
            else { return false }
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
                return false
            }
            record.sections = unsafe found
            guard dictionaries.apply(found, to: &record) else { return false }
        }
        return true
    }

    private mutating func takeArguments(_ record: inout RecordRef) -> Bool {
        guard let index = format.varint(), index < UInt64(dictionaries.formats.count) else {
            return false
        }
        formatIndex = Int(index)
        record.formatNumber = firstFormat &+ index
        let found = dictionaries.formats[formatIndex]
        guard let size = dictionaries.shapes[formatIndex].size(unsafe arguments.rest),
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
}
