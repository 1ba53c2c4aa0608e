// Percent-encoding of what becomes part of a URL. Pure.

package enum URLText {
    /// All but unreserved characters (RFC 3986) as `%XX`.
    package static func percentEncoded(_ text: String) -> String {
        var out: [UInt8] = []
        for byte in text.utf8 {
            switch byte {
            case 0x30...0x39, 0x41...0x5a, 0x61...0x7a, 0x2d, 0x2e, 0x5f, 0x7e: out.append(byte)
            default:
                out.append(0x25)
                out.append(upperHex(byte >> 4))
                out.append(upperHex(byte & 15))
            }
        }
        return String(decoding: out, as: UTF8.self)
    }

    private static func upperHex(_ nibble: UInt8) -> UInt8 {
        nibble < 10 ? 0x30 + nibble : 0x37 + nibble
    }
}
