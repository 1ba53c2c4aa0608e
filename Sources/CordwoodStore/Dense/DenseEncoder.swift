// Makes a dense block from a payload (FORMAT §11.6, §11.7): splits the streams, encodes the columns
// in the order of the tree, and packs the leaves. A payload that it cannot reproduce byte for byte
// is refused, and the block stays as it is (method 1). One writer owns one encoder; its memory is
// reused for the next block.
// SAFETY: slices are of the payload, which outlives `encode`, and of the arena, which is emptied at
// its end.

import CordwoodCore

struct DenseEncoder: ~Copyable {
    var arena = Arena()
    var out = LeafWriter()
    let seed: UInt64
    var packer: DensePacker
    var effort = BlockEffort.dense
    /// Of the block (docs/BLOCK.md, size).
    var contentSize = 0

    var sharing = ColumnSharing.word
    /// Until the next choice.
    var blocksUntilChoice = 0
    /// Likewise, for long arguments.
    var proseSharing = ColumnSharing.word
    var proseUntilChoice = 0

    static let templatesDepthMax = 5
    /// Arguments with a greater average size hold words and numbers.
    private static let proseBytes = 24
    /// Size of the payload; nil: there is a block instead.
    private(set) var rawBytes: Int?
    private(set) var payloadCRC: UInt32 = 0
    static let arenaKept = 32 << 20

    /// nil: out of memory. `level`: a level of zstd.
    init?(level: Int32, seed: UInt64 = .random(in: .min ... .max)) {
        guard let packer = DensePacker(level: level) else { return nil }
        self.packer = packer
        // Hashes that begin with a small number could coincide with others.
        self.seed = SliceTable.mixed(seed ^ 0xA076_1D64_78BD_642F, 0xD6E8_FEB8_6659_FD93)
    }

    /// Appends the directory and the frames to `frame`; returns rawCRC. Throws `.unfit` if the
    /// payload is not what our writers make, or exceeds a limit.
    @safe mutating func encode(
        _ payload: UnsafeRawBufferPointer, recordCount: Int, into frame: inout GrowingBytes
    ) throws(DenseProblem) -> UInt32 {
        defer {
            arena.clear(keeping: Self.arenaKept)
            out.clear()
            rawBytes = nil
        }
        guard recordCount <= DenseLimits.recordsMax else { throw .unfit }
        rawBytes = payload.count
        try columns(Slice(payload), recordCount)
        if out.failed { throw .memory }
        payloadCRC = Checksum.crc(payload)
        try packer.pack(out, payloadCRC: payloadCRC, to: &frame)
        return unsafe Checksum.crc(out.data.bytes)
    }

    mutating func columns(_ payload: Slice, _ records: Int) throws(DenseProblem) {
        let streams = try Self.streams(payload)
        for stream in [0, 1, 2, 3, 16] { try out.text(streams[stream]) }
        try contexts(streams[4])
        let kind = try octets(streams[10], records)
        try ints(kind)
        if try !constant(streams[9], records) { try ints(octets(streams[9], records)) }
        try varyingInts(streams[5], records)
        let time = try sums(streams[6], records)
        try ints(time)
        let offset = try sums(streams[7], records)
        try ints(offset)
        try varyingInts(streams[8], records, isSigned: true)
        try varyingInts(streams[11], records)
        try varyingInts(streams[12], records)
        var deferred = 0
        var sectioned = 0
        for index in 0..<records {
            if kind[index] & UInt64(PayloadBits.deferred) != 0 { deferred += 1 }
            if kind[index] & UInt64(PayloadBits.hasSections) != 0 { sectioned += 1 }
        }
        let format = try varints(streams[17], deferred)
        try ints(format)
        guard let types = FormatTypes(streams[16])?.types else { throw .unfit }
        let flat: Flat<Slice> = try arena.flat(types.count)
        for (index, found) in types.enumerated() { flat[index] = found }
        try arguments(flat, format, streams[18])
        let utc: Flat<UInt64> = try arena.flat(sectioned)
        var next = 0
        for index in 0..<records where kind[index] & UInt64(PayloadBits.hasSections) != 0 {
            utc[next] = time[index] &+ offset[index]
            next += 1
        }
        try sections(varints(streams[14], sectioned), streams[15], utc)
        try messages(varints(streams[13], records - deferred), streams[19])
    }

    private static func streams(_ payload: Slice) throws(DenseProblem) -> [Slice] {
        var cursor = ByteCursor(payload.bytes)
        guard let count = cursor.word(UInt32.self), count == UInt32(DenseLimits.streams) else {
            throw .unfit
        }
        var found: [Slice] = []
        var at = 4 + 4 * DenseLimits.streams
        for _ in 0..<DenseLimits.streams {
            guard let size = cursor.word(UInt32.self), Int(size) <= payload.count - at else {
                throw .unfit
            }
            found.append(payload.part(at, Int(size)))
            at += Int(size)
        }
        guard at == payload.count else { throw .unfit }
        return found
    }

