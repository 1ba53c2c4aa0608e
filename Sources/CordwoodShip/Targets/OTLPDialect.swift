// An OpenTelemetry receiver over HTTP: protobuf or JSON to /v1/logs below the base URL. Success may
// be 200, 201 or 204 and say nothing; a partial success is one, and what it refuses is never sent
// again. Many collectors answer 400, not 413, to what is too large uncompressed.

struct OTLPDialect: Dialect {
    let contentType: String
    let limits: BodyLimits
    private let address: String
    private let isJSON: Bool

    static let path = "/v1/logs"
    /// Collectors take 20 MiB or 64 MiB; smaller bodies are cheaper to send again.
    static let bodyBytesMax: UInt64 = 4 << 20
    /// Less would not hold one record with its resource.
    static let bodyBytesMin: UInt64 = 64 << 10
    /// Logger and resource of a record stand in the body beside it.
    private static let groupBytesMax: UInt64 = 40 << 10
    /// A 400 to a body of at most this size is about its content.
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

    /// Of bodies in OTLP, whatever the kind: an entry leaves room for its groups, and the encoder
    /// holds a whole body.
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
            content: isJSON ? Array("{}".utf8) : [],
            read: { outcome in
                let isResponse =
                    outcome.kind == .success
                    && OTLPAnswer.isResponse(outcome.body, isJSON: answersJSON(outcome))
                return isResponse ? .fine("a receiver takes an empty export") : .foreign
            }, notLookedAt: "what it does with records")
    }

    /// The outcome says what the receiver said.
    func send(
        _ request: TransferRequest, _ delivery: Delivery, _ body: borrowing Body,
        _ perform: (TransferRequest) -> TransferOutcome
    ) throws(UploadError) -> TransferOutcome {
        var outcome = perform(request)
        guard outcome.httpStatus > 0 else { return outcome }
        if outcome.kind == .success {
            let answer = self.answer(outcome)
            if answer.rejected > 0 { outcome.cause += ", \(answer.rejected) records refused" }
            if !answer.message.isEmpty { outcome.cause += ": \(answer.message)" }
        } else {
            let text = OTLPAnswer.failure(outcome.body, isJSON: answersJSON(outcome))
            if !text.isEmpty { outcome.cause += ": \(text)" }
        }
        return outcome
    }

    /// Empty, or a response in either form.
    func isReceipt(_ outcome: TransferOutcome, _ delivery: Delivery) -> Bool {
        OTLPAnswer.isResponse(outcome.body, isJSON: answersJSON(outcome))
    }

    func verdict(_ outcome: TransferOutcome, _ delivery: Delivery) -> Verdict? {
        if outcome.kind == .success {
            return .sent(Refused(count: answer(outcome).rejected))
        }
        guard outcome.httpStatus == 400, delivery.contentBytes > OTLPDialect.certainlySmallBytes
        else { return nil }
        // An encoding that was never taken is the likelier reason.
        if delivery.encoding != .none, !delivery.isEncodingProven { return nil }
        return .shrink
    }

    private func answer(_ outcome: TransferOutcome) -> OTLPAnswer {
        OTLPAnswer.success(outcome.body, isJSON: answersJSON(outcome))
    }

    /// As the answer says of itself; else as the request was.
    private func answersJSON(_ outcome: TransferOutcome) -> Bool {
        guard let type = outcome.header("content-type")?.lowercased() else { return isJSON }
        if type.hasPrefix("application/json") { return true }
        return type.hasPrefix("application/x-protobuf") ? false : isJSON
    }
}
