// What one target made of one archive, and how it is written as the end of a file name. The
// states, who moves between them and what a crash leaves are drawn in docs/UPLOADS.md. Pure.

/// Why an attempt has to be repeated.
public enum RetryReason: String, Sendable {
    /// The server said when (Retry-After). Holds all archives of the target, also in explicit
    /// calls.
    case server
    /// Nothing answers there. Holds all archives of the target in the background.
    case unreachable
    /// This transfer failed. Holds this archive alone.
    case failed
    /// We broke it off: time ran out, or the engine closes. Holds nothing.
    case stopped
}

public enum PairState: Equatable, Sendable {
    /// No file.
    case waiting
    case retry(attempts: UInt32, notBeforeMs: UInt64, reason: RetryReason)
    /// 401 or 403: waits for other credentials or an explicit call.
    case paused(attempts: UInt32, httpStatus: Int32)
    case sent(httpStatus: Int32)
    /// The target will never take it; 0: it could not even be read.
    case quarantined(httpStatus: Int32)
    /// A state that a newer version wrote: neither sent nor deleted by us.
    case unknown(String)

    var attempts: UInt32 {
        switch self {
        case .retry(let attempts, _, _), .paused(let attempts, _): return attempts
        default: return 0
        }
    }

    /// No further attempt is made.
    var isFinal: Bool {
        switch self {
        case .sent, .quarantined, .unknown: return true
        default: return false
        }
    }

    var isSent: Bool {
        if case .sent = self { return true }
        return false
    }

    /// nil for `waiting`, which has no file.
    var suffix: String? {
        switch self {
        case .waiting: return nil
        case .retry(let attempts, let notBeforeMs, let reason):
            return "retry-\(attempts)-\(notBeforeMs)-\(reason.rawValue)"
        case .paused(let attempts, let status): return "paused-\(attempts)-\(status)"
        case .sent(let status): return "sent-\(status)"
        case .quarantined(let status): return "quarantined-\(status)"
        case .unknown(let text): return text
        }
    }

    init(suffix: Substring) {
        let parts = suffix.split(separator: "-", omittingEmptySubsequences: false)
        let numbers = parts.dropFirst().prefix(2).map { UInt64($0) }
        switch (parts.first, parts.count) {
        case ("retry", 4):
            if let attempts = numbers[0].flatMap({ UInt32(exactly: $0) }), let time = numbers[1],
                let reason = RetryReason(rawValue: String(parts[3]))
            {
                self = .retry(attempts: attempts, notBeforeMs: time, reason: reason)
                return
            }
        case ("paused", 3):
            if let attempts = numbers[0].flatMap({ UInt32(exactly: $0) }),
                let status = numbers[1].flatMap({ Int32(exactly: $0) })
            {
                self = .paused(attempts: attempts, httpStatus: status)
                return
            }
        case ("sent", 2), ("quarantined", 2):
            if let status = numbers[0].flatMap({ Int32(exactly: $0) }) {
                let isSent = parts[0] == "sent"
                self = isSent ? .sent(httpStatus: status) : .quarantined(httpStatus: status)
                return
            }
        default: break
        }
        self = .unknown(String(suffix))
    }

    /// Where a crash left two files for one pair, the one that went further holds.
    static func further(_ a: PairState, _ b: PairState) -> PairState {
        func rank(_ state: PairState) -> (Int, UInt32) {
            switch state {
            case .waiting: return (0, 0)
            case .retry(let attempts, _, _): return (1, attempts)
            case .paused(let attempts, _): return (2, attempts)
            case .unknown: return (3, 0)
            case .quarantined: return (4, 0)
            case .sent: return (5, 0)
            }
        }
        return rank(a) >= rank(b) ? a : b
    }
}
