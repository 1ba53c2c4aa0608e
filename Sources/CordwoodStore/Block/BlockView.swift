// What was read of a block, as its readers hold it: the columns of rows in one buffer, as narrow as
// their numbers allow, and the dictionaries. Any row is read by its number. The owner of a buffer
// changes it; views are values.
// SAFETY: a view is used only until its buffer changes. A margin follows the last column, so a load
// of eight bytes at any row stays inside. Ends of rows ascend and lie within their bytes, as those
// who write them ensure.

import CordwoodCore

/// Numbers of rows: one for all, or 1, 2, 4 or 8 bytes for each.
@safe struct RowNumbers: BitwiseCopyable {
    fileprivate let start: UnsafeRawPointer
    let count: Int
    fileprivate let stride: Int
    private let mask: UInt64
    fileprivate let base: UInt64

    fileprivate init(_ start: UnsafeRawPointer, _ place: RowBuffer.Place) {
        unsafe self.start = start
        count = place.count
        stride = place.stride
        mask = stride == 0 ? 0 : .max &>> UInt64(64 &- 8 &* stride)
        base = place.base
    }

    /// 0 outside.
    @inline(__always) subscript(_ row: Int) -> UInt64 {
        guard UInt(bitPattern: row) < UInt(bitPattern: count) else { return 0 }
        let word = unsafe start.loadUnaligned(fromByteOffset: row &* stride, as: UInt64.self)
        return base &+ UInt64(littleEndian: word) & mask
    }

    /// A byte for each row; nil: they are stored otherwise.
    @safe var octets: UnsafeRawBufferPointer? {
        guard stride == 1, base == 0 else { return nil }
        return unsafe UnsafeRawBufferPointer(start: start, count: count)
    }

    /// The number of all rows; nil: they differ, or are not stored as one.
    var only: UInt64? { stride == 0 ? base : nil }
}

/// Columns that were not read are empty.
@safe struct BlockView {
    /// The number of rows.
    let count: Int
    let names: BlockNames
    let kind: RowNumbers
    let level: RowNumbers
    let thread: RowNumbers
    /// Monotonic ns.
    let time: RowNumbers
    /// UTC − monotonic ns.
    let offset: RowNumbers
    let sequence: RowNumbers
    let logger: RowNumbers
    /// Index of the context, plus 1; 0: none.
    let context: RowNumbers
    /// Of a deferred record, the index of the format.
    let format: RowNumbers
    /// Where the row's bytes end in `messages`, `arguments` and `sections`. Those of a row that has
    /// none end where the row before does.
    let messageEnd: RowNumbers
    let argumentEnd: RowNumbers
    let sectionEnd: RowNumbers
    /// Each followed by a newline.
    @safe let messages: UnsafeRawBufferPointer
    @safe let arguments: UnsafeRawBufferPointer
    @safe let sections: UnsafeRawBufferPointer

    var dictionaries: BlockDictionaries { names.dictionaries }

    /// The bytes of a row, and all that follow them.
    @inline(__always)
    private func start(_ ends: RowNumbers, _ row: Int) -> Int {
        row == 0 ? 0 : Int(truncatingIfNeeded: ends[row &- 1])
    }

    /// SAFETY: `first` … `end` lie in `bytes`.
    @inline(__always)
    private func part(
        _ bytes: UnsafeRawBufferPointer, _ first: Int, _ end: Int
    ) -> UnsafeRawBufferPointer {
        invariant(first <= end && end <= bytes.count, "the bytes of a row lie in its column")
        return unsafe UnsafeRawBufferPointer(
            start: bytes.baseAddress.map { unsafe $0 + first }, count: end &- first)
    }

    /// Without the newline.
    @safe @inline(__always) func message(_ row: Int) -> UnsafeRawBufferPointer {
        let end = Int(truncatingIfNeeded: messageEnd[row])
        return unsafe part(messages, start(messageEnd, row), end &- 1)
    }

    @safe @inline(__always) func arguments(_ row: Int) -> UnsafeRawBufferPointer {
        unsafe part(
            arguments, start(argumentEnd, row), Int(truncatingIfNeeded: argumentEnd[row]))
    }

    @safe @inline(__always) func sections(_ row: Int) -> UnsafeRawBufferPointer {
        unsafe part(sections, start(sectionEnd, row), Int(truncatingIfNeeded: sectionEnd[row]))
    }

    /// The messages of these rows, which all have one.
    @safe func messages(_ rows: Range<Int>) -> UnsafeRawBufferPointer {
        unsafe rest(messages, messageEnd, rows)
    }

