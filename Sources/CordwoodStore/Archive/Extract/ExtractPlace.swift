// Finds an archive's extract, the copies of its severe records (FORMAT §11.11). A value.
// SAFETY: views point into the buffer that was just read.

import CordwoodCore

struct ExtractPlace {
    private let side: SideEntry
    /// Holds copies of all records of at least `level`, in the archive's order.
    let block: BlockEntry
    let level: UInt8
    /// Monotonic time of the archive's first record.
    let firstMonotonic: UInt64

    /// nil: there is no extract, or it is damaged. The archive's blocks hold the records as well.
    /// What it says counts only if `isIntact`.
    init?(_ file: borrowing ArchiveFile, _ footer: ArchiveIndex.Footer) {
        guard let side = footer.extract else { return nil }
        let (offset, bytes) = (side.offset, side.spanBytes)
        let start = SkippableFrame.headerBytes
        let headBytes = UInt64(ArchiveExtract.frameBytes)
        var buffer = GrowingBytes()
        guard bytes >= headBytes, (try? file.read(headBytes, at: offset, into: &buffer)) == true
        else { return nil }
        let frame = unsafe buffer.bytes
        guard
            frame.word(start + ArchiveExtract.magic, UInt64.self) == ArchiveExtract.magicValue
        else { return nil }
        let place = ArchiveExtract.frameBytes - BlockHeader.frameBytes
        guard
            case .good(let found) = unsafe BlockHead.read(
                UnsafeRawBufferPointer(rebasing: frame[place...]), isExtract: true),
            found.storedBytes == bytes - headBytes
        else { return nil }
        var entry = BlockEntry(header: found, at: offset + UInt64(place))
        entry.isExtract = true
        block = entry
        level = frame.word(start + ArchiveExtract.level, UInt8.self)
        // Verification compares the copies of these levels, so no others count.
        guard level == ArchiveExtract.levelValue else { return nil }
        firstMonotonic = frame.word(start + ArchiveExtract.firstMonotonic, UInt64.self)
        self.side = side
    }

    func isIntact(_ file: borrowing ArchiveFile) -> Bool {
        (try? side.isIntact(file)) == true
    }
}
