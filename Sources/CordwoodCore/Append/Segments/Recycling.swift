// Reuses the files of archived segments: their blocks are allocated and their pages are in memory,
// so the next segment costs no page fault and no work in the file system. Only segments of this
// process whose pages are all resident, that are quiet, and that no reader has open. Under the
// sealing lock. docs/CONCURRENCY.md, A22; RELIABILITY R11, R15, R16.
// SAFETY: no other thread touches a slot that is SEALED and quiet, and only the holder of the
// sealing lock releases its mapping.

import CShims
import Glibc

public enum Recycling {
    /// The most segments kept for reuse, whatever the rate.
    public static let segmentsMax = 8
    /// The most bytes of these and of segments that are full and not sealed yet.
    static let bytesMax: UInt64 = 128 << 20

    /// The segments that two seconds of writing fill, as long as a segment lasts under four
    /// seconds; otherwise none: a program that logs little keeps little.
    static func ring(bytesPerSecond: UInt64, segmentBytes: UInt64) -> UInt32 {
        guard bytesPerSecond >= segmentBytes / 4 else { return 0 }
        let count = 1 + bytesPerSecond * 2 / segmentBytes
        return UInt32(min(count, bytesMax / segmentBytes, UInt64(segmentsMax)))
    }

    /// How many more sealed segments are worth keeping mapped.
    static func wanted(_ engine: EngineBlock) -> Int {
        guard let lane = unsafe EngineCore.readyLane(engine) else { return 0 }
        // ORDER: relaxed. A hint; a wrong one costs memory or time, never records (A22).
        let ring = unsafe Int(cwa_load_relaxed_u32(ringWord(engine)))
        return unsafe wanted(
            ring: ring, spares: Segments.spareCount(lane),
            unsealedBytes: Segments.unsealedBytes(engine, lane),
            segmentBytes: SegmentSize.of(engine))
    }

    /// Segments that wait for sealing are in the host's memory, too, and leave less room for
    /// others.
    static func wanted(
        ring: Int, spares: Int, unsealedBytes: UInt64, segmentBytes: UInt64
    ) -> Int {
        guard segmentBytes > 0, unsealedBytes < bytesMax else { return 0 }
        let most = (bytesMax - unsealedBytes) / segmentBytes
        return max(0, min(ring, Int(most)) - spares)
    }

    static func ringWord(_ engine: EngineBlock) -> UnsafeMutableRawPointer {
        unsafe cwi_engine_ring_at(engine)
    }

    /// True if a sealed segment is suitable: fully grown, of the present size, not rejected before,
    /// and with its pages still held.
    static func mayServe(_ engine: EngineBlock, _ segment: SegmentBlock) -> Bool {
        unsafe segment.pointee.retired == 0 && segment.pointee.ready == segment.pointee.size
            && segment.pointee.populated != 0
            && segment.pointee.size == SegmentSize.of(engine) && !WriteThrough.isOn(engine)
            && !Lost.isLost(segment) && segment.pointee.lane == engine.pointee.lane
    }

    /// Turns a sealed segment that an archive holds into a spare. False: remove it instead.
    static func reuse(
        _ engine: EngineBlock, _ lane: LaneBlock, _ segment: SegmentBlock
    ) -> Bool {
        guard unsafe mayServe(engine, segment), unsafe wanted(engine) > 0,
            unsafe segment.pointee.memory_id == 0 || !FileCalls.isNameless(segment.pointee.fd),
            unsafe Quiescence.isQuiet(engine, segment), unsafe isResident(segment),
            unsafe Descriptors.holds(segment)
        else { return false }
        invariant(
            unsafe Segments.hasState(segment, Segments.sealed)
                && Claim.current(lane) != segment,
            "only a sealed segment is used again")
        return unsafe begin(engine, lane, segment)
    }

    /// The same for a file that was unmapped before an archive held it, because writers are far
    /// ahead of the archiver. Its pages are in memory, so mapping it costs the file system a
    /// fraction of freeing its blocks and finding others. Reuses no more than supply would make.
    static func reuseUnmapped(
        _ engine: EngineBlock, _ lane: LaneBlock, number: UInt64, generation: UInt32
    ) -> Bool {
        guard unsafe !WriteThrough.isOn(engine), unsafe wanted(engine) > 0,
            unsafe Segments.spareCount(lane) < Supply.freshMax,
            unsafe Segments.hasFreeSlot(engine), let slot = unsafe Segments.newSlot(engine, lane)
        else { return false }
        unsafe slot.pointee.number = number
        unsafe slot.pointee.generation = generation
        guard unsafe mapAgain(engine, lane, slot), unsafe begin(engine, lane, slot) else {
            unsafe Segments.releaseMapping(slot)
            return false
        }
        unsafe Segments.putSpare(engine, lane, slot)
        return true
    }

