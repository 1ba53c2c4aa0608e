// Loads one block from the file into memory (FORMAT §11.2): header, stored bytes, checksum, and of
// the columns what is wanted (§11.4). Its buffers are reused for the next block; the limits of the
// format bound their total size. One reader owns one loader.

import CordwoodCore

struct BlockLoader: ~Copyable {
    private var stored = GrowingBytes()
    private var rows = RowBuffer()
    var decoders: BlockDecoders

    /// Refuses to inflate blocks whose header and footer disagree.
    private let isStrict: Bool

    init(isStrict: Bool = false, decoders: BlockDecoders = BlockDecoders()) {
        self.isStrict = isStrict
        self.decoders = decoders
    }

    /// Of the last block.
    private(set) var loaded = LoadedRows()

    /// The rows that were loaded: fewer than the block has, if few are wanted. Valid until the next
    /// `load`.
    var view: BlockView { rows.view() }

    /// Bytes held for `view`.
    var bytes: Int { rows.capacity &+ stored.capacity }

    /// Frees what only loading needs.
    mutating func trim() { stored = GrowingBytes() }

    /// Loads that block into `view` and returns its header. What is not wanted of parts and rows is
    /// not inflated.
    mutating func load(
        _ entry: BlockEntry, of file: borrowing ArchiveFile, parts: BlockParts = .all,
        unless letters: LetterRun? = nil, rows wanted: WantedRows? = nil
    ) throws(ReadProblem) -> BlockHead {
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
        let lent = decoders.take()
        defer { decoders.put(back: lent) }
        do throws(BlockProblem) {
            loaded = unsafe try lent.decoder.load(
                Slice(stored.bytes), head.facts, parts, rows: wanted, unless: letters, into: &rows)
        } catch .memory {
            throw .system("read \(file.path)", errno: Errno.ENOMEM)
        } catch {
            throw .damaged("\(file.path): columns of the block at \(entry.offset)")
        }
        return head
    }
}
