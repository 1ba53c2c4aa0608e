// The records of a block that was read, one after another. Rows that do not fit its dictionaries
// mean damage, which ends the block. Owned by one reader.
// SAFETY: lends the memory of the view and of its names; the owner keeps the buffer as long as this
// value and its records are used.

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

    let view: BlockView
    let dictionaries: BlockDictionaries
    /// That of the first thread with the first logger; threads are one count of loggers apart.
    private let firstNames: UInt64
    private let firstFormat: UInt64
    private let loggerCount: UInt64
    /// The next one.
    private(set) var row = 0
    /// The rows from the next one to this one are not wanted; and whether this one is.
    var scanned = 0
    var isScannedWanted = false
    var scan: RowScan?
    /// The format of the current record, if it is deferred.
    private(set) var formatIndex = 0

    init(_ view: BlockView) {
        self.view = view
        dictionaries = view.dictionaries
        loggerCount = unsafe UInt64(dictionaries.loggers.count)
        firstNames = BlockNumbers.take(UInt64(dictionaries.threads.count) &* loggerCount)
        firstFormat = BlockNumbers.take(UInt64(dictionaries.formats.count))
    }

    /// Rows from the next one on.
    var left: Int { view.count &- row }

    /// True if the next record is in this block and not older. If all belong to one process, the
    /// current one then does not affect the order of later ones.
    var isFollowedInOrder: Bool {
        guard left > 0 else { return false }
        return row == 0 || isInOrder(row)
    }

    /// Whether the row is not older than the one before it.
    @inline(__always) func isInOrder(_ row: Int) -> Bool {
        Int64(bitPattern: view.time[row] &- view.time[row &- 1]) >= 0
    }

    /// Whether texts of each format, and plain messages, may contain the bytes; and what strings
    /// must contain for that, numbers aside.
    func odds(
        _ wanted: TextSearch
    ) -> (formats: [TextSearch.Odds], pieces: [TextSearch], plain: Bool) {
        let all = view.arguments(from: row)
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
        return (formats, found, wanted.isIn(view.messages(from: row)))
    }

    /// Whether fields of a record may show what is searched for.
    func mayHaveInFields(_ search: FieldSearch) -> Bool {
        let stored =
            unsafe dictionaries.contexts.map(\.fields) + [view.sections(from: row)]
        guard unsafe stored.contains(where: { search.hasLast($0) }) else { return false }
        guard let longest = search.anywhere, unsafe !stored.contains(where: { longest.isIn($0) })
        else { return true }
        let (formats, _, plain) = odds(longest)
        return plain || formats.contains { $0.isPossible }
    }

    /// The monotonic time of the next record. nil: the block has ended.
    var nextTime: UInt64? { left > 0 ? view.time[row] : nil }

    mutating func next(into record: inout RecordRef) -> Step {
        guard left > 0 else { return .end }
        guard read(&record) else {
            row = view.count
            return .damaged
        }
        row &+= 1
        return .record
    }

    /// Reads the next record. False: it is after one of these times, or the block has ended or is
    /// damaged, as `next` reports.
    @inline(__always)
    mutating func next(
        into record: inout RecordRef, through lastMonotonic: UInt64, offset: UInt64,
        _ lastOrdering: UInt64
    ) -> Bool {
        guard left > 0 else { return false }
        let time = view.time[row]
        guard time <= lastMonotonic, time &+ offset <= lastOrdering, read(&record) else {
            return false
        }
        row &+= 1
        return true
    }

    /// The messages of the next rows, which are then passed. These rows are plain program records
    /// without sections; none is older than the one before it or after these times. nil: there is
    /// no such row.
    mutating func takeTexts(
        through lastMonotonic: UInt64, offset: UInt64, _ lastOrdering: UInt64
    ) -> RunTexts? {
        var end = row
        var latest = row > 0 ? view.time[row &- 1] : 0
        while end < view.count, view.kind[end] == 0 {
            let now = view.time[end]
            guard now >= latest, now <= lastMonotonic, now &+ offset <= lastOrdering else { break }
            latest = now
            end &+= 1
        }
        let rows = row..<end
        if rows.isEmpty { return nil }
        row = end
        return unsafe RunTexts(bytes: view.messages(rows), count: rows.count)
    }

    private mutating func read(_ record: inout RecordRef) -> Bool {
        let row = row
        let bits = UInt8(truncatingIfNeeded: view.kind[row])
        let who = Int(truncatingIfNeeded: view.thread[row])
        record.begin(dictionaries.threads[who])
        record.monotonicNs = view.time[row]
        record.writtenNs = record.monotonicNs &+ view.offset[row]
        record.timeNs = record.writtenNs
        record.sequence = view.sequence[row]
        let level = UInt8(truncatingIfNeeded: view.level[row])
        record.level = level <= 24 ? level : 0
        record.kind = bits & BlockKind.mask
        if bits & BlockKind.truncated != 0 { record.flags.insert(.truncated) }
        if bits & BlockKind.unverified != 0 { record.flags.insert(.unverified) }
        let name = view.logger[row]
        record.logger = unsafe dictionaries.loggers[Int(truncatingIfNeeded: name)]
        record.namesNumber = firstNames &+ UInt64(who) &* loggerCount &+ name
        if bits & BlockKind.deferred != 0 {
            takeArguments(row, &record)
        } else {
            record.message = view.message(row)
            record.originalLength = UInt64(record.message.count)
        }
        let context = Int(truncatingIfNeeded: view.context[row])
        if context > 0 {
            let found = dictionaries.contexts[context &- 1]
            record.context = found.fields
            record.trace = found.trace
        }
        if bits & BlockKind.hasSections != 0 {
            record.sections = view.sections(row)
            return dictionaries.apply(record.sections, to: &record)
        }
        return true
    }

    private mutating func takeArguments(_ row: Int, _ record: inout RecordRef) {
        formatIndex = Int(truncatingIfNeeded: view.format[row])
        record.formatNumber = firstFormat &+ UInt64(formatIndex)
        let found = dictionaries.formats[formatIndex]
        record.isDeferred = true
        record.line = found.line
        record.file = found.file
        record.function = found.function
        record.style = found.style
        record.format = found.format
        record.argumentTypes = found.types
        record.arguments = view.arguments(row)
    }

    // MARK: passing rows

    /// Passes over rows that the test leaves out and that do not affect the order of later rows,
    /// because the next one is in this block and not older. Returns the number of rows.
    mutating func pass(_ test: borrowing RowTest) -> Int {
        if scanned < row { (scanned, isScannedWanted) = (row, false) }
        if !isScannedWanted { lookAhead(test) }
        let first = row
        let end = min(scanned, view.count &- 1)
        while row < end, isInOrder(row &+ 1) { row &+= 1 }
        return row &- first
    }

    /// Passes over the rows before the first one at that monotonic time or later. Returns the
    /// number of rows.
    mutating func pass(before start: UInt64) -> Int {
        let first = row
        while row < view.count, view.time[row] < start { row &+= 1 }
        return row &- first
    }

    /// Passes over so many rows at most.
    mutating func pass(rows: Int) { row = min(row &+ rows, view.count) }

    private mutating func lookAhead(_ test: borrowing RowTest) {
        if scan == nil { scan = RowScan(view, test) }
        let text = test.text
        while scanned < view.count {
            if test.isOfLevels {
                scanned = scan!.next(withLevel: test.level, from: scanned)
                if scanned == view.count { return }
            }
            if scan!.mayBeWanted(scanned, test, text, dictionaries) {
                isScannedWanted = true
                return
            }
            scanned &+= 1
        }
    }
}
