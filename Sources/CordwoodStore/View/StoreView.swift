// One store directory under a reader: its lanes and archives, and which of them supplies each
// segment's records. Lanes are listed and opened first, archives afterwards. A segment archived in
// between may therefore be seen twice but is never missed; one of the two copies is then skipped.
// One thread at a time.

import CShims
import CordwoodCore

final class StoreView {
    /// Lanes held open from the start; others are opened when their time comes.
    private static let lanesOpenMax = 128
    static let reorderWindowNs: UInt64 = 100_000_000

    let path: FilePath
    let options: ReaderOptions
    let merge: MergeSource
    let shelf: ArchiveShelf
    let report: (ReadProblem) -> Void
    let runningBoot: LaneID
    /// Of this process, as a reader of the last records compares it; nil: it does not.
    private let namespace: UInt64?
    private let firstOrder: UInt64
    /// Followed lanes, and those that lost segments to an archive, by name.
    var lanes: [String: LaneSource] = [:]
    /// Following: lanes that were finished at the start and are read from their own files; a later
    /// archive of them has nothing new.
    private var passed: [LaneID: LaneSource] = [:]
    /// Not following: lanes of the start, which are read from their own files.
    private var own: Set<LaneID> = []
    /// Likewise: the lanes of which an archive, by its path, has supplied what their files did not.
    private var supplied: [FilePath: Set<LaneID>] = [:]
    /// The merge's inputs for the followed lanes.
    var feeds: [LaneID: LaneFeed] = [:]
    var knownLanes: Set<String> = []
    /// Those of the start, sorted, and those found since, numbered after them. Among equal times,
    /// records come in this order, whatever else is read.
    private var sortedLanes: [String] = []
    private var laterLanes: [String: Int] = [:]
    private var lostBefore = 0
    /// Following: records of this boot that are younger than this wait (monotonic ns).
    var heldFrom: UInt64?
    /// Following from the end: archived records older than this are not new.
    private var startedNs: UInt64 = 0
    var gone: Set<String> = []
    /// What several files hold, as of the start, and their records as far as they were returned;
    /// nil: no record is in several files.
    private var overlaps: LaneOverlaps?
    private var seen: RecordsSeen?
    /// What was found, until the view begins.
    private var start: StoreStart?

    /// The archives that existed at the start, and the paths of those that cannot be opened.
    var archives: (opened: [ArchiveInfo], others: [FilePath]) { shelf.atFirst ?? ([], []) }

    /// With `ReaderOptions.last`: chains that may be left out in part.
    private(set) var ends: [EndChain] = []
    /// The same: the process of every chain is known, so each record has the same ordering time,
    /// whatever is read first.
    private(set) var isPlaced = true

    /// Where the read of each archive begins (`EndPlan.starts`); set before the first record is
    /// read.
    final class Starts {
        var byPath: [FilePath: ArchiveStart] = [:]
        var ofLanes: [LaneID: LaneStart] = [:]
    }
    private let starts = Starts()

    func start(at plan: EndPlan) { (starts.byPath, starts.ofLanes) = (plan.starts, plan.lanes) }

    /// What opening an archive needs: one object for thousands of archives.
    private final class Opening {
        let shelf: ArchiveShelf
        let options: ReaderOptions
        let starts: Starts

        init(_ shelf: ArchiveShelf, _ options: ReaderOptions, _ starts: Starts) {
            self.shelf = shelf
            self.options = options
            self.starts = starts
        }
    }
    private let opening: Opening
    /// Of lanes and archives.
    private let pool: OpenFiles

    /// Lanes that were archived before they could be opened.
    private final class Vanished { var lanes: Set<LaneID> = [] }
    private let vanished = Vanished()

