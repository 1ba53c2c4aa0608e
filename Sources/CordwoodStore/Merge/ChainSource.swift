// Reads the parts of one lane, which lie in several files (its archives, and the segments not
// archived yet), as one run. Each part follows the last in time, but they overlap briefly at each
// roll, so two are open at once. The clocks of neighbouring segments disagree by up to
// microseconds: of two records within 100 of them, that of the earlier part goes first, which keeps
// the order inside each thread exact.

import CordwoodCore

package final class ChainSource: RecordSource {
    package typealias Part = () throws(ReadProblem) -> (any RecordSource)?

    private static let clockSlackNs: UInt64 = 100_000

    private var parts: [Part]
    private var next = 0
    private var hasMore = true
    /// The part being read, and the next one.
    private var near: (any RecordSource)?
    private var far: (any RecordSource)?
    /// Read before its turn, if `hasNear`. `farRecord`: the next part's first record, likewise.
    private var nearRecord = RecordRef()
    private var farRecord = RecordRef()
    private var hasNear = false
    private var hasFar = false
    private var farIsAsked = false
    /// Which parts they are.
    private var (nearPlace, farPlace) = (0, 0)
    /// The part that the last record came from, from 0 on.
    private(set) var place = 0

    package init(_ parts: [Part]) { self.parts = parts }

    package var process: ProcessInfo? { near?.process }
    package var createdMonotonicNs: UInt64 { near?.createdMonotonicNs ?? 0 }
    /// The last part, where a followed lane continues.
    package var last: (any RecordSource)? { far ?? near }

    package func next(_ record: inout RecordRef) throws(ReadProblem) -> Bool {
        while true {
            if near == nil { (near, nearPlace) = (try open(), next - 1) }
            guard let first = near else { return false }
            place = nearPlace
            if hasNear {
                record = nearRecord
                hasNear = false
            } else if try !first.next(&record) {
                if far == nil {
                    (far, farPlace) = (try open(), next - 1)
                    farIsAsked = false
                }
                guard let second = far else { return false }
                (near, nearPlace) = (second, farPlace)
                if hasFar { swap(&nearRecord, &farRecord) }
                hasNear = hasFar
                far = nil
                hasFar = false
                farIsAsked = false
                continue
            }
            if far == nil ? hasMore : !farIsAsked {
                do throws(ReadProblem) {
                    try lookAhead()
                } catch {
                    nearRecord = record
                    hasNear = true
                    throw error
                }
            }
            if hasFar, isEarlier(farRecord, than: record) {
                swap(&record, &farRecord)
                swap(&nearRecord, &farRecord)
                hasNear = true
                hasFar = false
                farIsAsked = false
                place = farPlace
            }
            return true
        }
    }

    /// The run of the part being read, up to where the next part comes first.
    package func run() -> RecordRun? {
        guard !hasNear, far == nil ? !hasMore : farIsAsked, var run = near?.run()
        else { return nil }
        if hasFar {
            let (last, overflow) = farRecord.monotonicNs.addingReportingOverflow(
                ChainSource.clockSlackNs)
            if !overflow { run.lastMonotonic = last }
        }
        return run
    }

    /// Opens the next part, if there is one, and reads its first record.
    private func lookAhead() throws(ReadProblem) {
        if far == nil { (far, farPlace) = (try open(), next - 1) }
        guard let second = far, !farIsAsked else { return }
        hasFar = try second.next(&farRecord)
        farIsAsked = true
    }

    private func isEarlier(_ a: borrowing RecordRef, than b: borrowing RecordRef) -> Bool {
        let (later, overflow) = a.monotonicNs.addingReportingOverflow(ChainSource.clockSlackNs)
        return !overflow && later < b.monotonicNs
    }

    private func open() throws(ReadProblem) -> (any RecordSource)? {
        // The last part asks for each of its records.
        guard hasMore else { return nil }
        while next < parts.count {
            let part = parts[next]
            parts[next] = { () throws(ReadProblem) in nil }
            next += 1
            if let source = try part() { return source }
        }
        hasMore = false
        return nil
    }
}
