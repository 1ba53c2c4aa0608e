// The members of a JSON object's top level, in the order of the text, each with whether its value
// says nothing. Also reads what a parser refuses: an object that was cut, or that has a key twice.
// Pure; one pass, no recursion.

import CordwoodFormats

struct JSONMemberScan {
    private let text: [UInt8]
    private var at = 0
    private var isOver = false

    init(_ text: [UInt8]) {
        self.text = text
        skipBlanks()
        while text[at...].starts(with: AnswerContent.mark) {
            at += AnswerContent.mark.count
            skipBlanks()
        }
        isOver = !take(UInt8(ascii: "{"))
    }

    /// nil: there are no more, or the text goes on in another way.
    /// - Returns: key: in lower case. isEmpty: the value is null, false, 0, or has no content.
    mutating func next() -> (key: String, isEmpty: Bool)? {
        guard !isOver else { return nil }
        skipBlanks()
        _ = take(UInt8(ascii: ","))
        skipBlanks()
        guard let key = string() else { return nil }
        skipBlanks()
        guard take(UInt8(ascii: ":")) else { return nil }
        skipBlanks()
        return (key.lowercased(), value())
    }

    // ── Values ──

    /// True: it says nothing.
    private mutating func value() -> Bool {
        guard let first = peek else { return true }
        switch first {
        case UInt8(ascii: "\""): return string()?.isEmpty ?? false
        case UInt8(ascii: "{"), UInt8(ascii: "["): return nested()
        default: return word()
        }
    }

    private mutating func nested() -> Bool {
        var depth = 0
        var isEmpty = true
        while let byte = peek {
            switch byte {
            case UInt8(ascii: "{"), UInt8(ascii: "["):
                if depth > 0 { isEmpty = false }
                depth += 1
                at += 1
            case UInt8(ascii: "}"), UInt8(ascii: "]"):
                depth -= 1
                at += 1
                if depth == 0 { return isEmpty }
            case UInt8(ascii: "\""):
                isEmpty = false
                guard string() != nil else { return false }
            default:
                if !ASCII.isBlank(byte) { isEmpty = false }
                at += 1
            }
        }
        // Cut: what is missing may be the error.
        isOver = true
        return false
    }

    private mutating func word() -> Bool {
        let word = text[at...].prefix { !ASCII.isBlank($0) && !",}]".utf8.contains($0) }
        at += word.count
        if word.elementsEqual("null".utf8) || word.elementsEqual("false".utf8) { return true }
        guard word.allSatisfy({ ASCII.isAlphanumeric($0) || "+-.".utf8.contains($0) }) else {
            return false
        }
        return Double(String(decoding: word, as: UTF8.self)) == 0
    }

    // ── Strings ──

    /// No key that anyone asks for is longer.
    private static let keptBytesMax = 64

    /// The string's beginning; nil: no string begins here, or it was cut.
    private mutating func string() -> String? {
        guard take(UInt8(ascii: "\"")) else { return nil }
        var bytes: [UInt8] = []
        while let byte = peek {
            if byte == UInt8(ascii: "\"") {
                at += 1
                return String(decoding: bytes, as: UTF8.self)
            }
            if byte == UInt8(ascii: "\\") {
                if let escape = Escape.read(text, at) {
                    if bytes.count < JSONMemberScan.keptBytesMax { bytes += escape.bytes }
                    at = escape.end
                } else {
                    if bytes.count < JSONMemberScan.keptBytesMax { bytes.append(byte) }
                    at = min(at + 2, text.count)
                }
                continue
            }
            if bytes.count < JSONMemberScan.keptBytesMax { bytes.append(byte) }
            at += 1
        }
        isOver = true
        return nil
    }

    // ── Bytes ──

    private var peek: UInt8? { at < text.count ? text[at] : nil }

    private mutating func take(_ byte: UInt8) -> Bool {
        guard peek == byte else { return false }
        at += 1
        return true
    }

    private mutating func skipBlanks() {
        while let byte = peek, ASCII.isBlank(byte) { at += 1 }
    }
}
