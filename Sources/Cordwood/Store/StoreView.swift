// One store directory under a reader: its lanes and archives, and who gives which segment's records.
// Lanes are listed and opened first, archives afterwards: what was archived in between is seen twice,
// never not at all, and then left to one of the two. One thread at a time.

import CShims
import CordwoodCore
import CordwoodShip

final class StoreView {
    /// Lanes held open from the start; further ones are opened when their time comes.
    private static let lanesOpenMax = 128
    static let reorderWindowNs: UInt64 = 100_000_000

    private let path: String
    private let options: ReaderOptions
    private let merge: MergeSource
    private let shelf: ArchiveShelf
    private let report: (ReadProblem) -> Void
    private let runningBoot: LaneID
    private let firstOrder: UInt64
    /// Followed lanes, and those that lost segments to an archive, by name.
    private var lanes: [String: LaneSource] = [:]
    private var knownLanes: Set<String> = []
    private var lostBefore = 0
    /// Following from the end: archived records from before are not new.
    private var startedNs: UInt64 = 0
    private var gone: Set<String> = []

    init(
        path: String, options: ReaderOptions, merge: MergeSource, order: UInt64,
        runningBoot: LaneID, report: @escaping (ReadProblem) -> Void
    ) throws(ReadProblem) {
        try StoreFolder.check(path)
        self.path = path
        self.options = options
        self.merge = merge
        self.report = report
        self.runningBoot = runningBoot
        firstOrder = order
        shelf = ArchiveShelf(store: path)
        if options.follow, options.fromEnd { startedNs = cw_realtime_ns() }
        try open()
    }

    private func open() throws(ReadProblem) {
        var sources: [LaneSource] = []
        for files in try LaneFiles.list(store: path) where files.hasLaneFile {
            knownLanes.insert(files.lane)
            if let source = openLane(files) { sources.append(source) }
        }
        let archives = shelf.discover(report)
        var byID: [LaneID: LaneSource] = [:]
        for source in sources { byID[source.laneID] = source }
        for info in archives {
            for cover in info.covers where cover.first <= cover.last {
                byID[cover.laneID]?.exclude(cover.first...cover.last)
            }
        }
        if startedNs == 0 { add(archives) }
        let excluded = archives.flatMap(\.covers)
        for (index, source) in sources.enumerated() {
            add(source, keepsOpen: index < StoreView.lanesOpenMax, excluded: excluded)
        }
        hold()
    }

    private func openLane(_ files: LaneFiles) -> LaneSource? {
        do throws(ReadProblem) {
            let source = try LaneSource(files: files, runningBoot: runningBoot)
            if options.follow { source.reportsDrops = false }
            return source
        } catch {
            // Gone between listing and opening: an archive has it.
            if case .system(_, let number) = error, number == 2 { return nil }
            report(error)
            return nil
        }
    }

    /// The place of a lane among those with equal times: by name, whoever gives its records.
    private func order(_ lane: String) -> UInt64 {
        var hash: UInt64 = 0
        for byte in lane.utf8.prefix(6) { hash = hash << 8 | UInt64(byte) }
        return firstOrder &+ hash
    }

    private func add(_ source: LaneSource, keepsOpen: Bool, excluded: [ArchiveCover]) {
        guard let process = source.process else { return }
        merge.learn(process, lane: source.lane)
        var boots = BootOffsets()
        boots.add(process, lane: source.lane)
        let isFollowed = options.follow && !(source.head?.closed ?? false)
        // Its boot may have another offset; a minute early is early enough, and 0 while lanes are few.
        let bound = boots.orderingTime(process, source.createdMonotonicNs)
        if isFollowed {
            lanes[source.lane] = source
            if startedNs != 0 { skip(source) }
        } else if startedNs != 0 {
            return
        }
        var input: MergeInput
        if keepsOpen || isFollowed {
            input = MergeInput(lowerBound: 0, order: order(source.lane)) { source }
        } else {
            let lane = source.lane
            let id = source.laneID
            let early = bound > 60_000_000_000 ? bound - 60_000_000_000 : 0
            input = MergeInput(lowerBound: early, order: order(lane)) {
                [weak self] () throws(ReadProblem) -> (any RecordSource)? in
                guard let self else { return nil }
                return try self.reopen(lane, id, excluded)
            }
        }
        input.isFollowed = isFollowed
        merge.add(input)
    }

    /// A lane that was closed for want of descriptors; what went away since is in archives.
    private func reopen(_ lane: String, _ id: LaneID, _ excluded: [ArchiveCover])
        throws(ReadProblem) -> LaneSource?
    {
        let source = try LaneSource.open(
            directory: path, lane: lane, segments: nil, runningBoot: runningBoot)
        for cover in excluded where cover.laneID == id && cover.first <= cover.last {
            source.exclude(cover.first...cover.last)
        }
        return source
    }

    private func skip(_ source: LaneSource) {
        do throws(ReadProblem) { try source.skipAll() } catch { report(error) }
    }

