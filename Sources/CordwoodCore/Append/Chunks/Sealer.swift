// The helper's side of the protocol: seals a segment under running writers without waiting for any
// of them, and tells when no thread can store into its mapping any more. One thread at a time per
// engine. docs/CONCURRENCY.md, A1–A5.
// SAFETY: one thread seals, and the same thread releases mappings afterwards, so `base` stays
// valid; chunks are walked below `allocated` and `ready`, both within the mapping, by sizes that
// only this process writes.

import CShims
import Glibc

/// What the name of a sealed segment's file has.
package struct SealedSegment: Sendable {
    package let number: UInt64
    package let generation: UInt32
}

package enum Sealer {
    /// Takes the segment out of use and fixes the length of every chunk in it. The lane must have
    /// another current segment, unless none is wanted any more. False: sealing is not possible now.
    static func seal(_ engine: EngineBlock, _ lane: LaneBlock, _ segment: SegmentBlock) -> Bool {
        let base = unsafe UnsafeMutableRawPointer(segment.pointee.base)!
        invariant(
            unsafe Segments.hasState(segment, Segments.open, Segments.sealing),
            "an open segment is sealed, or one whose sealing failed")
        // ORDER: release, then the heavy fence: a claim that does not see SEALING has published its
        // verdict where we look (A5).
        // CRASH: from here to the rename a chunk reads to its `final` if one is stored, else to
        // `committed`: either way, to the records that were kept.
        unsafe cwa_store_release_u32(Segments.stateWord(segment), Segments.sealing)
        unsafe cwa_store_release_u32(base + SegmentHeader.state, SegmentHeader.stateSealing)
        fence()
        unsafe ThreadBlocks.forEach(engine) { thread in
            // ORDER: relaxed. After the fence above, every claim that will not see SEALING is
            // visible.
            let word = unsafe cwa_load_relaxed_u64(ThreadBlocks.segmentWord(thread))
            if word == UInt64(UInt(bitPattern: segment)) {
                // ORDER: release. The helper writes nothing but NULL here (A2).
                unsafe cwa_store_release_u64(AppendPath.limitWord(thread), 0)
            }
        }
        fence()
        unsafe ThreadBlocks.forEach(engine) { unsafe Settle.forced($0, in: segment) }
        let (end, crc) = unsafe settleRest(segment, base)
        unsafe base.storeBytes(of: crc, toByteOffset: SegmentHeader.chunksCRC, as: UInt32.self)
        return unsafe finish(engine, lane, segment, base, end)
    }

    private static func fence() {
        if !Membarrier.heavyFence() { cwa_fence_full() }
    }

    /// Settles the rest. The threads have settled the chunks that no block names any more; a chunk
    /// that was claimed and not yet published stays empty. Writes the checksums; returns the end of
    /// the last chunk, and the checksum of the settled ones' headers.
    private static func settleRest(
        _ segment: SegmentBlock, _ base: UnsafeMutableRawPointer
    ) -> (end: UInt64, crc: UInt32) {
        let ready = unsafe cwa_load_acquire_u64(cwi_segment_ready_at(segment))
        let bound = unsafe min(cwa_load_acquire_u64(base + SegmentHeader.allocated), ready)
        var offset = UInt64(SegmentHeader.bytes)
        var end = offset
        var all: UInt32 = 0
        while offset + UInt64(ChunkHeader.bytes) <= bound {
            let chunk = unsafe base + Int(offset)
            guard unsafe cwa_load_acquire_u64(chunk) == segment.pointee.salt,
                unsafe chunk.load(fromByteOffset: ChunkHeader.offset, as: UInt64.self) == offset
            else {
                offset += UInt64(ChunkHeader.granule)
                continue
            }
            let size = unsafe UInt64(chunk.load(fromByteOffset: ChunkHeader.size, as: UInt32.self))
            let final = unsafe cwa_load_acquire_u32(chunk + ChunkHeader.final)
            if final >= UInt32(ChunkHeader.bytes), UInt64(final) <= size {
                var crc = unsafe cwi_crc32c(0, chunk + 12, 52)
                crc = unsafe cwi_crc32c(
                    crc, chunk + ChunkHeader.bytes, Int(final) - ChunkHeader.bytes)
                unsafe chunk.storeBytes(of: crc, toByteOffset: ChunkHeader.crc, as: UInt32.self)
                all = unsafe cwi_crc32c(all, chunk + ChunkHeader.size, ChunkHeader.sealedBytes)
            }
            offset += max(size, UInt64(ChunkHeader.granule))
            end = offset
        }
        return (end, all)
    }

    private static func finish(
        _ engine: EngineBlock, _ lane: LaneBlock, _ segment: SegmentBlock,
        _ base: UnsafeMutableRawPointer, _ end: UInt64
    ) -> Bool {
        // Both segments hold the first pair of the next one and the last pair of this one, so both
        // map ticks to the same time where they overlap (FORMAT §4).
        if let next = unsafe Claim.current(lane), unsafe next != segment,
            unsafe next.pointee.lane == lane, let nextBase = unsafe next.pointee.base
        {
            let pair = unsafe UnsafeMutableRawPointer(nextBase) + SegmentHeader.clockPairs
            unsafe ClockPairs.add(
                ClockSample(
                    ticks: pair.load(as: UInt64.self),
                    monotonic: pair.load(fromByteOffset: 8, as: UInt64.self),
                    boottime: pair.load(fromByteOffset: 16, as: UInt64.self),
                    realtime: pair.load(fromByteOffset: 24, as: UInt64.self)), to: base)
        }
        unsafe addClockPair(engine, lane, also: segment)
        invariant(
            unsafe end >= UInt64(SegmentHeader.bytes) && end <= segment.pointee.size,
            "a segment's last chunk ends within it")
        unsafe base.storeBytes(of: end, toByteOffset: SegmentHeader.end, as: UInt64.self)
        unsafe base.storeBytes(
            of: cw_realtime_ns(), toByteOffset: SegmentHeader.sealedRealtime, as: UInt64.self)
        unsafe base.storeBytes(
            of: sealedCRC(base), toByteOffset: SegmentHeader.sealedCRC, as: UInt32.self)
        guard unsafe WriteThrough.sealed(engine, segment, end: end) else { return false }
        unsafe cwa_store_release_u32(base + SegmentHeader.state, SegmentHeader.stateSealed)
        guard unsafe WriteThrough.header(engine, segment) else { return false }
        unsafe segment.pointee.sealed_end = end
        if unsafe segment.pointee.in_lane == 0 {
            unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: 160) { buffer in
                unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: 160) {
                    sealedBuffer in
                    var name = unsafe NameBuffer(buffer)
                    unsafe Segments.addFileName(&name, lane, segment, sealed: false)
                    var sealedName = unsafe NameBuffer(sealedBuffer)
                    unsafe Segments.addFileName(&sealedName, lane, segment, sealed: true)
                    // CRASH: the header says sealed, the name does not; adopters archive both.
                    unsafe renameat(
                        Descriptors.lanes(engine), name.pointer, Descriptors.lanes(engine),
                        sealedName.pointer)
                }
            }
        }
        unsafe cwa_store_release_u32(Segments.stateWord(segment), Segments.sealed)
        return true
    }

    /// The checksum of what never changes again in a sealed segment's header (FORMAT §6.1).
    package static func sealedCRC(_ header: UnsafeRawPointer) -> UInt32 {
        var crc = unsafe cwi_crc32c(0, header, SegmentHeader.state)
        crc = unsafe cwi_crc32c(
            crc, header + SegmentHeader.end, SegmentHeader.sealedCRC - SegmentHeader.end)
        return unsafe cwi_crc32c(
            crc, header + SegmentHeader.clockSequence,
            SegmentHeader.bytes - SegmentHeader.clockSequence)
    }

    /// Adds one clock pair to the current segment, and adds it to `also` as its last. False: the
    /// current segment already has a pair of this moment.
    @discardableResult
    static func addClockPair(
        _ engine: EngineBlock, _ lane: LaneBlock, also: SegmentBlock?
    ) -> Bool {
        let sample = unsafe ClockSample.take(engine)
        if let also = unsafe also, let base = unsafe also.pointee.base {
            unsafe ClockPairs.add(sample, to: UnsafeMutableRawPointer(base))
        }
        // That of a lane that was left may be sealed, or another lane's by now.
        if let current = unsafe Claim.current(lane), unsafe current != also,
            unsafe current.pointee.lane == lane, unsafe Segments.hasState(current, Segments.open),
            let base = unsafe current.pointee.base
        {
            guard unsafe ClockPairs.add(sample, to: UnsafeMutableRawPointer(base)) else {
                return false
            }
            _ = unsafe WriteThrough.header(engine, current)
        }
        return true
    }
}
