// One record as every reader sees it, from a live segment, a sealed one or an archive block. The
// bytes belong to the source and stay valid until it moves on; nothing is formatted or copied until
// it is needed. One thread at a time.

import CordwoodCore

/// The process that wrote a record (one lane).
public final class ProcessInfo: Sendable {
    public let laneID: LaneID
    /// Zero if unknown.
    public let bootID: LaneID
    public let processID: UInt32
    public let name: String
    /// UTC ns since 1970 and monotonic ns, read together when the lane was made (FORMAT §4).
    public let createdRealtime: UInt64
    public let createdMonotonic: UInt64
    /// Resource attributes in the order in which they were first set.
    public let resource: [(key: String, value: String)]
    package let origin: ProcessOrigin

    public init(
        laneID: LaneID, bootID: LaneID, processID: UInt32, name: String, createdRealtime: UInt64,
        createdMonotonic: UInt64, resource: [(key: String, value: String)]
    ) {
        self.laneID = laneID
        self.bootID = bootID
        self.processID = processID
        self.name = name
        self.createdRealtime = createdRealtime
        self.createdMonotonic = createdMonotonic
        self.resource = resource
        origin = ProcessOrigin(process: name, resource)
    }
}

/// A thread of that process.
public final class ThreadInfo: Sendable {
    public let process: ProcessInfo
    /// Unique within the lane.
    public let serial: UInt32
    public let threadID: UInt32
    public let name: String

    public init(process: ProcessInfo, serial: UInt32, threadID: UInt32, name: String) {
        self.process = process
        self.serial = serial
        self.threadID = threadID
        self.name = name
    }
}

public struct RecordFlags: OptionSet, Sendable {
    public let rawValue: UInt8
    public init(rawValue: UInt8) { self.rawValue = rawValue }
    /// The numbers are the header's CW_VIEW_….
    public static let truncated = RecordFlags(rawValue: 1)
    public static let unverified = RecordFlags(rawValue: 4)
    public static let late = RecordFlags(rawValue: 8)
}

/// SAFETY: the buffers point into the source's memory and stay valid until its next `advance`.
@safe public struct RecordRef {
    public var thread: ThreadInfo
    /// In ns; orders the records of one boot.
    public var monotonicNs: UInt64 = 0
    /// UTC ns when the record was written (FORMAT §4).
    public var writtenNs: UInt64 = 0
    /// UTC ns to show: the event's own time if it has one, otherwise `writtenNs`.
    public var timeNs: UInt64 = 0
    /// FORMAT §7.
    public var sequence: UInt64 = 0
    /// 1…24; 0 if the record has none.
    public var level: UInt8 = 0
    /// CW_KIND_….
    public var kind: UInt8 = 0
    package static let gapKind: UInt8 = 1
    public var flags: RecordFlags = []
    @safe public var logger = Bytes.none
    @safe public var message = Bytes.none
    /// Size of the message before it was cut, or its size if it was not.
    public var originalLength: UInt64 = 0
    /// The place in the source code; line 0: none.
    @safe public var file = Bytes.none
    @safe public var function = Bytes.none
    public var line: UInt32 = 0
    /// FORMAT §8.1 as stored: fields, trace, time, exception and the like. Empty for plain text.
    @safe public var sections = Bytes.none
    /// FORMAT §8.2; the thread's context at the time of writing. Empty: none.
    @safe public var context = Bytes.none
    /// A record of a site (FORMAT §8.7): its text is made from the four properties below.
    public var isDeferred = false
    /// FORMAT §5, sites.
    public var style: UInt8 = 0
    @safe public var format = Bytes.none
    @safe public var argumentTypes = Bytes.none
    @safe public var arguments = Bytes.none
    /// FORMAT §8.4: the record's own trace, otherwise the thread's. Empty: none.
    @safe public var trace = Bytes.none

    /// For a site in the lane's catalog, its id plus 1: within one process, the same number always
    /// means the same place and format. 0: none.
    public var placeNumber: UInt32 = 0

    /// In a block of an archive: the same number always means the same thread and logger, in every
    /// block. 0: not known.
    var namesNumber: UInt64 = 0
    /// Likewise for the place, the format and its types. 0: not known, or not deferred.
    var formatNumber: UInt64 = 0

    public init(thread: ThreadInfo) { self.thread = thread }

    /// A record of no thread, for `RecordSource.next` to fill.
    public init() { self.init(thread: RecordRef.noThread) }

    /// Digest of a record's content, without its time and its place in a chunk: equal for both
    /// copies of a record that was appended again, live or archived.
    var digest: UInt64 {
        var crc = Checksum.crc(logger)
        crc = Checksum.crc(isDeferred ? format : message, after: crc)
        if isDeferred { crc = Checksum.crc(arguments, after: crc) }
        let length = isDeferred ? arguments.count : message.count
        return UInt64(crc) << 32 | UInt64(level) << 24 | UInt64(length & 0xFF_FFFF)
    }

    /// 16 bytes; empty if the record belongs to no trace.
    @safe package var traceID: UnsafeRawBufferPointer { RecordRef.id(trace, 0, 16) }

    /// 8 bytes; empty if the record belongs to no span.
    @safe package var spanID: UnsafeRawBufferPointer { RecordRef.id(trace, 16, 8) }

    @safe private static func id(
        _ trace: UnsafeRawBufferPointer, _ at: Int, _ count: Int
    ) -> UnsafeRawBufferPointer {
        // A trace with fewer bytes has neither id.
        guard trace.count >= 24, let id = Bytes.slice(trace, at, count),
            unsafe id.contains(where: { $0 != 0 })
        else { return Bytes.none }
        return unsafe id
    }

    private static let noThread = ThreadInfo(
        process: ProcessInfo(
            laneID: .zero, bootID: .zero, processID: 0, name: "", createdRealtime: 0,
            createdMonotonic: 0, resource: []),
        serial: 0, threadID: 0, name: "")

    /// As `init(thread:)`, but without reference counting if the thread is the same.
    mutating func begin(_ thread: ThreadInfo) {
        if self.thread !== thread { self.thread = thread }
        level = 0
        kind = 0
        flags = []
        logger = Bytes.none
        message = Bytes.none
        originalLength = 0
        file = Bytes.none
        function = Bytes.none
        line = 0
        sections = Bytes.none
        isDeferred = false
        style = 0
        format = Bytes.none
        argumentTypes = Bytes.none
        arguments = Bytes.none
        context = Bytes.none
        trace = Bytes.none
        placeNumber = 0
        namesNumber = 0
        formatNumber = 0
    }
}

/// A run of records in the order of FORMAT §4. Conformers: LaneSource, ArchiveSource, and the types
/// that combine them (Merge).
package protocol RecordSource: AnyObject {
    /// Moves to the next record and fills the caller's: layers that only pass a record on do not
    /// move it. False: the end; the content of `record` is then undefined. After a throw, the next
    /// call continues past the damage.
    func next(_ record: inout RecordRef) throws(ReadProblem) -> Bool
    /// Monotonic ns; no record of the source is older. 0: not known.
    var createdMonotonicNs: UInt64 { get }
    var process: ProcessInfo? { get }
    /// The run that continues after the last record, if any.
    func run() -> RecordRun?
}

extension RecordSource {
    package func run() -> RecordRun? { nil }

    /// The next record as a value; nil at the end.
    package func advance() throws(ReadProblem) -> RecordRef? {
        var record = RecordRef()
        return try next(&record) ? record : nil
    }
}
