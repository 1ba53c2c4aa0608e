// An archive on its way to the disk (FORMAT §11, order of writing): `.part`, synced, renamed,
// directory synced. It owns both descriptors; if it is dropped before `publish`, it removes the
// `.part`.
// CRASH: a `.part` means nothing, and the next writer of the same name replaces it; after the
// rename the archive is complete, and the covered segments are still there.
// SAFETY: each name is lent to one system call; writes take exactly the view's bytes.

import CShims
import Glibc

struct PartFile: ~Copyable {
    private let directory: Int32
    private let descriptor: Int32
    private let directoryPath: String
    private let name: String
    private var published = false
    private var sealing: SealingPart?
    /// Bytes of the archive, counted before encryption.
    private(set) var written: UInt64 = 0
    /// Bytes of the file.
    var fileBytes: UInt64 { sealing?.written ?? written }

    var path: String { directoryPath + "/" + name }
    private var partName: String { name + ".part" }

    init(directory path: String, name: String) throws(ArchiveError) {
        let opened = unsafe path.withCString { unsafe openDirectory($0) }
        guard opened >= 0 else {
            throw .system(operation: "open", path: path, errno: errno)
        }
        var made = Self.create(opened, name + ".part")
        if made < 0, errno == EEXIST {
            unsafe unlinkat(opened, name + ".part", 0)
            made = Self.create(opened, name + ".part")
        }
        guard made >= 0 else {
            let problem = errno
            close(opened)
            throw .system(operation: "create", path: path + "/" + name + ".part", errno: problem)
        }
        directory = opened
        descriptor = made
        directoryPath = path
        self.name = name
    }

    deinit {
        cwi_file_close(descriptor)
        if !published { unsafe unlinkat(directory, name + ".part", 0) }
        close(directory)
    }

    private static func create(_ directory: Int32, _ name: String) -> Int32 {
        unsafe cwi_file_open_at(directory, name, O_CREAT | O_EXCL | O_WRONLY, 0o600)
    }

    /// From its first byte on, the file is an age file. `info` holds the facts known so far.
    mutating func encrypt(
        to recipients: [AgeRecipient], _ info: ArchiveInfo
    ) throws(ArchiveError) {
        sealing = try SealingPart(
            descriptor, path: directoryPath + "/" + partName, recipients: recipients, info: info)
    }

    /// Nothing may be appended after this. `info` is complete.
    func finish(_ info: ArchiveInfo) throws(ArchiveError) { try sealing?.finish(info) }

    @safe mutating func append(_ bytes: UnsafeRawBufferPointer) throws(ArchiveError) {
        guard let start = bytes.baseAddress else { return }
        if let sealing {
            try sealing.append(bytes)
            written &+= UInt64(bytes.count)
            return
        }
        var done = 0
        while done < bytes.count {
            let size = unsafe write(descriptor, start + done, bytes.count - done)
            if size > 0 {
                done += size
            } else if size == 0 || errno != EINTR {
                throw failure("write", size == 0 ? EIO : errno)
            }
        }
        written &+= UInt64(bytes.count)
    }

    mutating func publish() throws(ArchiveError) {
        guard fdatasync(descriptor) == 0 else { throw failure("fdatasync", errno) }
        guard unsafe renameat(directory, partName, directory, name) == 0 else {
            throw failure("rename", errno)
        }
        published = true
        guard fsync(directory) == 0 else {
            // The name may not survive; the covered segments do, so the archive may go.
            let problem = errno
            unsafe unlinkat(directory, name, 0)
            throw failure("fsync", problem)
        }
    }

    private func failure(_ operation: String, _ errno: Int32) -> ArchiveError {
        .system(operation: operation, path: directoryPath + "/" + partName, errno: errno)
    }
}

private func openDirectory(_ path: UnsafePointer<CChar>) -> Int32 {
    unsafe cw_open_file(path, O_RDONLY | O_DIRECTORY, 0)
}
