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
