// What is known of a transfer that did not succeed (B-NET-1, B-NET-2), fit to be logged and shown:
// of a redirection's address neither user, query nor fragment is kept. A value, made of the outcome
// where an attempt fails. Pure.

public struct FailureDetail: Equatable, Sendable {
    /// Never `success`.
    public var kind: OutcomeKind
    /// 0: no HTTP answer.
    public var httpStatus: Int32
    /// The transport's cause, or the status in words.
    public var cause: String
    /// Where a redirection points; empty: nowhere, or no redirection.
    public var location: String
    /// What the server asks us to wait; nil: it said nothing.
    public var retryAfterMs: UInt64?
    public var odata: ODataError?

    private static let locationBytesMax = 512

    public init(_ outcome: TransferOutcome, nowUnixMs: UInt64) {
        kind = outcome.kind
        httpStatus = outcome.httpStatus
        cause = ODataError.cut(outcome.cause)
        location =
            outcome.kind == .redirection
            ? FailureDetail.shown(outcome.header("location") ?? "") : ""
        retryAfterMs = outcome.header("retry-after").flatMap {
            RetryAfter.delayMs($0, nowUnixMs: nowUnixMs)
        }
        // SAP Gateway answers 500 in the same form.
        let isAnswer = outcome.kind == .client || outcome.kind == .server
        odata =
            isAnswer
            ? ODataError(
                body: outcome.body, contentLanguage: outcome.header("content-language") ?? "")
            : nil
    }

    public init(
        kind: OutcomeKind, httpStatus: Int32, cause: String, location: String,
        retryAfterMs: UInt64?, odata: ODataError?
    ) {
        self.kind = kind
        self.httpStatus = httpStatus
        self.cause = cause
        self.location = location
        self.retryAfterMs = retryAfterMs
        self.odata = odata
    }

    /// Scheme, host and path of an address, or a path by itself.
    private static func shown(_ address: String) -> String {
        var rest = address.prefix { $0 != "?" && $0 != "#" }
        var scheme: Substring = ""
        if let colon = rest.firstIndex(of: ":"), rest[colon...].hasPrefix("://") {
            scheme = rest[..<colon] + "://"
            rest = rest.dropFirst(scheme.count)
        } else if rest.hasPrefix("//") {
            scheme = "//"
            rest = rest.dropFirst(2)
        }
        if !scheme.isEmpty {
            let authority = rest.prefix { $0 != "/" }
            if let at = authority.lastIndex(of: "@") { rest = rest[rest.index(after: at)...] }
        }
        let bytes = (scheme + rest).utf8.prefix(locationBytesMax).map {
            $0 < 0x20 || $0 == 0x7F ? UInt8(ascii: "?") : $0
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
