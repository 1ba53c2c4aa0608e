// One stream of a lane: the chunks that one thread wrote one after another in one of its streams,
// and the current position in them (FORMAT §6.2, §7, §8). Holds a private copy of the current
// chunk; context and trace are stored as offsets into that copy. Belongs to one LaneSource.
// SAFETY: views of `buffer` live within one call; lasting references are offsets, checked against
// its count. Nothing calls back while a property with unchecked accesses is used.

import CordwoodCore

final class StreamCursor {
    enum Step {
        case record
        /// There is nothing more now.
        case end
        case damaged(String)
    }

    let serial: UInt32
    let stream: UInt8
    /// In the heap without a time of its own: must be stepped before it counts.
    var mustMove = true
    /// At a record that was not returned yet.
    var hasRecord = false
    var thread: ThreadInfo
    /// The remaining chunks, ordered by sequence.
    @exclusivity(unchecked)
    private var queue: [(segment: SegmentFile, offset: UInt64, bound: UInt64, sequence: UInt32)] =
        []
    private var next = 0

    private(set) var segment: SegmentFile?
    private(set) var head: ChunkHead?
    private(set) var buffer = ReadBuffer()
    private var position = 0
    private var base: UInt64 = 0
    private var index: UInt32 = 0
    /// Converts the chunk's ticks.
    private var clock = ClockTable.Line()
    /// The segment's `clockChanges` when `clock` was made.
    private var clockChanges = 0
    private(set) var context: (at: Int, count: Int) = (0, 0)
    private(set) var traceAt = 0
    /// The attributes of the chunk's records are lost.
    private(set) var lacksResource = false
    /// After another boot: nil if all bytes are trusted.
    private var believed: [(from: Int, to: Int)]?
    /// Offset of the last record returned or skipped.
    private var lastStart = 0
    /// The last record in an open chunk, once it was returned or skipped.
    private var given: (start: Int, digest: UInt64)?
    /// A record was returned from a chunk beyond the end at which the chunk was later settled. Its
    /// writer appends it again at the start of its next chunk (CONCURRENCY, Settle), unless it
    /// refuses the record or was left by longjmp. That copy is skipped, and nothing else. Digest
    /// nil: not known; the first record there is the copy.
    private var again: (digest: UInt64?, after: UInt32)?
    /// A record of the current chunk had no valid length, so the records after it cannot be found.
    private var isBroken = false
    private(set) var unknownTypes = 0

    /// Our writers put at most 64 records into a large chunk; each costs reading all of it.
    private static let evictionsMax = 128
    /// Bytes of the current chunk that were released and must be read again before use.
    private var evicted = 0
    private var evictions = 0

    /// Offset of the current record.
    private(set) var start = 0
    private(set) var length = 0
    private(set) var sequence: UInt64 = 0
    private(set) var monotonic: UInt64 = 0
    private(set) var realtime: UInt64 = 0

    init(serial: UInt32, stream: UInt8, thread: ThreadInfo) {
        self.serial = serial
        self.stream = stream
        self.thread = thread
    }

    var tie: UInt64 { UInt64(serial) << 8 | UInt64(stream) }
    var hasQueued: Bool { unsafe next < queue.count }
    /// The known part of this stream will yield nothing more.
    var isIdle: Bool { !hasQueued && again == nil && head.map { $0.final != 0 } ?? true }
    /// No record of the next chunk is older, unless the clock went back.
    var bound: UInt64 { hasQueued ? unsafe queue[next].bound : monotonic }

    func enqueue(_ segment: SegmentFile, _ chunk: ChunkHead) {
        let bound = unsafe segment.clock.times(of: chunk.baseTicks).monotonic
        // Nearly always the last place: a segment that was a spare when it was listed may come too
        // early.
        var at = unsafe queue.count
        while at > next, unsafe queue[at &- 1].sequence > chunk.sequence { at &-= 1 }
        unsafe queue.insert((segment, chunk.offset, bound, chunk.sequence), at: at)
    }

