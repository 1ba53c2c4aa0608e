// Claims a chunk: settles the old one, takes the next bytes of the lane's current segment with one
// fetch-and-add, writes the header (salt last), publishes, and checks again that the segment is
// still open. Lock-free, no heap; safe in signal handlers. docs/CONCURRENCY.md, A2–A5, A10.
// SAFETY: the chunk lies within the segment because the claimed range is checked against its size,
// and `grow` has given it blocks; `busy` keeps the mapping from being released.

import CShims
import Glibc

typealias SegmentBlock = UnsafeMutablePointer<cwi_segment>
typealias LaneBlock = UnsafeMutablePointer<cwi_lane>

enum Claim {
    /// Room that a chunk's own context, trace and gap records may take.
    static let preambleBytesMax = 16 + ThreadContext.bytesMax + 48 + 64

    /// Makes `bytes` fit below the thread's limit.
    static func makeRoom(_ thread: ThreadBlock, _ engine: EngineBlock, bytes: Int) -> Int32 {
        let limit = unsafe Int(
            truncatingIfNeeded: cwa_load_relaxed_u64(AppendPath.limitWord(thread)))
        if let ptr = unsafe thread.pointee.ptr, limit - Int(bitPattern: ptr) >= bytes {
            return Status.ok
        }
        _ = unsafe Settle.own(thread)
        if unsafe thread.pointee.depth == 0 { cwi_crash_thread_logs() }
        let status = unsafe takeChunk(thread, engine, bytes)
        // The thread leaves without a chunk and holds no segment.
        if status != Status.ok { unsafe ThreadBlocks.setSegment(thread, nil) }
        return status
    }

    private static func takeChunk(
        _ thread: ThreadBlock, _ engine: EngineBlock, _ bytes: Int
    ) -> Int32 {
        for _ in 0..<64 {
            guard let lane = unsafe Lanes.ready(engine, waits: thread.pointee.depth == 0) else {
                return unsafe Lanes.whyNot(engine)
            }
            guard let segment = unsafe hold(thread, lane) else { return Status.full }
            // Once the engine has left a lane, another lane may own the slot (A36).
            guard unsafe engine.pointee.lane == lane else { continue }
            switch unsafe claim(thread, engine, lane, segment, bytes) {
            case .done: return Status.ok
            case .segmentFull:
                // The size was lowered after the record was cut to it, so no later segment will
                // hold it.
                guard unsafe bytes <= AppendSlow.appendBytesMax(engine) else { return Status.full }
                let status = unsafe Segments.publishNext(engine, lane, after: segment, thread)
                guard status == Status.ok else { return status }
            case .again: continue
            case .noSpace: return Status.full
            }
        }
        return Status.full
    }

    /// Names the lane's current segment in the thread's block. While it is named there and the
    /// thread is busy, no thread unmaps it or reuses its file. nil: there is no such segment.
    private static func hold(_ thread: ThreadBlock, _ lane: LaneBlock) -> SegmentBlock? {
        // Retries only if another thread has published the next segment meanwhile.
        while let segment = unsafe current(lane) {
            unsafe ThreadBlocks.setSegment(thread, segment)
            // A compiler fence, or a full one where membarrier is missing: either the releasing
            // thread finds the segment in our block, or we find that another one is current (R6,
            // R7).
            Membarrier.lightFence()
            if unsafe current(lane) == segment { return unsafe segment }
        }
        return nil
    }

    private enum Outcome { case done, segmentFull, again, noSpace }