    // MARK: streams of numbers

    /// Ints(n) of a stream of varints, of zigzags if `isSigned`.
    private mutating func varyingInts(
        _ stream: Slice, _ count: Int, isSigned: Bool = false
    ) throws(DenseProblem) {
        if try constant(stream, count, isSigned: isSigned) { return }
        try ints(isSigned ? zigzags(stream, count) : varints(stream, count))
    }

    /// False: the stream is not the same byte for each record; nothing was written. Most columns of
    /// most blocks are, and this needs no memory for them.
    private mutating func constant(
        _ stream: Slice, _ count: Int, isSigned: Bool = false
    ) throws(DenseProblem) -> Bool {
        let first = stream[0]
        guard count > 0, stream.count == count, first < 0x80,
            stream.part(1, count - 1).isSame(stream.part(0, count - 1))
        else { return false }
        out.meta.append(IntsCodec.const)
        out.meta.append(zigzag: isSigned ? Zigzag.plain(UInt64(first)) : UInt64(first))
        return true
    }

    private mutating func octets(
        _ stream: Slice, _ count: Int
    ) throws(DenseProblem) -> Flat<UInt64> {
        guard stream.count == count else { throw .unfit }
        let values: Flat<UInt64> = try arena.flat(count)
        for index in 0..<count { values[index] = UInt64(stream[index]) }
        return values
    }

    private mutating func varints(
        _ stream: Slice, _ count: Int
    ) throws(DenseProblem) -> Flat<UInt64> {
        let values: Flat<UInt64> = try arena.flat(count)
        if stream.count == count, let start = unsafe stream.start {
            // One byte each.
            let (bytes, target) = unsafe (
                start.assumingMemoryBound(to: UInt8.self), values.base
            )
            var all: UInt8 = 0
            for index in 0..<count {
                unsafe all |= bytes[index]
                unsafe target[index] = UInt64(bytes[index])
            }
            guard all < 0x80 else { throw .unfit }
            return values
        }
        var cursor = ByteCursor(stream.bytes)
        for index in 0..<count {
            guard let value = cursor.varint() else { throw .unfit }
            values[index] = value
        }
        guard cursor.left == 0 else { throw .unfit }
        return values
    }

    private mutating func zigzags(
        _ stream: Slice, _ count: Int
    ) throws(DenseProblem) -> Flat<UInt64> {
        let values = try varints(stream, count)
        for index in 0..<count { values[index] = Zigzag.plain(values[index]) }
        return values
    }

    private mutating func sums(
        _ stream: Slice, _ count: Int
    ) throws(DenseProblem) -> Flat<UInt64> {
        let values = try zigzags(stream, count)
        var sum: UInt64 = 0
        for index in 0..<count {
            sum &+= values[index]
            values[index] = sum
        }
        return values
    }

    mutating func messages(
        _ lengths: Flat<UInt64>, _ stream: Slice
    ) throws(DenseProblem) {
        let values: Flat<Slice> = try arena.flat(lengths.count)
        var at = 0
        for index in 0..<lengths.count {
            guard lengths[index] < UInt64(stream.count - at) else { throw .unfit }
            let size = Int(lengths[index])
            values[index] = stream.part(at, size)
            guard stream[at + size] == 0x0A else { throw .unfit }
            at += size + 1
        }
        guard at == stream.count else { throw .unfit }
        if effort == .swift { return try sizedLines(lengths, stream) }
        try chooseSharing(values)
        try strings(values, .line)
    }

    private mutating func contexts(_ stream: Slice) throws(DenseProblem) {
        var cursor = ByteCursor(stream.bytes)
        guard let count = cursor.varint(), count <= UInt64(DenseLimits.dictionaryMax) else {
            throw .unfit
        }
        let lists: Flat<Slice> = try arena.flat(Int(count))
        let traces: Flat<Slice> = try arena.flat(Int(count))
        for index in 0..<Int(count) {
            guard let fields = cursor.string(),
                let trace = cursor.bytes(UInt64(TraceLayout.bytes))
            else { throw .unfit }
            lists[index] = Slice(fields)
            traces[index] = Slice(trace)
        }
        guard cursor.left == 0 else { throw .unfit }
        out.meta.append(varint: count)
        try fieldLists(lists)
        try self.traces(traces)
    }

    // MARK: arguments

