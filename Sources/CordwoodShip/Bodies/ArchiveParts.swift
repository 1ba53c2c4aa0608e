// Makes the bodies of one archive for one target, part after part: opens its records once, skips
// the records that the target does not want, asks the encoder for entries, and ends a body before
// the entry that would exceed a limit. One gzip member or one zstd frame per body, because servers
// refuse more (UPLOADS). Memory: one block of the archive, the encoder's entries (at most a body's
// limit), and the coder. Owned by one attempt on one thread.

import CShims
import CordwoodCore
import CordwoodFormats
import CordwoodStore

/// One body and its contents.
struct Part: ~Copyable {
    let body: Body
    let range: PartRange
    /// This part ends the archive.
    let isLast: Bool
    let entries: UInt32
    /// The records' ordinals, in the body's order; empty only without entries.
    let ordinals: [Range<UInt64>]
    /// Their ids in the same order, if answers name them (`RecordEncoder.isAnsweredByID`).
    let recordIDs: [RecordID]
    /// An upper bound of the size before compression.
    let rawBytes: UInt64
    /// Records of the range that would not fit this target's limits even with an empty message, by
    /// ordinal.
    let oversized: [UInt64]
}

struct ArchiveParts: ~Copyable {
    enum Next: ~Copyable {
        case part(Part)
        /// The target wants none of the records before `upTo` that would fit.
        case nothing(upTo: UInt64, isLast: Bool, oversized: [UInt64])
        case stopped
    }

    /// The number of damaged places skipped in one archive before it counts as unreadable.
    static let problemsMax = 10_000

    private let paths: StorePaths
    private let stem: String
    private let filter: TargetFilter
    private let limits: BodyLimits
    private let identities: [AgeIdentity]
    private let hashes: Bool
    private var encoder: any RecordEncoder
    private let again: MakeEncoder?
    private var source: ArchiveSource?
    /// Read but not taken yet; its ordinal is `nextOrdinal`.
    private var current: RecordRef?
    private var nextOrdinal: UInt64 = 0
    private var problems = 0
    /// The damage skipped so far, in words; nil: none.
    private(set) var damage: String?
    private var times = DistinctTimes()
    private var isAtEnd = false

    typealias MakeEncoder = () throws(UploadError) -> (any RecordEncoder)?

    /// - Parameters:
    ///   - again: encodes a large body once more, when it is sent; nil: it is kept in memory.
    ///   - hashes: somebody needs the digest of a body.
    init(
        paths: StorePaths, stem: String, filter: TargetFilter, limits: BodyLimits,
        encoder: any RecordEncoder, identities: [AgeIdentity] = [], hashes: Bool = false,
        again: MakeEncoder? = nil
    ) {
        self.paths = paths
        self.stem = stem
        self.filter = filter
        self.limits = limits
        self.encoder = encoder
        self.identities = identities
        self.hashes = hashes
        self.again = again
    }

    /// Which records a body has.
    fileprivate struct Ask {
        var first: UInt64
        var end: UInt64?
        var only: Set<UInt64>?
        var wanted: PairRefusals
        var encoding: BodyEncoding
        var bytesMax: UInt64
    }

