// What precedes sending: small archives that nobody has tried become few, and a batch of archives
// is made ready, with one sync for all of them. The threads of runs.

import CordwoodCore
import CordwoodStore

extension UploadService {
    /// Archives that this many others may follow before states and deletions are synced.
    static let batchMax = 64
    /// Fewer small archives than this are sent one by one.
    static let mergedMin = 64
    /// What counts as small: the size of the file.
    static let smallBytesMax: UInt64 = 1 << 20

    /// Makes a batch ready: the segments of its archives are gone, durably, and so is written down
    /// that each may have been sent from now on.
    /// CRASH: an archive that was marked is sent under its own id and never merged.
    /// - Returns: ready: may be sent. held: in use, or still covered by a segment. Archives that
    ///   are gone or done are in neither.
    func clear(
        _ archives: [UploadWork.Archive], for key: TargetKey
    ) throws(UploadError) -> (ready: [UploadWork.Archive], held: [UploadWork.Archive]) {
        let covered = covered(archives.map(\.stem))
        let outbox = outbox
        let isOnly = try registeredKeys() == [key]
        var (ready, held): ([UploadWork.Archive], [UploadWork.Archive]) = ([], [])
        for archive in archives {
            let stem = archive.stem
            guard !covered.contains(stem) else {
                if StoreFiles.exists(paths.archive(stem)) { held.append(archive) }
                continue
            }
            let state = try outbox.states(stem)[key]
            if state?.isFinal == true { continue }
            if state == nil {
                do throws(UploadError) {
                    guard let lock = try ArchiveLock(paths: paths, stem: stem, target: key) else {
                        // A directory or a link with such a name is not an archive.
                        if StoreFiles.bytesOnDisk(paths.archive(stem)) != nil {
                            held.append(archive)
                        }
                        continue
                    }
                    try outbox.mark(lock.stem, key)
                } catch {
                    // The attempt reports what keeps it from being opened. On a full disk an only
                    // target gets what cannot be marked, because that makes room, and nothing is
                    // merged there.
                    guard error.status != .full || isOnly else {
                        if isNews("\(paths.queue) mark") { tellUnmarked(error) }
                        continue
                    }
                }
            }
            ready.append(archive)
        }
        if !ready.isEmpty {
            syncLanes()
            do throws(UploadError) { try outbox.sync() } catch {
                guard isOnly else { throw error }
            }
        }
        return (ready, held)
    }

    private func tellUnmarked(_ error: UploadError) {
        report(
            UploadDiagnostic.error,
            "archives wait: the disk has no room to note which of several targets get them",
            [("cause", .text(error.text))])
    }

    /// Makes durable that segments are gone; what they were archived to may then be deleted.
    func syncLanes() {
        do throws(UploadError) {
            try ArchiveLock.syncLanes(paths)
            setMayDelete(true)
        } catch {
            setMayDelete(false)
            guard isNews("\(paths.lanes) sync") else { return }
            report(
                UploadDiagnostic.error, "archives stay: that their segments are gone may not last",
                [("cause", .text(error.text))])
        }
    }

    /// Merges small archives that no target has begun, if there are many: a request, a lock and a
    /// deletion cost more than twenty records.
    /// - Returns: whether there are other archives now.
    func mergeSmall(_ shouldStop: () -> Bool) -> Bool {
        guard let first = try? small(), first.count >= UploadService.mergedMin, mayMerge,
            // Another process or target may be at it.
            let lock = lockQueue(shouldStop),
            let names = try? small(), names.count >= UploadService.mergedMin
        else { return false }
        defer { _ = lock.number }
        var (made, isStopped) = (0, false)
        do throws(CordwoodError) {
            made = try StoreCompactor.merge(names, directory: paths.root, identities: identities) {
                isStopped = shouldStop()
                return isStopped
            }
        } catch {
            // They go one by one.
        }
        if !isStopped, let left = try? archives() {
            noteAlone(names, of: Set(left.map { StorePaths.file(ofStem: $0.stem) }))
        }
        return made > 0
    }

    /// Who takes archives as they are, and is no collector, may refuse one for a single record,
    /// with everything that was merged into it.
    private var mayMerge: Bool {
        guard let targets = try? listedTargets() + owed else { return false }
        return targets.allSatisfy {
            $0.kind == TargetKind.collector.rawValue || $0.format != BodyFormat.archive.rawValue
        }
    }

    /// nil: somebody else has it, and this run's time is over.
    private func lockQueue(_ shouldStop: () -> Bool) -> FileDescriptor? {
        for _ in 0..<UploadService.lockLooksMax {
            do throws(UploadError) {
                return try StoreFiles.lockDirectory(
                    paths.queue, waitNs: UploadService.lockLookNs)
            } catch {
                if shouldStop() { return nil }
            }
        }
        return nil
    }

    private static let lockLookNs: UInt64 = 20_000_000
    private static let lockLooksMax = 500

    /// The names of archives that may be merged.
    private func small() throws(UploadError) -> [String] {
        let pairs = try outbox.snapshot().pairs
        return try archives().compactMap { stem, summary in
            guard let summary, summary.bytes <= UploadService.smallBytesMax,
                summary.replaced.count < UploadService.mergedMin,
                pairs[stem]?.values.allSatisfy(\.isDone) ?? true, !isAlone(stem),
                !isBeingReplaced(stem)
            else { return nil }
            return StorePaths.file(ofStem: stem)
        }
    }
}
