// The home of ":memory:": a directory on tmpfs that close removes. A reader of ":memory:" opens the
// process's newest one.

import CordwoodCore
import CordwoodStore

public enum MemoryStore {
    private static let monitor = Monitor()
    // SAFETY: read and written under `monitor` only.
    @safe nonisolated(unsafe) private static var newest: String?

    /// The directory to read for a path: itself, or the newest memory store's.
    public static func directory(for path: String) -> String {
        guard path == ":memory:" else { return path }
        return monitor.locked { newest } ?? path
    }

    static func make() throws(CordwoodError) -> String {
        removeLeftovers()
        for parent in parents {
            let path = parent + "/cordwood-\(Machine.processID())-\(UInt64.random(in: 1 ... .max))"
            guard Files.makeDirectory(FilePath(path)) else { continue }
            monitor.locked { newest = path }
            return path
        }
        throw Directories.failure(
            "make directory", FilePath("/dev/shm/cordwood-\(Machine.processID())"))
    }

    static func remove(_ path: String) {
        Directories.removeTree(FilePath(path))
        monitor.locked { if newest == path { newest = nil } }
    }

    private static var parents: [String] {
        ["/dev/shm", Environment.value("TMPDIR") ?? "/tmp", "/tmp"]
    }

    /// Removes stores that killed processes left behind.
    private static func removeLeftovers() {
        for parent in Set(parents) {
            // Opened: others make names there, too, and no link below it is followed.
            let parent = FilePath(opening: parent)
            for name in Directories.names(parent) where name.hasPrefix("cordwood-") {
                let parts = name.split(separator: "-")
                guard parts.count == 3, let owner = UInt32(parts[1]), owner != Machine.processID(),
                    UInt64(parts[2]) != nil, Machine.isGone(owner, startedAt: 0),
                    isLeft(parent + "/" + name)
                else { continue }
                Directories.removeTree(parent + "/" + name)
            }
        }
    }

    /// True if it is this user's and no process writes there. A forked child may outlive the
    /// process that made the store, and the number of a process in another pid namespace means
    /// nothing here.
    private static func isLeft(_ path: FilePath) -> Bool {
        guard let file = FileFacts(at: path), file.owner == Machine.userID() else { return false }
        let lanes = Directories.names(path + "/lanes").filter { $0.hasSuffix(".lane") }
        guard lanes.isEmpty else {
            return !lanes.contains { LaneFiles.isLocked(path + "/lanes/\($0)") }
        }
        return file.secondsSinceModified > unusedSecondsMin
    }

    /// A store without a lane is just being made, or a process died while making it.
    private static let unusedSecondsMin = 600
}
