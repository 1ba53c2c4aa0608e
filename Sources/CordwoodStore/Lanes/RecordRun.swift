// Records of one source that come one after the other in the order of a whole store: no other
// source has an older one meanwhile. A reader takes them from that source itself, without the merge
// and the chain in between. Ends before any of these is asked again. One thread at a time.

import CordwoodCore

/// What gives the records of a run: an archive, of whose block every row is wanted. A class, so
/// that a run calls it without counting references.
package class RunSource {
    /// Of all the records; nil without records.
    var runProcess: ProcessInfo? { nil }

    /// The next record; false: it is after one of these times, or missing, or damaged. The
    /// times are monotonic, and of the order of the store: monotonic and `offset`.
    func next(
        _ record: inout RecordRef, through lastMonotonic: UInt64, offset: UInt64,
        _ lastOrdering: UInt64
    ) -> Bool { false }

    /// The monotonic time of the next record; nil: unknown, or the block has ended.
    var nextTime: UInt64? { nil }

    /// The messages of the next records, up to one that is after these times, has sections, or is
    /// no message of a program; nil: none, or it is not known of them.
    func texts(
        through lastMonotonic: UInt64, offset: UInt64, _ lastOrdering: UInt64
    ) -> RunTexts? { nil }
}

/// Messages of records, a newline behind each. Valid until the source is asked again.
@safe struct RunTexts {
    @safe var bytes: UnsafeRawBufferPointer
    /// Messages.
    var count: Int
}

/// SAFETY: the chain that offered the run holds the source, and lets go of it only when it is asked
/// for a record; the reader has then ended the run.
@safe package struct RecordRun {
    private let source: Unmanaged<RunSource>
    /// Monotonic time up to which records come before those of the chain's next part.
    var lastMonotonic = UInt64.max
    /// Ordering time up to which they come before those of other sources, and what makes it from a
    /// monotonic one.
    var lastOrdering = UInt64.max
    var offset: UInt64 = 0
    private var mayHaveTexts = true

    init(_ source: RunSource) { unsafe self.source = Unmanaged.passUnretained(source) }

    var process: ProcessInfo? { unsafe source._withUnsafeGuaranteedRef { $0.runProcess } }

    var nextTime: UInt64? { unsafe source._withUnsafeGuaranteedRef { $0.nextTime } }

    /// The next record; false: the merge gives it, or reports what is.
    @inline(__always)
    func next(_ record: inout RecordRef) -> Bool {
        unsafe source._withUnsafeGuaranteedRef {
            $0.next(&record, through: lastMonotonic, offset: offset, lastOrdering)
        }
    }

    /// The messages of the next records, which are passed; nil: none is. Then no more are looked
    /// for, since that may take as long as what was found.
    mutating func texts() -> RunTexts? {
        if !mayHaveTexts { return nil }
        let found = unsafe source._withUnsafeGuaranteedRef {
            $0.texts(through: lastMonotonic, offset: offset, lastOrdering)
        }
        mayHaveTexts = found != nil
        return found
    }
}
