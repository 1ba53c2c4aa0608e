// The parts of one lane in different files (its archives, and the segments not archived yet) as one
// run. Parts follow one another in time, except for a moment around each roll, so two are open at
// once. The clocks of neighbouring segments disagree by up to microseconds: within 100 of them, the
// earlier part goes first, which keeps the order inside each thread exact.

import CordwoodCore

package final class ChainSource: RecordSource {
    package typealias Part = () throws(ReadProblem) -> (any RecordSource)?

    private static let clockSlackNs: UInt64 = 100_000

    private var parts: [Part]
    private var next = 0
    /// The part being read, and the next one.
    private var near: (any RecordSource)?
    private var far: (any RecordSource)?
    private var nearRecord: RecordRef?
    private var farRecord: RecordRef?
    private var farIsAsked = false

    package init(_ parts: [Part]) { self.parts = parts }

    package var process: ProcessInfo? { near?.process }
    package var createdMonotonicNs: UInt64 { near?.createdMonotonicNs ?? 0 }
    /// The last part, where a followed lane continues.
    package var last: (any RecordSource)? { far ?? near }

    package func advance() throws(ReadProblem) -> RecordRef? {
        while true {
            if near == nil { near = try open() }
            guard let first = near else { return nil }
            if nearRecord == nil { nearRecord = try first.advance() }
            guard let record = nearRecord else {
                if far == nil {
                    far = try open()
                    farIsAsked = false
                }
                guard let second = far else { return nil }
                near = second
                nearRecord = farRecord
                far = nil
                farRecord = nil
                farIsAsked = false
                continue
            }
            if far == nil { far = try open() }
            if let second = far, !farIsAsked {
                farRecord = try second.advance()
                farIsAsked = true
            }
            if let other = farRecord, isEarlier(other, than: record) {
                farRecord = nil
                farIsAsked = false
                return other
            }
            nearRecord = nil
            return record
        }
    }

    private func isEarlier(_ a: RecordRef, than b: RecordRef) -> Bool {
        let (later, overflow) = a.monotonicNs.addingReportingOverflow(ChainSource.clockSlackNs)
        return !overflow && later < b.monotonicNs
    }

    private func open() throws(ReadProblem) -> (any RecordSource)? {
        while next < parts.count {
            let part = parts[next]
            parts[next] = { () throws(ReadProblem) in nil }
            next += 1
            if let source = try part() { return source }
        }
        return nil
    }
}
