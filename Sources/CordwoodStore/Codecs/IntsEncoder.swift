// Writes Ints and Doubles of FORMAT §11.8: each codec's cost is estimated on values from the middle
// of the column, and the cheapest is chosen. Large columns of small archives are measured. A wrong
// estimate costs bytes and nothing else. Part of one encoder.
// SAFETY: a plane has as many bytes as the column has values, and so have columns made of it.

import CordwoodCore

extension BlockEncoder {
    /// The number of values in an estimate.
    private static let sample = 1_024
    /// The cost of a plane besides its content, in bits.
    private static let planeCost = 40.0
    private static let dictionaryLeast = 32
    private static let bucketsLeast = 64
    private static let slopesLeast = 16
    private static let runsLeast = 64
    /// Average run length from which runs are stored as such.
    private static let runMean = 8

    /// All values as 64 bits. `isList`: another Ints refers to them.
    mutating func ints(_ values: Flat<UInt64>, isList: Bool = false) throws(BlockProblem) {
        let count = values.count
        if count == 0 { return }
        let source = unsafe UnsafePointer(values.base)
        let first = unsafe source[0]
        var differing: UInt64 = 0
        for place in 0..<count { unsafe differing |= source[place] ^ first }
        if differing == 0 {
            out.meta.append(IntsCodec.const)
            out.meta.append(zigzag: first)
            return
        }
        let mark = arena.mark
        defer { arena.release(to: mark) }
        if effort == .swift { return try swiftInts(values, Self.width(differing)) }
        if !isList, count >= Self.runsLeast {
            var runs = 1
            for place in 1..<count { unsafe runs &+= source[place] != source[place &- 1] ? 1 : 0 }
            if runs &* Self.runMean <= count { return try self.runs(values, runs) }
        }
        let (base, offsetWidth) = Self.offsets(values)
        let deltaWidth = Self.width(Self.bits(values, 1, Self.step))
        // What each codec would store of the values that an estimate looks at.
        let size = packer.isThorough ? count : min(count, Self.sample)
        let start = (count - size) / 2
        let shown: Flat<UInt64> = try arena.flat(size)
        Self.fill(shown, values, from: start, 0) { unsafe $0.base[$1] &- base }
        var codec = IntsCodec.offset
        var cost = try planesCost(shown, offsetWidth, of: count)
        func take(_ other: UInt8, _ otherCost: Double) {
            if otherCost < cost {
                codec = other
                cost = otherCost
            }
        }
        let isLong = count >= Self.bucketsLeast
        let offsetBuckets =
            isLong && offsetWidth > 1 ? try bucketsCost(shown, of: count) : .infinity
        Self.fill(shown, values, from: start, 1, Self.step)
        take(IntsCodec.delta, try planesCost(shown, deltaWidth, of: count, below: cost))
        let deltaBuckets =
            isLong && deltaWidth > 1 ? try bucketsCost(shown, of: count) : .infinity
        let slopeWidth =
            count >= Self.slopesLeast && deltaWidth > 1
            ? Self.width(Self.bits(values, 2, Self.slope)) : deltaWidth
        if slopeWidth < deltaWidth {
            Self.fill(shown, values, from: start, 2, Self.slope)
            take(IntsCodec.slope, try planesCost(shown, slopeWidth, of: count, below: cost))
        }
        let dictionary =
            isList || offsetWidth < 2 || count < Self.dictionaryLeast
            ? nil : try intDictionary(values)
        if let dictionary {
            let entries = Double(dictionary.entries.count * offsetWidth) * 8 * 0.7
            let width = Self.width(UInt64(dictionary.entries.count - 1))
            take(
                IntsCodec.dictionary,
                try planesCost(dictionary.chosen, width, of: count, below: cost) + entries)
        }
        take(IntsCodec.logOffset, offsetBuckets)
        take(IntsCodec.logDelta, deltaBuckets)

        out.meta.append(codec)
        if codec == IntsCodec.dictionary, let dictionary {
            out.meta.append(varint: UInt64(dictionary.entries.count))
            try ints(dictionary.entries, isList: true)
            return try indices(dictionary.chosen, below: dictionary.entries.count)
        }
        let isOffset = codec == IntsCodec.offset || codec == IntsCodec.logOffset
        out.meta.append(zigzag: isOffset ? base : first)
        if codec == IntsCodec.offset { return try planes(values, offsetWidth, above: base) }
        let all: Flat<UInt64> = try arena.flat(count)
        if codec == IntsCodec.slope {
            out.meta.append(zigzag: values[1] &- first)
            Self.fill(all, values, from: 0, 2, Self.slope)
            return try planes(all, slopeWidth)
        }
        if codec == IntsCodec.logOffset {
            Self.fill(all, values, from: 0, 0) { unsafe $0.base[$1] &- base }
        } else {
            Self.fill(all, values, from: 0, 1, Self.step)
        }
        if codec == IntsCodec.delta { return try planes(all, deltaWidth) }
        try buckets(all)
    }

