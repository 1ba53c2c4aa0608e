// The end of a request that the host made itself, as it reports it, and the known details of a
// failure (B-NET-1, B-NET-2). Outcomes, decoder and texts are those of our uploads. Pure.

import CordwoodFormats

/// The host's facts about a finished request.
public struct NetworkResult: Sendable {
    /// 0: no HTTP answer.
    public var httpStatus: Int32 = 0
    /// The answer's headers, in any case. Only Location, Retry-After, Date and Content-Language
    /// matter.
    public var headers: [(name: String, value: String)] = []
    /// The answer's body, unpacked. An error in it is decoded if it has at most 256 KiB.
    public var body: [UInt8] = []
    /// Why the answer is missing or incomplete, in the transport's words; empty: it is complete.
    public var error = ""
    /// `dns`, `connect`, `tls`, `timeout` …; empty: unknown.
    public var errorType = ""
    public var method = ""
    public var url = ""
    /// The id of the captured exchange, 16 hex digits; empty: it was not captured.
    public var exchangeID = ""

    public init() {}

    public static let bodyBytesMax = ODataError.bodyBytesMax

    var hasError: Bool { !error.isEmpty || !errorType.isEmpty }

    fileprivate var cause: String {
        guard hasError else { return httpStatus == 0 ? "no answer" : "HTTP \(httpStatus)" }
        if error.isEmpty || errorType.isEmpty { return error + errorType }
        let isSaid = error.lowercased().holds(errorType.lowercased())
        return isSaid ? error : "\(errorType): \(error)"
    }

    /// A refusal counts even if the connection broke afterwards; a success counts only if the
    /// whole answer arrived.
    fileprivate var kind: OutcomeKind {
        let kind = TransferOutcome.kind(httpStatus: httpStatus)
        return httpStatus == 0 || hasError && kind == .success ? .requestFailed : kind
    }
}

/// A failed request of the host.
public struct RequestFailure: Equatable, Sendable {
    public var detail: FailureDetail
    public var method: String
    /// Without user, query and fragment; for an invalid address only the scheme.
    public var url: String
    /// The id of the captured exchange; empty: it was not captured.
    public var exchangeID: String
    public var unixMs: UInt64

    package static let urlBytesMax = 2_048
    private static let wordBytesMax = 64

    public init(
        detail: FailureDetail, method: String, url: String, exchangeID: String, unixMs: UInt64
    ) {
        self.detail = detail
        self.method = method
        self.url = url
        self.exchangeID = exchangeID
        self.unixMs = unixMs
    }

    /// Only the reason is known.
    package init(cause: String) {
        detail = FailureDetail(
            kind: .unknown, httpStatus: 0, cause: cause, location: "", retryAfterMs: nil,
            odata: nil)
        (method, url, exchangeID, unixMs) = ("", "", "", 0)
    }

    /// nil: the request succeeded.
    package init?(_ result: NetworkResult, unixMs: UInt64) {
        let kind = result.kind
        guard kind != .success else { return nil }
        var outcome = TransferOutcome(
            kind: kind, httpStatus: result.httpStatus, cause: result.cause)
        outcome.headers = result.headers.map { ($0.name.lowercased(), $0.value) }
        outcome.body = result.body
        self.init(
            detail: FailureDetail(outcome, nowUnixMs: unixMs),
            method: RequestFailure.line(result.method.utf8, RequestFailure.wordBytesMax),
            url: RequestFailure.address(result.url),
            exchangeID: RequestFailure.line(result.exchangeID.utf8, RequestFailure.wordBytesMax),
            unixMs: unixMs)
    }

    /// Scheme, host and port.
    public var origin: String { url.isEmpty ? "" : FailureDetail.shown(url) }

    /// An address without user, query and fragment; for an invalid one, the scheme.
    private static func address(_ url: String) -> String {
        let bytes = Array(url.utf8.prefix { !"?#".utf8.contains($0) })
        var start = 0
        if let slash = bytes.firstIndex(of: UInt8(ascii: "/")),
            bytes[slash...].starts(with: "//".utf8)
        {
            start = slash + 2
        }
        let end = bytes[start...].firstIndex { "/\\".utf8.contains($0) } ?? bytes.endIndex
        guard let at = bytes[start..<end].lastIndex(of: UInt8(ascii: "@")) else {
            let isCut = FailureDetail.endsInPassword(bytes[start..<end])
            return line(isCut ? bytes[..<start] : bytes[...], urlBytesMax)
        }
        return line(bytes[..<start] + bytes[(at + 1)...], urlBytesMax)
    }

    private static func line(_ bytes: some Sequence<UInt8>, _ bytesMax: Int) -> String {
        let shown = bytes.prefix(bytesMax).map {
            $0 < 0x20 || $0 == 0x7F ? UInt8(ascii: "?") : $0
        }
        return String(decoding: shown, as: UTF8.self)
    }
}
