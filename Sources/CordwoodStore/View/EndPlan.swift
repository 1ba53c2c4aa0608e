// Where a reader of the last records begins in each lane's archives. In a full read, what it leaves
// out comes before all of these records (docs/ARCHITECTURE.md, "The last records"). Made anew for
// each attempt; looks at footers, at the time columns of a few blocks and at headers
// of segments. One thread at a time.

import CordwoodCore

/// A lane's archives in order, and what lanes/ has of it if that is much. All their records belong
/// to that process, and the offset of its boot is decided.
struct EndChain {
    var shelf: ArchiveShelf
    var archives: [ArchiveInfo]
    var files: LaneFiles?
    /// Of a lane that is small: all of it.
    var span: SegmentSpan?
    var process: ProcessInfo
    /// The merge opens the chain at this time at the latest.
    var lowerBound: UInt64
}

/// Where the read of a lane's own files begins: without these segments. Records of older ones are
/// not wanted either.
struct LaneStart {
    var leftOut: Set<UInt64>
    var monotonicNs: UInt64
    /// Nothing else is there.
    var isNone: Bool
}

struct EndPlan {
    /// Records are left out only if they are this much older than what is wanted. Within a lane
    /// records are ordered by time, except for microseconds between segments and 10 ms of the
    /// coarse clock.
    private static let slackNs: UInt64 = 100_000_000
    /// The segments of a lane overlap around a roll, so this many archives before the first one
    /// that is read are checked, too. For older ones the footer must do.
    private static let archivesChecked = 16
    /// A failed attempt costs at most this fraction of reading everything, all attempts together a
    /// third.
    private static let share: UInt64 = 4

    /// How many records the next attempt wants after one that wanted so many.
    func more(than wanted: UInt64) -> UInt64 {
        let (next, overflow) = max(taken, wanted).multipliedReportingOverflow(by: EndPlan.share)
        return overflow ? .max : next
    }

    /// Once the merge has reached this ordering time, it returns the records of a full read in the
    /// same order. 0: everything is read.
    private(set) var time: UInt64 = 0
    /// By path; other archives are read from their beginning.
    private(set) var starts: [FilePath: ArchiveStart] = [:]
    /// What is left out of the files of a lane.
    private(set) var lanes: [LaneID: LaneStart] = [:]
    /// Records in the blocks that should be enough, and in all blocks that may match.
    private(set) var taken: UInt64 = 0
    private(set) var total: UInt64 = 0

    var isWhole: Bool { time == 0 }

    private struct Place {
        var path: FilePath
        var block: Int
        var entry: BlockEntry
        /// The greatest time shown in the chain up to here.
        var shownMax: UInt64
    }

    private let options: ReaderOptions
    private let offset: (ProcessInfo) -> UInt64
    private var places: [[Place]] = []
    /// Of a chain's sealed segments that are in no archive yet, by number.
    private var spans: [[SegmentSpan]] = []
    private var known: [String: BlockTimes] = [:]
    private var opened: (path: FilePath, source: ArchiveSource)?

    /// Records shown later are not counted.
    private let upTo: UInt64

    /// `wanted`: how many records the blocks that are read must hold at least. `upTo`: counting
    /// only records shown at this time or before, UTC ns.
    init(
        _ chains: [EndChain], wanted: UInt64, upTo: UInt64 = .max, options: ReaderOptions,
        offset: @escaping (ProcessInfo) -> UInt64
    ) {
        self.options = options
        self.upTo = upTo
        self.offset = offset
        for chain in chains {
            places.append(list(chain))
            spans.append(
                (chain.files?.segments ?? []).compactMap {
                    SegmentSpan($0, of: chain.process.laneID)
                } + [chain.span].compactMap { $0 })
        }
        // An open source holds a descriptor.
        defer { opened = nil }
        guard let begun = begin(chains, wanted), begun.time > 0 else { return }
        time = begun.time
        if startsAtRows, let nearer = nearer(chains, wanted, begun.shownMin) {
            time = max(time, nearer)
        }
        for index in chains.indices {
            leaveOut(chains[index], places[index])
            leaveOut(chains[index], spans[index])
        }
    }

    private mutating func list(_ chain: EndChain) -> [Place] {
        var found: [Place] = []
        var shownMax: UInt64 = 0
        for info in chain.archives {
            // The damage shows only now: everything of this lane is read.
            guard let blocks = chain.shelf.blocks(of: info) ?? source(info.path)?.intactBlocks
            else { return [] }
            for (index, entry) in blocks.enumerated() {
                shownMax = max(shownMax, entry.timeMax)
                found.append(
                    Place(path: info.path, block: index, entry: entry, shownMax: shownMax))
            }
        }
        return found
    }

