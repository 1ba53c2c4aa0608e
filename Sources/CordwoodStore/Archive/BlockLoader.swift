// Loads one block from the file into memory (FORMAT §11.2): header, stored bytes, checksum, frame,
// checksum. Its two buffers are reused for the next block; the limits of the format bound their
// total size. One reader owns one loader.

import CordwoodCore
import Glibc

struct BlockLoader: ~Copyable {
    private var stored = GrowingBytes()
    private var raw = GrowingBytes()
    private var decompressor = BlockDecompressor()

    /// Refuses to inflate blocks whose header and footer disagree.
    private let isStrict: Bool

    init(isStrict: Bool = false) { self.isStrict = isStrict }

    /// SAFETY: valid until the next `load`.
    var payload: UnsafeRawBufferPointer { unsafe raw.bytes }

    /// Loads that block into `payload` and returns its header.
    mutating func load(_ entry: BlockEntry, of file: borrowing ArchiveFile) throws(ReadProblem)
        -> BlockHead
    {
        let headBytes = UInt64(BlockHeader.frameBytes)
        guard try file.read(headBytes, at: entry.offset, into: &stored) else {
            throw .damaged("\(file.path): cut in the block at \(entry.offset)")
        }
        let head: BlockHead
        switch unsafe BlockHead.read(stored.bytes) {
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
        guard
            unsafe decompressor.inflate(
                stored.bytes, codec: head.codec, raw: Int(head.rawBytes), into: &raw)
        else {
            if raw.failed { throw .system("read \(file.path)", errno: ENOMEM) }
            throw .damaged("\(file.path): frame of the block at \(entry.offset)")
        }
        guard unsafe checksum(raw.bytes, from: 0) == head.rawCRC else {
            throw .damaged("\(file.path): checksum of the block at \(entry.offset)")
        }
        return head
    }
}
