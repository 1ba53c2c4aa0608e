// How far a value goes that stands in lines of its own: a block of YAML (`password: |`), a scalar,
// list or mapping below its name, a header's folded line. All lines count that are further in than
// the name, and items of a list at its column. Linear: what was taken is not looked at again.

extension TextScan {
    private static let columnMax = 128

    /// The column of a name that begins there; nil: something else than blanks, `-` and what a list
    /// of headers is marked with stands before it in its line.
    func column(_ start: Int) -> Int? {
        var at = start
        let least = max(0, start &- TextScan.columnMax)
        while at > least {
            switch text[at &- 1] {
            case 0x0A, 0x0D: return start &- at
            case 0x20, 0x09, UInt8(ascii: "-"): at &-= 1
            default: return nil
            }
        }
        return at == 0 ? start : nil
    }

    /// Where the lines end that belong to a value whose own line ends at `end`.
    func blockEnd(_ end: Int, column: Int) -> Int {
        var end = end
        var at = lineStart(end)
        while at < text.count {
            var from = text.skipSpaces(at)
            if text[from] == 0x0A || text[from] == 0x0D {
                // Empty: it counts where another one follows.
                from = lineStart(from)
                guard from > at else { break }
                at = from
                continue
            }
            let isItem =
                from &- at == column && text[from] == UInt8(ascii: "-")
                && (text[from &+ 1] == 0x20 || text[from &+ 1] == 0x0A)
            guard from < text.count, from &- at > column || isItem,
                text[from] != UInt8(ascii: "<")
            else { break }
            while from < text.count, text[from] != 0x0A, text[from] != 0x0D { from &+= 1 }
            end = from
            at = lineStart(from)
        }
        return end
    }

    /// Behind the end of a line that stands there.
    private func lineStart(_ end: Int) -> Int {
        text[end] == 0x0D && text[end &+ 1] == 0x0A ? end &+ 2 : min(end &+ 1, text.count)
    }

    /// `|`, `>`, with what says how it is read, or nothing: the value stands below.
    func isBlock(_ start: Int) -> Bool {
        var at = start
        if text[at] == UInt8(ascii: "|") || text[at] == UInt8(ascii: ">") { at &+= 1 }
        for _ in 0..<2
        where text[at] == UInt8(ascii: "-") || text[at] == UInt8(ascii: "+")
            || ASCII.isDigit(text[at])
        {
            at &+= 1
        }
        at = text.skipSpaces(at)
        return text[at] == 0x0A || text[at] == 0x0D
            || at > start && text[at] == UInt8(ascii: "#")
    }
}
