// Removes archives from the disk: after upload once every registered target has them, by retention,
// and when consent is denied. Every deletion happens under the archive's lock, after all targets'
// states were read again (R38). One enforcer per store: retention holds the lock of archives/.
// Callbacks run after the deletions, with no lock held. An archive that cannot be deleted
// (immutable, owned by another user) stays, is reported once, and holds nothing else up.

import CordwoodFormats
import CordwoodStore

struct Janitor {
    let service: UploadService

    /// Unlinks an archive whose only target has just taken it, in place of writing down its state.
    /// `deleteDone` forgets it later. A deletion that is impossible now is no failure: what
    /// was sent stays sent.
    /// - Returns: false: it stays, and needs a state.
    func unlinkSole(_ archive: borrowing ArchiveLock, _ target: TargetKey) -> Bool {
        do throws(UploadError) {
            guard service.mayDelete, try service.registeredKeys() == [target],
                try service.takesArchives(), archive.widen(), !service.isBeingReplaced(archive.stem)
            else { return false }
            try archive.unlink(paths: service.paths)
            return true
        } catch {
            complain(archive.stem, error)
            return false
        }
    }

    /// Deletes those of the archives that no registered target needs any more. If another target is
    /// working on one, the last one deletes it, or the next pass does. Their segments are gone, and
    /// synced since (`UploadService.clear`).
    /// - Parameter done: a target that has all of them, though its states may be unwritten: on a
    ///   full disk the deletion is the remedy.
    /// CRASH: before this, the next pass deletes them, without another upload.
    func deleteDone(_ stems: [String], done: TargetKey? = nil) {
        guard service.mayDelete else { return }
        var gone: [String] = []
        for stem in stems {
            do throws(UploadError) {
                guard let lock = try ArchiveLock(paths: service.paths, stem: stem, target: nil)
                else {
                    if !StoreFiles.exists(service.paths.archive(stem)) { gone.append(stem) }
                    continue
                }
                guard try isDoneEverywhere(stem, done: done), !service.isBeingReplaced(stem)
                else { continue }
                try lock.unlink(paths: service.paths)
                gone.append(stem)
            } catch {
                complain(stem, error)
            }
        }
        do throws(UploadError) {
            try ArchiveLock.forget(gone, service.outbox)
        } catch {
            if let first = gone.first { complain(first, error) }
        }
        if !gone.isEmpty { service.registerOwed() }
    }

    /// Does the same for all archives: the leftovers of a crash, or of two targets that ended at
    /// once.
    func deleteDone() throws(UploadError) {
        let registered = try service.registeredKeys()
        guard !registered.isEmpty, try service.takesArchives() else { return }
        let stems = try service.outbox.snapshot().pairs.compactMap { stem, states in
            registered.allSatisfy { states[$0]?.isDone == true } ? stem : nil
        }
        guard !stems.isEmpty else { return }
        let covered = service.covered(stems)
        service.syncLanes()
        deleteDone(stems.filter { !covered.contains($0) })
    }

    func isDoneEverywhere(_ stem: String, done: TargetKey?) throws(UploadError) -> Bool {
        let registered = try service.registeredKeys()
        let states = try service.outbox.states(stem)
        guard !registered.isEmpty,
            registered.allSatisfy({ $0 == done || states[$0]?.isDone == true })
        else { return false }
        return try service.takesArchives()
    }

    func enforce(
        _ limits: RetentionLimits, otherBytes: UInt64
    ) throws(UploadError) -> UInt32 {
        guard limits != .unlimited else { return 0 }
        do throws(UploadError) {
            let removed = try remove(limits, otherBytes)
            let expired = removed.count { $0.reason == .expired && $0.unsent != nil }
            service.noteExpired(UInt32(clamping: expired))
            tell(removed)
            tell(limits, removed)
            return UInt32(removed.count)
        } catch {
            if service.isNews("\(service.paths.archives)") {
                service.report(
                    UploadDiagnostic.error, "the limits of the store cannot be kept",
                    [("cause", .text(error.text))])
            }
            throw error
        }
    }

    private func remove(
        _ limits: RetentionLimits, _ otherBytes: UInt64
    ) throws(UploadError) -> [Removal] {
        let lock = try StoreFiles.lockDirectory(service.paths.archives)
        defer { _ = lock.number }
        let lanes = LaneListing(directory: service.paths.root)
        var items = try service.archives().compactMap { entry -> RetentionItem? in
            // A directory or a link with such a name is not an archive, and would never go away.
            guard let bytes = StoreFiles.bytesOnDisk(service.paths.archive(entry.stem)) else {
                return nil
            }
            return RetentionItem(
                stem: entry.stem, bytes: bytes,
                writtenNs: entry.summary?.writtenNs ?? 0,
                isPinned: lanes.isCovered(
                    archive: StorePaths.file(ofStem: entry.stem), service.paths.root))
        }
        let now = service.clock.look
        let believesClock = limits.expirationDays == 0 || believes(now, items)
        var removed: [Removal] = []
        var isDone = false
        while !isDone {
            isDone = true
            let decided = Retention.decide(
                items: items, otherBytes: otherBytes, limits: limits, nowNs: now.realtimeNs,
                believesClock: believesClock)
            for (stem, reason) in decided {
                if let removal = tryRemove(stem, reason) {
                    items.removeAll { $0.stem == stem }
                    removed.append(removal)
                } else if let index = items.firstIndex(where: { $0.stem == stem }) {
                    // It is being uploaded, or cannot be deleted: decides anew without it.
                    items[index].isPinned = true
                    isDone = false
                    break
                }
            }
        }
        return removed
    }

