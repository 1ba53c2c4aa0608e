// An archive opened for reading: a descriptor and its size when opened. Reads are positional and
// never from a mapping, so a file that is cut beside us gives a short read and not a signal. This
// is the one place where archives are read from: what is encrypted is decrypted here, as it is
// asked for, and all above sees the archive inside.
// SAFETY: reads go into room that `out` has reserved before.

import CShims
import CordwoodCore
import Glibc

struct ArchiveFile: ~Copyable {
    private let descriptor: Int32
    private let sealed: SealedFile?
    let path: String
    /// Of the archive, which may stand in an age file.
    let size: UInt64
    /// Of the file.
    let fileBytes: UInt64

    /// identities: to open an encrypted one with.
    init(path: String, identities: [AgeIdentity] = []) throws(ReadProblem) {
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
        let bytes = UInt64(max(status.st_size, 0))
        let found: SealedFile?
        do throws(ReadProblem) {
            found = try SealedFile.find(
                opened, path: path, fileBytes: bytes, identities: identities)
        } catch {
            cwi_file_close(opened)
            throw error
        }
        descriptor = opened
        sealed = found
        self.path = path
        fileBytes = bytes
        if let found { size = found.payload?.size ?? 0 } else { size = bytes }
    }

    deinit { cwi_file_close(descriptor) }

    var isEncrypted: Bool { sealed != nil }
    /// What an encrypted one says to everybody.
    var facts: SealedFacts? { sealed?.facts }
    /// Nothing can be read; why.
    var locked: ReadProblem? { sealed?.locked }

    /// It was cut or added to: `size` is what is genuine.
    var endProblem: ReadProblem? {
        guard let problem = sealed?.payload?.problem else { return nil }
        return SealedFile.problem(problem, path)
    }

    /// Of one that is locked: what is wrong all the same.
    func checkLocked() throws(ReadProblem) -> String? {
        try sealed?.check(descriptor, path: path, fileBytes: fileBytes)
    }

    /// Replaces `out` by [offset, + count) of the archive; false where it has less. The caller
    /// bounds `count`.
    func read(_ count: UInt64, at offset: UInt64, into out: inout GrowingBytes) throws(ReadProblem)
        -> Bool
    {
        out.removeAll()
        guard offset <= size, count <= size - offset else { return false }
        let wanted = Int(count)
        guard out.reserve(wanted) else { throw .system("read \(path)", errno: ENOMEM) }
        if let payload = sealed?.payload {
            do throws(AgeError) {
                try unsafe payload.read(wanted, at: offset, into: out.base)
            } catch {
                throw SealedFile.problem(error, path)
            }
            out.resize(wanted)
            return true
        }
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
