// Copies an archive's severe records into an extra block at its end (FORMAT §11.11), so that a
// query for errors reads only that block. One writer owns one builder; one thread.

import CordwoodCore

struct ExtractBuilder: RecordNoter, ~Copyable {
    private var builder: Block
    private var firstMonotonic: UInt64?
    private var lastMonotonic: UInt64 = 0
    private let timeStepNs: UInt64
    private var isWanted: Bool

    /// Limit on the block; a larger extract would be too much of its archive.
    private static let target = 256 << 10
    /// Archives with fewer blocks are read quickly without an extract.
    private static let blocksLeast = 4
    /// The archive must have at least this many records per copied one.
    private static let recordsLeast: UInt64 = 64

    init(isWanted: Bool, timeStepNs: UInt64) {
        self.isWanted = isWanted
        self.timeStepNs = max(timeStepNs, 1)
        builder = Block(
            seed: .random(in: .min ... .max), target: Self.target, timeStepNs: timeStepNs)
    }

    /// Looks at the archive's next record and copies it if it is severe. If a record is older than
    /// the one before it, readers need all records to establish their order, so there is no
    /// extract.
    @inline(__always)
    mutating func note(_ record: inout RecordRef) {
        guard isWanted else { return }
        isWanted = record.monotonicNs >= lastMonotonic
        lastMonotonic = record.monotonicNs
        if firstMonotonic == nil { firstMonotonic = lastMonotonic }
        if record.level >= ArchiveExtract.levelValue { take(&record) }
    }

    @inline(never)
    private mutating func take(_ record: inout RecordRef) {
        guard record.message.count + record.sections.count < Self.target else {
            return isWanted = false
        }
        builder.add(&record)
        if builder.isFull() { isWanted = false }
    }

    mutating func isWorthwhile(blocks: Int, records: UInt64) -> Bool {
        let count = UInt64(builder.summary.recordCount)
        return isWanted && count > 0 && blocks >= Self.blocksLeast
            && count * Self.recordsLeast <= records && !builder.failed
    }

    /// Makes the whole frame.
    mutating func make(with maker: inout BlockMaker) throws(ArchiveError) {
        try maker.make(&builder, headerBytes: ArchiveExtract.frameBytes)
        _ = maker.storeHeader(
            builder.summary, at: ArchiveExtract.frameBytes - BlockHeader.frameBytes)
        let start = SkippableFrame.headerBytes
        maker.store(SkippableFrame.magicValue, at: 0)
        maker.store(UInt32(maker.frame.count - start), at: 4)
        maker.store(ArchiveExtract.magicValue, at: start + ArchiveExtract.magic)
        let first = firstMonotonic ?? 0
        maker.store(first - first % timeStepNs, at: start + ArchiveExtract.firstMonotonic)
        maker.store(UInt64(ArchiveExtract.levelValue), at: start + ArchiveExtract.level)
    }
}
