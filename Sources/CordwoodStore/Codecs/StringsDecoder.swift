// Reads Strings of FORMAT §11.9. Values are slices of leaves if the leaf contains them, and of the
// arena if they are made. Part of one decoder.
// SAFETY: output is measured and counted before it is made; every write stays in the room allocated
// for it.

import CordwoodCore

extension BlockDecoder {
    mutating func strings(_ count: Int, depth: Int) throws(BlockProblem) -> Flat<Slice> {
        try strings(Picks(all: count), depth: depth)
    }

    /// The strings at these places.
    mutating func strings(_ picks: Picks, depth: Int) throws(BlockProblem) -> Flat<Slice> {
        if picks.isNone {
            try skipStrings(picks.count, depth: depth)
            return try arena.flat(0)
        }
        try leaves.takeValues(picks.count, depth: depth)
        let values: Flat<Slice> = try arena.flat(picks.size)
        switch try leaves.byte() {
        case StringsCodec.const: values.fill(try textLeaf())
        case StringsCodec.lines: try lines(values, picks)
        case StringsCodec.sized: try sized(values, picks, depth, after: 0)
        case StringsCodec.sizedLines: try sized(values, picks, depth, after: 1)
        case StringsCodec.dictionary: try dictionary(values, picks, depth)
        case StringsCodec.templates: try templates(values, picks, depth)
        case StringsCodec.int: try decimalInts(values, picks, depth)
        case StringsCodec.digits: try digits(values, picks, depth)
        case StringsCodec.decimal: try decimals(values, picks, depth)
        case StringsCodec.hex: try hex(values, picks)
        case StringsCodec.fixed: try fixed(values, picks)
        default: throw .damaged
        }
        return values
    }

    private mutating func lines(
        _ values: Flat<Slice>, _ picks: Picks
    ) throws(BlockProblem) {
        let text = try textLeaf()
        guard var at = unsafe text.start else { throw .damaged }
        let end = unsafe at + text.count
        var line = 0
        for index in 0..<values.count {
            let wanted = picks.place(index)
            while true {
                guard let newline = unsafe Memory.find(0x0A, in: at, end - at) else {
                    throw .damaged
                }
                let start = unsafe at
                unsafe at = newline + 1
                line &+= 1
                if line > wanted {
                    values[index] = unsafe Slice(start: start, count: newline - start)
                    break
                }
            }
        }
        guard unsafe picks.places != nil || at == end else { throw .damaged }
    }

    /// `after`: newlines after each value.
    private mutating func sized(
        _ values: Flat<Slice>, _ picks: Picks, _ depth: Int, after newlines: Int
    ) throws(BlockProblem) {
        let lengths = try ints(picks.count, depth: depth + 1)
        let text = try textLeaf()
        var at = 0
        var number = 0
        for index in 0..<values.count {
            let wanted = picks.place(index)
            while true {
                let length = lengths[number]
                let left = text.count &- at &- newlines
                guard left >= 0, length <= UInt64(left) else { throw .damaged }
                let start = at
                at &+= Int(length)
                if newlines > 0, text[at] != 0x0A { throw .damaged }
                at &+= newlines
                number &+= 1
                if number > wanted {
                    values[index] = text.part(start, Int(length))
                    break
                }
            }
        }
        guard picks.places != nil || at == text.count else { throw .damaged }
    }

    private mutating func fixed(
        _ values: Flat<Slice>, _ picks: Picks
    ) throws(BlockProblem) {
        let size = Int(try leaves.byte())
        guard size > 0 else { throw .damaged }
        let plane = try plane(size &* picks.count)
        for index in 0..<values.count {
            values[index] = plane.part(picks.place(index) &* size, size)
        }
    }

