// Counts the records of whole blocks by their columns, without making any record. The reader passes
// the columns that are asked for. One reader owns it; one thread at a time.

import CordwoodCore

protocol BlockCounter: AnyObject, Sendable {
    /// False: the records of the block are needed. `limits`: everything that is asked of them.
    func mayCount(_ block: BlockEntry, _ limits: RowLimits) -> Bool
    /// The parts of the block that are read.
    func parts(of block: BlockEntry, _ limits: RowLimits) -> BlockParts
    /// Counts the rows within the limits. `block`: its `parts`. False: nothing was counted, because
    /// it is damaged.
    func add(_ block: BlockView, of entry: BlockEntry, _ limits: RowLimits) -> Bool
}

/// Whether rows of one block are within the limits; exact, unlike `RowTest`.
struct RowBounds {
    private let least: UInt8
    private let kinds: UInt32
    private let since: UInt64
    private let latest: UInt64
    /// By index.
    private let loggers: [Bool]

    init(_ limits: RowLimits, _ dictionaries: BlockDictionaries) {
        least = limits.level
        kinds = limits.kinds == 0 ? .max : limits.kinds
        since = limits.since
        latest = limits.until == 0 ? .max : limits.until &- 1
        loggers = unsafe dictionaries.loggers.map { unsafe limits.isLogger?($0) ?? true }
    }

    /// `kind`: as its column has it. `timeNs`: the time shown.
    @inline(__always)
    func has(level: UInt8, kind: UInt64, timeNs: UInt64, logger: Int) -> Bool {
        level >= least && kinds & (1 &<< UInt32(kind & UInt64(BlockKind.mask))) != 0
            && timeNs >= since && timeNs <= latest && loggers[logger]
    }
}
