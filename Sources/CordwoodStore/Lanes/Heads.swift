// The headers of lanes, segments and chunks, copied from bytes that may be damaged (FORMAT §3.1,
// §6.1, §6.2). The initializers check everything that must hold before the rest of the file is
// read.
// SAFETY: the values are copied out of the view by checked loads; none of its memory is kept.

import CShims
import CordwoodCore

/// FORMAT §3.1.
package struct LaneHead: Sendable {
    package let laneID: LaneID
    package let bootID: LaneID
    package let salt: UInt64
    package let processID: UInt32
    package let processStart: UInt64
    package let processNamespace: UInt64
    package let createdRealtime: UInt64
    package let createdMonotonic: UInt64
    package let processName: String
    /// Name of the machine; empty if not known.
    package let hostName: String
    /// Its records are written by pwrite(2).
    package let isWritten: Bool
    package let archivedBelow: UInt64
    package let closed: Bool
    /// And nobody changes it any more but adopters.
    let isLetGo: Bool
    package let adopted: Bool
    /// The owner's lock lives exactly as long as the owner.
    package let lockIsLife: Bool
    let catalogOffset: Int
    let catalogBytes: Int
    let dropsOffset: Int
    let dropsCount: Int
    let segmentOffset: UInt64
    let segmentBytes: UInt64

    @safe package init(_ b: UnsafeRawBufferPointer, path: FilePath) throws(ReadProblem) {
        guard b.count >= 592, Bytes.u64(b, LaneHeader.magic) == LaneHeader.magicValue else {
            throw .damaged("\(path): no lane header")
        }
        try Heads.checkVersion(b, LaneHeader.version, LaneHeader.incompat, path)
        laneID = Bytes.id(b, LaneHeader.laneID)
        bootID = Bytes.id(b, LaneHeader.bootID)
        salt = Bytes.u64(b, LaneHeader.salt)
        processID = Bytes.u32(b, LaneHeader.processID)
        processStart = Bytes.u64(b, LaneHeader.processStart)
        processNamespace = Bytes.u64(b, LaneHeader.processNamespace)
        createdRealtime = Bytes.u64(b, LaneHeader.createdRealtime)
        createdMonotonic = Bytes.u64(b, LaneHeader.createdMonotonic)
        let nameBytes = min(
            Int(Bytes.u16(b, LaneHeader.processNameBytes)), LaneHeader.processNameBytesMax)
        processName = unsafe Bytes.string(
            Bytes.slice(b, LaneHeader.processName, nameBytes) ?? Bytes.none)
        let hostBytes = min(
            Int(Bytes.u16(b, LaneHeader.hostNameBytes)), LaneHeader.hostNameBytesMax)
        hostName = unsafe Bytes.string(
            Bytes.slice(b, LaneHeader.hostName, hostBytes) ?? Bytes.none)
        isWritten = Bytes.u32(b, LaneHeader.written) != 0
        archivedBelow = Bytes.u64(b, LaneHeader.archivedBelow)
        closed = Bytes.u32(b, LaneHeader.closed) != 0
        isLetGo = Bytes.u32(b, LaneHeader.closed) == LaneHeader.closedFinally
        adopted = Bytes.u32(b, LaneHeader.adopted) != 0
        lockIsLife = Bytes.u64(b, LaneHeader.compat) & LaneHeader.compatLockIsLife != 0
        catalogOffset = Int(Bytes.u32(b, LaneHeader.catalogOffset))
        catalogBytes = min(Int(Bytes.u32(b, LaneHeader.catalogBytes)), 1 << 24)
        dropsOffset = Int(Bytes.u32(b, LaneHeader.dropsOffset))
        dropsCount = min(Int(Bytes.u32(b, LaneHeader.dropsCount)), 1_024)
        segmentOffset = UInt64(Bytes.u32(b, LaneHeader.segmentOffset))
        segmentBytes = UInt64(Bytes.u32(b, LaneHeader.segmentBytes))
        guard salt != 0, segmentOffset % 8 == 0 else {
            throw .damaged("\(path): lane header does not hold together")
        }
    }
}

