// The frames of a block (FORMAT §11.6): packs leaves into a directory and frames, and opens them
// again. Packer and opener keep a zstd context each; one thread at a time.
// SAFETY: a context is freed once, in deinit; zstd gets the reserved room as its bound, and frames
// by their count.

import CZstd
import CordwoodCore

/// The result of encoding: the meta stream, and the bytes of all leaves in the order of the tree.
struct LeafWriter: ~Copyable {
    struct Leaf {
        var offset: Int
        var count: Int
        var isText: Bool
    }

    var meta = GrowingBytes()
    var data = GrowingBytes()
    private(set) var leaves: [Leaf] = []
    var failed: Bool { meta.failed || data.failed }

    private static let bytesKept = 16 << 20

    /// Empties it for the next block.
    mutating func clear() {
        meta.clear(keeping: Self.bytesKept)
        data.clear(keeping: Self.bytesKept)
        leaves.removeAll(keepingCapacity: true)
    }

    /// Room for a leaf, which the caller fills at once; its length goes to the meta stream.
    mutating func text(_ count: Int) throws(BlockProblem) -> UnsafeMutableRawPointer {
        meta.append(varint: UInt64(count))
        return unsafe try leaf(count, isText: true)
    }

    mutating func text(_ bytes: Slice) throws(BlockProblem) {
        let target = unsafe try text(bytes.count)
        _ = unsafe bytes.copy(to: target)
    }

    mutating func plane(_ count: Int) throws(BlockProblem) -> UnsafeMutableRawPointer {
        unsafe try leaf(count, isText: false)
    }

    private mutating func leaf(
        _ count: Int, isText: Bool
    ) throws(BlockProblem) -> UnsafeMutableRawPointer {
        leaves.append(Leaf(offset: data.count, count: count, isText: isText))
        guard let room = unsafe data.claim(count) else { throw .memory }
        return unsafe room
    }

    struct Mark {
        fileprivate var meta: Int
        fileprivate var data: Int
        fileprivate var leaves: Int
    }

    var mark: Mark { Mark(meta: meta.count, data: data.count, leaves: leaves.count) }

    /// Drops what was written since.
    mutating func cut(to mark: Mark) {
        meta.resize(mark.meta)
        data.resize(mark.data)
        leaves.removeSubrange(mark.leaves...)
    }

    func bytes(_ leaf: Leaf) -> Slice {
        unsafe Slice(start: data.base + leaf.offset, count: leaf.count)
    }
}

@safe struct BlockPacker: ~Copyable {
    private let context: OpaquePointer?
    private let level: Int32
    private let textLevel: Int32
    private var pool = GrowingBytes()
    private var text = GrowingBytes()
    private var trial = GrowingBytes()
    /// Takes more time for fewer bytes: choices are measured, not estimated, and the frames of a
    /// small block are made as small as possible, at twenty times the time per byte.
    var isThorough = false

    /// Shorter planes share a frame.
    static let planeBytes = 1_024
    /// Text repays a higher level than planes.
    private static let textLevelLeast: Int32 = 6
    private static let smallBytes = 256 << 10
    private static let smallTableLog: Int32 = 15
    /// Blocks between two checks of what matches save.
    private static let lookPeriod = 16
    /// Matches are sought if they reduce planes to less than this many hundredths.
    private static let matchesGain = 99
    private static let thoroughLevel: Int32 = 14
    /// Blocks with more column bytes are made as usual: the time spent once per archive is bounded.
    private static let thoroughBytes = 192 << 10
    /// Shorter planes are not deduplicated.
    private static let duplicateBytesLeast = 64

    /// Most planes' bytes come in no order. zstd's matches then cost more bytes than they save, and
    /// make reading three times as slow. So symbols alone are tried first, and matches only while
    /// the archive's planes repay them.
    private var seeksMatches = true
    private var blocksUntilLook = 0

    /// nil: out of memory. `level`: of the blocks' codec.
    init?(level: Int32) {
        self.level = level
        textLevel = max(level, Self.textLevelLeast)
        guard let made = unsafe ZSTD_createCCtx() else {
            unsafe context = nil
            return nil
        }
        unsafe context = made
        unsafe ZSTD_CCtx_setParameter(made, ZSTD_c_contentSizeFlag, 1)
        unsafe ZSTD_CCtx_setParameter(made, ZSTD_c_checksumFlag, 0)
    }

    deinit {
        if let context = unsafe context { unsafe ZSTD_freeCCtx(context) }
    }

