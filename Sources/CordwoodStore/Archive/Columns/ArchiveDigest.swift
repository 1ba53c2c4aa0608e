// How many records an archive has, by level: in total, and by logger, process and second, with the
// first and the last time. Counted from the columns of its blocks; no record is made. It answers
// `stats` without the archive, as exactly as a read of all records: if columns cannot decide, there
// is no digest. Made once, then only read; one thread at a time.
// SAFETY: views are read below their count and not kept.

import CordwoodCore

struct LevelDigest: Equatable {
    var records: UInt64 = 0
    /// UTC ns as shown.
    var timeMin: UInt64 = .max
    var timeMax: UInt64 = 0
    /// By the index in `ArchiveDigest.loggers` and `processes`.
    var loggers: [Int: UInt64] = [:]
    var processes: [Int: UInt64] = [:]
    /// By UTC seconds.
    var seconds: [UInt64: UInt64] = [:]

    fileprivate mutating func count(_ more: UInt64, second: UInt64) {
        if more == 0 { return }
        records &+= more
        seconds[second, default: 0] &+= more
    }
}

struct ArchiveDigest: Equatable {
    struct Process: Hashable {
        var lane: LaneID
        var label: ProcessLabel
    }

    static let levelsMax = 25
    /// A section may hold another time than the columns.
    static let parts = BlockParts(
        columns: BlockColumns(
            .processes, .threads, .loggers, .kind, .level, .thread, .time, .offset, .logger,
            .sections),
        sections: [.time])
    private static let nanoseconds: UInt64 = 1_000_000_000

    /// By level; 0: without one.
    var levels = [LevelDigest](repeating: LevelDigest(), count: levelsMax)
    var loggers: [[UInt8]] = []
    var processes: [Process] = []
    private var loggerPlaces: [[UInt8]: Int] = [:]
    private var processPlaces: [Process: Int] = [:]

    init() {}

    static func == (a: ArchiveDigest, b: ArchiveDigest) -> Bool {
        (a.levels, a.loggers, a.processes) == (b.levels, b.loggers, b.processes)
    }

    /// False with gap records: these also say how many records were not kept.
    static func suffices(for info: ArchiveInfo) -> Bool {
        info.kinds & (1 << UInt32(RecordRef.gapKind)) == 0
    }

    mutating func add(_ block: BlockView) {
        let dictionaries = block.dictionaries
        let loggers = unsafe dictionaries.loggers.map { place(ofLogger: $0) }
        let threads = dictionaries.threads.map { place(of: $0.process) }
        // For this block, by level and index.
        var byLogger = [UInt64](repeating: 0, count: loggers.count * Self.levelsMax)
        var byThread = [UInt64](repeating: 0, count: threads.count * Self.levelsMax)
        read(block, &byLogger, &byThread)
        for level in 0..<Self.levelsMax where levels[level].records > 0 {
            for (index, place) in loggers.enumerated() {
                let more = byLogger[level &* loggers.count &+ index]
                if more > 0 { levels[level].loggers[place, default: 0] &+= more }
            }
            for (index, place) in threads.enumerated() {
                let more = byThread[level &* threads.count &+ index]
                if more > 0 { levels[level].processes[place, default: 0] &+= more }
            }
        }
    }

    private mutating func read(
        _ block: BlockView, _ byLogger: inout [UInt64], _ byThread: inout [UInt64]
    ) {
        let (loggers, threads) = (byLogger.count / Self.levelsMax, byThread.count / Self.levelsMax)
        // The second that is being counted.
        var second: UInt64 = 0
        var inSecond = [UInt64](repeating: 0, count: Self.levelsMax)
        var first = [UInt64](repeating: .max, count: Self.levelsMax)
        var last = [UInt64](repeating: 0, count: Self.levelsMax)
        for row in 0..<block.count {
            let time = block.shownTime(row)
            let stored = block.level[row]
            let level = stored <= 24 ? Int(stored) : 0
            let who = Int(truncatingIfNeeded: block.thread[row])
            let name = Int(truncatingIfNeeded: block.logger[row])
            byLogger[level &* loggers &+ name] &+= 1
            byThread[level &* threads &+ who] &+= 1
            if time < first[level] { first[level] = time }
            if time > last[level] { last[level] = time }
            if time / Self.nanoseconds != second {
                flush(&inSecond, second)
                second = time / Self.nanoseconds
            }
            inSecond[level] &+= 1
        }
        flush(&inSecond, second)
        for level in 0..<Self.levelsMax {
            levels[level].timeMin = min(levels[level].timeMin, first[level])
            levels[level].timeMax = max(levels[level].timeMax, last[level])
        }
    }

