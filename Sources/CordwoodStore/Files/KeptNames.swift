// The names in one directory, listed once and kept: inotify reports what changes. They are listed
// anew after lost events, and at each call without inotify (a network file system, no instance
// left), because a directory's time is too coarse to tell. A change that was complete when a call
// begins is seen by it: the kernel queues an event before the change returns.
// One thread at a time; the owner's lock sees to that.

import CordwoodCore

struct KeptNames: ~Copyable {
    enum News {
        case none
        case changes([DirectoryEvents.Change])
        /// All names, hidden ones included.
        case all([String])
    }

    private let path: FilePath
    private let wantsEvents: Bool
    private var events: DirectoryEvents?

    init(_ path: FilePath, wantsEvents: Bool) {
        self.path = path
        self.wantsEvents = wantsEvents
    }

    /// What changed since the last call; the first one lists all.
    mutating func news() throws(UploadError) -> News {
        if let changes = events?.take() { return changes.isEmpty ? .none : .changes(changes) }
        // Listed after it: what changes meanwhile is reported once more.
        events = wantsEvents ? DirectoryEvents(path) : nil
        do throws(UploadError) {
            return .all(try StoreFiles.list(path, hidden: true))
        } catch {
            events = nil
            throw error
        }
    }
}
