// Amazon S3 and compatible servers: one object per body, by PUT, signed by ourselves (SigV4). A key
// names one body permanently, and `If-None-Match: *` keeps a second attempt from storing it again:
// 412 means it is there. Bodies over `part_bytes` go by S3Multipart. If our clock is wrong,
// requests are signed with the server's time. Values: any thread.

import CShims
import CordwoodStore
import Synchronization

struct S3Dialect: Dialect {
    let method = "PUT"
    var contentType: String { S3Dialect.contentType(format, encoding) }
    let limits: BodyLimits
    let place: S3Place
    let key: S3Key
    let partBytes: UInt64
    let isOnlyIfAbsent: Bool
    private let format: BodyFormat
    private let isFlat: Bool
    private let encoding: BodyEncoding
    private let skew = ClockSkew()
    private let openEnds = OpenEnds()

    static let partBytesDefault: UInt64 = 64 << 20
    /// S3 takes at most 10,000 parts, none larger, and only the last may be smaller.
    static let partBytesMin: UInt64 = 5 << 20
    static let partBytesMax: UInt64 = 5 << 30
    static let partsMax: UInt64 = 10_000

    static let parameters = [
        "addressing", "fields", "if_none_match", "key", "part_bytes", "region", "service",
        "session_token",
    ]

    init(_ options: DialectOptions) throws(UploadError) {
        let parameters = options.parameters
        try parameters.require(only: S3Dialect.parameters, kind: .s3)
        guard options.method == nil || options.method == "PUT" else {
            throw UploadError.argument("kind s3 takes method PUT only")
        }
        place = try S3Place(options.base(of: .s3), options.address, parameters)
        key = try S3Key(
            parameters["key"] ?? S3Key.standard, options.format, service: parameters["service"])
        partBytes = try S3Dialect.partBytes(parameters["part_bytes"])
        switch parameters["if_none_match"] ?? "1" {
        case "1": isOnlyIfAbsent = true
        case "0": isOnlyIfAbsent = false
        default: throw UploadError.argument("if_none_match is neither 0 nor 1")
        }
        format = options.format
        isFlat = try HTTPDialect.isFlat(options)
        limits = options.limits(BodyLimits())
        encoding = options.encoding
    }

    private static func partBytes(_ text: String?) throws(UploadError) -> UInt64 {
        guard let text else { return partBytesDefault }
        guard let bytes = UInt64(text), bytes >= partBytesMin, bytes <= partBytesMax else {
            throw UploadError.argument(
                "part_bytes '\(text.prefix(40))' is not \(partBytesMin)…\(partBytesMax)")
        }
        return bytes
    }

    /// An object is a file: it stays compressed until its reader opens it, going by its name. Some
    /// stores and clients would undo a Content-Encoding on the way.
    func contentType(_ delivery: Delivery) -> String {
        S3Dialect.contentType(format, delivery.encoding)
    }

    private static func contentType(_ format: BodyFormat, _ encoding: BodyEncoding) -> String {
        switch encoding {
        case .none: HTTPDialect.contentType(format)
        case .gzip: "application/gzip"
        case .zstd: "application/zstd"
        case .lz4: "application/octet-stream"
        }
    }

    func makeEncoder(_ lines: LineRenderers) -> (any RecordEncoder)? {
        HTTPDialect.makeEncoder(format, lines, isFlat: isFlat)
    }

    var needsOrigin: Bool { key.needsOrigin }

    func url(_ delivery: Delivery) -> String {
        place.url(path: place.path(ofKey: key.text(delivery)))
    }

    /// The signature carries our identity.
    func headers(_ delivery: Delivery) -> [RequestHeader] { [] }

    var probe: Probe {
        Probe(
            method: "HEAD", url: place.url(path: place.bucketPath), shownPath: "/<bucket>",
            read: {
                switch $0.httpStatus {
                case 200: .fine("the bucket is there, and these keys may look at it")
                case 301, 307, 308:
                    .wrong("the bucket is in region \($0.header("x-amz-bucket-region") ?? "?")")
                case 404: .wrong("no such bucket")
                default: .foreign
                }
            }, notLookedAt: "whether these keys may put objects")
    }

    func sendProbe(
        _ request: TransferRequest, _ delivery: Delivery,
        _ perform: (TransferRequest) -> TransferOutcome
    ) throws(UploadError) -> TransferOutcome {
        S3Exchange(
            place: place, signer: signer(delivery), skew: skew, template: request,
            secrets: SentSecrets(request, also: delivery.credentials.secrets),
            startedUnixMs: delivery.nowUnixMs, startedNs: cw_monotonic_ns()
        ).perform(request.method, place.bucketPath, isPut: false, perform)
    }

    // ── Sending ──

