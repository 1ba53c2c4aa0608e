// Finds an archive's extract, the copies of its severe records (FORMAT §11.11). A value.
// SAFETY: views point into the buffer that was just read.

import CordwoodCore

struct ExtractPlace {
    /// Holds copies of all records of at least `level`, in the archive's order.
    let block: BlockEntry
    let level: UInt8
    /// Monotonic time of the archive's first record.
    let firstMonotonic: UInt64

    /// nil: there is no extract, or it is damaged. The archive's blocks hold the records as well.
    init?(_ file: borrowing ArchiveFile, _ footer: ArchiveIndex.Footer) {
        let bytes = footer.extractBytes
        let start = SkippableFrame.headerBytes
        var buffer = GrowingBytes()
        guard bytes >= UInt64(ArchiveExtract.frameBytes), bytes <= file.size - footer.span
        else { return nil }
        let offset = file.size - footer.span - bytes
        guard (try? file.read(UInt64(ArchiveExtract.frameBytes), at: offset, into: &buffer)) == true
        else { return nil }
        let frame = unsafe buffer.bytes
        let head = unsafe UnsafeRawBufferPointer(
            rebasing: frame[start..<start + ArchiveExtract.header])
        guard frame.word(0, UInt32.self) == SkippableFrame.magicValue,
            UInt64(frame.word(4, UInt32.self)) == bytes - UInt64(start),
            head.word(ArchiveExtract.magic, UInt64.self) == ArchiveExtract.magicValue,
            checksum(head, zeroAt: ArchiveExtract.crc) == head.word(ArchiveExtract.crc, UInt32.self)
        else { return nil }
        let place = ArchiveExtract.frameBytes - BlockHeader.frameBytes
        guard
            case .good(let found) = unsafe BlockHead.read(
                UnsafeRawBufferPointer(rebasing: frame[place...]), isExtract: true),
            found.storedBytes == bytes - UInt64(ArchiveExtract.frameBytes)
        else { return nil }
        var entry = BlockEntry(header: found, at: offset + UInt64(place))
        entry.isExtract = true
        block = entry
        level = head.word(ArchiveExtract.level, UInt8.self)
        firstMonotonic = head.word(ArchiveExtract.firstMonotonic, UInt64.self)
    }

    /// Whether the stored bytes match their checksum.
    func isIntact(_ file: borrowing ArchiveFile) -> Bool {
        let headBytes = UInt64(BlockHeader.frameBytes)
        var stored = GrowingBytes()
        let isRead = try? file.read(
            block.spanBytes - headBytes, at: block.offset + headBytes, into: &stored)
        return unsafe isRead == true && checksum(stored.bytes, from: 0) == block.storedCRC
    }
}
