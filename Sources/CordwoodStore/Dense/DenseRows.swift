// Which rows of a dense block a reader wants, as far as columns that are decoded first tell. The
// texts, arguments and fields of other rows are then not even inflated. Errs on the side of
// wanting; the reader tests each record it gets. A value.
// SAFETY: Sendable, because `isLogger` only compares bytes; views are not kept. The columns of a
// block's records are as long as its recordCount.

import CordwoodCore

/// The streams of a payload that a reader looks at (FORMAT §11.4).
struct BlockParts: Equatable, Sendable {
    /// The last one; a payload may end after it. Up to `heads`, or all.
    var last: Int
    /// False: streams 6 and 7 may be empty.
    var hasTimes = true
    /// False: streams 8 and 12 may be empty.
    var hasNumbers = true

    /// The last stream before those of texts.
    static let heads = 12
    static let all = BlockParts(last: .max)
    static let processes = BlockParts(last: 0)
    /// Without levels and kinds.
    static let times = BlockParts(last: 7)
    /// The stream of sections, which may hold another time.
    static let ownTimes = 15
    /// The stream of formats' indexes: with sections, it says where a record was made.
    static let places = 17

    /// The sections of a dense block that are made.
    var sections: SectionKinds {
        last < Self.places ? [.time] : [.time, .site, .place]
    }
}

@safe struct DenseRows: @unchecked Sendable {
    /// Lowest level; 0: all.
    var level: UInt8
    /// Set of 1 << kind.
    var kinds: UInt32
    /// UTC ns, inclusive; 0: open.
    var since: UInt64
    /// UTC ns, exclusive; 0: open.
    var until: UInt64
    /// nil: all.
    @safe var isLogger: ((UnsafeRawBufferPointer) -> Bool)?
    /// Wants every row from the first one at this monotonic time or later; 0: the other limits
    /// decide.
    var start: UInt64 = 0

    /// Columns after that of times also decide.
    var needsMore: Bool { unsafe isLogger != nil || since != 0 || until != 0 }

    /// False: it is unknown which rows decide about the order of others. `processes`: stream 0.
    func mayDecide(_ processes: Slice) -> Bool {
        var cursor = ByteCursor(processes.bytes)
        return cursor.varint() == 1
    }

    /// A bit for each wanted level; all bits if records without a level are wanted, too.
    fileprivate var levels: UInt32 {
        let known: UInt32 = (1 << 25) - 1
        let found = level > 24 ? 0 : known &<< UInt32(level) & known
        return found & 1 == 0 ? found : .max
    }

    /// Whether each logger of stream 2 is wanted; nil: all are.
    fileprivate func loggers(
        _ stream: Slice, _ arena: inout Arena
    ) throws(DenseProblem) -> Flat<Bool>? {
        guard let isLogger else { return nil }
        var cursor = ByteCursor(stream.bytes)
        guard let count = cursor.varint(), count <= UInt64(DenseLimits.dictionaryMax) else {
            throw .damaged
        }
        let found: Flat<Bool> = try arena.flat(Int(count))
        for index in 0..<Int(count) {
            guard let name = cursor.string() else { throw .damaged }
            found[index] = unsafe isLogger(name)
        }
        return found
    }
}

extension DenseRows {
    init(start: UInt64) {
        unsafe self.init(level: 0, kinds: .max, since: 0, until: 0, isLogger: nil, start: start)
    }
}

extension DenseDecoder {
    /// Above this share of a block, all of it is decoded.
    private static let fewShare = 2

    /// The wanted rows, and those that decide about the order of others: the last one, and each one
    /// before an older one. None: no row is wanted, and all are in order. All: they are not few.
    mutating func rows(
        _ wanted: DenseRows, _ heads: Heads, _ records: Int
    ) throws(DenseProblem) -> Picks {
        let all = Picks(all: records)
        if records == 0 { return all }
        if wanted.start != 0 { return try rows(from: wanted.start, heads, records) }
        let loggers = try wanted.loggers(heads.slices[2], &arena)
        let places: Flat<UInt32> = try arena.flat(records)
        let (level, kind, time) = unsafe (heads.level.base, heads.kind.base, heads.time.base)
        let levels = wanted.levels
        let kinds = wanted.kinds
        /// Bit 0: the row has these levels and kinds.
        @inline(__always) func bits(_ row: Int) -> UInt32 {
            let isOfLevel =
                unsafe levels &>> min(UInt32(truncatingIfNeeded: level[row]) & 0xFF, 31)
            return unsafe isOfLevel & kinds &>> (UInt32(truncatingIfNeeded: kind[row]) & 7)
        }
        var count = 0
        var isAnyWanted = false
        var row = -1
        while row &+ 1 < records {
            row &+= 1
            // Most rows are neither wanted nor before an older one: eight are checked at a time.
            while row &+ 8 < records {
                var found: UInt32 = 0
                var steps: UInt64 = 0
                for next in row..<row &+ 8 {
                    found |= bits(next)
                    unsafe steps |= time[next &+ 1] &- time[next]
                }
                if found & 1 != 0 || Int64(bitPattern: steps) < 0 { break }
                row &+= 8
            }
            var isWanted = bits(row) & 1 != 0
            let isOrdered =
                unsafe row &+ 1 < records && Int64(bitPattern: time[row &+ 1] &- time[row]) >= 0
            if isOrdered, !isWanted { continue }
            if isWanted, wanted.needsMore {
                isWanted =
                    isTimely(wanted, heads, row) && isOf(loggers, heads.logger[row])
            }
            isAnyWanted = isAnyWanted || isWanted
            if isWanted || !isOrdered {
                places[count] = UInt32(row)
                count &+= 1
            }
        }
        if count > records / Self.fewShare { return all }
        if !isAnyWanted, count == 1 { count = 0 }
        return Picks(places.prefix(count), of: records)
    }