    /// Drops the records of a segment that were not returned yet, even loaded ones: an archive
    /// supplies them in the order of the thread. Reports how many records of each of its chunks
    /// were returned.
    func forget(_ lost: SegmentFile, _ note: (_ sequence: UInt32, _ given: UInt32) -> Void) {
        if segment === lost, let head {
            note(head.sequence, hasRecord ? index &- 1 : index)
            hasRecord = false
            evicted = 0
            isBroken = true
            mustMove = true
        }
        for entry in unsafe queue[next...] where entry.segment === lost { note(entry.sequence, 0) }
        unsafe queue = unsafe queue[next...].filter { $0.segment !== lost }
        next = 0
    }

    /// Segments that records may still come from.
    var segments: [SegmentFile] {
        unsafe queue[next...].map(\.segment) + (isBroken ? [] : [segment].compactMap { $0 })
    }

    /// Skips all remaining chunks but the last, whose state is needed to continue after it.
    func keepLastChunk() {
        if unsafe queue.count &- next > 1 { unsafe queue = unsafe [queue[queue.count &- 1]] }
        next = 0
    }

    /// Releases the memory of a large chunk until its record is needed: many streams may each wait
    /// with one, and a hole in a file costs its writer nothing.
    func evict() {
        guard isLarge else { return }
        evicted = buffer.count
        buffer = ReadBuffer()
    }

    var isLarge: Bool { buffer.count > ChunkHeader.largeBytes }

    /// Rereads the bytes that were released. INVARIANT: all offsets into the buffer keep their
    /// meaning.
    @inline(__always)
    func restore(in lane: LaneSource) throws(ReadProblem) {
        if evicted > 0 { try reread(in: lane) }
    }

    private func reread(in lane: LaneSource) throws(ReadProblem) {
        guard let segment, let head else { return }
        evictions &+= 1
        let size = evicted
        evicted = 0
        try segment.read(chunk: head.offset, to: size, into: buffer)
        if believed != nil {
            try segment.overlay(chunk: head.offset, size: Int(head.size), onto: buffer)
        }
        let isSame = try segment.recheck()
        guard isSame else { return lane.lose(segment) }
        guard buffer.count >= size else {
            isBroken = true
            buffer.clear()
            throw .damaged("\(segment.path): chunk at \(head.offset) changed while it was read")
        }
        guard evictions <= StreamCursor.evictionsMax else {
            isBroken = true
            buffer.clear()
            throw .damaged(
                "\(segment.path): chunk at \(head.offset) has too many records for a large one")
        }
    }

    private func closeChunk() {
        evicted = 0
        evictions = 0
        segment = nil
        head = nil
        buffer.clear(keeping: 1 << 20)
        position = 0
    }

    /// Moves to the next record to show.
    func step(in lane: LaneSource) throws(ReadProblem) -> Step {
        hasRecord = false
        try restore(in: lane)
        while true {
            switch parse() {
            case .record:
                lastStart = start
                hasRecord = true
                return .record
            case .damaged(let text):
                return .damaged(text)
            case .end:
                if head != nil, try extend() { continue }
                if let segment, segment.isLost { lane.lose(segment) }
                guard hasQueued, unsafe !lane.isPaused else { return .end }
                closeChunk()
                try open(in: lane)
            }
        }
    }

    /// Checks whether the writer has continued in the current chunk; true if there are more bytes.
    private func extend() throws(ReadProblem) -> Bool {
        guard let segment, let old = head, old.final == 0, !segment.isOtherBoot, !segment.isOver,
            !isBroken, !segment.isLost
        else { return false }
        guard let now = try segment.chunk(at: old.offset), now.sequence == old.sequence else {
            _ = try segment.recheck()
            return false
        }
        let before = buffer.count
        if Int(now.end) > before {
            try segment.read(chunk: now.offset, to: Int(now.end), into: buffer)
        }
        guard try segment.recheck() else {
            buffer.cut(to: before)
            return false
        }
        if now.final != 0, lastStart >= Int(now.final) {
            let digest = given.flatMap { $0.start == lastStart ? $0.digest : nil }
            again = (digest, now.sequence)
        }
        head = now
        return buffer.count > before
    }

