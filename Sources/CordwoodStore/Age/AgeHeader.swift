// The header of an age file (age-encryption.org/v1): its stanzas, and the MAC over them. Parsing is
// strict: each content has exactly one text, as the specification requires. A header proves nothing
// until its MAC has been checked with the file key from one of its stanzas. Pure; any thread.

struct AgeStanza: Equatable, Sendable {
    /// The first one is the kind of the stanza.
    var arguments: [String]
    var body: [UInt8]

    static let columns = 64

    var kind: String { arguments.first ?? "" }

    /// The stanza as text in a header.
    var text: [UInt8] {
        var out = Array("-> \(arguments.joined(separator: " "))\n".utf8)
        let body = AgeBase64.text(body)
        for start in stride(from: 0, to: body.count, by: AgeStanza.columns) {
            out += body[start..<min(start + AgeStanza.columns, body.count)] + [0x0A]
        }
        // The last line of a body must be shorter than the others, so it may be empty.
        if body.count % AgeStanza.columns == 0 { out.append(0x0A) }
        return out
    }
}

struct AgeHeader: Sendable {
    private static let start = Array("age-encryption.org/".utf8)
    private static let firstLine = Array("age-encryption.org/v1\n".utf8)
    private static let arrow = Array("-> ".utf8)
    private static let end = Array("---".utf8)
    /// Our own headers fit, too: an archive covers no more than its header has room for (FORMAT
    /// §11.5).
    static let bytesMax = 1 << 20
    static let fileKeyBytes = 16

    let stanzas: [AgeStanza]
    /// Bytes of the whole header.
    let count: Int
    /// The bytes that the MAC covers.
    private let covered: [UInt8]
    private let mac: [UInt8]

    /// True for an age file of any version.
    static func isStart(_ bytes: [UInt8]) -> Bool { bytes.starts(with: start) }

    /// A new header, with its MAC.
    static func make(_ stanzas: [AgeStanza], fileKey: AgeSecret) -> [UInt8] {
        let covered = firstLine + stanzas.flatMap(\.text) + end
        return covered + [0x20] + AgeBase64.text(sum(covered, fileKey)) + [0x0A]
    }

    func isGenuine(_ fileKey: AgeSecret) -> Bool {
        AgeCrypto.equal(mac, AgeHeader.sum(covered, fileKey))
    }

    private static func sum(_ covered: [UInt8], _ fileKey: AgeSecret) -> [UInt8] {
        let key = AgeCrypto.hkdf(fileKey, salt: [], info: "header")
        return AgeCrypto.hmac(key: key.bytes, [covered])
    }

    /// Parses the first bytes of a file; nil: they end before the header does.
    static func parse(_ bytes: [UInt8]) throws(AgeError) -> AgeHeader? {
        var lines = Lines(bytes: bytes)
        guard let first = lines.next() else { return nil }
        guard first + [0x0A] == firstLine[...] else {
            throw first.starts(with: start)
                ? .version("a newer version of age") : .damaged("not an age file")
        }
        var stanzas: [AgeStanza] = []
        while true {
            let begin = lines.position
            guard let line = lines.next() else { return nil }
            if line.starts(with: end) {
                guard !stanzas.isEmpty else { throw lines.damage("no stanza") }
                guard line.count == 47, line[line.startIndex + 3] == 0x20,
                    let mac = AgeBase64.bytes(Array(line.dropFirst(4))), mac.count == 32
                else { throw lines.damage("MAC") }
                return AgeHeader(
                    stanzas: stanzas, count: lines.position,
                    covered: Array(bytes[..<(begin + end.count)]), mac: mac)
            }
            guard let stanza = try stanza(line, &lines) else { return nil }
            stanzas.append(stanza)
        }
    }

    private static func stanza(
        _ line: ArraySlice<UInt8>, _ lines: inout Lines
    ) throws(AgeError) -> AgeStanza? {
        guard line.starts(with: arrow) else { throw lines.damage("neither stanza nor MAC") }
        let words = line.dropFirst(arrow.count).split(
            separator: 0x20, omittingEmptySubsequences: false)
        guard words.allSatisfy({ !$0.isEmpty && $0.allSatisfy { (0x21...0x7E).contains($0) } })
        else { throw lines.damage("arguments of a stanza") }
        var body: [UInt8] = []
        while true {
            guard let row = lines.next() else { return nil }
            guard row.count <= AgeStanza.columns else { throw lines.damage("a line too long") }
            body += row
            if row.count < AgeStanza.columns { break }
        }
        guard let decoded = AgeBase64.bytes(body) else {
            throw lines.damage("base64 that is not canonical")
        }
        return AgeStanza(
            arguments: words.map { String(decoding: $0, as: UTF8.self) }, body: decoded)
    }

    private struct Lines {
        let bytes: [UInt8]
        var position = 0
        var number = 0

        init(bytes: [UInt8]) { self.bytes = bytes }

        /// The next line without its newline; nil: no complete line is left.
        mutating func next() -> ArraySlice<UInt8>? {
            guard let end = bytes[position...].firstIndex(of: 0x0A) else { return nil }
            let line = bytes[position..<end]
            position = end + 1
            number += 1
            return line
        }

        func damage(_ what: String) -> AgeError {
            .damaged("age header, line \(number): \(what)")
        }
    }
}
