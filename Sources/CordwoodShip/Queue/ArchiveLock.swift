// Possession of one archive file, held while it is uploaded and while it is deleted, so that of
// two uploaders, or an uploader and retention, one waits (R38). The lock is on the open file;
// after it is had, the name is looked up again, for the file may have been deleted in between.
// Released on deinit, explicitly: a forked child may still hold the descriptor.

import CShims
import Glibc

struct ArchiveLock: ~Copyable {
    let stem: String
    let descriptor: Int32
    let bytes: UInt64

    /// nil: someone else has it, or it is gone.
    init?(paths: StorePaths, stem: String) throws(UploadError) {
        let path = paths.archive(stem)
        let opened = unsafe cwi_file_open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0)
        guard opened >= 0 else {
            // A link is no archive, whoever put it there.
            if errno == ENOENT || errno == ELOOP || errno == ENXIO { return nil }
            throw UploadError.system(call: "open", path: path, errno: errno)
        }
        guard Files.isRegular(opened) else {
            cwi_file_close(opened)
            return nil
        }
        guard flock(opened, LOCK_EX | LOCK_NB) == 0 else {
            let code = errno
            cwi_file_close(opened)
            if code == EWOULDBLOCK || code == EINTR { return nil }
            throw UploadError.system(call: "flock", path: path, errno: code)
        }
        var held = stat()
        var named = stat()
        guard unsafe fstat(opened, &held) == 0, unsafe lstat(path, &named) == 0,
            held.st_ino == named.st_ino, held.st_dev == named.st_dev
        else {
            flock(opened, LOCK_UN)
            cwi_file_close(opened)
            return nil
        }
        self.stem = stem
        descriptor = opened
        bytes = UInt64(max(held.st_size, 0))
    }

    deinit {
        flock(descriptor, LOCK_UN)
        cwi_file_close(descriptor)
    }

    /// Deletes the archive and forgets its states, in this order. That the segments it covers are
    /// gone must outlast a power cut first, or they come back and are archived again (R34).
    /// CRASH: after the unlink, states without an archive stay; Outbox.removeOrphans takes them.
    func deleteArchive(paths: StorePaths) throws(UploadError) {
        if Files.exists(paths.lanes) { try Files.syncDirectory(paths.lanes) }
        try Files.remove(paths.archive(stem))
        try Files.syncDirectory(paths.archives)
        try Outbox(paths: paths).removeAll(of: stem)
    }
}
