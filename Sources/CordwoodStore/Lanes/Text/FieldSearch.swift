// Whether the fields or the stack trace of a record may contain the wanted bytes. They may appear
// as in TextLine.Shown, perhaps as the end of a match that begins in the message; or as a query
// sees them, by themselves, without quotes and escapes. Decided without making the text, by pieces
// of the wanted bytes that can only come from a key or a string as stored in memory. A value; any
// thread.
// SAFETY: views are the caller's and are not kept.

import CordwoodCore
import CordwoodFormats

package struct FieldSearch: Sendable {
    /// From the last word, which is not in the message; nil: there is no such piece.
    private let last: TextSearch?
    /// From any word, wherever it is.
    let anywhere: TextSearch?
    /// All wanted bytes, if they are digits.
    let digits: DigitSearch?

    package init(_ wanted: [UInt8]) {
        let blank = wanted.lastIndex(where: FieldSearch.isBlank)
        last = FieldSearch.longest(wanted, from: blank.map { $0 + 1 } ?? 0)
        anywhere = FieldSearch.longest(wanted, from: 0)
        digits = DigitSearch(wanted)
    }

    /// Most records have no fields: checking that costs less than any search.
    @inline(__always)
    package static func hasParts(_ record: borrowing RecordRef) -> Bool {
        record.sections.count | record.context.count != 0
    }

    /// - Parameter hasMessage: false: its text has not been made yet.
    package func mayBeIn(
        _ record: borrowing RecordRef, hasMessage: Bool = true, _ printer: NumberPrinter
    ) -> Bool {
        if let digits {
            return digits.mayBeIn(sections: record.sections, printer)
                || digits.mayBeIn(fields: record.context, printer)
        }
        // The longer piece first: it is rarer.
        if let anywhere, hasMessage, !anywhere.isIn(record.message),
            !anywhere.isIn(record.sections), !anywhere.isIn(record.context)
        {
            return false
        }
        return hasLast(record.sections) || hasLast(record.context)
    }

    /// - Parameter stored: stored sections or fields, of one record or of many.
    @safe func hasLast(_ stored: UnsafeRawBufferPointer) -> Bool {
        last?.isIn(stored) ?? (stored.count > 0)
    }

    /// The pieces that `hasLast` looks for; empty: anything.
    var pieces: [TextSearch] { last.map { [$0] } ?? [] }

    private static func isBlank(_ byte: UInt8) -> Bool { byte <= 0x20 || byte == 0x7F }

    /// The longest part that always lies whole within one key or one value. The wanted bytes are
    /// split at signs that only the text has, and what may be the end of an escape is left out.
    private static func longest(_ wanted: [UInt8], from start: Int) -> TextSearch? {
        let signs: [UInt8] = [0x22, 0x3d, 0x5c]
        var found: ArraySlice<UInt8>?
        for part in wanted[start...].split(whereSeparator: { isBlank($0) || signs.contains($0) }) {
            let before = part.startIndex > 0 ? wanted[part.startIndex - 1] : 0x5c
            let piece = before == 0x5c ? afterEscape(part) : part
            let isAfterBlank = piece.startIndex > 0 && isBlank(wanted[piece.startIndex - 1])
            guard isOfText(piece, isAfterBlank: isAfterBlank) else { continue }
            if piece.count > found?.count ?? 0 { found = piece }
        }
        return found.map { TextSearch(Array($0)) }
    }

    /// Without the rest of `\n`, `\x1b` or `\u2028`, any part of which may come before it.
    private static func afterEscape(_ piece: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        guard let first = piece.first else { return piece }
        let isLetter = "nrtxu".utf8.contains(first)
        let rest = piece.dropFirst(isLetter ? 1 : 0)
        if isLetter, first != UInt8(ascii: "x"), first != UInt8(ascii: "u") { return rest }
        return rest.dropFirst(rest.prefix(4).prefix { isHex($0) }.count)
    }

    private static func isHex(_ byte: UInt8) -> Bool {
        ASCII.isDigit(byte) || (0x61...0x66).contains(byte)
    }

    /// False: it may be part of a number, a bool, or a key that is not stored. Numbers follow a
    /// `=`.
    private static func isOfText(_ piece: ArraySlice<UInt8>, isAfterBlank: Bool) -> Bool {
        let keys = ["exception.type", "exception.message", "exception.stacktrace"]
        if isAfterBlank { return !keys.contains { $0.utf8.starts(with: piece) } }
        guard piece.contains(where: { !ASCII.isDigit($0) && !"+-.e".utf8.contains($0) }) else {
            return false
        }
        return !(keys + ["true", "false", "NaN", "-Infinity"]).contains {
            has(Array($0.utf8), piece)
        }
    }

    private static func has(_ text: [UInt8], _ piece: ArraySlice<UInt8>) -> Bool {
        guard piece.count <= text.count else { return false }
        return (0...(text.count - piece.count)).contains {
            text[$0..<($0 + piece.count)].elementsEqual(piece)
        }
    }
}
