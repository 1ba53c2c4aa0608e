// The few file operations behind the store's own files and uploads: list, read whole, create,
// replace, rename, remove, sync a directory. A crash leaves each of them either undone or done.
// Paths are full paths; links are not followed; files are 0600, directories 0700. Any thread.
// SAFETY: strings and structs are lent to one call each; reads and writes stay within their array.

import CShims
import CordwoodCore
import Glibc

extension UploadError {
    static func status(errno code: Int32) -> UploadStatus {
        switch code {
        case ENOSPC, EDQUOT: return .full
        case ENOMEM, EMFILE, ENFILE: return .memory
        case EACCES, EPERM, EROFS: return .permission
        default: return .io
        }
    }

    package static func cause(errno code: Int32) -> String {
        var buffer = [CChar](repeating: 0, count: 128)
        guard unsafe strerror_r(code, &buffer, buffer.count) == 0 else { return "error \(code)" }
        return unsafe buffer.withUnsafeBufferPointer { unsafe String(cString: $0.baseAddress!) }
    }
}

/// Owns one descriptor and closes it; forked children close their copy.
package struct FileDescriptor: ~Copyable {
    package let number: Int32

    package init(path: String, flags: Int32, mode: mode_t = 0o600) throws(UploadError) {
        // A child that kept it would keep its lock, too.
        let opened = unsafe cwi_file_open(path, flags, mode)
        guard opened >= 0 else {
            throw UploadError.system(call: "open", path: path, errno: errno)
        }
        number = opened
    }

    /// Takes ownership of an open descriptor.
    init(owning number: Int32) {
        self.number = number
    }

    /// Releases any lock on it explicitly: a child of a raw clone(2) may still have the descriptor.
    deinit {
        flock(number, LOCK_UN)
        cwi_file_close(number)
    }
}

