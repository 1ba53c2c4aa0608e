// One segment as a file (or as a part of the lane file): its header, its clock and the index of its
// chunks (FORMAT §6). Bodies are read on demand; after each read, a check confirms that the file
// still is that segment (RELIABILITY R11). One thread at a time.
// SAFETY: views are of ReadBuffers held in a variable and read before they are filled again.

import CordwoodCore

final class SegmentFile {
    let path: FilePath
    let number: UInt64
    private(set) var head: SegmentHead
    /// Used for each record. SAFETY: nothing calls back meanwhile.
    @exclusivity(unchecked) private(set) var clock: ClockTable {
        didSet { unsafe clockChanges &+= 1 }
    }
    /// How often the clock was read again.
    @exclusivity(unchecked) private(set) var clockChanges = 0
    private(set) var isSealed: Bool
    /// Sorted by offset.
    private(set) var chunks: [ChunkHead] = []
    /// The file now belongs to another segment.
    private(set) var isLost = false
    /// Every chunk is known and settled: nothing more will be added.
    private(set) var isComplete = false
    /// nil: only the journal knows this segment.
    private let file: ReadFile?
    private let base: UInt64
    private let bytesMax: UInt64
    private let sealedByName: Bool
    /// After another boot: the journal with content for this segment.
    let journal: Journal?
    private let frames: [Journal.Frame]
    private let framesOfChunk: [UInt64: [Journal.Frame]]
    /// The machine went down since: only durable data is trusted (FORMAT §9).
    let isOtherBoot: Bool
    /// Nobody writes to the file any more, nor uses it again: what was read stays true.
    let isOver: Bool

    /// `name` holds the number and generation that the header must repeat (RELIABILITY R16).
    init(
        file: ReadFile?, path: FilePath, base: UInt64, bytesMax: UInt64, sealedByName: Bool,
        number: UInt64, generation: UInt32?, isOtherBoot: Bool, isOver: Bool = false,
        journal: Journal?
    ) throws(ReadProblem) {
        self.file = file
        self.path = path
        self.number = number
        self.base = base
        self.bytesMax = bytesMax
        self.sealedByName = sealedByName
        self.isOtherBoot = isOtherBoot
        self.isOver = isOver
        self.journal = journal
        frames = journal?.chunkFrames(segment: number) ?? []
        framesOfChunk = Dictionary(grouping: frames, by: \.chunk)
        let page = try SegmentFile.page(file, base, isOver, journal, number, generation, path)
        head = try unsafe SegmentHead(page.bytes, path: path)
        let table = unsafe ClockTable(header: page.bytes)
        unsafe clock = isOtherBoot ? table.agreeing(withCreated: head.createdMonotonic) : table
        hasClock = unsafe !clock.pairs.isEmpty
        isSealed = sealedByName || head.state == SegmentHeader.stateSealed
        if let generation, head.number != number || head.generation != generation {
            throw .damaged("\(path): header says segment \(head.number)-\(head.generation)")
        }
        guard head.number == number else {
            throw .damaged("\(path): header says segment \(head.number)")
        }
    }

    static func isBeingMade(_ file: ReadFile) throws(ReadProblem) -> Bool {
        let magic = try file.copy(at: 0, count: 8)
        return unsafe magic.bytes.allSatisfy { $0 == 0 }
    }

    /// After another boot: the file was reused, and the disk's content is from before that
    /// (RELIABILITY R15). None of it belongs to this segment.
    static func isFromBefore(
        _ file: ReadFile, _ path: FilePath, generation: UInt32
    ) throws(ReadProblem) -> Bool {
        let page = try file.copy(at: 0, count: SegmentHeader.bytes)
        guard let head = try? unsafe SegmentHead(page.bytes, path: path) else { return false }
        return head.generation < generation
    }

    /// Its owner died while it took the file for another segment: archives hold the records.
    var isDead: Bool { head.state == SegmentHeader.stateDead }

    /// The file was reused, so pages that are not durable may hold older records.
    var isReused: Bool { head.generation > 1 }

    /// False: the clock pairs were lost in a power cut, so no record's time is known and none is
    /// trusted.
    let hasClock: Bool