    /// One look: the narrower of offset and delta. `width`: the bytes in which values differ.
    private mutating func swiftInts(
        _ values: Flat<UInt64>, _ width: Int
    ) throws(BlockProblem) {
        var (base, width) = (values[0] & ~0xFF, width)
        if width > 1 {
            (base, width) = Self.offsets(values)
            let stepWidth = Self.width(Self.bits(values, 1, Self.step))
            if stepWidth < width {
                let steps: Flat<UInt64> = try arena.flat(values.count)
                Self.fill(steps, values, from: 0, 1, Self.step)
                out.meta.append(IntsCodec.delta)
                out.meta.append(zigzag: values[0])
                return try planes(steps, stepWidth)
            }
        }
        out.meta.append(IntsCodec.offset)
        out.meta.append(zigzag: base)
        try planes(values, width, above: base)
    }

    /// The least of them, as signed numbers, and the bytes that hold how far others are above it.
    private static func offsets(_ values: Flat<UInt64>) -> (base: UInt64, width: Int) {
        let source = unsafe UnsafePointer(values.base)
        var least = unsafe Int64(bitPattern: source[0])
        var most = least
        for place in 0..<values.count {
            let value = unsafe Int64(bitPattern: source[place])
            least = min(least, value)
            most = max(most, value)
        }
        let base = UInt64(bitPattern: least)
        return (base, width(UInt64(bitPattern: most) &- base))
    }

    /// What codec delta stores at a place, which is not the first.
    @inline(__always)
    private static func step(_ values: Flat<UInt64>, _ place: Int) -> UInt64 {
        let source = unsafe values.base + place
        return unsafe Zigzag.coded(source[0] &- source[-1])
    }

    /// What codec slope stores at a place behind the first two.
    @inline(__always)
    private static func slope(_ values: Flat<UInt64>, _ place: Int) -> UInt64 {
        let source = unsafe values.base + place
        return unsafe Zigzag.coded((source[0] &- source[-1]) &- (source[-1] &- source[-2]))
    }

    /// All bits of what `code` makes of the values from place `lead` on.
    @inline(__always)
    private static func bits(
        _ values: Flat<UInt64>, _ lead: Int, _ code: (Flat<UInt64>, Int) -> UInt64
    ) -> UInt64 {
        var bits: UInt64 = 0
        for place in lead..<max(values.count, lead) { bits |= code(values, place) }
        return bits
    }

    /// Fills `target` with what `code` makes of the values from `start` on, or 0 before `lead`.
    @inline(__always)
    private static func fill(
        _ target: Flat<UInt64>, _ values: Flat<UInt64>, from start: Int, _ lead: Int,
        _ code: (Flat<UInt64>, Int) -> UInt64
    ) {
        let made = unsafe target.base
        let size = min(target.count, values.count - start)
        let zeros = min(max(lead - start, 0), size)
        for index in 0..<zeros { unsafe made[index] = 0 }
        for index in zeros..<size { unsafe made[index] = code(values, start &+ index) }
    }

    private mutating func runs(_ values: Flat<UInt64>, _ count: Int) throws(BlockProblem) {
        let kinds: Flat<UInt64> = try arena.flat(count)
        let lengths: Flat<UInt64> = try arena.flat(count)
        var run = -1
        for index in 0..<values.count {
            if index == 0 || values[index] != values[index &- 1] {
                run &+= 1
                kinds[run] = values[index]
                lengths[run] = 0
            }
            lengths[run] &+= 1
        }
        out.meta.append(IntsCodec.runs)
        out.meta.append(varint: UInt64(count))
        try ints(kinds, isList: true)
        try ints(lengths, isList: true)
    }

