// Merges many sources into one run of records in the order of FORMAT §4. A source is opened when
// the merge comes near its first record. A failing source is reported and continues where it can.
// One thread at a time; a record is valid until the next `advance`.

import CordwoodCore

/// The offset from monotonic to ordering time that all lanes of one boot share (FORMAT §4).
package struct BootOffsets {
    private var known: [LaneID: (created: UInt64, name: String, offset: UInt64)] = [:]

    package init() {}

    /// The lane with the smallest createdRealtime, then name, decides.
    package mutating func add(_ process: ProcessInfo, lane: String) {
        // Lanes of unknown boots share no offset.
        let key = process.bootID == .zero ? process.laneID : process.bootID
        if let old = known[key], (old.created, old.name) <= (process.createdRealtime, lane) {
            return
        }
        known[key] = (
            process.createdRealtime, lane, process.createdRealtime &- process.createdMonotonic
        )
    }

    /// A process that appears late, in an archive, gets its offset once and for all.
    mutating func offset(of process: ProcessInfo) -> UInt64 {
        let key = process.bootID == .zero ? process.laneID : process.bootID
        if let found = known[key] { return found.offset }
        add(process, lane: "")
        return process.createdRealtime &- process.createdMonotonic
    }

    package mutating func orderingTime(_ process: ProcessInfo, _ monotonic: UInt64) -> UInt64 {
        monotonic &+ offset(of: process)
    }
}

package struct MergeInput {
    /// The source has no record before this ordering time; 0 opens it at once.
    package var lowerBound: UInt64
    /// Among equal times, the smaller order comes first.
    package var order: UInt64
    /// Following: the source may have more records after its end, and is asked again after `poll`.
    package var isFollowed = false
    package var open: () throws(ReadProblem) -> (any RecordSource)?

    package init(
        lowerBound: UInt64, order: UInt64,
        open: @escaping () throws(ReadProblem) -> (any RecordSource)?
    ) {
        self.lowerBound = lowerBound
        self.order = order
        self.open = open
    }
}

package final class MergeSource: RecordSource {
    private final class Slot {
        var input: MergeInput?
        var source: (any RecordSource)?
        var record: RecordRef?
        var failures = 0
        let isFollowed: Bool
        let order: UInt64

        init(_ input: MergeInput) {
            self.input = input
            order = input.order
            isFollowed = input.isFollowed
        }
    }

    /// A source that fails this often in a row is given up.
    private static let failuresMax = 10_000
    /// Called for every source that has ended and is not followed, before it is released.
    package var onEnd: ((any RecordSource) -> Void)?
    /// Ordering time of the last record returned.
    package private(set) var time: UInt64 = 0
    /// The last record returned is older than one returned before it.
    package private(set) var isLate = false
    private var latest: UInt64 = 0
    private var boots: BootOffsets
    private var heap = MinHeap<Slot>()
    private var ended: [Slot] = []
    private var last: Slot?
    private var offsetProcess: ProcessInfo?
    private var offset: UInt64 = 0

    package init(inputs: [MergeInput] = [], boots: BootOffsets = BootOffsets()) {
        self.boots = boots
        for input in inputs { add(input) }
    }

    package var process: ProcessInfo? { nil }
    package var createdMonotonicNs: UInt64 { 0 }

    package func add(_ input: MergeInput) {
        heap.push(input.lowerBound, input.order, Slot(input))
    }

    /// Lets lanes whose records have not been read yet decide the offset of their boot.
    package func learn(_ process: ProcessInfo, lane: String) {
        var known = boots
        known.add(process, lane: lane)
        boots = known
        offsetProcess = nil
    }

    /// Following: asks sources that had nothing more again; releases those for which `isGone` is
    /// true.
    package func poll(isGone: (any RecordSource) -> Bool = { _ in false }) {
        last?.record = nil
        last = nil
        let asked = ended
        ended = []
        for slot in asked {
            if let source = slot.source, !isGone(source) { heap.push(0, slot.order, slot) }
        }
    }

    package func advance() throws(ReadProblem) -> RecordRef? {
        last?.record = nil
        last = nil
        while let top = heap.top {
            let slot = top.item
            if let record = slot.record {
                time = top.key
                isLate = time < latest
                latest = max(latest, time)
                last = slot
                return record
            }
            try next(slot)
        }
        return nil
    }

    /// The slot is on top and has no record: opens its source or asks it for the next record.
    private func next(_ slot: Slot) throws(ReadProblem) {
        do throws(ReadProblem) {
            if let input = slot.input {
                slot.input = nil
                slot.source = try input.open()
            }
            slot.record = try slot.source?.advance()
            slot.failures = 0
        } catch {
            slot.failures += 1
            if slot.source == nil || slot.failures > MergeSource.failuresMax { heap.pop() }
            throw error
        }
        if let record = slot.record {
            heap.rekeyTop(orderingTime(record))
        } else {
            heap.pop()
            if slot.isFollowed, slot.source != nil {
                ended.append(slot)
            } else if let source = slot.source {
                onEnd?(source)
            }
        }
    }

    /// Converts a process's monotonic time to ordering time.
    package func orderingTime(_ process: ProcessInfo, _ monotonic: UInt64) -> UInt64 {
        var known = boots
        return known.orderingTime(process, monotonic)
    }

    private func orderingTime(_ record: RecordRef) -> UInt64 {
        let process = record.thread.process
        if process !== offsetProcess {
            offset = boots.offset(of: process)
            offsetProcess = process
        }
        return record.monotonicNs &+ offset
    }
}
