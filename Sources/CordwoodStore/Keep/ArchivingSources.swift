// What archiving and compacting read through. One thread at a time.

import CordwoodCore

/// Passes records on and reports their number.
final class CountedSource: RecordSource {
    private static let step: UInt64 = 16_384

    private let source: any RecordSource
    private let tell: (UInt64) -> Void
    private var count: UInt64 = 0

    init(_ source: any RecordSource, tell: @escaping (UInt64) -> Void) {
        self.source = source
        self.tell = tell
    }

    var createdMonotonicNs: UInt64 { source.createdMonotonicNs }
    var process: ProcessInfo? { source.process }

    func next(_ record: inout RecordRef) throws(ReadProblem) -> Bool {
        count &+= 1
        if count % CountedSource.step == 0 { tell(CountedSource.step) }
        return try source.next(&record)
    }
}

/// Returns all records or fails: damaged archives stay where they are.
final class ExactSource: RecordSource {
    private let source: any RecordSource

    init(_ source: any RecordSource) { self.source = source }

    var createdMonotonicNs: UInt64 { source.createdMonotonicNs }
    var process: ProcessInfo? { source.process }

    func next(_ record: inout RecordRef) throws(ReadProblem) -> Bool {
        do throws(ReadProblem) {
            return try source.next(&record)
        } catch {
            if case .damaged(let text) = error { throw .system(text, errno: Errno.EIO) }
            throw error
        }
    }
}

/// A lane whose first record is known in advance, and whose end is final.
final class PrimedSource: RecordSource {
    private let source: LaneSource
    private var first = RecordRef()
    private(set) var hasRecord = false
    /// `first` was passed on. Testing an optional for a value would copy it.
    private var isPassedOn = false
    private(set) var damage: [String] = []

    init(_ source: LaneSource) { self.source = source }

    var createdMonotonicNs: UInt64 { source.createdMonotonicNs }
    var process: ProcessInfo? { source.process }

    func prime() throws(ReadProblem) {
        while !hasRecord {
            do {
                var record = RecordRef()
                guard try fromSource(&record) else { return }
                first = record
                hasRecord = true
            } catch .damaged(let text) {
                damage.append(text)
            } catch {
                throw error
            }
        }
    }

    func next(_ record: inout RecordRef) throws(ReadProblem) -> Bool {
        if isPassedOn || !hasRecord { return try fromSource(&record) }
        isPassedOn = true
        record = first
        return true
    }

    /// A missing segment is not a segment without records: nothing may be removed because of an
    /// archive that lacks it. After a restart of the machine it never comes back.
    private func fromSource(_ record: inout RecordRef) throws(ReadProblem) -> Bool {
        if try source.next(&record) { return true }
        if let number = source.lostSegments.first, !source.isOtherBoot {
            throw .system("open segment \(number) of lanes/\(source.lane)", errno: Errno.ENOENT)
        }
        return false
    }
}