    private mutating func dictionary(
        _ values: Flat<Slice>, _ picks: Picks, _ depth: Int
    ) throws(BlockProblem) {
        let mode = try leaves.byte()
        let size = try leaves.count(picks.count)
        guard mode <= 1, size > 0 else { throw .damaged }
        if picks.places == nil, leaves.next == 1 {
            return try dictionaryOfOctets(values, mode, size, depth)
        }
        let chosen: Flat<UInt64>
        if mode == 0 {
            chosen = try indices(picks, below: size)
        } else {
            let all = try indices(picks.count, below: size + 1)
            try Self.follow(all, size)
            chosen = try gather(all, picks)
        }
        let wanted = picks.places == nil ? Picks(all: size) : try distinct(chosen, below: size)
        let entries = try strings(wanted, depth: depth + 1)
        let (target, from, numbers) = unsafe (values.base, entries.base, chosen.base)
        for index in 0..<values.count {
            unsafe target[index] = from[Int(truncatingIfNeeded: numbers[index])]
        }
    }

    /// The same for all values, with one byte each.
    private mutating func dictionaryOfOctets(
        _ values: Flat<Slice>, _ mode: UInt8, _ size: Int, _ depth: Int
    ) throws(BlockProblem) {
        _ = try leaves.byte()
        let plane = try plane(values.count)
        guard plane.count == values.count, let start = unsafe plane.start else { throw .damaged }
        let numbers = unsafe start.assumingMemoryBound(to: UInt8.self)
        if mode == 0 {
            var most: UInt8 = 0
            for index in 0..<values.count { unsafe most = max(most, numbers[index]) }
            guard Int(most) < size else { throw .damaged }
        }
        let entries = try strings(size, depth: depth + 1)
        let (target, from) = unsafe (values.base, entries.base)
        if mode == 0 {
            for index in 0..<values.count { unsafe target[index] = from[Int(numbers[index])] }
            return
        }
        var named = 0
        for index in 0..<values.count {
            let back = unsafe Int(numbers[index])
            // 0 is the next one.
            let entry = named &- back
            guard UInt(bitPattern: entry) < UInt(bitPattern: size) else { throw .damaged }
            unsafe target[index] = from[entry]
            named &+= back == 0 ? 1 : 0
        }
        guard named == size else { throw .damaged }
    }

    /// Mode 1: turns distances into entries.
    private static func follow(_ chosen: Flat<UInt64>, _ size: Int) throws(BlockProblem) {
        var named: UInt64 = 0
        let entries = unsafe chosen.base
        for index in 0..<chosen.count {
            let back = unsafe entries[index]
            if back == 0 {
                guard named < UInt64(size) else { throw .damaged }
                unsafe entries[index] = named
                named &+= 1
            } else {
                guard back <= named else { throw .damaged }
                unsafe entries[index] = named &- back
            }
        }
        guard named == UInt64(size) else { throw .damaged }
    }

    private mutating func decimalInts(
        _ values: Flat<Slice>, _ picks: Picks, _ depth: Int
    ) throws(BlockProblem) {
        let numbers = try ints(picks, depth: depth + 1)
        guard let each = try all(from: numbers) else {
            let made = try printInts(numbers, values)
            return try leaves.takeMade(made)
        }
        let texts: Flat<Slice> = try arena.flat(each.count)
        _ = try printInts(each, texts)
        try choose(texts, numbers, from: each[0], values)
    }

    /// Returns the total size of the texts.
    private mutating func printInts(
        _ numbers: Flat<UInt64>, _ values: Flat<Slice>
    ) throws(BlockProblem) -> Int {
        var total = 0
        // The sizes are kept in the places of the strings.
        let (source, made) = unsafe (numbers.base, values.base)
        for index in 0..<values.count {
            let size = unsafe Decimals.size(source[index])
            unsafe made[index] = Slice(number: Int64(size))
            total &+= size
        }
        guard total <= leaves.madeLeft else { throw .damaged }
        var out = unsafe try arena.allocate(total)
        for index in 0..<values.count {
            let size = unsafe made[index].count
            unsafe Decimals.write(source[index], size: size, to: out)
            unsafe made[index] = Slice(start: out, count: size)
            unsafe out += size
        }
        return total
    }

    /// Every number from the least of these to the greatest, if they are near one another, so that
    /// each text is made only once. nil: they are not near.
    private mutating func all(from numbers: Flat<UInt64>) throws(BlockProblem) -> Flat<UInt64>? {
        let source = unsafe numbers.base
        guard numbers.count >= Self.nearLeast else { return nil }
        var (least, most) = (Int64.max, Int64.min)
        for index in 0..<numbers.count {
            let number = unsafe Int64(bitPattern: source[index])
            least = min(least, number)
            most = max(most, number)
        }
        let first = UInt64(bitPattern: least)
        let span = UInt64(bitPattern: most) &- first
        guard span < UInt64(numbers.count / Self.nearShare) else { return nil }
        let each: Flat<UInt64> = try arena.flat(Int(span) + 1)
        for index in 0..<each.count { each[index] = first &+ UInt64(index) }
        return each
    }