    /// The caller holds the lock of archives/. In a store without archives there is nothing to
    /// check.
    private func believes(_ now: ClockLook, _ items: [RetentionItem]) -> Bool {
        guard !items.isEmpty else { return true }
        let root = service.paths.root
        guard let read = service.unwrittenTrust ?? ClockFile.read(storeDirectory: root) else {
            return false  // a later version's: it removes
        }
        var trust = read
        let newest = items.map(\.writtenNs).max() ?? 0
        let verdict = trust.look(now, newestRecordNs: newest)
        // CRASH: it is reported before it is written down, so possibly twice.
        if case .waits(let left, begins: true) = verdict {
            service.report(
                UploadDiagnostic.warn,
                "the clock may have jumped: no archive is removed for its age for a day",
                [
                    ("clock", .text(Times.text(seconds: Int64(now.realtimeNs / 1_000_000_000)))),
                    ("newest", .text(Times.text(seconds: Int64(newest / 1_000_000_000)))),
                    ("wait_seconds", .number(Int64(left / 1_000_000_000))),
                ])
        }
        if trust.differs(from: read) || service.unwrittenTrust != nil {
            // On a full disk only this process remembers that it waits.
            let isWritten = (try? ClockFile.write(trust, storeDirectory: root)) != nil
            service.unwrittenTrust = isWritten ? nil : trust
        }
        if case .waits = verdict { return false }
        return true
    }

    /// - Parameter until: UTC ns; archives made later are kept.
    func removeWaiting(until: UInt64) throws(UploadError) -> UInt32 {
        let registered = try service.registeredKeys()
        let snapshot = try service.outbox.snapshot()
        let lanes = LaneListing(directory: service.paths.root)
        var removed: [Removal] = []
        defer { tell(removed) }
        var trouble: UploadError?
        for (stem, _) in try service.archives() {
            guard registered.contains(where: { snapshot.state(stem, $0).isUnsent }),
                StoreFiles.modifiedNs(service.paths.archive(stem)) <= until,
                !lanes.isCovered(archive: StorePaths.file(ofStem: stem), service.paths.root)
            else { continue }
            do throws(UploadError) {
                guard let removal = try remove(stem, .consent) else { continue }
                removed.append(removal)
            } catch {
                complain(stem, error)
                trouble = trouble ?? error
            }
        }
        if let trouble { throw trouble }
        return UInt32(removed.count)
    }

    /// nil: it is locked elsewhere, or cannot be deleted.
    private func tryRemove(_ stem: String, _ reason: RemovalReason) -> Removal? {
        do throws(UploadError) {
            return try remove(stem, reason)
        } catch {
            complain(stem, error)
            return nil
        }
    }

    /// Once per archive: every round tries again.
    private func complain(_ stem: String, _ error: UploadError) {
        guard service.isNews("\(service.paths.archive(stem))") else { return }
        service.report(
            UploadDiagnostic.error, "an archive cannot be deleted; it stays, the others go",
            [("archive", .text(StorePaths.file(ofStem: stem))), ("cause", .text(error.text))])
    }

    /// Writes states that an earlier attempt could not write; archives done for all are then
    /// deleted.
    func writeDown(_ runner: TargetRunner) {
        for stem in runner.unwrittenStems {
            let key = runner.target.key
            do throws(UploadError) {
                guard let lock = try ArchiveLock(paths: service.paths, stem: stem, target: key)
                else {
                    if !StoreFiles.exists(service.paths.archive(stem)) {
                        runner.remember(stem, nil)
                    }
                    continue
                }
                let read = try service.outbox.states(stem)[key] ?? .waiting
                if let one = runner.unwritten(stem, beyond: read) {
                    try service.outbox.set(lock.stem, key, to: one.state, refusals: one.refusals)
                }
                runner.remember(stem, nil)
            } catch {
                continue  // still not
            }
        }
    }

    private struct Removal {
        var stem: String
        var reason: RemovalReason
        /// The targets' states of the archive.
        var states: [TargetKey: PairState] = [:]
        /// nil: all targets had it, or it was removed elsewhere. No callback is called.
        var unsent: RemovedArchive?
        /// The file `removed` has its line.
        var isNoted = false
    }

