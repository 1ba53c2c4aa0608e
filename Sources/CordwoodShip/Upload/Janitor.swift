// Takes archives off the disk: after upload when every registered target has them, by retention,
// and when consent is denied. Every deletion happens under the archive's lock, after all targets'
// states were read again (R38). One enforcer a store: retention holds the lock of archives/.
// Callbacks are called after the deletion, with no lock held.

struct Janitor {
    let service: UploadService

    /// Deletes an archive that no registered target needs any more. Where another target is at it,
    /// who comes last deletes it, or the next pass.
    /// - Parameter done: a target whose 2xx could perhaps not be written down: on a full disk the
    ///   deletion is what helps.
    /// CRASH: before this the archive is deleted by the next pass, without another upload.
    func deleteIfDone(
        _ archive: borrowing ArchiveLock, done: TargetKey? = nil
    ) throws(UploadError) {
        guard try isDoneEverywhere(archive.stem, done: done), archive.widen(),
            !service.hooks.isCovered(StorePaths.file(ofStem: archive.stem))
        else { return }
        try archive.deleteArchive(paths: service.paths)
    }

    /// The same for all archives: what a crash, or two targets that ended at once, left.
    func deleteDone() throws(UploadError) {
        let registered = try service.registry.keys()
        guard !registered.isEmpty else { return }
        for (stem, states) in try service.outbox.snapshot().pairs {
            guard registered.allSatisfy({ states[$0]?.isDone == true }),
                let lock = try ArchiveLock(paths: service.paths, stem: stem, target: nil)
            else { continue }
            try deleteIfDone(lock)
        }
    }

    func isDoneEverywhere(_ stem: String, done: TargetKey?) throws(UploadError) -> Bool {
        let registered = try service.registry.keys()
        guard !registered.isEmpty else { return false }
        let states = try service.outbox.states(stem)
        return registered.allSatisfy { $0 == done || states[$0]?.isDone == true }
    }

    func enforce(
        _ limits: RetentionLimits, otherBytes: UInt64
    ) throws(UploadError) -> UInt32 {
        guard limits != .unlimited else { return 0 }
        let lock = try Files.lockDirectory(service.paths.archives)
        defer { _ = lock.number }
        var items = try service.archives().map { entry in
            RetentionItem(
                stem: entry.stem,
                bytes: entry.summary?.bytes ?? Files.size(service.paths.archive(entry.stem)),
                timeMaxNs: entry.summary?.timeMaxNs ?? 0,
                isPinned: service.hooks.isCovered(StorePaths.file(ofStem: entry.stem)))
        }
        let now = service.clock.realtimeMs()
        var removed: UInt32 = 0
        var isDone = false
        while !isDone {
            isDone = true
            let decided = Retention.decide(
                items: items, otherBytes: otherBytes, limits: limits,
                nowNs: now.multipliedReportingOverflow(by: 1_000_000).partialValue)
            for (stem, reason) in decided {
                if try remove(stem, reason) {
                    items.removeAll { $0.stem == stem }
                    removed += 1
                } else if let index = items.firstIndex(where: { $0.stem == stem }) {
                    // It is being uploaded: decide anew without it.
                    items[index].isPinned = true
                    isDone = false
                    break
                }
            }
        }
        return removed
    }

    func removeWaiting() throws(UploadError) -> UInt32 {
        let registered = try service.registry.keys()
        let snapshot = try service.outbox.snapshot()
        var removed: UInt32 = 0
        for (stem, _) in try service.archives() {
            guard registered.contains(where: { !snapshot.state(stem, $0).isFinal }),
                !service.hooks.isCovered(StorePaths.file(ofStem: stem))
            else { continue }
            if try remove(stem, .consent) { removed += 1 }
        }
        return removed
    }

    /// false: somebody else holds it.
    private func remove(_ stem: String, _ reason: RemovalReason) throws(UploadError) -> Bool {
        guard let (states, isDone) = try delete(stem) else {
            return !Files.exists(service.paths.archive(stem))
        }
        let file = StorePaths.file(ofStem: stem)
        service.count { $0.archivesRemoved += 1 }
        if isDone { return true }
        for runner in service.currentRunners {
            if states[runner.target.key]?.isFinal == true { continue }
            runner.target.callbacks.completed?(file, Janitor.status(reason), 0)
        }
        service.hooks.archiveRemoved(file, reason)
        return true
    }

    /// Gives what the targets had made of it; nil: somebody else holds it, or it is gone.
    private func delete(
        _ stem: String
    ) throws(UploadError) -> (states: [TargetKey: PairState], isDone: Bool)? {
        guard let lock = try ArchiveLock(paths: service.paths, stem: stem, target: nil) else {
            return nil
        }
        let states = try service.outbox.states(stem)
        let isDone = try isDoneEverywhere(stem, done: nil)
        try lock.deleteArchive(paths: service.paths)
        return (states, isDone)
    }

    /// What `completed` is told.
    private static func status(_ reason: RemovalReason) -> UploadStatus {
        switch reason {
        case .quota: return .full
        case .count, .expired: return .limit
        case .consent: return .consent
        }
    }
}
