// Writes Strings of FORMAT §11.9 with the first codec that fits, from the cheapest result to raw
// bytes. Part of one encoder.
// SAFETY: leaves are filled at once, in the room measured for them.

import CordwoodCore

/// What a column's values are likely to be; decides which codecs are tried.
enum StringKind {
    /// Whole messages.
    case line
    /// Text between quotes, or a string of a record.
    case quoted
    /// Strings of records as long as lines, some of which may be equal.
    case prose
    /// A run of letters, digits and the like that contains a digit.
    case run
    case digits
    case word
    /// Not text.
    case binary
    /// Bytes of records that contain text.
    case mixed
}

extension BlockEncoder {
    private static let tableLeast = 4
    static let templatesLeast = 4
    private static let templatesBytesLeast = 64

    /// `depth`: the number of templates around the column. `isList`: the entries of a dictionary.
    mutating func strings(
        _ values: Flat<Slice>, _ kind: StringKind, depth: Int = 0, isList: Bool = false
    ) throws(BlockProblem) {
        let count = values.count
        if count == 0 { return }
        var index = 1
        while index < count, values[index].isSame(values[0]) { index &+= 1 }
        if index >= count {
            out.meta.append(StringsCodec.const)
            return try out.text(values[0])
        }
        let mark = arena.mark
        defer { arena.release(to: mark) }
        if effort == .swift {
            if kind == .binary, try fixed(values) { return }
            return try sizedLines(values)
        }
        if kind != .line, kind != .binary, kind != .mixed, try numbers(values) { return }
        if kind != .line, !isList, count >= Self.tableLeast,
            try dictionary(values, kind, depth)
        {
            return
        }
        if kind == .binary {
            if try fixed(values) { return }
            return try raw(values)
        }
        if kind == .run || kind == .quoted || kind == .prose, try hex(values) { return }
        let isOuter = depth == 0 && (kind == .line || kind == .prose)
        if isOuter, sharing == .lines { return try raw(values) }
        if kind != .digits, kind != .word, kind != .mixed, depth < Self.templatesDepthMax,
            count >= Self.templatesLeast, Self.bytes(values) > Self.templatesBytesLeast
        {
            if try templates(values, kind, depth) { return }
            if kind == .quoted || kind == .prose, try templates(values, .run, depth) { return }
        }
        try raw(values)
    }

    static func bytes(_ values: Flat<Slice>) -> Int {
        var sum = 0
        for index in 0..<values.count { sum &+= values[index].count }
        return sum
    }

    private mutating func raw(_ values: Flat<Slice>) throws(BlockProblem) {
        var hasNewline = false
        for index in 0..<values.count where values[index].has(0x0A) { hasNewline = true }
        let bytes = Self.bytes(values)
        if hasNewline {
            out.meta.append(StringsCodec.sized)
            let lengths: Flat<UInt64> = try arena.flat(values.count)
            for index in 0..<values.count { lengths[index] = UInt64(values[index].count) }
            try ints(lengths)
        } else {
            out.meta.append(StringsCodec.lines)
        }
        var target = unsafe try out.text(bytes + (hasNewline ? 0 : values.count))
        for index in 0..<values.count {
            unsafe target = values[index].copy(to: target)
            if !hasNewline {
                unsafe target.storeBytes(of: 0x0A, as: UInt8.self)
                unsafe target += 1
            }
        }
    }

    private mutating func sizedLines(_ values: Flat<Slice>) throws(BlockProblem) {
        let lengths: Flat<UInt64> = try arena.flat(values.count)
        for index in 0..<values.count { lengths[index] = UInt64(values[index].count) }
        out.meta.append(StringsCodec.sizedLines)
        try ints(lengths)
        var target = unsafe try out.text(Self.bytes(values) + values.count)
        for index in 0..<values.count {
            unsafe target = values[index].copy(to: target)
            unsafe target.storeBytes(of: 0x0A, as: UInt8.self)
            unsafe target += 1
        }
    }

    /// `lines`: the values, a newline after each.
    mutating func sizedLines(
        _ lengths: Flat<UInt64>, _ lines: Slice
    ) throws(BlockProblem) {
        if lengths.count == 0 { return }
        out.meta.append(StringsCodec.sizedLines)
        try ints(lengths)
        try out.text(lines)
    }

    private mutating func fixed(_ values: Flat<Slice>) throws(BlockProblem) -> Bool {
        let size = values[0].count
        guard size >= 1, size <= 255 else { return false }
        for index in 0..<values.count where values[index].count != size { return false }
        out.meta.append(StringsCodec.fixed)
        out.meta.append(UInt8(size))
        var target = unsafe try out.plane(size * values.count)
        for index in 0..<values.count { unsafe target = values[index].copy(to: target) }
        return true
    }

    // MARK: numbers

