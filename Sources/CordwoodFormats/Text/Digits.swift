// Numbers as decimal and hexadecimal digits, written as bytes into a growing array; no String is
// made.
// SAFETY: the scratch of 20 digits is filled from its end and never beyond; bytes are read below
// their count.

package enum Digits {
    package static func append(_ value: UInt64, to out: inout [UInt8], width: Int = 0) {
        // 20 digits hold every 64-bit number.
        unsafe withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 20) { digits in
            var rest = value
            var at = 20
            repeat {
                at &-= 1
                unsafe digits[at] = 0x30 &+ UInt8(truncatingIfNeeded: rest % 10)
                rest /= 10
            } while rest != 0 || 20 &- at < min(width, 20)
            unsafe out.append(contentsOf: digits[at...])
        }
    }

    package static func append(signed value: Int64, to out: inout [UInt8]) {
        if value < 0 { out.append(0x2d) }
        append(value.magnitude, to: &out)
    }

    @safe package static func appendHex(_ bytes: UnsafeRawBufferPointer, to out: inout [UInt8]) {
        for at in 0..<bytes.count {
            let byte = unsafe bytes[at]
            out.append(hex(byte >> 4))
            out.append(hex(byte & 15))
        }
    }

    package static func hex(_ nibble: UInt8) -> UInt8 {
        nibble < 10 ? 0x30 &+ nibble : 0x57 &+ nibble
    }
}
