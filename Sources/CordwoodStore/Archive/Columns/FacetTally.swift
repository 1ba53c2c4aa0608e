// Counts records by time, level, logger, thread and place, for a query that limits only levels,
// kinds, loggers and times. Whole blocks are counted by their columns (FORMAT §11.4), without
// making records or inflating text; other records one by one. One reader owns it; one thread at a
// time.
// SAFETY: views are not kept; indexes are below their dictionaries' sizes, as the decoder ensures.
// Sendable because options are; only the thread that reads with them uses it.

import CordwoodCore

package final class FacetTally: BlockCounter, @unchecked Sendable {
    @exclusivity(unchecked) package private(set) var matched: UInt64 = 0
    /// All matching records; empty if not requested.
    @exclusivity(unchecked) package var histogram = TimeHistogram()
    @exclusivity(unchecked) package var facets = Facets()
    private let hasHistogram: Bool
    private let hasFacets: Bool

    package init(hasHistogram: Bool, hasFacets: Bool) {
        self.hasHistogram = hasHistogram
        self.hasFacets = hasFacets
    }

    package func add(_ record: borrowing RecordRef) {
        unsafe matched &+= 1
        if hasHistogram { unsafe histogram.add(timeNs: record.timeNs, level: record.level) }
        if hasFacets { unsafe facets.add(record) }
    }

    // MARK: Blocks

    /// The limits express everything that is asked.
    func mayCount(_ block: BlockEntry, _ limits: RowLimits) -> Bool { true }

    func parts(of block: BlockEntry, _ limits: RowLimits) -> BlockParts { parts }

    var parts: BlockParts {
        var found = BlockParts(
            columns: BlockColumns(
                .processes, .threads, .loggers, .kind, .level, .thread, .time, .offset, .logger,
                .sections),
            sections: [.time])
        if hasFacets {
            found.columns.formUnion(BlockColumns(.sites, .formats, .format))
            found.sections = [.time, .site, .place]
        }
        return found
    }

    func add(_ block: BlockView, of entry: BlockEntry, _ limits: RowLimits) -> Bool {
        let dictionaries = block.dictionaries
        var rows = FacetRows(dictionaries, limits, stepNs: unsafe histogram.stepNs)
        guard rows.read(block, hasPlaces: hasFacets) else { return false }
        unsafe matched &+= rows.matched
        if hasHistogram {
            for (bin, start) in rows.starts.enumerated() {
                for group in 0..<TimeHistogram.groups {
                    let count = rows.bins[bin &* TimeHistogram.groups &+ group]
                    if count > 0 { unsafe histogram.add(count, timeNs: start, group: group) }
                }
            }
        }
        if hasFacets { unsafe rows.addFacets(dictionaries, to: &facets) }
        return true
    }
}

/// The rows of one block, counted by the indexes in its columns.
private struct FacetRows {
    var matched: UInt64 = 0
    /// The beginning of each bin, UTC ns; may contain the same one more than once.
    var starts: [UInt64] = []
    /// The counts of each bin, by group of levels.
    var bins: [UInt64] = []
    private let stepNs: UInt64
    private let bounds: RowBounds
    private var levels = [UInt64](repeating: 0, count: 25)
    private var threads: [UInt64]
    private var loggers: [UInt64]
    private var formats: [UInt64]
    private var sites: [UInt64]
    /// Records with their own place, or none.
    private var places: [Facets.Place: UInt64] = [:]
    private var withoutPlace: UInt64 = 0

    init(_ dictionaries: BlockDictionaries, _ limits: RowLimits, stepNs: UInt64) {
        self.stepNs = stepNs
        bounds = RowBounds(limits, dictionaries)
        threads = Array(repeating: 0, count: dictionaries.threads.count)
        loggers = unsafe Array(repeating: 0, count: dictionaries.loggers.count)
        formats = Array(repeating: 0, count: dictionaries.formats.count)
        sites = Array(repeating: 0, count: dictionaries.sites.count)
    }

    /// False: a section is damaged.
    mutating func read(_ block: BlockView, hasPlaces: Bool) -> Bool {
        // One after the other, in memory whose uniqueness no row checks.
        let sizes = [threads.count, loggers.count, formats.count, sites.count]
        var counts = [UInt64](repeating: 0, count: sizes.reduce(0, +))
        let isWhole = unsafe counts.withUnsafeMutableBufferPointer {
            unsafe read(block, hasPlaces: hasPlaces, counts: $0)
        }
        guard isWhole else { return false }
        var rest = counts[...]
        func take(_ size: Int) -> [UInt64] {
            defer { rest = rest.dropFirst(size) }
            return Array(rest.prefix(size))
        }
        threads = take(sizes[0])
        loggers = take(sizes[1])
        formats = take(sizes[2])
        sites = take(sizes[3])
        return true
    }

