// Takes a block apart (FORMAT §11.6): the meta stream, and the leaves in the order of the
// tree. Counts what decoding makes, so that a hostile block stays within FORMAT §11.10. One decoder
// owns it.
// SAFETY: all views are of the inflated frames, which the decoder keeps until the next block.

import CordwoodCore

/// A frame as stored in the file, and its directory entry.
struct StoredFrame {
    var bytes: Slice
    var rawBytes: Int
    var crc: UInt32
}

struct LeafReader {
    /// The place of a plane leaf's bytes: in the pool, or a whole frame.
    private struct Plane {
        var bytes: Slice
        /// nil: in the pool.
        var frame: Int?
        var size: Int
    }

    private var meta: ByteCursor
    /// nil: text leaves are in the pool.
    private var text: ByteCursor?
    private var pool: ByteCursor
    private var duplicates: ByteCursor
    private var duplicatesLeft: UInt64
    /// Number of the next leaf that is a duplicate; nil: none is left.
    private var nextDuplicate: Int?
    private var nextDistance = 0
    private var planes: [Plane] = []
    /// Frames from 2 on.
    private let stored: [StoredFrame]
    /// The content of each frame, if it was needed.
    private var contents: [Slice?]
    private var frame = 0
    private let planeBytes: Int
    private let textBytes: Int
    private var leavesLeft = BlockLimits.leavesMax
    private var valuesLeft: Int
    private(set) var madeLeft: Int
    private var shapeBytesLeft: Int
    private var duplicateBytesLeft: Int

    /// Holds nothing.
    init() {
        stored = []
        contents = []
        planeBytes = 1
        textBytes = .max
        meta = ByteCursor(Bytes.none)
        pool = meta
        duplicates = meta
        duplicatesLeft = 0
        valuesLeft = 0
        madeLeft = 0
        shapeBytesLeft = 0
        duplicateBytesLeft = 0
    }

    /// `frames`: those of large leaves, as stored in the file.
    init(
        pool found: Slice, text textFrame: Slice?, frames: [StoredFrame], metaBytes: Int,
        planeBytes: Int, textBytes: Int, rawBytes: Int
    ) throws(BlockProblem) {
        guard metaBytes <= found.count, planeBytes > 0, textBytes > 0 else { throw .damaged }
        stored = frames
        contents = Array(repeating: nil, count: frames.count)
        self.planeBytes = planeBytes
        self.textBytes = textBytes
        meta = ByteCursor(found.part(0, metaBytes).bytes)
        text = textFrame.map { ByteCursor($0.bytes) }
        duplicates = ByteCursor(found.part(metaBytes, .max).bytes)
        valuesLeft = BlockLimits.valuesMax(rawBytes: rawBytes)
        madeLeft = BlockLimits.madeMax(rawBytes: rawBytes)
        shapeBytesLeft = rawBytes
        duplicateBytesLeft = rawBytes
        guard let count = duplicates.varint(), count <= UInt64(BlockLimits.leavesMax) else {
            throw .damaged
        }
        duplicatesLeft = count
        pool = duplicates
        for _ in 0..<count {
            guard pool.varint() != nil, pool.varint() != nil else { throw .damaged }
        }
        try stepDuplicate(from: 0)
    }

    private mutating func stepDuplicate(from last: Int) throws(BlockProblem) {
        nextDuplicate = nil
        guard duplicatesLeft > 0 else { return }
        let isFirst = last == 0 && planes.isEmpty
        duplicatesLeft -= 1
        guard let step = duplicates.varint(), let distance = duplicates.varint(),
            step <= UInt64(BlockLimits.leavesMax), isFirst || step > 0,
            distance > 0, distance <= UInt64(last) + step
        else { throw .damaged }
        nextDuplicate = last + Int(step)
        nextDistance = Int(distance)
    }

    /// The next byte of the meta stream, which is not consumed.
    var next: UInt8? { meta.first }

    mutating func byte() throws(BlockProblem) -> UInt8 {
        guard let value = meta.byte() else { throw .damaged }
        return value
    }

    /// A varint of the meta stream, which must not exceed `most`.
    mutating func count(_ most: Int) throws(BlockProblem) -> Int {
        guard let value = meta.varint(), value <= UInt64(most) else { throw .damaged }
        return Int(value)
    }

