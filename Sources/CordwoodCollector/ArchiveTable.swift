// The archives that are stored, and those on their way: the only place that decides whether an id
// is new. Built at start from the headers in the directory. Any thread; the lock is held for table
// operations only, never across a file operation.

import Synchronization

final class ArchiveTable: Sendable {
    enum Claim {
        case granted
        case stored
        /// Another client is sending it now.
        case busy
    }

    private struct Content {
        /// id → file name
        var stored: [String: String] = [:]
        var names: Set<String> = []
        var claimed: Set<String> = []
    }

    private let content = Mutex(Content())

    func claim(_ id: String) -> Claim {
        content.withLock { content in
            if content.stored[id] != nil { return .stored }
            return content.claimed.insert(id).inserted ? .granted : .busy
        }
    }

    func release(_ id: String) {
        content.withLock { _ = $0.claimed.remove(id) }
    }

    func name(of id: String) -> String? {
        content.withLock { $0.stored[id] }
    }

    /// False if the name belongs to another archive. INVARIANT: called before the rename, so
    /// that a rename never replaces another archive.
    func reserve(name: String) -> Bool {
        content.withLock { $0.names.insert(name).inserted }
    }

    func cancel(name: String) {
        content.withLock { _ = $0.names.remove(name) }
    }

    /// - Parameter replaced: ids that are stored with it.
    func add(_ id: String, name: String, replaced: [String] = []) {
        content.withLock { content in
            for id in [id] + replaced { content.stored[id] = name }
            content.names.insert(name)
        }
    }

    func has(name: String) -> Bool { content.withLock { $0.names.contains(name) } }

    /// The file is gone (retention, an operator): the id is new again.
    func forget(_ id: String) {
        content.withLock { content in
            if let name = content.stored.removeValue(forKey: id) { content.names.remove(name) }
        }
    }
}
