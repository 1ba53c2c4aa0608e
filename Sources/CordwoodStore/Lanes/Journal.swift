// The copies that a lane made for machine durability (FORMAT §10). They are read only after the
// machine itself went down: they tell which bytes of which chunks were durable, and supply them.
// Frames are checked once, and read again when their chunk is needed.
// SAFETY: views of a ReadBuffer are consumed before it is filled again.

import CordwoodCore

final class Journal {
    struct Frame {
        let kind: UInt32
        let segment: UInt64
        let chunk: UInt64
        let from: Int
        let to: Int
        /// Offset of the frame in the file.
        let offset: UInt64
        let length: Int
    }

    private(set) var frames: [Frame] = []
    /// A hostile journal may have a million frames, so no code scans all of them for one segment.
    private var chunkFramesOf: [UInt64: [Frame]] = [:]
    private var latestHeader: [HeaderKey: Frame] = [:]

    private struct HeaderKey: Hashable {
        var kind: UInt32
        var segment: UInt64
    }
    let laneID: LaneID
    private let file: ReadFile

    /// Its file was removed while it was closed.
    var isGone: Bool { file.isGone }

    init(path: FilePath, pool: OpenFiles? = nil) throws(ReadProblem) {
        file = try ReadFile(path: path, pool: pool)
        let head = try file.copy(at: 0, count: JournalHeader.bytes)
        guard head.count == JournalHeader.bytes,
            unsafe Bytes.u64(head.bytes, JournalHeader.magic) == JournalHeader.magicValue
        else { throw .damaged("\(path): no journal header") }
        guard unsafe Bytes.u32(head.bytes, JournalHeader.version) <= FormatVersion.current else {
            throw .version("\(path): a newer format")
        }
        laneID = unsafe Bytes.id(head.bytes, JournalHeader.laneID)
        try unsafe index(salt: Bytes.u64(head.bytes, JournalHeader.salt))
    }

    private func index(salt: UInt64) throws(ReadProblem) {
        let size = file.size
        var offset = UInt64(JournalHeader.bytes)
        let buffer = ReadBuffer()
        while offset < size, size &- offset >= UInt64(JournalFrame.headerBytes) {
            try buffer.fill(from: file, at: offset, count: JournalFrame.headerBytes)
            let length = unsafe Int(Bytes.u32(buffer.bytes, JournalFrame.length))
            guard salt != 0, unsafe Bytes.u64(buffer.bytes, JournalFrame.salt) == salt,
                length >= JournalFrame.headerBytes, UInt64(length) <= size &- offset
            else { return }
            try buffer.append(
                from: file, at: offset &+ UInt64(JournalFrame.headerBytes),
                count: length &- JournalFrame.headerBytes)
            guard let covered = unsafe Bytes.slice(buffer.bytes, 16, length &- 16),
                unsafe Checksum.crc(covered) == Bytes.u32(buffer.bytes, JournalFrame.crc)
            else { return }
            unsafe add(frame(buffer.bytes, offset, length))
            offset &+= UInt64((length &+ 7) & ~7)
        }
    }

    @safe private func frame(_ b: UnsafeRawBufferPointer, _ offset: UInt64, _ length: Int) -> Frame
    {
        Frame(
            kind: Bytes.u32(b, JournalFrame.kind), segment: Bytes.u64(b, JournalFrame.segment),
            chunk: Bytes.u64(b, JournalFrame.chunk), from: Int(Bytes.u32(b, JournalFrame.from)),
            to: Int(Bytes.u32(b, JournalFrame.to)), offset: offset, length: length)
    }

    /// The bytes that a frame carries; empty if the file has changed since.
    func content(_ frame: Frame) throws(ReadProblem) -> ReadBuffer {
        try file.copy(
            at: frame.offset &+ UInt64(JournalFrame.bytes),
            count: frame.length &- JournalFrame.bytes)
    }

    /// The first 64 bytes of the chunk's header as the frame has it; the rest is empty.
    func chunkHeader(_ frame: Frame) throws(ReadProblem) -> ReadBuffer {
        let header = try file.copy(
            at: frame.offset &+ UInt64(JournalFrame.chunkHeader), count: 64)
        try header.extend(to: ChunkHeader.bytes)
        return header
    }

    /// Writes the header and those frames to another file. False: they cannot be read or written.
    func copy(to descriptor: Int32, where isWanted: (Frame) -> Bool) -> Bool {
        func write(_ offset: UInt64, _ count: Int) -> Bool {
            guard let part = try? file.copy(at: offset, count: count), part.count == count else {
                return false
            }
            return unsafe Files.write(descriptor, part.bytes) == 0
        }
        guard write(0, JournalHeader.bytes) else { return false }
        // What fills a frame up to a multiple of 8 is in the file, too.
        return frames.allSatisfy { !isWanted($0) || write($0.offset, ($0.length &+ 7) & ~7) }
    }

    private func add(_ frame: Frame) {
        frames.append(frame)
        if frame.kind == JournalFrame.kindChunk {
            chunkFramesOf[frame.segment, default: []].append(frame)
        } else {
            latestHeader[HeaderKey(kind: frame.kind, segment: frame.segment)] = frame
        }
    }

    /// The latest copy of a lane's or a segment's header.
    func header(kind: UInt32, segment: UInt64) throws(ReadProblem) -> ReadBuffer? {
        guard let frame = latestHeader[HeaderKey(kind: kind, segment: segment)] else { return nil }
        return try content(frame)
    }

    func hasSegment(_ number: UInt64) -> Bool {
        latestHeader[HeaderKey(kind: JournalFrame.kindSegmentHeader, segment: number)] != nil
    }

    func chunkFrames(segment: UInt64) -> [Frame] { chunkFramesOf[segment] ?? [] }
}
