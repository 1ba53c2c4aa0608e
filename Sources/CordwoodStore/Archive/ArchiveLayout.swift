// Byte offsets and numbers of archives (FORMAT §11). Offsets only. A test compares every number
// with the tables in docs/FORMAT.md.

/// FORMAT §11.1.
public enum ArchiveHeader {
    public static let magic = 0
    public static let version = 8
    public static let length = 12
    public static let compat = 16
    public static let incompat = 24
    public static let archiveID = 32
    public static let createdRealtime = 48
    public static let coverCount = 56
    public static let crc = 60
    public static let lostPlaces = 64
    public static let replacedCount = 68
    public static let covers = 72

    public static let bytes = 72
    package static let magicValue: UInt64 = 0x3130_4843_5241_5743  // "CWARCH01"
}

/// FORMAT §11.2.
public enum BlockHeader {
    public static let magic = 0
    public static let compat = 8
    public static let incompat = 16
    public static let effort = 24
    public static let codec = 25
    public static let recordCount = 28
    public static let rawBytes = 32
    public static let storedBytes = 40
    public static let timeMin = 48
    public static let timeMax = 56
    public static let levels = 64
    public static let kinds = 68
    public static let storedCRC = 72
    public static let headerCRC = 80
    public static let writtenMin = 88
    public static let writtenMax = 96

    public static let bytes = 128
    package static let magicValue: UInt64 = 0x3130_4B43_4C42_5743  // "CWBLCK01"
    /// Includes the header of the surrounding frame.
    static let frameBytes = bytes + SkippableFrame.headerBytes
}

/// FORMAT §11.3.
public enum ArchiveFooter {
    public static let magic = 0
    public static let archiveID = 8
    public static let recordCount = 24
    public static let timeMin = 32
    public static let timeMax = 40
    public static let rawBytes = 48
    public static let blockCount = 56
    public static let sideCount = 60
    public static let writtenMin = 64
    public static let writtenMax = 72
    public static let entries = 80

    public static let bytes = 80
    public static let trailerBytes = 16
    package static let magicValue: UInt64 = 0x3130_544F_4F46_5743  // "CWFOOT01"
    package static let endMagicValue: UInt64 = 0x3144_4E45_5241_5743  // "CWAREND1"
}

/// FORMAT §11.3.
public enum FooterEntry {
    public static let offset = 0
    public static let spanBytes = 8
    public static let timeMin = 16
    public static let timeMax = 24
    public static let levels = 32
    public static let kinds = 36
    public static let recordCount = 40
    public static let storedCRC = 44
    public static let rawBytes = 48
    public static let writtenMin = 56
    public static let writtenMax = 64

    public static let bytes = 72
}

/// FORMAT §11.3.
public enum SideFrame {
    public static let kind = 0
    public static let crc = 4
    public static let offset = 8
    public static let spanBytes = 16

    public static let bytes = 24
    package static let kindExtract: UInt32 = 1
}

/// FORMAT §11.11.
public enum ArchiveExtract {
    public static let magic = 0
    public static let firstMonotonic = 8
    public static let level = 16
    public static let header = 24

    public static let bytes = 152
    package static let magicValue: UInt64 = 0x3130_5254_5845_5743  // "CWEXTR01"
    /// The level that writers use, ERROR.
    static let levelValue: UInt8 = 17
    /// Includes the header of the frame.
    static let frameBytes = bytes + SkippableFrame.headerBytes
}

/// FORMAT §11.5.
public enum SealedSummary {
    public static let magic = 0
    public static let version = 8
    public static let length = 12
    public static let compat = 16
    public static let incompat = 24
    public static let archiveID = 32
    public static let createdRealtime = 48
    public static let recordCount = 56
    public static let timeMin = 64
    public static let timeMax = 72
    public static let payloadBytes = 80
    public static let payloadCRC = 88
    public static let coverCount = 92
    public static let crc = 96
    public static let lostPlaces = 100
    public static let writtenMin = 104
    public static let writtenMax = 112
    public static let replacedCount = 120
    public static let covers = 128

    public static let bytes = 128
    package static let magicValue: UInt64 = 0x3130_4C41_4553_5743  // "CWSEAL01"
}
