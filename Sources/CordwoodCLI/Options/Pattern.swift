// A pattern of grep, matched against the bytes of a message: a fixed string, or an extended regular
// expression of the C library in the C locale, which takes any bytes, including NUL.
// SAFETY: found places lie within the text, whose count bounds every search.

import Glibc

enum Pattern: ~Copyable {
    case fixed(needle: [UInt8], ignoresCase: Bool)
    case expression(CompiledExpression)

    init(_ text: String, isFixed: Bool, ignoresCase: Bool) throws(Failure) {
        let bytes = Array(text.utf8)
        let plain = !bytes.contains { Pattern.special.contains($0) }
        if isFixed || plain {
            self = .fixed(
                needle: ignoresCase ? bytes.map(Pattern.lower) : bytes, ignoresCase: ignoresCase)
        } else {
            self = .expression(try CompiledExpression(text, ignoresCase: ignoresCase))
        }
    }

    private static let special = Set(".[]()*+?{}|^$\\".utf8)

    @safe borrowing func matches(_ text: UnsafeRawBufferPointer) -> Bool {
        switch self {
        case .fixed(let needle, let ignoresCase):
            ignoresCase ? Pattern.findFolded(needle, text) : Pattern.find(needle, text)
        case .expression(let expression): expression.matches(text)
        }
    }

    @safe private static func find(_ needle: [UInt8], _ text: UnsafeRawBufferPointer) -> Bool {
        guard let first = needle.first else { return true }
        guard let base = text.baseAddress else { return false }
        var from = 0
        while text.count - from >= needle.count {
            let room = text.count - needle.count + 1 - from
            guard let found = unsafe memchr(base + from, Int32(first), room) else { return false }
            if unsafe memcmp(found, needle, needle.count) == 0 { return true }
            from = unsafe UnsafeRawPointer(found) - base + 1
        }
        return false
    }

    /// Folds only ASCII letters. Searches the first byte in both cases and compares the rest.
    @safe private static func findFolded(_ needle: [UInt8], _ text: UnsafeRawBufferPointer) -> Bool
    {
        guard let first = needle.first else { return true }
        guard text.count >= needle.count else { return false }
        for at in 0...(text.count - needle.count) where unsafe lower(text[at]) == first {
            var index = 1
            while index < needle.count, unsafe lower(text[at &+ index]) == needle[index] {
                index &+= 1
            }
            if index == needle.count { return true }
        }
        return false
    }

    @inline(__always)
    private static func lower(_ byte: UInt8) -> UInt8 {
        byte &- 0x41 < 26 ? byte | 0x20 : byte
    }
}

@safe struct CompiledExpression: ~Copyable {
    // SAFETY: freed in deinit; regexec does not change it.
    private let compiled: UnsafeMutablePointer<regex_t>

    init(_ text: String, ignoresCase: Bool) throws(Failure) {
        unsafe compiled = try CompiledExpression.compile(text, ignoresCase)
    }

    private static func compile(
        _ text: String, _ ignoresCase: Bool
    ) throws(Failure) -> UnsafeMutablePointer<regex_t> {
        guard !text.utf8.contains(0) else { throw Failure(.usage, "a pattern has no NUL; use -F") }
        if let (escape, instead) = unknownEscape(text) {
            throw Failure(
                .usage,
                "pattern: \\\(escape) is not known in extended regular expressions, and "
                    + "would match the letter \(escape)\(instead)")
        }
        let compiled = UnsafeMutablePointer<regex_t>.allocate(capacity: 1)
        let status = unsafe regcomp(compiled, text, REG_EXTENDED | (ignoresCase ? REG_ICASE : 0))
        guard status == 0 else {
            var buffer = [CChar](repeating: 0, count: 256)
            unsafe regerror(status, compiled, &buffer, buffer.count)
            unsafe compiled.deallocate()
            let reason = unsafe buffer.withUnsafeBufferPointer {
                unsafe String(cString: $0.baseAddress!)
            }
            throw Failure(.usage, "pattern: \(reason)")
        }
        return unsafe compiled
    }

    /// An escape from Perl or others: the C library takes it for the letter itself.
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

    deinit {
        unsafe regfree(compiled)
        unsafe compiled.deallocate()
    }

    @safe borrowing func matches(_ text: UnsafeRawBufferPointer) -> Bool {
        guard text.count <= Int(Int32.max) else { return false }
        var range = regmatch_t(rm_so: 0, rm_eo: regoff_t(text.count))
        // With REG_STARTEND the text needs no NUL at its end, but it needs an address.
        guard let base = text.baseAddress else {
            return unsafe regexec(compiled, "", 1, &range, REG_STARTEND) == 0
        }
        let characters = unsafe base.assumingMemoryBound(to: CChar.self)
        return unsafe regexec(compiled, characters, 1, &range, REG_STARTEND) == 0
    }
}
