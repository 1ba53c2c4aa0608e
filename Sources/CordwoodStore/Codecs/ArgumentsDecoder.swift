// Reads the arguments of deferred records (FORMAT §11.7): a column for each format and argument.
// Part of one decoder.
// SAFETY: a format's number is compared with their count before it is used as an index, and its
// columns lie between its first and the next format's.

import CordwoodCore

/// One argument of one format.
struct ArgumentColumn: BitwiseCopyable {
    var type: UInt8
    /// Numbers; for strings, their form: 0 whole, 1 cut, 2 NULL.
    var words: Flat<UInt64>
    var strings: Flat<Slice>
    /// Values taken so far; `takenStrings`: strings.
    var taken = 0
    var takenStrings = 0
}

struct ArgumentColumns {
    var columns: Flat<ArgumentColumn>
    /// The first column of each format. One more entry: the end.
    var first: Flat<Int>
}

enum ArgumentForm {
    static let whole: UInt64 = 0
    static let cut: UInt64 = 1
    static let null: UInt64 = 2

    /// Size of a number in the record; 0: not a number of this version.
    static func bytes(_ type: UInt8) -> Int {
        switch type {
        case ArgumentType.int, ArgumentType.uint, ArgumentType.error, ArgumentType.float: 4
        case ArgumentType.long, ArgumentType.ulong, ArgumentType.pointer, ArgumentType.double: 8
        case ArgumentType.bool, ArgumentType.char: 1
        default: 0
        }
    }

    static func isFraction(_ type: UInt8) -> Bool {
        type == ArgumentType.double || type == ArgumentType.float
    }

    static func isString(_ type: UInt8) -> Bool {
        type == ArgumentType.text || type == ArgumentType.wide
    }

    static let extendedBytes = 16
}

extension BlockDecoder {
    /// The arguments of the picked deferred records, whose formats these are. `types`: of each
    /// format.
    mutating func argumentColumns(
        _ types: Flat<Slice>, _ format: Flat<UInt64>, _ picks: Picks
    ) throws(BlockProblem) -> ArgumentColumns {
        let rows: Flat<Int> = try arena.flat(types.count, of: 0)
        let numbers = unsafe format.base
        for index in 0..<format.count {
            let number = unsafe numbers[index]
            guard number < UInt64(rows.count) else { throw .damaged }
            unsafe rows.base[Int(truncatingIfNeeded: number)] &+= 1
        }
        let none: Flat<Slice> = try arena.flat(0)
        let first: Flat<Int> = try arena.flat(rows.count + 1)
        // Each format as a column: the places of its records among all of it.
        let itself: Flat<Int> = try arena.flat(rows.count + 1)
        var total = 0
        for index in 0..<types.count {
            first[index] = total
            itself[index] = index
            total += types[index].count
        }
        first[rows.count] = total
        itself[rows.count] = rows.count
        let wanted = try self.picks(picks, format, first: itself, columns: itself, sizes: rows)
        let columns: Flat<ArgumentColumn> = try arena.flat(total)
        for index in 0..<types.count {
            for position in 0..<types[index].count {
                columns[first[index] + position] = try column(
                    types[index][position], wanted[index], none)
            }
        }
        return ArgumentColumns(columns: columns, first: first)
    }

    private mutating func column(
        _ type: UInt8, _ picks: Picks, _ none: Flat<Slice>
    ) throws(BlockProblem) -> ArgumentColumn {
        if ArgumentForm.isString(type) { return try strings(type, picks) }
        if type == ArgumentType.extended {
            return ArgumentColumn(
                type: type, words: try arena.flat(0), strings: try strings(picks, depth: 1))
        }
        let bytes = ArgumentForm.bytes(type)
        guard bytes > 0 else { throw .damaged }
        let words =
            ArgumentForm.isFraction(type)
            ? try doubles(picks, bytes: bytes, depth: 1) : try ints(picks, depth: 1)
        return ArgumentColumn(type: type, words: words, strings: none)
    }

    private mutating func strings(
        _ type: UInt8, _ picks: Picks
    ) throws(BlockProblem) -> ArgumentColumn {
        let states = try ints(picks.count, depth: 1)
        // For each string that is there, its place among the picked strings that are.
        let places: Flat<UInt32> = try arena.flat(picks.places == nil ? 0 : picks.size)
        var kept = 0
        var found = 0
        var next = 0
        for index in 0..<picks.count {
            guard states[index] <= ArgumentForm.null else { throw .damaged }
            let isPicked =
                picks.places != nil && next < picks.size && picks.place(next) == index
            if isPicked { next &+= 1 }
            if states[index] == ArgumentForm.null { continue }
            if isPicked {
                places[found] = UInt32(truncatingIfNeeded: kept)
                found &+= 1
            }
            kept &+= 1
        }
        let wanted =
            picks.places == nil ? Picks(all: kept) : Picks(places.prefix(found), of: kept)
        return ArgumentColumn(
            type: type, words: try gather(states, picks),
            strings: try strings(wanted, depth: 1))
    }
}

