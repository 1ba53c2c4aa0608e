// A target for archives, as the host described it, with every part checked: an invalid target never
// exists. A value; only this value and the transport hold secrets. Its name is the key of its state
// in the store and must not change between runs. The default name is derived from kind, URL and
// format (as a checksum, because URLs may hold secrets).

import CordwoodStore

/// Notifications and questions for the host, on the threads of the target's runs, several at a
/// time.
public struct TargetCallbacks: Sendable {
    /// Called before every attempt.
    public var attempting: (@Sendable (_ archive: String, _ attempt: UInt32) -> Void)?
    /// Called once per archive: it was sent, or why it never will be.
    public var completed:
        (@Sendable (_ archive: String, _ status: UploadStatus, _ httpStatus: Int32) -> Void)?
    /// Asked before every attempt in the background; false: do not send now.
    public var condition: (@Sendable () -> Bool)?
    /// Called when the last archive that waited for this target waits no more.
    public var drained: (@Sendable () -> Void)?
    /// The server is overloaded (503, 429); the target waits that long.
    public var busy: (@Sendable (_ target: String, _ delayMs: UInt64) -> Void)?

    /// False: `completed` only counts; another program is to be told what was removed.
    package var asksForRemovals = true

    var hearsRemovals: Bool { completed != nil && asksForRemovals }

    public init() {}
}