    /// The header page, read while its clock pairs were stable; the journal's copy if the page is
    /// lost or belongs to another segment.
    private static func page(
        _ file: ReadFile?, _ base: UInt64, _ isOver: Bool, _ journal: Journal?, _ number: UInt64,
        _ generation: UInt32?, _ path: FilePath
    ) throws(ReadProblem) -> ReadBuffer {
        let page = ReadBuffer()
        if let file {
            // A writer that died during a change leaves the word odd; the current content is then
            // used.
            for _ in 0..<64 {
                try page.fill(from: file, at: base, count: SegmentHeader.bytes)
                if isOver { break }
                let before = unsafe Bytes.u32(page.bytes, SegmentHeader.clockSequence)
                let again = try file.copy(
                    at: base &+ UInt64(SegmentHeader.clockSequence), count: 4)
                guard before & 1 == 0, unsafe before == Bytes.u32(again.bytes, 0) else { continue }
                // It may have been sealed at this moment.
                guard let head = try? unsafe SegmentHead(page.bytes, path: path), head.isDamaged
                else { break }
            }
            if journal == nil { return page }
            // Parts of an unsynced page may be missing, among them the clock pairs.
            if let head = unsafe try? SegmentHead(page.bytes, path: path), head.number == number,
                generation == nil || head.generation == generation,
                unsafe !ClockTable(header: page.bytes).agreeing(
                    withCreated: head.createdMonotonic
                ).pairs.isEmpty
            {
                return page
            }
        }
        let kind = JournalFrame.kindSegmentHeader
        guard let saved = try journal?.header(kind: kind, segment: number) else { return page }
        try saved.extend(to: SegmentHeader.bytes)
        return saved
    }

    /// Reads header and clock again; false if the file belongs to another segment now.
    func refresh() throws(ReadProblem) -> Bool {
        guard !isLost, !isOver, let file else { return try recheck() }
        let page = try SegmentFile.page(file, base, false, journal, number, head.generation, path)
        guard !isGone, let now = try? unsafe SegmentHead(page.bytes, path: path),
            now.salt == head.salt, now.number == head.number, now.generation == head.generation,
            now.state != SegmentHeader.stateDead
        else {
            isLost = true
            return false
        }
        head = now
        let table = unsafe ClockTable(header: page.bytes)
        unsafe clock = isOtherBoot ? table.agreeing(withCreated: head.createdMonotonic) : table
        guessClock(chunks)
        if now.state == SegmentHeader.stateSealed { isSealed = true }
        return true
    }

    /// A file of it was removed while it was closed: what was just copied is not whole.
    var isGone: Bool { file?.isGone ?? false || journal?.isGone ?? false }

    /// Whether the bytes just copied belonged to this segment (RELIABILITY R11).
    func recheck() throws(ReadProblem) -> Bool {
        isLost = isLost || isGone
        guard let file, !isLost, !isOtherBoot, !isOver else { return !isLost }
        let now = try file.copy(at: base, count: 128)
        let same =
            unsafe Bytes.u64(now.bytes, SegmentHeader.salt) == head.salt
            && Bytes.u64(now.bytes, SegmentHeader.number) == head.number
            && Bytes.u32(now.bytes, SegmentHeader.generation) == head.generation
            && Bytes.u32(now.bytes, SegmentHeader.state) != SegmentHeader.stateDead
        if !same { isLost = true }
        return same
    }

    /// Chunks that were found and not returned yet.
    private var untaken: [ChunkHead] = []

    /// The chunks that were found since the last call.
    func takeChunks() throws(ReadProblem) -> [ChunkHead] {
        try look()
        defer { untaken = [] }
        return untaken
    }

    /// What the segment holds (FORMAT §11.1); nil: nothing. Of a segment that nobody writes to.
    func seal(_ lane: LaneID) throws(ReadProblem) -> SegmentSeal? {
        try look()
        var content = GrowingBytes()
        content.append("cordwood segment 1")
        content.append(id: lane)
        let start = content.count
        for chunk in chunks where chunk.end > UInt32(ChunkHeader.bytes) {
            content.append(word: chunk.threadSerial)
            content.append(word: chunk.sequence)
            content.append(word: chunk.end)
            content.append(word: try checksum(of: chunk))
        }
        if content.count == start { return nil }
        return SegmentSeal(number: number, digest: SHA256.first16(content))
    }

    /// As sealing computes it, which nobody may have done.
    private func checksum(of chunk: ChunkHead) throws(ReadProblem) -> UInt32 {
        if isSealed, chunk.final != 0 { return chunk.crc }
        let buffer = ReadBuffer()
        try read(chunk: chunk.offset, to: Int(chunk.end), into: buffer)
        if isOtherBoot { try overlay(chunk: chunk.offset, size: Int(chunk.size), onto: buffer) }
        return unsafe StreamCursor.checksum(buffer.bytes, to: Int(chunk.end))
    }