    init(
        path: FilePath, options: ReaderOptions, merge: MergeSource, order: UInt64,
        runningBoot: LaneID, report: @escaping (ReadProblem) -> Void
    ) throws(ReadProblem) {
        try StoreFolder.check(path)
        self.path = path
        self.options = options
        self.merge = merge
        self.report = report
        self.runningBoot = runningBoot
        namespace = options.looksBack && !options.follow ? Machine.processNamespace() : nil
        firstOrder = order
        shelf = ArchiveShelf(
            store: path, identities: options.identities,
            facts: options.facts?.facts(ofStore: path), files: options.room?.files)
        pool = shelf.files ?? OpenFiles()
        opening = Opening(shelf, options, starts)
        Machine.readTimeNamespace()
        if options.follow, options.fromEnd { startedNs = cw_realtime_ns() }
        try list()
    }

    private func list() throws(ReadProblem) {
        var start = StoreStart()
        start.listed = try shelf.making { () throws(ReadProblem) in
            try LaneFiles.list(store: path)
        }
        for files in start.listed where files.hasLaneFile {
            knownLanes.insert(files.lane)
            if start.lanes.count >= StoreView.lanesOpenMax || mayLeaveOut(files),
                let chain = later(files)
            {
                start.chains[files.lane] = chain
            } else if let source = openLane(files) {
                start.lanes.append(source)
                start.chains[files.lane] = LaneChain(
                    lane: files.lane, source: source, process: source.process,
                    created: source.createdMonotonicNs)
            }
        }
        start.archives = shelf.discover(report)
        self.start = start
    }

    /// Only the last records are wanted, so the headers of its segments may spare the rest.
    private func mayLeaveOut(_ files: LaneFiles) -> Bool {
        options.looksBack && !options.follow && files.segments.count > options.segmentsOpenMax
    }

    /// A lane that is opened when its time comes, which saves memory: until then its header is
    /// enough. nil: it is followed, or its header does not say what it has.
    private func later(_ files: LaneFiles) -> LaneChain? {
        guard let glance = LaneGlance(files, runningBoot: runningBoot, namespace: namespace) else {
            return nil
        }
        let head = glance.head
        guard !options.follow || head.closed,
            !files.hasJournal || head.bootID == runningBoot && runningBoot != .zero
        else { return nil }
        let numbers = [0] + files.segments.map(\.number)
        return LaneChain(
            lane: files.lane,
            later: (head.laneID, files, Set(numbers.filter { $0 >= head.archivedBelow })),
            span: glance.span,
            process: LaneContext.process(head, nil, files.lane, []),
            created: head.createdMonotonic)
    }

    /// The archives that were found, until the view begins.
    var found: [ArchiveInfo] { start?.archives ?? [] }
    /// The same for lanes with segments of their own.
    var foundLanes: [LaneID] {
        start.map { $0.lanes.map(\.laneID) + $0.later.map(\.id) } ?? []
    }

    func settle(_ overlaps: inout LaneOverlaps) {
        guard let start else { return }
        for source in start.lanes { overlaps.settle(source) }
        for (id, files, segments) in start.later { overlaps.note(id, files.lane, segments) }
    }

    /// Enters what was found into the merge.
    func begin(_ overlaps: LaneOverlaps, _ seen: RecordsSeen?) {
        guard let start else { return }
        self.start = nil
        self.overlaps = overlaps
        self.seen = seen
        let listed = start.listed
        var chains = start.chains
        // Of thousands of archives, few cover what is still in lanes/.
        let headless = Set(listed.filter { !$0.hasLaneFile }.map(\.lane))
        var covered: [String: [ClosedRange<UInt64>]] = [:]
        let asked = OriginsAsked(options)
        for info in start.archives {
            if !headless.isEmpty {
                for cover in info.covers
                where cover.first <= cover.last && headless.contains(cover.laneName) {
                    covered[cover.laneName, default: []].append(cover.first...cover.last)
                }
            }
            let isShared = overlaps.isShared(info)
            guard startedNs == 0, !overlaps.contained.contains(info.path),
                info.covers.allSatisfy({ $0.laneID == .zero })
                    || info.covers.contains(where: { options.origin.mayHave(lane: $0.laneID) }),
                isShared
                    || ArchiveShelf.overlaps(info, options)
                        && asked.map({ shelf.mayHave(info, $0) }) ?? true
                        && !shelf.isAnswered(info, options)
            else { continue }
            let name = name(of: info, chains)
            chains[name, default: LaneChain(lane: name)].archives.append(info)
            if isShared { chains[name]?.isShared = true }
        }
        StoreFolder.headless(listed, covered: covered).forEach(report)
        let own =
            start.lanes.map { ($0.laneID, $0.lane) } + start.later.map { ($0.id, $0.files.lane) }
        for (id, lane) in own where overlaps.shared[id] != nil { chains[lane]?.isShared = true }
        if !options.follow { self.own = Set(own.map(\.0)) }
        place(chains.values.sorted { $0.lane < $1.lane })
        hold()
    }