    /// The bytes needed to hold the number.
    static func width(_ number: UInt64) -> Int { (71 - number.leadingZeroBitCount) / 8 }

    /// Planes(n) of numbers of at most `width` bytes above `base`.
    mutating func planes(
        _ values: Flat<UInt64>, _ width: Int, above base: UInt64 = 0
    ) throws(BlockProblem) {
        out.meta.append(UInt8(width))
        try bareplanes(values, width, above: base)
    }

    private mutating func bareplanes(
        _ values: Flat<UInt64>, _ width: Int, above base: UInt64 = 0
    ) throws(BlockProblem) {
        let (source, count) = unsafe (UnsafePointer(values.base), values.count)
        for byte in 0..<width {
            let plane = unsafe try out.plane(count).assumingMemoryBound(to: UInt8.self)
            let shift = UInt64(8 &* byte)
            for index in 0..<count {
                unsafe plane[index] = UInt8(truncatingIfNeeded: (source[index] &- base) &>> shift)
            }
        }
    }

    /// Planes(n) of indices below `end`.
    mutating func indices(_ values: Flat<UInt64>, below end: Int) throws(BlockProblem) {
        try planes(values, Self.width(UInt64(max(end, 1) - 1)))
    }

    private mutating func intDictionary(
        _ values: Flat<UInt64>
    ) throws(BlockProblem) -> (entries: Flat<UInt64>, chosen: Flat<UInt64>)? {
        let count = values.count
        var size = 64
        while size < count &* 2 { size &*= 2 }
        let slots: Flat<UInt32> = try arena.flat(size, of: 0)
        let entries: Flat<UInt64> = try arena.flat(count / 2)
        let chosen: Flat<UInt64> = try arena.flat(count)
        var found = 0
        for index in 0..<count {
            let hash = SliceTable.mixed(values[index] ^ seed, 0xD6E8_FEB8_6659_FD93)
            var slot = Int(truncatingIfNeeded: hash) & (size &- 1)
            while slots[slot] != 0, entries[Int(slots[slot]) &- 1] != values[index] {
                slot = (slot &+ 1) & (size &- 1)
            }
            if slots[slot] == 0 {
                guard found < entries.count else { return nil }
                entries[found] = values[index]
                found &+= 1
                slots[slot] = UInt32(found)
            }
            chosen[index] = UInt64(slots[slot]) &- 1
        }
        // Sorted as signed numbers, so that the entries have small differences.
        let order: Flat<IntEntry> = try arena.flat(found)
        for index in 0..<found {
            order[index] = IntEntry(value: Int64(bitPattern: entries[index]), index: index)
        }
        order.sort { $0.value < $1.value }
        let ranks: Flat<UInt64> = try arena.flat(found)
        for index in 0..<found {
            entries[index] = UInt64(bitPattern: order[index].value)
            ranks[order[index].index] = UInt64(index)
        }
        // SAFETY: all of them are below the number of entries.
        let (places, numbers) = unsafe (ranks.base, chosen.base)
        for index in 0..<count {
            unsafe numbers[index] = places[Int(truncatingIfNeeded: numbers[index])]
        }
        return (entries.prefix(found), chosen)
    }