    private static let nearLeast = 64
    private static let nearShare = 4

    /// Selects the text of each number; `texts` begins with that of `first`. All of these count as
    /// made.
    /// SAFETY: `all` has looked at every number.
    private mutating func choose(
        _ texts: Flat<Slice>, _ numbers: Flat<UInt64>, from first: UInt64, _ values: Flat<Slice>
    ) throws(BlockProblem) {
        let (source, from, target) = unsafe (numbers.base, texts.base, values.base)
        var total = 0
        for index in 0..<values.count {
            let text = unsafe from[Int(truncatingIfNeeded: source[index] &- first)]
            unsafe target[index] = text
            total &+= text.count
        }
        try leaves.takeMade(total)
    }

    private mutating func digits(
        _ values: Flat<Slice>, _ picks: Picks, _ depth: Int
    ) throws(BlockProblem) {
        let size = Int(try leaves.byte())
        guard size >= 1, size <= 18 else { throw .damaged }
        let numbers = try ints(picks, depth: depth + 1)
        guard let each = try all(from: numbers) else {
            try leaves.takeMade(size &* values.count)
            return try printDigits(numbers, size, values)
        }
        let texts: Flat<Slice> = try arena.flat(each.count)
        try printDigits(each, size, texts)
        try choose(texts, numbers, from: each[0], values)
    }

    private mutating func printDigits(
        _ numbers: Flat<UInt64>, _ size: Int, _ values: Flat<Slice>
    ) throws(BlockProblem) {
        let end = Decimals.power(size)
        let out = unsafe try arena.allocate(size &* values.count)
        let (source, made) = unsafe (numbers.base, values.base)
        for index in 0..<values.count {
            let number = unsafe source[index]
            guard number < end else { throw .damaged }
            let start = unsafe out + index &* size
            unsafe Decimals.write(digits: number, size, to: start)
            unsafe made[index] = Slice(start: start, count: size)
        }
    }

    private mutating func decimals(
        _ values: Flat<Slice>, _ picks: Picks, _ depth: Int
    ) throws(BlockProblem) {
        let places = try ints(picks, depth: depth + 1)
        let numbers = try ints(picks, depth: depth + 1)
        var total = 0
        for index in 0..<values.count {
            guard places[index] <= 17 else { throw .damaged }
            total &+= Decimals.size(numbers[index], places: Int(places[index]))
        }
        var out = unsafe try room(total)
        for index in 0..<values.count {
            let start = unsafe out
            unsafe out = Decimals.write(numbers[index], places: Int(places[index]), to: out)
            values[index] = unsafe Slice(start: start, count: out - start)
        }
    }

    private mutating func hex(_ values: Flat<Slice>, _ picks: Picks) throws(BlockProblem) {
        let isUpper = try leaves.byte()
        let pattern = try textLeaf()
        guard isUpper <= 1, pattern.count >= 1, pattern.count <= 255 else { throw .damaged }
        let holes = pattern.lowBytes(below: 1)
        guard holes > 0 else { throw .damaged }
        let each = (holes + 1) / 2
        let plane = try plane(each &* picks.count)
        let size = pattern.count
        let out = unsafe try room(size &* values.count)
        let letters: UInt8 = isUpper == 1 ? 0x41 : 0x61
        for index in 0..<values.count {
            let start = unsafe out + index &* size
            let first = picks.place(index) &* each
            var hole = 0
            for place in 0..<size {
                var byte = pattern[place]
                if byte == 0 {
                    let pair = plane[first &+ hole &>> 1]
                    let half = hole & 1 == 0 ? pair &>> 4 : pair & 15
                    byte = half < 10 ? 0x30 &+ half : letters &+ (half &- 10)
                    hole &+= 1
                }
                unsafe start.storeBytes(of: byte, toByteOffset: place, as: UInt8.self)
            }
            if hole & 1 == 1, plane[first &+ hole &>> 1] & 15 != 0 { throw .damaged }
            values[index] = unsafe Slice(start: start, count: size)
        }
    }

