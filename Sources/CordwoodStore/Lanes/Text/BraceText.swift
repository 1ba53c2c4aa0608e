// Formats text by a std::format string (FORMAT §8.7, style 2): each field as the C++ standard
// specifies it, in the C locale. The C library prints numbers in forms that both share. Texts and
// widths, which may amount to millions of bytes in one record, go to memory that may run out
// (GrowingBytes).
// SAFETY: views are slices of the record that was checked; nothing is kept.

import CShims
import CordwoodCore

struct BraceText: ~Copyable {
    /// One argument, according to its type.
    @safe enum Value {
        case signed(Int64)
        case unsigned(UInt64)
        case bool(Bool)
        case char(UInt8)
        /// The value, and its shortest digits as a float or a double.
        case double(Double, String)
        case extended([UInt8])
        case pointer(UInt64)
        case text(UnsafeRawBufferPointer)
    }

    /// A field without its sign and its padding.
    private var body = GrowingBytes()

    /// Appends one field. False: the value cannot be shown this way; the text is then the format.
    /// - Parameter isSwift: style 3: a double without type and precision is printed as Swift prints
    ///   it.
    @safe mutating func put(
        _ value: Value, _ field: BraceFormat.Field, isSwift: Bool, fill: UnsafeRawBufferPointer,
        width: Int, precision: Int?, into out: inout GrowingBytes
    ) -> Bool {
        body.clear(keeping: BraceText.keptMax)
        var sign: [UInt8] = []
        var isNumber = true
        switch value {
        case .bool(let value) where field.type == 0 || field.type == 0x73:
            isNumber = false
            body.append(value ? "true" : "false")
        case .char(let value) where field.type == 0 || field.type == 0x63 || field.type == 0x3F:
            isNumber = false
            body.append(value)
        case .text(let text):
            guard field.type == 0 || field.type == 0x73 || field.type == 0x3F else { return false }
            isNumber = false
            append(text, columns: precision)
        case .signed, .unsigned, .bool, .char:
            guard precision == nil, let digits = Self.integer(value, field, &sign) else {
                return false
            }
            append(digits)
            if field.type == 0x63 { isNumber = false }
        case .pointer(let value):
            guard field.type == 0 || field.type == 0x70 || field.type == 0x50 else { return false }
            sign = Array((field.type == 0x50 ? "0X" : "0x").utf8)
            append(Array(String(value, radix: 16, uppercase: field.type == 0x50).utf8))
        case .double(_, let described)
        where isSwift && field.type == 0 && precision == nil:
            let isNegative = described.utf8.first == 0x2D
            sign = Self.sign(isNegative, field)
            append(Array(described.utf8.dropFirst(isNegative ? 1 : 0)))
        case .double, .extended:
            guard floating(value, field, precision, &sign) else { return false }
        }
        // inf or nan, in either case.
        let shown = unsafe body.bytes
        let isFinite = !([0x69, 0x6E, 0x49, 0x4E] as [UInt8]).contains(Bytes.u8(shown, 0))
        let pad = max(0, width - sign.count - Self.columns(shown))
        if field.align == .none, field.isZeroPadded, isNumber, isFinite {
            unsafe sign.withUnsafeBytes { out.append($0) }
            for _ in 0..<pad { out.append(0x30) }
            out.append(shown)
            if body.failed { out.fail() }
            return true
        }
        let before =
            switch field.align {
            case .left: 0
            case .right: pad
            case .center: pad / 2
            case .none: isNumber ? pad : 0
            }
        for _ in 0..<before { out.append(fill) }
        unsafe sign.withUnsafeBytes { out.append($0) }
        out.append(shown)
        for _ in before..<pad { out.append(fill) }
        if body.failed { out.fail() }
        return true
    }

    /// Memory of a larger body is released.
    private static let keptMax = 64 << 10

    private mutating func append(_ bytes: [UInt8]) {
        unsafe bytes.withUnsafeBytes { body.append($0) }
    }

    // MARK: Numbers

    private static func sign(_ isNegative: Bool, _ field: BraceFormat.Field) -> [UInt8] {
        isNegative ? [0x2D] : field.sign == 0x2D ? [] : [field.sign]
    }

