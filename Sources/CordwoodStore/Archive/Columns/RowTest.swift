// What a reader wants of an archive, as far as the footer and a block's columns tell: blocks and
// rows that cannot match are passed over before records are made. Only ever errs on the side of
// wanting; the reader tests each record it gets (docs/ARCHITECTURE.md). A value.
// SAFETY: views are the block's and are not kept.

import CordwoodCore

/// Limits for all blocks.
@safe package struct RowLimits {
    /// UTC ns, inclusive; 0: open.
    package var since: UInt64 = 0
    /// UTC ns, exclusive; 0: open.
    package var until: UInt64 = 0
    /// Lowest level; 0: all.
    package var level: UInt8 = 0
    /// Set of 1 << kind; 0: all.
    package var kinds: UInt32 = 0
    /// nil: all.
    @safe package var isLogger: ((UnsafeRawBufferPointer) -> Bool)?

    package init() {}

    /// False: nothing in the block is wanted.
    func mayWant(_ block: BlockEntry) -> Bool {
        (since == 0 || block.timeMax >= since) && (until == 0 || block.timeMin < until)
            && block.levels & LevelSet.atLeast(level) != 0
            && (kinds == 0 || block.kinds & kinds != 0)
    }

    /// True: everything in the block is wanted.
    func wantsAll(_ block: BlockEntry) -> Bool {
        unsafe (since == 0 || block.timeMin >= since) && (until == 0 || block.timeMax < until)
            && (level == 0 || block.levels & ~(LevelSet.atLeast(level) & ~LevelSet.bit(0)) == 0)
            && (kinds == 0 || block.kinds & ~kinds == 0) && isLogger == nil
    }
}

extension RowLimits {
    /// The rows to request of a block; nil: everything in it is wanted.
    func rows(of block: BlockEntry) -> WantedRows? {
        if wantsAll(block) { return nil }
        return unsafe WantedRows(
            level: level, kinds: kinds == 0 ? .max : kinds,
            since: block.timeMin >= since ? 0 : since, until: block.timeMax < until ? 0 : until,
            isLogger: isLogger)
    }
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

/// The number of rows of which no record was made, in all archives of a reader.
/// SAFETY: Sendable because options are; only the thread that reads with them uses it.
final class PassedRows: @unchecked Sendable {
    @exclusivity(unchecked) var count: UInt64 = 0
    /// Asked before each block, even while no record is returned; true: nothing more is read.
    @exclusivity(unchecked) var shouldStop: (() -> Bool)?

    var isStopped: Bool { unsafe shouldStop?() ?? false }
}

/// The test for the rows of one block.
struct RowTest {
    let level: UInt8
    let kinds: UInt32
    /// By index; empty: all.
    let loggers: [Bool]
    /// nil: any text.
    let text: TextTest?

    init(_ limits: RowLimits, _ wanted: TextSearch?, _ fields: FieldSearch?, _ block: BlockRecords)
    {
        level = limits.level
        kinds = limits.kinds == 0 ? .max : limits.kinds
        if let isLogger = limits.isLogger {
            loggers = unsafe block.dictionaries.loggers.map(isLogger)
        } else {
            loggers = []
        }
        text = wanted.map { TextTest($0, fields, block) }
    }

    /// The level decides for most rows.
    var isOfLevels: Bool { level > 0 && loggers.isEmpty && text == nil }

    static func has(_ level: UInt8, _ least: UInt8) -> Bool { (level <= 24 ? level : 0) >= least }
}

/// Whether texts and fields of one block may contain bytes. A class: testing a row would copy it.
final class TextTest {
    let wanted: TextSearch
    /// By format.
    let odds: [TextSearch.Odds]
    /// Likewise, with a range of `needs`.
    let ways: [Way]
    let needs: [NumberNeed]
    /// All bytes that `odds` requires of arguments.
    let pieces: [TextSearch]
    let mayBePlain: Bool
    let mayBeInFields: Bool
    /// By context: whether its fields may contain the bytes.
    let contexts: [Bool]
    /// Sections that may match contain this; empty: any may match, unless there are `digits`.
    let fieldPieces: [TextSearch]
    /// What fields are searched for instead.
    let digits: DigitSearch?
    let printer = NumberPrinter()

    struct Way {
        enum Odds { case never, with, any }
        var odds = Odds.never
        var needsStart = 0
        var needsEnd = 0
    }

    init(_ wanted: TextSearch, _ fields: FieldSearch?, _ block: BlockRecords) {
        self.wanted = wanted
        (odds, pieces, mayBePlain) = block.odds(wanted)
        var needs: [NumberNeed] = []
        ways = odds.map { odds in
            switch odds {
            case .never: return Way()
            case .any: return Way(odds: .any)
            case .with(_, let numbers):
                let start = needs.count
                needs += numbers
                return Way(odds: .with, needsStart: start, needsEnd: needs.count)
            }
        }
        self.needs = needs
        fieldPieces = fields?.pieces ?? []
        digits = fields?.digits
        contexts = block.dictionaries.contexts.map { [printer] context in
            fields?.digits?.mayBeIn(fields: context.fields, printer)
                ?? fields?.hasLast(context.fields) ?? false
        }
        mayBeInFields = fields.map(block.mayHaveInFields) ?? false
    }

    /// False: no text or field of the block contains the bytes.
    var mayHaveBytes: Bool {
        mayBePlain || mayBeInFields || odds.contains { $0.isPossible }
    }
}