    private static func claim(
        _ thread: ThreadBlock, _ engine: EngineBlock, _ lane: LaneBlock, _ segment: SegmentBlock,
        _ bytes: Int
    ) -> Outcome {
        let least = unsafe roundUp(bytes + ChunkHeader.bytes + preambleBytes(thread, lane))
        let wanted = unsafe max(least, size(thread, lane, segment))
        if unsafe Lost.isLost(segment) { return .segmentFull }
        if unsafe WriteThrough.isOn(engine) && Segments.isRefused(lane) { return .noSpace }
        // In a child forked by a handler that interrupted a claim, the parent's segments are gone.
        guard let start = unsafe segment.pointee.base else { return .again }
        let base = UnsafeMutableRawPointer(start)
        let allocated = unsafe cwa_load_relaxed_u64(base + SegmentHeader.allocated)
        guard unsafe allocated < segment.pointee.size else { return .segmentFull }
        let left = unsafe segment.pointee.size - allocated
        guard UInt64(least) <= left else { return .segmentFull }
        let bytes = min(UInt64(wanted), left)
        // Check before taking: a failed claim on a full disk must not use up the segment.
        guard unsafe Segments.grow(engine, lane, segment, upTo: allocated + bytes, thread) else {
            return .noSpace
        }
        // ORDER: acquire-release. Chunks of different threads never overlap (A5).
        let offset = unsafe cwa_add_u64(base + SegmentHeader.allocated, bytes)
        guard unsafe offset + bytes <= segment.pointee.size else { return .again }
        invariant(
            offset >= UInt64(SegmentHeader.bytes)
                && (offset | bytes) % UInt64(ChunkHeader.granule) == 0,
            "a chunk fills whole granules behind the segment's header")
        guard unsafe Segments.grow(engine, lane, segment, upTo: offset + bytes, thread),
            unsafe Segments.faultIn(segment, base, offset, bytes)
        else {
            unsafe Segments.refuse(engine, lane, errno: errno)
            unsafe giveBack(base, offset, bytes)
            return .noSpace
        }
        if bytes >= 32 << 10, unsafe Segments.runsShort(segment, offset + bytes) {
            unsafe EngineCore.wake(engine)
        }
        unsafe thread.pointee.chunk_bytes = UInt32(bytes)
        guard unsafe fill(thread, engine, lane, segment, base + Int(offset), offset, UInt32(bytes))
        else {
            unsafe thread.pointee.ptr = nil
            unsafe Segments.refuse(engine, lane, errno: errno)
            unsafe giveBack(base, offset, bytes)
            return .noSpace
        }
        let isKept = unsafe publish(thread, lane, segment, base, offset, UInt32(bytes))
        return isKept ? .done : .again
    }

    /// A full disk must not use up the segment.
    private static func giveBack(
        _ base: UnsafeMutableRawPointer, _ offset: UInt64, _ bytes: UInt64
    ) {
        _ = unsafe cwa_cas_u64(base + SegmentHeader.allocated, offset + bytes, offset)
    }

    /// Writes the header, then the records that start a chunk: gap, context and trace; the salt
    /// last. False, in write mode: the file took none of it.
    private static func fill(
        _ thread: ThreadBlock, _ engine: EngineBlock, _ lane: LaneBlock, _ segment: SegmentBlock,
        _ chunk: UnsafeMutableRawPointer, _ offset: UInt64, _ bytes: UInt32
    ) -> Bool {
        let ticks = unsafe Clock.now(engine)
        unsafe thread.pointee.base_ticks = ticks
        unsafe chunk.storeBytes(of: bytes, toByteOffset: ChunkHeader.size, as: UInt32.self)
        unsafe chunk.storeBytes(of: offset, toByteOffset: ChunkHeader.offset, as: UInt64.self)
        unsafe chunk.storeBytes(of: ticks, toByteOffset: ChunkHeader.baseTicks, as: UInt64.self)
        unsafe chunk.storeBytes(
            of: serial(thread, lane), toByteOffset: ChunkHeader.threadSerial, as: UInt32.self)
        unsafe chunk.storeBytes(
            of: nextSequence(thread), toByteOffset: ChunkHeader.sequence, as: UInt32.self)
        unsafe chunk.storeBytes(
            of: thread.pointee.tid, toByteOffset: ChunkHeader.threadID, as: UInt32.self)
        let resource = unsafe Resource.version(lane)
        unsafe thread.pointee.resource = resource
        // Two fields in one store, with zeros between them.
        unsafe chunk.storeBytes(
            of: thread.pointee.depth | resource << 16, toByteOffset: ChunkHeader.stream,
            as: UInt32.self)
        let name = unsafe UnsafeRawPointer(cwi_thread_name_at(thread))
        unsafe (chunk + ChunkHeader.threadName).copyMemory(from: name, byteCount: 16)
        unsafe chunk.storeBytes(of: 0, toByteOffset: ChunkHeader.final, as: UInt64.self)
        var gap: Drops.Gap?
        let end = unsafe preamble(thread, lane, chunk + ChunkHeader.bytes, &gap)
        invariant(
            unsafe end - chunk <= Int(bytes) && (end - chunk) % 8 == 0,
            "the records that start a chunk fit into it")
        unsafe cwa_store_relaxed_u32(chunk + ChunkHeader.committed, UInt32(end - chunk))
        unsafe thread.pointee.ptr = unsafe end.assumingMemoryBound(to: UInt8.self)
        guard unsafe WriteThrough.segment(engine, segment, chunk, end - chunk) else {
            unsafe Drops.takeBack(gap, lane, thread)
            return false
        }
        // CRASH: before this store the chunk does not exist; a reader steps over it (R4).
        // ORDER: release. The header exists once its salt does (A5).
        unsafe cwa_store_release_u64(chunk + ChunkHeader.salt, segment.pointee.salt)
        guard unsafe WriteThrough.segment(engine, segment, chunk, 8) else {
            unsafe cwa_store_release_u64(chunk + ChunkHeader.salt, 0)
            unsafe Drops.takeBack(gap, lane, thread)
            return false
        }
        unsafe Drops.noteReported(thread, engine, lane)
        return true
    }

