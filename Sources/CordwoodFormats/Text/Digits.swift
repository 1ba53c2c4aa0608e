// Writes numbers as decimal digits into a growing array, without a String in between, and reads
// them.
// SAFETY: the scratch of 20 digits is filled from its end and never beyond.

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

    package static func text(_ value: UInt64, width: Int = 0) -> String {
        var out: [UInt8] = []
        append(value, to: &out, width: width)
        return String(decoding: out, as: UTF8.self)
    }

    /// Digits alone; nil: anything else, or too large.
    package static func number<Number: FixedWidthInteger>(
        _ digits: some Collection<UInt8>
    ) -> Number? {
        guard !digits.isEmpty, digits.allSatisfy(ASCII.isDigit) else { return nil }
        return Number(String(decoding: digits, as: UTF8.self))
    }
}
