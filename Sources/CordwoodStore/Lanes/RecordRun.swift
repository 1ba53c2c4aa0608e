// Consecutive records of one source in the order of a whole store: no other source has an older
// record meanwhile. A reader takes them directly from that source, without the merge and the chain
// in between. The run ends before any of these is asked again. One thread at a time.

import CordwoodCore

/// The source of a run's records: an archive with a block of one process. A class, so that a run
/// calls it without counting references.
package class RunSource {
    /// The process of all the records; nil without records.
    var runProcess: ProcessInfo? { nil }

    /// The next record; false: it is after one of these times, or missing, or damaged. The first
    /// time is monotonic; the last is an ordering time: monotonic plus `offset`.
    func next(
        _ record: inout RecordRef, through lastMonotonic: UInt64, offset: UInt64,
        _ lastOrdering: UInt64
    ) -> Bool { false }

    /// The monotonic time of the next record; nil: unknown, or the block has ended.
    var nextTime: UInt64? { nil }

    /// The messages of the next records, up to one that is after these times, has sections, or is
    /// not a program's message; nil if no message can be taken this way.
    func texts(
        through lastMonotonic: UInt64, offset: UInt64, _ lastOrdering: UInt64
    ) -> RunTexts? { nil }
}

/// Messages of records, each followed by a newline. Valid until the source is asked again.
@safe struct RunTexts {
    @safe var bytes: UnsafeRawBufferPointer
    /// Number of messages.
    var count: Int
}

/// SAFETY: the chain that offered the run holds the source, and releases it only when it is asked
/// for a record; the reader has ended the run by then.
@safe package struct RecordRun {
    private let source: Unmanaged<RunSource>
    /// Monotonic time up to which records come before those of the chain's next part.
    var lastMonotonic = UInt64.max
    /// Ordering time up to which they come before those of other sources; `offset` turns a
    /// monotonic time into it.
    var lastOrdering = UInt64.max
    var offset: UInt64 = 0
    private var mayHaveTexts = true

    init(_ source: RunSource) { unsafe self.source = Unmanaged.passUnretained(source) }

    var process: ProcessInfo? { unsafe source._withUnsafeGuaranteedRef { $0.runProcess } }

    var nextTime: UInt64? { unsafe source._withUnsafeGuaranteedRef { $0.nextTime } }

    /// Reads the next record. False: ask the merge, which returns the next record or the error.
    @inline(__always)
    func next(_ record: inout RecordRef) -> Bool {
        unsafe source._withUnsafeGuaranteedRef {
            $0.next(&record, through: lastMonotonic, offset: offset, lastOrdering)
        }
    }

    /// Takes the messages of the next records; nil if none can be taken this way. After nil it
    /// stops looking, because a search may take as long as it saves.
    mutating func texts() -> RunTexts? {
        if !mayHaveTexts { return nil }
        let found = unsafe source._withUnsafeGuaranteedRef {
            $0.texts(through: lastMonotonic, offset: offset, lastOrdering)
        }
        mayHaveTexts = found != nil
        return found
    }
}
