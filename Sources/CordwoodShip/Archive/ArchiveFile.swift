// An archive opened for reading: a descriptor and its size when opened. Reads are positional and
// never from a mapping, so a file that is cut beside us gives a short read and not a signal.
// SAFETY: reads go into room that `out` has reserved before.

import CShims
import CordwoodCore
import Glibc

struct ArchiveFile: ~Copyable {
    private let descriptor: Int32
    let path: String
    let size: UInt64

    init(path: String) throws(ReadProblem) {
        let opened = unsafe path.withCString {
            unsafe cwi_file_open_own($0, O_RDONLY | O_NONBLOCK, 0)
        }
        guard opened >= 0 else { throw .system("open \(path)", errno: errno) }
        var status = stat()
        guard unsafe fstat(opened, &status) == 0 else {
            let problem = errno
            cwi_file_close(opened)
            throw .system("stat \(path)", errno: problem)
        }
        guard status.st_mode & S_IFMT == S_IFREG else {
            cwi_file_close(opened)
            throw .damaged("\(path) is not a file")
        }
        descriptor = opened
        self.path = path
        size = UInt64(max(status.st_size, 0))
    }

    deinit { cwi_file_close(descriptor) }

    /// Replaces `out` by [offset, + count) of the file; false where the file has less. The caller
    /// bounds `count`.
    func read(_ count: UInt64, at offset: UInt64, into out: inout GrowingBytes) throws(ReadProblem)
        -> Bool
    {
        out.removeAll()
        guard offset <= size, count <= size - offset else { return false }
        let wanted = Int(count)
        guard out.reserve(wanted) else { throw .system("read \(path)", errno: ENOMEM) }
        var done = 0
        while done < wanted {
            let got = unsafe pread(descriptor, out.base + done, wanted - done, Int(offset) + done)
            if got > 0 {
                done += got
            } else if got == 0 {
                return false
            } else if errno != EINTR {
                throw .system("read \(path)", errno: errno)
            }
        }
        out.resize(wanted)
        return true
    }
}