    private func look() throws(ReadProblem) { untaken += try scan() }

    /// Walks the chunks (FORMAT §6.2) and returns those not known before.
    private func scan() throws(ReadProblem) -> [ChunkHead] {
        guard !isComplete, !isLost else { return [] }
        let sealedBefore = isSealed
        var walk: [ChunkHead] = []
        var fresh: [ChunkHead] = []
        var known = 0
        var position = head.headerBytes
        let window = ReadBuffer()
        var windowAt: UInt64 = 0
        let end = scanEnd
        while position < end, end &- position >= UInt64(ChunkHeader.bytes) {
            while known < chunks.count, chunks[known].offset < position { known &+= 1 }
            // Sealing sets the checksum of a chunk that was settled before.
            if !sealedBefore, known < chunks.count, chunks[known].offset == position,
                chunks[known].final != 0
            {
                walk.append(chunks[known])
                position &+= UInt64(chunks[known].size)
                continue
            }
            let at = position &- windowAt
            if position < windowAt || at &+ UInt64(ChunkHeader.bytes) > UInt64(window.count) {
                // After a hole, the next header is probably near; after a chunk, one header is
                // enough.
                let hole = walk.last.map { $0.offset &+ UInt64($0.size) } ?? head.headerBytes
                try file.map { f throws(ReadProblem) in
                    try window.fill(
                        from: f, at: base &+ position, count: position == hole ? 128 : 65_536)
                }
                windowAt = position
                if window.count < ChunkHeader.bytes { break }
            }
            let place = Int(position &- windowAt)
            guard let bytes = unsafe Bytes.slice(window.bytes, place, ChunkHeader.bytes),
                let chunk = ChunkHead(bytes, segment: head, at: position)
            else {
                position &+= UInt64(ChunkHeader.granule)
                continue
            }
            let isKnown = known < chunks.count && chunks[known].offset == position
            if !isKnown { fresh.append(chunk) }
            walk.append(chunk)
            position &+= UInt64(chunk.size)
        }
        try addFromJournal(&walk, &fresh)
        guessClock(walk)
        guard try recheck() else { return [] }
        chunks = walk
        isComplete = sealedBefore || isOver
        return fresh
    }

    /// Gives records shown as unverified a time close to their own; otherwise retention would
    /// consider them old.
    private func guessClock(_ chunks: [ChunkHead]) {
        guard isOtherBoot, unsafe clock.pairs.isEmpty, let file,
            let ticks = chunks.map(\.baseTicks).min()
        else { return }
        let pair = ClockTable.Pair(
            ticks: ticks, monotonic: head.createdMonotonic, realtime: file.changedNs)
        unsafe clock = ClockTable(pairs: [pair], ticksPerSecond: clock.ticksPerSecond)
    }

    /// What is wrong with a sealed segment according to its checksums, once all chunks were found.
    /// After another boot, parts of the header may not have reached the disk.
    func sealedProblem() -> String? {
        guard isComplete, !isOtherBoot, !isLost else { return nil }
        if head.state != SegmentHeader.stateSealed {
            return sealedByName ? "\(path): its header does not say that it is sealed" : nil
        }
        if head.isDamaged { return "\(path): checksum of the segment header" }
        var crc: UInt32 = 0
        for chunk in chunks where chunk.final != 0 { chunk.add(to: &crc) }
        return crc == head.chunksCRC ? nil : "\(path): chunks have changed, or are missing"
    }

    /// Reports a file that is shorter than its sealed segment, or than an open one that is mapped:
    /// somebody cut it. After another boot, a power cut may also have left such a file.
    func cutOff(isMapped: Bool) throws(ReadProblem) -> String? {
        guard let file, !isOtherBoot else { return nil }
        var whole: UInt64 = 0
        if head.state == SegmentHeader.stateSealed {
            whole = head.end
        } else if isMapped {
            whole = min(head.allocated, head.ready)
        }
        let (end, overflow) = base.addingReportingOverflow(min(whole, head.size))
        guard !overflow else { return nil }
        let size = file.size(reaching: end)
        guard size < end, try recheck() else { return nil }
        return "\(path): cut off at \(size) of \(end) bytes"
    }

    private var scanEnd: UInt64 { present(upTo: min(head.allocated, head.ready)) }