    /// - Parameter counts: of all threads, then all loggers, formats and sites.
    private mutating func read(
        _ block: BlockView, hasPlaces: Bool, counts: UnsafeMutableBufferPointer<UInt64>
    ) -> Bool {
        let firstFormat = threads.count &+ loggers.count
        let firstSite = firstFormat &+ formats.count
        var inBin = [UInt64](repeating: 0, count: levels.count)
        // The beginning of the current bin, and its length: 0 before the first.
        var (start, width): (UInt64, UInt64) = (0, 0)
        for row in 0..<block.count {
            let bits = block.kind[row]
            let name = Int(truncatingIfNeeded: block.logger[row])
            var time = block.time[row] &+ block.offset[row]
            let isDeferred = BlockView.isDeferred(bits)
            var place = Place.none
            if BlockView.hasSections(bits) {
                guard look(into: block.sections(row), isDeferred, hasPlaces, &time, &place) else {
                    return false
                }
            }
            if isDeferred, hasPlaces {
                place = .format(Int(truncatingIfNeeded: block.format[row]))
            }
            let stored = block.level[row]
            let level = stored <= 24 ? UInt8(truncatingIfNeeded: stored) : 0
            guard bounds.has(level: level, kind: bits, timeNs: time, logger: name) else {
                continue
            }
            if time &- start >= width {
                flush(&inBin, start)
                start = time / stepNs &* stepNs
                width = stepNs
            }
            inBin[Int(level)] &+= 1
            matched &+= 1
            unsafe counts[Int(truncatingIfNeeded: block.thread[row])] &+= 1
            unsafe counts[threads.count &+ name] &+= 1
            switch place {
            case .none: withoutPlace &+= 1
            case .format(let index): unsafe counts[firstFormat &+ index] &+= 1
            case .site(let index): unsafe counts[firstSite &+ index] &+= 1
            case .own(let own): places[own, default: 0] &+= 1
            }
        }
        flush(&inBin, start)
        return true
    }

    private enum Place {
        case none
        case format(Int)
        case site(Int)
        case own(Facets.Place)
    }

    /// The event's own time, and the place, as `BlockRecords` has them. False: damaged.
    @safe private func look(
        into stored: UnsafeRawBufferPointer, _ isDeferred: Bool, _ hasPlaces: Bool,
        _ time: inout UInt64, _ place: inout Place
    ) -> Bool {
        var walk = SectionWalk(stored)
        while let (kind, body, _) = walk.next() {
            switch kind {
            case SectionKind.time where body.count == 8: time = body.word(0, UInt64.self)
            case SectionKind.site where body.count == 4:
                let index = body.word(0, UInt32.self)
                // Without places, no site is read.
                guard hasPlaces else { continue }
                guard index < UInt32(sites.count) else { return false }
                if !isDeferred { place = .site(Int(index)) }
            case SectionKind.place where !isDeferred:
                var cursor = ByteCursor(body)
                guard let line = cursor.word(UInt32.self), let size = cursor.word(UInt16.self),
                    let other = cursor.word(UInt16.self), let file = cursor.bytes(UInt64(size)),
                    unsafe cursor.bytes(UInt64(other)) != nil
                else { continue }
                place = unsafe .own(Facets.Place(file: Array(file), line: line))
            default: break
            }
        }
        return true
    }

    private mutating func flush(_ inBin: inout [UInt64], _ start: UInt64) {
        let first = bins.count
        for level in inBin.indices where inBin[level] > 0 {
            if bins.count == first {
                starts.append(start)
                bins.append(contentsOf: repeatElement(0, count: TimeHistogram.groups))
            }
            bins[first &+ TimeHistogram.group(UInt8(level))] &+= inBin[level]
            levels[level] &+= inBin[level]
            inBin[level] = 0
        }
    }

    func addFacets(_ dictionaries: BlockDictionaries, to facets: inout Facets) {
        facets.add(levels)
        for (index, count) in threads.enumerated() where count > 0 {
            facets.add(count, dictionaries.threads[index])
        }
        for (index, count) in loggers.enumerated() where count > 0 {
            unsafe facets.add(count, logger: dictionaries.loggers[index])
        }
        for (index, count) in formats.enumerated() where count > 0 {
            let format = dictionaries.formats[index]
            facets.add(count, file: format.file, line: format.line)
        }
        for (index, count) in sites.enumerated() where count > 0 {
            let site = dictionaries.sites[index]
            facets.add(count, file: site.file, line: site.line)
        }
        for (place, count) in places {
            unsafe place.file.withUnsafeBytes { facets.add(count, file: $0, line: place.line) }
        }
        if withoutPlace > 0 { facets.add(withoutPlace, file: Bytes.none, line: 0) }
    }
}
