// What the engine does where its own lane cannot be written to or found any more: it makes the
// store's directory again where that is gone, begins a new lane, tells what may be lost, and leaves
// the old lane to adoption. The supply thread looks; a thread of its own renews, for it waits for a
// flush that is under way.

import CShims
import CordwoodCore
import CordwoodShip
import CordwoodStore
import Glibc

/// The supply thread's and the renewing thread's notes.
struct LaneKeeping {
    /// Under the sealing lock.
    var left: LeftLane?
    /// Lanes that were left and may be on the disk still, with the errno of what could not be
    /// synced there. Under the journal's lock.
    var unsynced: [String: Int32] = [:]
    /// Under the services' monitor.
    var isRenewing = false
    /// The supply thread's.
    var next: UInt64 = 0
    var lastWhole = cw_monotonic_ns()
    /// Device and inode of the file `store`, when all was well.
    var store: [UInt64]?
    /// What it said, or the host since. Under the services' monitor.
    var consent: Consent?
    /// When to look whether archives are gone with the lane; 0: not.
    var looks: UInt64 = 0
    var hasGivenUp = false
    /// What they held, and the file `store` that stood beside them.
    var stake: (records: UInt64, store: [UInt64]?) = (0, nil)

    static let pauseNs: UInt64 = 1_000_000_000
}

extension Services {
    /// On the supply thread, ten times a second.
    func watchLane(now: UInt64) {
        let isFree = sealing.locked {
            guard var left = keeping.left, !isArchivingLeft else { return false }
            let isOver = unsafe left.letGo(engine)
            keeping.left = isOver ? nil : left
            return isOver
        }
        if isFree {
            adoptSoon()
            // Somebody may still be at it.
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
            // What failed once is never durable until an archive holds it (R36).
            let error = trouble == .unusable ? EIO : journalWriter.pendingError
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

    /// Under the journal's lock.
    private func leave(
        _ trouble: EngineCore.LaneTrouble, since: UInt64, _ lanes: Int32
    ) -> (name: String, lost: UInt64)? {
        sealing.locked {
            let name = unsafe EngineCore.laneName(engine)
            let archived = trouble == .unusable ? nil : recordsArchived
            // Names are added under the monitor.
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

    /// Where its parent still stands: a disk that is not mounted is not written below. A
    /// descriptor of lanes/, or -1.
    private func makeDirectoryAgain() -> Int32 {
        guard !settings.isMemory else { return -1 }
        let parent = directory.lastIndex(of: "/").map { String(directory[..<$0]) } ?? ""
        var status = stat()
        guard unsafe stat(parent.isEmpty ? "/" : parent, &status) == 0 else { return -1 }
        let consent = monitor.locked { keeping.consent } ?? settings.options.consent
        return (try? Directories.openStore(directory, consent: consent)) ?? -1
    }

    /// Every file of a lane that nobody writes to any more. 0 or an errno.
    private func syncLane(_ name: String) -> Int32 {
        guard let lane = try? StoreArchiver.files(directory, name) else { return EAGAIN }
        for path in lane.segments.map(\.path) + [lane.lanePath]
            + lane.catalogs.map({ "\(directory)/lanes/\(name).catalog-\($0)" })
        {
            let error = Directories.sync(path)
            guard error == 0 || error == ENOENT else { return error }
        }
        return 0
    }

    /// Under the journal's lock: 0, or the errno of what a lane that was left still holds and the
    /// disk may not have. Once the lane is gone an archive has it.
    var leftLaneError: Int32 {
        for (name, error) in keeping.unsynced {
            var status = stat()
            guard unsafe lstat("\(directory)/lanes/\(name).lane", &status) != 0, errno == ENOENT
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
        var status = stat()
        guard unsafe lstat(directory + "/store", &status) == 0 else { return nil }
        return [UInt64(status.st_dev), UInt64(status.st_ino)]
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
    /// Under the sealing lock, when another lane has begun: what the old one holds is adoption's.
    func forgetWaiting() {
        monitor.locked {
            laneEpoch += 1
            archivedCount += UInt64(sealedWaiting.count)
            sealedWaiting = []
            archivedRun = nil
            monitor.notify()
        }
    }

    /// Records that archives of ours hold or held, at least: each gap record in one tells of a
    /// refusal.
    var recordsArchived: UInt64 {
        let dropped = unsafe EngineCore.counts(engine).dropped
        return monitor.locked { ownArchived - min(ownArchived, dropped) }
    }

    /// Whoever removed files of the lane may have removed the whole store, archives and all: then
    /// another file `store` stands there, or none.
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

    /// All that was kept until now is told as lost, or archived.
    func forgetRecords() {
        let records = unsafe EngineCore.counts(engine).records
        monitor.locked { ownArchived = max(ownArchived, records) }
    }

    func adoptSoon() {
        adoption.want()
        wakeShipper()
    }
}
