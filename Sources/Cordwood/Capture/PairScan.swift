// Finds secrets in `name: value` of texts that are no JSON: headers in a text, YAML, what Python
// and JavaScript print, arguments of GraphQL. Between quotes the value goes to its quote; without
// them it is one only where the name begins something, so that a sentence with a colon in it
// ("invalid token: …") stays. Linear; one look at each colon.

extension TextScan {
    /// A document of JSON, or one of its lines: its names are in double quotes.
    var looksLikeJSON: Bool {
        var at = text.skipBlank(0)
        guard text[at] == UInt8(ascii: "{") || text[at] == UInt8(ascii: "[") else { return false }
        while text[at] == UInt8(ascii: "{") || text[at] == UInt8(ascii: "[") {
            at = text.skipBlank(at &+ 1)
        }
        return text[at] != UInt8(ascii: "'") && !TextScan.beginsWord(text[at])
            || text.has("true", at: at) || text.has("false", at: at) || text.has("null", at: at)
    }

    private static func beginsWord(_ byte: UInt8) -> Bool {
        ASCII.isLower(byte | 0x20) || byte == UInt8(ascii: "_") || byte == UInt8(ascii: "$")
    }

    func pairs(_ edits: inout Edits) {
        var at = text.next(UInt8(ascii: ":"), from: 0)
        while at < text.count {
            let next = pair(at, &edits)
            at = text.next(UInt8(ascii: ":"), from: max(next, at &+ 1))
        }
    }

    private static let pairNameMax = 128

    /// Returns where to go on.
    private func pair(_ at: Int, _ edits: inout Edits) -> Int {
        let least = max(0, at &- TextScan.pairNameMax)
        var end = at
        while end > least, text[end &- 1] == 0x20 || text[end &- 1] == 0x09 { end &-= 1 }
        let isQuoted = end > least && text[end &- 1] == UInt8(ascii: "'")
        if isQuoted { end &-= 1 }
        var start = end
        while start > least, TextScan.isPairByte(text[start &- 1]) { start &-= 1 }
        guard start < end, names.contains(text.slice(start, end)) else { return at &+ 1 }
        if isQuoted {
            guard text[start &- 1] == UInt8(ascii: "'") else { return at &+ 1 }
            start &-= 1
        }
        let from = text.skipSpaces(at &+ 1)
        if let (inside, to) = quoted(from) {
            add(inside, to, &edits)
            return to
        }
        guard isQuoted || from > at &+ 1, let isLine = beginsPair(start) else { return at &+ 1 }
        var to = from
        scan: while to < text.count {
            switch text[to] {
            case 0x0A, 0x0D, UInt8(ascii: "<"): break scan
            case UInt8(ascii: "\""), UInt8(ascii: "\\"): break scan
            case UInt8(ascii: ","), UInt8(ascii: "}"), UInt8(ascii: ")"), UInt8(ascii: ";"):
                if !isLine { break scan }
            default: break
            }
            to &+= 1
        }
        add(from, to, &edits)
        return to
    }

    private static func isPairByte(_ byte: UInt8) -> Bool {
        ASCII.isNameByte(byte) || byte == UInt8(ascii: "_") || byte == UInt8(ascii: "-")
            || byte == UInt8(ascii: ".") || byte == UInt8(ascii: "$")
    }

    /// Whether what stands before a name lets it begin a pair, and a line; nil: it is a sentence.
    private func beginsPair(_ start: Int) -> Bool? {
        var at = start
        let least = max(0, start &- TextScan.pairNameMax)
        while at > least, text[at &- 1] == 0x20 || text[at &- 1] == 0x09 { at &-= 1 }
        guard at > 0 else { return true }
        switch text[at &- 1] {
        case 0x0A, 0x0D: return true
        case UInt8(ascii: "-"), UInt8(ascii: ">"), UInt8(ascii: "<"): return true
        case UInt8(ascii: "{"), UInt8(ascii: "("), UInt8(ascii: "["), UInt8(ascii: ","),
            UInt8(ascii: ";"), UInt8(ascii: "|"), UInt8(ascii: "'"), UInt8(ascii: "\""):
            return false
        default: return nil
        }
    }
}
