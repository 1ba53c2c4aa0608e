// Streams 0 to 4 of an inflated block (FORMAT §11.4): what the per-record streams point into.
// Counts are checked against the limits and against the bytes that are there before anything is
// allocated.

import CordwoodCore

struct BlockDictionaries {
    struct Site {
        var line: UInt32
        var file: UnsafeRawBufferPointer
        var function: UnsafeRawBufferPointer
    }
    struct Context {
        var fields: UnsafeRawBufferPointer
        /// Empty: none.
        var trace: UnsafeRawBufferPointer
    }

    var processes: [ProcessInfo] = []
    var threads: [ThreadInfo] = []
    var loggers: [UnsafeRawBufferPointer] = []
    var sites: [Site] = []
    var contexts: [Context] = []

    /// Nil where a stream does not parse. The pointers hold as long as the block does.
    init?(_ streams: [UnsafeRawBufferPointer]) {
        guard readProcesses(streams[0]), readThreads(streams[1]), readLoggers(streams[2]),
            readSites(streams[3]), readContexts(streams[4])
        else { return nil }
    }

    /// `least` bytes are needed for one entry.
    private func count(_ cursor: inout ByteCursor, least: Int, max: Int) -> Int? {
        guard let count = cursor.varint(), count <= UInt64(max),
            Int(count) * least <= cursor.left
        else { return nil }
        return Int(count)
    }

    private mutating func readProcesses(_ stream: UnsafeRawBufferPointer) -> Bool {
        var cursor = ByteCursor(stream)
        guard let count = count(&cursor, least: 37, max: ArchiveLimits.processesMax) else {
            return false
        }
        var attributes = 0
        for _ in 0..<count {
            guard let lane = cursor.id(), let boot = cursor.id(),
                let processID = cursor.varint(), processID <= UInt64(UInt32.max),
                let realtime = cursor.varint(), let monotonic = cursor.varint(),
                let name = cursor.text(),
                let resources = self.count(&cursor, least: 2, max: ArchiveLimits.dictionaryMax)
            else { return false }
            attributes += resources
            guard attributes <= ArchiveLimits.dictionaryMax else { return false }
            var resource: [(key: String, value: String)] = []
            resource.reserveCapacity(resources)
            for _ in 0..<resources {
                guard let key = cursor.text(), let value = cursor.text() else { return false }
                resource.append((key: key, value: value))
            }
            processes.append(
                ProcessInfo(
                    laneID: lane, bootID: boot, processID: UInt32(processID), name: name,
                    createdRealtime: realtime, createdMonotonic: monotonic, resource: resource))
        }
        return true
    }

    private mutating func readThreads(_ stream: UnsafeRawBufferPointer) -> Bool {
        var cursor = ByteCursor(stream)
        guard let count = count(&cursor, least: 4, max: ArchiveLimits.dictionaryMax) else {
            return false
        }
        threads.reserveCapacity(count)
        for _ in 0..<count {
            guard let process = cursor.varint(), process < UInt64(processes.count),
                let serial = cursor.varint(), serial <= UInt64(UInt32.max),
                let threadID = cursor.varint(), threadID <= UInt64(UInt32.max),
                let name = cursor.text()
            else { return false }
            threads.append(
                ThreadInfo(
                    process: processes[Int(process)], serial: UInt32(serial),
                    threadID: UInt32(threadID), name: name))
        }
        return true
    }

    private mutating func readLoggers(_ stream: UnsafeRawBufferPointer) -> Bool {
        var cursor = ByteCursor(stream)
        guard let count = count(&cursor, least: 1, max: ArchiveLimits.dictionaryMax) else {
            return false
        }
        loggers.reserveCapacity(count)
        for _ in 0..<count {
            guard let name = cursor.string() else { return false }
            loggers.append(name)
        }
        return true
    }

    private mutating func readSites(_ stream: UnsafeRawBufferPointer) -> Bool {
        var cursor = ByteCursor(stream)
        guard let count = count(&cursor, least: 3, max: ArchiveLimits.dictionaryMax) else {
            return false
        }
        sites.reserveCapacity(count)
        for _ in 0..<count {
            guard let line = cursor.varint(), line <= UInt64(UInt32.max),
                let file = cursor.string(), let function = cursor.string()
            else { return false }
            sites.append(Site(line: UInt32(line), file: file, function: function))
        }
        return true
    }

    private mutating func readContexts(_ stream: UnsafeRawBufferPointer) -> Bool {
        var cursor = ByteCursor(stream)
        let least = 1 + TraceLayout.bytes
        guard let count = count(&cursor, least: least, max: ArchiveLimits.dictionaryMax) else {
            return false
        }
        contexts.reserveCapacity(count)
        for _ in 0..<count {
            guard let fields = cursor.string(), let trace = cursor.bytes(UInt64(TraceLayout.bytes))
            else { return false }
            contexts.append(Context(fields: fields, trace: Self.meant(trace)))
        }
        return true
    }

    /// A trace of zeros means none.
    static func meant(_ trace: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
        for byte in trace where byte != 0 { return trace }
        return UnsafeRawBufferPointer(start: nil, count: 0)
    }
}
