// A place where archives go, as the host described it and after every part was checked: an invalid
// target never exists. A value; the token lives here and in libcurl's header list only. Its name
// is the key of its state in the store and must not change between runs; the default is derived
// from kind, URL and format (a checksum, for URLs may hold secrets).

public enum TargetKind: String, Sendable {
    case collector
    case http
}

public enum BodyFormat: String, Sendable {
    case archive
    case ndjson
    case text
}

public enum BodyEncoding: String, Sendable {
    case none
    case gzip
    case zstd

    /// What to try where a server refuses this one.
    var simpler: BodyEncoding? {
        switch self {
        case .zstd: return .gzip
        case .gzip: return BodyEncoding.none
        case .none: return nil
        }
    }
}

/// What the host gave (cw_target_options), unchecked.
public struct TargetOptions: Sendable {
    public var name: String?
    public var kind: String?
    public var url: String
    public var format: String?
    public var encoding: String?
    public var headers: String?
    public var authToken: String?
    public var method: String?
    /// 0: the default.
    public var connectTimeoutMs: UInt32 = 0
    public var requestTimeoutMs: UInt32 = 0
    public var bytesPerSecond: UInt64 = 0

    public init(url: String) {
        self.url = url
    }
}

public struct Target: Sendable {
    public typealias Attempting = @Sendable (_ archive: String, _ attempt: UInt32) -> Void
    public typealias Completed =
        @Sendable (_ archive: String, _ status: UploadStatus, _ httpStatus: Int32) -> Void

    public static let connectTimeoutMsDefault: UInt32 = 10_000
    public static let requestTimeoutMsDefault: UInt32 = 60_000
    static let collectorPath = "/v1/archives"
    static let tokenBytesMax = 16_384

    public let name: String
    public let key: TargetKey
    public let kind: TargetKind
    /// `https://host:port`, fit for logs.
    public let origin: String
    public let format: BodyFormat
    public let encoding: BodyEncoding
    public let connectTimeoutMs: UInt32
    public let requestTimeoutMs: UInt32
    public let bytesPerSecond: UInt64
    let urlTemplate: String
    let method: String
    let headers: [RequestHeader]
    let authToken: String?
    public var attempting: Attempting?
    public var completed: Completed?

    public init(
        _ options: TargetOptions, attempting: Attempting? = nil, completed: Completed? = nil
    ) throws(UploadError) {
        kind = try Target.word(options.kind, default: .collector, what: "kind")
        format = try Target.word(options.format, default: .archive, what: "format")
        encoding = try Target.word(options.encoding, default: .none, what: "encoding")
        let address = try WebAddress(options.url)
        origin = address.origin
        method = options.method ?? "POST"
        guard method == "POST" || method == "PUT" else {
            throw UploadError.argument("method '\(method.prefix(40))' is neither POST nor PUT")
        }
        if kind == .collector {
            guard format == .archive, encoding == .none, method == "POST" else {
                throw UploadError.argument(
                    "kind collector takes format archive, encoding none and method POST only")
            }
            urlTemplate = try Target.collectorURL(options.url)
        } else {
            urlTemplate = options.url
        }
        headers = try RequestHeader.parse(options.headers ?? "")
        authToken = try Target.checkedToken(options.authToken, headers: headers)
        connectTimeoutMs =
            options.connectTimeoutMs == 0
            ? Target.connectTimeoutMsDefault : options.connectTimeoutMs
        requestTimeoutMs =
            options.requestTimeoutMs == 0
            ? Target.requestTimeoutMsDefault : options.requestTimeoutMs
        bytesPerSecond = options.bytesPerSecond
        name = try Target.checkedName(options.name, kind, address, options.url, format)
        key = TargetKey(name: name)
        self.attempting = attempting
        self.completed = completed
    }

    var registration: RegisteredTarget {
        RegisteredTarget(
            key: key, name: name, kind: kind.rawValue, format: format.rawValue,
            encoding: encoding.rawValue, origin: origin)
    }

    /// True where the host lets the server answer 412 for what it has already.
    var asksOnlyIfAbsent: Bool {
        headers.contains { $0.lowercasedName == "if-none-match" && $0.value == "*" }
    }

    /// `{id}` and `{name}` stand for the archive's id and file name.
    func url(archiveID: String, fileName: String) -> String {
        Target.fill(Target.fill(urlTemplate, "{id}", archiveID), "{name}", fileName)
    }

    var contentType: String {
        switch format {
        case .archive: return "application/vnd.cordwood.archive"
        case .ndjson: return "application/x-ndjson"
        case .text: return "text/plain; charset=utf-8"
        }
    }

    private static func fill(_ text: String, _ mark: String, _ value: String) -> String {
        var result = ""
        var rest = text[...]
        while let open = rest.firstIndex(of: "{") {
            result += rest[..<open]
            rest = rest[open...]
            if rest.hasPrefix(mark) {
                result += value
                rest = rest.dropFirst(mark.count)
            } else {
                result.append(rest.removeFirst())
            }
        }
        return result + rest
    }

    private static func word<Word: RawRepresentable>(
        _ text: String?, default standard: Word, what: String
    ) throws(UploadError) -> Word where Word.RawValue == String {
        guard let text, !text.isEmpty else { return standard }
        guard let word = Word(rawValue: text) else {
            throw UploadError.argument("\(what) '\(text.prefix(40))' is not known")
        }
        return word
    }

    private static func collectorURL(_ url: String) throws(UploadError) -> String {
        guard !url.contains("?"), !url.contains("#") else {
            throw UploadError.argument("a collector's url is a base without query or fragment")
        }
        var base = url[...]
        while base.hasSuffix("/") { base = base.dropLast() }
        return base + collectorPath
    }

    private static func checkedToken(
        _ token: String?, headers: [RequestHeader]
    ) throws(UploadError) -> String? {
        guard let token, !token.isEmpty else { return nil }
        guard token.utf8.count <= tokenBytesMax, token.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F })
        else { throw UploadError.argument("auth_token is too long or not printable ASCII") }
        guard !headers.contains(where: { $0.lowercasedName == "authorization" }) else {
            throw UploadError.argument("auth_token and an Authorization header exclude each other")
        }
        return token
    }

    private static func checkedName(
        _ given: String?, _ kind: TargetKind, _ address: WebAddress, _ url: String,
        _ format: BodyFormat
    ) throws(UploadError) -> String {
        guard let given, !given.isEmpty else {
            let identity = Array("\(kind.rawValue)\n\(url)\n\(format.rawValue)".utf8)
            let hash = ContentHash.hex(identity, bytes: 6)
            return "\(kind.rawValue)-\(address.host)-\(format.rawValue)-\(hash)"
        }
        guard given.utf8.count <= TargetKey.nameBytesMax,
            given.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F })
        else {
            throw UploadError.argument(
                "name is over \(TargetKey.nameBytesMax) bytes or holds a control character")
        }
        return given
    }
}
