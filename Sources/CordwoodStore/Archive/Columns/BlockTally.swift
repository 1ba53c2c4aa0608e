// Counts the records of blocks by the footer and a few columns (FORMAT §11.3, §11.4): no record is
// made, and the others are not inflated. One reader owns it; one thread at a time.
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

    /// False if gap records are wanted: they also say how many records were refused.
    func mayCount(_ block: BlockEntry, _ limits: RowLimits) -> Bool {
        let kinds = limits.kinds == 0 ? .max : limits.kinds
        return block.kinds & kinds & (1 << UInt32(RecordRef.gapKind)) == 0
    }

    /// Times are read only if they can change the result.
    func parts(of block: BlockEntry, _ limits: RowLimits) -> BlockParts {
        var parts = BlockParts(
            columns: BlockColumns(.processes, .threads, .loggers, .level, .thread, .logger))
        if Self.isOfOneHour(block), limits.wantsAll(block) { return parts }
        parts.columns.formUnion(BlockColumns(.kind, .time, .offset, .sections))
        parts.sections = [.time]
        return parts
    }

    private static func isOfOneHour(_ block: BlockEntry) -> Bool {
        block.timeMin / RecordTally.hourNs == block.timeMax / RecordTally.hourNs
    }

    func add(_ block: BlockView, of entry: BlockEntry, _ limits: RowLimits) -> Bool {
        if block.count == 0 { return true }
        let dictionaries = block.dictionaries
        let threads: [UInt64]
        let loggers: [UInt64]
        let levels: [UInt64]
        if Self.isOfOneHour(entry), limits.wantsAll(entry) {
            threads = Self.counts(block.thread, dictionaries.threads.count)
            loggers = unsafe Self.counts(block.logger, dictionaries.loggers.count)
            levels = Self.counts(block.level, 256)
            records &+= UInt64(block.count)
            common.count(UInt64(block.count), timeNs: entry.timeMin)
            timeMin = min(timeMin, entry.timeMin)
            timeMax = max(timeMax, entry.timeMax)
        } else {
            (threads, loggers, levels) = counts(block, RowBounds(limits, dictionaries))
        }
        for (at, records) in threads.enumerated() where records > 0 {
            common.count(records, process: dictionaries.threads[at].process)
        }
        for (at, records) in loggers.enumerated() where records > 0 {
            unsafe common.count(records, logger: dictionaries.loggers[at])
        }
        for (level, records) in levels.enumerated() {
            // Numbers that name no level count as records without one.
            byLevel[level < byLevel.count ? level : 0] &+= records
        }
        return true
    }

    /// Counts the rows within the bounds, one by one, and their hours.
    private func counts(
        _ block: BlockView, _ bounds: RowBounds
    ) -> (threads: [UInt64], loggers: [UInt64], levels: [UInt64]) {
        var threads = [UInt64](repeating: 0, count: block.dictionaries.threads.count)
        var loggers = unsafe [UInt64](repeating: 0, count: block.dictionaries.loggers.count)
        var levels = [UInt64](repeating: 0, count: byLevel.count)
        // The start of the current hour, and the number of its rows.
        var (hour, inHour): (UInt64, UInt64) = (0, 0)
        for row in 0..<block.count {
            let time = block.shownTime(row)
            let stored = block.level[row]
            let level = stored < UInt64(levels.count) ? Int(stored) : 0
            let name = Int(truncatingIfNeeded: block.logger[row])
            guard
                bounds.has(
                    level: UInt8(level), kind: block.kind[row], timeNs: time, logger: name)
            else { continue }
            if time &- hour >= RecordTally.hourNs {
                if inHour > 0 { common.count(inHour, timeNs: hour) }
                records &+= inHour
                (hour, inHour) = (time / RecordTally.hourNs &* RecordTally.hourNs, 0)
            }
            inHour &+= 1
            threads[Int(truncatingIfNeeded: block.thread[row])] &+= 1
            loggers[name] &+= 1
            levels[level] &+= 1
            timeMin = min(timeMin, time)
            timeMax = max(timeMax, time)
        }
        if inHour > 0 { common.count(inHour, timeNs: hour) }
        records &+= inHour
        return (threads, loggers, levels)
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
