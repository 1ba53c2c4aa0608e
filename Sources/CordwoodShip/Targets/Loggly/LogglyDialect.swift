// Loggly's bulk endpoint (B-ROLL-10): lines of JSON or text, never compressed, the token in the
// URL. It answers 200 `{"response":"ok"}`; any other 200 is somebody else's (a proxy, a sign-in
// page) and proves nothing, so the body goes again later.

import CordwoodFormats
import CordwoodStore

struct LogglyDialect: Dialect {
    let contentType: String
    let limits: BodyLimits
    private let format: BodyFormat
    /// With `{token}` still in it.
    private let template: String

    static let bodyBytesMax: UInt64 = 5_000_000
    static let eventBytesMax: UInt32 = 1_000_000
    static let tagsDefault = "cordwood"
    static let tagsMax = 32

    init(_ options: DialectOptions) throws(UploadError) {
        try options.parameters.require(only: ["tags"], kind: .loggly)
        try options.requirePost(.loggly)
        format = options.format
        contentType = format == .text ? "text/plain" : "application/json"
        limits = options.limits(
            BodyLimits(
                bytes: LogglyDialect.bodyBytesMax, entryBytes: LogglyDialect.eventBytesMax))
        let given = options.parameters["tags"]
        let tags = try LogglyDialect.tags(given ?? LogglyDialect.tagsDefault)
        var url = options.url
        if options.isBare {
            url = options.bareURL + "/bulk/{token}/tag/{tags}/"
        } else if given != nil, !URLText.has(url, "{tags}") {
            guard !URLText.has(url, "/tag/"), !url.utf8.contains(0x3f) else {
                throw UploadError.argument(
                    "the url has tags or a query of its own: write {tags} where tags belong")
            }
            url += (url.hasSuffix("/") ? "" : "/") + "tag/{tags}/"
        }
        template = HTTPDialect.fill(url, "{tags}", tags)
    }

    /// Percent-encoded, the commas between them not.
    private static func tags(_ text: String) throws(UploadError) -> String {
        let tags = text.split(separator: ",").filter { !$0.isEmpty }
        guard !tags.isEmpty, tags.count <= tagsMax else {
            throw UploadError.argument("parameter 'tags' holds none, or more than \(tagsMax)")
        }
        return tags.map { URLText.percentEncoded(String($0)) }.joined(separator: ",")
    }

    func makeEncoder(_ lines: LineRenderers) -> (any RecordEncoder)? {
        EntryEncoder(.none, format == .text ? LogglyEntry.text : LogglyEntry.json)
    }

    func url(_ delivery: Delivery) -> String {
        HTTPDialect.fill(
            template, "{token}", URLText.percentEncoded(delivery.credentials.token ?? ""))
    }

    /// Without the token: it would be a request for events.
    var probe: Probe { .head(HTTPDialect.fill(template, "{token}", "test")) }

    /// The token stands in the URL alone.
    func headers(_ delivery: Delivery) -> [RequestHeader] { [] }

    func isReceipt(_ outcome: TransferOutcome, _ delivery: Delivery) -> Bool {
        AnswerText.object(outcome.body)?["response"]?.string == "ok"
    }
}
