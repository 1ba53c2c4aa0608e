// How numbers are shown, and how much of a value may be written.

import CShims
import CordwoodCore

/// `\(token, privacy: .redacted)`.
@frozen public enum LogPrivacy: Sendable {
    /// The value itself. This is the default.
    case `public`
    /// Nothing about the value, not even its length: it reads as `<redacted>`.
    case redacted
    /// `<hashed 16 digits>`: the same for equal values within one process, and different in every
    /// other. The key is random and never written.
    case hashed
}

/// `\(count, format: .hex)`. Negative numbers start with their sign.
@frozen public struct LogIntegerFormat: Sendable {
    @usableFromInline let print: UInt64
    @usableFromInline let digits: UInt64

    @inlinable init(_ print: UInt64, _ digits: UInt64) {
        self.print = print
        self.digits = digits
    }

    @inlinable public static var decimal: Self { Self(MessageToken.plain, 0) }
    @inlinable public static var hex: Self { Self(MessageToken.hex, 0) }
    @inlinable public static var octal: Self { Self(MessageToken.octal, 0) }
    @inlinable public static var binary: Self { Self(MessageToken.binary, 0) }
    /// Pads with zeros to that many characters (1 … 64), sign included.
    @inlinable public static func decimal(digits: Int) -> Self {
        Self(MessageToken.padded, LogIntegerFormat.checked(digits))
    }
    @inlinable public static func hex(digits: Int = 0, uppercase: Bool = false) -> Self {
        Self(
            uppercase ? MessageToken.hexUpper : MessageToken.hex,
            digits == 0 ? 0 : LogIntegerFormat.checked(digits))
    }
    @inlinable public static func binary(digits: Int) -> Self {
        Self(MessageToken.binary, LogIntegerFormat.checked(digits))
    }

    @inlinable static func checked(_ digits: Int) -> UInt64 { UInt64(max(1, min(digits, 64))) }
}

/// `\(price, format: .fixed(2))`.
@frozen public struct LogFloatFormat: Sendable {
    @usableFromInline let print: UInt64
    @usableFromInline let digits: UInt64

    @inlinable init(_ print: UInt64, _ digits: UInt64) {
        self.print = print
        self.digits = digits
    }

    /// Like Swift's own interpolation.
    @inlinable public static var shortest: Self { Self(MessageToken.plain, 0) }
    /// That many digits after the point (0 … 100).
    @inlinable public static func fixed(_ digits: Int) -> Self {
        Self(MessageToken.fixed, UInt64(max(0, min(digits, 100))))
    }
    /// `1.50e+03`, with that many digits after the point (0 … 100).
    @inlinable public static func exponential(_ digits: Int) -> Self {
        Self(MessageToken.exponential, UInt64(max(0, min(digits, 100))))
    }
}

/// Makes the text of values that cannot be arguments, and the hashes of private ones.
public enum LogText {
    @inline(never)
    public static func of(_ value: some FixedWidthInteger, _ format: LogIntegerFormat) -> String {
        func text(_ radix: Int, uppercase: Bool = false) -> String {
            let digits = String(value.magnitude, radix: radix, uppercase: uppercase)
            let sign = value < 0 ? "-" : ""
            let zeros = max(0, Int(format.digits) - digits.count - sign.count)
            return sign + String(repeating: "0", count: zeros) + digits
        }
        switch format.print {
        case MessageToken.hex: return text(16)
        case MessageToken.hexUpper: return text(16, uppercase: true)
        case MessageToken.octal: return text(8)
        case MessageToken.binary: return text(2)
        default: return text(10)
        }
    }

    @inline(never)
    public static func of(_ value: Double, _ format: LogFloatFormat) -> String {
        let letter = format.print == MessageToken.fixed ? "f" : "e"
        let form = Array("%.\(format.digits)\(letter)".utf8CString)
        return unsafe form.withUnsafeBufferPointer { form in
            unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: 512) { out in
                var value = value
                _ = unsafe cwi_print(out.baseAddress!, 512, form.baseAddress!, 3, &value)
                return unsafe String(cString: out.baseAddress!)
            }
        }
    }

    private static let key = (UInt64.random(in: .min ... .max), UInt64.random(in: .min ... .max))

    @inline(never)
    public static func hash(_ text: String) -> UInt64 {
        var hasher = Hasher()
        hasher.combine(key.0)
        hasher.combine(key.1)
        hasher.combine(text)
        return UInt64(bitPattern: Int64(hasher.finalize()))
    }
}