    private mutating func flush(_ inSecond: inout [UInt64], _ second: UInt64) {
        for level in 0..<Self.levelsMax where inSecond[level] > 0 {
            levels[level].count(inSecond[level], second: second)
            inSecond[level] = 0
        }
    }

    @safe private mutating func place(ofLogger name: UnsafeRawBufferPointer) -> Int {
        let name = unsafe Array(name)
        if let place = loggerPlaces[name] { return place }
        loggerPlaces[name] = loggers.count
        loggers.append(name)
        return loggers.count - 1
    }

    private mutating func place(of process: ProcessInfo) -> Int {
        let found = Process(lane: process.laneID, label: ProcessLabel(process))
        if let place = processPlaces[found] { return place }
        processPlaces[found] = processes.count
        processes.append(found)
        return processes.count - 1
    }

    // MARK: As bytes

    /// nil: it does not parse.
    init?(_ cursor: inout ByteCursor) {
        guard let names = cursor.varint(), names <= UInt64(BlockLimits.dictionaryMax) else {
            return nil
        }
        for _ in 0..<names {
            guard let name = cursor.string() else { return nil }
            unsafe loggers.append(Array(name))
        }
        guard let lanes = cursor.varint(), lanes <= UInt64(BlockLimits.dictionaryMax) else {
            return nil
        }
        for _ in 0..<lanes {
            guard let lane = cursor.id(), let name = cursor.text(),
                let id = cursor.word(UInt32.self), let service = cursor.text(),
                let host = cursor.text()
            else { return nil }
            let label = ProcessLabel(name: name, id: id, service: service, host: host)
            processes.append(Process(lane: lane, label: label))
        }
        guard let known = cursor.varint(), known <= UInt64(Self.levelsMax) else { return nil }
        for _ in 0..<known {
            guard let level = cursor.byte(), level < Self.levelsMax,
                let found = LevelDigest(&cursor, loggers.count, processes.count)
            else { return nil }
            levels[Int(level)] = found
        }
    }

    func append(to out: inout GrowingBytes) {
        out.append(varint: UInt64(loggers.count))
        for name in loggers {
            unsafe name.withUnsafeBytes { out.append(string: $0, max: name.count) }
        }
        out.append(varint: UInt64(processes.count))
        for process in processes {
            out.append(id: process.lane)
            out.append(string: process.label.name, max: ArchiveLimits.stringMax)
            out.append(word: process.label.id)
            out.append(string: process.label.service, max: ArchiveLimits.resourceMax)
            out.append(string: process.label.host, max: ArchiveLimits.resourceMax)
        }
        let known = levels.indices.filter { levels[$0].records > 0 }
        out.append(varint: UInt64(known.count))
        for level in known {
            out.append(UInt8(level))
            levels[level].append(to: &out)
        }
    }
}

extension LevelDigest {
    fileprivate init?(_ cursor: inout ByteCursor, _ loggers: Int, _ processes: Int) {
        guard let records = cursor.varint(), let first = cursor.word(UInt64.self),
            let last = cursor.word(UInt64.self),
            let byLogger = Self.counts(&cursor, below: loggers),
            let byProcess = Self.counts(&cursor, below: processes), let known = cursor.varint()
        else { return nil }
        self.records = records
        timeMin = first
        timeMax = last
        self.loggers = byLogger
        self.processes = byProcess
        var second: UInt64 = 0
        for _ in 0..<known {
            guard let step = cursor.varint(), let count = cursor.varint() else { return nil }
            second &+= step
            seconds[second] = count
        }
    }

    fileprivate func append(to out: inout GrowingBytes) {
        out.append(varint: records)
        out.append(word: timeMin)
        out.append(word: timeMax)
        for counts in [loggers, processes] {
            out.append(varint: UInt64(counts.count))
            for (index, count) in counts {
                out.append(varint: UInt64(index))
                out.append(varint: count)
            }
        }
        out.append(varint: UInt64(seconds.count))
        var last: UInt64 = 0
        for second in seconds.keys.sorted() {
            out.append(varint: second &- last)
            out.append(varint: seconds[second] ?? 0)
            last = second
        }
    }

    private static func counts(_ cursor: inout ByteCursor, below limit: Int) -> [Int: UInt64]? {
        guard let known = cursor.varint(), known <= UInt64(limit) else { return nil }
        var found: [Int: UInt64] = [:]
        for _ in 0..<known {
            guard let index = cursor.varint(), index < UInt64(limit), let count = cursor.varint()
            else { return nil }
            found[Int(index)] = count
        }
        return found
    }
}
