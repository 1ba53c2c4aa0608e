// An archive opened for reading: a descriptor, and the size at open. Reads are positional and never
// from a mapping, so a file that is cut meanwhile causes a short read and not a signal. All reads
// of archives go through here: encrypted content is decrypted here on demand, and the code above
// sees only the archive inside.
// SAFETY: reads go into room that `out` has reserved before.

import CShims
import CordwoodCore
import Glibc

struct ArchiveFile: ~Copyable {
    private let descriptor: Int32
    private let sealed: SealedFile?
    let path: String
    /// Size of the archive, which may be inside an age file.
    let size: UInt64
    /// Size of the file.
    let fileBytes: UInt64

    /// identities: keys for an encrypted archive.
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
    /// The public facts of an encrypted archive.
    var facts: SealedFacts? { sealed?.facts }
    /// Set if no identity opens the archive: the reason.
    var locked: ReadProblem? { sealed?.locked }

    /// Set if the payload was cut or extended; `size` covers the genuine part.
    var endProblem: ReadProblem? {
        guard let problem = sealed?.payload?.problem else { return nil }
        return SealedFile.problem(problem, path)
    }

    /// Finds problems of a locked archive that show without a key.
    func checkLocked() throws(ReadProblem) -> String? {
        try sealed?.check(descriptor, path: path, fileBytes: fileBytes)
    }

    /// Replaces `out` by [offset, + count) of the archive; false if the archive is shorter. The
    /// caller bounds `count`.
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
