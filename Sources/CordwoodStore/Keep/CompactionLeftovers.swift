// Archives that a compacting program left beside their replacement when it died (FORMAT §11).
// Readers pass over them, and neither they nor the replacement are sent until they are gone. Any
// thread.

import CordwoodCore

package enum CompactionLeftovers {
    /// For a program that has other work: comparing one reads the replacement from its start.
    package static let checkedMax = 16

    /// Removes those that are not being sent, if the archive that replaces them is whole. CRASH:
    /// the next call removes the others. Encrypted ones stay unless an identity opens both.
    /// - Parameter checkedMax: how many of one replacement at most are compared with it.
    /// - Returns: the number removed.
    @discardableResult
    package static func remove(
        directory: FilePath, identities: [AgeIdentity] = [], checkedMax: Int = checkedMax
    ) throws(CordwoodError) -> Int {
        guard let names = Directories.list(directory + "/archives") else {
            throw Directories.failure("list", directory + "/archives")
        }
        let infos = names.sorted().filter { $0.hasSuffix(".cwa") }.compactMap {
            try? ArchiveInfo.peek(path: directory + "/archives/\($0)", identities: identities)
        }
        var removed = 0
        for new in infos where !new.replaced.isEmpty {
            var old = Array(infos.lazy.filter(Replacing(new).has).prefix(checkedMax))
            guard !old.isEmpty,
                let verified = try? ArchiveVerifier.verify(path: new.path, identities: identities),
                verified.isWhole
            else {
                continue
            }
            old.removeAll { !mayGo($0, for: new, identities) }
            if old.isEmpty { continue }
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

    /// The new archive has its records. Of those that no identity opens, nobody knows it.
    private static func mayGo(
        _ old: ArchiveInfo, for new: ArchiveInfo, _ identities: [AgeIdentity]
    ) -> Bool {
        do throws(ReadProblem) {
            return try ArchiveContents.has(new.path, all: old.path, identities: identities) ?? false
        } catch {
            return false
        }
    }

    private static func stem(_ info: ArchiveInfo) -> String? {
        StorePaths.stem(ofFile: String(info.path.lastName))
    }

    /// The ids of archives that must not be merged. Replaced ones that could not be removed yet,
    /// and those that replace them: records would exist twice. And those that share segments: what
    /// one says that it replaces or has, and what another one covers, would together say that the
    /// merged archive has the records of a third one.
    static func unsettled(_ infos: [ArchiveInfo]) -> Set<LaneID> {
        let replaced = ArchiveInfo.replacedIDs(infos)
        return replaced.union(
            infos.filter { !replaced.isDisjoint(with: $0.replaced.map(\.id)) }.map(\.id)
        ).union(LaneRanges.sharing(infos).map(\.id))
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
