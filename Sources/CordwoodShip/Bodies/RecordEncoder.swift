// Turns records into the content of a body in the form that one kind of server wants: NDJSON, SAP
// lines, OTLP and the like, each with a conformer. An encoder makes one body at a time and holds
// its pending output. ArchiveParts asks it for entries, counts them against the limits and decides
// where a body ends. The same records give the same bytes on every attempt and every machine: no
// clock, no locale, no randomness. One thread at a time.

import CordwoodFormats
import CordwoodStore

/// The limits of one request; 0: no limit.
struct BodyLimits: Equatable, Sendable {
    /// Before compression.
    var bytes: UInt64 = 0
    var entries: UInt32 = 0
    /// The size of one entry, without separators.
    var entryBytes: UInt32 = 0
}

protocol RecordEncoder {
    /// Answers name records by the ids in the body: the part keeps them (`Part.recordIDs`).
    var isAnsweredByID: Bool { get }

    /// An upper bound of the bytes that `begin` and `end` add, beyond the entries' `cost`.
    var frameBytes: Int { get }

    /// Begins the body.
    mutating func begin(_ out: inout [UInt8])

    /// Appends one record to `out`, which is empty, as an entry. Uses at most `messageBytesMax`
    /// bytes of its message and marks a cut message (`Cut`). Appends nothing if the form has no
    /// such kind of record.
    /// - Parameter distinctNs: the record's time. If the previous record was given the same time,
    ///   one nanosecond more than that, for servers that merge records of the same time and text.
    func makeEntry(
        _ record: RecordRef, distinctNs: UInt64, messageBytesMax: Int, _ out: inout [UInt8])

    /// An upper bound of the bytes by which this entry enlarges the body.
    func cost(_ entry: [UInt8], _ record: RecordRef) -> Int

    /// Takes this record's entry into the body: appends it to `out`, or keeps it until `end`.
    mutating func take(_ entry: [UInt8], _ record: RecordRef, _ out: inout [UInt8])

    /// Ends the body; the next `begin` starts afresh.
    mutating func end(_ out: inout [UInt8])
}

extension RecordEncoder {
    var isAnsweredByID: Bool { false }
}

enum Cut {
    /// The record with at most that many bytes of its message, cut between characters and marked as
    /// the engine marks messages it cut itself.
    static func message(of record: RecordRef, to bytesMax: Int) -> RecordRef {
        guard record.message.count > bytesMax else { return record }
        var cut = record
        cut.flags.insert(.truncated)
        cut.originalLength = max(record.originalLength, UInt64(record.message.count))
        // SAFETY: a shorter view of the same bytes.
        cut.message = unsafe UnsafeRawBufferPointer(
            rebasing: record.message[..<UTF8Scan.end(of: record.message, at: bytesMax)])
        return cut
    }

    /// The mark after a message that was cut, for forms without another place for it.
    static func mark(of record: borrowing RecordRef) -> String {
        record.flags.contains(.truncated) ? "… (\(record.originalLength) bytes)" : ""
    }
}
