// S3's XML answers: the code and message of an error, the id of an upload. Searches the first bytes
// of an answer for the elements' names. The rest is never shown, because an error may repeat signed
// text. External input: missing elements are nil. Pure.

struct S3Answer: Equatable {
    var code: String?
    var message: String?

    static let scannedBytesMax = 64 << 10
    private static let textBytesMax = 200

    init(_ body: [UInt8]) {
        code = S3Answer.element("Code", in: body)
        message = S3Answer.element("Message", in: body)
    }

    /// A text for a cause; empty if the answer has none.
    var text: String {
        [code, message].compactMap { $0 }.joined(separator: ": ")
    }

    /// True for S3's answer to the end of a multipart upload: it may say 200 before it knows.
    static func isCompletion(_ body: [UInt8]) -> Bool {
        AnswerText.has(body, "<CompleteMultipartUploadResult" as StaticString)
    }

    /// The text of the first element of that name, cut to `bytesMax`.
    static func element(
        _ name: String, in xml: [UInt8], bytesMax: Int = textBytesMax
    ) -> String? {
        elements(name, in: xml, bytesMax: bytesMax, countMax: 1).first
    }

    static func elements(
        _ name: String, in xml: [UInt8], bytesMax: Int = textBytesMax, countMax: Int
    ) -> [String] {
        let open = Array("<\(name)>".utf8)
        let scanned = Array(xml.prefix(scannedBytesMax))
        var found: [String] = []
        var at = 0
        while at + open.count <= scanned.count, found.count < countMax {
            guard scanned[at] == 0x3C, scanned[at..<(at + open.count)].elementsEqual(open) else {
                at += 1
                continue
            }
            at += open.count
            let text = scanned[at...].prefix { $0 != 0x3C }
            at += text.count
            // A text cut off by the bound would be a different text.
            guard at < scanned.count else { return found }
            found.append(plain(text, bytesMax: bytesMax))
        }
        return found
    }

    private static let entities: [(name: [UInt8], byte: UInt8)] = [
        (Array("&lt;".utf8), 0x3C), (Array("&gt;".utf8), 0x3E), (Array("&amp;".utf8), 0x26),
        (Array("&quot;".utf8), 0x22), (Array("&apos;".utf8), 0x27), (Array("&#34;".utf8), 0x22),
        (Array("&#39;".utf8), 0x27), (Array("&#43;".utf8), 0x2B),
    ]

    private static func plain(_ text: ArraySlice<UInt8>, bytesMax: Int) -> String {
        var bytes: [UInt8] = []
        var rest = text
        while let first = rest.first, bytes.count < bytesMax {
            if first == 0x26, let entity = entities.first(where: { rest.starts(with: $0.name) }) {
                bytes.append(entity.byte)
                rest = rest.dropFirst(entity.name.count)
            } else {
                bytes.append(first < 0x20 || first == 0x7F ? 0x20 : first)
                rest = rest.dropFirst()
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
