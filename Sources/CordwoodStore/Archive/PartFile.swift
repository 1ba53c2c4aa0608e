// An archive on its way to the disk (FORMAT §11, order of writing): `.part`, synced, renamed,
// directory synced. It owns both descriptors; if it is dropped before `publish`, it removes the
// `.part`.
// CRASH: a `.part` means nothing, and the next writer of the same name replaces it; after the
// rename the archive is complete, and the covered segments are still there.
// SAFETY: writes take exactly the view's bytes.

import CordwoodCore

struct PartFile: ~Copyable {
    private let directory: Int32
    private let descriptor: Int32
    private let directoryPath: FilePath
    private let name: String
    private var published = false
    private var sealing: SealingPart?
    /// Bytes of the archive, counted before encryption.
    private(set) var written: UInt64 = 0
    /// Bytes of the file.
    var fileBytes: UInt64 { sealing?.written ?? written }

    var path: FilePath { directoryPath + "/" + name }
    private let partName: String
    private var partPath: FilePath { directoryPath + "/" + partName }

    init(directory path: FilePath, name: String, partName: String) throws(ArchiveError) {
        let opened = Files.openKept(path, .directory)
        guard opened >= 0 else {
            throw .system(operation: "open", path: "\(path)", errno: Errno.last)
        }
        var made = Self.create(opened, partName)
        if made < 0, Errno.last == Errno.EEXIST {
            Files.remove(partName, in: opened)
            made = Self.create(opened, partName)
        }
        guard made >= 0 else {
            let problem = Errno.last
            FileCalls.close(opened)
            throw .system(operation: "create", path: "\(path)/\(partName)", errno: problem)
        }
        directory = opened
        descriptor = made
        directoryPath = path
        self.name = name
        self.partName = partName
    }

    deinit {
        Files.close(descriptor)
        if !published { Files.remove(partName, in: directory) }
        FileCalls.close(directory)
    }

    private static func create(_ directory: Int32, _ name: String) -> Int32 {
        Files.open(name, in: directory, [.write, .new])
    }

    /// From its first byte on, the file is an age file. `info` holds the facts known so far.
    mutating func encrypt(
        to recipients: [AgeRecipient], _ info: ArchiveInfo
    ) throws(ArchiveError) {
        sealing = try SealingPart(
            descriptor, path: partPath, recipients: recipients, info: info)
    }

    /// Nothing may be appended after this. `info` is complete.
    func finish(_ info: ArchiveInfo) throws(ArchiveError) { try sealing?.finish(info) }

    @safe mutating func append(_ bytes: UnsafeRawBufferPointer) throws(ArchiveError) {
        if let sealing {
            try sealing.append(bytes)
            written &+= UInt64(bytes.count)
            return
        }
        let error = unsafe Files.write(descriptor, bytes)
        guard error == 0 else { throw failure("write", error) }
        written &+= UInt64(bytes.count)
    }

    /// - Parameter modifiedNs: the time that the file gets; nil: now.
    mutating func publish(_ modifiedNs: UInt64? = nil) throws(ArchiveError) {
        if let modifiedNs {
            guard Files.setModified(descriptor, modifiedNs), Files.sync(descriptor) else {
                throw failure("fsync", Errno.last)
            }
        }
        guard Files.syncData(descriptor) else { throw failure("fdatasync", Errno.last) }
        guard Files.move(partName, to: name, in: directory) else {
            throw failure("rename", Errno.last)
        }
        published = true
        guard Files.sync(directory) else {
            // The name may not survive; the covered segments do, so the archive may go.
            let problem = Errno.last
            Files.remove(name, in: directory)
            throw failure("fsync", problem)
        }
    }

    private func failure(_ operation: String, _ code: Int32) -> ArchiveError {
        .system(operation: operation, path: "\(partPath)", errno: code)
    }
}
