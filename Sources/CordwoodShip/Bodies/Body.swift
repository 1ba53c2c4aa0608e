// The body of a request: an archive's own file, or a temporary file of rendered or compressed bytes
// that is unlinked as soon as it is open. Owned by one attempt on one thread.

import CordwoodFormats
import CShims
import CSodium
import CordwoodCore
import CordwoodStore
import Glibc

/// Opens the records of an archive file; tests replace it.
package typealias OpenRecords =
    @Sendable (_ path: String) throws(ReadProblem) -> any RecordSource

/// Appends a line with its newline to `into`.
package typealias RenderLine = @Sendable (_ record: RecordRef, _ into: inout [UInt8]) -> Void

struct Body: ~Copyable {
    /// nil: the archive's own descriptor.
    private let temporary: Int32?
    let descriptor: Int32
    let bytes: UInt64
    /// Before compression.
    let contentBytes: UInt64
    let encoding: BodyEncoding

    /// Takes ownership of the descriptor.
    /// - Parameter contentBytes: nil: the size of the file.
    init(temporary: Int32, bytes: UInt64, contentBytes: UInt64? = nil, encoding: BodyEncoding) {
        self.temporary = temporary
        descriptor = temporary
        self.bytes = bytes
        self.contentBytes = contentBytes ?? bytes
        self.encoding = encoding
    }

    /// The archive's file, unchanged; the lock keeps the descriptor.
    init(archive: borrowing ArchiveLock) {
        temporary = nil
        descriptor = archive.descriptor
        bytes = archive.bytes
        contentBytes = archive.bytes
        encoding = .none
    }

    deinit { if let temporary { cwi_file_close(temporary) } }

    /// SHA-256 of bytes [offset, offset + count) in lowercase hex.
    /// SAFETY: at most the buffer's own count is read and hashed; the state is initialised first.
    func sha256(offset: UInt64, count: UInt64) throws(UploadError) -> String {
        var state = crypto_hash_sha256_state()
        unsafe crypto_hash_sha256_init(&state)
        var buffer = [UInt8](repeating: 0, count: CompressingSink.chunkBytes)
        var at = offset
        while at < offset + count {
            let wanted = min(buffer.count, Int(offset + count - at))
            let got = unsafe pread(descriptor, &buffer, wanted, off_t(at))
            if got < 0 && errno == EINTR { continue }
            guard got > 0 else {
                throw UploadError.system(call: "pread", path: "body", errno: got < 0 ? errno : EIO)
            }
            unsafe crypto_hash_sha256_update(&state, buffer, UInt64(got))
            at += UInt64(got)
        }
        var hash = [UInt8](repeating: 0, count: 32)
        unsafe crypto_hash_sha256_final(&state, &hash)
        return Hex.text(hash)
    }
}
