// Byte offsets and numbers of archives (FORMAT §11). Offsets only. A test compares every number
// with the tables in docs/FORMAT.md.

/// FORMAT §11.1.
package enum ArchiveHeader {
    package static let magic = 0
    package static let version = 8
    package static let length = 12
    package static let compat = 16
    package static let incompat = 24
    package static let archiveID = 32
    package static let createdRealtime = 48
    package static let coverCount = 56
    package static let crc = 60
    package static let covers = 64

    package static let bytes = 64
    package static let magicValue: UInt64 = 0x3130_4843_5241_5743  // "CWARCH01"
}

/// FORMAT §11.2.
package enum BlockHeader {
    package static let magic = 0
    package static let compat = 8
    package static let incompat = 16
    package static let method = 24
    package static let codec = 25
    package static let recordCount = 28
    package static let rawBytes = 32
    package static let storedBytes = 40
    package static let timeMin = 48
    package static let timeMax = 56
    package static let levels = 64
    package static let kinds = 68
    package static let storedCRC = 72
    package static let rawCRC = 76
    package static let headerCRC = 80

    package static let bytes = 128
    package static let magicValue: UInt64 = 0x3130_4B43_4C42_5743  // "CWBLCK01"
    package static let methodColumns: UInt8 = 1
    /// With the header of the frame around it.
    static let frameBytes = bytes + SkippableFrame.headerBytes
}

/// FORMAT §11.3.
package enum ArchiveFooter {
    package static let magic = 0
    package static let archiveID = 8
    package static let recordCount = 24
    package static let timeMin = 32
    package static let timeMax = 40
    package static let rawBytes = 48
    package static let blockCount = 56
    package static let entries = 64

    package static let bytes = 64
    package static let trailerBytes = 16
    package static let magicValue: UInt64 = 0x3130_544F_4F46_5743  // "CWFOOT01"
    package static let endMagicValue: UInt64 = 0x3144_4E45_5241_5743  // "CWAREND1"
}

/// FORMAT §11.3.
package enum FooterEntry {
    package static let offset = 0
    package static let spanBytes = 8
    package static let timeMin = 16
    package static let timeMax = 24
    package static let levels = 32
    package static let kinds = 36
    package static let recordCount = 40
    package static let storedCRC = 44
    package static let rawBytes = 48

    package static let bytes = 64
}

/// FORMAT §11.5.
package enum SealedSummary {
    package static let magic = 0
    package static let version = 8
    package static let length = 12
    package static let compat = 16
    package static let incompat = 24
    package static let archiveID = 32
    package static let createdRealtime = 48
    package static let recordCount = 56
    package static let timeMin = 64
    package static let timeMax = 72
    package static let payloadBytes = 80
    package static let payloadCRC = 88
    package static let coverCount = 92
    package static let crc = 96
    package static let covers = 104

    package static let bytes = 104
    package static let magicValue: UInt64 = 0x3130_4C41_4553_5743  // "CWSEAL01"
}