    /// Every record counts. When searching for one record, blocks are read whole, so that it is
    /// found even if its time is wrong.
    private var startsAtRows: Bool { options.takesAll && upTo == .max }

    /// Takes the newest blocks that may match until they hold enough records. Returns the ordering
    /// time from which on all of them are read, and the least time that they show; nil: they never
    /// hold enough, or it would not pay.
    private mutating func begin(
        _ chains: [EndChain], _ wanted: UInt64
    ) -> (time: UInt64, shownMin: UInt64)? {
        var candidates: [(shownMin: UInt64, chain: Int, place: Int)] = []
        for (chain, list) in places.enumerated() {
            // A clock that went back must not hide the records that followed.
            var shownMin: UInt64 = 0
            for (place, found) in list.enumerated() {
                shownMin = max(shownMin, found.entry.timeMin)
                guard mayMatch(found.entry), found.entry.timeMin <= upTo else { continue }
                total &+= UInt64(found.entry.recordCount)
                candidates.append((shownMin, chain, place))
            }
        }
        // Of segments, the time of writing stands for what they show. They come after the archives.
        for (chain, list) in spans.enumerated() {
            let (offset, before) = (offset(chains[chain].process), places[chain].count)
            for (index, span) in list.enumerated() where span.firstNs &+ offset <= upTo {
                total &+= span.records
                candidates.append((span.firstNs &+ offset, chain, before &+ index))
            }
        }
        candidates.sort { ($0.shownMin, $0.place) > ($1.shownMin, $1.place) }
        var first: [FilePath: (chain: Int, place: Int)] = [:]
        var least = UInt64.max
        var time = UInt64.max
        for (shownMin, chain, place) in candidates {
            if taken >= wanted { break }
            least = min(least, shownMin)
            if place >= places[chain].count {
                taken &+= spans[chain][place &- places[chain].count].records
                time = min(time, shownMin)
                continue
            }
            let found = places[chain][place]
            // In a block that contains that time, all records may be later.
            if found.entry.timeMax <= upTo { taken &+= UInt64(found.entry.recordCount) }
            if let old = first[found.path], old.place <= place { continue }
            first[found.path] = (chain, place)
        }
        guard taken >= wanted, options.takesAll || taken <= total / EndPlan.share else {
            return nil
        }
        for (chain, place) in first.values {
            guard let times = times(places[chain][place], chains[chain]) else { continue }
            time = min(time, times.first)
        }
        return time == .max ? nil : (time, least)
    }

    /// An ordering time from which on there are enough records; needed because blocks hold many
    /// more than are wanted. Looks at the last blocks of each chain that show such times; other
    /// blocks can only add records.
    private mutating func nearer(
        _ chains: [EndChain], _ wanted: UInt64, _ shownMin: UInt64
    ) -> UInt64? {
        guard wanted <= taken / 2 else { return nil }
        let enough = Int(wanted)
        var newest: [UInt64] = []
        // Older times are not among the newest.
        var floor: UInt64 = 0
        for (chain, list) in zip(chains, places) {
            var left = enough
            for place in list.reversed() {
                guard left > 0, place.entry.timeMax >= shownMin,
                    let times = source(place.path)?.orderingTimes(
                        ofBlock: place.block, of: chain.process, offset: offset(chain.process))
                else { break }
                newest += times.suffix(left).lazy.filter { $0 > floor }
                left -= times.count
                if newest.count < 2 * enough { continue }
                newest.sort()
                newest.removeFirst(newest.count - enough)
                floor = newest[0]
            }
        }
        guard newest.count >= enough else { return nil }
        newest.sort()
        return newest[newest.count - enough]
    }

    private func mayMatch(_ block: BlockEntry) -> Bool {
        block.levels & LevelSet.atLeast(options.level) != 0
            && (options.kinds == 0 || block.kinds & options.kinds != 0)
            && (options.since == 0 || block.timeMax >= options.since)
            && (options.until == 0 || block.timeMin < options.until)
    }

    private mutating func leaveOut(_ chain: EndChain, _ places: [Place]) {
        // A source opened this late shows all its records among the last ones.
        guard chain.lowerBound < time, let last = places.last else { return }
        let shift = times(last, chain)?.shift ?? 0
        var count = places.count
        while count > 0, !isBefore(places[count - 1].shownMax, time &+ shift) { count -= 1 }
        var step = 1
        while count > 0, !canLeaveOut(places[..<count], chain) {
            count = max(0, count - step)
            step *= 2
        }
        for place in places[..<count] { starts[place.path] = ArchiveStart.none }
        if count == places.count { return }
        var start = ArchiveStart(block: places[count].block)
        let offset = offset(chain.process)
        if startsAtRows, time > offset { start.monotonicNs = time - offset }
        starts[places[count].path] = start
    }