    /// Lanes are known by their ids: another one may have the name.
    private func name(of info: ArchiveInfo, _ chains: [String: LaneChain]) -> String {
        guard info.covers.count == 1, let cover = info.covers.first,
            chains[cover.laneName]?.laneID ?? cover.laneID == cover.laneID
        else { return "\(info.path)" }
        return cover.laneName
    }

    private func isFollowed(_ source: LaneSource?) -> Bool {
        guard options.follow, let head = source?.head else { return false }
        return !head.closed
    }

    private func place(_ sorted: [LaneChain]) {
        var chains = sorted
        var looked = 0
        for index in chains.indices {
            chains[index].archives.sort {
                ($0.covers.first?.first ?? 0) < ($1.covers.first?.first ?? 0)
            }
            guard let info = chains[index].archives.first else { continue }
            let hasFirst =
                chains[index].isShared
                ? chains[index].process != nil
                : chains[index].source != nil && info.covers.first?.first == 0
            if !hasFirst, looked < ArchiveShelf.placedExactlyMax,
                let (process, time) = shelf.first(of: info)
            {
                looked += 1
                chains[index].process = process ?? chains[index].process
                chains[index].created = time
            } else if let process = chains[index].process {
                chains[index].created = process.createdMonotonic
            }
        }
        for chain in chains {
            if let process = chain.process { merge.learn(process, lane: chain.lane) }
        }
        sortedLanes = chains.map(\.lane)
        for (index, chain) in chains.enumerated() { add(chain, firstOrder &+ UInt64(index)) }
    }

    private func add(_ chain: LaneChain, _ order: UInt64) {
        let isFollowed = isFollowed(chain.source)
        if startedNs != 0, !isFollowed { return }
        if chain.archives.isEmpty, let lane = chain.source?.laneID ?? chain.later?.id,
            !options.origin.mayHave(lane: lane)
        {
            return
        }
        if let source = chain.source {
            if startedNs != 0 { skip(source) }
            if isFollowed {
                lanes[chain.lane] = source
                feeds[source.laneID] = LaneFeed(source)
            } else if options.follow {
                passed[source.laneID] = source
            }
        }
        var bound = chain.archives.first.map(ArchiveShelf.roughBound) ?? 0
        if let process = chain.process { bound = merge.orderingTime(process, chain.created) }
        // Opening a source needlessly costs little; opening it late shows its records late.
        if isFollowed || chain.source != nil && chain.archives.isEmpty { bound = 0 }
        let tracks = tracks(of: chain)
        let seen = chain.isShared ? seen : nil
        var input = MergeInput(lowerBound: bound, order: order) {
            () throws(ReadProblem) -> (any RecordSource)? in
            let sources = tracks.map { (source: ChainSource($0.parts), segments: $0.segments) }
            return seen.map { UnionSource($0, sources) } ?? sources.first?.source
        }
        input.isFollowed = isFollowed
        merge.add(input)
        guard options.looksBack else { return }
        if let end = end(of: chain, bound) {
            ends.append(end)
        } else if !chain.archives.isEmpty || chain.process == nil {
            isPlaced = false
        }
    }

