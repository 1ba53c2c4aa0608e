// What lies in queue/, archives/ and targets/ while uploads run: each is listed once (KeptNames),
// so that a step with one archive costs the same however many wait. Lives as long as the runs that
// share it, because the system has few inotify instances. Any thread.

import CordwoodCore

/// SAFETY: the private variables are guarded by the monitor, which is held for no call out of here
/// but those that read directories and registrations.
package final class KeptListing: @unchecked Sendable {
    private let paths: StorePaths
    private let monitor = Monitor()
    private var queue: KeptNames
    private var archives: KeptNames
    private var targets: KeptNames
    /// By the archive's stem: names in queue/, those of bodies included.
    private var states: [String: [String]] = [:]
    private var stems: Set<String> = []
    /// Changes of `stems` that nobody has taken; nil: all are new.
    private var changedStems: [(stem: String, isAdded: Bool)]?
    private var targetNames: Set<String> = []
    private var registered: [RegisteredTarget]?
    /// How many changes of states there were, and how many of them are durable.
    private var (changes, synced): (UInt64, UInt64) = (0, 0)
    /// Held while queue/ is synced, so that nobody takes a sync under way for done.
    private let syncing = Monitor()

    /// - Parameter wantsEvents: false: as on a network file system.
    package init(_ paths: StorePaths, wantsEvents: Bool = true) {
        self.paths = paths
        queue = KeptNames(paths.queue, wantsEvents: wantsEvents)
        archives = KeptNames(paths.archives, wantsEvents: wantsEvents)
        targets = KeptNames(paths.targets, wantsEvents: wantsEvents)
    }

    /// `monitor.locked` with a typed error.
    private func locked<T>(_ body: () throws(UploadError) -> T) throws(UploadError) -> T {
        let result: Result<T, UploadError> = monitor.locked {
            do throws(UploadError) { return .success(try body()) } catch { return .failure(error) }
        }
        return try result.get()
    }

    // ── queue/ ──

    private static func stem(inQueue name: String) -> String? {
        if let stem = StorePaths.stem(ofBody: name) { return stem }
        guard !name.hasPrefix("."), let at = name.utf8.lastIndex(of: UInt8(ascii: "@")) else {
            return nil
        }
        return String(name[..<at])
    }

    private func refreshQueue() throws(UploadError) {
        switch try queue.news() {
        case .none: return
        case .all(let names):
            states = [:]
            for name in names { add(name) }
        case .changes(let changes):
            for change in changes {
                if change.isAdded { add(change.name) } else { drop(change.name) }
            }
        }
    }

    private func add(_ name: String) {
        guard let stem = KeptListing.stem(inQueue: name),
            states[stem]?.contains(name) != true
        else { return }
        states[stem, default: []].append(name)
    }

    private func drop(_ name: String) {
        guard let stem = KeptListing.stem(inQueue: name), var names = states[stem] else { return }
        names.removeAll { $0 == name }
        states[stem] = names.isEmpty ? nil : names
    }

    /// The names of an archive in queue/.
    func queueNames(of stem: String) throws(UploadError) -> [String] {
        try locked { () throws(UploadError) in
            try refreshQueue()
            return states[stem] ?? []
        }
    }

    /// All names in queue/ except those of bodies.
    func queueNames() throws(UploadError) -> [String] {
        try locked { () throws(UploadError) in
            try refreshQueue()
            return states.values.flatMap { $0 }.filter { !$0.hasPrefix(".") }
        }
    }

    /// A state was changed and not synced.
    func noteUnsynced() { monitor.locked { changes += 1 } }

    /// Makes the states durable that were changed before the call.
    package func sync() throws(UploadError) {
        let result: Result<Void, UploadError> = syncing.locked {
            let (wanted, isDone) = monitor.locked { (changes, synced == changes) }
            if isDone { return .success(()) }
            do throws(UploadError) {
                try StoreFiles.syncDirectory(paths.queue)
            } catch { return .failure(error) }
            monitor.locked { synced = wanted }
            return .success(())
        }
        try result.get()
    }

    // ── archives/ ──

    private func refreshArchives() throws(UploadError) {
        switch try archives.news() {
        case .none: return
        case .all(let names):
            stems = Set(names.compactMap(KeptListing.stem(inArchives:)))
            changedStems = nil
        case .changes(let changes):
            for change in changes {
                guard let stem = KeptListing.stem(inArchives: change.name) else { continue }
                if change.isAdded { stems.insert(stem) } else { stems.remove(stem) }
                changedStems?.append((stem, change.isAdded))
            }
        }
    }

    private static func stem(inArchives name: String) -> String? {
        name.hasPrefix(".") ? nil : StorePaths.stem(ofFile: name)
    }

    /// What one reader has not seen: the archives that came and went since the last call, in
    /// order; `all`: every archive, if they were listed anew.
    package func takeArchives() throws(UploadError) -> (
        all: Set<String>?, changes: [(stem: String, isAdded: Bool)]
    ) {
        try locked { () throws(UploadError) in
            try refreshArchives()
            defer { changedStems = [] }
            return changedStems.map { (nil, $0) } ?? (stems, [])
        }
    }

    // ── targets/ ──

    private func refreshTargets() throws(UploadError) {
        switch try targets.news() {
        case .none: return
        case .all(let names): targetNames = Set(names.filter { !$0.hasPrefix(".") })
        case .changes(let changes):
            for change in changes where !change.name.hasPrefix(".") {
                if change.isAdded {
                    targetNames.insert(change.name)
                } else {
                    targetNames.remove(change.name)
                }
            }
        }
        registered = nil
    }

    package func targetKeys() throws(UploadError) -> [TargetKey] {
        try locked { () throws(UploadError) in
            try refreshTargets()
            return targetNames.map { TargetKey(fileName: $0) }
        }
    }

    package func registeredTargets() throws(UploadError) -> [RegisteredTarget] {
        try locked { () throws(UploadError) in
            try refreshTargets()
            if let registered { return registered }
            let read = try TargetRegistry(storeDirectory: paths.root).list()
            registered = read
            return read
        }
    }
}