extension LaneHead {
    /// Reads the header of a lane's file; nil if it cannot be read.
    package static func read(_ files: LaneFiles) -> LaneHead? { try? load(files) }

    /// Its process is certainly gone, whoever holds the lane's lock: an adopter at work, or a child
    /// that inherited it.
    package var hasEnded: Bool { hasEnded(runningBoot: BootID.running()) }

    func hasEnded(runningBoot: LaneID) -> Bool {
        hasEnded(runningBoot: runningBoot, namespace: Machine.processNamespace())
    }

    /// namespace: this process's, asked only if it decides.
    func hasEnded(runningBoot: LaneID, namespace: @autoclosure () -> UInt64) -> Bool {
        bootID != .zero && bootID == runningBoot && processNamespace != 0
            && Machine.isGone(processID, startedAt: processStart)
            && processNamespace == namespace()
    }

    /// Throws if it cannot be read.
    static func load(_ files: LaneFiles) throws(ReadProblem) -> LaneHead {
        let file = try ReadFile(path: files.lanePath)
        let page = try file.copy(at: 0, count: LaneHeader.dropsOffsetValue)
        return try unsafe LaneHead(page.bytes, path: files.lanePath)
    }
}

/// FORMAT §6.1, without the clock pairs.
package struct SegmentHead: Sendable {
    package let laneID: LaneID
    package let bootID: LaneID
    package let number: UInt64
    package let generation: UInt32
    package let clockKind: UInt32
    package let salt: UInt64
    package let size: UInt64
    package let createdMonotonic: UInt64
    package let state: UInt32
    let headerBytes: UInt64
    let allocated: UInt64
    let ready: UInt64
    /// End of its last chunk; valid if the segment is sealed.
    let end: UInt64
    /// Checksum of its chunks' headers; likewise.
    let chunksCRC: UInt32
    /// It is sealed, and the checksum of its header does not match.
    let isDamaged: Bool

    @safe package init(_ b: UnsafeRawBufferPointer, path: FilePath) throws(ReadProblem) {
        guard b.count >= SegmentHeader.bytes,
            Bytes.u64(b, SegmentHeader.magic) == SegmentHeader.magicValue
        else { throw .damaged("\(path): no segment header") }
        try Heads.checkVersion(b, SegmentHeader.version, SegmentHeader.incompat, path)
        laneID = Bytes.id(b, SegmentHeader.laneID)
        bootID = Bytes.id(b, SegmentHeader.bootID)
        number = Bytes.u64(b, SegmentHeader.number)
        generation = Bytes.u32(b, SegmentHeader.generation)
        clockKind = Bytes.u32(b, SegmentHeader.clockKind)
        salt = Bytes.u64(b, SegmentHeader.salt)
        size = Bytes.u64(b, SegmentHeader.size)
        createdMonotonic = Bytes.u64(b, SegmentHeader.createdMonotonic)
        state = Bytes.u32(b, SegmentHeader.state)
        headerBytes = UInt64(Bytes.u32(b, SegmentHeader.headerBytes))
        allocated = Bytes.u64(b, SegmentHeader.allocated)
        ready = Bytes.u64(b, SegmentHeader.ready)
        end = Bytes.u64(b, SegmentHeader.end)
        chunksCRC = Bytes.u32(b, SegmentHeader.chunksCRC)
        let crc = unsafe b.baseAddress.map { unsafe Sealer.sealedCRC($0) }
        isDamaged =
            state == SegmentHeader.stateSealed && crc != Bytes.u32(b, SegmentHeader.sealedCRC)
        let sound =
            salt != 0 && size <= Heads.segmentBytesMax
            && headerBytes >= UInt64(SegmentHeader.bytes)
            && headerBytes % UInt64(ChunkHeader.granule) == 0
        guard sound else { throw .damaged("\(path): segment header does not hold together") }
    }
}

