// Decides by the text of a block alone (FORMAT §11.6, bit 0 of the flags) that none of its
// records contains certain bytes, so that a search inflates one frame and decodes no message. It
// looks for a run of letters among the wanted bytes that no codec splits and that nothing stored as
// a number can print. Errs on the side of decoding. A value; any thread.
// SAFETY: views are the caller's and are not kept.

import CordwoodCore
import CordwoodFormats

struct LetterRun: Sendable {
    private let run: TextSearch
    private let wanted: TextSearch

    /// nil: `bytes` have no such run.
    init?(_ bytes: [UInt8]) {
        var longest = bytes[0..<0]
        var at = 0
        while at < bytes.count {
            let start = at
            while at < bytes.count, Self.isLetter(bytes[at]) { at += 1 }
            let found = Self.kept(bytes, start, at)
            if found.count > longest.count, Self.isStored(found) { longest = found }
            at += 1
        }
        guard longest.count >= 2 else { return nil }
        run = TextSearch(Array(longest))
        wanted = TextSearch(bytes)
    }

    /// `text`: the block's text leaves. `formats`: all of the block.
    func isMissing(in text: Slice, _ formats: [BlockDictionaries.Format]) -> Bool {
        if run.isIn(text.bytes) { return false }
        return formats.allSatisfy { format in
            if case .never = wanted.odds(
                of: format.format, style: format.style, types: format.types)
            {
                return true
            }
            return Self.keepsRunsApart(format)
        }
    }

    /// The run bytes[start ..< end] without what may be the rest of an escape that only the shown
    /// text has (`\n`, `\x1b`, `\u2028`), or the letter of one at which lines are split.
    private static func kept(_ bytes: [UInt8], _ start: Int, _ end: Int) -> ArraySlice<UInt8> {
        let run = bytes[start..<end]
        let before = start > 0 ? bytes[start - 1] : 0x5C
        guard before == 0x5C || ASCII.isDigit(before), let first = run.first else { return run }
        if before == 0x5C, "nrt".utf8.contains(first) { return run.dropFirst() }
        let rest = run.dropFirst(before == 0x5C && "xu".utf8.contains(first) ? 1 : 0)
        return rest.dropFirst(rest.prefix(4).prefix { isOfHex($0) }.count)
    }

    private static func isLetter(_ byte: UInt8) -> Bool {
        ASCII.isUpper(byte) || ASCII.isLower(byte)
    }

    private static func isOfHex(_ byte: UInt8) -> Bool { (0x61...0x66).contains(byte | 0x20) }

    /// False: a number, a bool, a month or a key that is not stored may show it.
    private static func isStored(_ run: ArraySlice<UInt8>) -> Bool {
        guard run.contains(where: { !isOfHex($0) && $0 | 0x20 != 0x78 }) else { return false }
        let lower = run.map { $0 | 0x20 }
        return !words.contains { word in
            word.withUTF8Buffer { TextSearch.has(UnsafeRawBufferPointer($0), lower) }
        }
    }

    private static let words: [StaticString] = [
        "jan feb mar apr may jun jul aug sep oct nov dec", "true false", "snan infinity",
        "null nil", "exception type message stacktrace",
    ]

    /// True: no run of letters in the format's output belongs only partly to one argument.
    private static func keepsRunsApart(_ format: BlockDictionaries.Format) -> Bool {
        let text = format.format
        let types = format.types
        for index in 0..<types.count {
            switch Bytes.u8(types, index) {
            // The system's words; text that is stored in another form.
            case ArgumentType.error, ArgumentType.wide: return false
            default: break
            }
        }
        // Whether a letter, or something that may print one, precedes the next piece.
        var isAfterLetter = false
        var isAfterArgument = false
        func takes(_ start: Int, _ end: Int) -> Bool {
            let isFirst = Self.isLetter(Bytes.u8(text, start))
            if isAfterArgument, isFirst { return false }
            isAfterLetter = Self.isLetter(Bytes.u8(text, end - 1))
            isAfterArgument = false
            return true
        }
        func takesArgument(isNumber: Bool) -> Bool {
            if isNumber {
                isAfterLetter = false
                isAfterArgument = false
                return true
            }
            if isAfterLetter || isAfterArgument { return false }
            isAfterArgument = true
            return true
        }
        switch format.style {
        case SiteLayout.styleText: return true
        case SiteLayout.styleBraces, SiteLayout.styleSwift:
            var pieces = BraceFormat(text)
            while true {
                switch pieces.piece() {
                case .end: return true
                case .invalid: return false
                case .literal(let start, let end): if !takes(start, end) { return false }
                case .field(let field):
                    // A fill character may be a letter.
                    guard field.fillStart == field.fillEnd,
                        takesArgument(
                            isNumber: isInteger(Bytes.u8(types, field.argument))
                                && (field.type == 0 || field.type == 0x64))
                    else { return false }
                }
            }
        default:
            var pieces = PrintfFormat(text)
            while true {
                switch pieces.piece() {
                case .end: return true
                case .invalid: return false
                case .literal(let start, let end): if !takes(start, end) { return false }
                case .directive(let directive):
                    guard
                        takesArgument(
                            isNumber: isInteger(directive.type)
                                && "diu".utf8.contains(directive.conversion))
                    else { return false }
                }
            }
        }
    }

    private static func isInteger(_ type: UInt8) -> Bool {
        type == ArgumentType.int || type == ArgumentType.long || type == ArgumentType.uint
            || type == ArgumentType.ulong
    }
}