    /// How leaves become frames.
    private struct Plan {
        var planeBytes = BlockPacker.planeBytes
        /// Text leaves of at least this length get frames of their own.
        var textBytes = UInt32.max
        var codec = Codec.zstd
        /// One look at each frame.
        var isSwift = false
        /// The pool has the text leaves, too.
        var isOneFrame = false
    }

    /// Appends the directory and the frames.
    mutating func pack(
        _ leaves: borrowing LeafWriter, _ effort: BlockEffort, _ codec: Codec,
        to out: inout GrowingBytes
    ) throws(BlockProblem) {
        var plan = Plan(codec: codec, isSwift: effort == .swift)
        if leaves.data.count < Self.oneFrameBytes {
            plan.isOneFrame = true
            plan.planeBytes = Int(Int32.max)
        } else if plan.isSwift, leaves.data.count < Self.framesBytes {
            plan.planeBytes = Int(Int32.max)
        } else {
            if plan.isSwift { plan.planeBytes = Self.swiftPlaneBytes }
            plan.textBytes = UInt32(plan.isSwift ? Self.swiftTextBytes : Self.textBytes)
        }
        try pack(leaves, plan, to: &out)
    }

    /// Of all leaves. A second frame would cost more than it saves.
    private static let oneFrameBytes = 2 << 10
    /// Likewise, for frames of single leaves at effort 0.
    private static let framesBytes = 128 << 10
    private static let swiftPlaneBytes = 4 << 10
    private static let swiftTextBytes = 16 << 10
    /// Spares a copy of the text of a huge record.
    private static let textBytes = 2 << 20

    private mutating func pack(
        _ leaves: borrowing LeafWriter, _ plan: Plan, to out: inout GrowingBytes
    ) throws(BlockProblem) {
        guard leaves.leaves.count <= BlockLimits.leavesMax,
            leaves.meta.count <= BlockLimits.metaMax
        else { throw .unfit }
        var plan = plan
        var large = try gather(leaves, plan)
        if plan.isSwift, large.count > BlockLimits.framesMax - 2 {
            // Very many columns: each is small beside the block.
            (plan.planeBytes, plan.textBytes) = (Int(Int32.max), .max)
            large = try gather(leaves, plan)
        }
        let frames = plan.isOneFrame ? 1 : 2 + large.count
        guard frames <= BlockLimits.framesMax,
            pool.count + leaves.data.count <= BlockLimits.contentMax
        else { throw .unfit }

        let columnBytes = large.reduce(pool.count + text.count) { $0 + $1.count }
        let least = isThorough && columnBytes <= Self.thoroughBytes ? Self.thoroughLevel : level
        let start = out.count
        let content = BlockDirectory.bytes + frames * BlockFrame.bytes + BlockDirectory.crcBytes
        guard unsafe out.claim(SkippableFrame.headerBytes + content) != nil else { throw .memory }
        let directory = start + SkippableFrame.headerBytes
        if plan.isSwift || plan.codec != .zstd {
            try packSwiftly(large, leaves, plan, directory, &out)
        } else {
            let poolLevel = max(plan.isOneFrame ? textLevel : level, least)
            try pack(unsafe Slice(pool.bytes), poolLevel, directory, 0, &out)
            if !plan.isOneFrame {
                try pack(unsafe Slice(text.bytes), max(textLevel, least), directory, 1, &out)
            }
            try pack(large, leaves, max(level, least), directory, &out)
        }
        out.store(SkippableFrame.magicValue, at: start)
        out.store(UInt32(content), at: start + 4)
        let flags = plan.isSwift ? 0 : BlockDirectory.flagOfLettersValue
        out.store(BlockDirectory.magicValue, at: directory + BlockDirectory.magic)
        out.store(UInt16(flags), at: directory + BlockDirectory.flags)
        out.store(UInt16(frames), at: directory + BlockDirectory.frameCount)
        out.store(UInt32(leaves.meta.count), at: directory + BlockDirectory.metaBytes)
        out.store(UInt32(plan.planeBytes), at: directory + BlockDirectory.planeBytes)
        out.store(plan.textBytes, at: directory + BlockDirectory.textBytes)
        let summed = content - BlockDirectory.crcBytes
        let crc = Checksum.crc(unsafe Slice(out.bytes).part(directory, summed).bytes)
        out.store(crc, at: directory + summed)
    }