package struct Target: Sendable {
    package static let connectTimeoutMsDefault: UInt32 = 10_000
    package static let requestTimeoutMsDefault: UInt32 = 60_000
    /// The default number of concurrent requests.
    static let requestsDefault: UInt32 = 4
    static let requestsMax: UInt32 = 32
    /// Below this, the text around a message leaves no room for one.
    static let bodyBytesMin: UInt64 = 1_000

    package let name: String
    package let key: TargetKey
    package let kind: TargetKind
    /// `https://host:port`, fit for logs.
    package let origin: String
    package let format: BodyFormat
    package let encoding: BodyEncoding
    package let bytesPerSecond: UInt64
    let requestsAtOnce: UInt32
    let filter: TargetFilter
    /// nil: the kind's protocol decides.
    let expectation: Expectation?
    /// Records that the target refuses are kept with their archive, not dropped.
    let keepsRefused: Bool
    let settings: TransportSettings
    let headers: [RequestHeader]
    /// Shared by all requests.
    let keeper: CredentialKeeper
    /// nil: libcurl.
    let host: (any UploadTransport)?
    let dialect: any Dialect
    /// `name=value` of the parameters that others may know (`TargetKind.told`).
    let toldParameters: [String]
    let callbacks: TargetCallbacks

    package init(
        _ options: TargetOptions, callbacks: TargetCallbacks = TargetCallbacks()
    ) throws(UploadError) {
        kind = try Target.word(options.kind, of: TargetKind.allCases, what: "kind") ?? .collector
        format =
            try Target.word(options.format, of: kind.formats, what: "format of \(kind.rawValue)")
            ?? kind.formats[0]
        let encodings = kind.encodings(format)
        encoding =
            try Target.word(options.encoding, of: encodings, what: "encoding of \(kind.rawValue)")
            ?? encodings[0]
        let address = try WebAddress(options.url)
        origin = address.origin
        if let method = options.method, method != "POST", method != "PUT" {
            throw UploadError.argument("method '\(method.prefix(40))' is neither POST nor PUT")
        }
        headers = try RequestHeader.parse(options.headers ?? "")
        settings = try Target.settings(options)
        host = options.transport
        bytesPerSecond = options.bytesPerSecond
        guard options.bodyBytesMax == 0 || options.bodyBytesMax >= Target.bodyBytesMin else {
            throw UploadError.argument(
                "body_bytes_max \(options.bodyBytesMax) is below \(Target.bodyBytesMin)")
        }
        guard options.requestsMax <= Target.requestsMax else {
            throw UploadError.argument(
                "requests_max \(options.requestsMax) is over \(Target.requestsMax)")
        }
        requestsAtOnce = options.requestsMax == 0 ? kind.requestsAtOnce : options.requestsMax
        filter = try TargetFilter(level: options.level, loggers: options.loggers ?? "")
        guard format != .archive || filter.takesAll else {
            throw UploadError.argument(
                "an archive goes whole: level and loggers need a format of records")
        }
        expectation = try Target.expectation(options.expect, kind)
        var parameters = try Parameters(options.parameters ?? "")
        switch parameters.take("refused") ?? "keep" {
        case "keep": keepsRefused = true
        case "drop": keepsRefused = false
        default: throw UploadError.argument("parameter 'refused' is neither keep nor drop")
        }
        // Treated as a secret like the others, and replaced together with them.
        let sessionToken = kind == .s3 ? parameters.take("session_token") : nil
        let credentials = try Target.credentials(options, headers, sessionToken)
        let told = kind.told
        toldParameters =
            parameters.lines(told.parameters)
            + told.hidden.filter { parameters[$0] != nil }.map { "\($0)=\(SentSecrets.mark)" }
        dialect = try kind.makeDialect(
            DialectOptions(
                url: options.url, address: address, format: format, encoding: encoding,
                method: options.method, headers: headers,
                parameters: parameters,
                limits: BodyLimits(bytes: options.bodyBytesMax, entries: options.bodyRecordsMax)))
        name = try Target.checkedName(options.name, kind, address, options.url, format)
        key = TargetKey(name: name)
        keeper = CredentialKeeper(credentials, target: name, ask: options.credentials)
        self.callbacks = callbacks
    }

    /// True if the host lets the server answer 412 for objects it already has.
    var asksOnlyIfAbsent: Bool {
        headers.contains { $0.lowercasedName == "if-none-match" && $0.value == "*" }
    }

    /// Makes another encoder for a body that is made once more.
    func encoders(_ lines: LineRenderers, _ paths: StorePaths) -> ArchiveParts.MakeEncoder {
        let dialect = self.dialect
        return { () throws(UploadError) in try dialect.makeEncoder(lines, store: paths) }
    }

    /// A request without its body. The host's own headers go first and are not overridden.
    func request(_ delivery: Delivery, bytesPerSecond: UInt64) -> TransferRequest {
        var all = headers
        func set(_ name: String, _ value: String) {
            guard !all.contains(where: { $0.lowercasedName == name.lowercased() }) else { return }
            all.append(RequestHeader(name: name, value: value))
        }
        for header in dialect.headers(delivery) { set(header.name, header.value) }
        set("Content-Type", dialect.contentType(delivery))
        set("User-Agent", "cordwood")
        if delivery.encoding != .none { set("Content-Encoding", delivery.encoding.rawValue) }
        set("Idempotency-Key", "\"\(delivery.id)\"")
        return TransferRequest(
            method: dialect.method, url: dialect.url(delivery), headers: all, body: nil,
            settings: settings, bytesPerSecond: bytesPerSecond)
    }

    private static func word<Word: RawRepresentable>(
        _ text: String?, of known: [Word], what: String
    ) throws(UploadError) -> Word? where Word.RawValue == String {
        guard let text, !text.isEmpty else { return nil }
        if let word = known.first(where: { $0.rawValue == text }) { return word }
        let list = known.map(\.rawValue).joined(separator: ", ")
        throw UploadError.argument("\(what) '\(text.prefix(40))' is none of \(list)")
    }

    private static func expectation(
        _ text: String?, _ kind: TargetKind
    ) throws(UploadError) -> Expectation? {
        guard let text, !text.isEmpty else { return nil }
        guard kind.takesExpectation else {
            throw UploadError.argument(
                "expect: kind \(kind.rawValue) says itself what its answers mean")
        }
        return try Expectation(text)
    }

    private static func credentials(
        _ options: TargetOptions, _ headers: [RequestHeader], _ sessionToken: String?
    ) throws(UploadError) -> Credentials {
        var credentials = try Credentials(
            token: options.authToken, user: options.authUser, password: options.authPassword
        ).checked()
        if credentials.token == nil {
            credentials.token = try Credentials(token: sessionToken).checked().token
        }
        // We send the credentials that the callback returns: a header would contradict them.
        guard
            credentials.isEmpty && options.credentials == nil
                || !headers.contains(where: { $0.lowercasedName == "authorization" })
        else {
            throw UploadError.argument(
                "auth_token, auth_user, credentials and an Authorization header exclude one another"
            )
        }
        return credentials
    }

    private static func settings(_ options: TargetOptions) throws(UploadError) -> TransportSettings
    {
        var settings = TransportSettings()
        func ms(_ timeout: Duration) -> UInt32 { max(1, UInt32(clamping: timeout.wholeMs)) }
        if let timeout = options.connectTimeout { settings.connectTimeoutMs = ms(timeout) }
        if let timeout = options.requestTimeout { settings.requestTimeoutMs = ms(timeout) }
        // A shorter limit would abort a long wait for an answer as a stalled connection.
        settings.stallSeconds = max(settings.stallSeconds, settings.requestTimeoutMs / 1_000)
        settings.caFile = options.caFile
        settings.clientCertificateFile = options.clientCertificateFile
        settings.clientKeyFile = options.clientKeyFile
        settings.clientKeyPassword = options.clientKeyPassword
        settings.proxy = options.proxy
        settings.proxyAuthentication = options.proxyAuthentication
        guard let version = HTTPVersion(rawValue: options.httpVersion) else {
            throw UploadError.argument("http_version \(options.httpVersion) is none of 0, 1 and 2")
        }
        settings.httpVersion = version
        if options.transport != nil, let option = settings.needsCurl {
            throw UploadError.argument(
                "\(option) is libcurl's; with a transport that is its affair")
        }
        return try settings.checked()
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
