// Which files of the stores that are read hold the same segments of a lane (FORMAT §11). A cover
// alone proves nothing: it may be that of a copy of the lane. What is proven to be in an archive is
// read there alone; where that is open, all files are read, and each record comes once
// (RecordsSeen). One thread at a time.

import CordwoodCore

struct LaneOverlaps {
    /// Paths of archives of which another one holds everything.
    private(set) var contained: Set<FilePath> = []
    private(set) var shared: [LaneID: SharedLane] = [:]

    private typealias Cover = LaneRanges.Cover
    private let archives: [ArchiveInfo]
    private let identities: [AgeIdentity]
    /// The covers of lanes that several files may hold, sorted.
    private var covers: [LaneID: [Cover]] = [:]
    /// The names of these lanes.
    private var names: [LaneID: String] = [:]
    /// Archives that end one of these lanes and say how many records were refused: if the lane goes
    /// on, it reports them, too.
    private var reporting: [LaneID: Set<Int>] = [:]
    /// Lanes with segments of their own.
    private var own: Set<LaneID> = []

    /// - Parameter lanes: those with segments of their own.
    init(_ archives: [ArchiveInfo], lanes: Set<LaneID>, _ identities: [AgeIdentity]) {
        self.archives = archives
        self.identities = identities
        // Of thousands of archives, few cover the same lane, and fewer what is still in lanes/.
        var wanted = lanes
        var seen: [LaneID: Int] = [:]
        for (index, info) in archives.enumerated() {
            for cover in info.covers {
                let before = seen.updateValue(index, forKey: cover.laneID)
                if let before, before != index { wanted.insert(cover.laneID) }
            }
        }
        for (index, info) in archives.enumerated() {
            for cover in info.covers
            where cover.first <= cover.last && wanted.contains(cover.laneID) {
                covers[cover.laneID, default: []].append((cover.first...cover.last, index))
                names[cover.laneID] = cover.laneName
                if cover.gap > 0 { reporting[cover.laneID, default: []].insert(index) }
            }
        }
        covers = covers.mapValues(LaneRanges.sorted)
        findContained()
        for (lane, list) in covers { settle(lane, list) }
    }

    /// The ranges of a lane's segments that archives cover.
    func ranges(of lane: LaneID) -> [ClosedRange<UInt64>] {
        (covers[lane] ?? []).filter { !contained.contains(archives[$0.archive].path) }.map(\.range)
    }

    /// The records that were returned of shared lanes; nil: there is no such lane.
    func makeSeen(isOrdered: Bool) -> RecordsSeen? {
        shared.isEmpty ? nil : RecordsSeen(shared, isOrdered: isOrdered)
    }

    func isShared(_ info: ArchiveInfo) -> Bool {
        !shared.isEmpty && info.covers.contains { shared[$0.laneID] != nil }
    }

    /// Makes the lane leave out what is proven to be in an archive. Call before the first
    /// `advance`.
    mutating func settle(_ source: LaneSource) {
        meet(source.laneID, source.lane)
        leaveOut(from: source)
    }

    /// A lane of two stores has to be read in both.
    private mutating func meet(_ lane: LaneID, _ name: String) {
        if !own.insert(lane).inserted { share(lane, name) }
    }

    /// As `settle`, for a lane that is known and was opened again.
    mutating func leaveOut(from source: LaneSource) {
        let list = covers[source.laneID] ?? []
        guard !list.isEmpty else { return }
        var kept: Set<UInt64> = []
        if source.segmentNumbers.contains(where: { number in list.contains { $0.range ~= number } })
        {
            do throws(ReadProblem) {
                var seals: Set<SegmentSeal> = []
                for cover in list { seals.formUnion(self.seals(cover.archive, of: source.laneID)) }
                kept = try source.segments { number, seal in
                    list.contains { $0.range ~= number } && seal.map { !seals.contains($0) } ?? true
                }
            } catch {
                // It is told when the segment is read.
                kept = source.segmentNumbers
            }
        }
        for (range, _) in list { source.exclude(range, except: kept) }
        if kept.contains(where: { number in list.contains { $0.range ~= number } })
            || reporting[source.laneID] != nil
        {
            share(source.laneID, source.lane)
            // A power cut may have taken the clock of a segment.
            if source.isOtherBoot {
                let from = source.createdMonotonicNs(ofSegments: kept)
                let known = shared[source.laneID]?.heldFrom ?? from
                shared[source.laneID]?.heldFrom = min(from, known)
            }
        }
    }

    /// The same for a lane that will be opened again: it has to be read beside the archives if any
    /// of these segments is covered.
    mutating func note(_ lane: LaneID, _ name: String, _ segments: Set<UInt64>) {
        meet(lane, name)
        let list = covers[lane] ?? []
        if segments.contains(where: { number in list.contains { $0.range ~= number } })
            || reporting[lane] != nil
        {
            share(lane, name)
        }
    }

    private mutating func share(_ lane: LaneID, _ name: String) {
        if shared[lane] == nil { shared[lane] = SharedLane(name: name) }
    }

    /// What a whole archive holds of a lane.
    private func seals(_ archive: Int, of lane: LaneID) -> [SegmentSeal] {
        let info = archives[archive]
        guard info.lostPlaces == 0,
            let peeked = try? ArchiveInfo.peek(
                path: info.path, identities: identities, seals: true)
        else { return [] }
        return peeked.covers.lazy.filter { $0.laneID == lane }.flatMap(\.seals)
    }

    // MARK: Archives

    /// Leaves out archives that others contain. Each that shares segments is read once, and each
    /// pair of these is compared once: both may have 65,536 lanes.
    private mutating func findContained() {
        var sharing: [Int: Set<Int>] = [:]
        for list in covers.values where list.count > 1 { LaneRanges.pair(list, &sharing) }
        let peeked = sharing.keys.sorted {
            archives[$0].path.description < archives[$1].path.description
        }.compactMap { index in
            (try? ArchiveInfo.peek(path: archives[index].path, identities: identities, seals: true))
                .map { (index: index, info: $0) }
        }
        let infos = Dictionary(uniqueKeysWithValues: peeked.map { ($0.index, $0.info) })
        for (index, info) in peeked {
            let others = (sharing[index] ?? []).lazy.compactMap { infos[$0] }
            if others.contains(where: {
                !contained.contains($0.path) && $0.path != info.path
                    && LaneOverlaps.contains($0, info)
            }) {
                contained.insert(info.path)
            }
        }
    }

    /// Finds out whether archives of one lane that are left overlap, or report the same refusals.
    private mutating func settle(_ lane: LaneID, _ list: [Cover]) {
        let left = list.filter { !contained.contains(archives[$0.archive].path) }
        for (cover, next) in zip(left, left.dropFirst())
        where next.range.lowerBound <= cover.range.upperBound
            || reporting[lane]?.contains(cover.archive) == true
        {
            return share(lane, names[lane] ?? "")
        }
    }

    /// Whether `whole` can be read and has everything that `part` has.
    private static func contains(_ whole: ArchiveInfo, _ part: ArchiveInfo) -> Bool {
        whole.isWhole && (!whole.isEncrypted || whole.blockCount > 0)
            && whole.hasSegments(of: part)
    }
}
