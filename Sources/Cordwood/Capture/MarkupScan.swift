// Finds secrets where a text's form says whose a value is: the parts of multipart bodies, and
// elements of markup. Linear: each line of a part's head is looked at once, and what a search for
// an end has passed is not searched again; what was cut is replaced to the end.

extension TextScan {
    /// Whatever boundary the content type has: a part is a Content-Disposition, and goes on to the
    /// next line that begins as the one did that stands before its head.
    func parts(_ edits: inout Edits) {
        var at = 0
        var mark = ByteText.empty
        while at < text.count {
            let end = text.next(0x0A, from: at)
            if text[at] == 0x2D, text[at &+ 1] == 0x2D {
                mark = text.slice(at, end).trimmed
            } else if text.slice(text.skipSpaces(at), end).has("content-disposition:", at: 0) {
                at = part(at, mark, &edits)
                continue
            }
            at = end &+ 1
        }
    }

    /// A part whose Content-Disposition begins there. Returns where to go on.
    private func part(_ start: Int, _ mark: ByteText, _ edits: inout Edits) -> Int {
        var at = text.next(0x0A, from: start) &+ 1
        while isFolded(at) { at = text.next(0x0A, from: at) &+ 1 }
        guard hasName(text.slice(start, at)) else { return at }
        let body = headEnd(at)
        let next = partEnd(body, mark)
        // Without the line's end, which belongs to the mark.
        var end = next
        if next < text.count {
            if end > body, text[end &- 1] == 0x0A { end &-= 1 }
            if end > body, text[end &- 1] == 0x0D { end &-= 1 }
        }
        add(body, end, &edits)
        return max(next, at)
    }

    /// A line that continues the one before.
    private func isFolded(_ at: Int) -> Bool {
        guard text[at] == 0x20 || text[at] == 0x09 else { return false }
        return text.skipBlank(at) < text.next(0x0A, from: at)
    }

    private static let headLinesMax = 64
    private static let headBytesMax = 16 << 10

    /// Behind the empty line that ends a head; where there is none, at what is no header of a
    /// part's: it may be the value.
    private func headEnd(_ start: Int) -> Int {
        var at = start
        for _ in 0..<TextScan.headLinesMax {
            guard at < text.count, at &- start < TextScan.headBytesMax else { break }
            let end = text.next(0x0A, from: at)
            let line = text.slice(at, end)
            if line.trimmed.count == 0 { return min(end &+ 1, text.count) }
            guard line.has("content-", at: 0) || line.has("x-", at: 0) || isFolded(at) else {
                break
            }
            at = end &+ 1
        }
        return min(at, text.count)
    }

    /// Where the line begins that ends a part; count: it was cut.
    private func partEnd(_ start: Int, _ mark: ByteText) -> Int {
        let any: StaticString = "--"
        let isKnown = mark.count > 2
        let mark = unsafe isKnown ? mark : ByteText(any.utf8Start, 2)
        var at = text.find(mark, from: start)
        while at < text.count {
            if at == start || text[at &- 1] == 0x0A {
                let end = at &+ mark.count
                let rest = text.skipSpaces(end)
                if !isKnown || text.has("--", at: end) || text[rest] == 0x0D || text[rest] == 0x0A
                    || rest == text.count
                {
                    return at
                }
            }
            at = text.find(mark, from: at &+ mark.count)
        }
        return text.count
    }

    /// `name="…"`, `name=…` or `name*=…''…` of a Content-Disposition.
    private func hasName(_ line: ByteText) -> Bool {
        var at = line.next(UInt8(ascii: ";"), from: 0)
        while at < line.count {
            at = line.skipBlank(at &+ 1)
            if line.has("name", at: at), let name = parameter(line, at &+ 4) {
                let decoded = PercentCoding.decode(name.array)
                let found = unsafe decoded.withUnsafeBufferPointer {
                    unsafe names.contains(ByteText($0.baseAddress, $0.count))
                }
                if found { return true }
            }
            at = line.next(UInt8(ascii: ";"), from: at)
        }
        return false
    }

