// The location of a bucket: scheme and host for requests, the bucket's own path, and the prefix of
// every key. Made from a base URL, path-style (`https://host/bucket`, with folders after it) or
// virtual-hosted (`https://bucket.host`, or the path form with addressing=virtual). Pure.

import CordwoodFormats
import CordwoodStore

struct S3Place: Equatable, Sendable {
    let scheme: String
    /// The value of the Host header.
    let host: String
    /// Encoded; `/` if the host is the bucket's.
    let bucketPath: String
    /// Not encoded; ends in a slash unless empty.
    let keyPrefix: String
    let region: String

    init(_ base: String, _ address: WebAddress, _ parameters: Parameters) throws(UploadError) {
        scheme = address.scheme
        let usual: UInt16 = scheme == "https" ? 443 : 80
        let port = address.port == usual ? "" : ":\(address.port)"
        var segments = try S3Place.segments(base)
        switch parameters["addressing"] ?? "path" {
        case "path":
            guard !segments.isEmpty else {
                throw UploadError.argument(
                    "the url of kind s3 names no bucket: https://host/bucket")
            }
            bucketPath = "/" + URLText.percentEncoded(segments.removeFirst())
            host = address.host + port
        case "virtual":
            bucketPath = "/"
            if segments.isEmpty {
                host = address.host + port
            } else {
                let bucket = segments.removeFirst()
                guard bucket.utf8.allSatisfy(S3Place.isHostByte) else {
                    throw UploadError.argument(
                        "a bucket of that name cannot stand in a host's name: addressing=path")
                }
                host = "\(bucket).\(address.host)\(port)"
            }
        case let other:
            throw UploadError.argument("addressing '\(other.prefix(40))' is none of path, virtual")
        }
        keyPrefix = segments.map { $0 + "/" }.joined()
        region = parameters["region"] ?? S3Place.region(ofHost: address.host) ?? "us-east-1"
        guard !region.isEmpty, region.utf8.allSatisfy(S3Place.isHostByte) else {
            throw UploadError.argument("region is not made of letters, digits, - and .")
        }
    }

    /// Encoded.
    func path(ofKey key: String) -> String { path(ofObject: keyPrefix + key) }

    /// The same for a key that already has the prefix.
    func path(ofObject key: String) -> String {
        let separator = bucketPath == "/" ? "" : "/"
        return bucketPath + separator + URLText.percentEncoded(key, keeping: "-._~/")
    }

    func url(path: String, query: [(name: String, value: String)] = []) -> String {
        let text = query.isEmpty ? "" : "?" + SigV4.encode(query: query)
        return "\(scheme)://\(host)\(path)\(text)"
    }

    /// The parts of a URL's path, decoded.
    private static func segments(_ base: String) throws(UploadError) -> [String] {
        guard let scheme = base.firstIndex(of: ":") else { return [] }
        let rest = base[scheme...].dropFirst(3)
        guard let slash = rest.firstIndex(of: "/") else { return [] }
        var segments: [String] = []
        for part in rest[slash...].dropFirst().split(
            separator: "/", omittingEmptySubsequences: false)
        {
            guard let text = decode(part), !text.isEmpty, text != ".", text != "..",
                text.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F && $0 != 0x2F })
            else {
                throw UploadError.argument(
                    "the url of kind s3 has a part that is empty, dots, or wrongly encoded")
            }
            segments.append(text)
        }
        return segments
    }

    /// nil: a percent sign without two digits, or no UTF-8.
    private static func decode(_ text: Substring) -> String? {
        var bytes: [UInt8] = []
        var rest = Array(text.utf8)[...]
        while let byte = rest.popFirst() {
            guard byte == 0x25 else {
                bytes.append(byte)
                continue
            }
            guard let code = Hex.bytes(rest.prefix(2)), !code.isEmpty else { return nil }
            bytes += code
            rest = rest.dropFirst(2)
        }
        return String(validating: bytes, as: UTF8.self)
    }

    private static func isHostByte(_ byte: UInt8) -> Bool {
        ASCII.isAlphanumeric(byte) || byte == 0x2D || byte == 0x2E
    }

    /// `s3.eu-central-1.amazonaws.com`, with a bucket or `dualstack` before or after.
    private static func region(ofHost host: String) -> String? {
        let labels = host.split(separator: ".").map(String.init)
        guard labels.contains("amazonaws"), let at = labels.lastIndex(of: "s3") else { return nil }
        let next = labels.dropFirst(at + 1).first { $0 != "dualstack" }
        return next == "amazonaws" ? nil : next
    }
}
