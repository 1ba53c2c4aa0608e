// Sources side by side that may have the same records (RecordsSeen): each record comes once. With
// several sources, all are of one lane, and the order of its threads is exact. One thread at a
// time.

import CordwoodCore

package final class UnionSource: RecordSource {
    /// As in ChainSource: of two records within it, that of the earlier part goes first.
    private static let clockSlackNs: UInt64 = 100_000

    private final class Part {
        let source: any RecordSource
        let number: Int
        var record = RecordRef()
        var hasRecord = false
        var isOver = false

        init(_ source: any RecordSource, _ number: Int) {
            self.source = source
            self.number = number
        }
    }

    private let seen: RecordsSeen
    private let parts: [Part]

    /// - Parameter sources: the earlier goes first where times are as good as equal.
    package init(_ seen: RecordsSeen, _ sources: [any RecordSource]) {
        self.seen = seen
        parts = sources.map { Part($0, seen.part()) }
    }

    package var process: ProcessInfo? { parts.lazy.compactMap(\.source.process).first }
    package var createdMonotonicNs: UInt64 { parts.map(\.source.createdMonotonicNs).min() ?? 0 }
    /// Where a lane may continue.
    package var sources: [any RecordSource] { parts.map(\.source) }

    package func next(_ record: inout RecordRef) throws(ReadProblem) -> Bool {
        while true {
            for part in parts where !part.hasRecord && !part.isOver {
                part.hasRecord = try part.source.next(&part.record)
                part.isOver = !part.hasRecord
                if part.isOver { seen.end(part.number) }
            }
            guard let part = first() else {
                // A followed lane may continue.
                for part in parts { part.isOver = false }
                return false
            }
            switch seen.note(part.record, of: part.number) {
            case .new:
                swap(&record, &part.record)
                part.hasRecord = false
                return true
            case .known: part.hasRecord = false
            case .clone:
                let (lane, id) = (seen.name(of: part.record), part.record.id)
                throw .damaged(
                    "\(lane): different records have one id, \(id): a copy of the lane went on by "
                        + "itself")
            }
        }
    }

    /// The part that has the next record; nil: all have ended.
    private func first() -> Part? {
        var best: Part?
        for part in parts where part.hasRecord {
            guard let known = best else {
                best = part
                continue
            }
            let (bound, overflow) = part.record.monotonicNs.addingReportingOverflow(
                UnionSource.clockSlackNs)
            if !overflow, bound < known.record.monotonicNs { best = part }
        }
        return best
    }
}