    /// All frames, each compressed once.
    private mutating func packSwiftly(
        _ large: [LeafWriter.Leaf], _ leaves: borrowing LeafWriter, _ plan: Plan,
        _ directory: Int, _ out: inout GrowingBytes
    ) throws(BlockProblem) {
        try packSwiftly(unsafe Slice(pool.bytes), plan, directory, 0, &out)
        if !plan.isOneFrame {
            try packSwiftly(unsafe Slice(text.bytes), plan, directory, 1, &out)
        }
        for (index, leaf) in large.enumerated() {
            let bytes = leaves.bytes(leaf)
            if plan.codec == .zstd, !leaf.isText {
                try pack(bytes, Self.symbolsOnly, directory, 2 + index, &out)
            } else {
                try packSwiftly(bytes, plan, directory, 2 + index, &out)
            }
        }
    }

    private mutating func packSwiftly(
        _ content: Slice, _ plan: Plan, _ directory: Int, _ index: Int,
        _ out: inout GrowingBytes
    ) throws(BlockProblem) {
        let codec = plan.codec
        if codec == .zstd { return try pack(content, level, directory, index, &out) }
        let start = out.count
        guard codec.append(content.bytes, level: level, to: &out) else { throw .memory }
        enter(content, out.count - start, directory, index, &out)
    }

    /// The approximate size in a block of the leaves since `mark`.
    mutating func size(
        of leaves: borrowing LeafWriter, from mark: LeafWriter.Mark
    ) throws(BlockProblem) -> Int {
        pool.removeAll()
        text.removeAll()
        var size = 0
        unsafe pool.append(
            Slice(leaves.meta.bytes).part(mark.meta, leaves.meta.count - mark.meta).bytes)
        for leaf in leaves.leaves[mark.leaves...] {
            if leaf.isText {
                text.append(leaves.bytes(leaf).bytes)
            } else if leaf.count < Self.planeBytes {
                pool.append(leaves.bytes(leaf).bytes)
            } else {
                size += try frameBytes(leaves.bytes(leaf), level)
            }
        }
        size += unsafe try frameBytes(Slice(pool.bytes), level)
        return size + (unsafe try frameBytes(Slice(text.bytes), textLevel))
    }

    private mutating func frameBytes(_ content: Slice, _ level: Int32) throws(BlockProblem) -> Int {
        trial.removeAll()
        return unsafe try Self.compress(context, content, level, to: &trial) + BlockFrame.bytes
    }

    /// The compressed size of `content` at the level of planes; nil: out of memory.
    mutating func packedBytes(_ content: Slice) -> Int? {
        trial.removeAll()
        return unsafe try? Self.compress(context, content, level, to: &trial)
    }

    /// The size of a plane as a frame.
    mutating func planeBytes(_ content: Slice) throws(BlockProblem) -> Int {
        trial.removeAll()
        let symbols = unsafe try Self.compress(context, content, Self.symbolsOnly, to: &trial)
        trial.removeAll()
        return unsafe min(try Self.compress(context, content, level, to: &trial), symbols)
    }

    /// Used in place of a level: zstd finds few matches and takes only long ones.
    private static let symbolsOnly: Int32 = 0
    private static let symbolsTableLog: Int32 = 6
    private static let symbolsMatch: Int32 = 7

