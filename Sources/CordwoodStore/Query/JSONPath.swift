// Values in a field that is JSON, and those at a path into it (docs/QUERY.md, "Paths"). No state:
// any thread.
// SAFETY: views are parts of the text, or of a copy that is held while `body` runs.

import CordwoodCore
import CordwoodFormats

extension JSONWalk {
    /// A string, number or bool as the value of a field of that type; `null`, objects and arrays
    /// stay JSON. A number that no type holds exactly becomes a text.
    @safe package static func scalar(
        _ text: UnsafeRawBufferPointer, _ body: (FieldValue) -> Void
    ) {
        let from = solid(text, 0)
        let value = part(text, from, end(text, from))
        switch Bytes.u8(value, 0) {
        case UInt8(ascii: "\""):
            unsafe unescaped(value).withUnsafeBytes { unsafe body(.string($0)) }
        case UInt8(ascii: "t"): body(.bool(true))
        case UInt8(ascii: "f"): body(.bool(false))
        case UInt8(ascii: "{"), UInt8(ascii: "["), UInt8(ascii: "n"): unsafe body(.json(value))
        default:
            switch unsafe QueryNumber(Array(value)) {
            case .int(let number): body(.int(number))
            case .uint(let number): body(.uint(number))
            case .double(let number): body(.double(number))
            case .whole, nil: unsafe body(.string(value))
            }
        }
    }

    /// As `scalar`, but a number stays JSON, because queries also compare it as it was written.
    @safe package static func value(_ text: UnsafeRawBufferPointer, _ body: (FieldValue) -> Void) {
        let byte = first(text)
        let isWritten =
            byte == UInt8(ascii: "{") || byte == UInt8(ascii: "[") || number(text) != nil
        if isWritten { unsafe body(.json(text)) } else { scalar(text, body) }
    }

    /// nil: `text` is no number, or no type holds a number of that size.
    @safe package static func number(_ text: UnsafeRawBufferPointer) -> QueryNumber? {
        let from = solid(text, 0)
        let byte = Bytes.u8(text, from)
        guard ASCII.isDigit(byte) || byte == UInt8(ascii: "-") else { return nil }
        return unsafe QueryNumber(Array(part(text, from, end(text, from))))
    }

    /// The values at a path (docs/QUERY.md, "Paths"): `items.0.sku`.
    @safe package static func values(
        at path: ArraySlice<UInt8>, in text: UnsafeRawBufferPointer, _ body: (FieldValue) -> Void
    ) {
        guard !path.isEmpty else { return value(text, body) }
        var index = 0
        let isArray = first(text) == UInt8(ascii: "[")
        forEach(text) { name, value in
            if isArray {
                defer { index &+= 1 }
                if let rest = rest(of: path, after: Array("\(index)".utf8)) {
                    values(at: rest, in: value, body)
                } else if !ASCII.isDigit(path[path.startIndex]) {
                    values(at: path, in: value, body)
                }
            } else if let rest = rest(of: path, after: unescaped(name)) {
                values(at: rest, in: value, body)
            }
        }
    }

    /// The rest of a path that begins with a name; nil: it does not begin with it.
    package static func rest(of path: ArraySlice<UInt8>, after name: [UInt8]) -> ArraySlice<UInt8>?
    {
        guard path.starts(with: name) else { return nil }
        let rest = path.dropFirst(name.count)
        if rest.isEmpty { return rest }
        return rest.first == UInt8(ascii: ".") && rest.count > 1 ? rest.dropFirst() : nil
    }
}
