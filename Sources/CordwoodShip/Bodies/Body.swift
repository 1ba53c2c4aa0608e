// The body of a request: an archive's own file, or rendered or compressed bytes that are made while
// they are sent (BodyStream). Owned by one attempt on one thread.

import CordwoodFormats
import CSodium
import CordwoodCore
import CordwoodStore

/// Appends a record, its message already cut and marked (`Cut`), as one entry; a line with its
/// newline. Appending nothing rejects the record.
package typealias RenderEntry = @Sendable (_ record: RecordRef, _ into: inout [UInt8]) -> Void

struct Body: ~Copyable {
    let descriptor: Int32
    let stream: BodyStream?
    let bytes: UInt64
    /// Before compression.
    let contentBytes: UInt64
    let encoding: BodyEncoding

    /// The archive's file, unchanged; the lock keeps the descriptor.
    init(archive: borrowing ArchiveLock) {
        descriptor = archive.descriptor
        stream = nil
        bytes = archive.bytes
        contentBytes = archive.bytes
        encoding = .none
    }

    init(_ stream: BodyStream, contentBytes: UInt64, encoding: BodyEncoding) {
        descriptor = -1
        self.stream = stream
        bytes = stream.bytes
        self.contentBytes = contentBytes
        self.encoding = encoding
    }

    /// Passes its bytes to `take`, piece by piece. False: `take` wants no more.
    func read(_ take: (UnsafeRawBufferPointer) -> Bool) throws(UploadError) -> Bool {
        var buffer = [UInt8](repeating: 0, count: CompressingSink.chunkBytes)
        var at: UInt64 = 0
        while at < bytes {
            let wanted = min(buffer.count, Int(bytes - at))
            let got = try read(&buffer, wanted, at)
            at += UInt64(got)
            let goesOn = unsafe buffer.withUnsafeBytes {
                unsafe take(UnsafeRawBufferPointer(rebasing: $0[..<got]))
            }
            if !goesOn { return false }
        }
        return true
    }

    /// At least one byte.
    private func read(
        _ buffer: inout [UInt8], _ wanted: Int, _ at: UInt64
    ) throws(UploadError) -> Int {
        let got =
            if let stream {
                unsafe buffer.withUnsafeMutableBytes {
                    unsafe stream.read(
                        into: UnsafeMutableRawBufferPointer(rebasing: $0[..<wanted]), at: at)
                }
            } else { Files.readOnce(descriptor, into: &buffer, wanted, at: at) }
        guard got > 0 else {
            let error = stream == nil && got < 0 ? Errno.last : Errno.EIO
            throw UploadError.system(call: "pread", path: "body", errno: error)
        }
        return got
    }

    /// SHA-256 of bytes [offset, offset + count) in lowercase hex.
    /// SAFETY: at most the buffer's own count is hashed; the state is initialised first.
    func sha256(offset: UInt64, count: UInt64) throws(UploadError) -> String {
        if offset == 0, count == bytes, let digest = stream?.digest { return digest }
        var state = crypto_hash_sha256_state()
        unsafe crypto_hash_sha256_init(&state)
        var buffer = [UInt8](repeating: 0, count: CompressingSink.chunkBytes)
        var at = offset
        while at < offset + count {
            let wanted = min(buffer.count, Int(offset + count - at))
            let got = try read(&buffer, wanted, at)
            unsafe crypto_hash_sha256_update(&state, buffer, UInt64(got))
            at += UInt64(got)
        }
        var hash = [UInt8](repeating: 0, count: 32)
        unsafe crypto_hash_sha256_final(&state, &hash)
        return Hex.text(hash)
    }
}
