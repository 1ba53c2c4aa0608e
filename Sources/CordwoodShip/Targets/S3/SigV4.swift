// AWS Signature Version 4 for S3, over libsodium's SHA-256 and HMAC. Signs exactly the bytes that
// go over the wire: path and query are encoded once, here, and handed to the transport unchanged.
// Pure. Values: any thread; they hold secrets and are never shown.
// SAFETY: libsodium reads as many bytes as it is told and fills 32; states are initialised first.

import CSodium
import CordwoodFormats
import CordwoodStore

struct SigV4: Sendable {
    var accessKey: String
    var secretKey: String
    /// The token of temporary credentials.
    var sessionToken: String?
    var region: String

    static let service = "s3"
    static let emptyHash = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

    /// A request in its signed form: `path` encoded, `query` not.
    struct Request {
        var method: String
        /// The value of the Host header.
        var host: String
        var path: String
        var query: [(name: String, value: String)] = []
        /// All are signed. Excludes Host and the headers that `headers` adds.
        var headers: [RequestHeader] = []
        /// SHA-256 of the body in lowercase hex.
        var bodyHash: String
    }

    /// The headers that a request needs besides its own.
    func headers(_ request: Request, unixSeconds: Int64) -> [RequestHeader] {
        let time = SigV4.time(unixSeconds)
        var added = [
            RequestHeader(name: "x-amz-content-sha256", value: request.bodyHash),
            RequestHeader(name: "x-amz-date", value: time),
        ]
        if let sessionToken {
            added.append(RequestHeader(name: "x-amz-security-token", value: sessionToken))
        }
        var signed = request
        signed.headers += added
        let (canonical, names) = SigV4.canonical(signed)
        let scope = "\(time.prefix(8))/\(region)/\(SigV4.service)/aws4_request"
        let text =
            "AWS4-HMAC-SHA256\n\(time)\n\(scope)\n"
            + ContentHash.hex(Array(canonical.utf8), bytes: 32)
        let signature = Hex.text(SigV4.hmac(signingKey(time), text))
        added.append(
            RequestHeader(
                name: "Authorization",
                value: "AWS4-HMAC-SHA256 Credential=\(accessKey)/\(scope), "
                    + "SignedHeaders=\(names), Signature=\(signature)"))
        return added
    }

    private func signingKey(_ time: String) -> [UInt8] {
        var key = Array("AWS4\(secretKey)".utf8)
        for part in [String(time.prefix(8)), region, SigV4.service, "aws4_request"] {
            key = SigV4.hmac(key, part)
        }
        return key
    }

    /// The canonical request, and the names of the signed headers.
    static func canonical(_ request: Request) -> (text: String, names: String) {
        var values: [String: String] = ["host": request.host]
        for header in request.headers {
            let value = collapsed(header.value)
            // Values of headers with the same name keep their order.
            values[header.lowercasedName] =
                values[header.lowercasedName].map { "\($0),\(value)" } ?? value
        }
        let names = values.keys.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
        let lines = names.map { "\($0):\(values[$0] ?? "")\n" }.joined()
        let list = names.joined(separator: ";")
        let text =
            "\(request.method)\n\(request.path)\n\(encode(query: request.query))\n\(lines)\n"
            + "\(list)\n\(request.bodyHash)"
        return (text, list)
    }

    /// Trims spaces at the ends and merges runs of spaces.
    private static func collapsed(_ value: String) -> String {
        value.split(whereSeparator: { $0 == " " || $0 == "\t" }).joined(separator: " ")
    }

    // ── Encoding ──

    /// Sorted, as signed and as sent.
    static func encode(query: [(name: String, value: String)]) -> String {
        let pairs = query.map {
            (name: URLText.percentEncoded($0.name), value: URLText.percentEncoded($0.value))
        }
        let sorted = pairs.sorted {
            $0.name == $1.name
                ? $0.value.utf8.lexicographicallyPrecedes($1.value.utf8)
                : $0.name.utf8.lexicographicallyPrecedes($1.name.utf8)
        }
        return sorted.map { "\($0.name)=\($0.value)" }.joined(separator: "&")
    }

    /// `20130524T000000Z`.
    static func time(_ unixSeconds: Int64) -> String {
        Times.text(seconds: unixSeconds).filter { $0 != "-" && $0 != ":" }
    }

    static func hmac(_ key: [UInt8], _ text: String) -> [UInt8] {
        var state = crypto_auth_hmacsha256_state()
        unsafe crypto_auth_hmacsha256_init(&state, key, key.count)
        let bytes = Array(text.utf8)
        unsafe crypto_auth_hmacsha256_update(&state, bytes, UInt64(bytes.count))
        var code = [UInt8](repeating: 0, count: 32)
        unsafe crypto_auth_hmacsha256_final(&state, &code)
        return code
    }
}
