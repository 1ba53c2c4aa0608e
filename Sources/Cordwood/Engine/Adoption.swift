// When an engine adopts what dead processes left: soon after open, then every minute; at once where
// many lanes have piled up, and before the first upload. The ship thread adopts; who uploads may
// wait for it. Processes that live for a moment leave their lanes to one of many, which archives
// them together.

import CShims
import CordwoodCore
import CordwoodShip

@safe final class Adoption: @unchecked Sendable {
    // SAFETY: below `monitor` all is read and written under it, but for `next` and `witness`, which
    // are the ship thread's.
    private let monitor = Monitor()
    private var begun: UInt64 = 0
    private var count: UInt64 = 0
    private var isWanted = false
    private var isStopping = false
    private(set) var next: UInt64 = 0
    private let witness = AdoptionWitness()
    private let directory: String

    init(directory: String) { self.directory = directory }

    private static let firstNs: UInt64 = 1_000_000_000
    private static let everyNs: UInt64 = 60_000_000_000

    /// On the ship thread, first.
    func begin() {
        let isCrowded =
            LaneListing(directory: directory).lanes.count > StoreArchiver.lanesAtOnce
        next = isCrowded ? 0 : cw_monotonic_ns() + Adoption.firstNs
    }

    func isDue(_ now: UInt64) -> Bool { now >= next || monitor.locked { isWanted } }

    var hasRun: Bool { monitor.locked { count > 0 } }

    /// nil: the store cannot be listed, or its disk is full.
    func run(_ form: ArchiveForm) -> ArchivingSummary? {
        monitor.locked {
            begun += 1
            isWanted = false
        }
        let summary = try? StoreArchiver.archiveDead(
            directory: directory, codec: form.codec, level: form.level,
            recipients: form.recipients, witness: witness,
            shouldStop: { monitor.locked { isStopping } })
        let pause = witness.waiting > 0 ? AdoptionWitness.quietNs : Adoption.everyNs
        next = cw_monotonic_ns() + pause
        monitor.locked {
            count += 1
            monitor.notify()
        }
        return summary
    }

    /// What processes that have ended left is sent with an upload on the host's word: adopts it, by
    /// a run that begins after the call. Not on the ship thread, which `wake` wakes.
    func now(_ deadline: Deadline, wake: () -> Void) {
        // This engine's own lane needs none.
        guard !hasRun || LaneListing(directory: directory).lanes.count > 1 else { return }
        let goal: UInt64? = monitor.locked {
            guard !isStopping else { return nil }
            isWanted = true
            return begun + 1
        }
        guard let goal else { return }
        wake()
        monitor.locked {
            while count < goal, !isStopping {
                if !monitor.wait(until: deadline) { return }
            }
        }
    }

    /// The next look of the ship thread adopts.
    func want() { monitor.locked { isWanted = true } }

    func stop() {
        monitor.locked {
            isStopping = true
            monitor.notify()
        }
    }
}