    /// The current record is the last one loaded from a chunk that was open at the time: the only
    /// record that the chunk may since have been settled short of.
    private var isLastOfOpenChunk: Bool {
        position >= buffer.count && head.map { $0.final == 0 } ?? false
    }

    /// Called just before a record is returned: true if its chunk now ends before it. The record is
    /// then in a later chunk, or was refused. A writer stores the length before it appends a record
    /// again, so a reader that checks in this order never returns a record here that it may already
    /// have seen there.
    func isCutOff() throws(ReadProblem) -> Bool {
        guard isLastOfOpenChunk, let segment, let old = head, !segment.isOtherBoot,
            !segment.isOver, !isBroken, !segment.isLost,
            let now = try segment.chunk(at: old.offset),
            now.sequence == old.sequence, now.final != 0, start >= Int(now.final),
            try segment.recheck()
        else { return false }
        head = now
        lastStart = 0
        return true
    }

    /// Whether `passesOver` must see the current record: asking costs less than passing it.
    var mayPassOver: Bool { again != nil || isLastOfOpenChunk }

    /// True if the current record, as decoded, is a copy of one that was already returned from its
    /// original place. A skipped copy may be cut off again.
    func passesOver(_ record: borrowing RecordRef) -> Bool {
        let isLast = isLastOfOpenChunk
        guard mayPassOver else { return false }
        let digest = record.digest
        if isLast { given = (start, digest) }
        // The records at the start of the chunk itself come before it.
        guard let first = again,
            unsafe Bytes.u8(buffer.bytes, start &+ RecordHeader.type)
                != RecordType.gap
        else { return false }
        again = nil
        return first.digest ?? digest == digest
    }

    /// As `passesOver`, for a record that an archive supplies. The archive may come before this
    /// stream is checked again.
    func passesOver(archived sequence: UInt64, _ digest: UInt64) -> Bool {
        if again == nil, let last = given, last.start == lastStart, last.digest == digest,
            let segment, let old = head, old.final == 0,
            let now = try? segment.chunk(at: old.offset), now.sequence == old.sequence,
            now.final != 0, lastStart >= Int(now.final), let isSame = try? segment.recheck(), isSame
        {
            head = now
            again = (digest, now.sequence)
        }
        guard let first = again, first.digest == digest, sequence >> 32 > first.after else {
            return false
        }
        again = nil
        return true
    }

    private func open(in lane: LaneSource) throws(ReadProblem) {
        let entry = unsafe queue[next]
        next &+= 1
        if unsafe next == queue.count || next > 1_024 {
            unsafe queue.removeFirst(next)
            next = 0
        }
        let place = "\(entry.segment.path): chunk at \(entry.offset)"
        let found = try entry.segment.chunk(at: entry.offset)
        if let found { try load(entry.segment, found, lane, place) }
        guard try entry.segment.recheck() else {
            buffer.clear()
            lane.lose(entry.segment, chunk: entry.sequence, of: self)
            return
        }
        guard let found else {
            lane.report(.damaged("\(place) lost its header"))
            return
        }
        thread = lane.thread(found)
        lacksResource = lane.hasLostResource(found)
        lane.noteLoad(buffer.count)
        segment = entry.segment
        head = found
        position = ChunkHeader.bytes
        base = found.baseTicks
        index = 0
        clock = ClockTable.Line()
        context = (0, 0)
        traceAt = 0
        lastStart = 0
        given = nil
        isBroken = false
    }

    private func load(
        _ segment: SegmentFile, _ chunk: ChunkHead, _ lane: LaneSource, _ place: String
    ) throws(ReadProblem) {
        buffer.clear()
        try segment.read(chunk: chunk.offset, to: Int(chunk.end), into: buffer)
        if segment.isGone { return }
        believed = segment.isOtherBoot ? [] : nil
        if segment.isSealed, chunk.final == 0 {
            // Claimed too late: it holds no record of a host and has no checksum (FORMAT §9). After
            // another boot, the header may be from before the sealing, and the rest missing.
            if !segment.isOtherBoot { believed = nil }
        } else if segment.isSealed {
            if buffer.count == Int(chunk.end), unsafe StreamCursor.crcHolds(buffer.bytes, chunk) {
                if segment.hasClock || !segment.isOtherBoot { believed = nil }
            } else if try segment.recheck() {
                lane.report(.damaged("\(place): checksum"))
            }
        } else if buffer.count < Int(chunk.end), !segment.isOtherBoot {
            lane.report(.damaged("\(place): cut short"))
        }
        guard believed != nil else { return }
        try segment.overlay(chunk: chunk.offset, size: Int(chunk.size), onto: buffer)
        believed = segment.covered(chunk.offset)
    }

