// Replaces the engine's lane if it can no longer be written or found: makes the store's directory
// again if it is gone, begins a new lane, reports what may be lost, and leaves the old lane to
// adoption. The supply thread checks. A separate thread makes the new lane, because it waits for a
// flush that is under way.

import CShims
import CordwoodCore
import CordwoodShip
import CordwoodStore

/// Notes of the supply thread and of the thread that renews the lane.
struct LaneKeeping {
    /// Guarded by the sealing lock.
    var left: LeftLane?
    /// Abandoned lanes that may still be on the disk, with the errno of a sync that failed there.
    /// Guarded by the journal's lock.
    var unsynced: [String: Int32] = [:]
    /// Guarded by the services' monitor.
    var isRenewing = false
    /// Used only by the supply thread.
    var next: UInt64 = 0
    var lastWhole = cw_monotonic_ns()
    /// Device and inode of the file `store` when all was well.
    var store: [UInt64]?
    /// The consent in that file, or the one the host set since. Guarded by the services' monitor.
    var consent: Consent?
    /// When to check whether the archives went with the lane; 0: no check is due.
    var looks: UInt64 = 0
    var hasGivenUp = false
    /// The number of records in the archives, and the file `store` beside them.
    var stake: (records: UInt64, store: [UInt64]?) = (0, nil)

    static let pauseNs: UInt64 = 1_000_000_000
}

extension Services {
    /// Runs on the supply thread, ten times a second.
    func watchLane(now: UInt64) {
        let isFree = sealing.locked {
            guard var left = keeping.left, !isArchivingLeft else { return false }
            let isOver = unsafe left.letGo(engine)
            keeping.left = isOver ? nil : left
            return isOver
        }
        if isFree {
            adoptSoon()
            // Whoever removes the files may still be at work.
            keeping.looks = now + LaneKeeping.pauseNs
        }
        if keeping.looks != 0, now >= keeping.looks {
            keeping.looks = 0
            missArchives()
        }
        guard now >= keeping.next, !monitor.locked({ keeping.isRenewing }) else { return }
        let trouble = sealing.locked {
            keeping.left == nil ? unsafe EngineCore.laneTrouble(engine) : .none
        }
        guard trouble != .none else {
            keeping.lastWhole = now
            let store = LaneKeeping.identity(directory)
            guard store != keeping.store,
                let consent = try? StoreSettings.consent(directory: directory)
            else { return }
            keeping.store = store
            monitor.locked { keeping.consent = consent }
            return
        }
        keeping.next = now + LaneKeeping.pauseNs
        if unsafe EngineCore.hasLeftAll(engine) {
            if !keeping.hasGivenUp { giveUp() }
            return
        }
        let since = keeping.lastWhole
        if trouble != .unusable, keeping.stake.records == 0 {
            keeping.stake = (recordsArchived, keeping.store)
        }
        monitor.locked { keeping.isRenewing = true }
        let started = startThread("cordwood-lane") { [self] in
            renewLane(trouble, since: since)
            monitor.locked { keeping.isRenewing = false }
        }
        if !started { monitor.locked { keeping.isRenewing = false } }
    }

    private func giveUp() {
        keeping.hasGivenUp = true
        report(
            UploadDiagnostic(
                level: UploadDiagnostic.error,
                message: "files of this process's lanes were removed too often; "
                    + "what is logged from here on is lost until it opens the store again",
                fields: [("lane", .text(unsafe EngineCore.laneName(engine)))]),
            as: "Cordwood.Store")
    }

    private var isArchivingLeft: Bool {
        monitor.locked { archivingEpoch.map { $0 != laneEpoch } ?? false }
    }

    private func renewLane(_ trouble: EngineCore.LaneTrouble, since: UInt64) {
        let lanes = trouble == .directoryGone ? makeDirectoryAgain() : -1
        guard trouble != .directoryGone || lanes >= 0 else { return }
        let renewed: (name: String, lost: UInt64)? = journal.locked {
            guard let left = leave(trouble, since: since, lanes) else { return nil }
            // After a failure nothing counts as durable until an archive holds it (R36).
            let error = trouble == .unusable ? Errno.EIO : journalWriter.pendingError
            keeping.unsynced[left.name] = error != 0 ? error : syncLane(left.name)
            return left
        }
        guard let renewed else { return }
        report(
            UploadDiagnostic(
                level: UploadDiagnostic.error, message: LaneKeeping.text(trouble),
                fields: [
                    ("lane", .text(renewed.name)),
                    ("records_lost_at_most", .number(Int64(clamping: renewed.lost))),
                ]), as: "Cordwood.Store")
    }

