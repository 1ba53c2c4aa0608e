// Bytes as hex digits, and back. No state: any thread.
// SAFETY: bytes are read below their count.

package enum Hex {
    package static func append(_ byte: UInt8, to out: inout [UInt8]) {
        out.append(ASCII.hexDigit(byte >> 4))
        out.append(ASCII.hexDigit(byte & 15))
    }

    package static func append(upper byte: UInt8, to out: inout [UInt8]) {
        func digit(_ nibble: UInt8) -> UInt8 { nibble < 10 ? 0x30 &+ nibble : 0x37 &+ nibble }
        out.append(digit(byte >> 4))
        out.append(digit(byte & 15))
    }

    /// 8 digits, the first one in the byte that is stored first.
    package static func digits(_ number: UInt32) -> UInt64 {
        var nibbles = UInt64(number)
        nibbles = (nibbles | nibbles &<< 16) & 0x0000_FFFF_0000_FFFF
        nibbles = (nibbles | nibbles &<< 8) & 0x00FF_00FF_00FF_00FF
        nibbles = (nibbles | nibbles &<< 4) & 0x0F0F_0F0F_0F0F_0F0F
        // A byte of 10 and more carries into its upper half here.
        let letters = (nibbles &+ 0x0606_0606_0606_0606) &>> 4 & 0x0101_0101_0101_0101
        return (nibbles &+ 0x3030_3030_3030_3030 &+ letters &* 0x27).bigEndian
    }

    @safe package static func append(_ bytes: UnsafeRawBufferPointer, to out: inout [UInt8]) {
        for at in 0..<bytes.count { unsafe append(bytes[at], to: &out) }
    }

    package static func text(_ bytes: [UInt8]) -> String {
        var out: [UInt8] = []
        for byte in bytes { append(byte, to: &out) }
        return String(decoding: out, as: UTF8.self)
    }

    /// 16 digits.
    package static func text(_ number: UInt64) -> String {
        text((0..<8).map { UInt8(truncatingIfNeeded: number >> UInt64(56 - 8 * $0)) })
    }

    /// Digits in either case, two per byte; nil: any other text.
    package static func bytes(_ text: some Sequence<UInt8>) -> [UInt8]? {
        let digits = text.map { ASCII.hex($0) }
        guard digits.count % 2 == 0, !digits.contains(255) else { return nil }
        return stride(from: 0, to: digits.count, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
    }
}
