// `%.3f` of a double as the C library prints it: rounded exactly, ties to even. A double is an
// integer times a power of two, so one multiplication and a shift yield all digits. Pure.

import CordwoodCore

enum FixedText {
    /// More digits need a product of more than 128 bits.
    private static let digitsMax = 9

    /// False, with nothing appended: the number is too large, not a number, or has too many digits.
    static func append(_ number: Double, digits: Int, to out: inout GrowingBytes) -> Bool {
        guard digits >= 0, digits <= digitsMax, number.magnitude < 0x1p52 else { return false }
        let power = power(digits)
        let bits = number.bitPattern
        let exponent = Int(bits >> 52 & 0x7FF)
        let fraction = bits & (1 << 52 &- 1)
        // The number is significand ÷ 2^shift, with a shift of at least 1.
        let significand = exponent == 0 ? fraction : fraction | 1 << 52
        let shift = exponent == 0 ? 1_074 : 1_075 &- exponent
        let product = significand.multipliedFullWidth(by: power)
        guard let scaled = rounded(product.high, product.low, shift) else { return false }
        if bits >> 63 != 0 { out.append(0x2d) }
        out.append(decimal: scaled / power)
        if digits > 0 {
            out.append(0x2e)
            out.append(decimal: scaled % power, width: digits)
        }
        return true
    }

    /// 10^digits.
    private static func power(_ digits: Int) -> UInt64 {
        switch digits {
        case 6: return 1_000_000
        case 3: return 1_000
        case 2: return 100
        case 1: return 10
        default:
            var power: UInt64 = 1
            for _ in 0..<digits { power &*= 10 }
            return power
        }
    }

    /// high:low ÷ 2^shift, to the nearest; nil: more than 64 bits.
    private static func rounded(_ high: UInt64, _ low: UInt64, _ shift: Int) -> UInt64? {
        // The product has fewer than 84 bits: it is less than a half.
        if shift > 100 { return 0 }
        var whole: UInt64
        let isHalf: Bool
        let isMore: Bool
        if shift > 64 {
            whole = high >> UInt64(shift &- 64)
            isHalf = high >> UInt64(shift &- 65) & 1 != 0
            isMore = high & (1 << UInt64(shift &- 65) &- 1) != 0 || low != 0
        } else {
            // A shift of 64 or more gives 0.
            guard high >> UInt64(shift) == 0 else { return nil }
            whole = high << UInt64(64 &- shift) | low >> UInt64(shift)
            isHalf = low >> UInt64(shift &- 1) & 1 != 0
            isMore = low & (1 << UInt64(shift &- 1) &- 1) != 0
        }
        if isHalf, isMore || whole & 1 != 0 { whole &+= 1 }
        return whole
    }
}
