// When an engine adopts what dead processes left: soon after open, then every minute; at once where
// many lanes have piled up or the quota is short, and before the first upload. The ship thread
// adopts; who uploads or rolls may wait for it. Processes that live for a moment leave their lanes
// to one of many, which archives them together.

import CShims
import CordwoodCore

@safe package final class Adoption: @unchecked Sendable {
    // SAFETY: below `monitor` all is read and written under it, but for `next`, `ranNs` and
    // `witness`, which are the ship thread's.
    private let monitor = Monitor()
    private var begun: UInt64 = 0
    private var count: UInt64 = 0
    private var isWanted = false
    private var isStopping = false
    package private(set) var next: UInt64 = 0
    private var ranNs: UInt64 = 0
    private let witness = AdoptionWitness()
    private let directory: String

    package init(directory: String) { self.directory = directory }

    private static let firstNs: UInt64 = 1_000_000_000
    private static let everyNs: UInt64 = 60_000_000_000
    private static let everyShortNs: UInt64 = 1_000_000_000

    /// On the ship thread, first.
    package func begin() {
        let isCrowded =
            LaneListing(directory: directory).lanes.count > StoreArchiver.lanesAtOnce
        next = isCrowded ? 0 : cw_monotonic_ns() + Adoption.firstNs
    }

    package func isDue(_ now: UInt64) -> Bool { now >= next || monitor.locked { isWanted } }

    /// On the ship thread, where the quota may be short: what others left takes less in archives,
    /// and retention should not remove archives for it.
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
            directory: directory, codec: form.codec, level: form.level,
            recipients: form.recipients, witness: witness,
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

    /// What processes that have ended left is sent with an upload on the host's word: adopts it, by
    /// a run that begins after the call. Not on the ship thread, which `wake` wakes.
    package func now(_ deadline: Deadline, wake: () -> Void) {
        guard !hasRun || hasOthers, let goal = begins(wake: wake) else { return }
        monitor.locked {
            while count < goal, !isStopping {
                if !monitor.wait(until: deadline) { return }
            }
        }
    }

    /// For who needs room: `isOver` says when there will be no more.
    package func makeRoom(wake: () -> Void) -> UInt64 { hasOthers ? begins(wake: wake) ?? 0 : 0 }

    /// Whether the run that is meant by such a number has ended.
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

    /// The next look of the ship thread adopts.
    package func want() { monitor.locked { isWanted = true } }

    package func stop() {
        monitor.locked {
            isStopping = true
            monitor.notify()
        }
    }
}
