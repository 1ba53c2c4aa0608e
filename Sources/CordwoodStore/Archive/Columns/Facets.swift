// Counts records by what they have in common. Threads are counted by their objects, usually with
// one comparison per record, and named later. A value; one thread.
// SAFETY: a view is compared, or copied once for each name.

import CShims
import CordwoodCore

package struct Facets {
    /// Threads counted by their objects before they are named.
    private static let threadsMax = 4_096
    private static let slots = 64

    struct Place: Hashable, Sendable {
        var file: [UInt8]
        var line: UInt32
    }

    private struct Seen {
        var thread: ThreadInfo?
        var count: UInt64 = 0
    }

    private var levels = [UInt64](repeating: 0, count: 25)
    private var loggers = Tally<[UInt8]>()
    private var places = Tally<Place>()
    private var processes = Tally<String>()
    private var services = Tally<String>()
    private var hosts = Tally<String>()
    private var threads = Tally<String>()
    /// By a hash of their objects, which are retained: no other object takes the place of a counted
    /// one.
    private var seen = [Seen](repeating: Seen(), count: slots)
    private var objects: [ObjectIdentifier: Seen] = [:]

    package init() {}

    package mutating func add(_ record: borrowing RecordRef) {
        levels[Int(min(record.level, 24))] &+= 1
        add(1, logger: record.logger)
        let slot = Facets.slot(of: record.thread)
        if seen[slot].thread !== record.thread { change(slot, to: record.thread) }
        seen[slot].count &+= 1
        add(1, file: record.file, line: record.line)
    }

    mutating func add(_ counts: [UInt64]) {
        for (level, count) in counts.enumerated() { levels[level] &+= count }
    }

    @safe mutating func add(_ count: UInt64, logger: UnsafeRawBufferPointer) {
        let end = logger.count > 0 ? Int(Bytes.u8(logger, logger.count &- 1)) : 0
        loggers.add(count, slot: logger.count &+ end &* 31) {
            Facets.isSame($0, logger)
        } make: {
            unsafe Array(logger)
        }
    }

    @safe mutating func add(_ count: UInt64, file: UnsafeRawBufferPointer, line: UInt32) {
        places.add(count, slot: file.count &+ Int(line) &* 7) {
            $0.line == line && Facets.isSame($0.file, file)
        } make: {
            unsafe Place(file: Array(file), line: line)
        }
    }

    mutating func add(_ count: UInt64, _ thread: ThreadInfo) {
        let process = thread.process
        Facets.add(count, thread.name, &threads)
        Facets.add(count, process.name, &processes)
        Facets.add(count, process.origin.service, &services)
        Facets.add(count, process.origin.host, &hosts)
    }

    @safe @inline(__always)
    private static func isSame(_ key: [UInt8], _ bytes: UnsafeRawBufferPointer) -> Bool {
        guard key.count == bytes.count else { return false }
        guard let start = bytes.baseAddress else { return true }
        return unsafe key.withUnsafeBytes {
            unsafe $0.count == 0 || memcmp($0.baseAddress!, start, $0.count) == 0
        }
    }

    private static func slot(of thread: ThreadInfo) -> Int {
        let address = UInt64(UInt(bitPattern: ObjectIdentifier(thread)))
        return Int((address &* 0x9e37_79b9_7f4a_7c15) &>> 58)
    }

    private mutating func change(_ slot: Int, to thread: ThreadInfo) {
        let old = seen[slot]
        seen[slot] = Seen(thread: thread)
        guard let last = old.thread else { return }
        let id = ObjectIdentifier(last)
        let count = old.count &+ (objects[id]?.count ?? 0)
        objects[id] = Seen(thread: last, count: count)
        if objects.count >= Facets.threadsMax { name() }
    }

    private mutating func name() {
        for found in objects.values {
            if let thread = found.thread { add(found.count, thread) }
        }
        objects = [:]
    }

    private static func add(_ count: UInt64, _ name: String, _ tally: inout Tally<String>) {
        tally.add(count, slot: name.utf8.count) {
            $0 == name
        } make: {
            name
        }
    }

    /// Each key with the counts of its values, the most frequent first.
    package mutating func counts() -> [(key: StaticString, counts: RecordCounts<String>)] {
        for slot in seen.indices {
            if let thread = seen[slot].thread { add(seen[slot].count, thread) }
            seen[slot] = Seen()
        }
        name()
        var byLevel = Tally<String>()
        for (level, count) in levels.enumerated() where count > 0 {
            Facets.add(count, levelName(UInt8(level)), &byLevel)
        }
        let place = places.sum { place in
            place.file.isEmpty ? "" : "\(String(decoding: place.file, as: UTF8.self)):\(place.line)"
        }
        return [
            ("level", byLevel.sum { $0 }),
            ("logger", loggers.sum { String(decoding: $0, as: UTF8.self) }),
            ("process", processes.sum { $0 }),
            ("service", services.sum { $0 }),
            ("host", hosts.sum { $0 }),
            ("thread", threads.sum { $0 }),
            ("place", place),
        ]
    }
}
