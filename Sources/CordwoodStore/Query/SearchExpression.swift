// An extended regular expression of the C library in the C locale, whatever the host's locale. It
// matches any bytes, including NUL. Immutable after init: any thread.
// SAFETY: the compiled form is freed in deinit, regexec does not change it, and matches lie within
// the text, whose count bounds every search.

import CordwoodFormats
import Glibc

/// Why a text is not an expression.
package struct ExpressionError: Error {
    package var text: String
}

@safe package final class SearchExpression: @unchecked Sendable, Equatable {
    package let source: String
    package let ignoresCase: Bool
    private let compiled: UnsafeMutablePointer<regex_t>

    package init(_ source: String, ignoresCase: Bool) throws(ExpressionError) {
        self.source = source
        self.ignoresCase = ignoresCase
        unsafe compiled = try SearchExpression.compile(source, ignoresCase)
    }

    deinit {
        unsafe regfree(compiled)
        unsafe compiled.deallocate()
    }

    package static func == (a: SearchExpression, b: SearchExpression) -> Bool {
        a.source == b.source && a.ignoresCase == b.ignoresCase
    }

    private static func compile(
        _ text: String, _ ignoresCase: Bool
    ) throws(ExpressionError) -> UnsafeMutablePointer<regex_t> {
        guard !text.utf8.contains(0) else { throw ExpressionError(text: "a pattern has no NUL") }
        guard size(Array(text.utf8)) <= sizeMax else {
            throw ExpressionError(text: "it repeats too much: more than \(sizeMax) parts")
        }
        if let (escape, instead) = unknownEscape(text) {
            throw ExpressionError(
                text: "\\\(escape) is not known in extended regular expressions, and would match "
                    + "the letter \(escape)\(instead)")
        }
        let compiled = UnsafeMutablePointer<regex_t>.allocate(capacity: 1)
        let status = inLocaleC {
            unsafe regcomp(compiled, text, REG_EXTENDED | (ignoresCase ? REG_ICASE : 0))
        }
        guard status == 0 else {
            var buffer = [CChar](repeating: 0, count: 256)
            unsafe regerror(status, compiled, &buffer, buffer.count)
            unsafe compiled.deallocate()
            let reason = unsafe buffer.withUnsafeBufferPointer {
                unsafe String(cString: $0.baseAddress!)
            }
            throw ExpressionError(text: reason)
        }
        return unsafe compiled
    }

    /// Limit on the parts into which the C library expands an expression: it writes out
    /// repetitions, and each part costs some hundred bytes.
    private static let sizeMax = 40_000

    /// Counts one part per byte; those before `{…}` as often as that says.
    private static func size(_ text: [UInt8]) -> Int {
        var groups = [0]
        var last = 0
        var at = 0
        func add(_ size: Int) {
            last = size
            groups[groups.count - 1] = min(groups[groups.count - 1] + size, sizeMax + 1)
        }
        while at < text.count {
            let byte = text[at]
            at += 1
            switch byte {
            case UInt8(ascii: "\\"):
                at += 1
                add(1)
            case UInt8(ascii: "["):
                let isInverted = at < text.count && text[at] == UInt8(ascii: "^")
                // The first character of a set may be its end.
                at += isInverted ? 2 : 1
                while at < text.count, text[at] != UInt8(ascii: "]") { at += 1 }
                at += 1
                add(1)
            case UInt8(ascii: "("): groups.append(0)
            case UInt8(ascii: ")") where groups.count > 1: add(groups.removeLast() + 1)
            case UInt8(ascii: "{"):
                let counts = text[at...].prefix { $0 != UInt8(ascii: "}") }
                    .split(separator: UInt8(ascii: ","))
                let most: Int = counts.compactMap { Digits.number($0) }.max() ?? 0
                if most > 1 { add(min(last, sizeMax) * (min(most, sizeMax) - 1)) }
            default: add(1)
            }
        }
        return groups.reduce(0, +)
    }

    /// `\1`: matching back references may take forever, whatever the text.
    package static func hasBackReference(_ text: String) -> Bool {
        var isEscaped = false
        for byte in text.utf8 {
            if isEscaped, byte >= 0x31, byte <= 0x39 { return true }
            isEscaped = !isEscaped && byte == UInt8(ascii: "\\")
        }
        return false
    }

    /// A compiled expression keeps the locale it was compiled in. Without memory for the C locale,
    /// the host's must do.
    private static func inLocaleC(_ body: () -> Int32) -> Int32 {
        guard let locale = unsafe newlocale(1 << LC_CTYPE | 1 << LC_COLLATE, "C", nil) else {
            return body()
        }
        let before = unsafe uselocale(locale)
        defer {
            unsafe uselocale(before)
            unsafe freelocale(locale)
        }
        return body()
    }

    /// An escape from Perl or others, which the C library takes for the letter itself.
    private static func unknownEscape(_ text: String) -> (Character, instead: String)? {
        var isEscaped = false
        for letter in text {
            defer { isEscaped = !isEscaped && letter == "\\" }
            guard isEscaped, letter.isLetter, !"wWsSbB".contains(letter) else { continue }
            switch letter {
            case "d": return (letter, "; use [0-9]")
            case "D": return (letter, "; use [^0-9]")
            case "t": return (letter, "; put in the tab itself")
            default: return (letter, "")
            }
        }
        return nil
    }

    /// The first match from `start` on.
    @safe package func find(_ text: UnsafeRawBufferPointer, from start: Int) -> Range<Int>? {
        guard text.count <= Int(Int32.max) else { return nil }
        var range = regmatch_t(rm_so: regoff_t(start), rm_eo: regoff_t(text.count))
        let flags = REG_STARTEND | (start > 0 ? REG_NOTBOL : 0)
        // With REG_STARTEND the text needs no NUL at its end, but it needs an address.
        guard let base = text.baseAddress else {
            return unsafe regexec(compiled, "", 1, &range, flags) == 0 ? 0..<0 : nil
        }
        let characters = unsafe base.assumingMemoryBound(to: CChar.self)
        guard unsafe regexec(compiled, characters, 1, &range, flags) == 0 else { return nil }
        return Int(range.rm_so)..<Int(range.rm_eo)
    }
}
