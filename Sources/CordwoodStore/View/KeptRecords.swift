// The last records of a read, up to a number and a total size, as copies with their own bytes. They
// are added in order, or in any order with their places. Memory is reused from record to record.
// One owner, one thread at a time.
// SAFETY: a slot's views point into its own buffer, which is filled before they are made and stays
// unchanged until the slot takes another record.

import CordwoodCore

struct KeptRecords {
    /// One record is kept, however large it is.
    static let bytesMax = 8 << 20

    private let limit: Int
    private let bytesMax: Int
    private var slots: [KeptRecord] = []
    /// The oldest slot once all are in use.
    private var oldest = 0
    private var taken = 0
    /// Without places: how many of the oldest slots have dropped their record.
    private var empty = 0
    private var bytes = 0
    /// Records were dropped for their size. Older ones that are added later are dropped, too.
    private(set) var isCut = false
    /// With places: the place of the last dropped record.
    private var floor: Place?
    /// With places: the place of each slot's record. A heap with the first place on top.
    private var places: [Place] = []
    private var turn: UInt64 = 0

    private struct Place: Comparable {
        var merge: MergePlace
        /// The order in which the records were added.
        var turn: UInt64

        static func < (a: Place, b: Place) -> Bool {
            a.merge == b.merge ? a.turn < b.turn : a.merge < b.merge
        }
    }

    init(limit: Int, bytesMax: Int = KeptRecords.bytesMax) {
        self.limit = limit
        self.bytesMax = bytesMax
    }

    mutating func add(_ record: borrowing RecordRef) {
        if slots.count < limit {
            slots.append(KeptRecord())
            keep(record, slots.count - 1)
        } else {
            keep(record, oldest)
            oldest = oldest + 1 == limit ? 0 : oldest + 1
            empty = max(0, empty - 1)
        }
        while bytes > bytesMax, empty + 1 < slots.count {
            let slot = slots[(oldest + empty) % slots.count]
            bytes -= slot.size
            slot.letGo()
            empty += 1
            isCut = true
        }
    }

    private mutating func keep(_ record: borrowing RecordRef, _ slot: Int) {
        bytes -= slots[slot].size
        slots[slot].keep(record)
        bytes += slots[slot].size
    }

    /// For a read without order; records with the same place are added in their order. Call
    /// `settle` after the last.
    mutating func add(_ record: borrowing RecordRef, at place: MergePlace) {
        let place = Place(merge: place, turn: turn)
        turn &+= 1
        if let floor, place < floor { return }
        if slots.count < limit {
            slots.append(KeptRecord())
            keep(record, slots.count - 1)
            places.append(place)
            rise(slots.count - 1)
        } else if let first = places.first, first < place {
            keep(record, 0)
            places[0] = place
            sink()
        }
        while bytes > bytesMax, slots.count > 1 {
            exchange(0, slots.count - 1)
            bytes -= slots.removeLast().size
            floor = places.removeLast()
            isCut = true
            sink()
        }
    }

    /// Sorts records that were added with places.
    mutating func settle() {
        guard !places.isEmpty else { return }
        slots = places.indices.sorted { places[$0] < places[$1] }.map { slots[$0] }
        places = []
    }

    private mutating func rise(_ index: Int) {
        var child = index
        while child > 0, places[child] < places[(child - 1) / 2] {
            exchange(child, (child - 1) / 2)
            child = (child - 1) / 2
        }
    }

    private mutating func sink() {
        var parent = 0
        while true {
            var child = parent * 2 + 1
            guard child < places.count else { return }
            if child + 1 < places.count, places[child + 1] < places[child] { child += 1 }
            guard places[child] < places[parent] else { return }
            exchange(child, parent)
            parent = child
        }
    }

    private mutating func exchange(_ a: Int, _ b: Int) {
        places.swapAt(a, b)
        slots.swapAt(a, b)
    }

    var isEmpty: Bool { slots.isEmpty }

    /// The number of records held now.
    var count: Int { slots.count - empty }

    /// 0: the newest one. Requires records added in order, or `settle`; valid until any other call.
    func newest(_ index: Int) -> RecordRef {
        slots[(oldest + slots.count - 1 - index) % slots.count].record
    }

    mutating func removeAll() {
        slots = []
        places = []
        (oldest, empty, bytes) = (0, 0, 0)
        isCut = false
        floor = nil
    }

    /// The oldest record not taken yet; valid until any other call. False: all were taken.
    mutating func take(_ record: inout RecordRef) -> Bool {
        if slots.isEmpty { return false }
        guard empty + taken < slots.count else {
            removeAll()
            taken = 0
            return false
        }
        record = slots[(oldest + empty + taken) % slots.count].record
        taken += 1
        return true
    }
}

private final class KeptRecord {
    /// Up to this size, a record's memory is kept for the next one.
    private static let keptMax = 4_096

    private(set) var record = RecordRef()
    private var bytes = GrowingBytes()

    var size: Int { bytes.count }

    func letGo() {
        record = RecordRef()
        bytes.removeAll()
        bytes.clear(keeping: 0)
    }

    func keep(_ other: borrowing RecordRef) {
        bytes.clear(keeping: KeptRecord.keptMax)
        record = copy other
        bytes.append(other.logger)
        bytes.append(other.message)
        bytes.append(other.file)
        bytes.append(other.function)
        bytes.append(other.sections)
        bytes.append(other.context)
        bytes.append(other.format)
        bytes.append(other.argumentTypes)
        bytes.append(other.arguments)
        bytes.append(other.trace)
        if bytes.failed { record.flags.insert(.truncated) }
        var at = 0
        record.logger = own(other.logger, &at)
        record.message = own(other.message, &at)
        record.file = own(other.file, &at)
        record.function = own(other.function, &at)
        record.sections = own(other.sections, &at)
        record.context = own(other.context, &at)
        record.format = own(other.format, &at)
        record.argumentTypes = own(other.argumentTypes, &at)
        record.arguments = own(other.arguments, &at)
        record.trace = own(other.trace, &at)
    }

    /// The copy of the next view; empty if memory ran out.
    @safe private func own(_ view: UnsafeRawBufferPointer, _ at: inout Int)
        -> UnsafeRawBufferPointer
    {
        guard view.count > 0, !bytes.failed else { return Bytes.none }
        defer { at &+= view.count }
        return unsafe Bytes.slice(bytes.bytes, at, view.count) ?? Bytes.none
    }
}
