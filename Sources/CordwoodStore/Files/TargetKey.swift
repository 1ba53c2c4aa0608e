// A target's name as it stands in file names: letters, digits, `_` and `-` as they are, other
// bytes as %XX; a long one is cut and ends in a checksum. So it holds no dot, no slash and no `@`,
// and two names never share a key. Pure.

import CSodium

public struct TargetKey: Hashable, Sendable {
    static let bytesMax = 80
    public static let nameBytesMax = 255

    public let text: String

    public init(name: String) {
        var encoded: [UInt8] = []
        let digits = Array("0123456789ABCDEF".utf8)
        for byte in name.utf8 {
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x5F, 0x2D: encoded.append(byte)
            default: encoded += [0x25, digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            }
        }
        if encoded.count > TargetKey.bytesMax {
            let tail = Array("~".utf8) + Array(ContentHash.hex(Array(name.utf8), bytes: 16).utf8)
            encoded = Array(encoded[0..<(TargetKey.bytesMax - tail.count)]) + tail
        }
        text = String(decoding: encoded, as: UTF8.self)
    }

    /// As found in a directory.
    init(fileName: String) {
        text = fileName
    }
}

package enum ContentHash {
    /// The first `bytes` of SHA-256, in lowercase hex.
    package static func hex(_ content: [UInt8], bytes: Int) -> String {
        var hash = [UInt8](repeating: 0, count: 32)
        // SAFETY: SHA-256 takes the content's count and fills 32 bytes.
        unsafe content.withUnsafeBufferPointer { source in
            _ = unsafe crypto_hash_sha256(&hash, source.baseAddress, UInt64(source.count))
        }
        return hexText(Array(hash[0..<min(max(bytes, 0), 32)]))
    }

    package static func hexText(_ bytes: [UInt8]) -> String {
        let digits = Array("0123456789abcdef".utf8)
        let text = bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }
        return String(decoding: text, as: UTF8.self)
    }
}
