// Byte offsets and numbers of segments, chunks and records (FORMAT §6–§8). Offsets only: no I/O, no
// memory. A test compares every number with the tables in docs/FORMAT.md.

/// FORMAT §1.
public enum FormatVersion {
    public static let current: UInt32 = 1
    public static let incompatKnown: UInt64 = 0
}

/// FORMAT §6.1. Offsets from the start of a segment.
public enum SegmentHeader {
    public static let magic = 0
    public static let version = 8
    public static let headerBytes = 12
    public static let compat = 16
    public static let incompat = 24
    public static let laneID = 32
    public static let bootID = 48
    public static let number = 64
    public static let generation = 72
    public static let clockKind = 76
    public static let salt = 80
    public static let size = 88
    public static let ticksPerSecond = 96
    public static let createdMonotonic = 104
    public static let state = 112
    public static let allocated = 128
    public static let ready = 256
    public static let end = 384
    public static let sealedRealtime = 392
    public static let chunksCRC = 400
    public static let sealedCRC = 404
    public static let clockSequence = 512
    public static let clockCount = 516
    public static let clockPairs = 576

    public static let bytes = 4_096
    public static let magicValue: UInt64 = 0x3130_4D47_4553_5743  // "CWSEGM01"
    public static let clockPairsMax = 108
    public static let stateOpen: UInt32 = 1
    public static let stateSealing: UInt32 = 2
    public static let stateSealed: UInt32 = 3
    public static let stateDead: UInt32 = 4
    public static let clockTSC: UInt32 = 1
    public static let clockMonotonic: UInt32 = 2
    public static let clockCoarse: UInt32 = 3
}

/// FORMAT §6.1. Offsets in one clock pair.
public enum ClockPair {
    public static let ticks = 0
    public static let monotonic = 8
    public static let boottime = 16
    public static let realtime = 24

    public static let bytes = 32
}

/// FORMAT §6.2. Offsets from the start of a chunk.
public enum ChunkHeader {
    public static let salt = 0
    public static let committed = 8
    public static let size = 12
    public static let offset = 16
    public static let baseTicks = 24
    public static let threadSerial = 32
    public static let sequence = 36
    public static let threadID = 40
    public static let stream = 44
    public static let resource = 46
    public static let threadName = 48
    public static let final = 64
    public static let crc = 68

    public static let bytes = 128
    /// From `size` up to the end of `crc`: what never changes again in a sealed segment.
    package static let sealedBytes = 60
    public static let granule = 1_024
    /// A larger chunk holds one record that does not fit, and what its last granule has room for.
    public static let largeBytes = 2 << 20
}

/// FORMAT §8. Offsets from the start of a record.
public enum RecordHeader {
    public static let length = 0
    public static let delta = 4
    public static let identifier = 8
    public static let level = 12
    public static let type = 13
    public static let flags = 14
    public static let payload = 16

    public static let bytes = 16
    public static let alignment = 8
    public static let flagTruncated: UInt16 = 1
}

/// FORMAT §8. Types of records.
public enum RecordType {
    public static let text: UInt8 = 1
    public static let rich: UInt8 = 2
    public static let site: UInt8 = 3
    public static let timeBase: UInt8 = 4
    public static let context: UInt8 = 5
    public static let trace: UInt8 = 6
    public static let gap: UInt8 = 7
    public static let skip: UInt8 = 8
    public static let described: UInt8 = 9

    /// True for the records that a reader shows and that take a number in the chunk's sequence.
    package static func isCounted(_ type: UInt8) -> Bool {
        type >= text && type <= site || type == gap || type == described
    }
}

/// FORMAT §8.1. Kinds of sections.
public enum SectionKind {
    public static let message: UInt8 = 1
    public static let fields: UInt8 = 2
    public static let site: UInt8 = 3
    public static let place: UInt8 = 4
    public static let trace: UInt8 = 5
    public static let time: UInt8 = 6
    public static let exception: UInt8 = 7
    public static let kind: UInt8 = 8
    public static let originalLength: UInt8 = 9
    public static let arguments: UInt8 = 10
    public static let definition: UInt8 = 11
    public static let headerBytes = 8
}

/// FORMAT §8.2. Types of field values; the numbers are the header's CW_TYPE_….
public enum FieldType {
    public static let int: UInt8 = 1
    public static let uint: UInt8 = 2
    public static let double: UInt8 = 3
    public static let bool: UInt8 = 4
    public static let string: UInt8 = 5
    public static let countMax = 4_096
}

/// FORMAT §8.2. What the bytes of a string are.
public enum StringForm {
    public static let text: UInt8 = 0
    public static let json: UInt8 = 1
}

/// FORMAT §8.4.
public enum TraceLayout {
    public static let bytes = 25
}

/// FORMAT §8.6. Offsets in the payload of a gap record.
public enum GapPayload {
    public static let slot = 0
    public static let from = 8
    public static let to = 16
    public static let firstMonotonic = 24
    public static let lastMonotonic = 32
    public static let causes = 40

    public static let bytes = 48
}
