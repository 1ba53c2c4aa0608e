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
        /// By id.
        var stored: [String: (name: String, records: UInt64)] = [:]
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

    /// The name of the file that has the archive, and the number of the archive's records.
    func find(_ id: String) -> (name: String, records: UInt64)? {
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

    /// Adds an archive, and those whose records it has.
    func add(_ facts: ArchiveFacts, name: String) {
        content.withLock { content in
            for (id, records) in [(facts.id, facts.recordCount)] + facts.replaced {
                content.stored[id] = (name, records)
            }
            content.names.insert(name)
        }
    }

    func has(name: String) -> Bool { content.withLock { $0.names.contains(name) } }

    /// The file is gone (retention, an operator): the id is new again.
    func forget(_ id: String) {
        content.withLock { content in
            if let found = content.stored.removeValue(forKey: id) {
                content.names.remove(found.name)
            }
        }
    }
}
