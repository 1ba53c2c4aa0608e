// Loggly's bulk endpoint (B-ROLL-10): lines of JSON or text, never compressed, with the token in
// the URL. It answers 200 `{"response":"ok"}`. Any other 200 comes from elsewhere (a proxy, a
// sign-in page) and proves nothing, so the body is sent again later.

import CordwoodFormats
import CordwoodStore

struct LogglyDialect: Dialect {
    let contentType: String
    let limits: BodyLimits
    private let format: BodyFormat
    /// Still contains `{token}`.
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

    /// Percent-encoded, except for the commas between tags.
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

    /// Omits the token: with it, the request would be one for events.
    var probe: Probe { .head(HTTPDialect.fill(template, "{token}", "test")) }

    /// Only the URL carries the token.
    func headers(_ delivery: Delivery) -> [RequestHeader] { [] }

    func isReceipt(_ outcome: TransferOutcome, _ delivery: Delivery) -> Bool {
        AnswerText.object(outcome.body)?["response"]?.string == "ok"
    }
}
