// Our collector: archives as they are stored, by POST to /v1/archives below the base URL. It
// answers a repeated id with 2xx and stores it once, and 409 while an earlier attempt with that id
// is still being taken in.

struct CollectorDialect: Dialect {
    private let address: String
    let contentType = HTTPDialect.contentType(.archive)

    init(_ options: DialectOptions) throws(UploadError) {
        try options.parameters.require(only: [], kind: .collector)
        guard options.method == nil || options.method == "POST" else {
            throw UploadError.argument("kind collector takes method POST only")
        }
        address = try options.base(of: .collector) + "/v1/archives"
    }

    func makeEncoder(_ lines: LineRenderers) -> (any RecordEncoder)? { nil }

    func url(_ delivery: Delivery) -> String { address }

    /// It names what it has; newer ones also how much, and what it is.
    func isReceipt(_ outcome: TransferOutcome, _ delivery: Delivery) -> Bool {
        guard let answer = AnswerText.object(outcome.body),
            answer["id"]?.string == delivery.archiveID, answer["stored"] == .bool(true)
        else { return false }
        guard let bytes = answer["bytes"] else { return true }
        return bytes.whole.map { UInt64(exactly: $0) == delivery.contentBytes } ?? false
    }
}

extension DialectOptions {
    /// The URL as a base for a fixed path: without query, fragment and final slashes.
    func base(of kind: TargetKind) throws(UploadError) -> String {
        guard !url.contains("?"), !url.contains("#") else {
            throw UploadError.argument(
                "the url of kind \(kind.rawValue) is a base without query or fragment")
        }
        var base = url[...]
        while base.hasSuffix("/") { base = base.dropLast() }
        return String(base)
    }
}
