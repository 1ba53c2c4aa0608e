// What a reader knows of one block before it reads the columns: from the footer or, if that is
// damaged, from the block's own header (FORMAT §11.2, §11.3).
// SAFETY: the content is sliced only after the check of `frame.count`; everything else is checked
// loads.

import CordwoodCore

struct BlockEntry: Equatable {
    var offset: UInt64
    var spanBytes: UInt64
    var timeMin: UInt64
    var timeMax: UInt64
    var writtenMin: UInt64
    var writtenMax: UInt64
    var levels: UInt32
    var kinds: UInt32
    var recordCount: UInt32
    var storedCRC: UInt32
    var rawBytes: UInt64
    /// This is the block of an extract (FORMAT §11.11).
    var isExtract = false

    @safe init(footer bytes: UnsafeRawBufferPointer, at start: Int) {
        offset = bytes.word(start + FooterEntry.offset, UInt64.self)
        spanBytes = bytes.word(start + FooterEntry.spanBytes, UInt64.self)
        timeMin = bytes.word(start + FooterEntry.timeMin, UInt64.self)
        timeMax = bytes.word(start + FooterEntry.timeMax, UInt64.self)
        writtenMin = bytes.word(start + FooterEntry.writtenMin, UInt64.self)
        writtenMax = bytes.word(start + FooterEntry.writtenMax, UInt64.self)
        levels = bytes.word(start + FooterEntry.levels, UInt32.self)
        kinds = bytes.word(start + FooterEntry.kinds, UInt32.self)
        recordCount = bytes.word(start + FooterEntry.recordCount, UInt32.self)
        storedCRC = bytes.word(start + FooterEntry.storedCRC, UInt32.self)
        rawBytes = bytes.word(start + FooterEntry.rawBytes, UInt64.self)
    }

    init(header: BlockHead, at offset: UInt64) {
        self.offset = offset
        spanBytes = UInt64(BlockHeader.frameBytes) &+ header.storedBytes
        timeMin = header.timeMin
        timeMax = header.timeMax
        writtenMin = header.writtenMin
        writtenMax = header.writtenMax
        levels = header.levels
        kinds = header.kinds
        recordCount = header.recordCount
        storedCRC = header.storedCRC
        rawBytes = header.rawBytes
    }
}

/// A block's header, checked as far as possible without the columns.
struct BlockHead {
    enum HeadResult {
        case good(BlockHead)
        case newer(String)
        case bad(String)
    }

    let codec: Codec
    let recordCount: UInt32
    let rawBytes: UInt64
    let storedBytes: UInt64
    let timeMin: UInt64
    let timeMax: UInt64
    let writtenMin: UInt64
    let writtenMax: UInt64
    let levels: UInt32
    let kinds: UInt32
    let storedCRC: UInt32

    var facts: BlockFacts {
        BlockFacts(recordCount: Int(recordCount), size: Int(rawBytes), codec: codec)
    }

    /// `frame` is the skippable frame: its header, followed by the block header. `isExtract`: other
    /// bytes take the place of the frame's header.
    @safe static func read(_ frame: UnsafeRawBufferPointer, isExtract: Bool = false) -> HeadResult {
        guard frame.count >= BlockHeader.frameBytes, isExtract || isStart(frame) else {
            return .bad("not a block header")
        }
        let content = unsafe UnsafeRawBufferPointer(
            rebasing: frame[SkippableFrame.headerBytes..<BlockHeader.frameBytes])
        let expected = content.word(BlockHeader.headerCRC, UInt32.self)
        guard checksum(content, zeroAt: BlockHeader.headerCRC) == expected else {
            return .bad("checksum of the block header")
        }
        let incompat = content.word(BlockHeader.incompat, UInt64.self)
        guard incompat & ~FormatVersion.incompatKnown == 0 else {
            return .newer("features \(incompat)")
        }
        guard let codec = unsafe Codec(rawValue: content[BlockHeader.codec]) else {
            return unsafe .newer("codec \(content[BlockHeader.codec])")
        }
        let head = BlockHead(content, codec: codec)
        guard head.storedBytes <= UInt64(ArchiveLimits.storedMax),
            head.rawBytes <= UInt64(BlockLimits.sizeMax),
            UInt64(head.recordCount) <= head.rawBytes / UInt64(BlockSize.row)
        else { return .bad("sizes of the block") }
        return .good(head)
    }

    /// True for a frame header of the right length followed by the block's magic.
    @safe static func isStart(_ bytes: UnsafeRawBufferPointer) -> Bool {
        bytes.count >= 16 && bytes.word(0, UInt32.self) == SkippableFrame.magicValue
            && bytes.word(4, UInt32.self) == UInt32(BlockHeader.bytes)
            && bytes.word(8, UInt64.self) == BlockHeader.magicValue
    }

    @safe private init(_ content: UnsafeRawBufferPointer, codec: Codec) {
        self.codec = codec
        recordCount = content.word(BlockHeader.recordCount, UInt32.self)
        rawBytes = content.word(BlockHeader.rawBytes, UInt64.self)
        storedBytes = content.word(BlockHeader.storedBytes, UInt64.self)
        timeMin = content.word(BlockHeader.timeMin, UInt64.self)
        timeMax = content.word(BlockHeader.timeMax, UInt64.self)
        writtenMin = content.word(BlockHeader.writtenMin, UInt64.self)
        writtenMax = content.word(BlockHeader.writtenMax, UInt64.self)
        levels = content.word(BlockHeader.levels, UInt32.self)
        kinds = content.word(BlockHeader.kinds, UInt32.self)
        storedCRC = content.word(BlockHeader.storedCRC, UInt32.self)
    }
}

/// Where the read of an archive begins.
struct ArchiveStart: Equatable {
    /// `.max`: nothing is read.
    var block = 0
    /// Rows before the first one at this monotonic time or later are not wanted; 0: all are.
    var monotonicNs: UInt64 = 0

    static let none = ArchiveStart(block: .max)
}
