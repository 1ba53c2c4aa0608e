// Counts the records of whole blocks by their columns, without making any record. The reader passes
// the columns that are asked for. One reader owns it; one thread at a time.

import CordwoodCore

protocol BlockCounter: AnyObject, Sendable {
    /// False: the records of the block are needed. `limits`: everything that is asked of them.
    func mayCount(_ block: BlockEntry, _ limits: RowLimits) -> Bool
    /// The parts of the block that are read.
    func parts(of block: BlockEntry, _ limits: RowLimits) -> BlockParts
    /// Counts the rows within the limits. `block`: its `parts`. False: nothing was counted, because
    /// it is damaged.
    func add(_ block: BlockView, of entry: BlockEntry, _ limits: RowLimits) -> Bool
}