    /// Of the rows from this one on.
    @safe func messages(from row: Int) -> UnsafeRawBufferPointer {
        unsafe rest(messages, messageEnd, row..<count)
    }

    @safe func arguments(from row: Int) -> UnsafeRawBufferPointer {
        unsafe rest(arguments, argumentEnd, row..<count)
    }

    @safe func sections(from row: Int) -> UnsafeRawBufferPointer {
        unsafe rest(sections, sectionEnd, row..<count)
    }

    fileprivate func rest(
        _ bytes: UnsafeRawBufferPointer, _ ends: RowNumbers, _ rows: Range<Int>
    ) -> UnsafeRawBufferPointer {
        if rows.isEmpty || ends.count == 0 { return unsafe part(bytes, 0, 0) }
        let end = Int(truncatingIfNeeded: ends[rows.upperBound &- 1])
        return unsafe part(bytes, start(ends, rows.lowerBound), end)
    }

    /// Whether the row's sections may say something that its columns do not.
    @inline(__always) static func hasSections(_ kind: UInt64) -> Bool {
        kind & UInt64(BlockKind.hasSections) != 0
    }

    @inline(__always) static func isDeferred(_ kind: UInt64) -> Bool {
        kind & UInt64(BlockKind.deferred) != 0
    }

    /// UTC ns: the event's own time if it has one, as `BlockRecords` has it.
    @inline(__always) func shownTime(_ row: Int) -> UInt64 {
        let written = time[row] &+ offset[row]
        return Self.hasSections(kind[row]) ? ownTime(row) ?? written : written
    }

    private func ownTime(_ row: Int) -> UInt64? {
        var walk = SectionWalk(sections(row))
        var found: UInt64?
        while let (kind, body, _) = walk.next() {
            if kind == SectionKind.time, body.count == 8 { found = body.word(0, UInt64.self) }
        }
        return found
    }

    /// The monotonic time of the last row if no row from this one on is older than the one before
    /// it.
    func lastInOrder(from row: Int = 0) -> UInt64? {
        guard row < time.count else { return nil }
        var last = time[row]
        for next in row &+ 1..<max(time.count, row &+ 1) {
            let now = time[next]
            if now < last { return nil }
            last = now
        }
        return last
    }
}

/// The dictionaries of a block, with their bytes.
final class BlockNames {
    let dictionaries: BlockDictionaries
    private let bytes: GrowingBytes

    /// Holds nothing.
    init() {
        dictionaries = BlockDictionaries()
        bytes = GrowingBytes()
    }

    init(_ content: borrowing BlockContent) throws(BlockProblem) {
        var bytes = GrowingBytes()
        guard bytes.reserve(BlockDictionaries.bytes(of: content)) else { throw .memory }
        dictionaries = BlockDictionaries(content, &bytes)
        self.bytes = bytes
    }

    var capacity: Int { bytes.capacity }
}

struct RowBuffer: ~Copyable {
    struct Place {
        fileprivate(set) var at = 0
        fileprivate(set) var count = 0
        fileprivate(set) var stride = 0
        fileprivate(set) var base: UInt64 = 0
    }

    enum Column: Int, CaseIterable {
        case kind, level, thread, time, offset, sequence, logger, context, format
        case messageEnd, argumentEnd, sectionEnd
    }

    enum Part: Int, CaseIterable { case messages, arguments, sections }

    private static let margin = 16
    private(set) var count = 0
    var names = BlockNames()
    private var bytes = GrowingBytes()
    private var places = [Place](repeating: Place(), count: Column.allCases.count)
    private var parts = [Range<Int>](repeating: 0..<0, count: Part.allCases.count)

    init() {}

    var capacity: Int { bytes.capacity &+ names.capacity }
    var failed: Bool { bytes.failed }

    /// Empties it, for this many rows.
    mutating func begin(rows: Int) {
        bytes.clear(keeping: .max)
        names = BlockNames()
        count = rows
        for index in places.indices { places[index] = Place() }
        for index in parts.indices { parts[index] = 0..<0 }
    }

    /// Frees its memory.
    mutating func clear() {
        begin(rows: 0)
        bytes.clear(keeping: 0)
    }

    /// Valid until it changes.
    func view() -> BlockView {
        func column(_ wanted: Column) -> RowNumbers {
            let place = places[wanted.rawValue]
            return unsafe RowNumbers(UnsafeRawPointer(bytes.base) + place.at, place)
        }
        func part(_ wanted: Part) -> UnsafeRawBufferPointer {
            let range = parts[wanted.rawValue]
            return unsafe UnsafeRawBufferPointer(
                start: bytes.base + range.lowerBound, count: range.count)
        }
        return unsafe BlockView(
            count: count, names: names, kind: column(.kind), level: column(.level),
            thread: column(.thread), time: column(.time), offset: column(.offset),
            sequence: column(.sequence), logger: column(.logger), context: column(.context),
            format: column(.format), messageEnd: column(.messageEnd),
            argumentEnd: column(.argumentEnd), sectionEnd: column(.sectionEnd),
            messages: part(.messages), arguments: part(.arguments), sections: part(.sections))
    }