package enum StoreFiles {
    /// Small files only: identity, registrations.
    static let readBytesMax = 1 << 20

    static func makeDirectory(_ path: String) throws(UploadError) {
        if unsafe mkdir(path, 0o700) == 0 { return }
        guard errno == EEXIST else {
            throw UploadError.system(call: "mkdir", path: path, errno: errno)
        }
        // Through a link, files would be made and removed elsewhere.
        var status = stat()
        guard unsafe lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFDIR else {
            throw UploadError.system(call: "mkdir", path: path, errno: ENOTDIR)
        }
    }

    /// Unsorted names; hidden ones only on request. A missing directory has none.
    /// - Parameter prefix: only names with this prefix, for example to look through a large
    /// directory.
    package static func list(
        _ path: String, hidden: Bool = false, prefix: String = ""
    ) throws(UploadError) -> [String] {
        let listing = DirectoryListing(path, hidden: hidden, prefix: prefix)
        guard listing.error == 0 || listing.error == ENOENT else {
            throw UploadError.system(call: "readdir", path: path, errno: listing.error)
        }
        return listing.names
    }

    package static func isRegular(_ descriptor: Int32) -> Bool {
        var status = stat()
        return unsafe fstat(descriptor, &status) == 0 && status.st_mode & S_IFMT == S_IFREG
    }

    package static func exists(_ path: String) -> Bool {
        var status = stat()
        return unsafe lstat(path, &status) == 0
    }

    /// When the content was last changed, in UTC ns; 0: there is no file.
    package static func modifiedNs(_ path: String) -> UInt64 {
        var status = stat()
        guard unsafe lstat(path, &status) == 0 else { return 0 }
        let time = status.st_mtim
        return UInt64(clamping: time.tv_sec) &* 1_000_000_000 &+ UInt64(clamping: time.tv_nsec)
    }

    /// Size in bytes; 0: there is no file.
    package static func size(_ path: String) -> UInt64 {
        var status = stat()
        return unsafe lstat(path, &status) == 0 ? UInt64(max(status.st_size, 0)) : 0
    }

    /// The disk space of a regular file, as quotas count it; nil: there is no such file.
    package static func bytesOnDisk(_ path: String) -> UInt64? {
        var status = stat()
        guard unsafe lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            return nil
        }
        return FileSystem.bytesTaken(status)
    }

    /// nil: there is no file. Anything but a regular file counts as damage: reading a FIFO or a
    /// device would block.
    package static func read(
        _ path: String, bytesMax: Int = readBytesMax
    ) throws(UploadError) -> [UInt8]? {
        let opened = unsafe cwi_file_open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0)
        guard opened >= 0 else {
            if errno == ENOENT { return nil }
            throw UploadError.system(call: "open", path: path, errno: errno)
        }
        let file = FileDescriptor(owning: opened)
        guard isRegular(opened) else { throw UploadError.damaged("\(path) is not a file") }
        var bytes = [UInt8](repeating: 0, count: 4096)
        var count = 0
        while true {
            let got = unsafe bytes.withUnsafeMutableBytes { buffer in
                unsafe Glibc.read(file.number, buffer.baseAddress! + count, buffer.count - count)
            }
            if got < 0 && errno == EINTR { continue }
            guard got >= 0 else {
                throw UploadError.system(call: "read", path: path, errno: errno)
            }
            if got == 0 { break }
            count += got
            guard count < bytesMax else {
                throw UploadError.damaged("\(path) is larger than \(bytesMax) bytes")
            }
            if count == bytes.count {
                bytes.append(contentsOf: [UInt8](repeating: 0, count: count))
            }
        }
        return Array(bytes[0..<count])
    }

    @safe package static func write(
        _ descriptor: Int32, _ bytes: UnsafeRawBufferPointer, path: String
    )
        throws(UploadError)
    {
        var offset = 0
        while offset < bytes.count {
            let put = unsafe Glibc.write(
                descriptor, bytes.baseAddress! + offset, bytes.count - offset)
            if put < 0 && errno == EINTR { continue }
            guard put > 0 else {
                throw UploadError.system(call: "write", path: path, errno: errno)
            }
            offset += put
        }
    }

    /// Writes `temporary`, syncs it, renames it over `path`, syncs the directory. The caller holds
    /// the directory's lock, so an existing file of that name is left over from a crash, or is not
    /// a file of ours at all.
    /// CRASH: before the rename the old content is in place, after it the new one.
    package static func replace(
        _ path: String, temporary: String, directory: String, with bytes: [UInt8]
    ) throws(UploadError) {
        do throws(UploadError) {
            let file = try createNew(temporary, O_WRONLY)
            try unsafe bytes.withUnsafeBufferPointer { (buffer) throws(UploadError) in
                try write(file.number, UnsafeRawBufferPointer(buffer), path: temporary)
            }
            guard fsync(file.number) == 0 else {
                throw UploadError.system(call: "fsync", path: temporary, errno: errno)
            }
        } catch {
            unsafe unlink(temporary)
            throw error
        }
        // CRASH: the temporary has one name, which the next replacement overwrites.
        try move(temporary, to: path)
        try syncDirectory(directory)
    }

    /// Makes an empty file; it may exist already.
    static func create(_ path: String) throws(UploadError) {
        let file = try FileDescriptor(path: path, flags: O_WRONLY | O_CREAT | O_NONBLOCK)
        giveToOwner(file.number, path)
    }

    /// Writes a text for people; if that fails, nothing is lost.
    static func note(_ text: String, in path: String) {
        guard !text.isEmpty || size(path) > 0,
            let file = try? FileDescriptor(path: path, flags: O_WRONLY | O_TRUNC | O_NONBLOCK)
        else { return }
        let bytes = Array(text.utf8.prefix(noteBytesMax))
        _ = unsafe bytes.withUnsafeBytes {
            unsafe Glibc.write(file.number, $0.baseAddress, $0.count)
        }
    }

    private static let noteBytesMax = 1_024

    /// Creates a file that did not exist: never a link, a FIFO or another name of somebody's file.
    static func createNew(_ path: String, _ flags: Int32) throws(UploadError) -> FileDescriptor {
        unsafe unlink(path)
        let file = try FileDescriptor(path: path, flags: flags | O_CREAT | O_EXCL)
        giveToOwner(file.number, path)
        return file
    }

    /// A file that root makes in a user's store goes to that user, who could not read it otherwise.
    private static func giveToOwner(_ descriptor: Int32, _ path: String) {
        guard geteuid() == 0, let slash = path.lastIndex(of: "/") else { return }
        var status = stat()
        guard unsafe stat(String(path[...slash]), &status) == 0, status.st_uid != 0 else { return }
        _ = fchown(descriptor, status.st_uid, status.st_gid)
    }

    static func move(_ from: String, to: String) throws(UploadError) {
        guard unsafe Glibc.rename(from, to) == 0 else {
            throw UploadError.system(call: "rename", path: from, errno: errno)
        }
    }

    /// A missing file counts as removed.
    static func remove(_ path: String) throws(UploadError) {
        guard unsafe unlink(path) == 0 || errno == ENOENT else {
            throw UploadError.system(call: "unlink", path: path, errno: errno)
        }
    }

    static func syncDirectory(_ path: String) throws(UploadError) {
        let directory = try FileDescriptor(path: path, flags: O_RDONLY | O_DIRECTORY)
        guard fsync(directory.number) == 0 else {
            throw UploadError.system(call: "fsync", path: path, errno: errno)
        }
    }

    private static let lockWaitNs: UInt64 = 10_000_000_000

    /// Holds an exclusive lock on a directory until the value goes away. It excludes both processes
    /// and threads, because each call opens the directory anew.
    package static func lockDirectory(_ path: String) throws(UploadError) -> FileDescriptor {
        let directory = try FileDescriptor(path: path, flags: O_RDONLY | O_DIRECTORY)
        let bound = cw_monotonic_ns() + lockWaitNs
        while flock(directory.number, LOCK_EX | LOCK_NB) != 0 {
            // The holder may be stopped for ever, or be dead while a child has inherited the lock.
            guard errno == EINTR || errno == EWOULDBLOCK && cw_monotonic_ns() < bound else {
                throw UploadError.system(call: "flock", path: path, errno: errno)
            }
            usleep(1_000)
        }
        return directory
    }
}
