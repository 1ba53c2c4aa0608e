// Every limit of an archive (FORMAT §1, §11.10): the writer never exceeds one, and the reader
// refuses larger values before it allocates. A record that would not fit in a block is cut to these
// limits and marked.

enum ArchiveLimits {
    /// Of one block, in the file: the content of all its frames, as zstd may store it.
    static let storedMax = BlockLimits.contentMax + BlockLimits.contentMax >> 6
    static let blocksMax = 1 << 20
    static let coversMax = 65_536
    /// Ids of archives that one archive replaces.
    static let replacedMax = 65_536
    /// Frames between the blocks and the footer, and the size of one.
    static let sidesMax = 64
    static let sideMax = 64 << 20
    /// Contents of the header frame.
    static let headerMax = 32 << 20
    static let processesMax = 4_096

    /// A block is closed when its messages, sections and dictionaries reach this size.
    static let blockTarget = 1 << 20
    /// Approximate cost of a record besides its message; keeps blocks of empty messages small.
    static let recordCost = 8

    /// The parts of one record; together below the size of a block.
    static let messageMax = 44 << 20
    static let sectionsMax = 14 << 20
    static let contextMax = 1 << 20
    static let stringMax = 65_535
    /// Attributes of one process; the rest is left out.
    static let resourceMax = 1 << 20

    /// Problems kept as text; the rest are only counted.
    static let problemsMax = 64
}