    /// nil: it is locked elsewhere.
    private func remove(_ stem: String, _ reason: RemovalReason) throws(UploadError) -> Removal? {
        let lock = try ArchiveLock(paths: service.paths, stem: stem, target: nil)
        guard let lock else {
            return StoreFiles.exists(service.paths.archive(stem))
                ? nil : Removal(stem: stem, reason: reason)
        }
        let states = try service.outbox.states(stem)
        var removal = Removal(stem: stem, reason: reason, states: states)
        if try isDoneEverywhere(stem, done: nil) {
            try lock.deleteArchive(paths: service.paths)
        } else {
            let unsent = try unsent(removal)
            removal.unsent = unsent
            removal.isNoted = try lock.deleteArchive(paths: service.paths, unsent: unsent)
        }
        service.count { $0.archivesRemoved += 1 }
        return removal
    }

    /// What is lost with an archive, and whose programs must be told.
    private func unsent(_ removal: Removal) throws(UploadError) -> RemovedArchive {
        let registered = try service.registeredKeys()
        let summary = service.knownSummary(removal.stem)
        var sum = RemovedSum(removal.reason, archives: 1)
        if let summary {
            let all = summary.recordCount
            sum.records =
                try service.takesArchives()
                ? registered.map { (removal.states[$0] ?? .waiting).unsent(of: all) }.max() ?? all
                : all
            (sum.timeMin, sum.timeMax) = (summary.timeMin, summary.timeMax)
        }
        let waiting = registered.filter { !(removal.states[$0] ?? .waiting).isFinal }
        let untold = waiting.map(\.text) + [RemovedArchive.host]
        return RemovedArchive(stem: removal.stem, sum: sum, untold: Set(untold))
    }

    /// Tells the host what this process or another one removed unsent: each removal is told once,
    /// to one host.
    func tellUntold() {
        let runners = service.currentRunners.filter { $0.target.callbacks.hearsRemovals }
        var askers = Set(runners.map(\.target.key.text))
        if service.delegate?.hearsRemovals == true { askers.insert(RemovedArchive.host) }
        guard !askers.isEmpty else { return }
        let claimed = RemovedFile.claim(for: askers, storeDirectory: service.paths.root)
        for archive in claimed { tell(archive, runners) }
    }

    private func tell(_ archive: RemovedArchive, _ runners: [TargetRunner]) {
        let (file, reason) = (StorePaths.file(ofStem: archive.stem), archive.sum.reason)
        for runner in runners where archive.untold.contains(runner.target.key.text) {
            // Its state may be one that could not be written.
            if runner.known(archive.stem, .waiting).isFinal { continue }
            runner.tell { $0.completed?(file, Janitor.status(reason), 0) }
        }
        if archive.untold.contains(RemovedArchive.host) {
            service.delegate?.archiveRemoved(file, reason)
        }
    }

    /// Once no lock is held.
    private func tell(_ removed: [Removal]) {
        // Those without a line, as on a full disk, are known to this process alone.
        for case let unsent? in removed.map({ $0.isNoted ? nil : $0.unsent }) {
            tell(unsent, service.currentRunners)
        }
        if !removed.isEmpty { tellUntold() }
    }

    /// Says in the store's log which limit removes what was not sent, when it does so for the first
    /// time in this store.
    private func tell(_ limits: RetentionLimits, _ removed: [Removal]) {
        for reason in [RemovalReason.quota, .count, .expired] {
            let sums = removed.compactMap { $0.reason == reason ? $0.unsent?.sum : nil }
            // The log of a program that ends takes no more records; the next one names the limit.
            guard !sums.isEmpty, !service.isStopped, service.isNews("limit \(reason.word)"),
                RemovedFile.names(reason, storeDirectory: service.paths.root)
            else { continue }
            service.report(
                UploadDiagnostic.warn,
                "a limit of the store deletes its oldest archives, sent or not",
                limits.fields(reason)
                    + [
                        ("archives", .number(Int64(sums.count))),
                        ("records", .number(Int64(clamping: sums.reduce(0) { $0 &+ $1.records }))),
                    ])
        }
    }

    /// The status for `completed`.
    private static func status(_ reason: RemovalReason) -> UploadStatus {
        switch reason {
        case .quota: return .full
        case .count, .expired: return .limit
        case .consent: return .consent
        }
    }
}

extension RetentionLimits {
    /// The limit that removes for this reason, and whether it is the one of programs that set none.
    fileprivate func fields(_ reason: RemovalReason) -> [(key: String, value: DiagnosticValue)] {
        let standard = RetentionLimits.standard
        let (key, value, usual) =
            switch reason {
            case .quota: ("quota_bytes", quotaBytes, standard.quotaBytes)
            case .count: ("archives_max", UInt64(archivesMax), UInt64(standard.archivesMax))
            case .expired, .consent:
                ("expiration_days", UInt64(expirationDays), UInt64(standard.expirationDays))
            }
        return [
            (key, .number(Int64(clamping: value))),
            ("limit", .text(value == usual ? "the default" : "set by a program or a policy")),
        ]
    }
}