    /// Tries the codecs int, digits and decimal.
    private mutating func numbers(_ values: Flat<Slice>) throws(BlockProblem) -> Bool {
        let first = values[0][0]
        guard first &- 0x30 < 10 || first == 0x2D else { return false }
        let found: Flat<UInt64> = try arena.flat(values.count)
        if Numeral.ints(values, found) {
            out.meta.append(StringsCodec.int)
            try ints(found)
            return true
        }
        let size = values[0].count
        if size <= 18, Self.all(values, found, { Numeral.digits($0, size) }) {
            out.meta.append(StringsCodec.digits)
            out.meta.append(UInt8(size))
            try ints(found)
            return true
        }
        let places = Numeral.places(values[0])
        guard places > 0, Self.all(values, found, { Numeral.decimal($0, places) }) else {
            return false
        }
        out.meta.append(StringsCodec.decimal)
        out.meta.append(IntsCodec.const)
        out.meta.append(zigzag: UInt64(places))
        try ints(found)
        return true
    }

    private static func all(
        _ values: Flat<Slice>, _ found: Flat<UInt64>, _ read: (Slice) -> UInt64?
    ) -> Bool {
        for index in 0..<values.count {
            guard let number = read(values[index]) else { return false }
            found[index] = number
        }
        return true
    }

    // MARK: dictionary

    private mutating func dictionary(
        _ values: Flat<Slice>, _ kind: StringKind, _ depth: Int
    ) throws(BlockProblem) -> Bool {
        let count = values.count
        let chosen: Flat<UInt64> = try arena.flat(count)
        var table = try SliceTable(limit: count * 3 / 4, seed: seed, &arena)
        for index in 0..<count {
            // Often equal to the one before, which is cheaper to see than to look up.
            if index > 0, values[index].isSame(values[index &- 1]) {
                chosen[index] = chosen[index &- 1]
                continue
            }
            guard let found = try table.index(values[index], &arena) else { return false }
            chosen[index] = UInt64(found)
        }
        let size = table.count
        // The repeated values have at least one byte each.
        guard size < count, (count - size) * Self.bytes(values) > count * count else {
            return false
        }
        out.meta.append(StringsCodec.dictionary)
        // By recency.
        let recent: Flat<UInt64> = try arena.flat(count)
        // By frequency.
        let uses: Flat<UInt64> = try arena.flat(size, of: 0)
        // SAFETY: the table's indices are below its count.
        let (numbers, distances, counts) = unsafe (chosen.base, recent.base, uses.base)
        var newest: UInt64 = 0
        var farthest: UInt64 = 0
        for index in 0..<count {
            let number = unsafe numbers[index]
            // 0 is the next one.
            let distance = newest &- number
            unsafe distances[index] = distance
            newest &+= distance == 0 ? 1 : 0
            farthest = max(farthest, distance)
            unsafe counts[Int(truncatingIfNeeded: number)] &+= 1
        }
        // The most frequent one first, of equally frequent ones the first. Both numbers are below
        // 2^32.
        let order: Flat<UInt64> = try arena.flat(size)
        for index in 0..<size {
            order[index] = (UInt64(UInt32.max) &- uses[index]) &<< 32 | UInt64(index)
        }
        order.sort { $0 < $1 }
        let ranks: Flat<UInt64> = try arena.flat(size)
        for index in 0..<size {
            order[index] &= UInt64(UInt32.max)
            ranks[Int(order[index])] = UInt64(index)
        }
        let places = unsafe ranks.base
        for index in 0..<count {
            unsafe numbers[index] = places[Int(truncatingIfNeeded: numbers[index])]
        }

        let width = Self.width(UInt64(size - 1))
        let recentWidth = Self.width(farthest)
        let cost = try planesCost(chosen, width, of: count)
        let isRecent = try planesCost(recent, recentWidth, of: count, below: cost) < cost
        out.meta.append(isRecent ? 1 : 0)
        out.meta.append(varint: UInt64(size))
        let entries: Flat<Slice> = try arena.flat(size)
        for index in 0..<size {
            entries[index] = table.entries[isRecent ? index : Int(order[index])]
        }
        try planes(isRecent ? recent : chosen, isRecent ? recentWidth : width)
        try strings(entries, kind, depth: depth, isList: true)
        return true
    }

    // MARK: hex

    /// False: a run of letters that are not all of a hex number may include a hex digit, which a
    /// search would not find in the text (FORMAT §11.6, bit 0 of the flags).
    private static func keepsLetters(_ pattern: Slice) -> Bool {
        var hasHole = false
        var isOther = false
        for place in 0..<pattern.count {
            let byte = pattern[place]
            let lower = byte | 0x20
            if byte == 0 {
                hasHole = true
            } else if lower >= 0x61, lower <= 0x7A {
                if lower > 0x66, lower != 0x78 { isOther = true }
            } else {
                (hasHole, isOther) = (false, false)
            }
            if hasHole, isOther { return false }
        }
        return true
    }

