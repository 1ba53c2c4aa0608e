// What counts the records of whole blocks by their columns, so that none is made. The reader gives
// it the beginning of a block's payload, whose stored checksum was compared; those of the columns
// were not. One reader owns it; one thread at a time.

import CordwoodCore

enum BlockOutcome {
    case counted
    /// Nothing was counted: it takes the records.
    case unclear
    /// Nothing was counted.
    case damaged
}

protocol BlockCounter: AnyObject, Sendable {
    /// False: the records of the block are needed. `limits`: all that is asked of them.
    func mayCount(_ block: BlockEntry, _ limits: RowLimits) -> Bool
    /// What of the block is looked at.
    func parts(of block: BlockEntry) -> BlockParts
    /// Counts the rows that are within the limits. `payload`: its streams up to the last of
    /// `parts`.
    @safe func add(
        _ payload: UnsafeRawBufferPointer, _ head: BlockHead, _ limits: RowLimits
    ) -> BlockOutcome
}
