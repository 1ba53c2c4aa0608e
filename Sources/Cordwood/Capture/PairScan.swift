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
        switch text[at] {
        case UInt8(ascii: "\""), UInt8(ascii: "}"), UInt8(ascii: "]"): return true
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"):
            // "[2026-11-22 10:00:01] …" is a line of a log.
            while TextScan.isNumberByte(text[at]) { at &+= 1 }
            at = text.skipBlank(at)
            return at >= text.count || text[at] == UInt8(ascii: ",")
                || text[at] == UInt8(ascii: "]")
        default:
            return at >= text.count || text.has("true", at: at) || text.has("false", at: at)
                || text.has("null", at: at)
        }
    }

    private static func isNumberByte(_ byte: UInt8) -> Bool {
        ASCII.isDigit(byte) || byte == UInt8(ascii: "-") || byte == UInt8(ascii: "+")
            || byte == UInt8(ascii: ".") || byte | 0x20 == UInt8(ascii: "e")
    }

    /// - Parameter quotedOnly: those whose name or value stands in single quotes.
    func pairs(_ edits: inout Edits, quotedOnly: Bool = false) {
        var at = text.next(UInt8(ascii: ":"), from: 0)
        while at < text.count {
            let next = pair(at, quotedOnly, &edits)
            at = text.next(UInt8(ascii: ":"), from: max(next, at &+ 1))
        }
    }

    private static let pairNameMax = 128

    /// Returns where to go on.
    private func pair(_ at: Int, _ quotedOnly: Bool, _ edits: inout Edits) -> Int {
        let least = max(0, at &- TextScan.pairNameMax)
        var end = at
        while end > least, text[end &- 1] == 0x20 || text[end &- 1] == 0x09 { end &-= 1 }
        let isQuoted = end > least && text[end &- 1] == UInt8(ascii: "'")
        guard isQuoted || !quotedOnly || text[text.skipSpaces(at &+ 1)] == 0x27 else {
            return at &+ 1
        }
        if isQuoted { end &-= 1 }
        var start = end
        while start > least, TextScan.isPairByte(text[start &- 1]) { start &-= 1 }
        guard start < end, unsafe rules.members.contains(text.slice(start, end)),
            isPairName(start, end)
        else {
            return at &+ 1
        }
        if isQuoted {
            guard text[start &- 1] == UInt8(ascii: "'") else { return at &+ 1 }
            start &-= 1
        }
        var from = text.skipSpaces(at &+ 1)
        // b'…', as Python shows bytes.
        if text[from] | 0x20 == UInt8(ascii: "b"),
            text[from &+ 1] == 0x27 || text[from &+ 1] == 0x22
        {
            from &+= 1
        }
        if let (inside, to) = quoted(from) {
            add(inside, to, &edits)
            return to
        }
        let column = isQuoted ? nil : column(start)
        if let column, text[from] == 0x0A || text[from] == 0x0D || isBlock(from) {
            return block(from, column, &edits)
        }
        // Without a blank: "X-Api-Key:abc" at a line's begin.
        guard isQuoted || from > at &+ 1 || column == 0 && text[from] != UInt8(ascii: ":"),
            let isLine = beginsPair(start)
        else { return at &+ 1 }
        // -H 'X-Api-Key: abc'
        let isWithin = !isQuoted && start > 0 && text[start &- 1] == UInt8(ascii: "'")
        var to = from
        scan: while to < text.count {
            switch text[to] {
            case 0x0A, 0x0D, UInt8(ascii: "<"): break scan
            case UInt8(ascii: "\""), UInt8(ascii: "\\"): if column == nil { break scan }
            case UInt8(ascii: "'"): if isWithin { break scan }
            case UInt8(ascii: ","), UInt8(ascii: "}"), UInt8(ascii: ")"), UInt8(ascii: ";"):
                if !isLine { break scan }
            default: break
            }
            to &+= 1
        }
        if let column, text[to] == 0x0A || text[to] == 0x0D { to = blockEnd(to, column: column) }
        add(from, to, &edits)
        return to
    }

    /// A secret's, or that of a header which is one.
    private func isPairName(_ start: Int, _ end: Int) -> Bool {
        let name = text.slice(start, end)
        return unsafe names.contains(name) || !rules.values.table.contains(name)
    }

    /// A value below its name: all of it but for what says how it is read.
    private func block(_ from: Int, _ column: Int, _ edits: inout Edits) -> Int {
        var end = from
        while end < text.count, text[end] != 0x0A, text[end] != 0x0D { end &+= 1 }
        let to = blockEnd(end, column: column)
        guard to > end else { return end }
        var first = text.skipBlank(end)
        if first > to { first = end }
        add(first, to, &edits)
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
