// What the footer says of a side frame: one between an archive's blocks and its footer, which
// repeats or sums up what the blocks hold (FORMAT §11.3). A value.

import CordwoodCore

struct SideEntry: Equatable {
    let kind: UInt32
    /// Of the whole frame.
    let crc: UInt32
    let offset: UInt64
    let spanBytes: UInt64
}

extension SideEntry {
    @safe init(footer bytes: UnsafeRawBufferPointer, at start: Int) {
        kind = bytes.word(start + SideFrame.kind, UInt32.self)
        crc = bytes.word(start + SideFrame.crc, UInt32.self)
        offset = bytes.word(start + SideFrame.offset, UInt64.self)
        spanBytes = bytes.word(start + SideFrame.spanBytes, UInt64.self)
    }

    /// Whether the frame is as long as the footer says and matches its checksum.
    func isIntact(_ file: borrowing ArchiveFile) throws(ReadProblem) -> Bool {
        var frame = GrowingBytes()
        let start = UInt64(SkippableFrame.headerBytes)
        return try unsafe file.read(spanBytes, at: offset, into: &frame)
            && frame.bytes.word(0, UInt32.self) == SkippableFrame.magicValue
            && UInt64(frame.bytes.word(4, UInt32.self)) + start == spanBytes
            && checksum(frame.bytes, from: 0) == crc
    }
}

extension GrowingBytes {
    mutating func append(_ side: SideEntry) {
        append(word: side.kind)
        append(word: side.crc)
        append(word: side.offset)
        append(word: side.spanBytes)
    }
}
