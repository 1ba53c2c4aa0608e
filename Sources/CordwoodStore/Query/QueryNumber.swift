// A number of a query, compared exactly with the numbers of records. Pure.
// SAFETY: a view is read below its count and not kept.

import CordwoodCore
import CordwoodFormats

package enum QueryNumber: Sendable, Equatable {
    case int(Int64)
    /// Beyond Int64.
    case uint(UInt64)
    case double(Double)
    /// Beyond both; the digits as characters.
    case whole(isNegative: Bool, digits: [UInt8])

    /// As JSON writes numbers; nil: not a number.
    package init?(_ text: [UInt8]) {
        guard let isWhole = QueryNumber.isNumber(text) else { return nil }
        let isNegative = text.first == UInt8(ascii: "-")
        let digits = isNegative ? text.dropFirst() : text[...]
        let text = String(decoding: text, as: UTF8.self)
        if isWhole {
            if let number = Int64(text) {
                self = .int(number)
            } else if let number = UInt64(text) {
                self = .uint(number)
            } else {
                self = .whole(isNegative: isNegative, digits: Array(digits))
            }
        } else if let number = Double(text), number.isFinite {
            self = .double(number)
        } else {
            return nil
        }
    }

    /// A text that reads as a number.
    @safe init?(_ text: UnsafeRawBufferPointer) {
        let first = Bytes.u8(text, 0)
        guard text.count <= 64, ASCII.isDigit(first) || first == 0x2D else { return nil }
        unsafe self.init(Array(text))
    }

    init?(_ value: FieldValue) {
        switch value {
        case .int(let number): self = .int(number)
        case .uint(let number): self = .uint(number)
        case .double(let number): self = .double(number)
        case .bool, .string, .json: return nil
        }
    }

    /// nil: not a number; true: without point and exponent.
    private static func isNumber(_ text: [UInt8]) -> Bool? {
        var rest = text[...]
        func digits() -> Int {
            let count = rest.prefix(while: ASCII.isDigit).count
            rest.removeFirst(count)
            return count
        }
        if rest.first == UInt8(ascii: "-") { rest.removeFirst() }
        let isZero = rest.first == UInt8(ascii: "0")
        let count = digits()
        guard count == 1 || count > 1 && !isZero else { return nil }
        var isWhole = true
        if rest.first == UInt8(ascii: ".") {
            rest.removeFirst()
            guard digits() > 0 else { return nil }
            isWhole = false
        }
        if let sign = rest.first, sign | 0x20 == UInt8(ascii: "e") {
            rest.removeFirst()
            if let next = rest.first, next == UInt8(ascii: "+") || next == UInt8(ascii: "-") {
                rest.removeFirst()
            }
            guard digits() > 0 else { return nil }
            isWhole = false
        }
        return rest.isEmpty ? isWhole : nil
    }

    var text: String {
        switch self {
        case .int(let number): "\(number)"
        case .uint(let number): "\(number)"
        case .double(let number): number.description
        case .whole(let isNegative, let digits):
            (isNegative ? "-" : "") + String(decoding: digits, as: UTF8.self)
        }
    }

    /// Negative, zero or positive; nil: a value that is not a number has no order.
    func order(to other: QueryNumber) -> Int? {
        switch (self, other) {
        case (.double(let a), .double(let b)):
            if a.isNaN || b.isNaN { return nil }
            return a < b ? -1 : a > b ? 1 : 0
        case (.double(let a), _): return QueryNumber.order(a, other)
        case (_, .double(let b)): return QueryNumber.order(b, self).map { -$0 }
        case (.whole(true, let a), .whole(true, let b)): return QueryNumber.order(b, a)
        case (.whole(false, let a), .whole(false, let b)): return QueryNumber.order(a, b)
        case (.whole(let isNegative, _), _): return isNegative ? -1 : 1
        case (_, .whole(let isNegative, _)): return isNegative ? 1 : -1
        default:
            let (a, b) = (wide, other.wide)
            return a < b ? -1 : a > b ? 1 : 0
        }
    }

    /// Without leading zeros.
    private static func order(_ a: [UInt8], _ b: [UInt8]) -> Int {
        if a.count != b.count { return a.count < b.count ? -1 : 1 }
        return a == b ? 0 : a.lexicographicallyPrecedes(b) ? -1 : 1
    }

    /// The sign and the bits above it, of a number that 64 bits hold.
    private var wide: (Int, UInt64) {
        switch self {
        case .int(let number): (number < 0 ? -1 : 0, UInt64(bitPattern: number))
        case .uint(let number): (0, number)
        case .double, .whole: (0, 0)
        }
    }

    private static func order(_ a: Double, _ whole: QueryNumber) -> Int? {
        if a.isNaN { return nil }
        if case .whole(let isNegative, let digits) = whole {
            return order(a, isNegative: isNegative, digits)
        }
        // Both beyond what 64 bits hold.
        if a >= 0x1p64 { return 1 }
        if a < -0x1p63 { return -1 }
        let floor = a.rounded(.down)
        let part: QueryNumber = floor < 0 ? .int(Int64(floor)) : .uint(UInt64(floor))
        if part.wide != whole.wide { return part.wide < whole.wide ? -1 : 1 }
        return a > floor ? 1 : 0
    }

    /// Of a number that is not NaN to a whole one that 64 bits do not hold.
    private static func order(_ a: Double, isNegative: Bool, _ digits: [UInt8]) -> Int {
        guard a.isFinite else { return a < 0 ? -1 : 1 }
        let magnitude = Double(String(decoding: digits, as: UTF8.self)) ?? .infinity
        let nearest = isNegative ? -magnitude : magnitude
        if a != nearest { return a < nearest ? -1 : 1 }
        let exact = QueryNumber.digits(magnitude)
        return isNegative ? order(digits, exact) : order(exact, digits)
    }

    /// All digits of a number from 2^53 on.
    private static func digits(_ number: Double) -> [UInt8] {
        let significand = number.significandBitPattern | 1 << Double.significandBitCount
        var digits = String(significand).utf8.map { $0 &- 0x30 }
        for _ in Double.significandBitCount..<Int(number.exponent) {
            var carry: UInt8 = 0
            for index in digits.indices.reversed() {
                let twice = digits[index] &* 2 &+ carry
                digits[index] = twice % 10
                carry = twice / 10
            }
            if carry > 0 { digits.insert(carry, at: 0) }
        }
        return digits.map { $0 &+ 0x30 }
    }
}
