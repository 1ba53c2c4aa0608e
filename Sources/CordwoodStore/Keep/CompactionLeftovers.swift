// Archives that a compacting program left beside their replacement when it died (FORMAT §11).
// Readers pass over them, and neither they nor the replacement are sent until they are gone. Any
// thread.

import CordwoodCore

package enum CompactionLeftovers {
    /// Removes those that are not being sent, if the archive that replaces them is whole. CRASH:
    /// the next call removes the others.
    /// - Returns: the number removed.
    @discardableResult
    package static func remove(directory: FilePath) throws(CordwoodError) -> Int {
        guard let names = Directories.list(directory + "/archives") else {
            throw Directories.failure("list", directory + "/archives")
        }
        let infos = names.sorted().filter { $0.hasSuffix(".cwa") }.compactMap {
            try? ArchiveInfo.peek(path: directory + "/archives/\($0)")
        }
        var removed = 0
        for new in infos where !new.replaced.isEmpty {
            let ids = Set(new.replaced.map(\.id))
            let old = infos.filter { ids.contains($0.id) }
            guard !old.isEmpty, (try? ArchiveVerifier.verify(path: new.path))?.isWhole == true
            else {
                continue
            }
            let stems = old.compactMap(stem)
            do throws(UploadError) {
                guard let stem = stem(new),
                    try inherit(stem, from: stems, Outbox(paths: StorePaths(directory)))
                else { continue }
            } catch {
                throw CordwoodError(error.status.rawValue, error.text)
            }
            for info in old where try remove(info, directory) { removed += 1 }
        }
        return removed
    }

    /// Call before removing archives that another one replaces. The replacement gets the states
    /// that all of them have: a target must not get again what it has or does not want. Durable
    /// when it returns. May be repeated: archives that are gone passed on their states before they
    /// went.
    /// - Returns: false: somebody has a lock on the archive; nothing may be removed.
    static func inherit(
        _ stem: String, from old: [String], _ outbox: Outbox
    ) throws(UploadError) -> Bool {
        var common: [TargetKey: PairState]?
        for name in old {
            let states = try outbox.states(name)
            common = common?.filter { states[$0.key] == $0.value } ?? states
        }
        let done = (common ?? [:]).filter { $0.value.isDone }
        if done.isEmpty { return true }
        guard let lock = try ArchiveLock(paths: outbox.paths, stem: stem, target: nil) else {
            return false
        }
        let known = try outbox.states(stem)
        for (target, state) in done where known[target] == nil {
            try outbox.set(stem, target, to: state, cause: "as the archives that it replaces")
        }
        try outbox.sync()
        withExtendedLifetime(lock) {}
        return true
    }

    private static func stem(_ info: ArchiveInfo) -> String? {
        StorePaths.stem(ofFile: String(info.path.lastName))
    }

    /// The ids of replaced archives that could not be removed yet, and of those that replace them.
    /// They must not be merged, or records would exist twice.
    static func unsettled(_ names: [String], directory: FilePath) -> Set<LaneID> {
        let infos = names.compactMap { try? ArchiveInfo.peek(path: directory + "/archives/\($0)") }
        let replaced = ArchiveInfo.replacedIDs(infos)
        let old = Set(infos.map(\.id)).intersection(replaced)
        return old.union(
            infos.filter { !old.isDisjoint(with: $0.replaced.map(\.id)) }.map(\.id))
    }

    /// Removes what a compacting program was writing when it died. If the lane still exists, its
    /// adopter does this.
    static func removeParts(directory: FilePath) {
        for name in Directories.list(directory + "/archives") ?? [] where name.hasSuffix(".part") {
            let path = directory + "/archives/\(name)"
            let lane = String(name.prefix { $0 != "." })
            guard let file = FileFacts(at: path), file.isRegular,
                file.secondsSinceModified > unchangedSecondsMin,
                !LaneListing.hasFile(lane, directory)
            else { continue }
            Files.remove(path)
        }
    }

    private static let unchangedSecondsMin = 600

    private static func remove(
        _ info: ArchiveInfo, _ directory: FilePath
    ) throws(CordwoodError) -> Bool {
        let paths = StorePaths(directory)
        guard let stem = stem(info) else { return false }
        do throws(UploadError) {
            guard let lock = try ArchiveLock(paths: paths, stem: stem, target: nil) else {
                return false
            }
            try lock.deleteArchive(paths: paths)
            return true
        } catch {
            throw CordwoodError(error.status.rawValue, error.text)
        }
    }
}
