// Segments of lanes, as archives cover them: sorted once, then asked often. Archives come from
// others, and each may have 65,536 covers: what two of them have in common is found in the time
// that sorting takes. Values only.

import CordwoodCore

package struct LaneRanges: Sendable {
    /// Sorted and apart from each other, neighbours being one.
    package private(set) var lanes: [LaneID: [ClosedRange<UInt64>]] = [:]

    package init() {}

    package init(_ covers: [ArchiveCover]) {
        for cover in covers where cover.first <= cover.last {
            lanes[cover.laneID, default: []].append(cover.first...cover.last)
        }
        for (lane, ranges) in lanes where ranges.count > 1 {
            var joined: [ClosedRange<UInt64>] = []
            for range in ranges.sorted(by: { $0.lowerBound < $1.lowerBound }) {
                if let last = joined.last,
                    last.upperBound == .max || range.lowerBound <= last.upperBound + 1
                {
                    joined[joined.count - 1] =
                        last.lowerBound...max(last.upperBound, range.upperBound)
                } else {
                    joined.append(range)
                }
            }
            lanes[lane] = joined
        }
    }

    /// Whether they have all segments of the cover.
    func has(_ cover: ArchiveCover) -> Bool {
        guard let range = LaneRanges.last(lanes[cover.laneID] ?? [], startingBy: cover.first)
        else { return false }
        return range.contains(cover.first) && range.upperBound >= cover.last
    }

    /// Whether one of the joined ranges has a segment of `range`.
    package static func have(
        _ ranges: [ClosedRange<UInt64>], anyOf range: ClosedRange<UInt64>
    ) -> Bool {
        last(ranges, startingBy: range.upperBound).map { $0.upperBound >= range.lowerBound }
            ?? false
    }

    private static func last(
        _ ranges: [ClosedRange<UInt64>], startingBy segment: UInt64
    ) -> ClosedRange<UInt64>? {
        var (low, high) = (0, ranges.count)
        while low < high {
            let middle = (low + high) / 2
            if ranges[middle].lowerBound <= segment { low = middle + 1 } else { high = middle }
        }
        return low > 0 ? ranges[low - 1] : nil
    }
}

// MARK: Of several archives

extension LaneRanges {
    /// The number of an archive, and segments that it has of a lane.
    typealias Cover = (range: ClosedRange<UInt64>, archive: Int)

    static func sorted(_ covers: [Cover]) -> [Cover] {
        covers.sorted {
            ($0.range.lowerBound, $0.range.upperBound) < ($1.range.lowerBound, $1.range.upperBound)
        }
    }

    /// Of a lane's sorted covers, the archives of those that share segments.
    static func sharing(_ sorted: [Cover]) -> Set<Int> {
        var sharing: Set<Int> = []
        var reach: (last: UInt64, archive: Int)?
        for cover in sorted {
            if let reach, cover.range.lowerBound <= reach.last {
                sharing.formUnion([reach.archive, cover.archive])
            }
            if reach.map({ cover.range.upperBound > $0.last }) ?? true {
                reach = (cover.range.upperBound, cover.archive)
            }
        }
        return sharing
    }

    /// Of a lane's sorted covers, adds to each archive those that share segments with it.
    static func pair(_ sorted: [Cover], _ sharing: inout [Int: Set<Int>]) {
        // The last covers of archives, as far as the next ones may share their segments.
        var reaching: [Cover] = []
        for cover in sorted {
            reaching.removeAll { $0.range.upperBound < cover.range.lowerBound }
            for other in reaching where other.archive != cover.archive {
                sharing[other.archive, default: []].insert(cover.archive)
                sharing[cover.archive, default: []].insert(other.archive)
            }
            if let index = reaching.firstIndex(where: { $0.archive == cover.archive }) {
                let last = max(reaching[index].range.upperBound, cover.range.upperBound)
                reaching[index].range = cover.range.lowerBound...last
            } else {
                reaching.append(cover)
            }
        }
    }

    /// Those that share segments with others.
    static func sharing(_ archives: [ArchiveInfo]) -> [ArchiveInfo] {
        var covers: [LaneID: [Cover]] = [:]
        for (index, info) in archives.enumerated() {
            for cover in info.covers where cover.first <= cover.last {
                covers[cover.laneID, default: []].append((cover.first...cover.last, index))
            }
        }
        var all: Set<Int> = []
        for list in covers.values where list.count > 1 { all.formUnion(sharing(sorted(list))) }
        return all.map { archives[$0] }
    }
}
