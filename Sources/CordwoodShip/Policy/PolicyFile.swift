// The file `policy` of a store: the last good policy from a URL, so that the next start begins with
// it, and the server's validators, which tell it from a newer one. Lines `key value`, an empty
// line, and the document as received (FORMAT §2.2). A checksum stands for the URL, because URLs may
// hold secrets. A kept policy of another URL, or an unreadable one, counts as missing. Any thread,
// any process.

import CordwoodCore
import CordwoodStore

package struct PolicyFile: Equatable, Sendable {
    package static let fileName = "policy"
    private static let firstLine = "cordwood policy"
    private static let validatorBytesMax = 1024

    /// 32 hex digits.
    package private(set) var urlHash: String
    /// `https://host:port`.
    package private(set) var origin: String
    /// The validators as the server sent them; empty: it sent none.
    package private(set) var etag: String
    package private(set) var modified: String
    package private(set) var savedUnixSeconds: Int64
    /// What the program that keeps the file allows; it binds the store's other programs, too.
    package var allow: PolicyAllowance
    package private(set) var json: [UInt8]

    init(
        url: String, origin: String, etag: String, modified: String, savedUnixSeconds: Int64,
        allow: PolicyAllowance = [], json: [UInt8]
    ) {
        urlHash = PolicyFile.hash(url)
        self.origin = origin
        self.etag = PolicyFile.validator(etag)
        self.modified = PolicyFile.validator(modified)
        self.savedUnixSeconds = savedUnixSeconds
        self.allow = allow
        self.json = json
    }

    static func hash(_ url: String) -> String { ContentHash.hex(Array(url.utf8), bytes: 16) }

    /// Drops a validator that cannot be sent back in a header.
    private static func validator(_ text: String) -> String {
        let isFit =
            text.utf8.count <= validatorBytesMax
            && text.utf8.allSatisfy { $0 >= 0x20 && $0 < 0x7F }
        return isFit ? text : ""
    }

    /// nil: the file is missing, or has another version.
    package static func read(storeDirectory: FilePath) throws(UploadError) -> PolicyFile? {
        let path = storeDirectory + "/" + fileName
        guard let bytes = try StoreFiles.read(path, isObeyed: true) else { return nil }
        return parse(bytes)
    }

    func write(storeDirectory: FilePath) throws(UploadError) {
        let lock = try StoreFiles.lockStore(storeDirectory)
        defer { _ = lock.number }
        try StoreFiles.replace(PolicyFile.fileName, inStore: storeDirectory, with: bytes)
    }

    var bytes: [UInt8] {
        var lines = ["url \(urlHash)", "origin \(origin)", "saved \(savedUnixSeconds)"]
        if !allow.isEmpty { lines.append("allow \(allow.rawValue)") }
        if !etag.isEmpty { lines.append("etag \(etag)") }
        if !modified.isEmpty { lines.append("modified \(modified)") }
        return KeyValueFile.bytes(PolicyFile.firstLine, lines) + [0x0A] + json
    }

    static func parse(_ bytes: [UInt8]) -> PolicyFile? {
        var file = PolicyFile(
            url: "", origin: "", etag: "", modified: "", savedUnixSeconds: 0, json: [])
        let ends = zip(bytes.indices, bytes.indices.dropFirst())
        guard let end = ends.first(where: { bytes[$0] == 0x0A && bytes[$1] == 0x0A }),
            let head = try? KeyValueFile(
                bytes[..<end.0], firstLine: firstLine, path: FilePath(fileName)),
            head.format == 1
        else { return nil }
        for line in head.lines {
            let value = String(line.value)
            switch line.key {
            case "url": file.urlHash = value
            case "origin": file.origin = value
            case "saved": file.savedUnixSeconds = Int64(value) ?? 0
            case "allow": file.allow = PolicyAllowance(rawValue: UInt32(value) ?? 0)
            case "etag": file.etag = validator(value)
            case "modified": file.modified = validator(value)
            default: break
            }
        }
        file.json = Array(bytes[(end.1 + 1)...])
        guard file.json.count <= PolicyDocument.bytesMax else { return nil }
        return file
    }
}
