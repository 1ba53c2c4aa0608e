// Finds secrets by their look: tokens of known makers (tokens.c), JSON Web Tokens, credentials
// after "Bearer" and "Basic", and private keys in PEM. Linear. A secret that was cut off is
// replaced up to the end of the text.
// SAFETY: C reads within the text, which holds as long as the value.

import CShims
import CordwoodFormats

extension TextScan {
    /// A mark that may belong to a token. Returns the index to continue at.
    func token(_ at: Int, _ edits: inout Edits) -> Int {
        switch text[at] | 0x20 {
        case UInt8(ascii: "y") where text.hasExactly("yJ", at: at): return webToken(at, &edits)
        case UInt8(ascii: "b"):
            if text.has("bearer", at: at) { return bearer(at, &edits) }
            if text.has("basic", at: at) { return basic(at, &edits) }
        case UInt8(ascii: "e") where text.hasExactly("PRIVATE KEY", at: at &- 6):
            return privateKey(at &- 6, &edits)
        default: break
        }
        guard let start = unsafe text.start else { return at &+ 1 }
        var from = 0
        let end = unsafe Int(cwi_token_end(start, at, text.count, openTokenBytes, &from))
        guard end > at else { return at &+ 1 }
        add(from, end, &edits)
        return end
    }

    /// "yJ": part of "eyJ", the start of every JSON Web Token.
    private func webToken(_ at: Int, _ edits: inout Edits) -> Int {
        guard at > 0, text[at &- 1] == UInt8(ascii: "e") else { return at &+ 1 }
        var end = at &+ 2
        var dots = 0
        while end < text.count {
            let byte = text[end]
            if byte == UInt8(ascii: ".") {
                dots &+= 1
            } else if !TextScan.isTokenByte(byte) {
                break
            }
            end &+= 1
        }
        let isOpen = isCut && end == text.count
        guard dots >= 2 && end &- at >= 12 || isOpen else { return end }
        add(at &- 1, end, &edits)
        return end
    }

    @inline(__always)
    private static func isTokenByte(_ byte: UInt8) -> Bool {
        ASCII.isUpper(byte) || ASCII.isLower(byte) || ASCII.isDigit(byte)
            || byte == UInt8(ascii: "-") || byte == UInt8(ascii: "_")
    }

    /// The index after the blanks there, in any coding; nil: none.
    private func blanks(_ at: Int) -> Int? {
        if text[at] == UInt8(ascii: "+") { return at &+ 1 }
        if text.has("%20", at: at) { return at &+ 3 }
        let end = text.skipSpaces(at)
        return end > at ? end : nil
    }

    /// "Bearer xyz": replaces everything after it that may be a token.
    private func bearer(_ at: Int, _ edits: inout Edits) -> Int {
        let word = at &+ 6
        guard let from = blanks(text[word] == UInt8(ascii: ":") ? word &+ 1 : word) else {
            return word
        }
        var end = from
        let quote = text[from] == 0x22 || text[from] == 0x27 ? 1 : 0
        end &+= quote
        while end < text.count, !TextScan.endsBearer(text[end]) { end &+= 1 }
        // A challenge, which has parameters: Bearer realm="…".
        for name in ["realm=", "scope=", "error", "charset=", "resource_"] as [StaticString]
        where text.has(name, at: from) {
            return from
        }
        add(from &+ quote, end, &edits)
        return max(from, end)
    }

    private static func endsBearer(_ byte: UInt8) -> Bool {
        switch byte {
        case 0...0x20, UInt8(ascii: "\""), UInt8(ascii: "'"), UInt8(ascii: ","),
            UInt8(ascii: "<"), UInt8(ascii: "&"), UInt8(ascii: "\\"):
            return true
        default: return false
        }
    }

    private static let basicLookedAt = 1_024

    /// "Basic dXNlcjpwYXNz": replaces the credentials if they decode to text with a colon, or were
    /// cut.
    private func basic(_ at: Int, _ edits: inout Edits) -> Int {
        guard let from = blanks(at &+ 5) else { return at &+ 5 }
        var end = from
        while TextScan.value(text[end]) < 64 { end &+= 1 }
        let isOpen = isCut && end == text.count && end > from
        guard isOpen || hasColon(from, end) else { return max(from, end) }
        while text[end] == UInt8(ascii: "=") { end &+= 1 }
        add(from, end, &edits)
        return end
    }

    /// Whether base64 decodes to text, as far as it is read, with a colon in it.
    private func hasColon(_ from: Int, _ end: Int) -> Bool {
        guard end &- from >= 4, (end &- from) & 3 != 1 else { return false }
        var bits: UInt32 = 0
        var count = 0
        var hasColon = false
        for at in from..<min(end, from &+ TextScan.basicLookedAt) {
            bits = bits << 6 | UInt32(TextScan.value(text[at]))
            count &+= 6
            guard count >= 8 else { continue }
            count &-= 8
            let byte = UInt8(truncatingIfNeeded: bits >> UInt32(count))
            if byte < 0x20 || byte == 0x7F { return false }
            if byte == UInt8(ascii: ":") { hasColon = true }
        }
        return hasColon
    }

    /// 255 for bytes outside the base64 alphabet.
    private static func value(_ byte: UInt8) -> UInt8 {
        if ASCII.isUpper(byte) { return byte &- 0x41 }
        if ASCII.isLower(byte) { return byte &- 0x61 &+ 26 }
        if ASCII.isDigit(byte) { return byte &- 0x30 &+ 52 }
        switch byte {
        case UInt8(ascii: "+"), UInt8(ascii: "-"): return 62
        case UInt8(ascii: "/"), UInt8(ascii: "_"): return 63
        default: return 255
        }
    }

    /// "PRIVATE KEY" in an opening PEM line: replaces the key up to the closing line.
    private func privateKey(_ at: Int, _ edits: inout Edits) -> Int {
        let mark = text.find("-----", from: at)
        guard mark &- at <= 17, isMarked(at) else { return at &+ 11 }
        let from = mark &+ 5
        let end = text.find("-----", from: from)
        add(from, end, &edits)
        return max(from, end)
    }

    private static let markBytesMax = 64

    /// The mark before it in the same line is "-----BEGIN".
    private func isMarked(_ index: Int) -> Bool {
        var at = index &- 5
        let least = max(0, index &- TextScan.markBytesMax)
        while at >= least, text[at] != 0x0A {
            if text.has("-----", at: at) { return text.has("-----begin", at: at) }
            at &-= 1
        }
        return false
    }
}
