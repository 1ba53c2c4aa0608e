// An OpenTelemetry receiver over HTTP: protobuf or JSON to /v1/logs below the base URL. A success
// may be 200, 201 or 204 and empty. A partial success is a success, and its refused records are
// never sent again. Many collectors answer 400, not 413, to a body that is too large uncompressed.

import CordwoodFormats
import CordwoodStore

struct OTLPDialect: Dialect {
    let contentType: String
    let limits: BodyLimits
    private let address: String
    private let isJSON: Bool

    static let path = "/v1/logs"
    /// Fluent Bit's answer to everything it cannot accept.
    private static let fluentBits: StaticString = "invalid request: deserialisation error"
    /// Collectors take 20 MiB or 64 MiB; smaller bodies are cheaper to send again.
    static let bodyBytesMax: UInt64 = 4 << 20
    /// A smaller body could not hold one record with its resource.
    static let bodyBytesMin: UInt64 = 64 << 10
    /// A record's logger and resource take space in the body besides the record.
    private static let groupBytesMax: UInt64 = 40 << 10
    /// A 400 to a body of at most this size concerns its content.
    static let certainlySmallBytes: UInt64 = 1 << 20

    init(_ options: DialectOptions) throws(UploadError) {
        try options.parameters.require(only: [], kind: .otlp)
        guard options.method == nil || options.method == "POST" else {
            throw UploadError.argument("kind otlp takes method POST only")
        }
        let base = try options.base(of: .otlp)
        address = base.hasSuffix(OTLPDialect.path) ? base : base + OTLPDialect.path
        isJSON = options.format == .otlpJSON
        contentType = HTTPDialect.contentType(options.format)
        limits = try OTLPDialect.limits(options)
    }

    /// Limits of OTLP bodies, whatever the kind: an entry leaves room for its groups, and the
    /// encoder holds a whole body.
    static func limits(_ options: DialectOptions) throws(UploadError) -> BodyLimits {
        var limits = options.limits(BodyLimits(bytes: bodyBytesMax))
        guard limits.bytes >= bodyBytesMin else {
            throw UploadError.argument("OTLP needs bodies of at least \(bodyBytesMin) bytes")
        }
        limits.entryBytes = UInt32(clamping: limits.bytes - groupBytesMax)
        return limits
    }

    func makeEncoder(_ lines: LineRenderers) -> (any RecordEncoder)? {
        OTLPEncoder(isJSON ? .json : .protobuf, entryBytesMax: Int(limits.entryBytes))
    }

    func url(_ delivery: Delivery) -> String { address }

    var probe: Probe {
        Probe(
            method: "POST", url: address, shownPath: OTLPDialect.path,
            // One empty ResourceLogs: some servers refuse a body without bytes.
            content: isJSON ? Array("{}".utf8) : [0x0A, 0],
            read: { outcome in
                if outcome.kind == .success, OTLPAnswer(outcome.body) != nil {
                    return .fine("a receiver takes an empty export")
                }
                // It refuses an export without records, in either form.
                if outcome.httpStatus == 400, AnswerText.has(outcome.body, OTLPDialect.fluentBits) {
                    return .fine("Fluent Bit is there, which takes no export without records")
                }
                // Quickwit's answer to an export without records.
                return outcome.kind == .server && !OTLPAnswer.failure(outcome.body).isEmpty
                    ? .wrong("a receiver answers, but not to an empty export") : .foreign
            }, notLookedAt: "what it does with records")
    }

    /// The outcome carries the receiver's message.
    func send(
        _ request: TransferRequest, _ delivery: Delivery, _ body: borrowing Body,
        _ perform: (TransferRequest) -> TransferOutcome
    ) throws(UploadError) -> TransferOutcome {
        var outcome = perform(request)
        guard outcome.httpStatus > 0 else { return outcome }
        var message = ""
        if outcome.kind == .success {
            let answer = OTLPAnswer(outcome.body) ?? OTLPAnswer()
            if answer.rejected > 0 {
                outcome.cause += ", " + Counted.text(answer.rejected, "record") + " refused"
            }
            message = answer.message
        } else {
            message = OTLPAnswer.failure(outcome.body)
        }
        guard !message.isEmpty else { return outcome }
        let secrets = SentSecrets(request, also: delivery.credentials.secrets)
        outcome.cause += ": \(OTLPAnswer.shown(secrets.cleaned(message)))"
        return outcome
    }

    func isReceipt(_ outcome: TransferOutcome, _ delivery: Delivery) -> Bool {
        OTLPAnswer(outcome.body) != nil
    }

    func verdict(_ outcome: TransferOutcome, _ delivery: Delivery) -> AnswerVerdict? {
        if outcome.kind == .success {
            return OTLPAnswer(outcome.body).map { .sent(Refused(count: $0.rejected)) } ?? .stray
        }
        guard outcome.httpStatus == 400, delivery.contentBytes > OTLPDialect.certainlySmallBytes
        else { return nil }
        // An encoding that was never accepted is the likelier cause.
        if delivery.encoding != .none, !delivery.isEncodingProven { return nil }
        return .shrink
    }
}
