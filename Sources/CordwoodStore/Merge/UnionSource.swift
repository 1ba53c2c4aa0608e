// Sources side by side that may have the same records (RecordsSeen): each record comes once. With
// several sources, all are of one lane, and the order of its threads is exact. One thread at a
// time.

import CordwoodCore

package final class UnionSource: RecordSource {
    /// As in ChainSource: of two records within it, that of the earlier part goes first.
    private static let clockSlackNs: UInt64 = 100_000

    /// Files of the lane one after the other, each with the number of its first segment.
    package typealias Track = (source: ChainSource, segments: [UInt64])

    private final class Part {
        let source: ChainSource
        let segments: [UInt64]
        let number: Int
        var record = RecordRef()
        var hasRecord = false
        var isOver = false

        init(_ track: Track, _ number: Int) {
            (source, segments) = track
            self.number = number
        }

        /// Whether a power cut makes the record doubtful, where its file begins, its time.
        var turn: (Int, UInt64, UInt64) {
            let place = source.place
            return (
                record.flags.contains(.unverified) ? 1 : 0,
                place >= 0 && place < segments.count ? segments[place] : .max, record.monotonicNs
            )
        }
    }

    private let seen: RecordsSeen
    private let parts: [Part]
    /// What the last gap shows that is not as a file has it.
    private let gapText = ReadBuffer()

    package init(_ seen: RecordsSeen, _ tracks: [Track]) {
        self.seen = seen
        parts = tracks.map { Part($0, seen.part()) }
    }

    package var process: ProcessInfo? { parts.lazy.compactMap(\.source.process).first }
    package var createdMonotonicNs: UInt64 { parts.map(\.source.createdMonotonicNs).min() ?? 0 }
    /// Where a lane may continue.
    package var sources: [any RecordSource] { parts.map { $0.source } }

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
            case .rest(let gap):
                swap(&record, &part.record)
                part.hasRecord = false
                gap.show(in: &record, gapText)
                return true
            case .clone:
                let (lane, id) = (seen.name(of: part.record), part.record.id)
                throw .damaged(
                    "\(lane): different records have one id, \(id): a copy of the lane went on by "
                        + "itself")
            }
        }
    }

    /// The part that has the next record; nil: all have ended. Where times are as good as equal,
    /// the file with the earlier segments goes first: it has what its threads wrote before. Of the
    /// same record, the one that is verified counts.
    private func first() -> Part? {
        guard let least = parts.lazy.filter(\.hasRecord).map(\.record.monotonicNs).min() else {
            return nil
        }
        let (bound, overflow) = least.addingReportingOverflow(UnionSource.clockSlackNs)
        return parts.lazy.filter { $0.hasRecord && (overflow || $0.record.monotonicNs <= bound) }
            .min { $0.turn < $1.turn }
    }
}
