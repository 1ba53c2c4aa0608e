// Counts the records of whole blocks by the header and a few columns (FORMAT §11.2, §11.4): no
// record is made, and the others are not inflated. One reader owns it; one thread at a time.
// SAFETY: views are not kept; a byte's count is one of 256. Sendable because options are; only the
// thread that reads with them uses it.

import CordwoodCore

package final class BlockTally: BlockCounter, @unchecked Sendable {
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
        var columns = BlockColumns(.processes, .threads, .loggers, .level, .thread, .logger)
        let isOfOneHour =
            block.timeMin / RecordTally.hourNs == block.timeMax / RecordTally.hourNs
        if !isOfOneHour { columns.formUnion(BlockColumns(.kind, .time, .offset)) }
        return BlockParts(columns: columns)
    }

    func add(_ block: BlockView, _ head: BlockHead, _ limits: RowLimits) -> BlockOutcome {
        if block.count == 0 { return .counted }
        var hours: [UInt64] = []
        if head.timeMin / RecordTally.hourNs != head.timeMax / RecordTally.hourNs {
            for row in 0..<block.count {
                // A section may hold another time than the columns.
                if BlockView.hasSections(block.kind[row]) { return .unclear }
                hours.append(block.time[row] &+ block.offset[row])
            }
        }
        let dictionaries = block.dictionaries
        let threads = Self.counts(block.thread, dictionaries.threads.count)
        for (at, records) in threads.enumerated() where records > 0 {
            common.count(records, process: dictionaries.threads[at].process)
        }
        let loggers = Self.counts(block.logger, unsafe dictionaries.loggers.count)
        for (at, records) in loggers.enumerated() where records > 0 {
            unsafe common.count(records, logger: dictionaries.loggers[at])
        }
        for time in hours { common.count(1, timeNs: time) }
        if hours.isEmpty { common.count(UInt64(block.count), timeNs: head.timeMin) }
        let levels = Self.counts(block.level, 256)
        for (level, records) in levels.enumerated() {
            // Numbers that name no level count as records without one.
            byLevel[level < byLevel.count ? level : 0] &+= records
        }
        records &+= UInt64(block.count)
        timeMin = min(timeMin, head.timeMin)
        timeMax = max(timeMax, head.timeMax)
        return .counted
    }

    /// How many rows have each number, which is below `end`.
    static func counts(_ column: RowNumbers, _ end: Int) -> [UInt64] {
        var found = [UInt64](repeating: 0, count: end)
        if let only = column.only {
            if only < UInt64(end) { found[Int(only)] = UInt64(column.count) }
            return found
        }
        if let octets = column.octets {
            for (number, rows) in Self.octets(octets).prefix(end).enumerated() {
                found[number] = rows
            }
            return found
        }
        for row in 0..<column.count { found[Int(truncatingIfNeeded: column[row])] &+= 1 }
        return found
    }

    /// The number of times each byte is in a column.
    @safe private static func octets(_ column: UnsafeRawBufferPointer) -> [UInt64] {
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
}
