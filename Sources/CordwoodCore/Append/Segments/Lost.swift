// Segments whose memory and file have diverged: somebody cut the file, or it refuses stores and
// private memory is mapped over it (guard.c). From then on only the file counts: an append whose
// `committed` is not in the file is written again elsewhere. docs/CONCURRENCY.md, A25; RELIABILITY
// R13.
// SAFETY: the caller holds the segment: it is busy with a chunk in it, or has the sealing lock.
// Chunk headers are read into memory on the stack.

import CShims

enum Lost {
    static func isLost(_ segment: SegmentBlock) -> Bool {
        // ORDER: acquire. A thread that sees the flag looks into the file only after what the loser
        // did (A25).
        unsafe cwa_load_acquire_u32(cwi_segment_lost_at(segment)) != 0
    }

    /// The bytes of that chunk that readers will believe; 0 if its header is gone.
    static func committed(
        _ segment: SegmentBlock, _ chunk: UnsafeMutableRawPointer
    ) -> UInt32 {
        guard let base = unsafe segment.pointee.base, unsafe Descriptors.holds(segment) else {
            return 0
        }
        let at = unsafe fileOffset(segment, chunk, base)
        return unsafe withUnsafeTemporaryAllocation(byteCount: 16, alignment: 8) { header in
            guard unsafe Files.readOnce(segment.pointee.fd, into: header, at: at) == 16,
                unsafe header.load(as: UInt64.self) == segment.pointee.salt
            else { return 0 }
            return unsafe header.load(fromByteOffset: ChunkHeader.committed, as: UInt32.self)
        }
    }

    /// Fixes a chunk's end in the file, which may hold more than was kept there.
    static func fix(
        _ segment: SegmentBlock, _ chunk: UnsafeMutableRawPointer, _ end: UInt32
    ) {
        guard end > 0, unsafe committed(segment, chunk) > end,
            let base = unsafe segment.pointee.base
        else { return }
        var end = end
        _ = unsafe FileCalls.write(
            segment.pointee.fd, &end, 4,
            at: fileOffset(segment, chunk, base) + UInt64(ChunkHeader.final))
    }

    private static func fileOffset(
        _ segment: SegmentBlock, _ chunk: UnsafeMutableRawPointer,
        _ base: UnsafeMutablePointer<UInt8>
    ) -> UInt64 {
        unsafe segment.pointee.file_offset + UInt64(chunk - UnsafeMutableRawPointer(base))
    }
}

extension EngineCore {
    /// Writes counts that a file that is written has not taken (A17). On the supply thread, which
    /// also lets go of lanes, and without a lock: a full disk may take a second to refuse.
    package static func writeLateCounts(_ engine: EngineBlock) {
        guard let lane = unsafe readyLane(engine), unsafe WriteThrough.isOn(engine) else { return }
        unsafe Drops.writeLate(engine, lane)
    }

    /// Checks whether somebody cut a mapped file. If so, restores its length before a store meets
    /// the hole, and takes it out of use. Under the sealing lock, on the supply thread.
    package static func watchFiles(_ engine: EngineBlock) {
        guard let lane = unsafe readyLane(engine), unsafe !WriteThrough.isOn(engine) else { return }
        unsafe Segments.forEach(engine) { segment in
            let state = unsafe cwa_load_acquire_u32(Segments.stateWord(segment))
            guard state != Segments.free, state != Segments.making,
                unsafe segment.pointee.base != nil,
                // A host may have closed the descriptor, and another file may have its number.
                unsafe Descriptors.regain(engine, lane, segment)
            else { return }
            let whole =
                unsafe segment.pointee.in_lane != 0
                ? UInt64(LaneHeader.fileBytesValue) : Segments.ready(segment)
            guard let file = unsafe FileFacts(of: segment.pointee.fd), file.bytes < whole else {
                return
            }
            // Do this first, so that no append ends in a page that the file gets anew, without its
            // header.
            unsafe cwi_segment_lose(engine, segment)
            _ = unsafe FileCalls.allocate(segment.pointee.fd, offset: 0, bytes: whole)
        }
        if let current = unsafe Claim.current(lane), unsafe Lost.isLost(current) {
            _ = unsafe Segments.publishNext(engine, lane, after: current, nil)
        }
    }
}
