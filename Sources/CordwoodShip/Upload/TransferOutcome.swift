// How one transfer ended (B-NET-1): exactly one kind, with what is known about the cause. And what
// follows from it for an archive (TARGETS, rules for every target). Pure.

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
    /// The transport's cause, or the status in words; no URL, no header.
    public var cause: String
    /// As the server wrote it.
    public var retryAfter: String?
    /// Where a redirection points; may hold secrets of the server's.
    public var location: String?
    /// At most CurlTransport.responseBytesMax.
    public var body: [UInt8] = []
    public var bytesSent: UInt64 = 0
    /// Nothing answers there: DNS, connect or TLS.
    public var isUnreachable = false
    /// We broke it off.
    public var isStopped = false

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

/// What an attempt means for its archive.
enum Verdict: Equatable {
    case sent
    case retry(RetryReason, delayMs: UInt64?)
    case pause
    case refuse

    /// - Parameter isOnlyIfAbsent: the request said `If-None-Match: *`, so 412 means already there.
    static func judge(
        _ outcome: TransferOutcome, isCollector: Bool, isOnlyIfAbsent: Bool, nowUnixMs: UInt64
    ) -> Verdict {
        if outcome.isStopped { return .retry(.stopped, delayMs: 0) }
        switch outcome.kind {
        case .success: return .sent
        case .requestFailed, .none:
            return .retry(outcome.isUnreachable ? .unreachable : .failed, delayMs: nil)
        case .client where outcome.httpStatus == 412 && isOnlyIfAbsent: return .sent
        case .client where outcome.httpStatus == 401 || outcome.httpStatus == 403: return .pause
        case .unknown where outcome.httpStatus == 0: return .retry(.failed, delayMs: nil)
        default: break
        }
        guard Backoff.isRetryable(httpStatus: outcome.httpStatus, isCollector: isCollector) else {
            return .refuse
        }
        let wait = outcome.retryAfter.flatMap { RetryAfter.delayMs($0, nowUnixMs: nowUnixMs) }
        guard let wait else { return .retry(.failed, delayMs: nil) }
        // "Now" asks for no patience; a second keeps us from turning in circles.
        if wait == 0 { return .retry(.failed, delayMs: Backoff.delayMsMin) }
        return .retry(.server, delayMs: wait)
    }
}
