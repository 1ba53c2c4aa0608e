// The size of segments made from here on: a policy may change it while writers run. Any thread
// reads it; the engine above sets it, one thread at a time. The supply thread takes back spares of
// another size, and a segment keeps the size it was made with. A writer may meet both sizes within
// one append (Claim). docs/CONCURRENCY.md, A31.
// SAFETY: a word of the engine's block, which is never unmapped.

import CShims

enum SegmentSize {
    private static func word(_ engine: EngineBlock) -> UnsafeMutableRawPointer {
        unsafe cwi_engine_segment_bytes_at(engine)
    }

    static func ringMaxWord(_ engine: EngineBlock) -> UnsafeMutableRawPointer {
        unsafe cwi_engine_ring_max_at(engine)
    }

    static func of(_ engine: EngineBlock) -> UInt64 {
        // ORDER: relaxed. A size on its own; it publishes nothing (A31).
        unsafe cwa_load_relaxed_u64(word(engine))
    }

    static func set(_ engine: EngineBlock, bytes: UInt64) {
        // ORDER: relaxed (A31).
        unsafe cwa_store_relaxed_u64(word(engine), bytes)
    }

    /// Takes back the spares of another size. Supply thread only: it alone unmaps.
    static func tidySpares(_ engine: EngineBlock, _ lane: LaneBlock) {
        let bytes = unsafe of(engine)
        for i in 0..<Int(CWI_SPARES_MAX) {
            // ORDER: acquire, and acquire-release to take it. As Segments.takeSpare (A11).
            let word = unsafe cwa_load_acquire_u64(Lanes.spareWord(lane, i))
            guard let spare = unsafe SegmentBlock(bitPattern: UInt(word)),
                unsafe spare.pointee.size != bytes,
                unsafe cwa_cas_u64(Lanes.spareWord(lane, i), word, 0)
            else { continue }
            unsafe Segments.destroy(engine, lane, spare)
        }
    }
}

extension EngineCore {
    /// Sets the size of segments made from here on.
    package static func setSegmentBytes(_ engine: EngineBlock, _ bytes: UInt64) {
        guard unsafe SegmentSize.of(engine) != bytes else { return }
        unsafe SegmentSize.set(engine, bytes: bytes)
        unsafe wake(engine)
    }
}

extension EngineCore {
    /// True if the current segment is larger than one made now.
    package static func isOversize(_ engine: EngineBlock) -> Bool {
        guard let lane = unsafe readyLane(engine), let current = unsafe Claim.current(lane) else {
            return false
        }
        return unsafe current.pointee.in_lane == 0
            && current.pointee.size > SegmentSize.of(engine)
    }
}
