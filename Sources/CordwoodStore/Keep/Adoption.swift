// Schedules when an engine adopts lanes of dead processes: soon after open, then every minute; at
// once if many lanes have piled up or the quota is short; and before the first upload. The ship
// thread adopts; an upload or a roll may wait for it. When many short-lived processes leave lanes
// behind, one of them archives these together.

import CShims
import CordwoodCore

@safe package final class Adoption: @unchecked Sendable {
    // SAFETY: everything below `monitor` is read and written under it, except `next`, `ranNs` and
    // `witness`, which belong to the ship thread; `firstNs`, `lanesAtOpen` and `directory` never
    // change.
    private let monitor = Monitor()
    private var begun: UInt64 = 0
    private var count: UInt64 = 0
    private var isWanted = false
    private var isStopping = false
    package private(set) var next: UInt64 = 0
    private var ranNs: UInt64 = 0
    private let witness = AdoptionWitness()
    private let directory: FilePath

    /// When the first run is due, on the monotonic clock: soon after open.
    package let firstNs = cw_monotonic_ns() + 1_000_000_000

    /// The number of lanes when the engine opened.
    private let lanesAtOpen: Int

    package init(directory: FilePath) {
        self.directory = directory
        lanesAtOpen = LaneListing(directory: directory).lanes.count
    }

    private static let everyNs: UInt64 = 60_000_000_000
    private static let everyShortNs: UInt64 = 1_000_000_000

    /// First call on the ship thread.
    package func begin() {
        if ranNs == 0 { next = isCrowded ? 0 : firstNs }
    }

    /// Whether so many lanes have piled up that adoption is due at once.
    package var isCrowded: Bool { lanesAtOpen > StoreArchiver.lanesAtOnce }

    /// If still more have piled up, those who use the store may live for milliseconds only: waits
    /// a little for the first run, which then goes on beside the caller.
    package func letRun() {
        guard lanesAtOpen > 2 * StoreArchiver.lanesAtOnce else { return }
        let deadline = Deadline(afterMs: 250)
        monitor.locked {
            while count == 0, !isStopping {
                if !monitor.wait(until: deadline) { return }
            }
        }
    }

    package func isDue(_ now: UInt64) -> Bool { now >= next || monitor.locked { isWanted } }

    /// On the ship thread, if the quota may be short: archives of abandoned lanes take less space
    /// than the lanes, and retention should not remove archives for them.
    package func mayMakeRoom(_ now: UInt64) -> Bool {
        (ranNs == 0 || now - ranNs >= Adoption.everyShortNs) && hasOthers
    }

    /// This engine's own lane needs no adoption.
    private var hasOthers: Bool { LaneListing(directory: directory).lanes.count > 1 }

    private var hasRun: Bool { monitor.locked { count > 0 } }

    /// nil: the store cannot be listed, or its disk is full.
    package func run(_ form: ArchiveForm) -> ArchivingSummary? {
        monitor.locked {
            begun += 1
            isWanted = false
        }
        let summary = try? StoreArchiver.archiveDead(
            directory: directory, codec: form.codec, level: form.level, method: form.method,
            timeStepNs: form.timeStepNs, recipients: form.recipients, witness: witness,
            shouldStop: { monitor.locked { isStopping } })
        let pause = witness.waiting > 0 ? AdoptionWitness.quietNs : Adoption.everyNs
        ranNs = cw_monotonic_ns()
        next = ranNs + pause
        monitor.locked {
            count += 1
            monitor.notify()
        }
        return summary
    }

    /// An upload that the host asks for also sends the records of ended processes, so it waits for
    /// an adoption run that begins after the call. Not on the ship thread; `wake` wakes that one.
    package func now(_ deadline: Deadline, wake: () -> Void) {
        guard !hasRun || hasOthers, let goal = begins(wake: wake) else { return }
        monitor.locked {
            while count < goal, !isStopping {
                if !monitor.wait(until: deadline) { return }
            }
        }
    }

    /// For callers that need room; `isOver` tells when further waiting is pointless.
    package func makeRoom(wake: () -> Void) -> UInt64 { hasOthers ? begins(wake: wake) ?? 0 : 0 }

    /// Whether the run with that number has ended.
    package func isOver(_ goal: UInt64) -> Bool { monitor.locked { count >= goal || isStopping } }

    private func begins(wake: () -> Void) -> UInt64? {
        let goal: UInt64? = monitor.locked {
            guard !isStopping else { return nil }
            isWanted = true
            return begun + 1
        }
        if goal != nil { wake() }
        return goal
    }

    /// Makes the ship thread adopt at its next check.
    package func want() { monitor.locked { isWanted = true } }

    package func stop() {
        monitor.locked {
            isStopping = true
            monitor.notify()
        }
    }
}
