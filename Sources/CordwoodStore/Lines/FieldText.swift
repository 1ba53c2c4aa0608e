// Field values as text, appended as bytes to a growing array. Only floating-point numbers go
// through a String.

import CordwoodCore
import CordwoodFormats

package enum FieldText {
    package static func append(_ value: FieldValue, to out: inout [UInt8]) {
        switch value {
        case .int(let number): Digits.append(signed: number, to: &out)
        case .uint(let number): Digits.append(number, to: &out)
        case .double(let number): append(number, to: &out)
        case .bool(let flag): unsafe out.append(contentsOf: Bytes.literal(flag ? "true" : "false"))
        case .string(let text): unsafe out.append(contentsOf: text)
        }
    }

    static func append(_ number: Double, to out: inout [UInt8]) {
        if number.isNaN {
            unsafe out.append(contentsOf: Bytes.literal("NaN"))
        } else if number.isInfinite {
            unsafe out.append(contentsOf: Bytes.literal(number < 0 ? "-Infinity" : "Infinity"))
        } else {
            out.append(contentsOf: number.description.utf8)
        }
    }
}
