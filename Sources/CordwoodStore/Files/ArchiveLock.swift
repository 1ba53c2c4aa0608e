// Possession of one archive file: of the whole file, to delete it, or for one target, to send it
// there. Several targets may send one archive at a time, in one process or in many; meanwhile no
// process deletes it (R38). The locks belong to the open file (OFD): one byte for each target, far
// past the end of the file, and the whole range for deletion. After taking a lock, the code looks
// the name up again, because the file may have been deleted in between. Released explicitly in
// deinit: a forked child may still hold the descriptor.

import CordwoodCore

package struct ArchiveLock: ~Copyable {
    package let stem: String
    package let descriptor: Int32
    package let bytes: UInt64

    /// Past every archive's end.
    private static let targetsAt: UInt64 = 1 << 56
    private static let targetsSpan: UInt64 = 1 << 48

    /// nil: another owner has it, or the archive is gone.
    /// - Parameter target: nil: the whole archive.
    package init?(paths: StorePaths, stem: String, target: TargetKey?) throws(UploadError) {
        let path = paths.archive(stem)
        let opened = Files.open(path, [.readWrite, .nonBlocking, .noTerminal])
        guard opened >= 0 else {
            // A link is not an archive, whoever put it there.
            if Errno.last == Errno.ENOENT || Errno.last == Errno.ELOOP || Errno.last == Errno.ENXIO
                || Errno.last == Errno.EISDIR
            {
                return nil
            }
            throw UploadError.system(call: "open", path: "\(path)", errno: Errno.last)
        }
        guard StoreFiles.isRegular(opened) else {
            Files.close(opened)
            return nil
        }
        guard Files.lockOpenFile(opened, byte: target.map(ArchiveLock.byte)),
            let held = FileFacts(of: opened), let named = FileFacts(at: path),
            held.isSameFile(as: named)
        else {
            Files.unlockOpenFile(opened)
            Files.close(opened)
            return nil
        }
        self.stem = stem
        descriptor = opened
        bytes = held.bytes
    }

    /// Opens an archive to look at it, without possession: others may still send or delete it. nil:
    /// it is gone.
    package init?(lookingIn paths: StorePaths, stem: String) {
        let opened = Files.open(paths.archive(stem), [.read, .nonBlocking, .noTerminal])
        guard opened >= 0 else { return nil }
        guard StoreFiles.isRegular(opened), let held = FileFacts(of: opened) else {
            Files.close(opened)
            return nil
        }
        self.stem = stem
        descriptor = opened
        bytes = held.bytes
    }

    deinit {
        Files.unlockOpenFile(descriptor)
        Files.close(descriptor)
    }

    /// Widens one target's lock to the whole file. False: another target is sending it.
    package func widen() -> Bool { Files.lockOpenFile(descriptor) }

    /// The byte for a target. Two targets that share one take turns.
    private static func byte(of target: TargetKey) -> UInt64 {
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        for byte in target.text.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
        return targetsAt + hash % targetsSpan
    }

    /// Deletes the archive, then forgets its states. First, the removal of the segments it covers
    /// must be durable; otherwise a power cut brings them back, and they are archived again (R34).
    /// Requires the lock on the whole file.
    /// CRASH: after the unlink, states without an archive remain; Outbox.removeOrphans removes
    /// them.
    /// - Parameter unsent: what is lost with it, for the file `removed`.
    /// - Returns: whether that file has its line.
    @discardableResult
    package func deleteArchive(
        paths: StorePaths, unsent: RemovedArchive? = nil
    ) throws(UploadError) -> Bool {
        try ArchiveLock.syncLanes(paths)
        let path = paths.archive(stem)
        let isNoted = try RemovedFile.noting(unsent, stem: stem, storeDirectory: paths.root) {
            () throws(UploadError) in try StoreFiles.remove(path)
        }
        try StoreFiles.syncDirectory(paths.archives)
        try Outbox(paths: paths).removeAll(of: stem)
        return isNoted
    }

    /// Makes durable that segments are gone.
    package static func syncLanes(_ paths: StorePaths) throws(UploadError) {
        if StoreFiles.exists(paths.lanes) { try StoreFiles.syncDirectory(paths.lanes) }
    }

    /// Deletes the archive and nothing else: one of many that all targets have. Segments were
    /// synced since it was seen that they are gone (`syncLanes`). Requires the lock on the whole
    /// file. `forget` completes it for many at once.
    /// CRASH: a power cut may bring it back with its states.
    package func unlink(paths: StorePaths) throws(UploadError) {
        let path = paths.archive(stem)
        _ = try RemovedFile.noting(nil, stem: stem, storeDirectory: paths.root) {
            () throws(UploadError) in try StoreFiles.remove(path)
        }
    }

    /// Makes the unlinking of these archives durable, then forgets their states.
    package static func forget(_ stems: [String], _ outbox: Outbox) throws(UploadError) {
        guard !stems.isEmpty else { return }
        try StoreFiles.syncDirectory(outbox.paths.archives)
        for stem in stems { try outbox.removeAll(of: stem) }
    }
}
