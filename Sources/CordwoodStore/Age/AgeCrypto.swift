// The primitives of age, all from libsodium: X25519, ChaCha20-Poly1305, HMAC-SHA256, random bytes,
// base64. HKDF is built from the HMAC, because libsodium 1.0.18 lacks it. Values only; any thread.
// SAFETY: each array is lent to one call, with its own count; outputs have the size that the
// function fills. The creators of keys check their sizes.

import CSodium

/// Secret bytes, overwritten when they are released.
final class AgeSecret: @unchecked Sendable {
    // SAFETY: changed only in deinit.
    private(set) var bytes: [UInt8]

    init(_ bytes: consuming [UInt8]) { self.bytes = bytes }

    deinit { unsafe sodium_memzero(&bytes, bytes.count) }
}

enum AgeCrypto {
    static let keyBytes = 32
    static let tagBytes = 16
    static let nonceBytes = 12

    /// Makes libsodium select the processor's fastest code; without it everything works, slowly.
    private static let isStarted = sodium_init() >= 0

    static func start() { _ = isStarted }

    static func random(_ count: Int) -> [UInt8] {
        start()
        var bytes = [UInt8](repeating: 0, count: count)
        unsafe randombytes_buf(&bytes, count)
        return bytes
    }

    // ── Keys ──

    /// nil: the point is one of the few whose product reveals nothing about the scalar.
    static func multiply(_ scalar: AgeSecret, _ point: [UInt8]) -> AgeSecret? {
        guard scalar.bytes.count == keyBytes, point.count == keyBytes else { return nil }
        start()
        var product = [UInt8](repeating: 0, count: keyBytes)
        guard unsafe crypto_scalarmult(&product, scalar.bytes, point) == 0 else { return nil }
        return AgeSecret(product)
    }

    /// The public half of the key.
    static func point(of scalar: AgeSecret) -> [UInt8] {
        start()
        var point = [UInt8](repeating: 0, count: keyBytes)
        _ = unsafe crypto_scalarmult_base(&point, scalar.bytes)
        return point
    }

    /// RFC 5869 with SHA-256, 32 bytes: one block of its second step.
    static func hkdf(_ material: AgeSecret, salt: [UInt8], info: String) -> AgeSecret {
        let extracted = AgeSecret(hmac(key: salt, [material.bytes]))
        return AgeSecret(hmac(key: extracted.bytes, [Array(info.utf8), [1]]))
    }

    static func hmac(key: [UInt8], _ parts: [[UInt8]]) -> [UInt8] {
        var state = crypto_auth_hmacsha256_state()
        unsafe crypto_auth_hmacsha256_init(&state, key, key.count)
        for part in parts {
            unsafe crypto_auth_hmacsha256_update(&state, part, UInt64(part.count))
        }
        var sum = [UInt8](repeating: 0, count: keyBytes)
        unsafe crypto_auth_hmacsha256_final(&state, &sum)
        unsafe sodium_memzero(&state, MemoryLayout<crypto_auth_hmacsha256_state>.size)
        return sum
    }

    /// Compares in constant time: where the arrays differ does not matter.
    static func equal(_ left: [UInt8], _ right: [UInt8]) -> Bool {
        guard left.count == right.count else { return false }
        return unsafe sodium_memcmp(left, right, left.count) == 0
    }

    // ── Wrapping a key with a key: the nonce is zero, because no wrap key is used twice ──

    static func wrap(_ secret: AgeSecret, with key: AgeSecret) -> [UInt8] {
        let nonce = [UInt8](repeating: 0, count: nonceBytes)
        var sealed = [UInt8](repeating: 0, count: secret.bytes.count + tagBytes)
        unsafe crypto_aead_chacha20poly1305_ietf_encrypt(
            &sealed, nil, secret.bytes, UInt64(secret.bytes.count), nil, 0, nil, nonce, key.bytes)
        return sealed
    }

    static func unwrap(_ sealed: [UInt8], with key: AgeSecret) -> AgeSecret? {
        guard sealed.count >= tagBytes else { return nil }
        let nonce = [UInt8](repeating: 0, count: nonceBytes)
        var opened = [UInt8](repeating: 0, count: sealed.count - tagBytes)
        let answer = unsafe crypto_aead_chacha20poly1305_ietf_decrypt(
            &opened, nil, nil, sealed, UInt64(sealed.count), nil, 0, nonce, key.bytes)
        return answer == 0 ? AgeSecret(opened) : nil
    }
}

/// Base64 without padding; each content has exactly one text.
enum AgeBase64 {
    static func text(_ bytes: [UInt8]) -> [UInt8] {
        // Includes the NUL.
        var room = [CChar](repeating: 0, count: (bytes.count + 2) / 3 * 4 + 1)
        unsafe sodium_bin2base64(
            &room, room.count, bytes, bytes.count, sodium_base64_VARIANT_ORIGINAL_NO_PADDING)
        return room.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
    }

    /// nil: not base64, padded, or not the canonical text for its content.
    static func bytes(_ text: [UInt8]) -> [UInt8]? {
        let characters = text.map { CChar(bitPattern: $0) }
        var bytes = [UInt8](repeating: 0, count: text.count / 4 * 3 + 3)
        var count = 0
        let answer = unsafe sodium_base642bin(
            &bytes, bytes.count, characters, characters.count, nil, &count, nil,
            sodium_base64_VARIANT_ORIGINAL_NO_PADDING)
        guard answer == 0, count <= bytes.count else { return nil }
        bytes.removeLast(bytes.count - count)
        // libsodium accepts some bytes beyond ASCII as characters: accept only what it would write.
        return AgeBase64.text(bytes) == text ? bytes : nil
    }
}
