// The few file operations behind the store's own files and uploads: list, read whole, create,
// replace, rename, remove, sync a directory. A crash leaves each of them either undone or done.
// Paths are full paths; links are not followed; files are 0600, directories 0700. Any thread.
// SAFETY: strings and structs are lent to one call each; reads and writes stay within their array.

import CShims
import CordwoodCore

extension UploadError {
    static func status(errno code: Int32) -> UploadStatus {
        switch code {
        case Errno.ENOSPC, Errno.EDQUOT: return .full
        case Errno.ENOMEM, Errno.EMFILE, Errno.ENFILE: return .memory
        case Errno.EACCES, Errno.EPERM, Errno.EROFS: return .permission
        default: return .io
        }
    }
}

/// Owns one descriptor and closes it; forked children close their copy.
package struct FileDescriptor: ~Copyable {
    package let number: Int32

    package init(path: FilePath, flags: OpenFlags) throws(UploadError) {
        // A child that kept it would keep its lock, too.
        let opened = Files.open(path, flags)
        guard opened >= 0 else {
            throw UploadError.system(call: "open", path: "\(path)", errno: Errno.last)
        }
        number = opened
    }

    /// Takes ownership of an open descriptor.
    init(owning number: Int32) {
        self.number = number
    }

    /// Releases any lock on it explicitly: a child of a raw clone(2) may still have the descriptor.
    deinit {
        Files.unlock(number)
        Files.close(number)
    }
}

