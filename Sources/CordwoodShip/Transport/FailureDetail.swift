// The known details of a failed transfer (B-NET-1, B-NET-2), fit to be logged and shown. Of a
// redirection's address only scheme, host and port are kept, because paths may contain tokens, too.
// A value, made from the outcome where an attempt fails. Pure.

import CordwoodFormats

public struct FailureDetail: Equatable, Sendable {
    /// Never `success`.
    public var kind: OutcomeKind
    /// 0: no HTTP answer.
    public var httpStatus: Int32
    /// The transport's cause, or the status in words.
    public var cause: String
    /// The target of a redirection: `https://host:port`, or `/…` on the same server; empty: no
    /// target, or no redirection.
    public var location: String
    /// The wait that the server asked for; nil: it asked for none.
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
        retryAfterMs = RetryAfter.delayMs(outcome, nowUnixMs: nowUnixMs)
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

    /// Whole seconds, rounded up; nil: no wait was asked for.
    var retryAfterSeconds: UInt64? {
        retryAfterMs.map { $0 / 1_000 + ($0 % 1_000 == 0 ? 0 : 1) }
    }

    /// Scheme, host and port of an address.
    static func shown(_ address: String) -> String {
        guard !address.isEmpty else { return "" }
        let scheme = address.utf8.prefix { isSchemeByte($0) }
        var rest = address.utf8[scheme.endIndex...]
        if !scheme.isEmpty && rest.starts(with: "://".utf8) {
            rest = rest.dropFirst(3)
        } else if address.hasPrefix("//") {
            rest = rest.dropFirst(2)
        } else {
            return "/…"
        }
        let start = rest.startIndex
        rest = rest.prefix { !"/?#\\".utf8.contains($0) }
        if let at = rest.lastIndex(of: UInt8(ascii: "@")) {
            rest = rest[rest.index(after: at)...]
        } else if endsInPassword(rest) {
            rest = rest.prefix(0)
        }
        let bytes = [address.utf8[..<start], rest].joined().prefix(locationBytesMax).map {
            $0 < 0x20 || $0 == 0x7F ? UInt8(ascii: "?") : $0
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// True if the text in place of a port is not a number: `user:password` whose password has an
    /// unescaped '/', '?' or '#', which end the authority.
    static func endsInPassword(_ authority: some Collection<UInt8>) -> Bool {
        var rest = authority[...]
        if rest.first == UInt8(ascii: "["), let end = rest.firstIndex(of: UInt8(ascii: "]")) {
            rest = rest[end...]
        }
        guard let colon = rest.firstIndex(of: UInt8(ascii: ":")) else { return false }
        return !rest[colon...].dropFirst().allSatisfy(ASCII.isDigit)
    }

    private static func isSchemeByte(_ byte: UInt8) -> Bool {
        ASCII.isAlphanumeric(byte) || "+-.".utf8.contains(byte)
    }
}