    @safe static func crcHolds(_ bytes: UnsafeRawBufferPointer, _ chunk: ChunkHead) -> Bool {
        chunk.final != 0 && bytes.count >= Int(chunk.final)
            && checksum(bytes, to: Int(chunk.final)) == chunk.crc
    }

    /// The checksum of a chunk up to its end, or to where its bytes end (FORMAT §6.2, crc).
    @safe static func checksum(_ bytes: UnsafeRawBufferPointer, to end: Int) -> UInt32 {
        let count = max(0, min(end, bytes.count) &- ChunkHeader.bytes)
        guard let head = Bytes.slice(bytes, 12, 52),
            let body = Bytes.slice(bytes, ChunkHeader.bytes, count)
        else { return 0 }
        return Checksum.crc(body, after: Checksum.crc(head))
    }

    /// Steps over entries that are not records of their own, and stops at one that is.
    private func parse() -> Step {
        let bytes = unsafe buffer.bytes
        let end = bytes.count
        while head != nil, position < end, !isBroken {
            let at = position
            let size = Int(Bytes.u32(bytes, at))
            guard size >= RecordHeader.bytes, size <= end &- at else {
                isBroken = true
                // Zero pages after the part that a journal saved are lost data, not damage; the
                // same goes for pages of an older generation.
                if believed != nil, size == 0 || segment?.isReused ?? false { return .end }
                return .damaged(
                    "\(segment?.path ?? ""): chunk at \(head?.offset ?? 0): record at \(at)")
            }
            position = (at &+ size &+ 7) & ~7
            switch Bytes.u8(bytes, at &+ RecordHeader.type) {
            case let type where RecordType.isCounted(type):
                accept(bytes, at, size)
                if isUnverified, segment?.isReused ?? false { continue }
                return .record
            case RecordType.timeBase:
                if size >= 24 { base = Bytes.u64(bytes, at &+ RecordHeader.payload) }
            case RecordType.context:
                context = (at &+ RecordHeader.payload, size &- RecordHeader.payload)
                if context.count < 2 || Bytes.u16(bytes, context.at) == 0 { context = (0, 0) }
            case RecordType.trace:
                takeTrace(bytes, at, size)
            case RecordType.skip:
                break
            default:
                unknownTypes &+= 1
            }
        }
        return .end
    }

    @safe private func accept(_ bytes: UnsafeRawBufferPointer, _ at: Int, _ size: Int) {
        start = at
        length = size
        sequence = UInt64(head?.sequence ?? 0) << 32 | UInt64(index)
        index &+= 1
        let ticks = base &+ UInt64(Bytes.u32(bytes, at &+ RecordHeader.delta))
        guard let segment else { return }
        if unsafe !clock.has(ticks) || segment.clockChanges != clockChanges {
            clock = unsafe segment.clock.line(at: ticks)
            clockChanges = unsafe segment.clockChanges
        }
        (monotonic, realtime) = clock.times(of: ticks)
    }

    @safe private func takeTrace(_ bytes: UnsafeRawBufferPointer, _ at: Int, _ size: Int) {
        let place = at &+ RecordHeader.payload
        guard size &- RecordHeader.payload >= TraceLayout.bytes,
            let trace = Bytes.slice(bytes, place, TraceLayout.bytes)
        else { return }
        traceAt = unsafe trace.contains { $0 != 0 } ? place : 0
    }

    var isUnverified: Bool {
        guard let believed else { return false }
        return !believed.contains { $0.from <= start && start &+ length <= $0.to }
    }
}