    /// The chain's archives, if they may be left out in part: each is of this lane alone, and their
    /// order among others does not depend on which of them are read first. `EndPlan` finds damage.
    private func end(of chain: LaneChain, _ bound: UInt64) -> EndChain? {
        guard !chain.isShared, chain.archives.allSatisfy({ $0.covers.count == 1 }) else {
            return nil
        }
        let files = chain.later?.files
        let isLong = files.map(mayLeaveOut) ?? false
        let span = chain.archives.isEmpty ? chain.span : nil
        if chain.archives.isEmpty, !isLong, span == nil { return nil }
        let process = chain.process ?? chain.archives.first.flatMap { shelf.first(of: $0)?.process }
        guard let process, merge.knows(process) else { return nil }
        return EndChain(
            shelf: shelf, archives: chain.archives,
            files: isLong && process.bootID == runningBoot ? files : nil, span: span,
            process: process, lowerBound: bound)
    }

    func openLane(_ files: LaneFiles) -> LaneSource? {
        do throws(ReadProblem) {
            let source = try shelf.making { () throws(ReadProblem) in
                try LaneSource(
                    files: files, runningBoot: runningBoot, follows: options.follow, pool: pool)
            }
            if options.follow { source.reportsDrops = false }
            if !options.rendersText { source.rendersText = false }
            unsafe source.pausesAtLoss = true
            return source
        } catch {
            // The lane disappeared between listing and opening: an archive has it.
            if case .system(_, let number) = error, number == 2 { return nil }
            report(error)
            return nil
        }
    }

    /// The parts that follow each other; shared ones side by side where their segments overlap.
    private func tracks(of chain: LaneChain) -> [(parts: [ChainSource.Part], segments: [UInt64])] {
        guard chain.isShared else { return [(chain.archives.map { part($0) } + own(chain), [])] }
        var tracks: [(last: UInt64, parts: [ChainSource.Part], segments: [UInt64])] = []
        for info in chain.archives {
            let (first, last) = (info.covers.first?.first ?? 0, info.covers.first?.last ?? 0)
            let part = part(info, isShared: true)
            if let index = tracks.firstIndex(where: { $0.last < first }) {
                tracks[index].parts.append(part)
                tracks[index].segments.append(first)
                tracks[index].last = last
            } else {
                tracks.append((last, [part], [first]))
            }
        }
        let own = own(chain)
        if !own.isEmpty { tracks.append((.max, own, [])) }
        return tracks.map { ($0.parts, $0.segments) }
    }

    /// What lanes/ has of it.
    private func own(_ chain: LaneChain) -> [ChainSource.Part] {
        var parts: [ChainSource.Part] = []
        if let source = chain.source {
            parts.append(StoreView.part(feeds[source.laneID] ?? source))
        }
        if let later = chain.later { parts.append(part(opening: later)) }
        return parts
    }

    private static func part(_ source: any RecordSource) -> ChainSource.Part {
        { () throws(ReadProblem) -> (any RecordSource)? in source }
    }

    private func part(_ info: ArchiveInfo, isShared: Bool = false) -> ChainSource.Part {
        let opening = opening
        return { () throws(ReadProblem) -> (any RecordSource)? in
            let start = opening.starts.byPath[info.path] ?? ArchiveStart()
            if start == .none { return nil }
            var options = opening.options
            // Some of its records may have been returned, and what the reader does not want may
            // decide about others.
            if isShared {
                options = options.unfiltered
                options.tally = nil
            }
            return try opening.shelf.open(info, at: start, options)
        }
    }