package enum StoreFiles {
    /// Small files only: identity, registrations.
    static let readBytesMax = 1 << 20

    static func makeDirectory(_ path: FilePath) throws(UploadError) {
        if Files.makeDirectory(path) { return }
        guard Errno.last == Errno.EEXIST else {
            throw UploadError.system(call: "mkdir", path: "\(path)", errno: Errno.last)
        }
        // Through a link, files would be made and removed elsewhere.
        guard let facts = FileFacts(at: path), facts.isDirectory else {
            throw UploadError.system(call: "mkdir", path: "\(path)", errno: Errno.ENOTDIR)
        }
        try StoreOwner.check(facts, path)
    }

    /// Unsorted names; hidden ones only on request. A missing directory has none.
    /// - Parameter prefix: only names with this prefix, for example to look through a large
    /// directory.
    package static func list(
        _ path: FilePath, hidden: Bool = false, prefix: String = ""
    ) throws(UploadError) -> [String] {
        let listing = DirectoryListing(path, hidden: hidden, prefix: prefix)
        guard listing.error == 0 || listing.error == Errno.ENOENT else {
            throw UploadError.system(call: "readdir", path: "\(path)", errno: listing.error)
        }
        return listing.names
    }

    package static func isRegular(_ descriptor: Int32) -> Bool {
        FileFacts(of: descriptor)?.isRegular == true
    }

    package static func exists(_ path: FilePath) -> Bool { FileFacts(at: path) != nil }

    /// When the content was last changed, in UTC ns; 0: there is no file.
    package static func modifiedNs(_ path: FilePath) -> UInt64 {
        FileFacts(at: path)?.modifiedNs ?? 0
    }

    /// Size in bytes; 0: there is no file.
    package static func size(_ path: FilePath) -> UInt64 {
        FileFacts(at: path)?.bytes ?? 0
    }

    /// The disk space of a regular file, as quotas count it; nil: there is no such file.
    package static func bytesOnDisk(_ path: FilePath) -> UInt64? {
        guard let file = FileFacts(at: path), file.isRegular else { return nil }
        return file.bytesOnDisk
    }

    /// nil: there is no file. Anything but a regular file counts as damage: reading a FIFO or a
    /// device would block.
    /// - Parameter isObeyed: the content decides what programs do, so nobody but the store's owner
    /// and root may have written it.
    package static func read(
        _ path: FilePath, bytesMax: Int = readBytesMax, isObeyed: Bool = false
    ) throws(UploadError) -> [UInt8]? {
        let opened = Files.open(path, [.read, .nonBlocking, .noTerminal])
        guard opened >= 0 else {
            if Errno.last == Errno.ENOENT { return nil }
            throw UploadError.system(call: "open", path: "\(path)", errno: Errno.last)
        }
        let file = FileDescriptor(owning: opened)
        guard let facts = FileFacts(of: opened), facts.isRegular else {
            throw UploadError.damaged("\(path) is not a file")
        }
        if isObeyed { try StoreOwner.check(facts, path) }
        var bytes = [UInt8](repeating: 0, count: 4096)
        var count = 0
        while true {
            let got = unsafe bytes.withUnsafeMutableBytes { buffer in
                unsafe Files.readNext(
                    file.number, into: UnsafeMutableRawBufferPointer(rebasing: buffer[count...]))
            }
            guard got >= 0 else {
                throw UploadError.system(call: "read", path: "\(path)", errno: Errno.last)
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
        let error = unsafe Files.write(descriptor, bytes)
        guard error == 0 else {
            throw UploadError.system(call: "write", path: path, errno: error)
        }
    }

    /// Writes `temporary`, syncs it, renames it over `path`, syncs the directory. The caller holds
    /// the directory's lock, so an existing file of that name is left over from a crash, or is not
    /// one of our files.
    /// CRASH: before the rename the old content is in place, after it the new one.
    package static func replace(
        _ path: FilePath, temporary: FilePath, directory: FilePath, with bytes: [UInt8]
    ) throws(UploadError) {
        do throws(UploadError) {
            let file = try createNew(temporary, .write)
            try unsafe bytes.withUnsafeBufferPointer { (buffer) throws(UploadError) in
                try write(file.number, UnsafeRawBufferPointer(buffer), path: "\(temporary)")
            }
            guard Files.sync(file.number) else {
                throw UploadError.system(call: "fsync", path: "\(temporary)", errno: Errno.last)
            }
        } catch {
            Files.remove(temporary)
            throw error
        }
        // CRASH: the temporary has one name, which the next replacement overwrites.
        try move(temporary, to: path)
        try syncDirectory(directory)
    }

    /// Makes an empty file; it may exist already.
    static func create(_ path: FilePath) throws(UploadError) {
        let made = Files.open(path, [.write, .new])
        if made >= 0 { return Files.close(made) }
        guard Errno.last == Errno.EEXIST else {
            throw UploadError.system(call: "open", path: "\(path)", errno: Errno.last)
        }
    }

    /// Writes a text for people; if that fails, nothing is lost.
    static func note(_ text: String, in path: FilePath) {
        guard !text.isEmpty || size(path) > 0,
            let file = try? FileDescriptor(path: path, flags: [.write, .empty, .nonBlocking])
        else { return }
        let bytes = Array(text.utf8.prefix(noteBytesMax))
        _ = unsafe bytes.withUnsafeBytes { unsafe Files.writeOnce(file.number, $0) }
    }

    private static let noteBytesMax = 1_024

    /// Creates a file that did not exist: never a link, a FIFO or another name of somebody's file.
    static func createNew(
        _ path: FilePath, _ flags: OpenFlags
    ) throws(UploadError) -> FileDescriptor {
        Files.remove(path)
        return try FileDescriptor(path: path, flags: flags.union(.new))
    }

    static func move(_ from: FilePath, to: FilePath) throws(UploadError) {
        guard Files.move(from, to: to) else {
            throw UploadError.system(call: "rename", path: "\(from)", errno: Errno.last)
        }
    }

    /// A missing file counts as removed.
    static func remove(_ path: FilePath) throws(UploadError) {
        guard Files.remove(path) || Errno.last == Errno.ENOENT else {
            throw UploadError.system(call: "unlink", path: "\(path)", errno: Errno.last)
        }
    }

    static func syncDirectory(_ path: FilePath) throws(UploadError) {
        let directory = try FileDescriptor(path: path, flags: .directory)
        guard Files.sync(directory.number) else {
            throw UploadError.system(call: "fsync", path: "\(path)", errno: Errno.last)
        }
    }

    package static let lockWaitNs: UInt64 = 10_000_000_000

    /// Holds an exclusive lock on a directory until the value goes away. It excludes both processes
    /// and threads, because each call opens the directory anew.
    package static func lockDirectory(
        _ path: FilePath, waitNs: UInt64 = lockWaitNs
    ) throws(UploadError) -> FileDescriptor {
        let directory = try FileDescriptor(path: path, flags: .directory)
        let bound = cw_monotonic_ns() + waitNs
        while !Files.lock(directory.number) {
            // The holder may be stopped forever, or be dead while a child has inherited the lock.
            guard
                Errno.last == Errno.EINTR
                    || Errno.last == Errno.EWOULDBLOCK && cw_monotonic_ns() < bound
            else {
                throw UploadError.system(call: "flock", path: "\(path)", errno: Errno.last)
            }
            ThreadIdentity.pause(microseconds: 1_000)
        }
        return directory
    }
}
