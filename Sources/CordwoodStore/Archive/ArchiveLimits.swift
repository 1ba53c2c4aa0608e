// Every limit of an archive (FORMAT §1, §11.4): what the writer never exceeds and what the reader
// refuses before it allocates. A record that would not fit one block is cut here and marked.

enum ArchiveLimits {
    /// FORMAT §1: payload of one block.
    static let payloadMax = 64 << 20
    static let blocksMax = 1 << 20
    static let coversMax = 65_536
    /// Content of the header frame.
    static let headerMax = 32 << 20
    /// Entries of one dictionary of a block; also attributes of all its processes together.
    static let dictionaryMax = 65_536
    static let processesMax = 4_096
    static let streams = 20
    static let streamsMax = 1_024

    /// A block is closed when its messages, sections and dictionaries reach this.
    static let blockTarget = 1 << 20
    /// What a record costs beside its message, roughly; keeps blocks of empty messages small.
    static let recordCost = 8

    /// The parts of one record; together below payloadMax.
    static let messageMax = 44 << 20
    static let sectionsMax = 14 << 20
    static let contextMax = 1 << 20
    static let stringMax = 65_535
    /// Attributes of one process; what exceeds it is left out.
    static let resourceMax = 1 << 20

    /// No codec reaches more: zstd makes 128 KiB of 4 bytes, lz4 255 of one.
    static let zstdRatioMax = 32_768
    static let lz4RatioMax = 255

    /// Problems that are kept as text; the rest is counted.
    static let problemsMax = 64
}