    func order(_ lane: String) -> UInt64 {
        var (low, high) = (0, sortedLanes.count)
        while low < high {
            let middle = (low + high) / 2
            if sortedLanes[middle] < lane { low = middle + 1 } else { high = middle }
        }
        if low < sortedLanes.count, sortedLanes[low] == lane { return firstOrder &+ UInt64(low) }
        let later = laterLanes[lane] ?? laterLanes.count
        laterLanes[lane] = later
        return firstOrder &+ UInt64(sortedLanes.count + later)
    }

    /// Segments that have disappeared by then are in archives.
    private func part(opening later: LaterLane) -> ChainSource.Part {
        let (id, listed, segments) = later
        let boot = runningBoot
        let starts = starts
        let pool = pool
        let overlaps = overlaps
        let vanished = vanished
        let rendersText = options.rendersText
        let shelf = shelf
        let covers = overlaps?.ranges(of: id) ?? []
        let expected = segments.filter { number in !covers.contains { $0.contains(number) } }
        return { [weak self] () throws(ReadProblem) -> (any RecordSource)? in
            func open(_ files: LaneFiles) throws(ReadProblem) -> LaneSource {
                try shelf.making { () throws(ReadProblem) in
                    try LaneSource(files: files, runningBoot: boot, pool: pool)
                }
            }
            do throws(ReadProblem) {
                var start = starts.ofLanes[id]
                if start?.isNone ?? false { return nil }
                var source = try open(start.map { listed.without($0.leftOut) } ?? listed)
                if start != nil, try source.endsInGap() {
                    // Gap records in what is left out may say which refusals it reports.
                    start = nil
                    source = try open(listed)
                }
                source.startsAtNs = start?.monotonicNs ?? 0
                unsafe source.pausesAtLoss = true
                if !rendersText { source.rendersText = false }
                if var overlaps { overlaps.leaveOut(from: source) }
                source.miss(start.map { expected.subtracting($0.leftOut) } ?? expected)
                if let self, self.options.follow { self.passed[id] = source }
                return source
            } catch {
                guard case .system(_, 2) = error else { throw error }
                vanished.lanes.insert(id)
                return nil
            }
        }
    }

    private func skip(_ source: LaneSource) {
        do throws(ReadProblem) { try source.skipAll() } catch { report(error) }
    }

    /// Archives of lanes whose own files supplied only part of the records, or of lanes never seen;
    /// also archives that hold what these lanes cede.
    private func rests(of archives: [ArchiveInfo]) -> [ArchiveInfo] {
        var found: [ArchiveInfo] = []
        var fresh = archives
        while !fresh.isEmpty {
            found += fresh
            for cover in fresh.flatMap(\.covers) where cover.first <= cover.last {
                lanes.values.first { $0.laneID == cover.laneID }?.cede(through: cover.last)
            }
            fresh = shelf.takePassedOver(isNeeded)
        }
        return found.filter { ArchiveShelf.overlaps($0, options) }
            .sorted { ($0.covers.first?.first ?? 0) < ($1.covers.first?.first ?? 0) }
    }

    /// An archive's share of a followed lane comes before the lane's next records; the rest is
    /// merged by time.
    func addRests(of archives: [ArchiveInfo]) {
        for info in rests(of: archives) {
            let part = restPart(info)
            if let feed = info.covers.lazy.compactMap({ self.feeds[$0.laneID] }).first {
                feed.precede(with: part)
                continue
            }
            let lane = info.covers.first?.laneName ?? ""
            var input = MergeInput(lowerBound: 0, order: order(lane), open: part)
            input.isFollowed = options.follow
            merge.add(input)
        }
    }

    private func restPart(_ info: ArchiveInfo) -> ChainSource.Part {
        var options = options
        // Some of its records may have been returned.
        options.tally = nil
        let wanted = options.follow ? nil : supply(info)
        return { [weak self, shelf, options] () throws(ReadProblem) -> (any RecordSource)? in
            guard let source = try shelf.open(info, options) else { return nil }
            return self?.rest(of: source, wanted)
        }
    }

