// Byte offsets and numbers of the block that docs/BLOCK.md describes, as far as FORMAT §11.6 to
// §11.10 do not have them. Numbers only.

/// What making a block may cost. The numbers are those of the page.
package enum BlockEffort: UInt8, Sendable, CaseIterable {
    /// Numbers by one look, strings as they are.
    case swift = 0
    case dense = 1
    /// As dense, with more time for each column.
    case compact = 2
}

/// The directory. Its entries are those of FORMAT §11.6.
enum BlockDirectory {
    static let magic = 0
    static let flags = 8
    static let frameCount = 10
    static let metaBytes = 12
    static let planeBytes = 16
    static let textBytes = 20
    static let entries = 24

    static let magicValue: UInt64 = 0x3130_534C_4F43_5743  // "CWCOLS01"
}

/// The columns of a block, in the order in which it stores them.
enum BlockColumn: Int, CaseIterable {
    case processes
    case threads
    case loggers
    case sites
    case formats
    case kind
    case level
    case thread
    case time
    case offset
    case sequence
    case logger
    case context
    case format
    case contexts
    case arguments
    case sections
    case messages
}

/// A set of columns.
struct BlockColumns: OptionSet, Sendable {
    let rawValue: UInt32
    static let all = BlockColumns(rawValue: 1 << UInt32(BlockColumn.allCases.count) - 1)

    init(rawValue: UInt32) { self.rawValue = rawValue }

    init(_ columns: BlockColumn...) {
        rawValue = columns.reduce(0) { $0 | 1 << UInt32($1.rawValue) }
    }

    func has(_ column: BlockColumn) -> Bool { rawValue >> UInt32(column.rawValue) & 1 != 0 }

    /// The last of them; nil: it is empty.
    var last: BlockColumn? { BlockColumn.allCases.last(where: has) }
}

/// The size by which a block's limits go (docs/BLOCK.md, size).
enum BlockSize {
    static let row = 64
    static let entry = 64
    /// The size of a block's content, which a reader compares before it allocates anything.
    static let most = DenseLimits.payloadMax
}
