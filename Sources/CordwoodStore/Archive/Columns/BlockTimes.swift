// The times of one inflated block, from its columns alone (FORMAT §11.4): they decide whether a
// reader of the last records needs the block. No record is made. A value; any thread.

import CordwoodCore

struct BlockTimes {
    /// Ordering times (FORMAT §4): that of the first record, and the greatest.
    let first: UInt64
    let greatest: UInt64
    /// The last stream read.
    static let last = 7
    /// The stream of monotonic times.
    static let monotonic = 6
    /// UTC minus ordering time of the last record, modulo 2^64.
    let shift: UInt64

    /// `offset`: from monotonic to ordering time. nil: the columns are damaged, there is no record,
    /// or the block names another process, whose offset may differ.
    @safe init?(
        _ payload: UnsafeRawBufferPointer, recordCount: UInt32, of process: ProcessInfo,
        offset: UInt64
    ) {
        guard recordCount > 0, let streams = Self.streams(payload, of: process) else { return nil }
        var steps = unsafe ByteCursor(streams[Self.monotonic])
        var offsets = unsafe ByteCursor(streams[7])
        var (monotonic, toUTC, first, greatest): (UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0)
        for index in 0..<recordCount {
            guard let step = steps.zigzag(), let more = offsets.zigzag() else { return nil }
            monotonic &+= step
            toUTC &+= more
            let time = monotonic &+ offset
            if index == 0 { first = time }
            greatest = max(greatest, time)
        }
        self.first = first
        self.greatest = greatest
        shift = toUTC &- offset
    }

    /// The ordering times of all records; nil: likewise.
    @safe static func all(
        _ payload: UnsafeRawBufferPointer, recordCount: UInt32, of process: ProcessInfo,
        offset: UInt64
    ) -> [UInt64]? {
        guard let streams = streams(payload, of: process),
            unsafe Int(recordCount) <= streams[monotonic].count
        else { return nil }
        var steps = unsafe ByteCursor(streams[monotonic])
        var found: [UInt64] = []
        found.reserveCapacity(Int(recordCount))
        var time = offset
        for _ in 0..<recordCount {
            guard let step = steps.zigzag() else { return nil }
            time &+= step
            found.append(time)
        }
        return found
    }

    /// nil: damaged, or the block names another process.
    @safe private static func streams(
        _ payload: UnsafeRawBufferPointer, of process: ProcessInfo
    ) -> [UnsafeRawBufferPointer]? {
        guard let streams = BlockRecords.streams(payload, through: last),
            let dictionaries = BlockDictionaries(streams),
            dictionaries.processes.allSatisfy({
                $0.laneID == process.laneID && $0.bootID == process.bootID
            })
        else { return nil }
        return unsafe streams
    }

    /// Monotonic times of the first and the last record, if no record is older than the one before
    /// it.
    @safe static func inOrder(
        _ stream: UnsafeRawBufferPointer, _ count: UInt32
    ) -> (first: UInt64, last: UInt64)? {
        var steps = ByteCursor(stream)
        guard count > 0, let first = steps.zigzag() else { return nil }
        var last = first
        for _ in 1..<count {
            guard let step = steps.zigzag(), Int64(bitPattern: step) >= 0 else { return nil }
            let (next, overflow) = last.addingReportingOverflow(step)
            if overflow { return nil }
            last = next
        }
        return (first, last)
    }

    /// The process of a block, and the monotonic time of its first record.
    @safe static func first(
        _ payload: UnsafeRawBufferPointer, recordCount: UInt32
    ) -> (process: ProcessInfo, monotonicNs: UInt64)? {
        guard recordCount > 0, let streams = BlockRecords.streams(payload, through: last),
            let process = BlockDictionaries(streams)?.processes.first
        else { return nil }
        var steps = unsafe ByteCursor(streams[6])
        return steps.zigzag().map { (process, $0) }
    }
}