    private mutating func rows(
        from start: UInt64, _ heads: Heads, _ records: Int
    ) throws(DenseProblem) -> Picks {
        let first = (0..<records).first { heads.time[$0] >= start } ?? records
        if records - first > records / Self.fewShare { return Picks(all: records) }
        let places: Flat<UInt32> = try arena.flat(records - first)
        for index in 0..<places.count { places[index] = UInt32(first + index) }
        return Picks(places, of: records)
    }

    /// A record with sections may have its own time.
    private func isTimely(_ wanted: DenseRows, _ heads: Heads, _ row: Int) -> Bool {
        if heads.kind[row] & UInt64(PayloadBits.hasSections) != 0 { return true }
        let time = heads.time[row] &+ heads.offset[row]
        return (wanted.since == 0 || time >= wanted.since)
            && (wanted.until == 0 || time < wanted.until)
    }

    /// If there is no such logger, the reader of the row reports it.
    private func isOf(_ loggers: Flat<Bool>?, _ logger: UInt64) -> Bool {
        guard let loggers, logger < UInt64(loggers.count) else { return true }
        return loggers[Int(logger)]
    }
}

// MARK: writing numbers

extension Flat<UInt64> {
    /// A byte each.
    func writeOctets(to out: inout GrowingBytes) throws(DenseProblem) {
        guard let target = unsafe out.claim(count) else { throw .memory }
        let bytes = unsafe target.assumingMemoryBound(to: UInt8.self)
        for index in 0..<count { unsafe bytes[index] = UInt8(truncatingIfNeeded: base[index]) }
    }

    func writeVarints(to out: inout GrowingBytes) throws(DenseProblem) {
        var all: UInt64 = 0
        for index in 0..<count { unsafe all |= base[index] }
        if all < 0x80 { return try writeOctets(to: &out) }
        for index in 0..<count { out.append(varint: self[index]) }
    }

    /// Zigzags of the numbers; most or all of them are 0, or all but the first.
    func writeZigzags(to out: inout GrowingBytes) throws(DenseProblem) {
        if count == 0 { return }
        var rest: UInt64 = 0
        for index in 1..<count { unsafe rest |= base[index] }
        if rest == 0 {
            out.append(zigzag: self[0])
            guard let zeros = unsafe out.claim(count &- 1) else { throw .memory }
            unsafe zeros.initializeMemory(as: UInt8.self, repeating: 0, count: count &- 1)
            return
        }
        for index in 0..<count { out.append(zigzag: self[index]) }
    }

    /// Zigzags of the differences.
    func writeSteps(to out: inout GrowingBytes) throws(DenseProblem) {
        guard out.reserve(10 &* count) else { throw .memory }
        let start = unsafe out.base + out.count
        var target = unsafe start
        var last: UInt64 = 0
        var index = 0
        while index < count {
            let value = unsafe base[index]
            index &+= 1
            var rest = Zigzag.coded(value &- last)
            last = value
            if rest < 0x80 {
                unsafe target.storeBytes(of: UInt8(truncatingIfNeeded: rest), as: UInt8.self)
                unsafe target += 1
                if rest > 0 { continue }
                // In a column with one number equal to its predecessor, most are: eight at a time.
                while index &+ 8 <= count {
                    var differ: UInt64 = 0
                    for next in index..<index &+ 8 { unsafe differ |= base[next] ^ value }
                    if differ != 0 { break }
                    unsafe target.storeBytes(of: 0, as: UInt64.self)
                    unsafe target += 8
                    index &+= 8
                }
                continue
            }
            // Most times are this near to one another.
            if rest < 0x4000 {
                let both = rest & 0x7F | 0x80 | rest &<< 1 & 0x7F00
                unsafe target.storeBytes(
                    of: UInt16(truncatingIfNeeded: both).littleEndian, as: UInt16.self)
                unsafe target += 2
                continue
            }
            if rest < 0x20_0000 {
                let all =
                    rest & 0x7F | rest &<< 1 & 0x7F00 | rest &<< 2 & 0x7F_0000 | 0x8080
                unsafe target.storeBytes(
                    of: UInt32(truncatingIfNeeded: all).littleEndian, as: UInt32.self)
                unsafe target += 3
                continue
            }
            while rest >= 0x80 {
                unsafe target.storeBytes(of: UInt8(truncatingIfNeeded: rest) | 0x80, as: UInt8.self)
                unsafe target += 1
                rest &>>= 7
            }
            unsafe target.storeBytes(of: UInt8(truncatingIfNeeded: rest), as: UInt8.self)
            unsafe target += 1
        }
        unsafe out.resize(out.count + (target - start))
    }
}
