// Makes, lists and syncs the directories of a store. Any thread; any process at the same time.
// SAFETY: structs of the C library are on the stack, for one call.

import CShims
import CordwoodCore
import Glibc

package enum Directories {
    /// Makes a directory and its missing parents, 0700. lasts: makes their names survive a power
    /// cut; their contents are worth nothing without them.
    package static func make(_ path: String, lasts: Bool = false) throws(CordwoodError) {
        var status = stat()
        if unsafe stat(path, &status) == 0 {
            guard status.st_mode & S_IFMT == S_IFDIR else {
                throw CordwoodError(Status.notDirectory, "\(path) is not a directory")
            }
            return
        }
        if errno == ENOTDIR {
            throw CordwoodError(Status.notDirectory, "a part of \(path) is not a directory")
        }
        var parent = path.hasPrefix("/") ? "/" : "."
        if let slash = path.lastIndex(of: "/"), slash != path.startIndex {
            parent = String(path[..<slash])
            try make(parent, lasts: lasts)
        }
        if unsafe mkdir(path, 0o700) != 0 {
            if errno == EEXIST { return }
            throw failure("make directory", path)
        }
        // We may have no right to read another user's folder: no reason not to log.
        if lasts { _ = sync(parent + "/.") }
    }

    /// Makes one of the store's own directories. Refuses a link: files would be made and removed
    /// elsewhere.
    package static func makeOwn(_ path: String) throws(CordwoodError) {
        var status = stat()
        if unsafe lstat(path, &status) == 0, status.st_mode & S_IFMT != S_IFDIR {
            throw CordwoodError(Status.notDirectory, "\(path) is not a directory")
        }
        try make(path)
    }

    /// The host may change its working directory as soon as a store is open.
    package static func absolute(_ path: String) throws(CordwoodError) -> String {
        if path.hasPrefix("/") { return path }
        let here = unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: 4096) { buffer in
            unsafe getcwd(buffer.baseAddress!, buffer.count).map { unsafe String(cString: $0) }
        }
        guard let here else { throw failure("find the working directory for", path) }
        return here == "/" ? here + path : here + "/" + path
    }

    package static func open(_ path: String) throws(CordwoodError) -> Int32 {
        let descriptor = unsafe cw_open_file(path, O_RDONLY | O_DIRECTORY, 0)
        guard descriptor >= 0 else { throw failure("open directory", path) }
        return descriptor
    }

    /// Names in a directory, unsorted; empty if it does not exist or cannot be read.
    package static func names(_ path: String) -> [String] { list(path) ?? [] }

    /// The same, but nil if the directory cannot be read.
    static func list(_ path: String) -> [String]? {
        let listing = DirectoryListing(path, hidden: true)
        guard listing.error == 0 || listing.error == ENOENT else {
            errno = listing.error
            return nil
        }
        return listing.names
    }

    /// Makes a directory's names, or a file's content, durable. Returns 0 or an errno.
    package static func sync(_ path: String) -> Int32 {
        var descriptor = unsafe cw_open_file(path, O_RDONLY | O_NONBLOCK, 0)
        if descriptor < 0, errno == ELOOP, let target = SegmentLink.target(path) {
            descriptor = unsafe cw_open_file(target, O_RDONLY | O_NONBLOCK, 0)
        }
        guard descriptor >= 0 else { return errno }
        defer { Glibc.close(descriptor) }
        return fsync(descriptor) == 0 ? 0 : errno
    }

    /// Turns the last errno into an error that names the action and the path.
    package static func failure(_ action: String, _ path: String) -> CordwoodError {
        let number = errno
        return CordwoodError(
            Status.of(errno: number),
            "could not \(action) \(path): \(systemText(number))")
    }

    /// Removes a directory that holds files and directories of ours; only for ":memory:" stores.
    package static func removeTree(_ path: String) {
        for name in names(path) {
            let child = path + "/" + name
            if unsafe unlink(child) != 0, errno == EISDIR || errno == EPERM { removeTree(child) }
        }
        unsafe rmdir(path)
    }

    /// Makes a directory and its missing parents and sets it up as a store; leaves an existing
    /// store unchanged.
    package static func makeStore(_ path: String, consent: Consent) throws(CordwoodError) {
        try make(path, lasts: true)
        do throws(UploadError) {
            _ = try StoreFile.open(
                storeDirectory: path, consent: consent,
                idBytes: (UInt64.random(in: 1 ... .max), UInt64.random(in: 1 ... .max)),
                createdUnixSeconds: Int64(cw_realtime_ns() / 1_000_000_000))
        } catch {
            throw CordwoodError(error.status.rawValue, error.text)
        }
        try makeOwn(path + "/lanes")
        try makeOwn(path + "/archives")
    }

    /// The same; also opens lanes/ and returns its descriptor.
    package static func openStore(
        _ path: String, consent: Consent
    ) throws(CordwoodError) -> Int32 {
        try makeStore(path, consent: consent)
        return try open(path + "/lanes")
    }
}