    /// The body of the records from `first` on.
    /// - Parameters:
    ///   - end: the body ends before this record at the latest; the range of an earlier attempt.
    ///   - only: restricts the range to these records; nil: all.
    ///   - wanted: the records of the archive to send at all.
    ///   - bytesMax: a server's own limit, learnt from a 413. A body of several entries stays below
    ///     it; a single entry may exceed it. 0: no limit.
    ///   - shouldStop: asked now and then.
    mutating func next(
        from first: UInt64, end: UInt64?, only: Set<UInt64>? = nil, wanted: PairRefusals = .none,
        encoding: BodyEncoding, bytesMax: UInt64 = 0, shouldStop: () -> Bool
    ) throws(UploadError) -> Next {
        guard try seek(first, shouldStop) else { return .stopped }
        let ask = Ask(
            first: first, end: end, only: only, wanted: wanted, encoding: encoding,
            bytesMax: bytesMax)
        var making = try begin(ask)
        var sum = BodySum(hashes, keepsAll: again == nil)
        var piece: [UInt8] = []
        func take() {
            making.sink.take(&piece)
            sum.add(piece)
            piece.removeAll(keepingCapacity: true)
        }
        while try fill(&making, ask) {
            take()
            if shouldStop() { return .stopped }
        }
        // This part also covers records after the last entry that the filter skips.
        while only == nil, let record = try peek(), end.map({ nextOrdinal < $0 }) ?? true,
            !filter.matches(record) || !wanted.wants(nextOrdinal)
        {
            skip()
        }
        let isLast = try peek() == nil
        guard making.filled.entries > 0 else {
            return .nothing(
                upTo: nextOrdinal, isLast: isLast, oversized: making.filled.oversized)
        }
        try finish(&making)
        take()
        // While a large body is made again, its archive is open once.
        if isLast { source = nil }
        let filled = making.filled
        return .part(
            Part(
                body: Body(
                    BodyStream.make(sum, start(ask, upTo: nextOrdinal)),
                    contentBytes: making.sink.contentBytes, encoding: encoding),
                range: PartRange(first: first, end: nextOrdinal), isLast: isLast,
                entries: filled.entries, ordinals: filled.ordinals, recordIDs: filled.recordIDs,
                rawBytes: filled.bytes + UInt64(encoder.frameBytes), oversized: filled.oversized))
    }

    // ── One body ──

    /// A body in the making.
    fileprivate struct Making: ~Copyable {
        var filled = Filled()
        var sink: CompressingSink
    }

    /// `seek` was called for its first record.
    private mutating func begin(_ ask: Ask) throws(UploadError) -> Making {
        var making = Making(
            sink: try CompressingSink(path: "\(paths.archive(stem))", encoding: ask.encoding))
        encoder.begin(&making.filled.out)
        return making
    }

    /// Encodes the next records. False: the body has all that belong into it.
    private mutating func fill(_ making: inout Making, _ ask: Ask) throws(UploadError) -> Bool {
        while let record = try peek(), ask.end.map({ nextOrdinal < $0 }) ?? true {
            if filter.matches(record), ask.wanted.wants(nextOrdinal),
                ask.only.map({ $0.contains(nextOrdinal) }) ?? true
            {
                guard let entry = makeEntry(record) else {
                    making.filled.oversized.append(nextOrdinal)
                    skip()
                    continue
                }
                // The form has no representation for this kind of record.
                if entry.isEmpty {
                    skip()
                    continue
                }
                let cost = UInt64(encoder.cost(entry, record))
                if !making.filled.hasRoom(
                    cost, limits, ask.bytesMax, frameBytes: encoder.frameBytes)
                {
                    return false
                }
                encoder.take(entry, record, &making.filled.out)
                making.filled.note(nextOrdinal)
                if encoder.isAnsweredByID { making.filled.recordIDs.append(record.id) }
                making.filled.bytes += cost
            }
            skip()
            if making.filled.out.count >= CompressingSink.chunkBytes {
                try making.sink.append(making.filled.out[...])
                making.filled.out.removeAll(keepingCapacity: true)
                return true
            }
        }
        return false
    }

    private mutating func finish(_ making: inout Making) throws(UploadError) {
        encoder.end(&making.filled.out)
        try making.sink.append(making.filled.out[...])
        try making.sink.finish()
    }

    /// Makes the same body once more; nil: it is kept.
    private func start(_ ask: Ask, upTo end: UInt64) -> BodyStream.Start? {
        guard let again else { return nil }
        var ask = ask
        ask.end = end
        let (paths, stem, filter, limits) = (self.paths, self.stem, self.filter, self.limits)
        let identities = self.identities
        return { [ask] () throws(UploadError) in
            guard let encoder = try again() else {
                throw UploadError.damaged("\(paths.archive(stem)): no encoder")
            }
            return try PartMaker(
                ArchiveParts(
                    paths: paths, stem: stem, filter: filter, limits: limits, encoder: encoder,
                    identities: identities), ask)
        }
    }

