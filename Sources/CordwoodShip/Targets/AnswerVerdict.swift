// What the end of an exchange means for the part that was sent (TARGETS, rules for every target).
// Pure.

import CordwoodStore

/// Records of a body that its server will not take, and said so.
struct Refused: Equatable {
    var count: UInt32 = 0
    /// Which they are; empty: the server does not say.
    var ordinals: [UInt64] = []

    static let none = Refused()
}

enum AnswerVerdict: Equatable {
    /// The server has it, but for what it refuses.
    case sent(Refused)
    /// The server has it but for these records, by ordinal, which it asks for again, and those that
    /// it refuses.
    case partly(again: Set<UInt64>, Refused, RetryReason, delayMs: UInt64?)
    /// `delayMs`: as the server says, 0 being "now"; nil: it says nothing.
    case retry(RetryReason, delayMs: UInt64?)
    /// Other credentials are needed.
    case pause
    /// Too large: half of it is tried at once.
    case shrink
    /// Not in this encoding: a simpler one is tried at once.
    case simplify
    /// Refused, for what the body holds, it says: half of it is the question whether that is so.
    case refuse
    /// The answer is not this protocol's, or not about a body: something is wrong with the way
    /// there (a redirection, an error page, a path or a table that is not there).
    case stray

    /// - Parameters:
    ///   - isCollector: 409 says that an earlier attempt with the same id is being taken in.
    ///   - isOnlyIfAbsent: the request said `If-None-Match: *`, so 412 means already there.
    ///   - isEncodingProven: the body has no encoding, or the server has taken this one before: a
    ///     400 is about the content.
    static func judge(
        _ outcome: TransferOutcome, isCollector: Bool, isOnlyIfAbsent: Bool,
        isEncodingProven: Bool, nowUnixMs: UInt64
    ) -> AnswerVerdict {
        if outcome.isStopped { return .retry(.stopped, delayMs: 0) }
        switch outcome.kind {
        case .success: return .sent(.none)
        case .requestFailed, .none:
            return .retry(outcome.isUnreachable ? .unreachable : .failed, delayMs: nil)
        case .unknown where outcome.httpStatus == 0: return .retry(.failed, delayMs: nil)
        default: break
        }
        switch outcome.httpStatus {
        case 412 where isOnlyIfAbsent: return .sent(.none)
        case 401, 403: return .pause
        case 413: return .shrink
        case 415: return .simplify
        case 400 where !isEncodingProven: return .simplify
        case 400, 422: return .refuse
        default: break
        }
        guard Backoff.isRetryable(httpStatus: outcome.httpStatus, isCollector: isCollector) else {
            return .stray
        }
        return retry(outcome, nowUnixMs: nowUnixMs)
    }

    /// When the server says, else when we would.
    static func retry(_ outcome: TransferOutcome, nowUnixMs: UInt64) -> AnswerVerdict {
        let wait = outcome.header("retry-after").flatMap {
            RetryAfter.delayMs($0, nowUnixMs: nowUnixMs)
        }
        guard let wait else {
            // Too much to do, it says: a request for each archive that waits would be more of it.
            let isBusy = outcome.httpStatus == 429 || outcome.httpStatus == 503
            return .retry(isBusy ? .busy : .failed, delayMs: nil)
        }
        // "Now" is said of us alone: the target's other archives need not wait.
        if wait == 0 { return .retry(.failed, delayMs: 0) }
        return .retry(.server, delayMs: wait)
    }
}
