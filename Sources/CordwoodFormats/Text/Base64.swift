// Base64 with padding (libsodium's), for Basic authentication. Pure.

import CSodium

package enum Base64 {
    /// SAFETY: room for the text and its NUL, as libsodium's macro of the same name counts it.
    package static func text(_ bytes: [UInt8]) -> String {
        var room = [CChar](repeating: 0, count: (bytes.count + 2) / 3 * 4 + 1)
        unsafe sodium_bin2base64(
            &room, room.count, bytes, bytes.count, sodium_base64_VARIANT_ORIGINAL)
        defer { unsafe sodium_memzero(&room, room.count) }
        return String(decoding: room.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}
