// Reads Ints and Doubles of FORMAT §11.8. Numbers are 64-bit words; all arithmetic wraps. Part of
// one decoder.
// SAFETY: a plane has as many bytes as the column has values, as `plane` and the callers ensure;
// indices into a dictionary are compared with its count before use, and runs end within their
// columns.

import CordwoodCore

extension BlockDecoder {
    /// `count` numbers; their cost is counted first.
    mutating func ints(_ count: Int, depth: Int) throws(BlockProblem) -> Flat<UInt64> {
        try leaves.takeValues(count, depth: depth)
        let values: Flat<UInt64> = try arena.flat(count)
        if count == 0 { return values }
        switch try leaves.byte() {
        case IntsCodec.const: values.fill(try leaves.zigzag())
        case IntsCodec.offset:
            let least = try leaves.zigzag()
            try planes(into: values)
            Self.addAll(least, to: values)
        case IntsCodec.delta:
            let first = try leaves.zigzag()
            try planes(into: values)
            Self.sumUp(from: first, values)
        case IntsCodec.dictionary: try intsOfDictionary(values, depth)
        case IntsCodec.slope: try slope(values)
        case IntsCodec.logOffset:
            let least = try leaves.zigzag()
            try buckets(into: values)
            Self.addAll(least, to: values)
        case IntsCodec.logDelta:
            let first = try leaves.zigzag()
            try buckets(into: values)
            Self.sumUp(from: first, values)
        case IntsCodec.runs: try runs(values, depth)
        default: throw .damaged
        }
        return values
    }

    private static func addAll(_ least: UInt64, to values: Flat<UInt64>) {
        let target = unsafe values.base
        for index in 0..<values.count { unsafe target[index] &+= least }
    }

    private static func sumUp(from first: UInt64, _ values: Flat<UInt64>) {
        var value = first
        let target = unsafe values.base
        for index in 0..<values.count {
            value &+= unsafe Zigzag.plain(target[index])
            unsafe target[index] = value
        }
    }

    /// Planes(n).
    mutating func planes(into values: Flat<UInt64>) throws(BlockProblem) {
        let width = try leaves.byte()
        guard width <= 8 else { throw .damaged }
        try planes(Int(width), into: values)
    }

    private mutating func planes(_ width: Int, into values: Flat<UInt64>) throws(BlockProblem) {
        if width == 0 { values.fill(0) }
        if width == 2 { return try pairs(into: values) }
        for byte in 0..<width {
            let plane = try plane(values.count)
            guard plane.count == values.count, let bytes = unsafe plane.start else {
                throw .damaged
            }
            let source = unsafe bytes.assumingMemoryBound(to: UInt8.self)
            let target = unsafe values.base
            let shift = UInt64(8 &* byte)
            if byte == 0 {
                for index in 0..<values.count { unsafe target[index] = UInt64(source[index]) }
            } else {
                for index in 0..<values.count {
                    unsafe target[index] |= UInt64(source[index]) &<< shift
                }
            }
        }
    }

    /// Two planes.
    private mutating func pairs(into values: Flat<UInt64>) throws(BlockProblem) {
        let (first, second) = (try plane(values.count), try plane(values.count))
        guard first.count == values.count, second.count == values.count,
            let low = unsafe first.start?.assumingMemoryBound(to: UInt8.self),
            let high = unsafe second.start?.assumingMemoryBound(to: UInt8.self)
        else { throw .damaged }
        let target = unsafe values.base
        for index in 0..<values.count {
            unsafe target[index] = UInt64(low[index]) | UInt64(high[index]) &<< 8
        }
    }

    /// Planes(n) of indices below `end`.
    mutating func indices(_ count: Int, below end: Int) throws(BlockProblem) -> Flat<UInt64> {
        let found: Flat<UInt64> = try arena.flat(count)
        try planes(into: found)
        var most: UInt64 = 0
        let bases = unsafe found.base
        for index in 0..<count { unsafe most |= bases[index] }
        if most < UInt64(end) { return found }
        most = 0
        for index in 0..<count { most = max(most, found[index]) }
        guard most < UInt64(end) else { throw .damaged }
        return found
    }

    private mutating func intsOfDictionary(
        _ values: Flat<UInt64>, _ depth: Int
    ) throws(BlockProblem) {
        let size = try leaves.count(values.count)
        guard size > 0 else { throw .damaged }
        let entries = try ints(size, depth: depth + 1)
        if leaves.next == 1 { return try octets(values, of: entries) }
        let chosen = try indices(values.count, below: size)
        for index in 0..<values.count {
            values[index] = entries[Int(truncatingIfNeeded: chosen[index])]
        }
    }

    /// Planes(n) with one plane: entries by their index.
    private mutating func octets(
        _ values: Flat<UInt64>, of entries: Flat<UInt64>
    ) throws(BlockProblem) {
        _ = try leaves.byte()
        let plane = try plane(values.count)
        guard plane.count == values.count, let start = unsafe plane.start else { throw .damaged }
        let source = unsafe start.assumingMemoryBound(to: UInt8.self)
        var most: UInt8 = 0
        for index in 0..<values.count { unsafe most = max(most, source[index]) }
        guard Int(most) < entries.count else { throw .damaged }
        let (target, from) = unsafe (values.base, entries.base)
        for index in 0..<values.count { unsafe target[index] = from[Int(source[index])] }
    }