    /// Publishes the claim and checks the segment again. False: the segment was closed meanwhile;
    /// the chunk is empty and nothing refers to it.
    private static func publish(
        _ thread: ThreadBlock, _ lane: LaneBlock, _ segment: SegmentBlock,
        _ base: UnsafeMutableRawPointer, _ offset: UInt64, _ bytes: UInt32
    ) -> Bool {
        let chunk = unsafe base + Int(offset)
        let claim = unsafe Verdict.load(thread).claim &+ 1
        // A child that a handler forked since `fill` starts over.
        guard let ptr = unsafe thread.pointee.ptr else { return false }
        let committed = unsafe UInt32(
            truncatingIfNeeded: UnsafeMutableRawPointer(ptr) - chunk)
        invariant(
            committed >= UInt32(ChunkHeader.bytes) && committed <= bytes,
            "a chunk is published with a length inside it")
        let empty = Verdict(claim: claim, open: false, offset: committed)
        let open = Verdict(claim: claim, open: true, offset: 0)
        // ORDER: release, before the chunk: a helper that finds the new chunk does not find the
        // length of an older claim beside it (A3, Settle.forced).
        unsafe cwa_store_release_u64(Verdict.address(thread), empty.word)
        // The block has named the segment since `hold`, except in a child that a handler forked.
        unsafe ThreadBlocks.setSegment(thread, segment)
        unsafe cwa_store_relaxed_u64(ThreadBlocks.saltWord(thread), segment.pointee.salt)
        unsafe cwa_store_release_u64(cwi_thread_chunk_at(thread), UInt64(UInt(bitPattern: chunk)))
        // ORDER: release. A helper that sees the open verdict sees the chunk (A3).
        unsafe cwa_store_release_u64(Verdict.address(thread), open.word)
        unsafe cwa_store_release_u64(
            AppendPath.limitWord(thread), UInt64(UInt(bitPattern: chunk + Int(bytes))))
        // ORDER: full. Either the sealer sees our verdict or we see its SEALING (A5, R3).
        cwa_fence_full()
        // In a child that a handler forked meanwhile, the slot may belong to another segment.
        if unsafe cwa_load_acquire_u32(Segments.stateWord(segment)) == Segments.open,
            unsafe UnsafeMutableRawPointer(segment.pointee.base) == base
        {
            // ORDER: after the full fence. Either we see a change of the resource here, or the
            // thread that makes it clears our limit (A44). The record that is being written may
            // have the old version, but no later one.
            if unsafe Resource.version(lane) != thread.pointee.resource {
                unsafe cwa_store_relaxed_u64(AppendPath.limitWord(thread), 0)
            }
            return true
        }
        // If the sealer was faster, it has settled the same length: the preamble's.
        _ = unsafe cwa_cas_u64(Verdict.address(thread), open.word, empty.word)
        unsafe cwa_store_relaxed_u64(AppendPath.limitWord(thread), 0)
        unsafe thread.pointee.ptr = nil
        unsafe ThreadBlocks.leaveChunk(thread)
        return false
    }

