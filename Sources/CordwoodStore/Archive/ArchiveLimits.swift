// Every limit of an archive (FORMAT §1, §11.4): the writer never exceeds one, and the reader
// refuses larger values before it allocates. A record that would not fit in a block is cut to these
// limits and marked.

enum ArchiveLimits {
    /// Payload of one block (FORMAT §1).
    static let payloadMax = 64 << 20
    static let blocksMax = 1 << 20
    static let coversMax = 65_536
    /// Ids of archives that one archive replaces.
    static let replacedMax = 65_536
    /// Frames between the blocks and the footer, and the size of one.
    static let sidesMax = 64
    static let sideMax = 64 << 20
    /// Contents of the header frame.
    static let headerMax = 32 << 20
    /// Entries of one dictionary in a block; also the attributes of all its processes together.
    static let dictionaryMax = 65_536
    static let processesMax = 4_096
    static let streams = 20
    static let streamsMax = 1_024

    /// A block is closed when its messages, sections and dictionaries reach this size.
    static let blockTarget = 1 << 20
    /// Approximate cost of a record besides its message; keeps blocks of empty messages small.
    static let recordCost = 8

    /// The parts of one record; together below payloadMax.
    static let messageMax = 44 << 20
    static let sectionsMax = 14 << 20
    static let contextMax = 1 << 20
    static let stringMax = 65_535
    /// Attributes of one process; the rest is left out.
    static let resourceMax = 1 << 20

    /// No codec exceeds this: zstd makes 128 KiB out of 4 bytes, lz4 255 out of one.
    static let zstdRatioMax = 32_768
    static let lz4RatioMax = 255

    /// Problems kept as text; the rest are only counted.
    static let problemsMax = 64
}
