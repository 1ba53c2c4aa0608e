// Writes the codecs of a block (FORMAT §11.7 to §11.9): columns become leaves, in the order of the
// tree. One writer owns one encoder; its memory is reused for the next block.
// SAFETY: slices are of the block, which outlives their use, and of the arena, which is emptied at
// its end.

import CordwoodCore

struct BlockEncoder: ~Copyable {
    var arena = Arena()
    var out = LeafWriter()
    let seed: UInt64
    var packer: BlockPacker
    var effort = BlockEffort.dense
    /// Of the block (FORMAT §11.10).
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
    static let arenaKept = 32 << 20

    /// nil: out of memory. `level`: of the blocks' codec.
    init?(level: Int32, seed: UInt64 = .random(in: .min ... .max)) {
        guard let packer = BlockPacker(level: level) else { return nil }
        self.packer = packer
        // Hashes that begin with a small number could coincide with others.
        self.seed = SliceTable.mixed(seed ^ 0xA076_1D64_78BD_642F, 0xD6E8_FEB8_6659_FD93)
    }

    mutating func messages(
        _ lengths: Flat<UInt64>, _ stream: Slice
    ) throws(BlockProblem) {
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

    // MARK: arguments

    /// `types`: of each format.
    mutating func arguments(
        _ types: Flat<Slice>, _ format: Flat<UInt64>, _ stream: Slice
    ) throws(BlockProblem) {
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
        guard total <= BlockLimits.partsMax else { throw .unfit }
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
    ) throws(BlockProblem) {
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
    ) throws(BlockProblem) -> UInt64? {
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

    private mutating func argument(_ column: ArgumentColumn) throws(BlockProblem) {
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
    private mutating func prose(_ strings: Flat<Slice>) throws(BlockProblem) {
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