    mutating func zigzag() throws(BlockProblem) -> UInt64 {
        guard let value = meta.zigzag() else { throw .damaged }
        return value
    }

    /// Skips the next text leaf. Its bytes, or the number of the frame that is the leaf.
    mutating func takeText() throws(BlockProblem) -> (bytes: Slice, frame: Int?) {
        let size = try count(BlockLimits.contentMax)
        guard leavesLeft > 0 else { throw .damaged }
        leavesLeft -= 1
        if size >= textBytes {
            guard frame < stored.count, stored[frame].rawBytes == size else { throw .damaged }
            frame += 1
            return (Slice(Bytes.none), frame - 1)
        }
        let found =
            text == nil
            ? unsafe pool.bytes(UInt64(size)).map { Slice($0) }
            : unsafe text?.bytes(UInt64(size)).map { Slice($0) }
        guard let found else { throw .damaged }
        return (found, nil)
    }

    /// The frame, if it is not inflated yet.
    func missing(frame: Int) -> StoredFrame? { contents[frame] == nil ? stored[frame] : nil }

    /// The bytes of a frame that is inflated, or of a leaf in the text.
    func text(_ bytes: Slice, _ frame: Int?) -> Slice { frame.flatMap { contents[$0] } ?? bytes }

    /// Skips the next plane leaf, which has that size; returns its number.
    mutating func take(plane size: Int) throws(BlockProblem) -> Int {
        let found: Plane
        if nextDuplicate == planes.count {
            found = planes[planes.count - nextDistance]
            guard found.size == size, size <= duplicateBytesLeft else { throw .damaged }
            duplicateBytesLeft -= size
            try stepDuplicate(from: planes.count)
        } else if size >= planeBytes {
            guard frame < stored.count, stored[frame].rawBytes == size else { throw .damaged }
            found = Plane(bytes: Slice(Bytes.none), frame: frame, size: size)
            frame += 1
        } else {
            guard let bytes = pool.bytes(UInt64(size)) else { throw .damaged }
            found = Plane(bytes: Slice(bytes), frame: nil, size: size)
        }
        guard leavesLeft > 0 else { throw .damaged }
        leavesLeft -= 1
        planes.append(found)
        return planes.count - 1
    }

    /// The frame that the plane needs and that is not inflated yet.
    func missing(_ number: Int) -> (frame: Int, stored: StoredFrame)? {
        guard let frame = planes[number].frame, contents[frame] == nil else { return nil }
        return (frame, stored[frame])
    }

    mutating func put(_ content: Slice, frame: Int) { contents[frame] = content }

    /// The memory of what was inflated is used for something else.
    mutating func forget() {
        for frame in contents.indices { contents[frame] = nil }
    }

    /// The bytes of a plane, whose frame is inflated.
    func plane(_ number: Int) -> Slice {
        let plane = planes[number]
        return plane.frame.flatMap { contents[$0] } ?? plane.bytes
    }

    /// Call before allocating memory for so many values of one codec.
    mutating func takeValues(_ count: Int, depth: Int) throws(BlockProblem) {
        guard count >= 0, count <= valuesLeft, depth <= BlockLimits.depthMax else {
            throw .damaged
        }
        valuesLeft -= count
    }

    /// Call before looking at columns that have so many values together; they are taken when each
    /// column is read.
    func check(values sizes: Flat<Int>) throws(BlockProblem) {
        var sum = 0
        for index in 0..<sizes.count { sum &+= sizes[index] }
        guard sum <= valuesLeft else { throw .damaged }
    }

    /// Call before allocating memory for so many bytes of strings.
    mutating func takeMade(_ bytes: Int) throws(BlockProblem) {
        guard bytes >= 0, bytes <= madeLeft else { throw .damaged }
        madeLeft -= bytes
    }

    /// Call before looking at a shape of so many bytes.
    mutating func takeShape(_ bytes: Int) throws(BlockProblem) {
        guard bytes <= shapeBytesLeft else { throw .damaged }
        shapeBytesLeft -= bytes
    }

    /// Everything was used.
    var isSpent: Bool {
        meta.left | (text?.left ?? 0) | pool.left == 0 && frame == stored.count
            && nextDuplicate == nil && duplicatesLeft == 0
    }
}