    static func current(_ lane: LaneBlock) -> SegmentBlock? {
        // ORDER: acquire. Once the pointer is visible, so are the segment's words (A10).
        unsafe SegmentBlock(bitPattern: UInt(cwa_load_acquire_u64(Lanes.currentWord(lane))))
    }

    static func roundUp(_ bytes: Int) -> Int {
        (bytes + ChunkHeader.granule - 1) & ~(ChunkHeader.granule - 1)
    }

    /// 1 KiB, then 4 KiB; then doubled when filled within 100 ms and halved when filling took over
    /// a second, or when the resource changed before it was full. At most 2 MiB, of which a thread
    /// at a million records a second takes fifteen a second, and at most its share of an eighth of
    /// the segment: a roll cuts the chunks of all threads but one. Up to 256 KiB, its share of a
    /// quarter.
    private static func size(
        _ thread: ThreadBlock, _ lane: LaneBlock, _ segment: SegmentBlock
    ) -> Int {
        let now = UInt32(truncatingIfNeeded: cw_monotonic_ns() / 1_000_000)
        let took = unsafe now &- thread.pointee.claim_ms
        unsafe thread.pointee.claim_ms = now
        let previous = unsafe Int(thread.pointee.chunk_bytes)
        var bytes = previous
        if previous == 0 {
            bytes = 1024
        } else if unsafe thread.pointee.resource != Resource.version(lane) {
            bytes = max(1024, previous / 2)
        } else if previous < 4096 {
            bytes = 4096
        } else if took < 100 {
            bytes = previous * 2
        } else if took > 1000 {
            bytes = max(4096, previous / 2)
        }
        let threads = unsafe max(1, Int(cwa_load_relaxed_u32(Lanes.serialWord(lane))))
        let share = unsafe max(4096, Int(segment.pointee.size) / min(threads, 1024))
        return roundUp(
            min(bytes, max(min(256 << 10, share / 4), min(ChunkHeader.largeBytes, share / 8))))
    }

    /// One serial for all streams of a thread. A handler that interrupts the first claim between
    /// check and store takes a serial of its own; its chunks then belong to that one.
    private static func serial(_ thread: ThreadBlock, _ lane: LaneBlock) -> UInt32 {
        let own = unsafe thread.pointee.own ?? thread
        if unsafe own.pointee.serial == 0
            || own.pointee.lane_generation != lane.pointee.generation
        {
            unsafe own.pointee.serial = cwa_add_u32(Lanes.serialWord(lane), 1) &+ 1
            unsafe own.pointee.lane_generation = lane.pointee.generation
        }
        unsafe thread.pointee.serial = own.pointee.serial
        return unsafe thread.pointee.serial
    }

    /// INVARIANT: (serial, sequence) never repeats. Otherwise a reader that meets a chunk in an
    /// archive would mistake it for one that it has already delivered. So a new serial does not
    /// reset the sequence.
    private static func nextSequence(_ thread: ThreadBlock) -> UInt32 {
        let own = unsafe thread.pointee.own ?? thread
        // ORDER: acquire-release, for its indivisibility alone: a handler that interrupts it here
        // counts on from the value it finds, and no other thread does (A30).
        return unsafe cwa_add_u32(cwi_thread_chunk_sequence_at(own), 1)
    }

    private static func preambleBytes(_ thread: ThreadBlock, _ lane: LaneBlock) -> Int {
        64 + ThreadContext.preambleBytes
    }

    private static func preamble(
        _ thread: ThreadBlock, _ lane: LaneBlock, _ start: UnsafeMutableRawPointer,
        _ gap: inout Drops.Gap?
    ) -> UnsafeMutableRawPointer {
        var end = unsafe Drops.writeGap(thread, lane, start, &gap)
        unsafe end = ThreadContext.writePreamble(end)
        return unsafe end
    }
}
