// The archives of a store with what uploads know of each: read once, because an archive never
// changes. Follows a kept listing, so that asking about one archive costs the same however many
// there are; without one, each question lists them. Any thread.

import CordwoodCore
import CordwoodStore

/// SAFETY: the private variables are guarded by the monitor, which is held while headers are read
/// and for no call out of here.
final class UploadArchives: @unchecked Sendable {
    typealias Entry = (stem: String, summary: ArchiveSummary?)

    private let paths: StorePaths
    private let identities: [AgeIdentity]
    private let monitor = Monitor()
    /// nil: it could not be read.
    private var known: [String: ArchiveSummary?] = [:]
    /// How many archives have this id, and how many replace it.
    private var ids: [String: Int] = [:]
    private var replacers: [String: Int] = [:]
    /// Oldest first; nil: to be sorted.
    private var sorted: [Entry]?

    init(_ paths: StorePaths, _ identities: [AgeIdentity]) {
        self.paths = paths
        self.identities = identities
    }

    /// Oldest first.
    func list(_ kept: KeptListing?) throws(UploadError) -> [Entry] {
        try locked { () throws(UploadError) in
            try refresh(kept)
            // What the system would not provide is asked for again.
            for (stem, summary) in known where summary == nil { learn(stem) }
            if let sorted { return sorted }
            let list = known.map { (stem: $0.key, summary: $0.value) }.sorted {
                let (a, b) = ($0.summary?.writtenNs ?? 0, $1.summary?.writtenNs ?? 0)
                return a != b ? a < b : $0.stem < $1.stem
            }
            sorted = list
            return list
        }
    }

    /// True if another archive has its records, if it has those of others that are to be removed
    /// (FORMAT §11), or if that cannot be determined.
    func isBeingReplaced(_ stem: String, _ kept: KeptListing?) -> Bool {
        let answer: Result<Bool, UploadError> = monitor.locked {
            do throws(UploadError) {
                try refresh(kept)
                guard let mine = known[stem] ?? nil else { return .success(false) }
                let isNamed =
                    replacers[mine.idText] != nil
                    || mine.replaced.contains { ids[$0] != nil }
                return .success(isNamed && isReplacedOrReplaces(stem, mine))
            } catch { return .failure(error) }
        }
        return (try? answer.get()) ?? true
    }

    /// As their headers prove: an archive may name others that it does not cover.
    private func isReplacedOrReplaces(_ stem: String, _ mine: ArchiveSummary) -> Bool {
        let others = known.filter { _, other in
            guard let other = other else { return false }
            return other.replaced.contains(mine.idText) || mine.replaced.contains(other.idText)
        }
        let infos = (Array(others.keys) + [stem]).compactMap {
            try? ArchiveInfo.peek(path: paths.archive($0), identities: identities)
        }
        // One that cannot be read is not known to be free.
        guard infos.count == others.count + 1, let own = infos.last else { return true }
        let replaced = ArchiveInfo.replacedIDs(infos)
        return replaced.contains(own.id)
            || infos.contains { old in
                replaced.contains(old.id) && own.replaced.contains { $0.id == old.id }
            }
    }

    /// nil: it is not known or cannot be read.
    func summary(_ stem: String) -> ArchiveSummary? { monitor.locked { known[stem] ?? nil } }

    private func locked<T>(_ body: () throws(UploadError) -> T) throws(UploadError) -> T {
        let result: Result<T, UploadError> = monitor.locked {
            do throws(UploadError) { return .success(try body()) } catch { return .failure(error) }
        }
        return try result.get()
    }

    private func refresh(_ kept: KeptListing?) throws(UploadError) {
        guard let kept else {
            return become(
                Set(try StoreFiles.list(paths.archives).compactMap { StorePaths.stem(ofFile: $0) }))
        }
        let (all, changes) = try kept.takeArchives()
        if let all { become(all) }
        for change in changes {
            if change.isAdded {
                forget(change.stem)
                learn(change.stem)
            } else {
                forget(change.stem)
            }
        }
    }

    private func become(_ stems: Set<String>) {
        for stem in known.keys where !stems.contains(stem) { forget(stem) }
        for stem in stems where known[stem] == nil { learn(stem) }
    }

    private func learn(_ stem: String) {
        let summary = try? ArchiveSummary(path: paths.archive(stem), identities: identities)
        if summary == nil, known[stem] != nil { return }
        known[stem] = .some(summary)
        sorted = nil
        guard let summary else { return }
        ids[summary.idText, default: 0] += 1
        for id in summary.replaced { replacers[id, default: 0] += 1 }
    }

    private func forget(_ stem: String) {
        guard let old = known.removeValue(forKey: stem) else { return }
        sorted = nil
        guard let old else { return }
        UploadArchives.decrease(&ids, old.idText)
        for id in old.replaced { UploadArchives.decrease(&replacers, id) }
    }

    private static func decrease(_ counts: inout [String: Int], _ id: String) {
        let count = counts[id, default: 0] - 1
        counts[id] = count > 0 ? count : nil
    }
}
