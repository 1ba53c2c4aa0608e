// Names of objects: a template of the host's whose `{date}`, `{hour}`, `{id}`, `{name}`,
// `{service}`, `{host}` and `{ext}` are replaced by facts about an archive. It must contain `{id}`,
// because a key names one body permanently; this keeps a second attempt from making a second
// object. Pure.

import CordwoodFormats
import CordwoodStore

struct S3Key: Equatable, Sendable {
    static let standard = "{date}/{service}/{id}.{ext}"
    static let templateBytesMax = 512
    /// S3 takes 1,024 bytes of UTF-8.
    private static let valueBytesMax = 96
    private static let words = ["date", "hour", "id", "name", "service", "host", "ext"]

    private enum Piece: Equatable {
        case text(String)
        case word(String)
    }

    private let pieces: [Piece]
    private let format: BodyFormat

    /// True if a key contains the archive's writer or time.
    var needsOrigin: Bool {
        pieces.contains {
            guard case .word(let word) = $0 else { return false }
            return ["date", "hour", "service", "host"].contains(word)
        }
    }

    /// - Parameter service: the host's own value for `{service}`.
    init(
        _ template: String, _ format: BodyFormat, service: String?
    ) throws(UploadError) {
        guard template.utf8.count <= S3Key.templateBytesMax else {
            throw UploadError.argument("key is longer than \(S3Key.templateBytesMax) bytes")
        }
        var pieces: [Piece] = []
        var rest = template[...]
        while let open = rest.firstIndex(of: "{") {
            if open > rest.startIndex { pieces.append(.text(String(rest[..<open]))) }
            guard let close = rest[open...].firstIndex(of: "}") else {
                throw UploadError.argument("key: a brace is not closed")
            }
            let word = String(rest[rest.index(after: open)..<close])
            guard S3Key.words.contains(word) else {
                throw UploadError.argument(
                    "key: '{\(word.prefix(40))}' is none of "
                        + S3Key.words.map { "{\($0)}" }.joined(separator: ", "))
            }
            if word == "service", let service {
                pieces.append(.text(S3Key.segment(service)))
            } else {
                pieces.append(.word(word))
            }
            rest = rest[rest.index(after: close)...]
        }
        if !rest.isEmpty { pieces.append(.text(String(rest))) }
        guard pieces.contains(.word("id")) else {
            throw UploadError.argument("key must hold {id}, or two archives get one name")
        }
        guard !template.hasPrefix("/") else {
            throw UploadError.argument("key begins with a slash")
        }
        self.pieces = pieces
        self.format = format
    }

    func text(_ delivery: Delivery) -> String {
        var key = ""
        for piece in pieces {
            switch piece {
            case .text(let text): key += text
            case .word(let word): key += value(word, delivery)
            }
        }
        // A part of one or two dots would be removed on the way, and invalidate the signature.
        let parts = key.split(separator: "/", omittingEmptySubsequences: false).map { part in
            part == "." ? "_" : part == ".." ? "__" : part
        }
        return parts.joined(separator: "/")
    }

    private func value(_ word: String, _ delivery: Delivery) -> String {
        var origin = delivery.origin
        // It is sent encrypted: whether this sender has a key must not change its name.
        if origin.isEncrypted, format == .archive { (origin.service, origin.host) = ("", "") }
        let time = Times.text(seconds: Int64(clamping: origin.timeUnixMs / 1_000))
        switch word {
        case "date": return String(time.prefix(10))
        case "hour": return String(time.dropFirst(11).prefix(2))
        case "id": return delivery.id
        case "name": return S3Key.segment(StorePaths.stem(ofFile: delivery.fileName) ?? "archive")
        case "service": return S3Key.segment(origin.service)
        case "host": return S3Key.segment(origin.host)
        default: return S3Key.fileExtension(format, delivery.encoding)
        }
    }

    /// One part of a path: no slash, no control character, limited length, not empty.
    private static func segment(_ text: String) -> String {
        var bytes = text.utf8.map { $0 < 0x20 || $0 == 0x7F || $0 == 0x2F ? 0x5F : $0 }
        if bytes.count > valueBytesMax {
            var end = valueBytesMax
            while end > 0, bytes[end] & 0xC0 == 0x80 { end -= 1 }
            bytes = Array(bytes[..<end])
        }
        return bytes.isEmpty ? "unknown" : String(decoding: bytes, as: UTF8.self)
    }

    /// Readers of buckets rely on it: Athena, ClickHouse and DuckDB know `.zst` and `.gz`.
    static func fileExtension(_ format: BodyFormat, _ encoding: BodyEncoding) -> String {
        let content =
            switch format {
            case .archive: "cwa"
            case .ndjson: "ndjson"
            case .json, .otlpJSON: "json"
            case .text, .sap: "log"
            case .otlpProtobuf: "binpb"
            }
        switch encoding {
        case .none: return content
        case .gzip: return content + ".gz"
        case .zstd: return content + ".zst"
        case .lz4: return content + ".lz4"
        }
    }
}
