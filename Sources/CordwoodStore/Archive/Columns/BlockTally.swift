// Counts the records of whole blocks by the header and the columns up to that of loggers (FORMAT
// §11.2, §11.4): no record is made, and the rest of the frame is not inflated. Its checksum was
// compared, but not those of the columns. One reader owns it; one thread at a time.
// SAFETY: views are read below their count and not kept; a byte's count is one of 256. Sendable
// because options are; only the thread that reads with them uses it.

import CordwoodCore

package final class BlockTally: BlockCounter, @unchecked Sendable {
    /// The last stream read.
    static let last = 11
    private enum Column { static let (thread, time, offset, level, kind) = (5, 6, 7, 9, 10) }

    package private(set) var records: UInt64 = 0
    /// Indexed by level; 0: without one.
    package private(set) var byLevel = [UInt64](repeating: 0, count: 25)
    /// UTC ns.
    package private(set) var timeMin: UInt64 = .max
    package private(set) var timeMax: UInt64 = 0
    /// By logger, process and hour; includes records that are made.
    var common = RecordTally()

    package init() {}

    /// If the whole block is wanted, and has no gap records: these also say how many were not kept.
    func mayCount(_ block: BlockEntry, _ limits: RowLimits) -> Bool {
        limits.wantsAll(block) && block.kinds & (1 << UInt32(RecordRef.gapKind)) == 0
    }

    /// The parts to read: times only if those of the header do not determine the hour.
    func parts(of block: BlockEntry) -> BlockParts {
        let isOfOneHour =
            block.timeMin / RecordTally.hourNs == block.timeMax / RecordTally.hourNs
        return BlockParts(last: Self.last, hasTimes: !isOfOneHour, hasNumbers: false)
    }

    @safe func add(
        _ payload: UnsafeRawBufferPointer, _ head: BlockHead, _ limits: RowLimits
    ) -> BlockOutcome {
        let count = Int(head.recordCount)
        guard let streams = BlockRecords.streams(payload, through: Self.last),
            unsafe streams[Column.level].count == count, unsafe streams[Column.kind].count == count,
            let dictionaries = BlockDictionaries(streams)
        else { return .damaged }
        if count == 0 { return .counted }
        var hours: [UInt64] = []
        if head.timeMin / RecordTally.hourNs != head.timeMax / RecordTally.hourNs {
            // A section may hold another time than the columns.
            let kinds = unsafe streams[Column.kind]
            if unsafe kinds.contains(where: { $0 & BlockKind.hasSections != 0 }) { return .unclear }
            guard let found = times(streams, count) else { return .damaged }
            hours = found
        }
        guard
            let threads = unsafe indexes(streams[Column.thread], count, dictionaries.threads.count),
            let loggers = unsafe indexes(streams[Self.last], count, dictionaries.loggers.count)
        else { return .damaged }
        for (at, records) in threads.enumerated() where records > 0 {
            common.count(records, process: dictionaries.threads[at].process)
        }
        for (at, records) in loggers.enumerated() where records > 0 {
            unsafe common.count(records, logger: dictionaries.loggers[at])
        }
        for time in hours { common.count(1, timeNs: time) }
        if hours.isEmpty { common.count(UInt64(count), timeNs: head.timeMin) }
        for (level, records) in levels(unsafe streams[Column.level]).enumerated() {
            byLevel[level] &+= records
        }
        records &+= UInt64(count)
        timeMin = min(timeMin, head.timeMin)
        timeMax = max(timeMax, head.timeMax)
        return .counted
    }

    /// The number of records with each level. A separate function, so that a record costs no access
    /// to this object.
    @safe private func levels(_ column: UnsafeRawBufferPointer) -> [UInt64] {
        let octets = Self.octets(column)
        var found = Array(octets.prefix(byLevel.count))
        for invalid in octets.dropFirst(byLevel.count) { found[0] &+= invalid }
        return found
    }

    /// The number of times each byte is in a column.
    @safe static func octets(_ column: UnsafeRawBufferPointer) -> [UInt64] {
        var found = [UInt64](repeating: 0, count: 256)
        unsafe found.withUnsafeMutableBufferPointer { found in
            var at = 0
            while at &+ 8 <= column.count {
                var word = unsafe column.loadUnaligned(fromByteOffset: at, as: UInt64.self)
                at &+= 8
                // Neighbours are often the same.
                if word == (word & 0xFF) &* 0x0101_0101_0101_0101 {
                    unsafe found[Int(word & 0xFF)] &+= 8
                    continue
                }
                for _ in 0..<8 {
                    unsafe found[Int(word & 0xFF)] &+= 1
                    word &>>= 8
                }
            }
            while at < column.count {
                unsafe found[Int(column[at])] &+= 1
                at &+= 1
            }
        }
        return found
    }

    /// UTC ns of each record; nil: damaged.
    @safe private func times(_ streams: [UnsafeRawBufferPointer], _ count: Int) -> [UInt64]? {
        var steps = unsafe ByteCursor(streams[Column.time])
        var offsets = unsafe ByteCursor(streams[Column.offset])
        var (monotonic, offset): (UInt64, UInt64) = (0, 0)
        var times: [UInt64] = []
        times.reserveCapacity(count)
        for _ in 0..<count {
            guard let step = steps.zigzag(), let more = offsets.zigzag() else { return nil }
            monotonic &+= step
            offset &+= more
            times.append(monotonic &+ offset)
        }
        return times
    }

    /// The number of times a column has each index of a dictionary; nil: damaged.
    @safe private func indexes(
        _ column: UnsafeRawBufferPointer, _ count: Int, _ entries: Int
    ) -> [UInt64]? {
        if column.count == count {
            // One byte each: a longer number would leave no byte for another.
            let octets = Self.octets(column)
            let known = min(entries, 128)
            if octets[known...].contains(where: { $0 > 0 }) { return nil }
            return Array(octets[..<known]) + Array(repeating: 0, count: entries - known)
        }
        var found = [UInt64](repeating: 0, count: entries)
        var cursor = ByteCursor(column)
        for _ in 0..<count {
            guard let index = cursor.varint(), index < UInt64(entries) else { return nil }
            found[Int(index)] &+= 1
        }
        return found
    }
}
