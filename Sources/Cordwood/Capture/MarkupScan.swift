// Finds secrets where a text's form says whose a value is: the parts of multipart/form-data, and
// elements of markup. One look over the text each; what was cut is replaced to the end.

extension TextScan {
    /// - Parameter boundary: as the content type has it; empty: the text's first line.
    func parts(boundary: ByteText, _ edits: inout Edits) {
        var mark = boundary
        if mark.count == 0 {
            let end = text.next(0x0A, from: 0)
            mark = text.slice(2, text[end &- 1] == 0x0D ? end &- 1 : end)
        }
        guard mark.count > 0 else { return }
        var at = partMark(mark, from: 0)
        while at < text.count {
            let head = min(at &+ 2 &+ mark.count, text.count)
            let (body, isSecret) = partHead(head)
            let next = partMark(mark, from: isSecret ? body : head)
            if isSecret {
                // Without the line's end, which belongs to the mark.
                var end = next
                if next < text.count {
                    if end > body, text[end &- 1] == 0x0A { end &-= 1 }
                    if end > body, text[end &- 1] == 0x0D { end &-= 1 }
                }
                add(body, end, &edits)
            }
            at = max(next, at &+ 1)
        }
    }

    /// The "--" before the next mark; count: none.
    private func partMark(_ mark: ByteText, from index: Int) -> Int {
        var at = text.find(mark, from: index)
        while at < text.count {
            if at >= 2, text[at &- 1] == 0x2D, text[at &- 2] == 0x2D { return at &- 2 }
            at = text.find(mark, from: at &+ mark.count)
        }
        return text.count
    }

    /// Where the body of a part begins whose head begins there, and whether its name is a secret's.
    private func partHead(_ start: Int) -> (body: Int, isSecret: Bool) {
        var at = text.next(0x0A, from: start) &+ 1
        var isSecret = false
        while at < text.count {
            let end = text.next(0x0A, from: at)
            let line = text.slice(at, end).trimmed
            at = end &+ 1
            if line.count == 0 { break }
            if line.has("content-disposition:", at: 0) { isSecret = isSecret || hasName(line) }
        }
        return (min(at, text.count), isSecret)
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

    /// `<password>…</password>`, with or without prefix and attributes.
    func markup(_ edits: inout Edits) {
        var at = text.next(UInt8(ascii: "<"), from: 0)
        while at < text.count {
            var end = at &+ 1
            while TextScan.isTagByte(text[end]) { end &+= 1 }
            let tag = text.slice(at &+ 1, end)
            var colon = tag.next(UInt8(ascii: ":"), from: 0)
            if colon == tag.count { colon = -1 }
            guard tag.count > 0, names.contains(tag.slice(colon &+ 1, tag.count)) else {
                at = text.next(UInt8(ascii: "<"), from: end)
                continue
            }
            let close = text.next(UInt8(ascii: ">"), from: end)
            if text[close &- 1] == UInt8(ascii: "/") {
                at = text.next(UInt8(ascii: "<"), from: close)
                continue
            }
            let stop = tagEnd(tag, from: close)
            add(close &+ 1, stop, &edits)
            at = text.next(UInt8(ascii: "<"), from: max(stop, at) &+ 1)
        }
    }

    private static func isTagByte(_ byte: UInt8) -> Bool {
        ASCII.isNameByte(byte) || byte == UInt8(ascii: ":") || byte == UInt8(ascii: "-")
            || byte == UInt8(ascii: "_") || byte == UInt8(ascii: ".")
    }

    /// The "</" of that tag; count: it was cut.
    private func tagEnd(_ tag: ByteText, from index: Int) -> Int {
        var at = text.find(tag, from: index)
        while at < text.count {
            if text[at &- 1] == UInt8(ascii: "/"), text[at &- 2] == UInt8(ascii: "<") {
                return at &- 2
            }
            at = text.find(tag, from: at &+ tag.count)
        }
        return text.count
    }
}
