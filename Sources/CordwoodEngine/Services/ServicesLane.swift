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
    /// From here on, used only by the supply thread, or by the thread that renews the lane while
    /// the supply thread leaves all this alone: `isRenewing` orders them.
    var next: UInt64 = 0
    var lastWhole = cw_monotonic_ns()
    /// The state of the file `store` when it was last read, and the id in it; nil: it was missing.
    /// Only the id is proof: a new file may get the inode of the old one.
    var store: [UInt64]?
    var storeID: String?
    /// The consent in that file, or the one the host set since. Guarded by the services' monitor.
    var consent: Consent?
    /// Guarded by the services' monitor.
    var leftovers = LeftoverKeeping()
    var hasGivenUp = false
    /// Where the moved store was last reported to lie; "": the
    /// system does not say. nil: it is at its path.
    var toldPlace: String?
    var nextPlace: UInt64 = 0

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
        if isFree { adoptSoon() }
        guard now >= keeping.next, !monitor.locked({ keeping.isRenewing }) else { return }
        let trouble = laneTrouble
        guard trouble != .none else {
            keeping.lastWhole = now
            watchStore(now: now)
            watchPlace(now: now)
            return
        }
        keeping.next = now + LaneKeeping.pauseNs
        if unsafe EngineCore.hasLeftAll(engine) {
            if !keeping.hasGivenUp { giveUp() }
            return
        }
        let since = keeping.lastWhole
        onLaneThread { [self] in renewLane(trouble, since: since) }
    }

    private var laneTrouble: EngineCore.LaneTrouble {
        sealing.locked {
            guard keeping.left == nil else { return .none }
            // Looked at first: what is deleted in between is gone, not elsewhere.
            let isElsewhere = isElsewhere
            let trouble = unsafe EngineCore.laneTrouble(engine)
            return trouble != .directoryGone && isElsewhere ? .directoryLost : trouble
        }
    }

    /// What this process has in lanes/ is elsewhere, and not known to be lost: the host closed the
    /// store's directory and it was not found again, or lanes/ was moved out of it.
    var isElsewhere: Bool {
        if store.isElsewhere { return true }
        guard let lanes = FileFacts(at: directory + "/lanes") else {
            return Errno.last == Errno.ENOENT && !store.isGone
        }
        return unsafe !EngineCore.isLanes(engine, lanes.device, lanes.inode)
    }

    private func onLaneThread(_ work: @escaping @Sendable () -> Void) {
        monitor.locked { keeping.isRenewing = true }
        onThread("cordwood-lane") { [self] in
            work()
            monitor.locked { keeping.isRenewing = false }
        }
    }

    /// If the file `store` has another id or is missing, somebody deleted the store and its
    /// archives. A missing file is made again: what this process wrote during the deletion may
    /// have kept the directory.
    private func watchStore(now: UInt64) {
        let state = LaneKeeping.state(ofStore: directory)
        guard state == nil || state != keeping.store else { return }
        let found: StoreFile?
        do { found = try StoreFile.read(storeDirectory: directory) } catch { return }
        guard !isElsewhere else { return }
        keeping.store = state
        if found?.id != keeping.storeID { missArchives() }
        keeping.storeID = found?.id
        if let found {
            follow(found.consent)
            return
        }
        keeping.next = now + LaneKeeping.pauseNs
        onLaneThread { [self] in
            if let made = makeDirectoryAgain(.none) { FileCalls.close(made.lanes) }
        }
    }

    /// In close: consent may have been denied since the supply thread last looked.
    func followStore() {
        guard !settings.isMemory, LaneKeeping.state(ofStore: directory) != keeping.store,
            let found = try? StoreFile.read(storeDirectory: directory)
        else { return }
        monitor.locked { keeping.consent = found.consent }
    }

    /// Records go where the open directory is. If it was moved, its new place is reported once.
    private func watchPlace(now: UInt64) {
        guard now >= keeping.nextPlace else { return }
        keeping.nextPlace = now + LaneKeeping.pauseNs
        let place = store.isMoved ? store.place ?? "" : nil
        guard place != keeping.toldPlace else { return }
        keeping.toldPlace = place
        let message =
            place == nil
            ? "the store's directory is back at its path"
            : "the store's directory was moved; records go on to it"
        var fields: [(key: String, value: DiagnosticValue)] = [("path", .text(store.path))]
        if let place, !place.isEmpty { fields.append(("place", .text(place))) }
        report(
            UploadDiagnostic(level: UploadDiagnostic.warn, message: message, fields: fields),
            as: "Cordwood.Store")
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
        let isOther = trouble == .directoryGone || trouble == .directoryLost
        let made = isOther ? makeDirectoryAgain(trouble) : nil
        guard !isOther || made != nil else { return }
        let renewed: (name: String, lost: UInt64)? = journal.locked {
            guard let left = leave(trouble, since: since, made) else { return nil }
            // After a failure nothing counts as durable until an archive holds it (R36).
            let error = trouble == .unusable ? Errno.EIO : journalWriter.pendingError
            keeping.unsynced[left.name] = error != 0 ? error : syncLane(left.name)
            return left
        }
        guard let renewed else { return }
        if isOther { keeping.toldPlace = nil }
        report(
            UploadDiagnostic(
                level: trouble == .resources ? UploadDiagnostic.warn : UploadDiagnostic.error,
                message: LaneKeeping.text(trouble),
                fields: LaneKeeping.fields(trouble, renewed.name, renewed.lost, store.path)),
            as: "Cordwood.Store")
    }

    /// Called under the journal's lock.
    private func leave(
        _ trouble: EngineCore.LaneTrouble, since: UInt64, _ made: (lanes: Int32, losses: UInt64)?
    ) -> (name: String, lost: UInt64)? {
        sealing.locked {
            let name = unsafe EngineCore.laneName(engine)
            let isLoss = trouble == .directoryGone || trouble == .nameless
            let known = isLoss ? monitor.locked { ownArchived + ownLost } : nil
            // The monitor guards the adding of names.
            let left = monitor.locked {
                unsafe EngineCore.renewLane(
                    engine, known: known, since: since, lanesDirectory: made?.lanes ?? -1)
            }
            guard let left else { return nil }
            keeping.left = left
            forgetWaiting()
            if isLoss { forgetRecords() }
            if trouble == .directoryLost { leaveRecordsBehind() }
            if let made { store.acknowledge(made.losses) }
            return (name, left.lost)
        }
    }

    /// Makes what is missing of the store again. If its directory is gone, a new one is made at the
    /// path, but only if the parent still exists: nothing is written below a disk that is not
    /// mounted. Returns a descriptor of lanes/, and the losses that led to it.
    private func makeDirectoryAgain(
        _ trouble: EngineCore.LaneTrouble
    ) -> (lanes: Int32, losses: UInt64)? {
        guard !settings.isMemory else { return nil }
        let consent = monitor.locked { keeping.consent } ?? settings.options.consent
        do throws(CordwoodError) {
            if store.isGone {
                let path = FilePath(store.path)
                guard FileFacts(following: path.parent) != nil else { return nil }
                guard store.makeAgain(), store.beginAnew() else { return nil }
                _ = Directories.sync(path.parent + "/.")
            }
            // Read first: a directory that is lost from here on is another loss.
            let losses = store.losses
            let lanes = try Directories.openLanes(
                store, consent: consent, groupReads: settings.options.groupReads)
            // What is archived from here on is in the store that was made.
            let id = (try? StoreFile.read(storeDirectory: directory))?.id
            if id != keeping.storeID, trouble != .directoryLost { missArchives() }
            keeping.storeID = id
            return (lanes, losses)
        } catch {
            return nil
        }
    }

    /// Syncs every file of a lane that has no writers any more. Returns 0 or an errno.
    private func syncLane(_ name: String) -> Int32 {
        guard let lane = try? StoreArchiver.files(directory, name) else { return Errno.EAGAIN }
        for path in lane.segments.map(\.path) + [lane.lanePath]
            + (lane.catalogs ?? []).map({ directory + "/lanes/\(name).catalog-\($0)" })
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
            guard FileFacts(at: directory + "/lanes/\(name).lane") == nil,
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
    fileprivate static func state(ofStore directory: FilePath) -> [UInt64]? {
        FileFacts(at: directory + "/\(StoreFile.fileName)").map {
            [$0.device, $0.inode, $0.changedNs]
        }
    }

    fileprivate static func fields(
        _ trouble: EngineCore.LaneTrouble, _ lane: String, _ lost: UInt64, _ path: String
    ) -> [(key: String, value: DiagnosticValue)] {
        let more: (key: String, value: DiagnosticValue) =
            trouble == .directoryLost
            ? ("path", .text(path)) : ("records_lost_at_most", .number(Int64(clamping: lost)))
        return [("lane", .text(lane)), more]
    }

    fileprivate static func text(_ trouble: EngineCore.LaneTrouble) -> String {
        switch trouble {
        case .directoryGone: "the store's directory was gone and has been made again"
        case .directoryLost:
            "the directory with this process's records could not be found; records go on to the "
                + "one at the store's path, and the former one keeps what it has"
        case .nameless: "a file of this lane was removed; a new lane has begun"
        case .none, .unusable: "this lane could not be written to any more; a new one has begun"
        case .resources:
            "attributes of the resource were changed \(Resource.changesMax) times, so a new lane "
                + "has begun; values that change with each request belong in the context"
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
            archivedAtLook = archivedCount
            archivedRun = nil
            monitor.notify()
        }
    }

    /// Reports the archives of this process as lost.
    private func missArchives() {
        let records = monitor.locked {
            defer { ownArchived = 0 }
            ownLost += ownArchived
            return ownArchived
        }
        guard records > 0 else { return }
        sealing.locked { unsafe EngineCore.tellLost(engine, records) }
        report(
            UploadDiagnostic(
                level: UploadDiagnostic.error, message: "the store's archives are gone too",
                fields: [("records_lost_at_most", .number(Int64(clamping: records)))]),
            as: "Cordwood.Store")
    }

    /// Counts every record kept until now as archived or as reported lost.
    private func forgetRecords() {
        let records = unsafe EngineCore.counts(engine).records
        monitor.locked { ownLost = records - min(records, ownArchived) }
    }

    /// Nothing of what was kept or refused until now is in the store any more, and none of it is
    /// known to be lost.
    private func leaveRecordsBehind() {
        let counts = unsafe EngineCore.counts(engine)
        monitor.locked { (ownArchived, ownLost) = (0, counts.records + counts.dropped) }
    }

    func adoptSoon() {
        adoption.want()
        wakeShipper()
    }
}
