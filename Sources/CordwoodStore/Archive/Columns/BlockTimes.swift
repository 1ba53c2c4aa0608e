// The times of one block, from its columns alone (FORMAT §11.4): they decide whether a reader of
// the last records needs the block. No record is made. A value; any thread.

import CordwoodCore

struct BlockTimes {
    /// Ordering times (FORMAT §4): that of the first record, and the greatest.
    let first: UInt64
    let greatest: UInt64
    /// UTC minus ordering time of the last record, modulo 2^64.
    let shift: UInt64

    /// `block`: at least its `BlockParts.times`. `offset`: from monotonic to ordering time. nil:
    /// there is no record, or the block names another process, whose offset may differ.
    init?(_ block: BlockView, of process: ProcessInfo, offset: UInt64) {
        guard let all = Self.all(block, of: process, offset: offset), let first = all.first,
            let greatest = all.max()
        else { return nil }
        (self.first, self.greatest) = (first, greatest)
        let last = block.count - 1
        shift = block.offset[last] &- offset
    }

    /// The ordering times of all records; nil: the block names another process.
    static func all(
        _ block: BlockView, of process: ProcessInfo, offset: UInt64
    ) -> [UInt64]? {
        guard
            block.dictionaries.processes.allSatisfy({
                $0.laneID == process.laneID && $0.bootID == process.bootID
            })
        else { return nil }
        return (0..<block.count).map { block.time[$0] &+ offset }
    }
}