    private func parameter(_ line: ByteText, _ index: Int) -> ByteText? {
        var at = line[index] == UInt8(ascii: "*") ? index &+ 1 : index
        at = line.skipBlank(at)
        guard line[at] == UInt8(ascii: "=") else { return nil }
        at = line.skipBlank(at &+ 1)
        if line[at] == UInt8(ascii: "\"") {
            return line.slice(at &+ 1, line.next(UInt8(ascii: "\""), from: at &+ 1))
        }
        return line.slice(at, line.next(UInt8(ascii: ";"), from: at)).trimmed
    }

    /// How elements of markup end in a text.
    enum MarkupForm {
        /// At their end tag.
        case markup
        /// At the next end tag, where there is one.
        case loose
        /// Likewise, and no later than at the end of a JSON string.
        case strings
    }

    /// `<password>…</password>`, with or without prefix and attributes.
    func markup(_ edits: inout Edits, _ form: MarkupForm) {
        var at = text.next(UInt8(ascii: "<"), from: 0)
        // So far there is no end tag.
        var bare = 0
        while at < text.count {
            var end = at &+ 1
            while TextScan.isTagByte(text[end]) { end &+= 1 }
            let tag = text.slice(at &+ 1, end)
            let colon = tag.next(UInt8(ascii: ":"), from: 0)
            let name = colon < tag.count ? tag.slice(colon &+ 1, tag.count) : tag
            guard name.count > 0, names.contains(name) else {
                at = text.next(UInt8(ascii: "<"), from: element(name, end, &edits))
                continue
            }
            let close = text.next(UInt8(ascii: ">"), from: end)
            if text[close &- 1] == UInt8(ascii: "/") || close < bare {
                at = text.next(UInt8(ascii: "<"), from: close)
                continue
            }
            var stop = text.count
            if form == .markup {
                stop = tagEnd(tag, from: close)
            } else {
                let (found, isTag) = looseEnd(close &+ 1, form)
                guard isTag || isCut && found == text.count else {
                    bare = found
                    at = text.next(UInt8(ascii: "<"), from: close)
                    continue
                }
                stop = found
            }
            add(close &+ 1, stop, &edits)
            at = text.next(UInt8(ascii: "<"), from: max(stop, at) &+ 1)
        }
    }

    /// The next "</", or what ends the search for it.
    private func looseEnd(_ start: Int, _ form: MarkupForm) -> (at: Int, isTag: Bool) {
        var at = start
        while at < text.count {
            switch text[at] {
            case UInt8(ascii: "<"): if text[at &+ 1] == UInt8(ascii: "/") { return (at, true) }
            case UInt8(ascii: "\\") where form == .strings: at &+= 1
            case UInt8(ascii: "\"") where form == .strings: return (at, false)
            default: break
            }
            at &+= 1
        }
        return (text.count, false)
    }

    static func isTagByte(_ byte: UInt8) -> Bool {
        ASCII.isNameByte(byte) || byte == UInt8(ascii: ":") || byte == UInt8(ascii: "-")
            || byte == UInt8(ascii: "_") || byte == UInt8(ascii: ".")
    }

    /// The "</" of that tag; count: it was cut.
    /// - Parameter tries: so often the tag's name may stand for something else.
    func tagEnd(_ tag: ByteText, from index: Int, tries: Int = .max) -> Int {
        var at = text.find(tag, from: index)
        var left = tries
        while at < text.count, left > 0 {
            let isEnd = text[at &- 1] == UInt8(ascii: "/") && text[at &- 2] == UInt8(ascii: "<")
            // "</tokenType>" ends no token.
            if isEnd, !TextScan.isTagByte(text[at &+ tag.count]) { return at &- 2 }
            at = text.find(tag, from: at &+ tag.count)
            left &-= 1
        }
        return text.count
    }
}