    private static func integer(
        _ value: Value, _ field: BraceFormat.Field, _ sign: inout [UInt8]
    ) -> [UInt8]? {
        var magnitude: UInt64 = 0
        var isNegative = false
        switch value {
        case .signed(let value): (magnitude, isNegative) = (value.magnitude, value < 0)
        case .unsigned(let value): magnitude = value
        case .bool(let value): magnitude = value ? 1 : 0
        case .char(let value): magnitude = UInt64(value)
        default: return nil
        }
        sign = Self.sign(isNegative, field)
        func digits(_ radix: Int, _ prefix: String, upper: Bool = false) -> [UInt8] {
            if field.isAlternate { sign += Array(prefix.utf8) }
            return Array(String(magnitude, radix: radix, uppercase: upper).utf8)
        }
        switch field.type {
        case 0, 0x64: return digits(10, "")
        case 0x78: return digits(16, "0x")
        case 0x58: return digits(16, "0X", upper: true)
        case 0x62: return digits(2, "0b")
        case 0x42: return digits(2, "0B")
        case 0x6F: return digits(8, magnitude == 0 ? "" : "0")
        case 0x63:
            guard !isNegative, magnitude < 256 else { return nil }
            sign = []
            return [UInt8(magnitude)]
        default: return nil
        }
    }

    /// False: the value cannot be shown this way.
    private mutating func floating(
        _ value: Value, _ field: BraceFormat.Field, _ precision: Int?, _ sign: inout [UInt8]
    ) -> Bool {
        var kind: UInt8 = 3
        var bytes: [UInt8] = []
        var letter = field.type
        switch value {
        case .double(let number, let shortest):
            unsafe withUnsafeBytes(of: number) { unsafe bytes.append(contentsOf: $0) }
            if letter == 0, precision == nil {
                let isNegative = number.sign == .minus
                sign = Self.sign(isNegative, field)
                if number.isFinite {
                    append(Self.shortest(shortest, number.magnitude, field.isAlternate))
                } else {
                    body.append(number.isNaN ? "nan" : "inf")
                }
                return true
            }
        case .extended(let raw): (bytes, kind) = (raw, 4)
        default: return false
        }
        if letter == 0 { letter = 0x67 }
        guard [0x61, 0x41, 0x65, 0x45, 0x66, 0x46, 0x67, 0x47].contains(letter) else {
            return false
        }
        var format = "%" + (field.isAlternate ? "#" : "")
        let isHex = letter == 0x61 || letter == 0x41
        if let precision {
            format += ".\(precision)"
        } else if field.type == 0, kind == 4 {
            format += ".18"
        }
        format += (kind == 4 ? "L" : "") + String(UnicodeScalar(letter))
        var text = GrowingBytes()
        Self.print(format, kind, bytes, into: &text)
        let printed = unsafe text.bytes
        let isNegative = Bytes.u8(printed, 0) == 0x2D
        sign = Self.sign(isNegative, field)
        var start = isNegative ? 1 : 0
        // std::format prints no 0x.
        if isHex, Bytes.u8(printed, start &+ 1) | 0x20 == 0x78 { start &+= 2 }
        unsafe body.append(Bytes.slice(printed, start, text.count &- start) ?? Bytes.none)
        if text.failed { body.fail() }
        return true
    }

    /// Appends what the C library prints.
    private static func print(
        _ format: String, _ kind: UInt8, _ value: [UInt8], into out: inout GrowingBytes
    ) {
        let zeroed = Array(format.utf8) + [0]
        unsafe zeroed.withUnsafeBytes { format in
            unsafe value.withUnsafeBytes { value in
                let text = unsafe format.baseAddress!.assumingMemoryBound(to: CChar.self)
                unsafe out.print(text, kind, value.baseAddress!)
            }
        }
    }