    /// Appends one frame; returns its size.
    private static func compress(
        _ context: OpaquePointer?, _ content: Slice, _ level: Int32, to out: inout GrowingBytes
    ) throws(BlockProblem) -> Int {
        let bound = ZSTD_compressBound(content.count)
        guard out.reserve(bound) else { throw .memory }
        // Small tables: the first use of large ones costs more than they save.
        let isSmall = level <= textLevelLeast && content.count <= smallBytes
        let isSymbols = level == symbolsOnly
        let tableLog = isSymbols ? symbolsTableLog : isSmall ? smallTableLog : 0
        unsafe ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, isSymbols ? 1 : level)
        unsafe ZSTD_CCtx_setParameter(context, ZSTD_c_hashLog, tableLog)
        unsafe ZSTD_CCtx_setParameter(context, ZSTD_c_minMatch, isSymbols ? symbolsMatch : 0)
        let size = unsafe ZSTD_compress2(
            context, out.base + out.count, bound, content.start, content.count)
        guard ZSTD_isError(size) == 0 else { throw .memory }
        out.resize(out.count + size)
        return size
    }

    /// Fills pool and text; returns the leaves that get their own frames.
    private mutating func gather(
        _ leaves: borrowing LeafWriter, _ plan: Plan
    ) throws(BlockProblem) -> [LeafWriter.Leaf] {
        pool.clear(keeping: 8 << 20)
        text.clear(keeping: 8 << 20)
        // Of planes, in their order.
        var distances: [Int] = []
        var seen: [UInt32: Int] = [:]
        var planes: [LeafWriter.Leaf] = []
        for leaf in leaves.leaves where !leaf.isText {
            let bytes = leaves.bytes(leaf)
            var distance = 0
            if leaf.count >= Self.duplicateBytesLeast, !plan.isSwift {
                let sum = Checksum.crc(bytes.bytes)
                if let known = seen[sum], leaves.bytes(planes[known]).isSame(bytes) {
                    distance = planes.count - known
                } else {
                    seen[sum] = planes.count
                }
            }
            planes.append(leaf)
            distances.append(distance)
        }
        unsafe pool.append(leaves.meta.bytes)
        pool.append(varint: UInt64(distances.reduce(0) { $0 + ($1 > 0 ? 1 : 0) }))
        var last = 0
        for (index, distance) in distances.enumerated() where distance > 0 {
            pool.append(varint: UInt64(index - last))
            pool.append(varint: UInt64(distance))
            last = index
        }
        var large: [LeafWriter.Leaf] = []
        var plane = 0
        for leaf in leaves.leaves {
            if leaf.isText {
                if leaf.count >= plan.textBytes {
                    large.append(leaf)
                } else if plan.isOneFrame {
                    pool.append(leaves.bytes(leaf).bytes)
                } else {
                    text.append(leaves.bytes(leaf).bytes)
                }
                continue
            }
            if distances[plane] == 0 {
                if leaf.count >= plan.planeBytes {
                    large.append(leaf)
                } else {
                    pool.append(leaves.bytes(leaf).bytes)
                }
            }
            plane += 1
        }
        if pool.failed || text.failed {
            throw .memory
        }
        return large
    }

    private func pack(
        _ content: Slice, _ level: Int32, _ directory: Int, _ index: Int,
        _ out: inout GrowingBytes
    ) throws(BlockProblem) {
        let size = unsafe try Self.compress(context, content, level, to: &out)
        enter(content, size, directory, index, &out)
    }

    /// The large leaves, from frame 2 on.
    private mutating func pack(
        _ large: [LeafWriter.Leaf], _ leaves: borrowing LeafWriter, _ level: Int32,
        _ directory: Int, _ out: inout GrowingBytes
    ) throws(BlockProblem) {
        let isLook = blocksUntilLook == 0
        var (symbolBytes, leastBytes) = (0, 0)
        for (index, leaf) in large.enumerated() {
            let content = leaves.bytes(leaf)
            if leaf.isText {
                try pack(content, max(textLevel, level), directory, 2 + index, &out)
                continue
            }
            let start = out.count
            let symbols = unsafe try Self.compress(context, content, Self.symbolsOnly, to: &out)
            var size = symbols
            if isLook || seeksMatches {
                trial.removeAll()
                let found = unsafe try Self.compress(context, content, level, to: &trial)
                if found < size {
                    out.resize(start)
                    unsafe out.append(trial.bytes)
                    size = found
                }
            }
            symbolBytes += symbols
            leastBytes += size
            enter(content, size, directory, 2 + index, &out)
        }
        if isLook { seeksMatches = leastBytes * 100 < symbolBytes * Self.matchesGain }
        blocksUntilLook = isLook ? Self.lookPeriod - 1 : blocksUntilLook - 1
    }

    /// Enters the frame at the end of `out` into the directory.
    private func enter(
        _ content: Slice, _ size: Int, _ directory: Int, _ index: Int, _ out: inout GrowingBytes
    ) {
        let crc = Checksum.crc(unsafe Slice(out.bytes).part(out.count - size, size).bytes)
        let entry = directory + BlockDirectory.entries + index * BlockFrame.bytes
        out.store(UInt32(size), at: entry + BlockFrame.storedBytes)
        out.store(UInt32(content.count), at: entry + BlockFrame.rawBytes)
        out.store(crc, at: entry + BlockFrame.crc)
    }
}

@safe struct BlockOpener: ~Copyable {
    private var decompressor = BlockDecompressor()
    private var codec = Codec.zstd
    /// Since it was made.
    private(set) var inflatedBytes = 0

    init() {}

    struct Opened {
        var leaves: LeafReader
        /// What has the text leaves, but for those in frames of their own.
        var text: Slice
        /// FORMAT §11.6, bit 0 of the flags.
        var hasLetters: Bool
        /// The letters are in `text`.
        var hasAllTexts: Bool
    }