extension ArgumentColumns {
    /// Of all that were read, as FORMAT §8.7 lays them out.
    var bytes: Int {
        var sum = 0
        for index in 0..<columns.count {
            let column = columns[index]
            if ArgumentForm.isString(column.type) {
                sum &+= column.words.count &* 4
                for place in 0..<column.strings.count { sum &+= column.strings[place].count }
            } else if column.type == ArgumentType.extended {
                sum &+= column.strings.count &* ArgumentForm.extendedBytes
            } else {
                sum &+= column.words.count &* ArgumentForm.bytes(column.type)
            }
        }
        return sum
    }

    /// The arguments of deferred records, whose formats these are (FORMAT §8.7): at most so many
    /// bytes. `ends`: where those of each record end.
    func write(
        _ format: Flat<UInt64>, atMost bytes: Int, into out: inout GrowingBytes,
        ends: Flat<UInt64>
    ) throws(BlockProblem) {
        let start = out.count
        let most = start &+ bytes
        for record in 0..<format.count {
            var index = first[Int(format[record])]
            let end = first[Int(format[record]) + 1]
            while index < end {
                let column = unsafe columns.base + index
                let taken = unsafe column.pointee.taken
                switch unsafe ArgumentForm.bytes(column.pointee.type) {
                case 4:
                    unsafe out.append(
                        word: UInt32(truncatingIfNeeded: column.pointee.words[taken]))
                case 8: unsafe out.append(word: column.pointee.words[taken])
                case 1: unsafe out.append(UInt8(truncatingIfNeeded: column.pointee.words[taken]))
                default: unsafe try Self.string(&column.pointee, most, &out)
                }
                unsafe column.pointee.taken = taken &+ 1
                index &+= 1
            }
            guard out.count <= most else { throw .damaged }
            ends[record] = UInt64(out.count &- start)
        }
    }

    /// Whether the bytes that follow are those that `write` gives of the same records, of which no
    /// argument was written before.
    /// SAFETY: each column has a value of each record of its format.
    func areNext(in cursor: inout ByteCursor, of format: Flat<UInt64>) -> Bool {
        for record in 0..<format.count {
            let place = Int(truncatingIfNeeded: format[record])
            for index in first[place]..<first[place &+ 1] {
                let column = unsafe columns.base + index
                let taken = unsafe column.pointee.taken
                unsafe column.pointee.taken = taken &+ 1
                let isSame: Bool
                switch unsafe ArgumentForm.bytes(column.pointee.type) {
                case 4:
                    let word = unsafe column.pointee.words.base[taken]
                    isSame = cursor.word(UInt32.self) == UInt32(truncatingIfNeeded: word)
                case 8: isSame = unsafe cursor.word(UInt64.self) == column.pointee.words.base[taken]
                case 1:
                    let word = unsafe column.pointee.words.base[taken]
                    isSame = cursor.byte() == UInt8(truncatingIfNeeded: word)
                default: isSame = unsafe Self.isNext(in: &cursor, &column.pointee, taken)
                }
                if !isSame { return false }
            }
        }
        return true
    }

    private static func isNext(
        in cursor: inout ByteCursor, _ column: inout ArgumentColumn, _ taken: Int
    ) -> Bool {
        var size = UInt64(ArgumentForm.extendedBytes)
        var place = taken
        if column.type != ArgumentType.extended {
            let state = column.words[taken]
            guard let length = cursor.word(UInt32.self),
                (length == LengthWord.null) == (state == ArgumentForm.null)
            else { return false }
            if length == LengthWord.null { return true }
            guard (length & LengthWord.cut != 0) == (state == ArgumentForm.cut) else {
                return false
            }
            size = UInt64(length & ~LengthWord.cut)
            if column.type == ArgumentType.wide { size *= 4 }
            place = column.takenStrings
            column.takenStrings += 1
        }
        guard let bytes = cursor.bytes(size) else { return false }
        return Slice(bytes).isSame(column.strings[place])
    }

    private static func string(
        _ column: inout ArgumentColumn, _ most: Int, _ out: inout GrowingBytes
    ) throws(BlockProblem) {
        if column.type == ArgumentType.extended {
            let bytes = column.strings[column.taken]
            guard bytes.count == ArgumentForm.extendedBytes else { throw .damaged }
            out.append(bytes.bytes)
            return
        }
        let state = column.words[column.taken]
        if state == ArgumentForm.null {
            out.append(word: LengthWord.null)
            return
        }
        let bytes = column.strings[column.takenStrings]
        column.takenStrings += 1
        var length = UInt32(truncatingIfNeeded: bytes.count)
        if column.type == ArgumentType.wide {
            guard length & 3 == 0 else { throw .damaged }
            length /= 4
        }
        if state == ArgumentForm.cut { length |= LengthWord.cut }
        guard length != LengthWord.null, bytes.count <= most - out.count else {
            throw .damaged
        }
        out.append(word: length)
        out.append(bytes.bytes)
    }
}
