// Byte offsets and numbers of dense columns, the payload's method 2 (FORMAT §11.6 to §11.10).
// Numbers only. `./dev check` compares every one with the tables in docs/FORMAT.md.

/// FORMAT §11.
enum SkippableFrame {
    static let magicValue: UInt32 = 0x184D_2A50
    static let headerBytes = 8
}

/// FORMAT §11.6.
enum DenseDirectory {
    static let magic = 0
    static let flags = 8
    static let frameCount = 10
    static let metaBytes = 12
    static let planeBytes = 16
    static let payloadCRC = 20
    static let entries = 24

    static let bytes = 24
    static let crcBytes = 4
    static let magicValue: UInt64 = 0x3130_4252_4944_5743  // "CWDIRB01"
    /// Letter runs of messages, text arguments and fields lie in the text.
    static let flagOfLettersValue: UInt8 = 1
    /// Some times have no year.
    static let flagOfStampsValue: UInt8 = 0x20
    /// A reader that does not know one of these must not interpret the block.
    static let flagsOfNewerValue: UInt8 = 0xD0
}

/// FORMAT §11.6.
enum DenseFrame {
    static let storedBytes = 0
    static let rawBytes = 4
    static let crc = 8

    static let bytes = 12
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
enum DenseLimits {
    static let recordsMax = 1 << 19
    static let payloadMax = 64 << 20
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
    static let dictionaryMax = 65_536
    static let streams = 20

    static func valuesMax(rawBytes: Int) -> Int { min(4 &* rawBytes &+ 65_536, 1 << 23) }
    static func madeMax(rawBytes: Int) -> Int { min(6 &* rawBytes &+ (1 << 20), 128 << 20) }
}
