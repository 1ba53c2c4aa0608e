// Escapes of a byte or a character in JSON, XML and URLs: `\u002b`, `\/`, `&#43;`, `&amp;`, `%2B`.
// A server that repeats its input may escape more than it must. Pure.

import CordwoodFormats

enum Escape {
    /// The UTF-8 of the escape that begins at `start`, and its end; nil: no escape begins
    /// there.
    static func read(_ text: [UInt8], _ start: Int) -> (bytes: [UInt8], end: Int)? {
        switch text[start] {
        case UInt8(ascii: "\\"): json(text, start + 1)
        case UInt8(ascii: "&"): xml(text, start + 1)
        case UInt8(ascii: "%"):
            number(text, start + 1, digits: 2, radix: 16).map {
                ([UInt8(truncatingIfNeeded: $0)], start + 3)
            }
        default: nil
        }
    }

    /// Escapes begin with one of these.
    static let firstBytes = Array("\\&%".utf8)

    private static func json(_ text: [UInt8], _ at: Int) -> (bytes: [UInt8], end: Int)? {
        guard at < text.count else { return nil }
        switch text[at] {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): return ([text[at]], at + 1)
        case UInt8(ascii: "u"):
            guard let unit = number(text, at + 1, digits: 4, radix: 16) else { return nil }
            let end = at + 5
            // The second half of a character beyond 16 bits.
            if unit & 0xFC00 == 0xD800, text[end...].starts(with: Array("\\u".utf8)),
                let low = number(text, end + 2, digits: 4, radix: 16), low & 0xFC00 == 0xDC00
            {
                let scalar = 0x10000 + ((unit & 0x3FF) << 10 | low & 0x3FF)
                return utf8(scalar).map { ($0, end + 6) }
            }
            return utf8(unit).map { ($0, end) }
        default: return nil
        }
    }

    private static func xml(_ text: [UInt8], _ at: Int) -> (bytes: [UInt8], end: Int)? {
        let name = Array(text[at...].prefix(nameBytesMax).prefix { $0 != UInt8(ascii: ";") })
        let end = at + name.count
        guard end < text.count, text[end] == UInt8(ascii: ";") else { return nil }
        if let byte = names.first(where: { $0.name == name })?.byte { return ([byte], end + 1) }
        guard name.first == UInt8(ascii: "#") else { return nil }
        let isHex = name.count > 1 && name[1] | 0x20 == UInt8(ascii: "x")
        let first = isHex ? 2 : 1
        let scalar = number(name, first, digits: name.count - first, radix: isHex ? 16 : 10)
        return scalar.flatMap(utf8).map { ($0, end + 1) }
    }

    /// `#x10FFFF` is the longest.
    private static let nameBytesMax = 8
    private static let names: [(name: [UInt8], byte: UInt8)] = [
        (Array("amp".utf8), 0x26), (Array("lt".utf8), 0x3C), (Array("gt".utf8), 0x3E),
        (Array("quot".utf8), 0x22), (Array("apos".utf8), 0x27),
    ]

    private static func number(
        _ text: [UInt8], _ at: Int, digits: Int, radix: UInt32
    ) -> UInt32? {
        guard digits > 0, digits <= nameBytesMax, at + digits <= text.count else { return nil }
        var value: UInt32 = 0
        for byte in text[at..<(at + digits)] {
            let digit = UInt32(ASCII.hex(byte))
            guard digit < radix else { return nil }
            value = value &* radix &+ digit
        }
        return value
    }

    /// nil: half a surrogate pair, or not a character.
    private static func utf8(_ scalar: UInt32) -> [UInt8]? {
        Unicode.Scalar(scalar).map { Array(String($0).utf8) }
    }
}
