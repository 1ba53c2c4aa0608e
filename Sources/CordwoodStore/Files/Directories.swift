// Makes, lists and syncs the directories of a store. Any thread; any process at the same time.

import CShims
import CordwoodCore

package enum Directories {
    /// Makes a directory and its missing parents, 0700. lasts: makes their names survive a power
    /// cut; their contents are worth nothing without them.
    package static func make(_ path: FilePath, lasts: Bool = false) throws(CordwoodError) {
        if let found = FileFacts(following: path) {
            guard found.isDirectory else {
                throw CordwoodError(Status.notDirectory, "\(path) is not a directory")
            }
            return
        }
        if Errno.last == Errno.ENOTDIR {
            throw CordwoodError(Status.notDirectory, "a part of \(path) is not a directory")
        }
        let parent = path.parent
        if parent != path { try make(parent, lasts: lasts) }
        if !Files.makeDirectory(path) {
            if Errno.last == Errno.EEXIST { return }
            throw failure("make directory", path)
        }
        // We may have no right to read another user's folder; that is no reason not to log.
        if lasts { _ = sync(parent + "/.") }
    }

    /// Makes one of the store's own directories. Refuses a link: files would be made and removed
    /// elsewhere.
    private static func makeOwn(_ path: FilePath) throws(CordwoodError) {
        if Files.makeDirectory(path) { return }
        guard Errno.last == Errno.EEXIST else { throw failure("make directory", path) }
        guard let facts = FileFacts(at: path), facts.isDirectory else {
            throw CordwoodError(Status.notDirectory, "\(path) is not a directory")
        }
        do throws(UploadError) { try StoreOwner.check(facts, path) } catch {
            throw CordwoodError(error.status.rawValue, error.text)
        }
    }

    /// The host may change its working directory as soon as a store is open. Without a slash at
    /// the end, so that the path has a parent.
    package static func absolute(_ path: String) throws(CordwoodError) -> String {
        var path = path
        while path.count > 1, path.hasSuffix("/") { path.removeLast() }
        if path.hasPrefix("/") { return path }
        guard let here = Files.workingDirectory() else {
            throw failure("find the working directory for", FilePath(path))
        }
        return here == "/" ? here + path : here + "/" + path
    }

    package static func open(_ path: FilePath) throws(CordwoodError) -> Int32 {
        let descriptor = Files.openKept(path, .directory)
        guard descriptor >= 0 else { throw failure("open directory", path) }
        return descriptor
    }

    /// Names in a directory, unsorted; empty if it does not exist or cannot be read.
    package static func names(_ path: FilePath) -> [String] { list(path) ?? [] }

    /// The same, but nil if the directory cannot be read.
    static func list(_ path: FilePath) -> [String]? {
        let listing = DirectoryListing(path, hidden: true)
        guard listing.error == 0 || listing.error == Errno.ENOENT else {
            Errno.last = listing.error
            return nil
        }
        return listing.names
    }

    /// Makes a directory's names, or a file's content, durable. Returns 0 or an errno.
    package static func sync(_ path: FilePath) -> Int32 {
        var descriptor = Files.openKept(path, [.read, .nonBlocking])
        if descriptor < 0, Errno.last == Errno.ELOOP, let target = SegmentLink.target(path) {
            descriptor = Files.openKept(target, [.read, .nonBlocking])
        }
        guard descriptor >= 0 else { return Errno.last }
        defer { FileCalls.close(descriptor) }
        return Files.sync(descriptor) ? 0 : Errno.last
    }

    /// Turns the last errno into an error that names the action and the path.
    package static func failure(_ action: String, _ path: FilePath) -> CordwoodError {
        let number = Errno.last
        return CordwoodError(
            Status.of(errno: number),
            "could not \(action) \(path): \(systemText(number))")
    }

    /// Removes a directory that holds files and directories of ours; only for ":memory:" stores.
    package static func removeTree(_ path: FilePath) {
        for name in names(path) {
            let child = path + "/" + name
            if !Files.remove(child), Errno.last == Errno.EISDIR || Errno.last == Errno.EPERM {
                removeTree(child)
            }
        }
        Files.removeDirectory(path)
    }

    /// Makes a directory and its missing parents, sets it up as a store and keeps it open. Leaves
    /// an existing store as it is. Also returns a descriptor of lanes/, which the caller closes.
    package static func openStore(
        _ path: String, consent: Consent, groupReads: Bool = false
    ) throws(CordwoodError) -> (store: OpenDirectory, lanes: Int32) {
        try make(FilePath(path), lasts: true)
        guard let store = OpenDirectory(path) else {
            throw failure("open directory", FilePath(path))
        }
        return (store, try openLanes(store, consent: consent, groupReads: groupReads))
    }

    /// Adds what the open directory lacks of a store. Returns a descriptor of lanes/.
    /// - Parameter groupReads: what is made in it from now on may be read by its group.
    package static func openLanes(
        _ store: OpenDirectory, consent: Consent, groupReads: Bool
    ) throws(CordwoodError) -> Int32 {
        let path = FilePath(store)
        try StoreOwner.check(store)
        if groupReads, !store.letGroupRead() {
            throw failure("let the group read", FilePath(store.path))
        }
        try complete(path, consent)
        return try open(path + "/lanes")
    }

    private static func complete(_ store: FilePath, _ consent: Consent) throws(CordwoodError) {
        do throws(UploadError) {
            let file = try StoreFile.open(
                storeDirectory: store, consent: consent,
                idBytes: (UInt64.random(in: 1 ... .max), UInt64.random(in: 1 ... .max)),
                createdUnixSeconds: Int64(cw_realtime_ns() / 1_000_000_000))
            UploadMark(file).accept()
        } catch {
            throw CordwoodError(error.status.rawValue, error.text)
        }
        try makeOwn(store + "/lanes")
        try makeOwn(store + "/archives")
    }
}
