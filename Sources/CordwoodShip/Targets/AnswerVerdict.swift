// Judges what the end of an exchange means for the part that was sent. The rules hold for every
// kind of target; a kind's dialect first judges its special cases (docs/UPLOADS.md, Answers). Pure.

import CordwoodStore

/// Records of a body that the server explicitly refused.
struct Refused: Equatable {
    var count: UInt32 = 0
    /// The records' ordinals; empty: the server does not name them.
    var ordinals: [UInt64] = []

    static let none = Refused()
}

enum AnswerVerdict: Equatable {
    /// The server has the part, except for the records it refuses.
    case sent(Refused)
    /// The server has the part, except for the records (by ordinal) that it asks for again and
    /// those that it refuses.
    case partly(again: Set<UInt64>, Refused, RetryReason, delayMs: UInt64?)
    /// `delayMs`: the server's delay, where 0 means "now"; nil: it named none.
    case retry(RetryReason, delayMs: UInt64?)
    /// Other credentials are needed.
    case pause
    /// 403: the target refuses us, or a firewall before it refuses this body.
    case forbid
    /// Too large: half of it is tried at once.
    case shrink
    /// The encoding was refused: a simpler one is tried at once.
    case simplify
    /// The server claims that the body's content is at fault; sending half of it tests the claim.
    case refuse
    /// The answer is not of this protocol, or not about a body: something on the way is wrong (a
    /// redirection, an error page, a missing path or table).
    case stray

    /// - Parameters:
    ///   - isCollector: 409 means that an archive of the same segments is being judged.
    ///   - isOnlyIfAbsent: the request said `If-None-Match: *`, so 412 means already present.
    ///   - isEncodingProven: the body has no encoding, or the server has accepted this one before,
    ///     so a 400 is about the content.
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
        case HTTPStatus.unauthorized: return .pause
        case HTTPStatus.forbidden: return .forbid
        case 413: return .shrink
        case 415: return .simplify
        case 400 where !isEncodingProven: return .simplify
        case 400, 422: return .refuse
        default: break
        }
        guard mayPass(outcome.httpStatus, isCollector: isCollector) else {
            return .stray
        }
        return retry(outcome, nowUnixMs: nowUnixMs)
    }

    /// True if the same request may succeed later.
    private static func mayPass(_ httpStatus: Int32, isCollector: Bool) -> Bool {
        switch httpStatus {
        case 408, 425, 429, 500, 502, 503, 504, 507: true
        // The collector is still receiving an earlier attempt with the same id.
        case 409: isCollector
        default: false
        }
    }

    /// The server reports overload.
    static func isOverload(_ httpStatus: some BinaryInteger) -> Bool {
        httpStatus == 429 || httpStatus == 503
    }

    /// Retries when the server says, otherwise after our own delay.
    static func retry(_ outcome: TransferOutcome, nowUnixMs: UInt64) -> AnswerVerdict {
        guard let wait = RetryAfter.delayMs(outcome, nowUnixMs: nowUnixMs) else {
            // The server reports overload: one request for each waiting archive would add to it.
            let isBusy = isOverload(outcome.httpStatus)
            return .retry(isBusy ? .busy : .failed, delayMs: nil)
        }
        // "Now" applies to this archive only: the target's other archives need not wait.
        if wait == 0 { return .retry(.failed, delayMs: 0) }
        return .retry(.server, delayMs: wait)
    }
}
