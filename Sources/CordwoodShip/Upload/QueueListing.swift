// Lists the archives that wait in a store, with target, reason and time, for people and their
// tools. Provides two manual actions: release a pair for another attempt, or quarantine it. Any
// thread, any process; a pair that is being sent at the moment is left alone.

import CordwoodCore
import CordwoodStore

public struct QueueEntry: Sendable {
    /// The archive's file name.
    public var archive: String
    /// The target's name.
    public var target: String
    public var state: PairState
    /// Size of the archive's file.
    public var bytes: UInt64
    /// UTC ns when its newest record was written; 0: unknown.
    public var writtenNs: UInt64
    /// The cause of the last attempt's failure; empty: none yet.
    public var cause: String
}

package struct QueueListing: Sendable {
    private let paths: StorePaths

    package init(storeDirectory: FilePath) { paths = StorePaths(storeDirectory) }

    /// Every archive with every registered target, oldest archive first.
    package func list() throws(UploadError) -> [QueueEntry] {
        let outbox = Outbox(paths: paths)
        let targets = try TargetRegistry(storeDirectory: paths.root).list()
        let snapshot = try outbox.snapshot()
        var archives: [(stem: String, summary: ArchiveSummary?)] = []
        for name in try StoreFiles.list(paths.archives) {
            guard let stem = StorePaths.stem(ofFile: name) else { continue }
            archives.append((stem, try? ArchiveSummary(path: paths.archive(stem))))
        }
        archives.sort {
            let (a, b) = ($0.summary?.writtenNs ?? 0, $1.summary?.writtenNs ?? 0)
            return a != b ? a < b : $0.stem < $1.stem
        }
        var entries: [QueueEntry] = []
        for (stem, summary) in archives {
            for target in targets {
                let state = snapshot.state(stem, target.key)
                entries.append(
                    QueueEntry(
                        archive: StorePaths.file(ofStem: stem), target: target.name, state: state,
                        bytes: summary?.bytes ?? StoreFiles.size(paths.archive(stem)),
                        writtenNs: summary?.writtenNs ?? 0,
                        cause: cause(outbox, stem, target.key, state)))
            }
        }
        return entries
    }

    /// An unreadable file must not hide another file's cause.
    private func cause(
        _ outbox: Outbox, _ stem: String, _ target: TargetKey, _ state: PairState
    ) -> String {
        do throws(UploadError) {
            return try outbox.cause(stem, target, state)
        } catch {
            return error.text
        }
    }

    /// Releases pairs that failed, were refused or are paused: they are tried at the next occasion.
    /// If only some records of an archive were kept, only those are sent again.
    /// - Parameters: nil: all.
    ///   - known: only pairs in this state; nil: in any.
    /// - Returns: the number of pairs.
    package func retry(
        archive: String?, target: String?, from known: PairState? = nil
    ) throws(UploadError) -> Int {
        try change(archive, target) { state, refusals in
            guard state == known ?? state else { return nil }
            switch state {
            case .retry, .paused: return QueueListing.anew(state, refusals())
            case .quarantined, .kept, .waiting, .sent, .filtered, .unknown:
                return QueueListing.fromQuarantine(state, refusals)
            }
        }
    }

    /// The same, but only for quarantined pairs.
    package func retryQuarantined(target: String?) throws(UploadError) -> Int {
        try change(nil, target, to: QueueListing.fromQuarantine)
    }

    private typealias Change = (PairState, PairRefusals?)

    private static func anew(_ state: PairState, _ refusals: PairRefusals?) -> Change {
        let progress = refusals == nil ? .start : state.progress
        return (
            .retry(attempts: 0, notBeforeMs: 0, reason: .stopped, progress: progress),
            refusals ?? PairRefusals.none
        )
    }

    private static func fromQuarantine(
        _ state: PairState, _ refusals: () -> PairRefusals?
    ) -> Change? {
        switch state {
        case .quarantined: return anew(state, refusals())
        case .kept:
            // Only those records; all of them if it is no longer known which they were.
            let again = (refusals() ?? .none).again
            let progress = Progress(lines: again.lines)
            return (
                .retry(attempts: 0, notBeforeMs: 0, reason: .stopped, progress: progress), again
            )
        case .waiting, .retry, .paused, .sent, .filtered, .unknown: return nil
        }
    }

    /// Quarantines an archive for a target: it is not tried again, and kept under retention.
    package func quarantine(
        archive: String, target: String?, from known: PairState? = nil
    ) throws(UploadError) -> Int {
        try change(archive, target) { state, refusals in
            guard state == known ?? state else { return nil }
            switch state {
            case .waiting, .retry, .paused:
                let state = PairState.quarantined(httpStatus: 0, progress: state.progress)
                return (state, refusals())
            case .sent, .filtered, .kept, .quarantined, .unknown: return nil
            }
        }
    }

    private func change(
        _ archive: String?, _ target: String?,
        to next: (PairState, _ refusals: () -> PairRefusals?) -> Change?
    ) throws(UploadError) -> Int {
        let outbox = Outbox(paths: paths)
        let registered = try TargetRegistry(storeDirectory: paths.root).list()
        let targets = registered.filter { target == nil || $0.name == target }
        if let target, targets.isEmpty {
            throw UploadError.notFound("no target is named \(target)")
        }
        var isFound = archive == nil
        var changed = 0
        var trouble: UploadError?
        let seen = try outbox.snapshot()
        for name in try StoreFiles.list(paths.archives) {
            guard let stem = StorePaths.stem(ofFile: name), archive == nil || archive == name else {
                continue
            }
            isFound = true
            // Archives that would not change are not opened.
            for target in targets where next(seen.state(stem, target.key), { nil }) != nil {
                do throws(UploadError) {
                    guard
                        let lock = try ArchiveLock(paths: paths, stem: stem, target: target.key)
                    else {
                        let path = paths.archive(stem)
                        // A quarantined pair is not being sent: its lock is only unavailable right
                        // now.
                        if seen.state(stem, target.key).isFinal, StoreFiles.exists(path) {
                            throw UploadError.system(
                                call: "lock", path: "\(path)", errno: Errno.EAGAIN)
                        }
                        continue
                    }
                    let state = try outbox.states(lock.stem)[target.key] ?? .waiting
                    let read = try outbox.refusals(stem, target.key, state)
                    guard let (new, refusals) = next(state, { read }) else { continue }
                    try outbox.set(
                        stem, target.key, to: new, cause: "by hand", refusals: refusals)
                    changed += 1
                } catch {
                    trouble = trouble ?? error
                }
            }
        }
        // All the others have been changed.
        if let trouble { throw trouble }
        guard isFound else { throw UploadError.notFound("no archive is named \(archive ?? "")") }
        return changed
    }
}