    /// `types`: of each format.
    mutating func arguments(
        _ types: Flat<Slice>, _ format: Flat<UInt64>, _ stream: Slice
    ) throws(DenseProblem) {
        if format.count == 0 {
            guard stream.count == 0 else { throw .unfit }
            return
        }
        let rows: Flat<Int> = try arena.flat(types.count, of: 0)
        for index in 0..<format.count {
            guard format[index] < UInt64(rows.count) else { throw .unfit }
            rows[Int(format[index])] += 1
        }
        let noWords: Flat<UInt64> = try arena.flat(0)
        let noStrings: Flat<Slice> = try arena.flat(0)
        let first: Flat<Int> = try arena.flat(rows.count + 1)
        var total = 0
        for index in 0..<types.count {
            first[index] = total
            total += types[index].count
        }
        guard total <= DenseLimits.partsMax else { throw .unfit }
        first[rows.count] = total
        let columns: Flat<ArgumentColumn> = try arena.flat(total)
        for index in 0..<types.count {
            for position in 0..<types[index].count {
                let type = types[index][position]
                let isString = ArgumentForm.isString(type)
                let isExtended = type == ArgumentType.extended
                guard isString || isExtended || ArgumentForm.bytes(type) > 0 else {
                    throw .unfit
                }
                columns[first[index] + position] = ArgumentColumn(
                    type: type, words: isExtended ? noWords : try arena.flat(rows[index]),
                    strings: isString || isExtended ? try arena.flat(rows[index]) : noStrings)
            }
        }
        try take(stream, format, first, columns)
        for index in 0..<total { try argument(columns[index]) }
    }

    /// SAFETY: each column has room for a value of each record of its format.
    private func take(
        _ stream: Slice, _ format: Flat<UInt64>, _ first: Flat<Int>,
        _ columns: Flat<ArgumentColumn>
    ) throws(DenseProblem) {
        var cursor = ByteCursor(stream.bytes)
        for record in 0..<format.count {
            let place = Int(truncatingIfNeeded: format[record])
            for index in first[place]..<first[place &+ 1] {
                let column = unsafe columns.base + index
                let word: UInt64
                switch unsafe column.pointee.type {
                case ArgumentType.int, ArgumentType.error:
                    guard let found = cursor.word(UInt32.self) else { throw .unfit }
                    word = UInt64(bitPattern: Int64(Int32(bitPattern: found)))
                case ArgumentType.uint, ArgumentType.float:
                    guard let found = cursor.word(UInt32.self) else { throw .unfit }
                    word = UInt64(found)
                case ArgumentType.long, ArgumentType.ulong, ArgumentType.pointer,
                    ArgumentType.double:
                    guard let found = cursor.word(UInt64.self) else { throw .unfit }
                    word = found
                case ArgumentType.bool, ArgumentType.char:
                    guard let found = cursor.byte() else { throw .unfit }
                    word = UInt64(found)
                default:
                    guard let form = unsafe try take(&cursor, &column.pointee) else { continue }
                    word = form
                }
                unsafe column.pointee.words.base[column.pointee.taken] = word
                unsafe column.pointee.taken &+= 1
            }
        }
        guard cursor.left == 0 else { throw .unfit }
    }

    /// Takes a string, and returns its form; nil: an extended number, which has none.
    private func take(
        _ cursor: inout ByteCursor, _ column: inout ArgumentColumn
    ) throws(DenseProblem) -> UInt64? {
        let isExtended = column.type == ArgumentType.extended
        var size = UInt64(ArgumentForm.extendedBytes)
        var form = ArgumentForm.whole
        if !isExtended {
            guard let length = cursor.word(UInt32.self) else { throw .unfit }
            if length == LengthWord.null { return ArgumentForm.null }
            if length & LengthWord.cut != 0 { form = ArgumentForm.cut }
            size = UInt64(length & ~LengthWord.cut)
            if column.type == ArgumentType.wide { size *= 4 }
        }
        guard let bytes = cursor.bytes(size) else { throw .unfit }
        column.strings[column.takenStrings] = Slice(bytes)
        column.takenStrings += 1
        return isExtended ? nil : form
    }

    private mutating func argument(_ column: ArgumentColumn) throws(DenseProblem) {
        if ArgumentForm.isString(column.type) {
            try ints(column.words)
            let strings = column.strings.prefix(column.takenStrings)
            let kind = Self.kind(of: strings, column.type)
            if kind == .prose { return try prose(strings) }
            try self.strings(strings, kind)
        } else if column.type == ArgumentType.extended {
            try strings(column.strings, .binary)
        } else if ArgumentForm.isFraction(column.type) {
            try doubles(column.words, bytes: ArgumentForm.bytes(column.type))
        } else {
            try ints(column.words)
        }
    }

    /// Columns of their variables are shared in their own way.
    private mutating func prose(_ strings: Flat<Slice>) throws(DenseProblem) {
        if effort == .swift { return try self.strings(strings, .prose) }
        swap(&sharing, &proseSharing)
        swap(&blocksUntilChoice, &proseUntilChoice)
        defer {
            swap(&sharing, &proseSharing)
            swap(&blocksUntilChoice, &proseUntilChoice)
        }
        try chooseSharing(strings)
        try self.strings(strings, .prose)
    }

    /// Long arguments are lines, like messages: an interpolated text may consist of nothing else.
    private static func kind(of strings: Flat<Slice>, _ type: UInt8) -> StringKind {
        if type == ArgumentType.wide { return .binary }
        return bytes(strings) > strings.count * proseBytes ? .prose : .run
    }
}
