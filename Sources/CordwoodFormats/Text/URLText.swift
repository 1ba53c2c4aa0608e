// Percent-encoding of text for URLs. Pure.

package enum URLText {
    /// All but letters, digits and `marks` become `%XX`: unreserved characters stay (RFC 3986).
    package static func percentEncoded(_ text: String, keeping marks: String = "-._~") -> String {
        var out: [UInt8] = []
        for byte in text.utf8 {
            if ASCII.isAlphanumeric(byte) || marks.utf8.contains(byte) {
                out.append(byte)
            } else {
                out.append(0x25)
                Hex.append(upper: byte, to: &out)
            }
        }
        return String(decoding: out, as: UTF8.self)
    }
}
