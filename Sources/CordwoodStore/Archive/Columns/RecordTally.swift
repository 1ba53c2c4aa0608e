// Counts a store's records by logger, process and hour for `stats`. A small cache finds names
// first, so a record costs neither a hash of a name nor an allocation. Holds a limited number of
// names. One thread.
// SAFETY: a logger's bytes are those of the record, and are copied once for each name.

import CordwoodCore
import CordwoodFormats

/// Records by what they have in common, the most frequent first; hours in their own order.
public struct RecordCounts<Key: Sendable>: Sendable {
    public var records: [(key: Key, count: UInt64)] = []
    /// The records of keys beyond the number that is told apart.
    public var others: UInt64 = 0

    public init() {}

    /// The counts of keys that share a part, the most frequent first. Keys without that part ("")
    /// are left out.
    public func by(_ part: (Key) -> String) -> RecordCounts<String> {
        var tally = Tally<String>()
        for (key, count) in records {
            let part = part(key)
            if part.isEmpty { continue }
            tally.add(count, slot: part.utf8.count) {
                $0 == part
            } make: {
                part
            }
        }
        return tally.sum { $0 }
    }
}

/// A program's name, its process id, and its service.name and host.name; "": not set. Ids are
/// reused.
public struct ProcessLabel: Hashable, Sendable {
    public var name: String
    public var id: UInt32
    public var service = ""
    public var host = ""
}

extension ProcessLabel {
    init(_ process: ProcessInfo) {
        self.init(
            name: process.name, id: process.processID, service: process.origin.service,
            host: process.origin.host)
    }
}

/// A value; `BlockTally` counts whole blocks with it.
struct RecordTally {
    static let hourNs: UInt64 = 3_600_000_000_000

    private var loggers = Tally<[UInt8]>()
    private var origins = Tally<ArchiveDigest.Process>()
    /// The process that was counted last.
    private var lastProcess: ProcessInfo?
    private var hours = Tally<UInt64>()

    mutating func count(_ record: borrowing RecordRef) {
        count(1, logger: record.logger)
        count(1, process: record.thread.process)
        count(1, timeNs: record.timeNs)
    }

    @safe mutating func count(_ records: UInt64, logger: UnsafeRawBufferPointer) {
        let last = logger.count > 0 ? Int(Bytes.u8(logger, logger.count &- 1)) : 0
        loggers.add(records, slot: logger.count &+ last &* 31) {
            unsafe $0.count == logger.count && logger.elementsEqual($0)
        } make: {
            unsafe Array(logger)
        }
    }

    /// A process may change its attributes; an archive has those of its time.
    mutating func count(_ records: UInt64, process: ProcessInfo) {
        if process === lastProcess { return origins.addAgain(records) }
        count(
            records, ArchiveDigest.Process(lane: process.laneID, label: ProcessLabel(process)))
        lastProcess = process
    }

    mutating func count(_ records: UInt64, _ origin: ArchiveDigest.Process) {
        lastProcess = nil
        origins.add(records, slot: Int(truncatingIfNeeded: origin.lane.low)) {
            $0 == origin
        } make: {
            origin
        }
    }

    /// - Parameter timeNs: UTC.
    mutating func count(_ records: UInt64, timeNs: UInt64) {
        let hour = timeNs / RecordTally.hourNs
        hours.add(records, slot: Int(truncatingIfNeeded: hour)) {
            $0 == hour
        } make: {
            hour
        }
    }

    /// Names with bytes that are not UTF-8 may coincide.
    var byLogger: RecordCounts<String> { loggers.sum { String(decoding: $0, as: UTF8.self) } }

    var byProcess: RecordCounts<ProcessLabel> { origins.sum(\.label) }

    /// By the start of the hour, UTC ns.
    var byHour: RecordCounts<UInt64> {
        var found = hours.sum { $0 &* RecordTally.hourNs }
        found.records.sort { $0.key < $1.key }
        return found
    }
}

/// Counts by key; tells a limited number of keys apart.
package struct Tally<Key: Hashable & Sendable> {
    private static var keysMax: Int { 65_536 }
    private static var slots: Int { 256 }

    private var keys: [Key] = []
    private var counts: [UInt64] = []
    private var places: [Key: Int] = [:]
    /// Places of recently seen keys, by slot; -1: none.
    private var cache = [Int](repeating: -1, count: slots)
    private var others: UInt64 = 0
    /// Of the key added last; -1: one of the others.
    private var last = -1

    package init() {}

    /// - Parameter slot: any number that different keys seldom share.
    @inline(__always)
    package mutating func add(
        _ records: UInt64, slot: Int, isKey: (Key) -> Bool, make: () -> Key
    ) {
        let slot = slot & (Tally.slots - 1)
        let cached = cache[slot]
        if cached >= 0, isKey(keys[cached]) {
            counts[cached] &+= records
            last = cached
        } else {
            addSlowly(records, slot, make())
        }
    }

    /// More records of the key added last.
    mutating func addAgain(_ records: UInt64) {
        if last >= 0 { counts[last] &+= records } else { others &+= records }
    }

    private mutating func addSlowly(_ records: UInt64, _ slot: Int, _ key: Key) {
        if let place = places[key] {
            cache[slot] = place
            counts[place] &+= records
            last = place
            return
        }
        guard keys.count < Tally.keysMax else {
            others &+= records
            last = -1
            return
        }
        last = keys.count
        cache[slot] = last
        places[key] = last
        keys.append(key)
        counts.append(records)
    }

    /// The most frequent first; equal counts always in the same order.
    package func sum<Name: Hashable>(_ name: (Key) -> Name) -> RecordCounts<Name> {
        var result = RecordCounts<Name>()
        var places: [Name: Int] = [:]
        for (key, count) in zip(keys, counts) {
            let name = name(key)
            if let place = places[name] {
                result.records[place].count &+= count
            } else {
                places[name] = result.records.count
                result.records.append((name, count))
            }
        }
        let sorted = result.records.enumerated().sorted {
            ($1.element.count, $0.offset) < ($0.element.count, $1.offset)
        }
        result.records = sorted.map(\.element)
        result.others = others
        return result
    }
}
