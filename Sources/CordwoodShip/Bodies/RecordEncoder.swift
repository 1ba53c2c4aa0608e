// How records become the content of a body, as one kind of server wants it: NDJSON, SAP lines,
// OTLP and the like, a conformer each. An encoder makes one body at a time and holds what it has
// not given out yet; ArchiveParts asks it for entries, counts them against the limits and decides
// where a body ends. The same records give the same bytes on every attempt and every machine: no
// clock, no locale, no randomness. One thread at a time.

import CordwoodFormats
import CordwoodStore

/// What one request may hold; 0: no limit.
struct BodyLimits: Equatable, Sendable {
    /// Before compression.
    var bytes: UInt64 = 0
    var entries: UInt32 = 0
    /// Of one entry, without what stands between entries.
    var entryBytes: UInt32 = 0
}

/// Where a record stands: the same for a record for ever, so a server may tell it by this.
struct RecordPlace {
    /// The archive's id, `8-4-4-4-12` lowercase hex digits.
    var archiveID: String
    /// Of the archive's records, in the order in which they are read, from 0.
    var ordinal: UInt64
    /// The record's time, or a nanosecond more than the record before it was given, where that has
    /// the same: for servers to whom same time and text mean the same record.
    var distinctNs: UInt64 = 0
}

protocol RecordEncoder {
    /// Bytes that `begin` and `end` add together, beyond what `cost` says of the entries: at most.
    var frameBytes: Int { get }

    /// The body begins.
    mutating func begin(_ out: inout [UInt8])

    /// Appends one record to `out`, which is empty, as an entry. No more than `messageBytesMax`
    /// bytes of its message are used; one that is cut says so (`Cut`). Nothing: the form does not
    /// have this kind of record.
    func makeEntry(
        _ record: RecordRef, _ place: RecordPlace, messageBytesMax: Int, _ out: inout [UInt8])

    /// Bytes that the body grows by when this entry is taken: at most.
    func cost(_ entry: [UInt8], _ record: RecordRef) -> Int

    /// Takes an entry of this record into the body: appends to `out`, or keeps it until `end`.
    mutating func take(_ entry: [UInt8], _ record: RecordRef, _ out: inout [UInt8])

    /// The body ends; the next `begin` starts afresh.
    mutating func end(_ out: inout [UInt8])
}

/// Lines: one a record, nothing around them.
struct LineEncoder: RecordEncoder {
    let render: RenderLine

    var frameBytes: Int { 0 }
    func begin(_ out: inout [UInt8]) {}

    func makeEntry(
        _ record: RecordRef, _ place: RecordPlace, messageBytesMax: Int, _ out: inout [UInt8]
    ) {
        render(Cut.message(of: record, to: messageBytesMax), &out)
    }

    func cost(_ entry: [UInt8], _ record: RecordRef) -> Int { entry.count }
    func take(_ entry: [UInt8], _ record: RecordRef, _ out: inout [UInt8]) { out += entry }
    func end(_ out: inout [UInt8]) {}
}

enum Cut {
    /// The record with at most so many bytes of its message, cut between characters and marked as
    /// the engine marks those it cut itself.
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

    /// What stands behind a message that was cut, where the form has no other place for it.
    static func mark(of record: borrowing RecordRef) -> String {
        record.flags.contains(.truncated) ? "… (\(record.originalLength) bytes)" : ""
    }
}