    private mutating func slope(_ values: Flat<UInt64>) throws(BlockProblem) {
        var value = try leaves.zigzag()
        var step = try leaves.zigzag()
        try planes(into: values)
        for index in 0..<values.count {
            if index > 0 {
                step &+= Zigzag.plain(values[index])
                value &+= step
            }
            values[index] = value
        }
    }

    private mutating func runs(_ values: Flat<UInt64>, _ depth: Int) throws(BlockProblem) {
        let size = try leaves.count(values.count)
        guard size > 0 else { throw .damaged }
        let kinds = try ints(size, depth: depth + 1)
        let lengths = try ints(size, depth: depth + 1)
        var at = 0
        for run in 0..<size {
            let length = lengths[run]
            guard length > 0, length <= UInt64(values.count &- at) else { throw .damaged }
            unsafe (values.base + at).update(repeating: kinds[run], count: Int(length))
            at &+= Int(length)
        }
        guard at == values.count else { throw .damaged }
    }

    /// Buckets(n).
    private mutating func buckets(into values: Flat<UInt64>) throws(BlockProblem) {
        let symbols = try plane(values.count)
        var wanted = 0
        for index in 0..<values.count { wanted &+= LogBucket.bits(symbols[index]) }
        let size = try leaves.count(BlockLimits.contentMax)
        guard size == (wanted &+ 7) / 8 else { throw .damaged }
        var bits = BitReader(try plane(size))
        for index in 0..<values.count {
            let symbol = symbols[index]
            let more = bits.take(LogBucket.bits(symbol))
            values[index] = LogBucket.number(symbol, more)
        }
        guard bits.isRestZero else { throw .damaged }
    }

    // MARK: Doubles

    /// `count` numbers of 8 or 4 bytes, as their bits.
    mutating func doubles(
        _ count: Int, bytes: Int, depth: Int
    ) throws(BlockProblem) -> Flat<UInt64> {
        try leaves.takeValues(count, depth: depth)
        if count == 0 { return try arena.flat(0) }
        switch try leaves.byte() {
        case DoublesCodec.planes:
            let values: Flat<UInt64> = try arena.flat(count)
            try planes(bytes, into: values)
            return values
        case DoublesCodec.decimal:
            let power = try leaves.byte()
            guard power <= 9 else { throw .damaged }
            let digits = try ints(count, depth: depth + 1)
            try decimals(digits, power, bytes)
            return digits
        case DoublesCodec.words: return try ints(count, depth: depth + 1)
        default: throw .damaged
        }
    }

    /// Turns digits into doubles.
    func decimals(
        _ values: Flat<UInt64>, _ power: UInt8, _ bytes: Int
    ) throws(BlockProblem) {
        let scale = Double(Decimals.power(Int(power)))
        for index in 0..<values.count {
            let digit = Int64(bitPattern: values[index])
            guard digit.magnitude <= 1 << 53 else { throw .damaged }
            let number = Double(digit) / scale
            values[index] = bytes == 8 ? number.bitPattern : UInt64(Float(number).bitPattern)
        }
    }
}

/// FORMAT §11.8, Buckets: the meaning of a symbol.
enum LogBucket {
    @inline(__always) static func bits(_ symbol: UInt8) -> Int {
        symbol < 16 ? 0 : Int((symbol &- 16) &>> 2) &+ 2
    }

    @inline(__always) static func number(_ symbol: UInt8, _ more: UInt64) -> UInt64 {
        if symbol < 16 { return UInt64(symbol) }
        let low = UInt64((symbol &- 16) &>> 2) &+ 2
        return (4 | UInt64((symbol &- 16) & 3)) &<< low | more
    }

    @inline(__always) static func symbol(_ number: UInt64) -> UInt8 {
        if number < 16 { return UInt8(truncatingIfNeeded: number) }
        let exponent = 63 &- number.leadingZeroBitCount
        let high = number &>> UInt64(exponent &- 2) & 3
        return UInt8(truncatingIfNeeded: 16 &+ 4 &* (exponent &- 4) &+ Int(high))
    }
}

/// The bits of a leaf, from the lowest of each byte up.
struct BitReader {
    private let source: Slice
    private var at = 0
    private var held: UInt64 = 0
    private var heldBits = 0

    init(_ source: Slice) { self.source = source }

    /// 0 … 61 bits; zeros after the end.
    @inline(__always) mutating func take(_ wanted: Int) -> UInt64 {
        if wanted > 32 {
            let low = take(32)
            return low | take(wanted &- 32) &<< 32
        }
        while heldBits < wanted {
            held |= UInt64(source[at]) &<< UInt64(heldBits)
            at &+= 1
            heldBits &+= 8
        }
        let found = held & ((1 &<< UInt64(wanted)) &- 1)
        held &>>= UInt64(wanted)
        heldBits &-= wanted
        return found
    }

    var isRestZero: Bool { held == 0 }
}
