// Which processes an archive has records of, where these ran, and roughly when: for a fleet's list
// of devices, and so that a query for one device passes over the archives of others. Counted once
// from the columns of its blocks; no record is made. One thread at a time.
// SAFETY: views are not kept.

import CordwoodCore

/// One process's share of an archive.
package struct OriginShare: Equatable, Sendable {
    /// Parts of its time, for a chart.
    package static let binsMax = 8

    package var label: ProcessLabel
    /// `service.version`.
    package var version: String
    package var records: UInt64 = 0
    /// Of level ERROR or above.
    package var errors: UInt64 = 0
    /// Gap records, which say how many records were not kept.
    package var gaps: UInt64 = 0
    /// UTC ns as written.
    package var timeMin: UInt64 = .max
    package var timeMax: UInt64 = 0
    /// Records from `timeMin` to `timeMax`, in equal parts. Approximate: a run of records counts as
    /// spread over its time.
    package var bins = [UInt64](repeating: 0, count: binsMax)
}

extension OriginShare {
    /// Without records so far.
    init(of process: ProcessInfo) {
        self.init(
            label: ProcessLabel(process), version: process.attribute("service.version") ?? "")
    }

    mutating func count(level: UInt8, isGap: Bool, timeNs: UInt64) {
        records &+= 1
        // From ERROR on.
        if level >= 17, level <= 24 { errors &+= 1 }
        if isGap { gaps &+= 1 }
        timeMin = min(timeMin, timeNs)
        timeMax = max(timeMax, timeNs)
    }
}

struct ArchiveOrigins: Equatable {
    static let parts = BlockParts(
        columns: BlockColumns(
            .processes, .threads, .kind, .level, .thread, .time, .offset, .contexts, .sections))
    /// An archive of more processes is read whenever it is needed.
    static let processesMax = 256
    /// The number of runs of a block's rows; each counts as spread evenly.
    private static let runsMax = 8

    private(set) var shares: [OriginShare] = []
    /// A record may have a field named `host.name`, or `service.name`, which overrides the
    /// attribute of its process.
    private(set) var mayNameHosts = false
    private(set) var mayNameServices = false

    private struct Run {
        var share: Int
        var first: UInt64
        var last: UInt64
        var records: UInt64
    }

    /// The attributes of a process may change while it runs.
    private struct Key: Hashable {
        var lane: LaneID
        var label: ProcessLabel
        var version: String
    }

    private var places: [Key: Int] = [:]
    private var runs: [Run] = []

    init() {}

    static func == (a: ArchiveOrigins, b: ArchiveOrigins) -> Bool {
        (a.shares, a.mayNameHosts, a.mayNameServices)
            == (b.shares, b.mayNameHosts, b.mayNameServices)
    }

    /// False: the block has too many processes.
    mutating func add(_ block: BlockView) -> Bool {
        let dictionaries = block.dictionaries
        let shares = dictionaries.threads.map { place(of: $0.process) }
        guard self.shares.count <= Self.processesMax else { return false }
        for context in dictionaries.contexts { look(context.fields) }
        look(block.sections)
        read(block, shares)
        return true
    }

    @safe private mutating func look(_ texts: UnsafeRawBufferPointer) {
        mayNameHosts = mayNameHosts || Self.mayName("host", texts)
        mayNameServices = mayNameServices || Self.mayName("service", texts)
    }

    /// As a field, or as a member of JSON.
    @safe private static func mayName(_ name: String, _ texts: UnsafeRawBufferPointer) -> Bool {
        func has(_ text: String) -> Bool { TextSearch.has(texts, Array(text.utf8)) }
        return has(name) && (has(name + ".name") || has("\"name\"") || has("\\u"))
    }

    private mutating func place(of process: ProcessInfo) -> Int {
        let share = OriginShare(of: process)
        let key = Key(lane: process.laneID, label: share.label, version: share.version)
        if let place = places[key] { return place }
        places[key] = shares.count
        shares.append(share)
        return shares.count - 1
    }

