// Byte offsets of the lane file, its drop slots, the catalog and the journal (FORMAT §3, §5, §10).
// Offsets only: no I/O, no memory. A test compares every number with the tables in docs/FORMAT.md.

/// FORMAT §3.1. Offsets in the lane file.
public enum LaneHeader {
    public static let magic = 0
    public static let version = 8
    public static let fileBytes = 12
    public static let compat = 16
    public static let incompat = 24
    public static let laneID = 32
    public static let bootID = 48
    public static let machineID = 64
    public static let salt = 80
    public static let processID = 88
    public static let userID = 92
    public static let processStart = 96
    public static let processNamespace = 104
    public static let createdRealtime = 112
    public static let createdMonotonic = 120
    public static let catalogOffset = 128
    public static let catalogBytes = 132
    public static let dropsOffset = 136
    public static let dropsCount = 140
    public static let segmentOffset = 144
    public static let segmentBytes = 148
    public static let processNameBytes = 152
    public static let processName = 160
    public static let hostNameBytes = 288
    public static let written = 292
    public static let hostName = 296
    public static let archivedBelow = 512
    public static let closed = 576
    public static let adopted = 580
    public static let closedRealtime = 584

    public static let magicValue: UInt64 = 0x3130_454E_414C_5743  // "CWLANE01"
    public static let fileBytesValue = 65_536
    public static let catalogOffsetValue = 8_192
    public static let catalogBytesValue = 8_192
    public static let dropsOffsetValue = 4_096
    public static let dropsCountValue = 64
    public static let segmentOffsetValue = 16_384
    public static let segmentBytesValue = 49_152
    public static let processNameBytesMax = 128
    /// Bit of `compat`: the owner's lock lives as long as its memory (FORMAT §3.1).
    public static let compatLockIsLife: UInt64 = 1
    public static let hostNameBytesMax = 64
    /// `closed`: the lane was let go.
    public static let closedFinally: UInt32 = 1
    /// `closed`: helpers may still work in the lane.
    public static let closedEarly: UInt32 = 2
}

/// FORMAT §3.2. Offsets in one drop slot.
public enum DropSlot {
    public static let dropped = 0
    public static let reported = 8
    public static let firstMonotonic = 16
    public static let lastMonotonic = 24
    public static let causes = 32

    public static let bytes = 64
}

/// FORMAT §5. Offsets in the header of a catalog growth file.
public enum CatalogHeader {
    public static let magic = 0
    public static let version = 8
    public static let fileBytes = 12
    public static let laneID = 16
    public static let salt = 32

    public static let bytes = 64
    public static let magicValue: UInt64 = 0x3130_4154_4143_5743  // "CWCATA01"
    public static let filesMax = 63
}

/// FORMAT §5. Offsets in one catalog entry.
public enum CatalogEntry {
    public static let salt = 0
    public static let length = 8
    public static let crc = 12
    public static let type = 16
    public static let identifier = 20
    public static let payload = 24

    public static let headerBytes = 24
    public static let alignment = 16
    public static let lengthMax = 16 << 20
    public static let typeLogger: UInt8 = 1
    public static let typeSite: UInt8 = 2
    public static let typeResource: UInt8 = 3
}

/// FORMAT §10. Offsets in the header of a journal.
public enum JournalHeader {
    public static let magic = 0
    public static let version = 8
    public static let laneID = 16
    public static let salt = 32
    public static let bytes = 64
    public static let magicValue: UInt64 = 0x3130_4C4E_524A_5743  // "CWJRNL01"
}

/// FORMAT §10. Offsets in one journal frame.
public enum JournalFrame {
    public static let salt = 0
    public static let length = 8
    public static let crc = 12
    public static let kind = 16
    public static let segment = 24
    public static let chunk = 32
    public static let from = 40
    public static let to = 44
    public static let chunkHeader = 48
    public static let bytes = 112

    public static let headerBytes = 112
    public static let kindChunk: UInt32 = 1
    public static let kindCatalog: UInt32 = 2
    public static let kindSegmentHeader: UInt32 = 3
    public static let kindLaneHeader: UInt32 = 4
}