    // MARK: making it

    /// Call last.
    mutating func finish() throws(BlockProblem) {
        guard unsafe bytes.claim(Self.margin) != nil, !bytes.failed else { throw .memory }
    }

    mutating func append(_ values: Flat<UInt64>, as column: Column) throws(BlockProblem) {
        var place = Place(at: bytes.count, count: values.count)
        defer { places[column.rawValue] = place }
        if values.count == 0 { return }
        let source = unsafe values.base
        let first = unsafe source[0]
        var (all, steps): (UInt64, UInt64) = (0, 0)
        for index in 0..<values.count {
            unsafe all |= source[index]
            unsafe steps |= source[index] &- first
        }
        let isPlain = Self.bytes(all) <= Self.bytes(steps)
        if steps == 0 || !isPlain { place.base = first }
        place.stride = steps == 0 ? 0 : min(Self.bytes(all), Self.bytes(steps))
        let base = place.base
        switch place.stride {
        case 0: return
        case 1: try put(values, base, UInt8.self)
        case 2: try put(values, base, UInt16.self)
        case 4: try put(values, base, UInt32.self)
        default: try put(values, base, UInt64.self)
        }
    }

    private static func bytes(_ bits: UInt64) -> Int {
        bits < 1 << 8 ? 1 : bits < 1 << 16 ? 2 : bits < 1 << 32 ? 4 : 8
    }

    private mutating func put<Word: FixedWidthInteger & BitwiseCopyable>(
        _ values: Flat<UInt64>, _ base: UInt64, _: Word.Type
    ) throws(BlockProblem) {
        let size = MemoryLayout<Word>.size
        guard let target = unsafe bytes.claim(values.count &* size) else { throw .memory }
        let source = unsafe values.base
        for index in 0..<values.count {
            let word = unsafe Word(truncatingIfNeeded: source[index] &- base)
            unsafe target.storeBytes(
                of: word.littleEndian, toByteOffset: index &* size, as: Word.self)
        }
    }

    /// The bytes of all rows, as `write` appends them.
    mutating func append(
        _ part: Part, _ write: (inout GrowingBytes) throws(BlockProblem) -> Void
    ) throws(BlockProblem) {
        let start = bytes.count
        try write(&bytes)
        parts[part.rawValue] = start..<bytes.count
    }

    /// Replaces this with some rows of another buffer's view. False: memory ran out.
    mutating func take(_ rows: Range<Int>, of view: BlockView) -> Bool {
        begin(rows: rows.count)
        names = view.names
        for column in Column.allCases { take(rows, of: view, column) }
        unsafe put(view.messages(rows), as: .messages)
        unsafe put(view.rest(view.arguments, view.argumentEnd, rows), as: .arguments)
        unsafe put(view.rest(view.sections, view.sectionEnd, rows), as: .sections)
        return unsafe bytes.claim(Self.margin) != nil && !bytes.failed
    }

    private mutating func put(_ found: UnsafeRawBufferPointer, as part: Part) {
        let start = bytes.count
        bytes.append(found)
        parts[part.rawValue] = start..<bytes.count
    }

    private mutating func take(_ rows: Range<Int>, of view: BlockView, _ column: Column) {
        let source = view.column(column)
        var place = Place(at: bytes.count, count: min(rows.count, source.count))
        defer { places[column.rawValue] = place }
        if place.count == 0 { return }
        (place.stride, place.base) = (source.stride, source.base)
        switch column {
        case .messageEnd, .argumentEnd, .sectionEnd:
            if rows.lowerBound > 0 { place.base &-= source[rows.lowerBound &- 1] }
        default: break
        }
        unsafe bytes.append(
            UnsafeRawBufferPointer(
                start: source.start + rows.lowerBound &* source.stride,
                count: place.count &* source.stride))
    }
}

extension BlockView {
    fileprivate func column(_ wanted: RowBuffer.Column) -> RowNumbers {
        switch wanted {
        case .kind: kind
        case .level: level
        case .thread: thread
        case .time: time
        case .offset: offset
        case .sequence: sequence
        case .logger: logger
        case .context: context
        case .format: format
        case .messageEnd: messageEnd
        case .argumentEnd: argumentEnd
        case .sectionEnd: sectionEnd
        }
    }
}
