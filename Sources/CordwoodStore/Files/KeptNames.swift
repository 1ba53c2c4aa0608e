// The names in one directory, listed once and kept: inotify reports what changes. They are listed
// anew after lost events. Without inotify (a network file system, no instance left) they are listed
// anew when the directory's time has changed, or was too young to tell. A change that was complete
// when a call begins is seen by it: the kernel queues an event before the change returns.
// One thread at a time; the owner's lock sees to that.

import CShims
import CordwoodCore

struct KeptNames: ~Copyable {
    enum News {
        case none
        case changes([DirectoryEvents.Change])
        /// All names, hidden ones included.
        case all([String])
    }

    private let path: FilePath
    private var events: DirectoryEvents?
    private var isListed = false
    /// The directory's time before it was listed; 0: it is listed anew.
    private var listedNs: UInt64 = 0

    /// A directory's time has the grain of the kernel's tick: two changes may share it.
    private static let settledNs: UInt64 = 20_000_000

    init(_ path: FilePath) { self.path = path }

    /// What changed since the last call; the first one lists all.
    mutating func news() throws(UploadError) -> News {
        if isListed, events != nil {
            if let changes = events?.take() { return changes.isEmpty ? .none : .changes(changes) }
            events = nil
        } else if isListed, listedNs > 0, StoreFiles.modifiedNs(path) == listedNs {
            return .none
        }
        isListed = false
        if events == nil { events = DirectoryEvents(path) }
        let now = cw_realtime_ns()
        let modified = StoreFiles.modifiedNs(path)
        listedNs =
            modified > 0 && now > modified && now - modified > KeptNames.settledNs ? modified : 0
        let names = try StoreFiles.list(path, hidden: true)
        isListed = true
        return .all(names)
    }
}
