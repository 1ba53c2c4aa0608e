// Which values of a column are read: all of them, or those at some places. A reader that wants few
// rows of a block has each column return only their values, and inflates no frame of a column of
// which it wants none. Part of one decoder.
// SAFETY: places are below the column's count, as those who make them ensure; `Flat` keeps any
// other inside. Groups are below their number, which the callers of `picks` have checked.

import CordwoodCore

struct Picks: BitwiseCopyable {
    /// The number of values in the column.
    let count: Int
    /// The places of the values that are read, ascending; nil: all are read.
    let places: Flat<UInt32>?

    init(all count: Int) {
        self.count = count
        places = nil
    }

    init(_ places: Flat<UInt32>, of count: Int) {
        self.count = count
        self.places = places
    }

    /// The number of values that are read.
    var size: Int { places?.count ?? count }
    var isNone: Bool { size == 0 }

    /// The place of the value that is read at this index.
    @inline(__always) func place(_ index: Int) -> Int {
        if let places { return Int(places[index]) }
        return index
    }
}

extension BlockDecoder {
    /// The values at these places of a column that was read.
    mutating func gather<Element: BitwiseCopyable>(
        _ column: Flat<Element>, _ picks: Picks
    ) throws(BlockProblem) -> Flat<Element> {
        guard let places = picks.places else { return column }
        let found: Flat<Element> = try arena.flat(places.count)
        for index in 0..<places.count { found[index] = column[Int(places[index])] }
        return found
    }

    /// Which values of each column the picked rows have. Row *i* belongs to group `group[i]`, and
    /// takes the next value of each of `columns[first[group] ..< first[group + 1]]`, which may name
    /// a column more than once. `sizes`: values of each column. The caller ensures that `first` has
    /// an entry for each group and one more, and `group` one for each row.
    mutating func picks<Number: FixedWidthInteger & BitwiseCopyable>(
        _ rows: Picks, _ group: Flat<UInt64>, first: Flat<Number>, columns: Flat<Number>,
        sizes: Flat<Int>
    ) throws(BlockProblem) -> Flat<Picks> {
        let found: Flat<Picks> = try arena.flat(sizes.count)
        guard let places = rows.places else {
            for column in 0..<sizes.count { found[column] = Picks(all: sizes[column]) }
            return found
        }
        let next: Flat<Int> = try arena.flat(sizes.count, of: 0)
        func columnsOf(_ group: UInt64) -> Range<Int> {
            let index = Int(truncatingIfNeeded: group)
            return Int(first[index])..<Int(first[index &+ 1])
        }
        for index in 0..<places.count {
            for place in columnsOf(group[Int(places[index])]) { next[Int(columns[place])] &+= 1 }
        }
        for column in 0..<sizes.count {
            found[column] = Picks(try arena.flat(next[column]), of: sizes[column])
            next[column] = 0
        }
        let taken: Flat<UInt32> = try arena.flat(sizes.count, of: 0)
        let seen: Flat<UInt32> = try arena.flat(first.count, of: 0)
        var row = 0
        for index in 0..<places.count {
            let wanted = Int(places[index])
            // If it is far away, groups are counted, and their columns advance once for all of
            // them.
            if wanted &- row > first.count &+ columns.count {
                let (groups, counts) = unsafe (group.base, seen.base)
                while row < wanted {
                    unsafe counts[Int(truncatingIfNeeded: groups[row])] &+= 1
                    row &+= 1
                }
                for number in 0..<first.count &- 1 where seen[number] > 0 {
                    for place in columnsOf(UInt64(number)) {
                        taken[Int(columns[place])] &+= seen[number]
                    }
                    seen[number] = 0
                }
            }
            while row < wanted {
                for place in columnsOf(group[row]) { taken[Int(columns[place])] &+= 1 }
                row &+= 1
            }
            for place in columnsOf(group[row]) {
                let column = Int(columns[place])
                if let places = found[column].places { places[next[column]] = taken[column] }
                next[column] &+= 1
                taken[column] &+= 1
            }
            row &+= 1
        }
        return found
    }

    // MARK: numbers

    /// The numbers at these places.
    mutating func ints(_ picks: Picks, depth: Int) throws(BlockProblem) -> Flat<UInt64> {
        guard picks.places != nil else { return try ints(picks.count, depth: depth) }
        if picks.isNone {
            try skipInts(picks.count, depth: depth)
            return try arena.flat(0)
        }
        switch leaves.next {
        case IntsCodec.const, IntsCodec.offset, IntsCodec.dictionary: break
        // Each number affects those after it.
        default: return try gather(try ints(picks.count, depth: depth), picks)
        }
        try leaves.takeValues(picks.count, depth: depth)
        let values: Flat<UInt64> = try arena.flat(picks.size)
        switch try leaves.byte() {
        case IntsCodec.const: values.fill(try leaves.zigzag())
        case IntsCodec.offset:
            let least = try leaves.zigzag()
            try planes(picks, into: values)
            for index in 0..<values.count { values[index] &+= least }
        default:
            let size = try leaves.count(picks.count)
            guard size > 0 else { throw .damaged }
            let entries = try ints(size, depth: depth + 1)
            let chosen = try indices(picks, below: size)
            for index in 0..<values.count {
                values[index] = entries[Int(truncatingIfNeeded: chosen[index])]
            }
        }
        return values
    }