/// FORMAT §6.2.
struct ChunkHead: Sendable {
    var committed: UInt32
    let size: UInt32
    let offset: UInt64
    let baseTicks: UInt64
    let threadSerial: UInt32
    let sequence: UInt32
    let threadID: UInt32
    let stream: UInt8
    /// The version of the resource that its records have.
    let resource: UInt16
    let name: (UInt64, UInt64)
    var final: UInt32
    var crc: UInt32

    /// nil if the header is not valid for that segment at that place.
    @safe init?(_ b: UnsafeRawBufferPointer, segment: SegmentHead, at place: UInt64) {
        guard b.count >= ChunkHeader.bytes, Bytes.u64(b, ChunkHeader.salt) == segment.salt else {
            return nil
        }
        self.init(unsalted: b)
        guard offset == place, size > 0, size % UInt32(ChunkHeader.granule) == 0,
            place <= segment.size, UInt64(size) <= segment.size &- place, threadSerial != 0,
            committed >= UInt32(ChunkHeader.bytes), committed <= size
        else { return nil }
        // A damaged `final` cannot serve as a bound: fall back to what the writer committed.
        if final < UInt32(ChunkHeader.bytes) || final > size { final = 0 }
    }

    @safe private init(unsalted b: UnsafeRawBufferPointer) {
        committed = Bytes.u32(b, ChunkHeader.committed)
        size = Bytes.u32(b, ChunkHeader.size)
        offset = Bytes.u64(b, ChunkHeader.offset)
        baseTicks = Bytes.u64(b, ChunkHeader.baseTicks)
        threadSerial = Bytes.u32(b, ChunkHeader.threadSerial)
        sequence = Bytes.u32(b, ChunkHeader.sequence)
        threadID = Bytes.u32(b, ChunkHeader.threadID)
        stream = Bytes.u8(b, ChunkHeader.stream)
        resource = Bytes.u16(b, ChunkHeader.resource)
        name = (
            Bytes.u64(b, ChunkHeader.threadName), Bytes.u64(b, ChunkHeader.threadName &+ 8)
        )
        final = Bytes.u32(b, ChunkHeader.final)
        crc = Bytes.u32(b, ChunkHeader.crc)
    }

    /// Adds its part to the checksum of a sealed segment's chunks (FORMAT §6.1).
    func add(to crc: inout UInt32) {
        var words = (
            UInt64(size) | offset << 32, offset >> 32 | baseTicks << 32,
            baseTicks >> 32 | UInt64(threadSerial) << 32, UInt64(sequence) | UInt64(threadID) << 32,
            UInt64(stream) | UInt64(resource) << 16 | name.0 << 32, name.0 >> 32 | name.1 << 32,
            name.1 >> 32 | UInt64(final) << 32, UInt64(self.crc)
        )
        crc = unsafe withUnsafeBytes(of: &words) {
            unsafe cwi_crc32c(crc, $0.baseAddress!, ChunkHeader.sealedBytes)
        }
    }

    /// The readable end (FORMAT §6.2).
    var end: UInt32 { final != 0 ? final : committed }

    var threadName: String {
        unsafe withUnsafeBytes(of: name) { all in
            let count = unsafe all.firstIndex(of: 0) ?? all.count
            return unsafe String(decoding: all[..<count], as: UTF8.self)
        }
    }
}

enum Heads {
    static let segmentBytesMax: UInt64 = 1 << 30

    @safe static func checkVersion(
        _ b: UnsafeRawBufferPointer, _ version: Int, _ incompat: Int, _ path: FilePath
    ) throws(ReadProblem) {
        let known =
            Bytes.u32(b, version) <= FormatVersion.current
            && Bytes.u64(b, incompat) & ~FormatVersion.incompatKnown == 0
        guard known else { throw .version("\(path): a newer format") }
    }
}
