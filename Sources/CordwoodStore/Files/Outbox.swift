// The state of every archive at every target, kept in file names below queue/ (FORMAT §2). A change
// is one rename or one creation, followed by a sync of the directory; there is no ledger that could
// disagree. A pair changes only under its lock (ArchiveLock), so each rename has one author.
// Reading needs no lock. The file contains the cause of its state, for people, and the places of
// refused records, if any (PairRefusals).

import CShims
import CordwoodCore

/// All states at one moment.
package struct OutboxSnapshot: Sendable {
    /// By archive stem, then target.
    package var pairs: [String: [TargetKey: PairState]] = [:]

    package func state(_ stem: String, _ target: TargetKey) -> PairState {
        pairs[stem]?[target] ?? .waiting
    }
}

package struct Outbox: Sendable {
    package let paths: StorePaths
    /// Knows the names in queue/, and syncs many changes at once; nil: each call lists and syncs.
    private let kept: KeptListing?

    package init(paths: StorePaths, kept: KeptListing? = nil) {
        self.paths = paths
        self.kept = kept
    }

    package func snapshot() throws(UploadError) -> OutboxSnapshot {
        var snapshot = OutboxSnapshot()
        let names =
            if let kept { try kept.queueNames() } else { try StoreFiles.list(paths.queue) }
        for name in names {
            guard let entry = Outbox.parse(name) else { continue }
            let found = PairState(suffix: entry.suffix)
            let known = snapshot.state(entry.stem, entry.target)
            snapshot.pairs[entry.stem, default: [:]][entry.target] = PairState.further(found, known)
        }
        return snapshot
    }

    /// The states of one archive, read again from the disk.
    package func states(_ stem: String) throws(UploadError) -> [TargetKey: PairState] {
        var states: [TargetKey: PairState] = [:]
        for (_, entry) in try entries(of: stem) {
            let known = states[entry.target] ?? .waiting
            states[entry.target] = PairState.further(PairState(suffix: entry.suffix), known)
        }
        return states
    }

    /// Moves a pair to another state. The caller holds its lock. CRASH: before the rename the old
    /// state is in place, and the attempt is repeated with the same id.
    /// - Parameters:
    ///   - cause: for people; need not last.
    ///   - refusals: nil keeps those in the old state's file, along with its cause.
    package func set(
        _ stem: String, _ target: TargetKey, to state: PairState, cause: String = "",
        refusals: PairRefusals? = nil
    ) throws(UploadError) {
        let old = try entries(of: stem).filter { $0.entry.target == target }.map { $0.name }
        let new = state.suffix.map { "\(stem)@\(target.text).\($0)" }
        let lines = refusals?.lines ?? 0
        if let new, lines > 0 {
            let text = String(cause.map { $0 == "\n" ? " " : $0 }) + "\n" + (refusals?.text ?? "")
            try StoreFiles.replace(
                paths.queue + "/" + new,
                temporary: paths.queue + "/" + StorePaths.body(of: stem, thread: cw_gettid()),
                directory: paths.queue, with: Array(text.utf8))
        } else if let new, !old.contains(new) {
            let path = paths.queue + "/" + new
            if let first = old.first {
                try StoreFiles.move(paths.queue + "/" + first, to: path)
            } else {
                try StoreFiles.create(path)
            }
        }
        for name in old where name != new { try StoreFiles.remove(paths.queue + "/" + name) }
        if let new, lines == 0, !state.hasRefusals {
            StoreFiles.note(cause, in: paths.queue + "/" + new)
        }
        if let kept { kept.noteUnsynced() } else { try StoreFiles.syncDirectory(paths.queue) }
    }

    /// Writes down that an archive is about to be sent, so that nobody merges it with others: the
    /// target may have it, under its id. The caller holds the pair's lock, and syncs before it
    /// sends. Only a pair without a state is changed.
    package func mark(_ stem: String, _ target: TargetKey) throws(UploadError) {
        guard try states(stem)[target] == nil, let suffix = PairState.begun.suffix else { return }
        try StoreFiles.create(paths.queue + "/\(stem)@\(target.text).\(suffix)")
        kept?.noteUnsynced()
    }

    /// Makes durable what was set and marked since the last call.
    package func sync() throws(UploadError) { try kept?.sync() }

    /// The text in a state's file; empty if the file has no text or the pair's state has changed.
    package func cause(
        _ stem: String, _ target: TargetKey, _ state: PairState
    ) throws(UploadError) -> String {
        let text = try content(stem, target, state)
        guard state.hasRefusals else { return text }
        return String(text.prefix { $0 != "\n" })
    }

    /// Which records were refused; nil: the state has refusals, but its file does not list them.
    package func refusals(
        _ stem: String, _ target: TargetKey, _ state: PairState
    ) throws(UploadError) -> PairRefusals? {
        guard state.hasRefusals else { return PairRefusals.none }
        let text: String
        do throws(UploadError) {
            text = try content(stem, target, state)
        } catch .damaged {
            return nil
        }
        guard let newline = text.firstIndex(of: "\n"), let found = PairRefusals(text[newline...]),
            state.fits(found)
        else { return nil }
        return found
    }

    private func content(
        _ stem: String, _ target: TargetKey, _ state: PairState
    ) throws(UploadError) -> String {
        guard let suffix = state.suffix else { return "" }
        let name = "\(stem)@\(target.text).\(suffix)"
        return String(decoding: try StoreFiles.read(paths.queue + "/" + name) ?? [], as: UTF8.self)
    }

    /// Forgets an archive that is gone, and the names of bodies that their makers died before
    /// removing. CRASH: removeOrphans removes the rest.
    package func removeAll(of stem: String) throws(UploadError) {
        let names =
            if let kept { try kept.queueNames(of: stem) } else {
                try StoreFiles.list(paths.queue, hidden: true)
            }
        for name in names
        where Outbox.parse(name)?.stem == stem || StorePaths.stem(ofBody: name) == stem {
            try StoreFiles.remove(paths.queue + "/" + name)
        }
    }

    /// Forgets a target that is gone.
    func removeAll(at target: TargetKey) throws(UploadError) {
        for name in try StoreFiles.list(paths.queue) where Outbox.parse(name)?.target == target {
            try StoreFiles.remove(paths.queue + "/" + name)
        }
        try StoreFiles.syncDirectory(paths.queue)
    }

    /// Removes states whose archive or target is gone, which a crash between two removals leaves
    /// behind, and names of bodies whose archive is gone.
    /// INVARIANT: the queue is listed first. A state is written only when its archive and its
    /// target exist, so a listed state without an archive or a target has lost it.
    /// - Parameter ofArchives: only states whose archive is gone.
    package func removeOrphans(ofArchives: Bool = false) throws(UploadError) {
        let names = try StoreFiles.list(paths.queue, hidden: true)
        let stems = Set(
            try StoreFiles.list(paths.archives).compactMap { StorePaths.stem(ofFile: $0) })
        let targets = Set(try StoreFiles.list(paths.targets).map { TargetKey(fileName: $0) })
        // What brings an archive back must not find its states gone.
        if names.contains(where: { Outbox.parse($0).map { !stems.contains($0.stem) } ?? false }) {
            try StoreFiles.syncDirectory(paths.archives)
        }
        for name in names {
            // The body's maker died before it removed the name.
            if let stem = StorePaths.stem(ofBody: name), !stems.contains(stem) {
                try StoreFiles.remove(paths.queue + "/" + name)
            }
            guard !name.hasPrefix("."), let entry = Outbox.parse(name) else { continue }
            if !stems.contains(entry.stem) || !ofArchives && !targets.contains(entry.target) {
                try StoreFiles.remove(paths.queue + "/" + name)
            }
        }
    }

    private typealias Entry = (stem: String, target: TargetKey, suffix: Substring)

    private func entries(of stem: String) throws(UploadError) -> [(name: String, entry: Entry)] {
        let names =
            if let kept { try kept.queueNames(of: stem) } else {
                try StoreFiles.list(paths.queue, prefix: stem + "@")
            }
        return names.compactMap { name in
            guard !name.hasPrefix("."), let entry = Outbox.parse(name) else { return nil }
            return (name, entry)
        }
    }

    /// Parses `<archive>@<target>.<state…>`; nil: not one of ours.
    private static func parse(_ name: String) -> Entry? {
        guard let at = name.lastIndex(of: "@") else { return nil }
        let rest = name[name.index(after: at)...]
        guard let dot = rest.firstIndex(of: "."), at > name.startIndex, dot > rest.startIndex else {
            return nil
        }
        let target = TargetKey(fileName: String(rest[..<dot]))
        return (String(name[..<at]), target, rest[rest.index(after: dot)...])
    }
}
