// Counts the records of whole blocks by their columns, without making any record. The reader passes
// the columns that are asked for. One reader owns it; one thread at a time.

import CordwoodCore

enum BlockOutcome {
    case counted
    /// Nothing was counted: the records are needed.
    case unclear
    /// Nothing was counted.
    case damaged
}

protocol BlockCounter: AnyObject, Sendable {
    /// False: the records of the block are needed. `limits`: everything that is asked of them.
    func mayCount(_ block: BlockEntry, _ limits: RowLimits) -> Bool
    /// The parts of the block that are read.
    func parts(of block: BlockEntry) -> BlockParts
    /// Counts the rows within the limits. `block`: its `parts`.
    func add(_ block: BlockView, _ head: BlockHead, _ limits: RowLimits) -> BlockOutcome
}
