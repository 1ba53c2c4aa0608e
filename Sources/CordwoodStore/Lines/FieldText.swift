// Field values as text, appended to growing bytes. Only floating-point numbers with more than three
// decimals go through a String.

import CordwoodCore
import CordwoodFormats

/// Growing bytes: an array, or memory that may run out.
protocol ByteSink: ~Copyable {
    @safe mutating func put(_ bytes: UnsafeRawBufferPointer)
    mutating func put(decimal: UInt64, width: Int)
}

extension GrowingBytes: ByteSink {
    @safe mutating func put(_ bytes: UnsafeRawBufferPointer) { append(text: bytes) }
    mutating func put(decimal: UInt64, width: Int) { append(decimal: decimal, width: width) }
}

extension [UInt8]: ByteSink {
    @safe mutating func put(_ bytes: UnsafeRawBufferPointer) { unsafe append(contentsOf: bytes) }
    mutating func put(decimal: UInt64, width: Int) {
        Digits.append(decimal, to: &self, width: width)
    }
}

package enum FieldText {
    package static func append(_ value: FieldValue, to out: inout [UInt8]) { put(value, &out) }
    static func append(_ value: FieldValue, to out: inout GrowingBytes) { put(value, &out) }

    static func append(_ number: Double, to out: inout [UInt8]) { put(number, &out) }

    private static func put(_ value: FieldValue, _ out: inout some ByteSink & ~Copyable) {
        switch value {
        case .int(let number):
            if number < 0 { out.put(Bytes.literal("-")) }
            out.put(decimal: number.magnitude, width: 1)
        case .uint(let number): out.put(decimal: number, width: 1)
        case .double(let number): put(number, &out)
        case .bool(let flag): out.put(Bytes.literal(flag ? "true" : "false"))
        case .string(let text), .json(let text): out.put(text)
        }
    }

    private static func put(_ number: Double, _ out: inout some ByteSink & ~Copyable) {
        if number.isNaN {
            out.put(Bytes.literal("NaN"))
        } else if number.isInfinite {
            out.put(Bytes.literal(number < 0 ? "-Infinity" : "Infinity"))
        } else if !putShort(number, &out) {
            var text = number.description
            text.withUTF8 { out.put(UnsafeRawBufferPointer($0)) }
        }
    }

    /// False: the number has more than three decimals, or more than 12 digits before them.
    /// Otherwise this is the shortest text that reads as the same number, because no two texts of
    /// 15 digits do.
    private static func putShort(
        _ number: Double, _ out: inout some ByteSink & ~Copyable
    ) -> Bool {
        let scaled = (number.magnitude * 1_000).rounded()
        guard scaled < 1e15, scaled / 1_000 == number.magnitude else { return false }
        if number.sign == .minus { out.put(Bytes.literal("-")) }
        let (whole, thousandths) = UInt64(scaled).quotientAndRemainder(dividingBy: 1_000)
        out.put(decimal: whole, width: 1)
        out.put(Bytes.literal("."))
        if thousandths % 100 == 0 {
            out.put(decimal: thousandths / 100, width: 1)
        } else if thousandths % 10 == 0 {
            out.put(decimal: thousandths / 10, width: 2)
        } else {
            out.put(decimal: thousandths, width: 3)
        }
        return true
    }
}
