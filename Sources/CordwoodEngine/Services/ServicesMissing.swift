// Sealed segments that somebody removed before they were archived. The archiver checks for them
// before each archive, because an archive without one would still cover its number. A segment that
// is still mapped gets a file again. The rest is given up, reported and counted, and never holds up
// later records. Runs only on the ship thread.

import CCordwood
import CordwoodCore
import CordwoodShip
import CordwoodStore

extension Services {
    /// True: some of the segments were given up, so the next archive is a different one now. Throws
    /// if one of them may get its file later, when the disk has room again.
    func settleMissing(
        _ waiting: [SealedSegment], of lane: String, at epoch: Int
    ) throws(CordwoodError) -> Bool {
        let missing = missing(waiting, of: lane, at: epoch)
        guard !missing.isEmpty else { return false }
        try checkNotElsewhere()
        // One segment at a time: other threads wait for the lock during a copy.
        let isRestored = missing.sorted().allSatisfy { number in
            sealing.locked { unsafe EngineCore.restoreNameless(engine, number) }
        }
        guard isRestored else {
            throw CordwoodError(
                Status.full, "removed segments could not be written to \(directory)/lanes again")
        }
        let lost = self.missing(waiting, of: lane, at: epoch)
        guard !lost.isEmpty else { return false }
        try checkNotElsewhere()
        monitor.locked {
            guard epoch == laneEpoch else { return }
            sealedWaiting.removeAll { lost.contains($0.number) }
            archivedCount += UInt64(lost.count)
            monitor.notify()
        }
        let most = unsafe EngineCore.recordsMax(engine)
        sealing.locked { unsafe EngineCore.tellLost(engine, most * UInt64(lost.count)) }
        for number in lost.sorted() {
            report(
                UploadDiagnostic(
                    level: UInt8(CW_LEVEL_ERROR),
                    message: "a segment was removed before it was archived; its records are lost",
                    fields: [
                        ("lane", .text(lane)),
                        ("segment", .number(Int64(number))),
                        ("records_lost_at_most", .number(Int64(clamping: most))),
                    ]), as: "Cordwood.Store")
        }
        return true
    }

    private func checkNotElsewhere() throws(CordwoodError) {
        guard isElsewhere else { return }
        throw CordwoodError(Status.busy, "the directory \(directory)/lanes was lost")
    }

    /// Those of them that have no name in lanes/. Only the archiver renames a sealed segment.
    private func missing(
        _ waiting: [SealedSegment], of lane: String, at epoch: Int
    ) -> Set<UInt64> {
        guard monitor.locked({ epoch == laneEpoch }) else { return [] }
        // Segment 0 lies in the lane file.
        return Set(waiting.lazy.map(\.number).filter { $0 != 0 })
            .subtracting(files(waiting, of: lane).segments.map(\.number))
    }
}