    /// Inflates pool and text into the arena. `stored`: the directory and the frames.
    mutating func open(
        _ stored: Slice, rawBytes: Int, codec: Codec = .zstd, into arena: inout Arena
    ) throws(BlockProblem) -> Opened {
        self.codec = codec
        let bytes = stored.bytes
        guard stored.count >= SkippableFrame.headerBytes,
            Bytes.u32(bytes, 0) == SkippableFrame.magicValue
        else { throw .damaged }
        let content = Int(Bytes.u32(bytes, 4))
        let least = BlockDirectory.bytes + BlockDirectory.crcBytes
        guard content >= least, content <= stored.count - SkippableFrame.headerBytes else {
            throw .damaged
        }
        let directory = stored.part(SkippableFrame.headerBytes, content)
        let summed = directory.part(0, content - BlockDirectory.crcBytes)
        guard Checksum.crc(summed.bytes) == Bytes.u32(directory.bytes, summed.count),
            Bytes.u64(directory.bytes, BlockDirectory.magic) == BlockDirectory.magicValue
        else { throw .damaged }
        let count = Int(Bytes.u16(directory.bytes, BlockDirectory.frameCount))
        guard count >= 1, count <= BlockLimits.framesMax,
            BlockDirectory.entries + count * BlockFrame.bytes <= summed.count
        else { throw .damaged }
        try check(directory, count, stored.count - SkippableFrame.headerBytes - content)

        var frames: [StoredFrame] = []
        var at = SkippableFrame.headerBytes + content
        for index in 0..<count {
            let entry = BlockDirectory.entries + index * BlockFrame.bytes
            let size = Int(Bytes.u32(directory.bytes, entry + BlockFrame.storedBytes))
            let raw = Int(Bytes.u32(directory.bytes, entry + BlockFrame.rawBytes))
            let crc = Bytes.u32(directory.bytes, entry + BlockFrame.crc)
            frames.append(StoredFrame(bytes: stored.part(at, size), rawBytes: raw, crc: crc))
            at += size
        }
        let pool = try inflate(frames[0], into: &arena)
        let text = count > 1 ? try inflate(frames[1], into: &arena) : nil
        let metaBytes = Int(Bytes.u32(directory.bytes, BlockDirectory.metaBytes))
        guard metaBytes <= BlockLimits.metaMax else { throw .damaged }
        let planeBytes = Int(Bytes.u32(directory.bytes, BlockDirectory.planeBytes))
        let textBytes = Int(Bytes.u32(directory.bytes, BlockDirectory.textBytes))
        let hasLetters =
            directory[BlockDirectory.flags] & BlockDirectory.flagOfLettersValue != 0
        return Opened(
            leaves: try LeafReader(
                pool: pool, text: text, frames: Array(frames.dropFirst(2)), metaBytes: metaBytes,
                planeBytes: planeBytes, textBytes: textBytes, rawBytes: rawBytes),
            text: text ?? pool, hasLetters: hasLetters,
            hasAllTexts: hasLetters
                && frames.dropFirst(2).allSatisfy { $0.rawBytes < textBytes })
    }

    /// Checks the sizes of all frames before memory for any is allocated.
    private func check(_ directory: Slice, _ count: Int, _ available: Int) throws(BlockProblem) {
        var stored = 0
        var raw = 0
        for index in 0..<count {
            let entry = BlockDirectory.entries + index * BlockFrame.bytes
            let size = Int(Bytes.u32(directory.bytes, entry + BlockFrame.storedBytes))
            let content = Int(Bytes.u32(directory.bytes, entry + BlockFrame.rawBytes))
            guard content / BlockLimits.ratioMax <= size else { throw .damaged }
            stored += size
            raw += content
        }
        guard stored == available, raw <= BlockLimits.contentMax else { throw .damaged }
    }

    mutating func inflate(
        _ stored: StoredFrame, into arena: inout Arena
    ) throws(BlockProblem) -> Slice {
        let room = unsafe try arena.allocate(stored.rawBytes)
        unsafe try inflate(stored, to: room)
        return unsafe Slice(start: room, count: stored.rawBytes)
    }

    /// SAFETY: `room` has room for the frame's content.
    mutating func inflate(
        _ stored: StoredFrame, to room: UnsafeMutableRawPointer
    ) throws(BlockProblem) {
        guard Checksum.crc(stored.bytes.bytes) == stored.crc else { throw .damaged }
        guard decompressor.isReady(codec) else { throw .memory }
        guard
            unsafe decompressor.inflate(
                stored.bytes.bytes, codec: codec, raw: stored.rawBytes, into: room)
        else { throw .damaged }
        inflatedBytes &+= stored.rawBytes
    }
}