    /// Makes a body that has been made before.
    private final class PartMaker: BodyMaker {
        private var parts: ArchiveParts
        private var making: Making
        private let ask: Ask
        private var isOver = false

        init(_ parts: consuming ArchiveParts, _ ask: Ask) throws(UploadError) {
            var parts = parts
            _ = try parts.seek(ask.first) { false }
            making = try parts.begin(ask)
            self.parts = parts
            self.ask = ask
        }

        func more(_ out: inout [UInt8]) throws(UploadError) -> Bool {
            if isOver { return false }
            if try !parts.fill(&making, ask) {
                try parts.finish(&making)
                isOver = true
            }
            making.sink.take(&out)
            return true
        }
    }

    /// The contents of a body so far.
    fileprivate struct Filled {
        var out: [UInt8] = []
        var entries: UInt32 = 0
        var ordinals: [Range<UInt64>] = []
        var recordIDs: [RecordID] = []
        var bytes: UInt64 = 0
        var oversized: [UInt64] = []

        mutating func note(_ ordinal: UInt64) {
            entries += 1
            if let last = ordinals.last, last.upperBound == ordinal {
                ordinals[ordinals.count - 1] = last.lowerBound..<(ordinal + 1)
            } else {
                ordinals.append(ordinal..<(ordinal + 1))
            }
        }

        func hasRoom(
            _ cost: UInt64, _ limits: BodyLimits, _ bytesMax: UInt64, frameBytes: Int
        ) -> Bool {
            guard entries > 0 else { return true }
            if limits.entries > 0, entries >= limits.entries { return false }
            let all = bytes + cost + UInt64(frameBytes)
            return (limits.bytes == 0 || all <= limits.bytes) && (bytesMax == 0 || all <= bytesMax)
        }
    }

    // ── Entries ──

    /// The entry with as much of the message as fits; nil: it does not fit even without the
    /// message.
    private func makeEntry(_ record: RecordRef) -> [UInt8]? {
        var entryMax = Int(limits.entryBytes == 0 ? .max : limits.entryBytes)
        if limits.bytes > 0 {
            entryMax = min(entryMax, max(0, Int(clamping: limits.bytes) - encoder.frameBytes))
        }
        var entry: [UInt8] = []
        var messageMax = Int.max
        while true {
            entry.removeAll(keepingCapacity: true)
            encoder.makeEntry(
                record, distinctNs: times.given, messageBytesMax: messageMax, &entry)
            if entry.count <= entryMax { return entry }
            if messageMax == 0 { return nil }
            // Cuts the excess from the message; an escaped byte takes more than one.
            let used = min(messageMax, record.message.count)
            let over = entry.count - entryMax
            messageMax = over < used / 2 ? used - over - ArchiveParts.markBytesMax : used / 2
            messageMax = max(0, messageMax < ArchiveParts.markBytesMax ? 0 : messageMax)
        }
    }

    private static let markBytesMax = 64

    // ── Records ──

    /// Makes `first` the next record. False: stopped on request.
    private mutating func seek(
        _ first: UInt64, _ shouldStop: () -> Bool
    ) throws(UploadError) -> Bool {
        if first < nextOrdinal {
            source = nil
            current = nil
            nextOrdinal = 0
            problems = 0
            times = DistinctTimes()
            isAtEnd = false
        }
        while nextOrdinal < first, try peek() != nil {
            skip()
            if nextOrdinal & 0xFFFF == 0, shouldStop() { return false }
        }
        return true
    }

    private mutating func skip() {
        current = nil
        nextOrdinal += 1
    }