    /// Room for bytes that are made; counts them.
    mutating func room(_ bytes: Int) throws(BlockProblem) -> UnsafeMutableRawPointer {
        try leaves.takeMade(bytes)
        return unsafe try arena.allocate(bytes)
    }
}

/// Numbers as decimal digits. Signed numbers are passed as their 64 bits.
enum Decimals {
    private static let powers: [UInt64] = (0...18).map { power in
        (0..<power).reduce(1) { product, _ in product * 10 }
    }

    /// 10^power, 0 … 18.
    static func power(_ power: Int) -> UInt64 { powers[min(max(power, 0), 18)] }

    @inline(__always) static func magnitude(_ bits: UInt64) -> UInt64 {
        Int64(bitPattern: bits) < 0 ? 0 &- bits : bits
    }

    /// The number of digits of an unsigned number, at least one.
    @inline(__always) static func digits(_ number: UInt64) -> Int {
        var rest = number
        var count = 1
        while rest >= 10_000 {
            rest /= 10_000
            count &+= 4
        }
        if rest >= 1_000 { return count &+ 3 }
        if rest >= 100 { return count &+ 2 }
        return rest >= 10 ? count &+ 1 : count
    }

    @inline(__always) static func size(_ bits: UInt64) -> Int {
        digits(magnitude(bits)) &+ (Int64(bitPattern: bits) < 0 ? 1 : 0)
    }

    static func size(_ bits: UInt64, places: Int) -> Int {
        if places == 0 { return size(bits) }
        return max(digits(magnitude(bits)), places &+ 1) &+ 1
            &+ (Int64(bitPattern: bits) < 0 ? 1 : 0)
    }

    /// SAFETY: the caller has room for `size`, which is `size(bits)`.
    @inline(__always) static func write(
        _ bits: UInt64, size: Int, to target: UnsafeMutableRawPointer
    ) {
        if Int64(bitPattern: bits) < 0 {
            unsafe target.storeBytes(of: 0x2D, as: UInt8.self)
            unsafe write(digits: 0 &- bits, size &- 1, to: target + 1)
        } else {
            unsafe write(digits: bits, size, to: target)
        }
    }

    /// SAFETY: as above.
    @inline(__always) static func write(
        digits number: UInt64, _ count: Int, to target: UnsafeMutableRawPointer
    ) {
        var rest = number
        var at = count
        while at > 1 {
            at &-= 2
            let next = rest / 100
            let pair = UInt32(truncatingIfNeeded: rest &- next &* 100)
            let tens = (pair &* 103) &>> 10
            let text = 0x3030 &+ tens &+ (pair &- tens &* 10) &<< 8
            unsafe target.storeBytes(
                of: UInt16(truncatingIfNeeded: text).littleEndian, toByteOffset: at,
                as: UInt16.self)
            rest = next
        }
        if at > 0 {
            unsafe target.storeBytes(
                of: UInt8(truncatingIfNeeded: 0x30 &+ rest % 10), toByteOffset: 0, as: UInt8.self)
        }
    }

    /// SAFETY: as above, for `size(bits, places:)`.
    static func write(
        _ bits: UInt64, places: Int, to target: UnsafeMutableRawPointer
    ) -> UnsafeMutableRawPointer {
        if places == 0 {
            let size = Self.size(bits)
            unsafe write(bits, size: size, to: target)
            return unsafe target + size
        }
        var out = unsafe target
        if Int64(bitPattern: bits) < 0 {
            unsafe out.storeBytes(of: 0x2D, as: UInt8.self)
            unsafe out += 1
        }
        let number = magnitude(bits)
        let count = max(digits(number), places &+ 1)
        let whole = number / power(places)
        unsafe write(digits: whole, count &- places, to: out)
        unsafe out += count &- places
        unsafe out.storeBytes(of: 0x2E, as: UInt8.self)
        unsafe write(digits: number % power(places), places, to: out + 1)
        return unsafe out + (1 &+ places)
    }
}
