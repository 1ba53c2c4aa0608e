// A number of a query, compared exactly with the numbers of records. Pure.
// SAFETY: a view is read below its count and not kept.

import CordwoodCore
import CordwoodFormats

package enum QueryNumber: Sendable, Equatable {
    case int(Int64)
    /// Beyond Int64.
    case uint(UInt64)
    case double(Double)

    /// As JSON writes numbers; nil: not a number.
    package init?(_ text: [UInt8]) {
        guard let isWhole = QueryNumber.isNumber(text) else { return nil }
        let text = String(decoding: text, as: UTF8.self)
        if isWhole, let number = Int64(text) {
            self = .int(number)
        } else if isWhole, let number = UInt64(text) {
            self = .uint(number)
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
        default:
            let (a, b) = (wide, other.wide)
            return a < b ? -1 : a > b ? 1 : 0
        }
    }

    /// A whole number's sign and the bits above it.
    private var wide: (Int, UInt64) {
        switch self {
        case .int(let number): (number < 0 ? -1 : 0, UInt64(bitPattern: number))
        case .uint(let number): (0, number)
        case .double: (0, 0)
        }
    }

    private static func order(_ a: Double, _ whole: QueryNumber) -> Int? {
        if a.isNaN { return nil }
        // Both beyond what 64 bits hold.
        if a >= 0x1p64 { return 1 }
        if a < -0x1p63 { return -1 }
        let floor = a.rounded(.down)
        let part: QueryNumber = floor < 0 ? .int(Int64(floor)) : .uint(UInt64(floor))
        if part.wide != whole.wide { return part.wide < whole.wide ? -1 : 1 }
        return a > floor ? 1 : 0
    }
}