    private mutating func skipInts(_ count: Int, depth: Int) throws(BlockProblem) {
        try leaves.takeValues(count, depth: depth)
        if count == 0 { return }
        switch try leaves.byte() {
        case IntsCodec.const: _ = try leaves.zigzag()
        case IntsCodec.offset, IntsCodec.delta:
            _ = try leaves.zigzag()
            try skipPlanes(count)
        case IntsCodec.dictionary:
            try skipInts(try leaves.count(count), depth: depth + 1)
            try skipPlanes(count)
        case IntsCodec.slope:
            _ = try leaves.zigzag()
            _ = try leaves.zigzag()
            try skipPlanes(count)
        case IntsCodec.logOffset, IntsCodec.logDelta:
            _ = try leaves.zigzag()
            _ = try leaves.take(plane: count)
            _ = try leaves.take(plane: try leaves.count(BlockLimits.contentMax))
        case IntsCodec.runs:
            let size = try leaves.count(count)
            try skipInts(size, depth: depth + 1)
            try skipInts(size, depth: depth + 1)
        default: throw .damaged
        }
    }

    /// Planes(n).
    private mutating func skipPlanes(_ count: Int) throws(BlockProblem) {
        let width = try leaves.byte()
        guard width <= 8 else { throw .damaged }
        for _ in 0..<width { _ = try leaves.take(plane: count) }
    }

    /// Planes(n).
    private mutating func planes(
        _ picks: Picks, into values: Flat<UInt64>
    ) throws(BlockProblem) {
        let width = try leaves.byte()
        guard width <= 8 else { throw .damaged }
        try planes(Int(width), picks, into: values)
    }

    private mutating func planes(
        _ width: Int, _ picks: Picks, into values: Flat<UInt64>
    ) throws(BlockProblem) {
        values.fill(0)
        for byte in 0..<width {
            let plane = try plane(picks.count)
            let shift = UInt64(8 &* byte)
            for index in 0..<values.count {
                values[index] |= UInt64(plane[picks.place(index)]) &<< shift
            }
        }
    }

    /// Planes(n) of indices below `end`.
    mutating func indices(
        _ picks: Picks, below end: Int
    ) throws(BlockProblem) -> Flat<UInt64> {
        guard picks.places != nil else { return try indices(picks.count, below: end) }
        let found: Flat<UInt64> = try arena.flat(picks.size)
        try planes(picks, into: found)
        for index in 0..<found.count {
            guard found[index] < UInt64(end) else { throw .damaged }
        }
        return found
    }

    /// Doubles at these places.
    mutating func doubles(
        _ picks: Picks, bytes: Int, depth: Int
    ) throws(BlockProblem) -> Flat<UInt64> {
        guard picks.places != nil else {
            return try doubles(picks.count, bytes: bytes, depth: depth)
        }
        try leaves.takeValues(picks.count, depth: depth)
        if picks.count == 0 { return try arena.flat(0) }
        switch try leaves.byte() {
        case DoublesCodec.planes:
            let values: Flat<UInt64> = try arena.flat(picks.size)
            if picks.isNone {
                for _ in 0..<bytes { _ = try leaves.take(plane: picks.count) }
            } else {
                try planes(bytes, picks, into: values)
            }
            return values
        case DoublesCodec.decimal:
            let power = try leaves.byte()
            guard power <= 9 else { throw .damaged }
            let values = try ints(picks, depth: depth + 1)
            try decimals(values, power, bytes)
            return values
        case DoublesCodec.words: return try ints(picks, depth: depth + 1)
        default: throw .damaged
        }
    }

    // MARK: strings

    /// Steps over a column of strings.
    mutating func skipStrings(_ count: Int, depth: Int) throws(BlockProblem) {
        try leaves.takeValues(count, depth: depth)
        if count == 0 { return }
        switch try leaves.byte() {
        case StringsCodec.const, StringsCodec.lines: _ = try leaves.takeText()
        case StringsCodec.sized, StringsCodec.sizedLines:
            try skipInts(count, depth: depth + 1)
            _ = try leaves.takeText()
        case StringsCodec.dictionary:
            _ = try leaves.byte()
            let size = try leaves.count(count)
            try skipPlanes(count)
            try skipStrings(size, depth: depth + 1)
        case StringsCodec.templates:
            let none: Flat<UInt32> = try arena.flat(0)
            try templates(try arena.flat(0), Picks(none, of: count), depth)
        case StringsCodec.int: try skipInts(count, depth: depth + 1)
        case StringsCodec.digits:
            _ = try leaves.byte()
            try skipInts(count, depth: depth + 1)
        case StringsCodec.decimal:
            try skipInts(count, depth: depth + 1)
            try skipInts(count, depth: depth + 1)
        case StringsCodec.hex:
            _ = try leaves.byte()
            let pattern = try textLeaf()
            guard pattern.count <= 255 else { throw .damaged }
            _ = try leaves.take(plane: (pattern.lowBytes(below: 1) + 1) / 2 &* count)
        case StringsCodec.fixed:
            _ = try leaves.take(plane: Int(try leaves.byte()) &* count)
        default: throw .damaged
        }
    }

    /// Returns which entries of a dictionary the indices name, and replaces each index with that of
    /// its entry among them.
    mutating func distinct(
        _ chosen: Flat<UInt64>, below size: Int
    ) throws(BlockProblem) -> Picks {
        let numbers: Flat<UInt32> = try arena.flat(size, of: 0)
        var found = 0
        for index in 0..<chosen.count {
            let entry = Int(truncatingIfNeeded: chosen[index])
            found &+= numbers[entry] == 0 ? 1 : 0
            numbers[entry] = 1
        }
        let places: Flat<UInt32> = try arena.flat(found)
        found = 0
        for entry in 0..<size where numbers[entry] != 0 {
            places[found] = UInt32(entry)
            numbers[entry] = UInt32(found)
            found &+= 1
        }
        for index in 0..<chosen.count {
            chosen[index] = UInt64(numbers[Int(truncatingIfNeeded: chosen[index])])
        }
        return Picks(places, of: size)
    }
}