    func send(
        _ request: TransferRequest, _ delivery: Delivery, _ body: borrowing Body,
        _ perform: (TransferRequest) -> TransferOutcome
    ) throws(UploadError) -> TransferOutcome {
        var request = request
        request.headers.removeAll { $0.lowercasedName == "content-encoding" }
        let exchange = S3Exchange(
            place: place, signer: signer(delivery), skew: skew, template: request,
            secrets: SentSecrets(request, also: delivery.credentials.secrets),
            startedUnixMs: delivery.nowUnixMs, startedNs: cw_monotonic_ns())
        let path = place.path(ofKey: key.text(delivery))
        if body.bytes > partBytes {
            return try S3Multipart(
                exchange: exchange, path: path, key: place.keyPrefix + key.text(delivery),
                partBytes: partSize(body.bytes), isOnlyIfAbsent: isOnlyIfAbsent,
                openEnds: openEnds
            ).send(body, perform)
        }
        let whole = body.request()
        let hash = try body.sha256(offset: 0, count: body.bytes)
        return S3Dialect.onlyIfAbsent(isOnlyIfAbsent) { more in
            exchange.perform("PUT", path, body: whole, bodyHash: hash, more: more, perform)
        }
    }

    /// Servers that do not know the condition answer 501. An overwritten object has the same bytes.
    static func onlyIfAbsent(
        _ isWanted: Bool, _ attempt: ([RequestHeader]) -> TransferOutcome
    ) -> TransferOutcome {
        guard isWanted else { return attempt([]) }
        let outcome = attempt([RequestHeader(name: "If-None-Match", value: "*")])
        return outcome.httpStatus == 501 ? attempt([]) : outcome
    }

    /// Without an access key, requests are unsigned: for a bucket that anyone may write, or a proxy
    /// that signs.
    private func signer(_ delivery: Delivery) -> SigV4? {
        guard let user = delivery.credentials.user else { return nil }
        return SigV4(
            accessKey: user, secretKey: delivery.credentials.password ?? "",
            sessionToken: delivery.credentials.token, region: place.region)
    }

    func partSize(_ bytes: UInt64) -> UInt64 {
        max(partBytes, bytes / S3Dialect.partsMax + 1)
    }

    // ── Answers ──

    /// A stored object has an ETag; the end of a multipart upload confirms it in its body.
    func isReceipt(_ outcome: TransferOutcome, _ delivery: Delivery) -> Bool {
        outcome.header("etag")?.isEmpty == false || S3Answer.isCompletion(outcome.body)
    }

    func verdict(_ outcome: TransferOutcome, _ delivery: Delivery) -> AnswerVerdict? {
        if outcome.isStopped { return nil }
        let code = S3Answer(outcome.body).code ?? ""
        switch outcome.httpStatus {
        case 412 where isOnlyIfAbsent: return .sent(.none)
        // Another attempt with the same key, or a bucket that is just being made.
        case 409: return .retry(.failed, delayMs: nil)
        case 403 where code == "RequestTimeTooSkewed": return .retry(.failed, delayMs: nil)
        case 404 where code == "NoSuchUpload": return .retry(.failed, delayMs: nil)
        // The target is wrong, not the archive.
        case 301, 307, 308, 404: return .stray
        case 400 where S3Dialect.credentialCodes.contains(code),
            // A firewall before the server may say so of one body.
            403 where code != "AccessDenied" && S3Dialect.credentialCodes.contains(code):
            return .pause
        case 400 where S3Dialect.passingCodes.contains(code):
            return .retry(.failed, delayMs: nil)
        case 400 where code == "EntityTooLarge": return .shrink
        // Not about an encoding, which S3 ignores.
        case 400: return .refuse
        default: return nil
        }
    }

    private static let credentialCodes: Set<String> = [
        "AccessDenied", "AuthorizationHeaderMalformed", "ExpiredToken",
        "IllegalLocationConstraintException", "InvalidAccessKeyId", "InvalidBucketName",
        "InvalidToken", "RequestTimeTooSkewed", "SignatureDoesNotMatch", "TokenRefreshRequired",
    ]
    private static let passingCodes: Set<String> = [
        "BadDigest", "IncompleteBody", "RequestTimeout", "XAmzContentSHA256Mismatch",
    ]
}

/// The last known lead of the server's clock over ours. Shared by a target's requests.
final class ClockSkew: Sendable {
    struct Change {
        var old: Int64
        var new: Int64
    }

    private let ms = Atomic<Int64>(0)

    // ORDER: relaxed, all. An independent number; an older one costs one more request.
    var current: Int64 { ms.load(ordering: .relaxed) }
    func make(_ change: Change) { ms.store(change.new, ordering: .relaxed) }

    /// Keeps a newer value that another request has learnt.
    func takeBack(_ change: Change) {
        // ORDER: relaxed, as above.
        _ = ms.compareExchange(expected: change.new, desired: change.old, ordering: .relaxed)
    }
}
