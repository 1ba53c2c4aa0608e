// Which records of some lanes were returned, if several files may have them: a segment and an
// archive made of it or of a copy of the lane, or archives of two copies. Two records are one only
// if id, content and event time agree and they were written within a second (FORMAT §7.1): a
// machine that was resumed twice goes on with the same ids, and then both are shown, and the clone
// is told. Refused records are reported once, by the running totals of their slots (Gap). What no
// sync had covered before a power cut (`unverified`) has an uncertain time, and gives way to what
// another file has. Holds the ids between the part that is furthest behind, or what was passed on
// last, and the foremost part. One thread at a time.

import CordwoodCore

/// A lane of which several files have to be read.
package struct SharedLane: Sendable {
    package var name: String
    /// Records from this monotonic time on may come again at any later time.
    package var heldFrom: UInt64 = .max

    package init(name: String) { self.name = name }
}

package final class RecordsSeen {
    /// The clocks of two makers of a file differ by microseconds; those of two clones by more.
    private static let sameNs: UInt64 = 1_000_000_000

    enum Found: Equatable {
        case new, known, clone
        /// A gap of which something was reported before; with the rest.
        case rest(Gap)
    }

    private struct Name: Hashable {
        var serial: UInt32
        var sequence: UInt64
    }

    private struct Seen {
        var content: UInt64
        var writtenNs: UInt64
        var isUnverified: Bool
    }

    private final class Lane {
        let name: String
        let heldFrom: UInt64
        var seen: [Name: [Seen]] = [:]
        /// In the order in which they were returned, with their monotonic times; `first` is the
        /// first that is still in `seen`.
        var named: [(name: Name, monotonicNs: UInt64)] = []
        var first = 0
        /// The monotonic time to which each part has come that has begun and not ended.
        var reached: [Int: UInt64] = [:]
        /// That of each part's last new record; it is passed on once the part is asked again.
        var given: [Int: UInt64] = [:]
        /// The greatest that was passed on: no part that has not begun comes to an older record.
        var passed: UInt64 = 0
        var isCloneTold = false
        var gaps = GapsSeen()

        init(_ shared: SharedLane) {
            name = shared.name
            heldFrom = shared.heldFrom
        }

        /// No record is asked about that is older, but for the slack of clocks.
        var bound: UInt64 { min(reached.values.min() ?? 0, passed, heldFrom) }
    }

    private var lanes: [LaneID: Lane] = [:]
    private var partCount = 0
    private let forgets: Bool

    /// - Parameters:
    ///   - lanes: those that several parts have.
    ///   - isOrdered: the parts are read side by side; otherwise one after the other, and every id
    ///     is held to the end.
    package init(_ lanes: [LaneID: SharedLane], isOrdered: Bool) {
        self.lanes = lanes.mapValues(Lane.init)
        forgets = isOrdered
    }

    /// A number for a source that returns each of its records once.
    func part() -> Int {
        partCount += 1
        return partCount
    }

    func end(_ part: Int) {
        for lane in lanes.values {
            lane.reached[part] = nil
            lane.given[part] = nil
        }
    }

    func name(of record: borrowing RecordRef) -> String {
        lanes[record.thread.process.laneID]?.name ?? ""
    }

    /// Notes that `part` returns the record, unless it is `known`. `.clone` comes once for a lane:
    /// the record is new, but another one with its id was returned, and it has to be asked for
    /// again.
    func note(_ record: borrowing RecordRef, of part: Int) -> Found {
        guard let lane = lanes[record.thread.process.laneID] else { return .new }
        lane.reached[part] = record.monotonicNs
        if let given = lane.given.removeValue(forKey: part) {
            lane.passed = max(lane.passed, given)
        }
        if forgets { forget(lane) }
        if let gap = Gap(record) { return RecordsSeen.note(gap, of: lane) }
        let name = Name(serial: record.thread.serial, sequence: record.sequence)
        let content = RecordsSeen.content(of: record)
        let isUnverified = record.flags.contains(.unverified)
        var isClone = false
        // A journal may hold what its segment gave up and another one has.
        for other in lane.seen[name] ?? [] {
            let apart =
                max(other.writtenNs, record.writtenNs) - min(other.writtenNs, record.writtenNs)
            if other.content == content
                ? apart <= RecordsSeen.sameNs || isUnverified || other.isUnverified : isUnverified
            {
                return .known
            }
            isClone = isClone || !other.isUnverified
        }
        if isClone, !lane.isCloneTold {
            lane.isCloneTold = true
            return .clone
        }
        lane.seen[name, default: []].append(
            Seen(
                content: content, writtenNs: record.writtenNs, isUnverified: isUnverified))
        lane.named.append((name, record.monotonicNs))
        lane.given[part] = record.monotonicNs
        return .new
    }

    private static func note(_ gap: Gap, of lane: Lane) -> Found {
        var rest = gap
        rest.runs = lane.gaps.note(gap.runs)
        if rest.runs.isEmpty { return .known }
        return rest.runs == gap.runs ? .new : .rest(rest)
    }

    private func forget(_ lane: Lane) {
        let reach = 2 * RecordsSeen.sameNs
        let bound = lane.bound
        while bound > reach, lane.first < lane.named.count,
            lane.named[lane.first].monotonicNs < bound - reach
        {
            // A clone of that name may be younger.
            let name = lane.named[lane.first].name
            lane.seen[name]?.removeFirst()
            if lane.seen[name]?.isEmpty ?? true { lane.seen[name] = nil }
            lane.first += 1
        }
        if lane.first > 65_536 || lane.first == lane.named.count {
            lane.named.removeFirst(lane.first)
            lane.first = 0
        }
    }

    /// Equal for a record that was read from a segment and from an archive.
    private static func content(of record: borrowing RecordRef) -> UInt64 {
        var crc: UInt32 = 0
        var walk = SectionIterator(record.sections)
        while let (kind, body) = walk.next() {
            switch kind {
            case SectionKind.fields, SectionKind.trace, SectionKind.time, SectionKind.exception:
                crc = Checksum.crc(body, after: crc)
            default: break
            }
        }
        crc = Checksum.crc(record.context, after: crc)
        return record.digest ^ UInt64(crc)
    }
}