    private func add(_ archives: [ArchiveInfo], isRest: Bool = false) {
        let isFew = archives.count <= ArchiveShelf.placedExactlyMax
        for info in archives where ArchiveShelf.overlaps(info, options) {
            var bound = ArchiveShelf.roughBound(info)
            if isFew, let source = try? ArchiveSource.open(path: info.path),
                let process = source.process
            {
                merge.learn(process, lane: info.covers.first?.laneName ?? "")
                var boots = BootOffsets()
                boots.add(process, lane: "")
                bound = boots.orderingTime(process, source.createdMonotonicNs)
                bound = bound > 60_000_000_000 ? bound - 60_000_000_000 : 0
            }
            let lane = info.covers.first?.laneName ?? ""
            merge.add(
                MergeInput(lowerBound: bound, order: order(lane)) {
                    [options, weak self] () throws(ReadProblem) -> (any RecordSource)? in
                    let source = try ArchiveShelf.open(info, options)
                    guard isRest, let self else { return source }
                    return self.rest(of: source, info)
                })
        }
    }

    /// An archive of lanes whose own files gave part of the records.
    private func rest(of source: ArchiveSource, _ info: ArchiveInfo) -> any RecordSource {
        var mine: [LaneID: LaneSource] = [:]
        for lane in lanes.values { mine[lane.laneID] = lane }
        let started = startedNs
        return RestOfArchive(source) { record in
            if started != 0, record.writtenNs < started { return true }
            guard let lane = mine[record.thread.process.laneID] else { return false }
            return lane.covers(thread: record.thread.serial, sequence: record.sequence)
        }
    }

    /// A source that was read to its end; an archive may hold what it lost.
    func ended(_ source: any RecordSource) {
        if let lane = source as? LaneSource, !lane.lostSegments.isEmpty { lanes[lane.lane] = lane }
    }

    private func isNeeded(_ info: ArchiveInfo) -> Bool {
        for cover in info.covers where cover.first <= cover.last {
            guard let lane = lanes.values.first(where: { $0.laneID == cover.laneID }) else {
                if knownLanes.contains(cover.laneName), !options.follow { continue }
                return true
            }
            let span = cover.last - cover.first
            guard span < UInt64(lane.segmentNumbers.count) else { return true }
            for number in cover.first...cover.last where !lane.owns(number) { return true }
        }
        return false
    }

    /// Not following, all read: what lanes lost meanwhile, from archives made since. False: nothing.
    func recover() -> Bool {
        let lost = lanes.values.reduce(0) { $0 + $1.lostSegments.count }
        guard lost > lostBefore else { return false }
        lostBefore = lost
        let fresh = shelf.discover(report).filter(isNeeded)
        add(fresh, isRest: true)
        return !fresh.isEmpty
    }

    /// Following: looks for new records, segments, lanes and archives.
    func poll() {
        do throws(ReadProblem) {
            try pollLanes()
        } catch {
            report(error)
        }
        for info in shelf.discover(report) {
            if isNeeded(info) { add([info], isRest: true) } else { shelf.passOver(info) }
        }
        let lost = lanes.values.reduce(0) { $0 + $1.lostSegments.count }
        if lost > lostBefore {
            lostBefore = lost
            add(shelf.takePassedOver(isNeeded), isRest: true)
        }
        hold()
    }

    private func pollLanes() throws(ReadProblem) {
        let listed = try LaneFiles.list(store: path)
        var present: Set<String> = []
        for files in listed where files.hasLaneFile {
            present.insert(files.lane)
            if let source = lanes[files.lane] {
                do throws(ReadProblem) { try source.refresh(files: files) } catch { report(error) }
            } else if knownLanes.insert(files.lane).inserted, let source = openLane(files) {
                follow(source)
            }
        }
        for (name, source) in lanes where !present.contains(name) {
            // Its files are gone; what the descriptors still reach is read, once.
            if gone.insert(name).inserted {
                do throws(ReadProblem) {
                    try source.refresh(files: source.filesGone)
                } catch { report(error) }
            }
        }
    }

    /// A lane that began while the reader followed: nothing of it is old.
    private func follow(_ source: LaneSource) {
        guard let process = source.process else { return }
        merge.learn(process, lane: source.lane)
        lanes[source.lane] = source
        var input = MergeInput(lowerBound: 0, order: order(source.lane)) { source }
        input.isFollowed = true
        merge.add(input)
    }

    /// Young records wait for those of slower threads.
    private func hold() {
        guard options.follow else { return }
        let now = cw_monotonic_ns()
        let limit = now > StoreView.reorderWindowNs ? now - StoreView.reorderWindowNs : 0
        for source in lanes.values {
            let isOurs = source.process?.bootID == runningBoot && runningBoot != .zero
            source.holdAfter = isOurs && !gone.contains(source.lane) ? limit : nil
        }
    }
}