    private mutating func read(_ block: BlockView, _ threads: [Int]) {
        let length = max(1, block.count / Self.runsMax)
        var open = [Run?](repeating: nil, count: shares.count)
        for row in 0..<block.count {
            let time = block.time[row] &+ block.offset[row]
            let share = threads[Int(truncatingIfNeeded: block.thread[row])]
            let kind = UInt8(truncatingIfNeeded: block.kind[row]) & BlockKind.mask
            shares[share].count(
                level: UInt8(truncatingIfNeeded: block.level[row]),
                isGap: kind == RecordRef.gapKind, timeNs: time)
            var run = open[share] ?? Run(share: share, first: time, last: time, records: 0)
            run.first = min(run.first, time)
            run.last = max(run.last, time)
            run.records &+= 1
            open[share] = run
            if row % length == length - 1 { close(&open) }
        }
        close(&open)
    }

    private mutating func close(_ open: inout [Run?]) {
        for index in open.indices {
            guard let run = open[index] else { continue }
            runs.append(run)
            open[index] = nil
        }
    }

    /// Call after the last block.
    mutating func settle() {
        for run in runs {
            let share = shares[run.share]
            TimeBins.spread(
                run.records, from: run.first, to: run.last, over: share.timeMin...share.timeMax,
                into: &shares[run.share].bins)
        }
        runs = []
        // A dictionary may name processes without records.
        shares.removeAll { $0.records == 0 }
    }

    // MARK: As bytes

    init?(_ cursor: inout ByteCursor) {
        guard let flags = cursor.byte(), let count = cursor.varint(),
            count <= UInt64(Self.processesMax)
        else { return nil }
        mayNameHosts = flags & 1 != 0
        mayNameServices = flags & 2 != 0
        shares.reserveCapacity(Int(count))
        for _ in 0..<count {
            guard let name = cursor.text(), let id = cursor.word(UInt32.self),
                let service = cursor.text(), let host = cursor.text(),
                let version = cursor.text(), let records = cursor.varint(),
                let errors = cursor.varint(), let gaps = cursor.varint(),
                let timeMin = cursor.word(UInt64.self), let span = cursor.varint(),
                span <= .max - timeMin
            else { return nil }
            var share = OriginShare(
                label: ProcessLabel(name: name, id: id, service: service, host: host),
                version: version, records: records, errors: errors, gaps: gaps, timeMin: timeMin,
                timeMax: timeMin + span)
            for bin in share.bins.indices {
                guard let records = cursor.varint() else { return nil }
                share.bins[bin] = records
            }
            shares.append(share)
        }
    }

    func append(to out: inout GrowingBytes) {
        out.append(UInt8((mayNameHosts ? 1 : 0) | (mayNameServices ? 2 : 0)))
        out.append(varint: UInt64(shares.count))
        for share in shares {
            out.append(string: share.label.name, max: ArchiveLimits.stringMax)
            out.append(word: share.label.id)
            out.append(string: share.label.service, max: ArchiveLimits.resourceMax)
            out.append(string: share.label.host, max: ArchiveLimits.resourceMax)
            out.append(string: share.version, max: ArchiveLimits.resourceMax)
            out.append(varint: share.records)
            out.append(varint: share.errors)
            out.append(varint: share.gaps)
            out.append(word: share.timeMin)
            out.append(varint: share.timeMax &- share.timeMin)
            for records in share.bins { out.append(varint: records) }
        }
    }
}

/// Counts by equal parts of a range of time, for charts. Pure.
package enum TimeBins {
    /// Spreads records evenly over their time; the sum over all bins is exact.
    package static func spread(
        _ records: UInt64, from first: UInt64, to last: UInt64, over range: ClosedRange<UInt64>,
        into bins: inout [UInt64]
    ) {
        guard records > 0, first <= last else { return }
        let whole = Double(range.upperBound - range.lowerBound) + 1
        func bin(_ time: UInt64) -> Int {
            let inside = min(max(time, range.lowerBound), range.upperBound) - range.lowerBound
            return min(Int(Double(inside) / whole * Double(bins.count)), bins.count - 1)
        }
        let (start, end) = (bin(first), bin(last))
        let parts = UInt64(end - start + 1)
        var left = records
        for (index, place) in (start...end).enumerated() {
            let share = left / (parts - UInt64(index))
            bins[place] &+= share
            left &-= share
        }
    }
}