    /// All records of a sealed segment are older than the last pair of its clock.
    private mutating func leaveOut(_ chain: EndChain, _ spans: [SegmentSpan]) {
        let offset = offset(chain.process)
        guard time > offset, chain.lowerBound < time else { return }
        // A clock that is damaged gives times that wrap.
        let old = spans.filter {
            $0.firstNs &+ offset <= $0.lastNs &+ offset && isBefore($0.lastNs &+ offset, time)
        }
        if old.isEmpty { return }
        lanes[chain.process.laneID] = LaneStart(
            leftOut: Set(old.map(\.number)), monotonicNs: time &- offset,
            isNone: chain.span != nil)
    }

    private func isBefore(_ time: UInt64, _ limit: UInt64) -> Bool {
        time < limit && limit - time > EndPlan.slackNs
    }

    /// Whether all records of these blocks are older than `time`. The last block of each archive
    /// decides. The times shown, which may be an event's own, can only prevent leaving out.
    private mutating func canLeaveOut(_ places: ArraySlice<Place>, _ chain: EndChain) -> Bool {
        var at = places.endIndex - 1
        for _ in 0...EndPlan.archivesChecked {
            guard let times = times(places[at], chain), isBefore(times.greatest, time),
                isBefore(places[at].shownMax, time &+ times.shift)
            else { return false }
            let path = places[at].path
            while at >= places.startIndex, places[at].path == path { at -= 1 }
            if at < places.startIndex { break }
        }
        return true
    }

    private mutating func times(_ place: Place, _ chain: EndChain) -> BlockTimes? {
        let key = "\(place.block) \(place.path)"
        if let found = known[key] { return found }
        let offset = offset(chain.process)
        var found = chain.shelf.times(ofBlock: place.block, of: place.path, chain.process)
        if found == nil {
            found = source(place.path)?.times(ofBlock: place.block, of: chain.process, offset: 0)
            if let found {
                chain.shelf.learn(found, ofBlock: place.block, of: place.path, chain.process)
            }
        }
        found =
            found?.moved(by: offset)
            ?? source(place.path)?.times(
                ofBlock: place.block, of: chain.process, offset: offset)
        known[key] = found
        return found
    }

    /// Keeps one archive open at a time: there may be more archives than descriptors.
    private mutating func source(_ path: FilePath) -> ArchiveSource? {
        if let opened, opened.path == path { return opened.source }
        opened = nil
        guard
            let source = try? ArchiveSource.open(
                path: path, identities: options.identities, files: options.room?.files)
        else { return nil }
        opened = (path, source)
        return source
    }
}

/// When the records of a segment were written: by the header alone if it is sealed and not small.
/// SAFETY: views are of a ReadBuffer held in a variable.
struct SegmentSpan {
    let number: UInt64
    /// Monotonic ns: no record is older than the first, and none is younger than the last.
    var firstNs = UInt64.max
    var lastNs: UInt64 = 0
    /// More or less: if they are too few, more segments are read.
    var records: UInt64 = 0

    init(number: UInt64) { self.number = number }

    /// nil: the segment is not sealed, or its header does not say all of this, or the file has less
    /// than it says.
    init?(_ segment: LaneFiles.Segment, of lane: LaneID) {
        guard segment.isSealed, let file = try? ReadFile(path: segment.path),
            let page = try? file.copy(at: 0, count: SegmentHeader.bytes),
            let head = try? unsafe SegmentHead(page.bytes, path: segment.path),
            head.laneID == lane, head.number == segment.number,
            head.generation == segment.generation, head.state == SegmentHeader.stateSealed,
            !head.isDamaged,
            // Of a file that was cut, the damage shows only if it is read.
            head.end <= head.size, head.end <= file.size(reaching: head.end),
            // The last pair is later than every record (FORMAT §9).
            let last = unsafe ClockTable(header: page.bytes).pairs.last
        else { return nil }
        number = head.number
        firstNs = head.createdMonotonic
        lastNs = last.monotonic
        records = (head.end &- min(head.end, head.headerBytes)) / SegmentSpan.recordBytes + 1
    }

    private static let recordBytes: UInt64 = 128
}
