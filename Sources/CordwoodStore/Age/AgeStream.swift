// The payload of an age file: chunks of 64 KiB. The nonce of each contains its number and whether
// it is the last, so nothing can be cut off, added or moved. AgeSealer writes a payload from front
// to end, with one chunk in memory. One thread at a time.
// SAFETY: libsodium reads and fills exactly the counts it is given, which callers have checked
// against the memory they lend.

import CSodium

/// The key of a payload; seals and opens one chunk at a time.
struct AgeStreamKey: Sendable {
    static let chunkBytes = 64 << 10
    static let sealedBytes = chunkBytes + AgeCrypto.tagBytes
    static let saltBytes = 16

    private let key: AgeSecret

    /// salt: the bytes before the first chunk.
    init(fileKey: AgeSecret, salt: [UInt8]) {
        AgeCrypto.start()
        key = AgeCrypto.hkdf(fileKey, salt: salt, info: "payload")
    }

    /// Writes the chunk's bytes and the tag.
    func seal(
        _ chunk: UnsafeRawBufferPointer, number: UInt64, isLast: Bool,
        into out: UnsafeMutableRawPointer
    ) {
        unsafe crypto_aead_chacha20poly1305_ietf_encrypt(
            out.assumingMemoryBound(to: UInt8.self), nil,
            chunk.baseAddress?.assumingMemoryBound(to: UInt8.self), UInt64(chunk.count), nil, 0,
            nil, nonce(number, isLast), key.bytes)
    }

    /// False: the bytes are not what was sealed under that number; `out` must not be used then.
    func open(
        _ sealed: UnsafeRawBufferPointer, number: UInt64, isLast: Bool,
        into out: UnsafeMutableRawPointer
    ) -> Bool {
        guard let from = sealed.baseAddress, sealed.count >= AgeCrypto.tagBytes else {
            return false
        }
        return unsafe crypto_aead_chacha20poly1305_ietf_decrypt(
            out.assumingMemoryBound(to: UInt8.self), nil, nil,
            from.assumingMemoryBound(to: UInt8.self), UInt64(sealed.count), nil, 0,
            nonce(number, isLast), key.bytes) == 0
    }

    /// An 11-byte big-endian number, and the mark of the last chunk.
    private func nonce(_ number: UInt64, _ isLast: Bool) -> [UInt8] {
        var nonce = [UInt8](repeating: 0, count: AgeCrypto.nonceBytes)
        for index in 0..<8 {
            nonce[10 - index] = UInt8(truncatingIfNeeded: number >> UInt64(8 * index))
        }
        nonce[11] = isLast ? 1 : 0
        return nonce
    }
}

final class AgeSealer {
    /// The caller writes it before the first chunk.
    let salt: [UInt8]
    private let key: AgeStreamKey
    private var chunk = [UInt8](repeating: 0, count: AgeStreamKey.chunkBytes)
    private var filled = 0
    private var sealed = [UInt8](repeating: 0, count: AgeStreamKey.sealedBytes)
    private var number: UInt64 = 0

    init(fileKey: AgeSecret, salt: [UInt8] = AgeCrypto.random(AgeStreamKey.saltBytes)) {
        self.salt = salt
        key = AgeStreamKey(fileKey: fileKey, salt: salt)
    }

    /// Takes bytes; passes each full chunk to `write`, except the last one.
    @safe func append<E: Error>(
        _ bytes: UnsafeRawBufferPointer, _ write: (UnsafeRawBufferPointer) throws(E) -> Void
    ) throws(E) {
        var at = 0
        while at < bytes.count {
            let left = bytes.count - at
            if filled == chunk.count {
                try unsafe give(isLast: false, write)
            } else if filled == 0, left > chunk.count {
                let whole = unsafe UnsafeRawBufferPointer(rebasing: bytes[at..<(at + chunk.count)])
                try seal(whole, isLast: false, write)
                at += whole.count
            } else {
                let count = min(left, chunk.count - filled)
                unsafe chunk.withUnsafeMutableBytes {
                    unsafe ($0.baseAddress! + filled).copyMemory(
                        from: bytes.baseAddress! + at, byteCount: count)
                }
                filled += count
                at += count
            }
        }
    }

    /// Writes the last chunk, which is empty if the payload is.
    func finish<E: Error>(_ write: (UnsafeRawBufferPointer) throws(E) -> Void) throws(E) {
        try unsafe give(isLast: true, write)
    }

    private func give<E: Error>(
        isLast: Bool, _ write: (UnsafeRawBufferPointer) throws(E) -> Void
    ) throws(E) {
        let count = filled
        filled = 0
        unsafe chunk.withUnsafeBytes { held in
            unsafe sealed.withUnsafeMutableBytes { out in
                unsafe key.seal(
                    UnsafeRawBufferPointer(rebasing: held[..<count]), number: number,
                    isLast: isLast, into: out.baseAddress!)
            }
        }
        try unsafe pass(count, write)
    }

    @safe private func seal<E: Error>(
        _ whole: UnsafeRawBufferPointer, isLast: Bool,
        _ write: (UnsafeRawBufferPointer) throws(E) -> Void
    ) throws(E) {
        unsafe sealed.withUnsafeMutableBytes { out in
            unsafe key.seal(whole, number: number, isLast: isLast, into: out.baseAddress!)
        }
        try unsafe pass(whole.count, write)
    }

    private func pass<E: Error>(
        _ count: Int, _ write: (UnsafeRawBufferPointer) throws(E) -> Void
    ) throws(E) {
        number += 1
        try unsafe sealed.withUnsafeBufferPointer { (out) throws(E) in
            try unsafe write(
                UnsafeRawBufferPointer(start: out.baseAddress, count: count + AgeCrypto.tagBytes))
        }
    }

    deinit { unsafe sodium_memzero(&chunk, chunk.count) }
}
