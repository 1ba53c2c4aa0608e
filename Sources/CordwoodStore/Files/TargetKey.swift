// How file names spell a target's name: letters, digits, `_` and `-` unchanged, other bytes as %XX;
// a long name is cut and ends in a checksum. A key therefore never contains a dot, a slash or `@`,
// and no two names share one. Pure.

import CSodium
import CordwoodFormats

public struct TargetKey: Hashable, Sendable {
    static let bytesMax = 80
    public static let nameBytesMax = 255

    public let text: String

    public init(name: String) {
        var encoded = URLText.percentEncoded(name, keeping: "_-")
        if encoded.utf8.count > TargetKey.bytesMax {
            let tail = "~" + ContentHash.hex(Array(name.utf8), bytes: 16)
            encoded = encoded.prefix(TargetKey.bytesMax - tail.utf8.count) + tail
        }
        text = encoded
    }

    /// A key found in a directory.
    init(fileName: String) {
        text = fileName
    }
}

package enum ContentHash {
    /// The first `bytes` bytes of SHA-256, in lowercase hex.
    package static func hex(_ content: [UInt8], bytes: Int) -> String {
        var hash = [UInt8](repeating: 0, count: 32)
        // SAFETY: SHA-256 takes the content's count and fills 32 bytes.
        unsafe content.withUnsafeBufferPointer { source in
            _ = unsafe crypto_hash_sha256(&hash, source.baseAddress, UInt64(source.count))
        }
        return Hex.text(Array(hash.prefix(bytes)))
    }
}
