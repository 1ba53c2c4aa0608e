// Makes a block, and reads it back before anything that it holds is removed elsewhere. The writer
// of an archive owns it.
// SAFETY: the frame's view is used before the next block.

import CordwoodCore

struct BlockMaker: ~Copyable {
    private var encoder: BlockEncoder
    private var decoder = BlockDecoder()
    private let effort: BlockEffort
    private let codec: Codec
    /// The block, after room for its header.
    private(set) var frame = GrowingBytes()
    /// Of the last block.
    private(set) var size = 0
    private(set) var madeEffort = BlockEffort.swift

    /// A larger block is that of one huge record, which gains little and would need several times
    /// its size in memory.
    private static let minedMax = 8 << 20
    /// A larger block takes enough time already.
    private static let compactMax = 1 << 20

    /// nil: out of memory. Blocks of other codecs than zstd are made with effort 0.
    init?(effort: BlockEffort, codec: Codec, level: Int32) {
        guard let encoder = BlockEncoder(level: codec.level(level)) else { return nil }
        self.encoder = encoder
        self.effort = codec == .zstd ? effort : .swift
        self.codec = codec
    }

    /// Makes `frame`: `headerBytes` of zeros for the caller to fill, then the block. `isOnly`: the
    /// only block of its archive, which may take more time for fewer bytes.
    mutating func make(
        _ block: inout Block, headerBytes: Int, isOnly: Bool = false
    ) throws(ArchiveError) {
        var effort = block.bytes > Self.minedMax ? .swift : self.effort
        if effort == .dense, isOnly, block.bytes <= Self.compactMax { effort = .compact }
        while true {
            do throws(BlockProblem) {
                if try isMade(&block, effort, headerBytes) {
                    madeEffort = effort
                    return
                }
                if effort == .swift { throw .damaged }
            } catch {
                guard effort != .swift else {
                    switch error {
                    case .memory: throw .memory
                    case .damaged: throw .limit("a block differs when it is read back")
                    case .unfit: throw .limit("size of a block")
                    }
                }
            }
            // Less memory, and other codecs.
            effort = .swift
        }
    }

    /// False: what was made is not the block.
    private mutating func isMade(
        _ block: inout Block, _ effort: BlockEffort, _ headerBytes: Int
    ) throws(BlockProblem) -> Bool {
        frame.clear(keeping: .max)
        guard let head = unsafe frame.claim(headerBytes) else { throw .memory }
        unsafe head.initializeMemory(as: UInt8.self, repeating: 0, count: headerBytes)
        size = try encoder.encode(&block, effort: effort, codec: codec, into: &frame)
        // Only one of them needs memory for columns at a time.
        swap(&encoder.arena, &decoder.arena)
        defer { swap(&encoder.arena, &decoder.arena) }
        let facts = BlockFacts(
            recordCount: Int(block.summary.recordCount), size: size, codec: codec)
        let stored = unsafe Slice(frame.bytes)
        return try decoder.gives(
            &block, from: stored.part(headerBytes, stored.count - headerBytes), facts)
    }

    /// Stores the block's header (FORMAT §11.2) in the frame at `place`. Returns storedCRC.
    mutating func storeHeader(_ summary: BlockSummary, at place: Int = 0) -> UInt32 {
        let start = place + SkippableFrame.headerBytes
        let content = place + BlockHeader.frameBytes
        let storedCRC = unsafe checksum(frame.bytes, from: content)
        frame.store(SkippableFrame.magicValue, at: place)
        frame.store(UInt32(BlockHeader.bytes), at: place + 4)
        frame.store(BlockHeader.magicValue, at: start + BlockHeader.magic)
        frame.store(madeEffort.rawValue, at: start + BlockHeader.effort)
        frame.store(codec.rawValue, at: start + BlockHeader.codec)
        frame.store(summary.recordCount, at: start + BlockHeader.recordCount)
        frame.store(UInt64(size), at: start + BlockHeader.rawBytes)
        frame.store(UInt64(frame.count - content), at: start + BlockHeader.storedBytes)
        frame.store(summary.timeMin, at: start + BlockHeader.timeMin)
        frame.store(summary.timeMax, at: start + BlockHeader.timeMax)
        frame.store(summary.writtenMin, at: start + BlockHeader.writtenMin)
        frame.store(summary.writtenMax, at: start + BlockHeader.writtenMax)
        frame.store(summary.levels, at: start + BlockHeader.levels)
        frame.store(summary.kinds, at: start + BlockHeader.kinds)
        frame.store(storedCRC, at: start + BlockHeader.storedCRC)
        let header = unsafe UnsafeRawBufferPointer(
            start: frame.base + start, count: BlockHeader.bytes)
        frame.store(checksum(header, from: 0), at: start + BlockHeader.headerCRC)
        return storedCRC
    }

    /// For a head before the block's own header.
    mutating func store<Word: FixedWidthInteger>(_ word: Word, at offset: Int) {
        frame.store(word, at: offset)
    }
}
