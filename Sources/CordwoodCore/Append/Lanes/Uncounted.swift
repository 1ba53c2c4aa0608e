// Counts the records of an engine that are no reason to make an archive: its own diagnostics, and
// captured exchanges that may be uploads. An archive of them would be sent, and sending it would
// add more of them. A word of the engine's block: any thread; a child goes on with its parent's.
// SAFETY: the word lies in the engine's block, which is never unmapped.

import CShims

package enum Uncounted {
    package static func count(_ engine: EngineBlock) -> UInt64 {
        // ORDER: relaxed. A sum that nothing else depends on (A33).
        unsafe cwa_load_relaxed_u64(cwi_engine_uncounted_at(engine))
    }

    /// Before such a record is written, so that nobody takes it for one of the host's.
    /// - Parameter engine: nil: it counts.
    package static func begin(_ engine: EngineBlock?) {
        guard let engine = unsafe engine else { return }
        // ORDER: relaxed addition. As above.
        _ = unsafe cwa_add_u64(cwi_engine_uncounted_at(engine), 1)
    }

    package static func end(_ engine: EngineBlock?, _ status: Int32) {
        guard let engine = unsafe engine, status != Status.ok else { return }
        // ORDER: relaxed addition. As above.
        _ = unsafe cwa_add_u64(cwi_engine_uncounted_at(engine), .max)
    }
}
