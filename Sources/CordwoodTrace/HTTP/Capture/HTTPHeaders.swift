// The headers of one message as lines `Name: value`, redacted as they are taken, with the facts
// needed to read the body, and the conversation id. At most `bytesMax` bytes are kept; `isCut`
// reports an excess. Further headers only contribute the facts about the body.
// SAFETY: `headers` is the host's, of `count` entries, and holds during the call that hands it in;
// the caller has checked that each string has its bytes.

import CCordwood
import CShims
import CordwoodCore
import CordwoodFormats
import CordwoodStore

struct HTTPHeaders: ~Copyable {
    static let bytesMax = 64 << 10
    /// More than any server accepts; the rest is ignored.
    static let countMax = 100_000

    private var lines = GrowingBytes()
    private var contentType = GrowingBytes()
    private var contentCoding = GrowingBytes()
    private(set) var isChunked = false
    /// It carries the mark of an upload (UploadMark).
    private(set) var isUpload = false
    private var contentLanguage = 0..<0
    private var conversation = 0..<0
    /// A header was shortened or left out.
    private(set) var isCut = false

    var text: ByteText { lines.text }
    var type: ByteText { contentType.text }
    /// Values of several headers form one list.
    var coding: ByteText { contentCoding.text }
    var language: ByteText { lines.text(contentLanguage.lowerBound, contentLanguage.upperBound) }
    @inline(__always)
    var conversationID: ByteText { lines.text(conversation.lowerBound, conversation.upperBound) }

    mutating func clear(keeping bytesMax: Int) {
        lines.clear(keeping: bytesMax)
        contentType.clear(keeping: bytesMax)
        contentCoding.clear(keeping: bytesMax)
        isChunked = false
        isUpload = false
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
        let secrets = unsafe redactor.rules.headerNames
        for i in 0..<min(count, HTTPHeaders.countMax) {
            let header = unsafe headers[i]
            let room = HTTPHeaders.bytesMax &- lines.count
            let (name, value) = unsafe (ByteText(header.name), ByteText(header.value))
            let kind = Kind(name)
            var line: Range<Int>?
            if room > 0 {
                line = take(
                    name, kind, isSecret: secrets.containsHeader(name), value, room: room,
                    redactor, &edits)
            } else {
                isCut = true
            }
            if kind.rawValue >= Kind.type.rawValue {
                note(kind, value, line, redactor, &edits)
            }
        }
        if lines.count > HTTPHeaders.bytesMax { isCut = true }
        lines.resize(min(lines.count, HTTPHeaders.bytesMax))
    }

    /// Returns the range of the value in `lines`; nil if some of it is missing there.
    private mutating func take(
        _ name: ByteText, _ kind: Kind, isSecret: Bool, _ whole: ByteText, room: Int,
        _ redactor: Redactor, _ edits: inout Edits
    ) -> Range<Int>? {
        guard name.count > 0, name.count <= HTTPHeaders.nameBytesMax else {
            if name.count > 0 { isCut = true }
            return nil
        }
        // Not a name: a piece of something else, such as a folded value.
        guard HTTPHeaders.isName(name) else {
            if lines.count > 0 { lines.append(UInt8(ascii: "\n")) }
            lines.append(Edits.replacement)
            lines.append(": [redacted]")
            return nil
        }
        let value = whole.slice(0, room)
        lines.append(line: name, ": ")
        let from = lines.count
        let isCut = value.count < whole.count
        if isSecret {
            if value.count > 0 { lines.append(Edits.replacement) }
        } else {
            if isCut { self.isCut = true }
            let isPlain =
                kind == .address
                ? redactor.url(value, isCut: isCut, &edits, into: &lines)
                : redactor.line(value, isCut: isCut, &edits, into: &lines)
            if !isPlain { lines.blankControls(from: from) }
        }
        let range = from..<lines.count
        if kind == .language { contentLanguage = range }
        if conversation.isEmpty, unsafe name.equals(lower: redactor.rules.conversation) {
            conversation = range
        }
        return isSecret || isCut ? nil : range
    }

    private static let nameBytesMax = 1_024

    /// A token of RFC 9110, or a pseudo header's name of HTTP/2.
    private static func isName(_ name: ByteText) -> Bool {
        let from = name[0] == UInt8(ascii: ":") && name.count > 1 ? 1 : 0
        guard let start = unsafe name.start else { return false }
        return unsafe cwi_is_token(start, from, name.count)
    }

    /// The kinds of header values that matter here; those from `type` on are noted.
    private enum Kind: UInt8 {
        case any
        /// A URL, or text that begins like one.
        case address
        case language
        case type
        case coding
        case transfer
        case mark

        init(_ name: ByteText) {
            let (word, kind): (StaticString, Kind)
            switch name.count {
            case 4: (word, kind) = ("host", .address)
            case 6: (word, kind) = ("origin", .address)
            case 7: (word, kind) = ("referer", .address)
            case 8: (word, kind) = ("location", .address)
            case 10: (word, kind) = (":authority", .address)
            case 12: (word, kind) = ("content-type", .type)
            case 15: (word, kind) = ("cordwood-upload", .mark)
            case 16:
                switch (name[8] | 0x20, name[9] | 0x20) {
                case (UInt8(ascii: "e"), _): (word, kind) = ("content-encoding", .coding)
                case (_, UInt8(ascii: "a")): (word, kind) = ("content-language", .language)
                default: (word, kind) = ("content-location", .address)
                }
            case 17: (word, kind) = ("transfer-encoding", .transfer)
            default:
                self = .any
                return
            }
            self = name.has(word, at: 0) ? kind : .any
        }
    }

    /// Notes how to read the body and whether it is an upload, even if the line has no room.
    private mutating func note(
        _ kind: Kind, _ value: ByteText, _ line: Range<Int>?, _ redactor: Redactor,
        _ edits: inout Edits
    ) {
        switch kind {
        case .type:
            contentType.removeAll()
            if let line {
                let value = lines.text(line.lowerBound, line.upperBound)
                return contentType.append(value.slice(0, HTTPHeaders.nameBytesMax))
            }
            HTTPHeaders.add(
                value.slice(0, HTTPHeaders.nameBytesMax), to: &contentType, redactor, &edits)
        case .coding:
            if contentCoding.count > 0 { contentCoding.append(", ") }
            let value = value.slice(0, HTTPHeaders.bytesMax)
            HTTPHeaders.add(value, to: &contentCoding, redactor, &edits)
        case .mark: isUpload = value.uploadMark?.isAccepted ?? false
        default:
            // Anywhere in the list: servers write it in many ways.
            for at in 0..<value.count where value.has("chunked", at: at) { isChunked = true }
        }
    }

    private static func add(
        _ value: ByteText, to buffer: inout GrowingBytes, _ redactor: Redactor,
        _ edits: inout Edits
    ) {
        let from = buffer.count
        if !redactor.line(value, isCut: false, &edits, into: &buffer) {
            buffer.blankControls(from: from)
        }
    }
}

extension ByteText {
    /// Nil if this text is no mark.
    fileprivate var uploadMark: UploadMark? {
        guard count == UploadMark.digits else { return nil }
        var word: UInt64 = 0
        for index in 0..<count {
            let digit = ASCII.hex(self[index])
            guard digit < 16 else { return nil }
            word = word << 4 | UInt64(digit)
        }
        return UploadMark(word)
    }
}
