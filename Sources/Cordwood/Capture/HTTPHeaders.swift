// The headers of one message as lines `Name: value`, redacted as they are taken; what the body's
// reading needs of them, and the conversation id. At most `bytesMax` bytes are kept; further
// headers are passed over, and `isCut` says so.
// SAFETY: `headers` is the host's, of `count` entries, and holds during the call that hands it in;
// the caller has checked that each string has its bytes.

import CCordwood
import CShims

struct HTTPHeaders: ~Copyable {
    static let bytesMax = 64 << 10
    /// More than any server takes; the rest is not looked at.
    static let countMax = 100_000

    private var lines = ByteBuffer()
    private var contentType = 0..<0
    private var contentCoding = 0..<0
    private var contentLanguage = 0..<0
    private var conversation = 0..<0
    /// Some header is shorter than it was, or is not here.
    private(set) var isCut = false

    var text: ByteText { lines.text }
    var type: ByteText { lines.text(contentType.lowerBound, contentType.upperBound) }
    var coding: ByteText { lines.text(contentCoding.lowerBound, contentCoding.upperBound) }
    var language: ByteText { lines.text(contentLanguage.lowerBound, contentLanguage.upperBound) }
    var conversationID: ByteText { lines.text(conversation.lowerBound, conversation.upperBound) }

    mutating func clear(keeping bytesMax: Int) {
        lines.clear(keeping: bytesMax)
        contentType = 0..<0
        contentCoding = 0..<0
        contentLanguage = 0..<0
        conversation = 0..<0
        isCut = false
    }

    mutating func take(
        _ headers: UnsafePointer<cw_http_header>?, _ count: Int, _ redactor: Redactor,
        _ edits: inout Edits
    ) {
        guard let headers = unsafe headers else { return }
        if count > HTTPHeaders.countMax { isCut = true }
        for i in 0..<min(count, HTTPHeaders.countMax) {
            let header = unsafe headers[i]
            let room = HTTPHeaders.bytesMax &- lines.count
            guard room > 0 else {
                isCut = true
                return
            }
            unsafe take(
                ByteText(header.name), ByteText(header.value), room: room, redactor, &edits)
        }
        if lines.count > HTTPHeaders.bytesMax { isCut = true }
        lines.cut(to: HTTPHeaders.bytesMax)
    }

    private mutating func take(
        _ name: ByteText, _ whole: ByteText, room: Int, _ redactor: Redactor,
        _ edits: inout Edits
    ) {
        guard name.count > 0, name.count <= HTTPHeaders.nameBytesMax else {
            if name.count > 0 { isCut = true }
            return
        }
        if lines.count > 0 { lines.append(UInt8(ascii: "\n")) }
        // No name: a piece of something else, a folded value perhaps.
        guard HTTPHeaders.isName(name) else {
            lines.append(Edits.replacement)
            return lines.append(": [redacted]")
        }
        let value = whole.slice(0, room)
        lines.append(name)
        lines.append(": ")
        let from = lines.count
        let isCut = value.count < whole.count
        if unsafe redactor.rules.headerNames.table.contains(name) {
            if value.count > 0 { lines.append(Edits.replacement) }
        } else {
            if isCut { self.isCut = true }
            if HTTPHeaders.isAddress(name) {
                redactor.url(value, isCut: isCut, &edits, into: &lines)
                lines.blankControls(from: from)
            } else if !redactor.line(value, isCut: isCut, &edits, into: &lines) {
                lines.blankControls(from: from)
            }
        }
        unsafe note(name, from..<lines.count, redactor.rules.conversation)
    }

    private static let nameBytesMax = 1_024

    /// A token of RFC 9110, or a pseudo header's name of HTTP/2.
    private static func isName(_ name: ByteText) -> Bool {
        let from = name[0] == UInt8(ascii: ":") && name.count > 1 ? 1 : 0
        guard let start = unsafe name.start else { return false }
        return unsafe cwi_is_token(start, from, name.count)
    }

    /// Headers whose value is one URL.
    private static func isAddress(_ name: ByteText) -> Bool {
        switch name.count {
        case 7: return name.has("referer", at: 0)
        case 8: return name.has("location", at: 0)
        case 16: return name.has("content-location", at: 0)
        default: return false
        }
    }

    private mutating func note(_ name: ByteText, _ range: Range<Int>, _ conversation: ByteText) {
        switch name.count {
        case 12: if name.has("content-type", at: 0) { contentType = range }
        case 16:
            if name.has("content-encoding", at: 0) { contentCoding = range }
            if name.has("content-language", at: 0) { contentLanguage = range }
        default: break
        }
        guard self.conversation.isEmpty, name.equals(lower: conversation) else { return }
        self.conversation = range
    }
}

extension ByteText {
    @unsafe init(_ text: cw_str) {
        unsafe self.init(
            UnsafeRawPointer(text.data)?.assumingMemoryBound(to: UInt8.self), text.length)
    }
}
