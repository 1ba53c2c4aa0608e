// An archive opened for reading: a file, and its size at open. Reads are positional and never from
// a mapping, so a file that is cut meanwhile causes a short read and not a signal. All reads of
// archives go through here: encrypted content is decrypted here on demand, and the code above sees
// only the archive inside.
// SAFETY: reads go into room that `out` has reserved before.

import CordwoodCore

struct ArchiveFile: ~Copyable {
    private let file: OpenFile
    private let sealed: SealedFile?
    /// All of a small file, which is read once; empty: a larger one.
    private let whole: [UInt8]
    let path: FilePath
    /// Size of the archive, which may be inside an age file.
    let size: UInt64
    /// Size of the file.
    let fileBytes: UInt64

    /// identities: keys for an encrypted archive.
    init(path: FilePath, identities: [AgeIdentity] = []) throws(ReadProblem) {
        let opened = Files.openOwn(path, [.read, .nonBlocking])
        guard opened >= 0 else { throw .system("open \(path)", errno: Errno.last) }
        guard let facts = FileFacts(of: opened) else {
            let problem = Errno.last
            Files.close(opened)
            throw .system("stat \(path)", errno: problem)
        }
        guard facts.isRegular else {
            Files.close(opened)
            throw .damaged("\(path) is not a file")
        }
        let bytes = facts.bytes
        let found: SealedFile?
        let start: [UInt8]
        do throws(ReadProblem) {
            start = try SealedFile.start(opened, path: path, fileBytes: bytes)
            found = try SealedFile.find(
                opened, path: path, fileBytes: bytes, identities: identities, start: start)
        } catch {
            Files.close(opened)
            throw error
        }
        file = OpenFile(opened, facts, path: path)
        sealed = found
        whole = UInt64(start.count) == bytes ? start : []
        self.path = path
        fileBytes = bytes
        if let found { size = found.payload?.size ?? 0 } else { size = bytes }
    }

    deinit { file.end() }

    /// From now on the file may be closed while it is not being read. Encrypted ones stay open.
    func join(_ files: OpenFiles) {
        if sealed == nil { file.join(files) }
    }

    /// It was closed, and its name no longer leads to it.
    var isGone: Bool { file.isGone }
    var isEncrypted: Bool { sealed != nil }
    /// The public facts of an encrypted archive.
    var facts: SealedFacts? { sealed?.facts }
    /// Set if no identity opens the archive: the reason.
    var locked: ReadProblem? { sealed?.locked }

    /// Of an encrypted archive that a key opens: its header is damaged, or its payload was cut or
    /// extended; `size` covers the genuine part.
    var problems: [ReadProblem] {
        guard let sealed else { return [] }
        let end = sealed.payload?.problem.map { SealedFile.problem($0, path) }
        return [sealed.headProblem, end].compactMap { $0 }
    }

    /// The recipients of an encrypted archive; nil: not all of them are among the identities.
    func recipients(_ identities: [AgeIdentity]) throws(ReadProblem) -> [AgeRecipient]? {
        guard isEncrypted else { return [] }
        return try SealedFile.recipients(
            file.held, path: path, fileBytes: fileBytes, identities: identities)
    }

    /// Finds problems of a locked archive that show without a key.
    func checkLocked() throws(ReadProblem) -> String? {
        try sealed?.check(file.held, path: path, fileBytes: fileBytes)
    }

    /// Replaces `out` by [offset, + count) of the archive; false if the archive is shorter. The
    /// caller bounds `count`.
    func read(_ count: UInt64, at offset: UInt64, into out: inout GrowingBytes) throws(ReadProblem)
        -> Bool
    {
        out.removeAll()
        guard offset <= size, count <= size - offset else { return false }
        let wanted = Int(count)
        guard out.reserve(wanted) else { throw .system("read \(path)", errno: Errno.ENOMEM) }
        if let payload = sealed?.payload {
            do throws(AgeError) {
                try unsafe payload.read(wanted, at: offset, into: out.base)
            } catch {
                throw SealedFile.problem(error, path)
            }
            out.resize(wanted)
            return true
        }
        let room = unsafe UnsafeMutableRawBufferPointer(start: out.base, count: wanted)
        if !whole.isEmpty {
            // `size` is that of `whole`.
            unsafe whole.withUnsafeBytes {
                unsafe room.copyMemory(
                    from: UnsafeRawBufferPointer(rebasing: $0[Int(offset)..<Int(offset) + wanted]))
            }
            out.resize(wanted)
            return true
        }
        let got = unsafe file.read(into: room, at: offset)
        guard got >= 0 else { throw .system("read \(path)", errno: Errno.last) }
        guard got == wanted else { return false }
        out.resize(wanted)
        return true
    }
}