    /// The next record, without advancing; nil at the end.
    private mutating func peek() throws(UploadError) -> RecordRef? {
        if let current { return current }
        if isAtEnd { return nil }
        let path = paths.archive(stem)
        while true {
            do throws(ReadProblem) {
                let opened =
                    if let source { source } else {
                        try ArchiveSource.open(path: path, identities: identities)
                    }
                source = opened
                current = try opened.advance()
                if let current { times.note(current.timeNs) } else { isAtEnd = true }
                return current
            } catch {
                try note(error, path)
            }
        }
    }

    /// Skips damage up to a limit; beyond it, the archive is no longer read.
    private mutating func note(_ problem: ReadProblem, _ path: FilePath) throws(UploadError) {
        switch problem {
        case .damaged(let text):
            problems += 1
            damage = damage ?? ArchiveParts.told(text, of: path)
            // An archive that cannot even be opened will not become readable by trying again.
            guard source != nil, problems < ArchiveParts.problemsMax else {
                throw .damaged(ArchiveParts.told(text, of: path))
            }
        case .version(let text): throw .version(ArchiveParts.told(text, of: path))
        case .system(let text, let code):
            let end = " \(path)"
            let call = text.hasSuffix(end) ? text.dropLast(end.count) : text[...]
            throw .system(call: String(call), path: "\(path)", errno: code)
        case .locked(let text): throw .locked(text)
        }
    }

    /// Adds the path unless the problem already names it.
    private static func told(_ text: String, of path: FilePath) -> String {
        text.holds("\(path)") ? text : "\(path): \(text)"
    }
}

/// The times of an archive's records, from its first one on, so that a record's time does not
/// depend on where a part begins.
private struct DistinctTimes {
    private var last: UInt64?
    private(set) var given: UInt64 = 0

    mutating func note(_ time: UInt64) {
        let isTaken = last.map { time >= $0 && time <= given } ?? false
        given = isTaken ? given &+ 1 : time
        last = time
    }
}

enum ArchiveCopy {
    /// Compresses the archive's own bytes while they are sent; nil: stopped.
    static func body(
        _ archive: borrowing ArchiveLock, _ paths: StorePaths, encoding: BodyEncoding,
        shouldStop: () -> Bool
    ) throws(UploadError) -> Body? {
        let (descriptor, bytes) = (archive.descriptor, archive.bytes)
        let path = "\(paths.archive(archive.stem))"
        let start: BodyStream.Start = { () throws(UploadError) in
            try CopyMaker(descriptor, bytes, path, encoding)
        }
        let maker: any BodyMaker = try start()
        guard
            let stream = try BodyStream.measure(
                maker, hashes: true, shouldStop: shouldStop, start: start)
        else { return nil }
        return Body(stream, contentBytes: bytes, encoding: encoding)
    }

    /// The archive's lock keeps the descriptor.
    private final class CopyMaker: BodyMaker {
        private let descriptor: Int32
        private let bytes: UInt64
        private let path: String
        private var sink: CompressingSink
        private var buffer = [UInt8](repeating: 0, count: CompressingSink.chunkBytes)
        private var offset: UInt64 = 0
        private var isOver = false

        init(
            _ descriptor: Int32, _ bytes: UInt64, _ path: String, _ encoding: BodyEncoding
        ) throws(UploadError) {
            self.descriptor = descriptor
            self.bytes = bytes
            self.path = path
            sink = try CompressingSink(path: path, encoding: encoding)
        }

        func more(_ out: inout [UInt8]) throws(UploadError) -> Bool {
            if isOver { return false }
            if offset < bytes {
                let got = Files.readOnce(descriptor, into: &buffer, buffer.count, at: offset)
                guard got > 0 else {
                    throw UploadError.system(
                        call: "pread", path: path, errno: got < 0 ? Errno.last : Errno.EIO)
                }
                try sink.append(buffer[..<min(got, Int(bytes - offset))])
                offset += UInt64(got)
            } else {
                try sink.finish()
                isOver = true
            }
            sink.take(&out)
            return true
        }
    }
}
