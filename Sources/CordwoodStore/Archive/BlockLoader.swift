// Loads one block from the file into memory (FORMAT §11.2): header, stored bytes, checksum, frame,
// checksum. A dense block (§11.6) is decoded into the payload that it represents. Its buffers are
// reused for the next block; the limits of the format bound their total size. One reader owns one
// loader.

import CordwoodCore

struct BlockLoader: ~Copyable {
    private var stored = GrowingBytes()
    private var raw = GrowingBytes()
    var decoders: BlockDecoders

    /// Refuses to inflate blocks whose header and footer disagree.
    private let isStrict: Bool

    init(isStrict: Bool = false, decoders: BlockDecoders = BlockDecoders()) {
        self.isStrict = isStrict
        self.decoders = decoders
    }

    /// Nothing in the block is wanted: the payload ends after its times.
    private(set) var isWithout = false
    /// Records in `payload`: fewer than in the block, if few are wanted.
    private(set) var rowCount: UInt32 = 0
    /// Monotonic time of the block's first record, if it may not be in `payload`.
    private(set) var firstTime: UInt64?

    /// SAFETY: valid until the next `load`.
    var payload: UnsafeRawBufferPointer { unsafe raw.bytes }

    /// Bytes held for `payload`.
    var bytes: Int { raw.capacity &+ stored.capacity }

    /// Frees what only loading needs.
    mutating func trim() { stored = GrowingBytes() }

    /// Loads that block into `payload` and returns its header. If not all parts are wanted,
    /// `payload` may end after the last wanted one; then only the checksum of the stored bytes is
    /// compared. Likewise if the block's text shows that `letters` are in no record, or if it is
    /// dense and `rows` are few.
    mutating func load(
        _ entry: BlockEntry, of file: borrowing ArchiveFile, parts: BlockParts = .all,
        unless letters: LetterRun? = nil, rows: DenseRows? = nil
    ) throws(ReadProblem) -> BlockHead {
        isWithout = false
        firstTime = nil
        let headBytes = UInt64(BlockHeader.frameBytes)
        guard try file.read(headBytes, at: entry.offset, into: &stored) else {
            throw .damaged("\(file.path): cut in the block at \(entry.offset)")
        }
        let head: BlockHead
        switch unsafe BlockHead.read(stored.bytes, isExtract: entry.isExtract) {
        case .good(let found): head = found
        case .newer(let what):
            throw .version("\(file.path): \(what) of the block at \(entry.offset)")
        case .bad(let what):
            throw .damaged("\(file.path): \(what) of the block at \(entry.offset)")
        }
        guard headBytes &+ head.storedBytes == entry.spanBytes,
            !isStrict || head.rawBytes == entry.rawBytes,
            try file.read(head.storedBytes, at: entry.offset + headBytes, into: &stored)
        else { throw .damaged("\(file.path): size of the block at \(entry.offset)") }
        guard unsafe checksum(stored.bytes, from: 0) == head.storedCRC else {
            throw .damaged("\(file.path): stored checksum of the block at \(entry.offset)")
        }
        rowCount = head.recordCount
        if head.isDense {
            try decode(head, entry, file, parts, letters, rows)
            return head
        }
        let lent = decoders.take()
        defer { decoders.put(back: lent) }
        let isInflated =
            if parts.last != .max {
                unsafe lent.decompressor.inflate(
                    stored.bytes, codec: head.codec, raw: Int(head.rawBytes),
                    through: parts.last, into: &raw)
            } else {
                unsafe lent.decompressor.inflate(
                    stored.bytes, codec: head.codec, raw: Int(head.rawBytes), into: &raw)
            }
        guard isInflated else {
            if raw.failed { throw .system("read \(file.path)", errno: Errno.ENOMEM) }
            throw .damaged("\(file.path): frame of the block at \(entry.offset)")
        }
        if parts.last != .max, raw.count < Int(head.rawBytes) { return head }
        guard unsafe checksum(raw.bytes, from: 0) == head.rawCRC else {
            throw .damaged("\(file.path): checksum of the block at \(entry.offset)")
        }
        return head
    }

    private mutating func decode(
        _ head: BlockHead, _ entry: BlockEntry, _ file: borrowing ArchiveFile,
        _ parts: BlockParts, _ letters: LetterRun?, _ rows: DenseRows?
    ) throws(ReadProblem) {
        let lent = decoders.take()
        defer { decoders.put(back: lent) }
        do throws(DenseProblem) {
            isWithout = unsafe try !lent.decoder.decode(
                unsafe stored.bytes, recordCount: Int(head.recordCount),
                rawBytes: Int(head.rawBytes), rawCRC: head.rawCRC,
                parts: parts, rows: rows,
                endsEarly: letters.map { letters in
                    { text, formats in letters.isMissing(in: text, formats: formats) }
                }, into: &raw)
            rowCount = unsafe UInt32(lent.decoder.rowCount)
            if rowCount != head.recordCount { firstTime = unsafe lent.decoder.firstTime }
        } catch .memory {
            throw .system("read \(file.path)", errno: Errno.ENOMEM)
        } catch .newer(let what) {
            throw .version("\(file.path): \(what) of the block at \(entry.offset)")
        } catch {
            throw .damaged("\(file.path): dense columns of the block at \(entry.offset)")
        }
    }
}
