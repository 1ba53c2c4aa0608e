// Byte offsets and numbers of blocks (FORMAT §11.4 to §11.10). Numbers only. `./dev check` compares
// every one with the tables in docs/FORMAT.md.

/// FORMAT §11.
enum SkippableFrame {
    static let magicValue: UInt32 = 0x184D_2A50
    static let headerBytes = 8
}

/// What making a block may cost (FORMAT §11.2).
package enum BlockEffort: UInt8, Sendable, CaseIterable {
    /// Numbers by one look, strings as they are.
    case swift = 0
    case dense = 1
    /// As dense, with more time for each column.
    case compact = 2
}

/// FORMAT §11.6.
enum BlockDirectory {
    static let magic = 0
    static let flags = 8
    static let frameCount = 10
    static let metaBytes = 12
    static let planeBytes = 16
    static let textBytes = 20
    static let entries = 24

    static let bytes = 24
    static let crcBytes = 4
    static let magicValue: UInt64 = 0x3130_534C_4F43_5743  // "CWCOLS01"
    /// Letter runs of messages, text arguments and fields lie in text leaves.
    static let flagOfLettersValue: UInt8 = 1
}

/// FORMAT §11.6.
enum BlockFrame {
    static let storedBytes = 0
    static let rawBytes = 4
    static let crc = 8

    static let bytes = 12
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

/// FORMAT §11.4, kind.
enum BlockKind {
    static let mask: UInt8 = 7
    static let truncated: UInt8 = 8
    static let unverified: UInt8 = 16
    static let hasSections: UInt8 = 32
    static let deferred: UInt8 = 64

    /// Stores three bits; kinds that version 1 does not know become logs.
    @inline(__always)
    static func stored(_ kind: UInt8) -> UInt8 { kind <= mask ? kind : 0 }
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

/// The size by which a block's limits go (FORMAT §11.10).
enum BlockSize {
    static let row = 64
    static let entry = 64
}

/// FORMAT §11.8.
enum IntsCodec {
    static let const: UInt8 = 0
    static let offset: UInt8 = 1
    static let delta: UInt8 = 2
    static let dictionary: UInt8 = 3
    static let slope: UInt8 = 4
    static let logOffset: UInt8 = 5
    static let logDelta: UInt8 = 6
    static let runs: UInt8 = 7
}

/// FORMAT §11.8.
enum DoublesCodec {
    static let planes: UInt8 = 0
    static let decimal: UInt8 = 1
    static let words: UInt8 = 2
}

/// FORMAT §11.9.
enum StringsCodec {
    static let const: UInt8 = 0
    static let lines: UInt8 = 1
    static let sized: UInt8 = 2
    static let dictionary: UInt8 = 3
    static let templates: UInt8 = 4
    static let int: UInt8 = 5
    static let digits: UInt8 = 6
    static let decimal: UInt8 = 7
    static let hex: UInt8 = 8
    static let fixed: UInt8 = 9
    static let sizedLines: UInt8 = 10
}

/// FORMAT §11.10.
enum BlockLimits {
    static let recordsMax = 1 << 19
    static let sizeMax = 64 << 20
    static let ratioMax = 32_768
    static let framesMax = 1_024
    static let contentMax = 96 << 20
    static let metaMax = 4 << 20
    static let leavesMax = 65_536
    static let depthMax = 16
    static let templatesMax = 65_536
    static let variablesOfTemplateMax = 4_096
    static let variablesMax = 1 << 20
    static let shapesMax = 65_536
    /// Fields, or kinds of sections, of all shapes of one codec; argument types of all formats.
    static let partsMax = 1 << 20
    /// Entries of one dictionary; also the attributes of all processes together.
    static let dictionaryMax = 65_536

    static func valuesMax(rawBytes: Int) -> Int { min(4 &* rawBytes &+ 65_536, 1 << 23) }
    static func madeMax(rawBytes: Int) -> Int { min(6 &* rawBytes &+ (1 << 20), 128 << 20) }
}
