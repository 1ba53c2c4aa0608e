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
    private let room: BodyRoom
    private var encoder: any RecordEncoder
    private var source: ArchiveSource?
    /// Read but not taken yet; its ordinal is `nextOrdinal`.
    private var current: RecordRef?
    private var nextOrdinal: UInt64 = 0
    private var problems = 0
    /// The damage skipped so far, in words; nil: none.
    private(set) var damage: String?
    private var times = DistinctTimes()
    private var isAtEnd = false

    init(
        paths: StorePaths, stem: String, filter: TargetFilter, limits: BodyLimits,
        encoder: any RecordEncoder, identities: [AgeIdentity] = [], room: BodyRoom = .queue
    ) {
        self.paths = paths
        self.stem = stem
        self.filter = filter
        self.limits = limits
        self.encoder = encoder
        self.identities = identities
        self.room = room
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
        let descriptor = try TemporaryBody.open(paths, stem, room)
        var isTaken = false
        defer { if !isTaken { Files.close(descriptor) } }
        var sink = try CompressingSink(
            descriptor: descriptor, path: "\(paths.queue)", encoding: encoding)
        var filled = Filled()
        encoder.begin(&filled.out)
        while let record = try peek(), end.map({ nextOrdinal < $0 }) ?? true {
            if filter.matches(record), wanted.wants(nextOrdinal),
                only.map({ $0.contains(nextOrdinal) }) ?? true
            {
                guard let entry = makeEntry(record) else {
                    filled.oversized.append(nextOrdinal)
                    skip()
                    continue
                }
                // The form has no representation for this kind of record.
                if entry.isEmpty {
                    skip()
                    continue
                }
                let cost = UInt64(encoder.cost(entry, record))
                if !filled.hasRoom(cost, limits, bytesMax, frameBytes: encoder.frameBytes) {
                    break
                }
                encoder.take(entry, record, &filled.out)
                filled.note(nextOrdinal)
                if encoder.isAnsweredByID { filled.recordIDs.append(record.id) }
                filled.bytes += cost
            }
            skip()
            if filled.out.count >= CompressingSink.chunkBytes {
                if shouldStop() { return .stopped }
                try sink.append(filled.out[...])
                filled.out.removeAll(keepingCapacity: true)
            }
        }
        // This part also covers records after the last entry that the filter skips.
        while only == nil, let record = try peek(), end.map({ nextOrdinal < $0 }) ?? true,
            !filter.matches(record) || !wanted.wants(nextOrdinal)
        {
            skip()
        }
        let isLast = try peek() == nil
        guard filled.entries > 0 else {
            return .nothing(upTo: nextOrdinal, isLast: isLast, oversized: filled.oversized)
        }
        encoder.end(&filled.out)
        try sink.append(filled.out[...])
        let bytes = try sink.finish()
        isTaken = true
        return .part(
            Part(
                body: Body(
                    temporary: descriptor, bytes: bytes, contentBytes: sink.contentBytes,
                    encoding: encoding),
                range: PartRange(first: first, end: nextOrdinal), isLast: isLast,
                entries: filled.entries, ordinals: filled.ordinals, recordIDs: filled.recordIDs,
                rawBytes: filled.bytes + UInt64(encoder.frameBytes), oversized: filled.oversized))
    }

    /// The contents of a body so far.
    private struct Filled {
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

/// Where bodies are made.
enum BodyRoom {
    /// In unnamed files in the store's `queue`.
    case queue
    /// In memory files, for callers that may not write to the store.
    case memory
}

enum TemporaryBody {
    /// Opens an empty file for a body and unlinks it. Its name began with a dot, so readers ignored
    /// it.
    static func open(
        _ paths: StorePaths, _ stem: String, _ room: BodyRoom = .queue
    ) throws(UploadError) -> Int32 {
        if room == .memory {
            let descriptor = Files.openMemory()
            guard descriptor >= 0 else {
                throw UploadError.system(
                    call: "memfd_create", path: stem, errno: Errno.last)
            }
            return descriptor
        }
        // Two targets may make bodies of one archive at once; the thread's number keeps the files
        // apart.
        let path = paths.queue + "/" + StorePaths.body(of: stem, thread: cw_gettid())
        Files.remove(path)
        let descriptor = Files.open(path, .newReadWrite)
        guard descriptor >= 0 else {
            throw UploadError.system(call: "open", path: "\(path)", errno: Errno.last)
        }
        // CRASH: leaves an empty file; Outbox.removeOrphans removes it once the archive is gone.
        Files.remove(path)
        return descriptor
    }

    /// Compresses the archive's own bytes; nil: stopped.
    static func copy(
        _ archive: borrowing ArchiveLock, _ paths: StorePaths, encoding: BodyEncoding,
        room: BodyRoom = .queue, shouldStop: () -> Bool
    ) throws(UploadError) -> Body? {
        let descriptor = try open(paths, archive.stem, room)
        var isTaken = false
        defer { if !isTaken { Files.close(descriptor) } }
        var sink = try CompressingSink(
            descriptor: descriptor, path: "\(paths.queue)", encoding: encoding)
        var buffer = [UInt8](repeating: 0, count: CompressingSink.chunkBytes)
        var offset: UInt64 = 0
        while offset < archive.bytes {
            if shouldStop() { return nil }
            let got = Files.readOnce(archive.descriptor, into: &buffer, buffer.count, at: offset)
            guard got > 0 else {
                throw UploadError.system(
                    call: "pread", path: "\(paths.archive(archive.stem))",
                    errno: got < 0 ? Errno.last : Errno.EIO)
            }
            try sink.append(buffer[0..<got])
            offset += UInt64(got)
        }
        let bytes = try sink.finish()
        isTaken = true
        return Body(
            temporary: descriptor, bytes: bytes, contentBytes: sink.contentBytes,
            encoding: encoding)
    }

    enum Plain: ~Copyable {
        case made(Body)
        /// It has no dense block, or cannot be read here: it is sent unchanged.
        case same
        case stopped
    }

    /// A copy of the archive whose blocks are plain.
    static func plain(
        _ archive: borrowing ArchiveLock, _ paths: StorePaths, encoding: BodyEncoding,
        shouldStop: () -> Bool
    ) throws(UploadError) -> Plain {
        let descriptor = try open(paths, archive.stem)
        var isTaken = false
        defer { if !isTaken { Files.close(descriptor) } }
        var sink = try CompressingSink(
            descriptor: descriptor, path: "\(paths.queue)", encoding: encoding)
        var trouble: UploadError?
        let outcome: PlainCopy.Outcome
        do throws(ReadProblem) {
            outcome = try unsafe PlainCopy.make(
                path: paths.archive(archive.stem), shouldStop: shouldStop
            ) { piece in
                do throws(UploadError) {
                    try unsafe sink.append(Array(piece)[...])
                    return true
                } catch {
                    trouble = error
                    return false
                }
            }
        } catch {
            if case .system(let call, let number) = error {
                throw UploadError.system(
                    call: call, path: "\(paths.archive(archive.stem))", errno: number)
            }
            return .same
        }
        if let trouble { throw trouble }
        switch outcome {
        case .same: return .same
        case .stopped: return .stopped
        case .copied: break
        }
        let bytes = try sink.finish()
        isTaken = true
        return .made(
            Body(
                temporary: descriptor, bytes: bytes, contentBytes: sink.contentBytes,
                encoding: encoding))
    }
}
