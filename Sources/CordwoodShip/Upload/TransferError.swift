// How a transfer failed, for Swift hosts: one case for each kind of failure (B-NET-1), with all
// known details, and text for people in English and German.

import CordwoodCore

public enum TransferError: Error, Equatable, Sendable {
    /// No HTTP answer: DNS, connect, TLS, timeout.
    case requestFailed(TransferFailure)
    /// 3xx.
    case redirection(TransferFailure)
    /// 4xx; `detail.odata` is set if the server sent an error in OData's form.
    case client(TransferFailure)
    /// 5xx.
    case server(TransferFailure)
    /// Anything else.
    case unknown(TransferFailure)

    public init(_ failure: TransferFailure) {
        switch failure.detail.kind {
        case .requestFailed: self = .requestFailed(failure)
        case .redirection: self = .redirection(failure)
        case .client: self = .client(failure)
        case .server: self = .server(failure)
        case .none, .success, .unknown: self = .unknown(failure)
        }
    }

    public var failure: TransferFailure {
        switch self {
        case .requestFailed(let failure), .redirection(let failure), .client(let failure),
            .server(let failure), .unknown(let failure):
            return failure
        }
    }

    public var detail: FailureDetail { failure.detail }

    /// Accepts `en` and `de`, also with a region; other languages get English.
    public func localizedDescription(language: String = "en") -> String {
        detail.text(OutcomeLanguage(language))
    }
}

extension TransferError: CustomStringConvertible {
    public var description: String { localizedDescription() }
}

extension CordwoodError {
    /// For an upload: how the last failed transfer ended; nil: none failed.
    public var transfer: TransferError? { underlying as? TransferError }
}