    /// Maps a sealed segment's file in a slot that has its number and generation. False: the file
    /// is gone, is another one, or is not all in memory.
    private static func mapAgain(
        _ engine: EngineBlock, _ lane: LaneBlock, _ slot: SegmentBlock
    ) -> Bool {
        let bytes = unsafe slot.pointee.size
        // As in Segments.makeFile: no child may be forked before the slot has the descriptor.
        cwi_fork_gate_enter()
        let descriptor = unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: 160) {
            var name = unsafe NameBuffer($0)
            unsafe Segments.addFileName(&name, lane, slot, sealed: true)
            return unsafe FileCalls.openKept(
                name.pointer, in: Descriptors.lanes(engine), .readWrite)
        }
        if descriptor >= 0 { unsafe Descriptors.note(slot, descriptor) }
        cwi_fork_gate_leave()
        guard descriptor >= 0, FileFacts(of: descriptor)?.bytes == bytes,
            let base = unsafe Segments.map(engine, slot, descriptor), unsafe isResident(slot),
            unsafe Mapping.populate(base, bytes: Int(bytes)),
            unsafe base.load(fromByteOffset: SegmentHeader.laneID, as: UInt64.self)
                == lane.pointee.id.0,
            unsafe base.load(fromByteOffset: SegmentHeader.laneID + 8, as: UInt64.self)
                == lane.pointee.id.1,
            unsafe base.load(fromByteOffset: SegmentHeader.number, as: UInt64.self)
                == slot.pointee.number,
            unsafe base.load(fromByteOffset: SegmentHeader.generation, as: UInt32.self)
                == slot.pointee.generation
        else { return false }
        unsafe slot.pointee.ready = bytes
        unsafe slot.pointee.populated = bytes
        return true
    }

    /// The next life of a file that no thread of this process stores to. False: a reader has it
    /// open, or the directory refuses.
    private static func begin(
        _ engine: EngineBlock, _ lane: LaneBlock, _ segment: SegmentBlock
    ) -> Bool {
        // A reader holds a shared lock while it has the file open, and keeps the file that it
        // opened.
        guard unsafe flock(segment.pointee.fd, LOCK_EX | LOCK_NB) == 0 else { return false }
        defer { unsafe flock(segment.pointee.fd, LOCK_UN) }
        let base = unsafe UnsafeMutableRawPointer(segment.pointee.base)!
        // ORDER: release, then full. A reader that sees anything new in this file sees, when it
        // checks the header again, that the file is dead or has another number, generation and salt
        // (R11).
        unsafe cwa_store_release_u32(base + SegmentHeader.state, SegmentHeader.stateDead)
        cwa_fence_full()
        // CRASH: dead under its old name: the archive covers it, and adopters remove it.
        let id = Machine.random()
        guard unsafe Segments.renameToSpare(engine, lane, segment, id) else { return false }
        // CRASH: a name that has no meaning.
        unsafe segment.pointee.spare_id = id
        unsafe segment.pointee.number = 0
        unsafe segment.pointee.generation &+= 1
        unsafe segment.pointee.salt = Machine.random()
        unsafe segment.pointee.sealed_end = 0
        unsafe Segments.writeHeader(engine, lane, segment)
        unsafe cwa_store_release_u32(Segments.stateWord(segment), Segments.spare)
        return true
    }

    /// True if all its pages are in memory: reading them back from the disk would cost more than
    /// new ones, and the disk's copy may be older (R15).
    private static func isResident(_ segment: SegmentBlock) -> Bool {
        unsafe Mapping.isResident(
            UnsafeMutableRawPointer(segment.pointee.base)!, bytes: Int(segment.pointee.size))
    }

    /// Maps for writing again the pages that the kernel wrote back meanwhile.
    static func populate(_ segment: SegmentBlock) {
        guard let base = unsafe segment.pointee.base else { return }
        _ = unsafe Mapping.populate(
            UnsafeMutableRawPointer(base), bytes: Int(segment.pointee.populated))
    }
}

extension EngineCore {
    /// Reuses as many as possible of these sealed segments, which a durable archive holds. Returns
    /// the numbers whose files are spares now; the caller removes the others.
    package static func recycle(
        _ engine: EngineBlock, _ numbers: ClosedRange<UInt64>
    ) -> Set<UInt64> {
        guard let lane = unsafe readyLane(engine), Quiescence.fence() else { return [] }
        var reused: Set<UInt64> = []
        unsafe Segments.forEach(engine) { segment in
            guard unsafe Quiescence.isSealedFile(segment),
                unsafe segment.pointee.lane == lane, unsafe numbers.contains(segment.pointee.number)
            else { return }
            let number = unsafe segment.pointee.number
            if unsafe Recycling.reuse(engine, lane, segment) {
                reused.insert(number)
                unsafe Segments.putSpare(engine, lane, segment)
            } else {
                unsafe segment.pointee.retired = 1
            }
        }
        return reused
    }

    /// The same for one of them whose mapping was released before. False: remove its file.
    package static func recycleUnmapped(
        _ engine: EngineBlock, number: UInt64, generation: UInt32
    ) -> Bool {
        guard let lane = unsafe readyLane(engine), unsafe !isMapped(engine, number...number) else {
            return false
        }
        return unsafe Recycling.reuseUnmapped(engine, lane, number: number, generation: generation)
    }

    /// True while supply has not unmapped all of these segments. The last to let go of a file frees
    /// its blocks, which takes some file systems 10 ms and more; so the names stay until then.
    package static func isMapped(_ engine: EngineBlock, _ numbers: ClosedRange<UInt64>) -> Bool {
        guard let lane = unsafe readyLane(engine) else { return false }
        var isMapped = false
        unsafe Segments.forEach(engine) { segment in
            guard unsafe Quiescence.isSealedFile(segment), unsafe segment.pointee.lane == lane,
                unsafe numbers.contains(segment.pointee.number)
            else { return }
            isMapped = true
        }
        return isMapped
    }
}
