// Merges many sources into one run of records in the order of FORMAT §4. A source is opened when
// the merge comes near its first record. A failing source is reported and continues where it can.
// If no order is needed, one source is read after the other. One thread at a time; a record is
// valid until the next `advance`.

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

    func knows(_ process: ProcessInfo) -> Bool {
        known[process.bootID == .zero ? process.laneID : process.bootID] != nil
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

/// Where an ordered merge returns a record: by time, and at equal times by source. Records with the
/// same place come in their source's order.
package struct MergePlace: Comparable {
    /// The greatest ordering time that the source has reached.
    package var time: UInt64 = 0
    package var order: UInt64 = 0

    package static func < (a: MergePlace, b: MergePlace) -> Bool {
        (a.time, a.order) < (b.time, b.order)
    }
}

package struct MergeInput {
    /// The source has no record before this ordering time; 0 opens it at once.
    package var lowerBound: UInt64
    /// Among equal times, the smaller order comes first.
    package var order: UInt64
    /// Following: the source may have more records after its end; after `poll` it is asked again.
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
        /// The source's current record, if `hasRecord`: others come before it. A separate object,
        /// because most of thousands of sources are not open or have ended.
        var waiting: WaitingRecord?
        var hasRecord = false
        var failures = 0
        let isFollowed: Bool
        let order: UInt64
        /// Without order: how far the source has come. Its records come in its own order, so an
        /// older record has the same place as the one before it.
        var reached: UInt64
        /// Turns that process's monotonic times into ordering times, as of `Order.learnt`.
        @exclusivity(unchecked) var offset: UInt64 = 0
        @exclusivity(unchecked) var offsetProcess: ProcessInfo?
        @exclusivity(unchecked) var learnt = 0

        init(_ input: MergeInput) {
            self.input = input
            order = input.order
            isFollowed = input.isFollowed
            reached = input.lowerBound
        }
    }

    private final class WaitingRecord {
        @exclusivity(unchecked) var record = RecordRef()
    }

    /// A source that fails this often in a row is given up.
    private static let failuresMax = 10_000
    /// False: each source is read to its end before the next, so only one holds memory. Set before
    /// the first record.
    package var isOrdered = true
    /// Without order: where the last record, or the last failure, would have come in order.
    package private(set) var place = MergePlace()
    /// Called for every source that has ended and is not followed, before it is released.
    package var onEnd: ((any RecordSource) -> Void)?
    /// Ordering time of the last record returned.
    package var time: UInt64 { unsafe order.time }
    /// The last record returned is older than one returned before it.
    package var isLate: Bool { unsafe order.isLate }
    /// The greatest ordering time returned so far.
    package var latest: UInt64 { unsafe order.latest }
    private var ended: [Slot] = []

    /// The state that every record changes.
    private struct Order {
        var heap = MinHeap<Slot>()
        var boots: BootOffsets
        /// Calls of `learn`, which may change offsets.
        var learnt = 0
        var time: UInt64 = 0
        var isLate = false
        var latest: UInt64 = 0

        mutating func pass(_ time: UInt64) {
            self.time = time
            isLate = time < latest
            latest = max(latest, time)
        }

        mutating func offset(of process: ProcessInfo, _ slot: Slot) -> UInt64 {
            if unsafe process !== slot.offsetProcess || learnt != slot.learnt {
                unsafe slot.offset = boots.offset(of: process)
                unsafe slot.offsetProcess = process
                unsafe slot.learnt = learnt
            }
            return unsafe slot.offset
        }
    }

    /// No source calls back while this is used, and there is one thread: accesses need no check.
    @exclusivity(unchecked) private var order: Order

    package init(inputs: [MergeInput] = [], boots: BootOffsets = BootOffsets()) {
        unsafe order = Order(boots: boots)
        for input in inputs { add(input) }
    }

    package var process: ProcessInfo? { nil }
    package var createdMonotonicNs: UInt64 { 0 }

    package func add(_ input: MergeInput) {
        unsafe order.heap.push(input.lowerBound, input.order, Slot(input))
    }

    /// Lets lanes whose records have not been read yet decide the offset of their boot.
    package func learn(_ process: ProcessInfo, lane: String) {
        unsafe order.boots.add(process, lane: lane)
        unsafe order.learnt += 1
    }

    /// Following: asks exhausted sources again; releases those for which `isGone` is true.
    package func poll(isGone: (any RecordSource) -> Bool = { _ in false }) {
        let asked = ended
        ended = []
        for slot in asked {
            if let source = slot.source, !isGone(source) {
                unsafe order.heap.push(0, slot.order, slot)
            }
        }
    }

    package func next(_ record: inout RecordRef) throws(ReadProblem) -> Bool {
        while let slot = unsafe order.heap.entries.first?.item {
            if slot.hasRecord, let waiting = slot.waiting {
                slot.hasRecord = false
                unsafe swap(&record, &waiting.record)
                unsafe order.pass(order.heap.entries[0].key)
                return true
            }
            if !isOrdered { place = MergePlace(time: slot.reached, order: slot.order) }
            guard try fill(&record, from: slot) else { continue }
            let time = unsafe record.monotonicNs &+ order.offset(of: record.thread.process, slot)
            if !isOrdered {
                slot.reached = max(slot.reached, time)
                place.time = slot.reached
                unsafe order.pass(time)
                return true
            }
            if unsafe order.heap.rekeyTop(time) {
                unsafe order.pass(time)
                return true
            }
            let waiting = slot.waiting ?? WaitingRecord()
            slot.waiting = waiting
            unsafe swap(&record, &waiting.record)
            slot.hasRecord = true
        }
        return false
    }

    /// In order: the run of the source that has the next record, or had the last one, up to where
    /// another source comes first. nil: call `next` for the next record or the error.
    package func run() -> RecordRun? {
        guard isOrdered, let slot = unsafe order.heap.entries.first?.item, !slot.hasRecord,
            slot.input == nil, var run = slot.source?.run(), let process = run.process
        else { return nil }
        run.offset = unsafe order.offset(of: process, slot)
        if let next = unsafe order.heap.second {
            // Of equal times, the smaller order comes first.
            guard next.key > 0 else { return nil }
            run.lastOrdering = slot.order < next.tie ? next.key : next.key &- 1
        }
        return run
    }

    /// The next source's run, after `old` ended because that source comes first. No record of the
    /// old source has to be set aside. nil: likewise.
    package func run(after old: RecordRun) -> RecordRun? {
        guard let next = old.nextTime, next <= old.lastMonotonic else { return nil }
        let time = next &+ old.offset
        // If key and order are equal, the top entry comes first.
        guard time > old.lastOrdering, unsafe !order.heap.rekeyTop(time) else { return nil }
        return run()
    }

    /// The slot is on top and has no record: opens its source or asks it for the next record.
    /// False if the source has no more records; the slot has then left the heap.
    private func fill(
        _ record: inout RecordRef, from slot: Slot
    ) throws(ReadProblem) -> Bool {
        let isFound: Bool
        do throws(ReadProblem) {
            if let input = slot.input {
                slot.input = nil
                slot.source = try input.open()
            }
            isFound = try slot.source?.next(&record) ?? false
            slot.failures = 0
        } catch {
            slot.failures += 1
            if slot.source == nil || slot.failures > MergeSource.failuresMax {
                unsafe order.heap.pop()
            }
            throw error
        }
        if isFound { return true }
        slot.waiting = nil
        unsafe order.heap.pop()
        if slot.isFollowed, slot.source != nil {
            ended.append(slot)
        } else if let source = slot.source {
            onEnd?(source)
        }
        return false
    }

    /// Whether the offset of the process's boot is already decided, whatever is read.
    package func knows(_ process: ProcessInfo) -> Bool {
        unsafe order.boots.knows(process)
    }

    /// Converts a process's monotonic time to ordering time.
    package func orderingTime(_ process: ProcessInfo, _ monotonic: UInt64) -> UInt64 {
        var known = unsafe order.boots
        return known.orderingTime(process, monotonic)
    }
}
