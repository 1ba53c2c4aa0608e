// multipart bodies, split by the boundary in their Content-Type. Each part has headers, and a body
// that is parsed by its own Content-Type; unparsable bodies are replaced.

import CordwoodFormats

extension TextScan {
    private static let boundaryBytesMax = 256

    /// Returns the end of the last complete part.
    func parts(_ type: ByteText, _ edits: inout Edits) -> Int {
        let boundary = type.parameter("boundary")
        guard boundary.count > 0, boundary.count <= TextScan.boundaryBytesMax,
            depth < TextScan.depthMax
        else { return 0 }
        var mark = delimiter(boundary, from: 0)
        // Clients ignore the text before the first part.
        if mark.from < text.count { add(0, mark.from, &edits) }
        var end = 0
        while mark.from < text.count {
            end = mark.to
            if mark.isLast { break }
            let next = delimiter(boundary, from: mark.to)
            guard next.from < text.count else { break }
            piece(mark.to, next.from).part(&edits)
            mark = next
        }
        return end
    }

    /// A line that separates parts: the end of the text before it, and its own end.
    private struct Delimiter {
        var from: Int
        var to: Int
        var isLast = false
    }

    /// If no further one exists, `from` is the end of the text.
    private func delimiter(_ boundary: ByteText, from start: Int) -> Delimiter {
        var at = start
        while at < text.count {
            let mark = text.find(boundary, from: at)
            guard mark < text.count else { break }
            at = mark &+ 1
            let line = mark &- 2
            let begins = line == 0 || line > 0 && text[line &- 1] == 0x0A
            guard begins, text[line] == 0x2D, text[line &+ 1] == 0x2D, line >= start else {
                continue
            }
            var end = mark &+ boundary.count
            let isLast = text[end] == 0x2D && text[end &+ 1] == 0x2D
            if isLast { end &+= 2 }
            end = text.skipSpaces(end)
            if text[end] == 0x0D { end &+= 1 }
            guard text[end] == 0x0A || isLast && end >= text.count else { continue }
            var before = line
            if before > start, text[before &- 1] == 0x0A { before &-= 1 }
            if before > start, text[before &- 1] == 0x0D { before &-= 1 }
            return Delimiter(from: before, to: min(end &+ 1, text.count), isLast: isLast)
        }
        return Delimiter(from: text.count, to: text.count)
    }

    /// One part: header lines, an empty line, a body.
    private func part(_ edits: inout Edits) {
        var head = PartHead()
        let body = headers(from: 0, &head, &edits)
        let content = piece(body, text.count)
        guard content.text.count > 0 else { return }
        // A name in another encoding than UTF-8 may belong to a secret.
        let isKnown = unsafe UTF8Scan.isValid(head.name.raw)
        if isSecret(head.name) || head.isEncoded || !isKnown { return content.replace(&edits) }
        if head.type.count == 0 && !head.isFile {
            return content.value(&edits)
        }
        content.message(head.type, isField: !head.isFile, &edits)
    }

    private func replace(_ edits: inout Edits) { add(0, text.count, &edits) }

    /// A body of its own, by its type.
    private func message(_ type: ByteText, isField: Bool, _ edits: inout Edits) {
        let media = type.media
        if media.equals("application/http") { return embedded(&edits) }
        if isField, media.equals("text/plain") { return value(&edits) }
        let end = understand(type, media, &edits)
        if end < text.count { add(end, text.count, &edits) }
    }

    /// A request or an answer within a part, as in OData's batches.
    private func embedded(_ edits: inout Edits) {
        var head = PartHead()
        let first = text.next(0x0A, from: 0)
        let body = headers(from: first &+ 1, &head, &edits)
        let content = piece(body, text.count)
        if content.text.count > 0 { content.message(head.type, isField: false, &edits) }
    }

    private struct PartHead {
        var name = ByteText.empty
        var type = ByteText.empty
        var isFile = false
        /// Base64 or the like.
        var isEncoded = false
    }

    /// Replaces the values of secret headers; returns the index after the empty line.
    private func headers(from start: Int, _ head: inout PartHead, _ edits: inout Edits) -> Int {
        var at = start
        while at < text.count {
            var end = text.next(0x0A, from: at)
            if end &- at <= 1, text[at] == 0x0D || end == at { return end &+ 1 }
            // A continued line.
            while text[end &+ 1] == 0x20 || text[end &+ 1] == 0x09 {
                end = text.next(0x0A, from: end &+ 1)
            }
            let colon = text.next(UInt8(ascii: ":"), from: at)
            // Not a header line: the part cannot be read.
            guard colon < end else {
                add(at, text.count, &edits)
                return text.count
            }
            header(text.slice(at, colon), colon &+ 1, end, &head, &edits)
            at = end &+ 1
        }
        return text.count
    }

    private func header(
        _ name: ByteText, _ from: Int, _ to: Int, _ head: inout PartHead, _ edits: inout Edits
    ) {
        let value = text.slice(from, to).trimmed
        if unsafe rules.headerNames.containsHeader(name) {
            return add(text.skipSpaces(from), to, &edits)
        }
        if name.equals("content-type") {
            head.type = value
        } else if name.equals("content-disposition") {
            head.name = value.parameter("name")
            head.isFile =
                value.parameter("filename").count > 0
                || value.parameter("filename*").count > 0
        } else if name.equals("content-transfer-encoding") {
            head.isEncoded = !["7bit", "8bit", "binary"].contains { value.equals($0) }
        }
    }
}

extension ByteText {
    /// The value of `; name=value` after a header's first word, without its quotes.
    func parameter(_ name: StaticString) -> ByteText {
        var at = next(UInt8(ascii: ";"), from: 0)
        while at < count {
            at = skipBlank(at &+ 1)
            let equals = next(UInt8(ascii: "="), from: at)
            let isWanted = slice(at, equals).trimmed.equals(name)
            at = skipBlank(equals &+ 1)
            let isQuoted = self[at] == UInt8(ascii: "\"")
            let from = isQuoted ? at &+ 1 : at
            let end = next(UInt8(ascii: isQuoted ? "\"" : ";"), from: from)
            if isWanted { return isQuoted ? slice(from, end) : slice(from, end).trimmed }
            at = next(UInt8(ascii: ";"), from: end)
        }
        return ByteText.empty
    }

    /// The media type, without parameters.
    var media: ByteText { slice(0, next(UInt8(ascii: ";"), from: 0)).trimmed }
}