    /// Called under the journal's lock.
    private func leave(
        _ trouble: EngineCore.LaneTrouble, since: UInt64, _ lanes: Int32
    ) -> (name: String, lost: UInt64)? {
        sealing.locked {
            let name = unsafe EngineCore.laneName(engine)
            let archived = trouble == .unusable ? nil : recordsArchived
            // The monitor guards the adding of names.
            let left = monitor.locked {
                unsafe EngineCore.renewLane(
                    engine, archived: archived, since: since, lanesDirectory: lanes)
            }
            guard let left else { return nil }
            keeping.left = left
            forgetWaiting()
            if archived != nil { forgetRecords() }
            return (name, left.lost)
        }
    }

    /// Makes the directory only if its parent still exists: nothing is written below a disk that is
    /// not mounted. Returns a descriptor of lanes/, or -1.
    private func makeDirectoryAgain() -> Int32 {
        guard !settings.isMemory else { return -1 }
        let parent = directory.lastIndex(of: "/").map { String(directory[..<$0]) } ?? ""
        guard FileFacts(following: parent.isEmpty ? "/" : parent) != nil else { return -1 }
        let consent = monitor.locked { keeping.consent } ?? settings.options.consent
        return (try? Directories.openStore(directory, consent: consent)) ?? -1
    }

    /// Syncs every file of a lane that has no writers any more. Returns 0 or an errno.
    private func syncLane(_ name: String) -> Int32 {
        guard let lane = try? StoreArchiver.files(directory, name) else { return Errno.EAGAIN }
        for path in lane.segments.map(\.path) + [lane.lanePath]
            + lane.catalogs.map({ "\(directory)/lanes/\(name).catalog-\($0)" })
        {
            let error = Directories.sync(path)
            guard error == 0 || error == Errno.ENOENT else { return error }
        }
        return 0
    }

    /// Called under the journal's lock. 0, or the errno of records that an abandoned lane still
    /// holds and the disk may not have. Once the lane is gone, an archive has them.
    var leftLaneError: Int32 {
        for (name, error) in keeping.unsynced {
            guard FileFacts(at: "\(directory)/lanes/\(name).lane") == nil,
                Errno.last == Errno.ENOENT
            else {
                if error != 0 { return error }
                continue
            }
            keeping.unsynced[name] = nil
        }
        return 0
    }
}

extension LaneKeeping {
    fileprivate static func identity(_ directory: String) -> [UInt64]? {
        FileFacts(at: directory + "/store").map { [$0.device, $0.inode] }
    }

    fileprivate static func text(_ trouble: EngineCore.LaneTrouble) -> String {
        switch trouble {
        case .directoryGone: "the store's directory was gone and has been made again"
        case .nameless: "a file of this lane was removed; a new lane has begun"
        case .none, .unusable: "this lane could not be written to any more; a new one has begun"
        }
    }
}

extension Services {
    /// Called under the sealing lock once another lane has begun: adoption gets the old lane's
    /// contents.
    func forgetWaiting() {
        monitor.locked {
            laneEpoch += 1
            archivedCount += UInt64(sealedWaiting.count)
            sealedWaiting = []
            firstWaits = true
            archivedRun = nil
            monitor.notify()
        }
    }

    /// A lower bound of the records that our archives hold or held: each gap record in one reports
    /// a refusal.
    var recordsArchived: UInt64 {
        let dropped = unsafe EngineCore.counts(engine).dropped
        return monitor.locked { ownArchived - min(ownArchived, dropped) }
    }

    /// Whoever removed files of the lane may have removed the whole store with its archives. The
    /// file `store` is then a different one, or missing.
    private func missArchives() {
        let stake = keeping.stake
        keeping.stake = (0, nil)
        guard stake.records > 0, LaneKeeping.identity(directory) != stake.store else { return }
        sealing.locked { unsafe EngineCore.tellLost(engine, stake.records) }
        report(
            UploadDiagnostic(
                level: UploadDiagnostic.error, message: "the store's archives are gone too",
                fields: [("records_lost_at_most", .number(Int64(clamping: stake.records)))]),
            as: "Cordwood.Store")
    }

    /// Counts every record kept until now as archived or as reported lost.
    func forgetRecords() {
        let records = unsafe EngineCore.counts(engine).records
        monitor.locked { ownArchived = max(ownArchived, records) }
    }

    func adoptSoon() {
        adoption.want()
        wakeShipper()
    }
}
