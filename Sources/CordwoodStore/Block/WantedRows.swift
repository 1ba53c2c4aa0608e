// Which rows of a block a reader wants, as far as columns that are decoded first tell. The
// texts, arguments and fields of other rows are then not even inflated. Errs on the side of
// wanting; the reader tests each record it gets. A value.
// SAFETY: Sendable, because `isLogger` only compares bytes; views are not kept. The columns of a
// block's records are as long as its recordCount.

import CordwoodCore

/// What a reader looks at of a block. With threads come their processes.
struct BlockParts: Equatable, Sendable {
    var columns: BlockColumns
    /// The sections that are read; not all only if no messages are.
    var sections = SectionKinds.all

    static let all = BlockParts(columns: .all)
    static let processes = BlockParts(columns: BlockColumns(.processes))
    static let times = BlockParts(columns: BlockColumns(.processes, .threads, .time, .offset))
}

@safe struct WantedRows: @unchecked Sendable {
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

    /// A bit for each wanted level; all bits if records without a level are wanted, too.
    fileprivate var levels: UInt32 {
        let known: UInt32 = (1 << 25) - 1
        let found = level > 24 ? 0 : known &<< UInt32(level) & known
        return found & 1 == 0 ? found : .max
    }

    /// Whether each logger of the block is wanted; nil: all are.
    fileprivate func loggers(
        _ names: Flat<Slice>, _ arena: inout Arena
    ) throws(BlockProblem) -> Flat<Bool>? {
        guard let isLogger else { return nil }
        let found: Flat<Bool> = try arena.flat(names.count)
        for index in 0..<names.count { found[index] = unsafe isLogger(names[index].bytes) }
        return found
    }
}

extension WantedRows {
    init(start: UInt64) {
        unsafe self.init(level: 0, kinds: .max, since: 0, until: 0, isLogger: nil, start: start)
    }
}

extension BlockDecoder {
    /// Above this share of a block, all of it is decoded.
    private static let fewShare = 2

    /// The wanted rows, and those that decide about the order of others: the last one, and each one
    /// before an older one. None: no row is wanted, and all are in order. All: they are not few.
    mutating func rows(
        _ wanted: WantedRows, _ heads: borrowing BlockContent, _ records: Int
    ) throws(BlockProblem) -> Picks {
        let all = Picks(all: records)
        if records == 0 { return all }
        if wanted.start != 0 { return try rows(from: wanted.start, heads, records) }
        let loggers = try wanted.loggers(heads.loggers, &arena)
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
        from start: UInt64, _ heads: borrowing BlockContent, _ records: Int
    ) throws(BlockProblem) -> Picks {
        let first = (0..<records).first { heads.time[$0] >= start } ?? records
        if records - first > records / Self.fewShare { return Picks(all: records) }
        let places: Flat<UInt32> = try arena.flat(records - first)
        for index in 0..<places.count { places[index] = UInt32(first + index) }
        return Picks(places, of: records)
    }

    /// A record with sections may have its own time.
    private func isTimely(
        _ wanted: WantedRows, _ heads: borrowing BlockContent, _ row: Int
    ) -> Bool {
        if heads.kind[row] & UInt64(BlockKind.hasSections) != 0 { return true }
        let time = heads.time[row] &+ heads.offset[row]
        return (wanted.since == 0 || time >= wanted.since)
            && (wanted.until == 0 || time < wanted.until)
    }

    private func isOf(_ loggers: Flat<Bool>?, _ logger: UInt64) -> Bool {
        guard let loggers else { return true }
        return loggers[Int(logger)]
    }
}
