// The failure of a host's own request, for Swift hosts: one case for each kind of failure
// (B-NET-1), with all known details, text for people in English and German, and a call that writes
// its record. Does not use Foundation: `CordwoodURLSession` converts the results of URLSession.

import CShims
import CordwoodCore
import CordwoodEngine
import CordwoodFormats
import CordwoodShip

public enum NetworkError: Error, Equatable, Sendable {
    /// No HTTP answer, or not all of one: DNS, connect, TLS, timeout.
    case requestFailed(RequestFailure)
    /// 3xx.
    case redirection(RequestFailure)
    /// 4xx; `detail.odata` is set if the server sent an error in OData's form.
    case client(RequestFailure)
    /// 5xx.
    case server(RequestFailure)
    /// Anything else.
    case unknown(RequestFailure)

    public init(_ failure: RequestFailure) {
        switch failure.detail.kind {
        case .requestFailed: self = .requestFailed(failure)
        case .redirection: self = .redirection(failure)
        case .client: self = .client(failure)
        case .server: self = .server(failure)
        case .none, .success, .unknown: self = .unknown(failure)
        }
    }

    /// The error of a finished request, whatever client made it; nil: the request succeeded.
    /// - Parameter unixMs: when it ended; nil: now.
    public init?(_ result: NetworkResult, unixMs: UInt64? = nil) {
        let ended = unixMs ?? cw_realtime_ns() / 1_000_000
        guard let failure = RequestFailure(result, unixMs: ended)
        else { return nil }
        self.init(failure)
    }

    public var failure: RequestFailure {
        switch self {
        case .requestFailed(let failure), .redirection(let failure), .client(let failure),
            .server(let failure), .unknown(let failure):
            return failure
        }
    }

    public var detail: FailureDetail { failure.detail }

    /// Identifies the request in the server's own logs; empty: the server sent none.
    public var transactionID: String { detail.odata?.transactionID ?? "" }

    /// Accepts `en` and `de`, also with a region; other languages get English.
    public func localizedDescription(language: String = "en") -> String {
        detail.text(OutcomeLanguage(language))
    }

    /// Writes the error's record, with fields to search by (docs/HTTP.md); the host's fields follow
    /// them. The engine's rules for captured exchanges replace secrets in the texts of server and
    /// transport.
    /// - Parameters:
    ///   - message: text that the record puts before ours.
    ///   - level: nil: warn for a redirection and a refusal, error for all other outcomes.
    /// - Returns: a status of cordwood.h.
    @discardableResult
    public func log(
        to logger: Logger, _ message: String = "", level: Level? = nil,
        fields: KeyValuePairs<String, any LogValue> = [:]
    ) -> Int32 {
        var content = FailureRecord.Content()
        let status = unsafe FailureRecord.make(
            logger.block, level: UInt32(level?.number ?? 0), failure, &content)
        guard status == 0 else { return status }
        return logger.record(
            content.level,
            message: message.isEmpty ? content.message : "\(message): \(content.message)",
            fields: content.fields + fields.map { ($0.key, $0.value.fieldInput) })
    }
}

extension NetworkError: CustomStringConvertible {
    public var description: String { localizedDescription() }
}
