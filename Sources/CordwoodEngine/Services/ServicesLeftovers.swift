// Where archives are encrypted or consent is denied, nothing of what was archived or removed is
// left in the files of this process's lanes: no segment's file is used again, segment 0 is
// overwritten, the journal is written anew, and close archives the lanes and removes them. Before
// what was archived becomes too old, it is cleared as well. RELIABILITY, Leftovers.

import CShims
import CordwoodCore
import CordwoodShip
import CordwoodStore

/// Guarded by the services' monitor.
struct LeftoverKeeping {
    /// Files that were segments before are being taken out of use.
    var hasReused = false
    /// Monotonic: when segment 0 and the journal are looked at; `.max`: nothing is left there.
    var copiesDue = UInt64.max
    /// UTC when everything was last cleared.
    var clearedNs = cw_realtime_ns()
    /// The most files that may be kept for reuse, where something may be left.
    var ringMax: UInt32 = 0

    static let pauseNs: UInt64 = 1_000_000_000
    /// Half of a day: what is archived is cleared in half the time after which it may be removed.
    static let halfDayNs: UInt64 = 43_200_000_000_000
    /// A thousand years: longer than anything lasts.
    static let daysMost: UInt64 = 365_000
}

extension Services {
    /// Whether nothing that archives hold may stay in other files.
    var leavesNothing: Bool {
        monitor.locked { leavesNothingLocked }
    }

    private var leavesNothingLocked: Bool {
        isPromisedLocked || keeping.leftovers.hasReused
    }

    private var isPromisedLocked: Bool {
        !settings.form.recipients.isEmpty || keeping.consent == .denied
    }

    func limitRing() {
        // Stored under the monitor, so that an older answer does not come last.
        monitor.locked {
            let most = leavesNothingLocked ? 0 : keeping.leftovers.ringMax
            unsafe EngineCore.limitRing(engine, most)
        }
    }

    /// The store's file or the host says so. Any thread.
    func follow(_ consent: Consent) {
        let isNew = monitor.locked {
            defer { keeping.consent = consent }
            return keeping.consent != consent
        }
        guard isNew else { return }
        limitRing()
        guard consent == .denied else { return }
        clearLeftovers()
        // What ended processes left is archived, and their files are removed.
        adoptSoon()
    }

    /// Clears what archives hold and this process's files still have. Any thread; supply and ship
    /// do it.
    private func clearLeftovers() {
        monitor.locked {
            keeping.leftovers.hasReused = true
            keeping.leftovers.copiesDue = 0
            keeping.leftovers.clearedNs = cw_realtime_ns()
            wakeShipperLocked()
        }
        limitRing()
        unsafe EngineCore.wakeHelper(engine)
    }

    /// On the ship thread. An archive may be removed for its age by any program; what it holds is
    /// gone from this process's files before that.
    func clearExpiring() {
        let days = min(UInt64(uploads.expirationDays), LeftoverKeeping.daysMost)
        let now = cw_realtime_ns()
        let last = monitor.locked { keeping.leftovers.clearedNs }
        guard days > 0, now < last || now - last >= days * LeftoverKeeping.halfDayNs else { return }
        clearLeftovers()
    }

    /// On the supply thread.
    func leaveReused() {
        guard monitor.locked({ keeping.leftovers.hasReused }) else { return }
        // This thread alone computes how many files are worth keeping.
        limitRing()
        let isFresh = sealingOnSupply { unsafe EngineCore.dropReused(engine) }
        let isDone = monitor.locked {
            guard isFresh, !sealedWaiting.contains(where: { $0.generation > 1 }) else {
                return false
            }
            keeping.leftovers.hasReused = false
            return true
        }
        if isDone { limitRing() }
    }

    var copiesDue: UInt64 { monitor.locked { keeping.leftovers.copiesDue } }

    /// On the ship thread.
    func clearCopies(now: UInt64) { if now >= copiesDue { clearCopies() } }

    /// On a thread that archives: clears what archives hold from segment 0 and from the journal.
    /// CRASH: the lane has what archives hold already, as after every archive; adopters remove it.
    func clearCopies() {
        monitor.locked { keeping.leftovers.copiesDue = .max }
        let lane = unsafe EngineCore.laneName(engine)
        let isFirstClear =
            switch sealing.locked({ unsafe EngineCore.clearFirst(engine) }) {
            case .done: true
            case .waits: false
            case .overwritten: syncFirst(of: lane)
            }
        let error = journal.locked { unsafe journalWriter.renew(engine, journalGuards) }
        guard !isFirstClear || error != 0 else { return }
        monitor.locked {
            keeping.leftovers.copiesDue = cw_monotonic_ns() + LeftoverKeeping.pauseNs
        }
    }

    private func syncFirst(of lane: String) -> Bool {
        guard unsafe EngineCore.syncCleared(engine, of: lane) else { return false }
        sealing.locked { unsafe EngineCore.markCleared(engine, of: lane) }
        return true
    }

    /// The lanes that close archives: those of this process, where nothing may ever be left. What
    /// may expire needs no archive for that.
    var lanesToArchive: Set<String> {
        guard monitor.locked({ isPromisedLocked }), !settings.isMemory else { return [] }
        return unsafe EngineCore.laneNames(engine)
    }

    /// In close, once the lanes are let go: archives them and removes their files. What the end of
    /// the process prevents, the next adopter does. On one of the engine's threads.
    func archiveOwn(_ lanes: Set<String>) {
        guard !lanes.isEmpty, hasRoom() else { return }
        let form = form(segmentsWaiting: 0)
        _ = try? StoreArchiver.archiveDead(
            directory: directory, codec: form.codec, level: form.level, method: form.method,
            timeStepNs: form.timeStepNs, recipients: form.recipients, only: lanes)
    }
}
