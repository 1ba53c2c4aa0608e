// Reads more from answers than their status: the JSON object that some servers send, and parts of
// error text. Bounded, like the answers themselves. Pure.

import CordwoodFormats
import CordwoodStore

enum AnswerText {
    /// The number of bytes of an error text that is searched.
    static let searchedMax = 64 << 10

    /// nil: not JSON, or not an object.
    static func object(_ body: [UInt8]) -> JSONValue? {
        guard let value = try? JSONValue.parse(body, bytesMax: TransferOutcome.bodyBytesMax),
            case .object = value
        else { return nil }
        return value
    }

    /// The first printable bytes in one line; empty if it has no such bytes.
    static func words(_ body: [UInt8]) -> String {
        var words = ""
        var isGap = false
        let text = String(decoding: body.prefix(wordsSearchedMax), as: UTF8.self)
        for scalar in text.unicodeScalars {
            let isPrintable = scalar != " " && !PlainText.isControl(scalar.value)
            guard isPrintable, scalar != "\u{FFFD}" else {
                isGap = !words.isEmpty
                continue
            }
            let more = (isGap ? " " : "") + String(scalar)
            guard words.utf8.count + more.utf8.count <= wordsBytesMax else { break }
            words += more
            isGap = false
        }
        // `{}` has no content.
        return words.contains { $0.isLetter || $0.isNumber } ? words : ""
    }

    private static let wordsBytesMax = 200
    private static let wordsSearchedMax = 4_096

    static func has(_ text: [UInt8], _ part: StaticString) -> Bool {
        position(text, part) != nil
    }

    static func has(_ text: [UInt8], _ part: [UInt8]) -> Bool {
        let end = min(text.count, searchedMax)
        guard !part.isEmpty, end >= part.count else { return false }
        return (0...(end - part.count)).contains { text[$0...].starts(with: part) }
    }

    /// The position after the first occurrence of the part.
    static func position(_ text: [UInt8], _ part: StaticString) -> Int? {
        let end = min(text.count, searchedMax)
        let count = part.utf8CodeUnitCount
        guard count > 0, end >= count else { return nil }
        for first in 0...(end - count) where begins(text[first...], with: part) {
            return first + count
        }
        return nil
    }

    /// The number after the first occurrence of the part; nil: none.
    static func number(_ text: [UInt8], after part: StaticString) -> UInt64? {
        guard let first = position(text, part) else { return nil }
        var end = first
        while end < text.count, ASCII.isDigit(text[end]) { end += 1 }
        return Numbers.decimal(text[first..<end])
    }

    /// For each occurrence of the part, the number before it and the text after it, up to the next
    /// number. Searches the entire text.
    static func groups(
        _ text: [UInt8], _ part: StaticString
    ) -> [(number: UInt64, text: [UInt8])] {
        let count = part.utf8CodeUnitCount
        guard count > 0, text.count >= count else { return [] }
        var groups: [(number: UInt64, text: [UInt8])] = []
        var start = 0
        for at in 0...(text.count - count) where begins(text[at...], with: part) {
            var first = at
            while first > start, ASCII.isDigit(text[first - 1]) { first -= 1 }
            guard let number = Numbers.decimal(text[first..<at]), number > 0 else { continue }
            if let last = groups.indices.last { groups[last].text = Array(text[start..<first]) }
            groups.append((number, []))
            start = at + count
        }
        if let last = groups.indices.last { groups[last].text = Array(text[start...]) }
        return groups
    }

    private static func begins(_ text: ArraySlice<UInt8>, with part: StaticString) -> Bool {
        part.withUTF8Buffer { unsafe text.starts(with: $0) }
    }
}