    /// How many of the segment's first bytes the file has, up to `wanted`.
    private func present(upTo wanted: UInt64) -> UInt64 {
        guard let file else { return 0 }
        let wanted = min(wanted, bytesMax)
        let (end, overflow) = base.addingReportingOverflow(wanted)
        let size = file.size(reaching: overflow ? .max : end)
        return min(size > base ? size &- base : 0, wanted)
    }

    /// The most chunks of a segment that one journal can restore: far more than a writer flushes.
    private static let journalChunksMax = 65_536

    /// Adds chunks whose headers only the journal still has.
    private func addFromJournal(_ walk: inout [ChunkHead], _ fresh: inout [ChunkHead])
        throws(ReadProblem)
    {
        guard let journal, !frames.isEmpty else { return }
        var seen = Set(walk.map(\.offset))
        var added: [ChunkHead] = []
        var left = SegmentFile.journalChunksMax
        for frame in frames.reversed() where seen.insert(frame.chunk).inserted {
            guard left > 0 else { break }
            left &-= 1
            let header = try journal.chunkHeader(frame)
            guard var chunk = unsafe ChunkHead(header.bytes, segment: head, at: frame.chunk) else {
                continue
            }
            chunk.final = 0
            chunk.committed = UInt32(covered(chunk.offset).last?.to ?? ChunkHeader.bytes)
            if chunk.committed > chunk.size { continue }
            if SegmentFile.overlaps(chunk, sorted: walk) { continue }
            if added.contains(where: { SegmentFile.overlaps($0, chunk) }) { continue }
            added.append(chunk)
        }
        let known = Set(chunks.map(\.offset))
        walk += added
        fresh += added.filter { !known.contains($0.offset) }
        walk.sort { $0.offset < $1.offset }
        fresh.sort { $0.offset < $1.offset }
    }

    private static func overlaps(_ a: ChunkHead, _ b: ChunkHead) -> Bool {
        a.offset < b.offset &+ UInt64(b.size) && b.offset < a.offset &+ UInt64(a.size)
    }

    /// True if the chunk overlaps one of those. They do not overlap one another.
    private static func overlaps(_ chunk: ChunkHead, sorted: [ChunkHead]) -> Bool {
        var low = 0
        var high = sorted.count
        while low < high {
            let middle = (low &+ high) / 2
            if sorted[middle].offset < chunk.offset { low = middle &+ 1 } else { high = middle }
        }
        return low < sorted.count && overlaps(sorted[low], chunk)
            || low > 0 && overlaps(sorted[low &- 1], chunk)
    }

    /// The current header of a chunk; nil if it is no longer valid.
    func chunk(at offset: UInt64) throws(ReadProblem) -> ChunkHead? {
        if let file {
            let header = try file.copy(at: base &+ offset, count: ChunkHeader.bytes)
            if let chunk = unsafe ChunkHead(header.bytes, segment: head, at: offset) {
                return chunk
            }
        }
        guard journal != nil else { return nil }
        return chunks.first { $0.offset == offset }
    }

    /// Appends bytes [buffer.count, end) of the chunk at `offset`.
    func read(chunk offset: UInt64, to end: Int, into buffer: ReadBuffer) throws(ReadProblem) {
        guard let file, end > buffer.count else { return }
        let present = present(upTo: offset &+ UInt64(end))
        let from = offset &+ UInt64(buffer.count)
        guard from < present else { return }
        let count = Int(min(UInt64(end &- buffer.count), present &- from))
        try buffer.append(from: file, at: base &+ from, count: count)
    }

    /// The ranges of a chunk that the journal covers: ascending, not touching.
    func covered(_ chunk: UInt64) -> [(from: Int, to: Int)] {
        let all = (framesOfChunk[chunk] ?? []).filter { $0.from < $0.to }
            .map { (from: $0.from, to: $0.to) }.sorted { $0.from < $1.from }
        var merged: [(from: Int, to: Int)] = []
        for part in all {
            if let last = merged.last, part.from <= last.to {
                merged[merged.count - 1].to = max(last.to, part.to)
            } else {
                merged.append(part)
            }
        }
        return merged
    }

    /// Copies the journal's bytes over those from the disk.
    func overlay(chunk: UInt64, size: Int, onto buffer: ReadBuffer) throws(ReadProblem) {
        guard let journal else { return }
        for frame in framesOfChunk[chunk] ?? [] where frame.to <= size && frame.from < frame.to {
            let content = try journal.content(frame)
            guard content.count >= frame.to &- frame.from else { continue }
            try buffer.extend(to: frame.to)
            unsafe buffer.replace(at: frame.from, with: content.bytes)
        }
    }
}