    /// The shortest digits that read back as the same number, fixed or scientific, whichever is
    /// shorter (std::to_chars). described: the number as Swift prints it, which has the same
    /// digits.
    private static func shortest(
        _ described: String, _ magnitude: Double, _ isAlternate: Bool
    ) -> [UInt8] {
        var digits: [UInt8] = []
        var exponent = 0
        var seenPoint = false
        var isExponent = false
        var exponentText = ""
        for byte in described.utf8 {
            switch byte {
            case 0x2D where !isExponent: continue
            case 0x65: isExponent = true
            case _ where isExponent: exponentText.unicodeScalars.append(Unicode.Scalar(byte))
            case 0x2E: seenPoint = true
            default:
                digits.append(byte)
                if !seenPoint { exponent += 1 }
            }
        }
        exponent += Int(exponentText) ?? 0
        // 0.ddd × 10^exponent, without zeros at either end.
        while digits.count > 1, digits.first == 0x30 {
            digits.removeFirst()
            exponent -= 1
        }
        while digits.count > 1, digits.last == 0x30 { digits.removeLast() }
        if digits == [0x30] { return Array((isAlternate ? "0." : "0").utf8) }
        let power = exponent - 1
        var scientific = [digits[0]]
        if digits.count > 1 {
            scientific.append(0x2E)
            scientific += digits[1...]
        }
        scientific += Array((power < 0 ? "e-" : "e+").utf8)
        if abs(power) < 10 { scientific.append(0x30) }
        scientific += Array(String(abs(power)).utf8)
        var fixed: [UInt8]
        if exponent <= 0 {
            fixed = Array("0.".utf8)
            guard -exponent < 8 else { return scientific }
            fixed.append(contentsOf: repeatElement(0x30, count: -exponent))
            fixed += digits
        } else if exponent >= digits.count {
            guard exponent < 40 else { return scientific }
            fixed = digits
            fixed.append(contentsOf: repeatElement(0x30, count: exponent - digits.count))
            if fixed.count <= scientific.count, magnitude >= 9_007_199_254_740_992 {
                var bytes: [UInt8] = []
                unsafe withUnsafeBytes(of: magnitude) { unsafe bytes.append(contentsOf: $0) }
                var digits = GrowingBytes()
                print("%.0f", 3, bytes, into: &digits)
                fixed = unsafe Array(digits.bytes)
            }
        } else {
            fixed = Array(digits[..<exponent]) + [0x2E] + Array(digits[exponent...])
        }
        var result = fixed.count <= scientific.count ? fixed : scientific
        if isAlternate, !result.contains(0x2E) {
            result.insert(0x2E, at: result.firstIndex(of: 0x65) ?? result.count)
        }
        return result
    }

    // MARK: Width

    /// Columns on a terminal, as the standard estimates them.
    @safe private static func columns(_ text: UnsafeRawBufferPointer) -> Int {
        if isASCII(text) { return text.count }
        var columns = 0
        each(text) {
            columns &+= isWide($0.value) ? 2 : 1
            return true
        }
        return columns
    }

    /// The whole text, or as much as fits in so many columns, with U+FFFD for what is not UTF-8.
    @safe private mutating func append(_ text: UnsafeRawBufferPointer, columns: Int?) {
        guard let columns else { return body.append(text) }
        if Self.isASCII(text) {
            return unsafe body.append(
                Bytes.slice(text, 0, min(columns, text.count)) ?? Bytes.none)
        }
        var left = columns
        Self.each(text) {
            left &-= Self.isWide($0.value) ? 2 : 1
            if left >= 0 { for byte in UTF8.encode($0)! { body.append(byte) } }
            return left > 0
        }
    }

    @safe private static func isASCII(_ text: UnsafeRawBufferPointer) -> Bool {
        unsafe text.allSatisfy { $0 < 0x80 }
    }

    /// Decodes without allocating, until `body` returns false.
    @safe private static func each(
        _ text: UnsafeRawBufferPointer, _ body: (Unicode.Scalar) -> Bool
    ) {
        var units = unsafe text.makeIterator()
        var codec = UTF8()
        while true {
            switch unsafe codec.decode(&units) {
            case .scalarValue(let scalar): guard body(scalar) else { return }
            case .error: guard body("\u{FFFD}") else { return }
            case .emptyInput: return
            }
        }
    }

    private static func isWide(_ code: UInt32) -> Bool {
        switch code {
        case 0x1100...0x115F, 0x2329...0x232A, 0x2E80...0x303E, 0x3040...0xA4CF, 0xAC00...0xD7A3,
            0xF900...0xFAFF, 0xFE10...0xFE19, 0xFE30...0xFE6F, 0xFF00...0xFF60, 0xFFE0...0xFFE6,
            0x1F300...0x1F64F, 0x1F900...0x1F9FF, 0x20000...0x2FFFD, 0x30000...0x3FFFD:
            true
        default: false
        }
    }
}
