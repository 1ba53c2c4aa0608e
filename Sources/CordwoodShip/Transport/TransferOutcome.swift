// How one transfer ended (B-NET-1): exactly one kind, with what is known about the cause. Pure.

/// CW_OUTCOME_….
public enum OutcomeKind: Int32, Sendable {
    case none = 0
    case success = 1
    case requestFailed = 2
    case redirection = 3
    case client = 4
    case server = 5
    case unknown = 6
}

public struct TransferOutcome: Sendable {
    public var kind: OutcomeKind
    /// 0: no HTTP answer.
    public var httpStatus: Int32 = 0
    /// The transport's cause, or the status in words; contains no URL and no header.
    public var cause: String
    /// Headers of the final answer, with names in lower case; the transport bounds the rest. They
    /// may hold the server's secrets.
    public var headers: [(name: String, value: String)] = []
    /// At most TransferOutcome.bodyBytesMax.
    public var body: [UInt8] = []
    /// The body was longer.
    public var isBodyCut = false
    /// Bytes of the request's body that were sent.
    public var bytesSent: UInt64 = 0
    /// The request never began: DNS, connect, TLS, proxy.
    public var isUnreachable = false
    /// The server reset the request's HTTP/2 stream, or violated HTTP/2.
    public var isReset = false
    /// We aborted it.
    public var isStopped = false

    static let bodyBytesMax = 4 << 20
    static let headerBytesMax = 8192
    static let headersMax = 64

    /// The last header of that name, in lower case.
    public func header(_ name: String) -> String? {
        headers.last { $0.name == name }?.value
    }

    static func failed(_ cause: String, isUnreachable: Bool = false) -> TransferOutcome {
        TransferOutcome(kind: .requestFailed, cause: cause, isUnreachable: isUnreachable)
    }

    static func kind(httpStatus: Int32) -> OutcomeKind {
        switch httpStatus {
        case 200...299: return .success
        case 300...399: return .redirection
        case 400...499: return .client
        case 500...599: return .server
        default: return .unknown
        }
    }
}