    private mutating func hex(_ values: Flat<Slice>) throws(BlockProblem) -> Bool {
        let size = values[0].count
        guard size >= 4, size <= 80 else { return false }
        let pattern: Flat<UInt8> = try arena.flat(size)
        for place in 0..<size { pattern[place] = values[0][place] }
        for index in 0..<values.count {
            let value = values[index]
            guard value.count == size else { return false }
            for place in 0..<size where value[place] != values[0][place] { pattern[place] = 0 }
        }
        var holes = 0
        for place in 0..<size {
            if pattern[place] == 0 { holes += 1 }
            if values[0][place] == 0 { return false }
        }
        guard holes >= 4, Self.keepsLetters(unsafe Slice(start: pattern.base, count: size)) else {
            return false
        }
        var isLower = false
        var isUpper = false
        for index in 0..<values.count {
            for place in 0..<size where pattern[place] == 0 {
                switch values[index][place] {
                case 0x30...0x39: break
                case 0x61...0x66: isLower = true
                case 0x41...0x46: isUpper = true
                default: return false
                }
            }
        }
        guard isLower != isUpper else { return false }
        out.meta.append(StringsCodec.hex)
        out.meta.append(isUpper ? 1 : 0)
        try out.text(unsafe Slice(start: pattern.base, count: size))
        let each = (holes + 1) / 2
        let room = unsafe try out.plane(each * values.count)
        let target = unsafe room.assumingMemoryBound(to: UInt8.self)
        for index in 0..<values.count {
            var hole = 0
            for place in 0..<size where pattern[place] == 0 {
                let byte = values[index][place]
                let half = byte < 0x40 ? byte &- 0x30 : (byte | 0x20) &- 0x57
                let at = index &* each &+ hole &>> 1
                if hole & 1 == 0 {
                    unsafe target[at] = half &<< 4
                } else {
                    unsafe target[at] |= half
                }
                hole &+= 1
            }
        }
        return true
    }
}

/// Numbers that print as they were read.
enum Numeral {
    /// Reads all values if they are canonical: no leading zeros, no `-0`, at most 18 digits. As 64
    /// bits.
    static func ints(_ values: Flat<Slice>, _ found: Flat<UInt64>) -> Bool {
        let (source, target) = unsafe (values.base, found.base)
        for index in 0..<values.count {
            let text = unsafe source[index]
            guard let start = unsafe text.start, text.count > 0 else { return false }
            let bytes = unsafe start.assumingMemoryBound(to: UInt8.self)
            let sign = unsafe bytes[0] == 0x2D ? 1 : 0
            let size = text.count &- sign
            guard size >= 1, size <= 18 else { return false }
            let first = unsafe bytes[sign] &- 0x30
            guard first < 10, first != 0 || text.count == 1 else { return false }
            var number = UInt64(first)
            var at = sign &+ 1
            while at < text.count {
                let digit = unsafe bytes[at] &- 0x30
                guard digit < 10 else { return false }
                number = number &* 10 &+ UInt64(digit)
                at &+= 1
            }
            unsafe target[index] = sign == 1 ? 0 &- number : number
        }
        return true
    }

    static func digits(_ text: Slice, _ size: Int) -> UInt64? {
        text.count == size ? read(text, 0, size) : nil
    }

    /// Digits after the only point; 0: no point.
    static func places(_ text: Slice) -> Int {
        for index in 0..<text.count where text[index] == 0x2E { return text.count - 1 - index }
        return 0
    }

    /// Canonical likewise, with so many digits after the point: the number without the point.
    static func decimal(_ text: Slice, _ places: Int) -> UInt64? {
        let isNegative = text[0] == 0x2D
        let start = isNegative ? 1 : 0
        let point = text.count - 1 - places
        let whole = point - start
        guard places <= 17, whole >= 1, whole + places <= 18, text[point] == 0x2E,
            text[start] != 0x30 || whole == 1, let high = read(text, start, point),
            let low = read(text, point + 1, text.count)
        else { return nil }
        let number = high * Decimals.power(places) + low
        if isNegative, number == 0 { return nil }
        return isNegative ? 0 &- number : number
    }

    /// At most 18 digits and nothing else.
    private static func read(_ text: Slice, _ from: Int, _ to: Int) -> UInt64? {
        guard let start = unsafe text.start, from >= 0, to <= text.count else { return nil }
        let bytes = unsafe start.assumingMemoryBound(to: UInt8.self)
        var number: UInt64 = 0
        var index = from
        while index < to {
            let digit = unsafe bytes[index] &- 0x30
            guard digit < 10 else { return nil }
            number = number &* 10 &+ UInt64(digit)
            index &+= 1
        }
        return number
    }
}