    /// Buckets(n).
    private mutating func buckets(_ values: Flat<UInt64>) throws(BlockProblem) {
        let count = values.count
        let symbols = unsafe try out.plane(count).assumingMemoryBound(to: UInt8.self)
        var total = 0
        for index in 0..<count {
            let symbol = LogBucket.symbol(values[index])
            unsafe symbols[index] = symbol
            total &+= LogBucket.bits(symbol)
        }
        let size = (total &+ 7) / 8
        out.meta.append(varint: UInt64(size))
        let bits = unsafe try out.plane(size).assumingMemoryBound(to: UInt8.self)
        var at = 0
        var held: UInt64 = 0
        var heldBits = 0
        func put(_ number: UInt64, _ wanted: Int) {
            held |= (number & ((1 &<< UInt64(wanted)) &- 1)) &<< UInt64(heldBits)
            heldBits &+= wanted
            while heldBits >= 8 {
                unsafe bits[at] = UInt8(truncatingIfNeeded: held)
                at &+= 1
                held &>>= 8
                heldBits &-= 8
            }
        }
        for index in 0..<count {
            let wanted = LogBucket.bits(LogBucket.symbol(values[index]))
            if wanted > 32 {
                put(values[index], 32)
                put(values[index] &>> 32, wanted &- 32)
            } else if wanted > 0 {
                put(values[index], wanted)
            }
        }
        if heldBits > 0 { unsafe bits[at] = UInt8(truncatingIfNeeded: held) }
    }

    // MARK: estimates, in bits

    /// Each plane by the entropy of its bytes; runs are nearly free. `values`: all, or a sample of
    /// `count`. `most`: costs above this need not be exact.
    mutating func planesCost(
        _ values: Flat<UInt64>, _ width: Int, of count: Int, below most: Double = .infinity
    ) throws(BlockProblem) -> Double {
        let mark = arena.mark
        defer { arena.release(to: mark) }
        if isMeasured(values) {
            var cost = 0.0
            for byte in 0..<width where cost <= most {
                cost += try packedBits(values, shift: UInt64(8 &* byte))
            }
            return cost
        }
        var all = try Histogram(&arena)
        var heads = try Histogram(&arena)
        let size = min(values.count, Self.sample)
        let start = (values.count - size) / 2
        let source = unsafe values.base + start
        var bits = 0.0
        var cost = 0.0
        for byte in 0..<width where cost <= most {
            let shift = UInt64(8 &* byte)
            var last = -1
            for index in 0..<size {
                let value = unsafe Int(source[index] &>> shift & 0xFF)
                all.add(value)
                if value != last { heads.add(value) }
                last = value
            }
            let changes = heads.size
            let flags = Logs.bits(size, of: changes) + Logs.bits(size, of: size - changes)
            bits += min(heads.takeBits() + flags, all.takeBits())
            cost =
                bits * Double(count) / Double(max(size, 1))
                + Double(byte + 1) * Self.planeCost
        }
        return cost
    }

    /// Whether its planes are compressed for the estimate: entropy does not show repeated runs of
    /// bytes.
    private func isMeasured(_ values: Flat<UInt64>) -> Bool {
        packer.isThorough && values.count >= BlockPacker.planeBytes
    }

    /// The size of a plane as a frame.
    private mutating func packedBits(
        _ values: Flat<UInt64>, shift: UInt64
    ) throws(BlockProblem) -> Double {
        let mark = arena.mark
        defer { arena.release(to: mark) }
        let plane: Flat<UInt8> = try arena.flat(values.count)
        for index in 0..<values.count {
            plane[index] = UInt8(truncatingIfNeeded: values[index] &>> shift)
        }
        let content = unsafe Slice(start: UnsafeRawPointer(plane.base), count: plane.count)
        return Double(try packer.planeBytes(content) * 8) + Self.planeCost
    }

    private mutating func bucketsCost(
        _ values: Flat<UInt64>, of count: Int
    ) throws(BlockProblem) -> Double {
        let mark = arena.mark
        defer { arena.release(to: mark) }
        if isMeasured(values) {
            let kinds: Flat<UInt64> = try arena.flat(values.count)
            var raw = 0
            for index in 0..<values.count {
                let symbol = LogBucket.symbol(values[index])
                kinds[index] = UInt64(symbol)
                raw &+= LogBucket.bits(symbol)
            }
            return Double(raw) + Self.planeCost + (try packedBits(kinds, shift: 0))
        }
        var symbols = try Histogram(&arena)
        let size = min(values.count, Self.sample)
        let start = (values.count - size) / 2
        var raw = 0
        for index in start..<start + size {
            let symbol = LogBucket.symbol(values[index])
            symbols.add(Int(symbol))
            raw &+= LogBucket.bits(symbol)
        }
        return (Double(raw) + symbols.takeBits()) * Double(count)
            / Double(max(size, 1)) + 2 * Self.planeCost
    }