    /// The lanes of which the archive now supplies what their files did not; of each only once. A
    /// lane that is still read from its own files may need the archive later.
    private func supply(_ info: ArchiveInfo) -> Set<LaneID> {
        let all = Set(info.covers.filter { $0.first <= $0.last }.map(\.laneID))
        let lost = vanished.lanes.union(lanes.values.map(\.laneID))
        let before = supplied[info.path] ?? []
        let wanted = all.subtracting(before).filter { !own.contains($0) || lost.contains($0) }
        supplied[info.path] = before.union(wanted)
        if before.count + wanted.count < all.count { shelf.passOver(info) }
        return wanted
    }

    /// The records of an archive that its lanes' own files did not supply: of these lanes, or of
    /// all (nil).
    private func rest(
        of source: any RecordSource, _ wanted: Set<LaneID>?
    ) -> any RecordSource {
        let mine = Dictionary(
            lanes.values.map { ($0.laneID, $0) }, uniquingKeysWith: { first, _ in first }
        ).merging(passed) { first, _ in first }
        let started = startedNs
        let boot = runningBoot
        return RestOfArchive(
            source,
            holdAfter: { [weak self] process in
                process.bootID == boot && boot != .zero ? self?.heldFrom : nil
            }
        ) { record in
            if started != 0, record.writtenNs < started { return true }
            let id = record.thread.process.laneID
            if let wanted, !wanted.contains(id) { return true }
            guard let lane = mine[id] else { return false }
            return record.monotonicNs < lane.startsAtNs
                || lane.covers(thread: record.thread.serial, sequence: record.sequence)
                || lane.passesOver(record)
        }
    }

    /// Called for a source that was read to its end, or to where it lost a segment that an archive
    /// may hold.
    func ended(_ source: any RecordSource) {
        if let union = source as? UnionSource { return union.sources.forEach(ended) }
        let last = (source as? ChainSource)?.last ?? source
        guard let lane = last as? LaneSource, !lane.lostSegments.isEmpty else { return }
        lanes[lane.lane] = lane
        guard unsafe lane.isPaused else { return }
        unsafe lane.isPaused = false
        let parts = rests(of: needed()).map(restPart) + [StoreView.part(lane)]
        merge.add(
            MergeInput(lowerBound: 0, order: order(lane.lane)) {
                () throws(ReadProblem) -> (any RecordSource)? in ChainSource(parts)
            })
    }

    private func isNeeded(_ info: ArchiveInfo) -> Bool {
        let before = supplied[info.path] ?? []
        for cover in info.covers where cover.first <= cover.last && !before.contains(cover.laneID) {
            guard
                let lane = lanes.values.first(where: { $0.laneID == cover.laneID })
                    ?? passed[cover.laneID]
            else {
                if options.follow || vanished.lanes.contains(cover.laneID) { return true }
                if knownLanes.contains(cover.laneName) { continue }
                return true
            }
            let span = cover.last - cover.first
            guard span < UInt64(lane.segmentNumbers.count) else { return true }
            for number in cover.first...cover.last where !lane.owns(number) { return true }
        }
        return false
    }

    /// Archives made since, and older ones that are needed because lanes lost segments.
    func needed() -> [ArchiveInfo] {
        var found: [ArchiveInfo] = []
        for info in shelf.discover(report) {
            if isNeeded(info) { found.append(info) } else { shelf.passOver(info) }
        }
        if lostCount > lostBefore {
            lostBefore = lostCount
            found += shelf.takePassedOver(isNeeded)
        }
        return found
    }

    private var lostCount: Int {
        vanished.lanes.count + lanes.values.reduce(0) { $0 + $1.lostSegments.count }
    }

    /// After a read that does not follow: recovers what lanes lost meanwhile from archives made
    /// since. False: there is nothing to recover.
    func recover() -> Bool {
        guard lostCount > lostBefore else { return false }
        let fresh = needed()
        addRests(of: fresh)
        return !fresh.isEmpty
    }
}