    // MARK: Doubles

    /// Numbers of 8 or 4 bytes, as their bits.
    mutating func doubles(_ values: Flat<UInt64>, bytes: Int) throws(BlockProblem) {
        let count = values.count
        if count == 0 { return }
        let mark = arena.mark
        defer { arena.release(to: mark) }
        let digits: Flat<UInt64> = try arena.flat(count)
        if effort == .swift {
            out.meta.append(DoublesCodec.planes)
            return try bareplanes(values, bytes)
        }
        for power in 0...9 where Self.scale(values, power, bytes, digits) {
            out.meta.append(DoublesCodec.decimal)
            out.meta.append(UInt8(power))
            return try ints(digits)
        }
        if count >= Self.dictionaryLeast, try intDictionary(values) != nil {
            out.meta.append(DoublesCodec.words)
            return try ints(values)
        }
        out.meta.append(DoublesCodec.planes)
        try bareplanes(values, bytes)
    }

    /// True if each value is exactly the quotient of its digits and 10^power.
    private static func scale(
        _ values: Flat<UInt64>, _ power: Int, _ bytes: Int, _ digits: Flat<UInt64>
    ) -> Bool {
        let scale = Double(Decimals.power(power))
        for index in 0..<values.count {
            let bits = values[index]
            let number =
                bytes == 8
                ? Double(bitPattern: bits)
                : Double(Float(bitPattern: UInt32(truncatingIfNeeded: bits)))
            let scaled = (number * scale).rounded()
            guard scaled.magnitude <= 9e15 else { return false }
            let digit = Int64(scaled)
            let again = Double(digit) / scale
            let same =
                bytes == 8
                ? again.bitPattern == bits : UInt64(Float(again).bitPattern) == bits
            guard same else { return false }
            digits[index] = UInt64(bitPattern: digit)
        }
        return true
    }
}

private struct IntEntry: BitwiseCopyable {
    var value: Int64
    var index: Int
}

/// The frequency of each of 256 symbols.
/// SAFETY: counts and kinds have an entry for each symbol.
private struct Histogram {
    private let counts: Flat<UInt32>
    /// The symbols that occur: most columns have few, and many columns are short.
    private let kinds: Flat<UInt8>
    private var kindCount = 0
    private(set) var size = 0

    init(_ arena: inout Arena) throws(BlockProblem) {
        counts = try arena.flat(256, of: 0)
        kinds = try arena.flat(256)
    }

    /// 0 … 255.
    @inline(__always) mutating func add(_ symbol: Int) {
        let count = unsafe counts.base[symbol]
        if count == 0 {
            unsafe kinds.base[kindCount] = UInt8(truncatingIfNeeded: symbol)
            kindCount &+= 1
        }
        unsafe counts.base[symbol] = count &+ 1
        size &+= 1
    }

    /// The entropy of all symbols, in bits; empties it.
    mutating func takeBits() -> Double {
        var bits = 0.0
        for index in 0..<kindCount {
            let symbol = Int(kinds[index])
            bits += Logs.bits(size, of: Int(counts[symbol]))
            counts[symbol] = 0
        }
        kindCount = 0
        size = 0
        return bits
    }
}

/// Logarithms of small numbers, without a math library.
enum Logs {
    /// Of 0 … 1,024, to base 2; that of 0 is 0.
    private static let table: [Double] = (0...1_024).map { number in
        if number < 2 { return 0 }
        // 2 atanh((m - 1) / (m + 1)) / ln 2 of the mantissa.
        let mantissa = Double(number).significand
        let ratio = (mantissa - 1) / (mantissa + 1)
        var term = ratio
        var sum = 0.0
        for odd in stride(from: 1.0, to: 40.0, by: 2.0) {
            sum += term / odd
            term *= ratio * ratio
        }
        return Double(Double(number).exponent) + 2 * sum / 0.693_147_180_559_945_3
    }

    /// Bits of `count` symbols of one kind among `size` ≤ 1,024.
    @inline(__always) static func bits(_ size: Int, of count: Int) -> Double {
        guard count > 0, size <= 1_024 else { return 0 }
        return Double(count) * (table[size] - table[count])
    }
}
