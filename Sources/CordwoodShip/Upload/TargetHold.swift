// What keeps a target's archives back as a whole: a server's Retry-After, a server that is not
// there, refused credentials. Derived from the states of its archives, so it survives a restart.
// Pure.

struct TargetHold: Equatable {
    /// Unix ms; the server said so.
    var serverMs: UInt64 = 0
    /// Unix ms; nothing answered, or only that there is too much to do.
    var unreachableMs: UInt64 = 0
    var isPaused = false
    /// Refused in this very run: more of the same would only lock accounts.
    var isRefused = false

    init(_ snapshot: OutboxSnapshot, _ target: TargetKey, nowMs: UInt64) {
        for states in snapshot.pairs.values {
            if let state = states[target] { note(state, nowMs: nowMs) }
        }
    }

    mutating func note(_ state: PairState, nowMs: UInt64) {
        switch state {
        case .retry(_, let notBeforeMs, .server, _):
            serverMs = max(serverMs, TargetHold.believed(notBeforeMs, nowMs: nowMs))
        case .retry(_, let notBeforeMs, .unreachable, _), .retry(_, let notBeforeMs, .busy, _):
            unreachableMs = max(unreachableMs, TargetHold.believed(notBeforeMs, nowMs: nowMs))
        case .paused: isPaused = true
        default: break
        }
    }

    func allows(_ state: PairState, explicit: Bool, nowMs: UInt64) -> Bool {
        if isRefused || serverMs > nowMs { return false }
        if explicit { return true }
        if isPaused || unreachableMs > nowMs { return false }
        return TargetHold.dueMs(state, nowMs: nowMs) <= nowMs
    }

    /// When the background may try this pair; nil: not by itself.
    func wakeMs(_ state: PairState, nowMs: UInt64) -> UInt64? {
        guard !isPaused, case .retry = state else { return nil }
        return max(serverMs, unreachableMs, TargetHold.dueMs(state, nowMs: nowMs))
    }

    private static func dueMs(_ state: PairState, nowMs: UInt64) -> UInt64 {
        guard case .retry(_, let notBeforeMs, _, _) = state else { return 0 }
        return believed(notBeforeMs, nowMs: nowMs)
    }

    /// We never write a time more than a day ahead: one that is was written by another clock.
    private static func believed(_ notBeforeMs: UInt64, nowMs: UInt64) -> UInt64 {
        let (limit, overflow) = nowMs.addingReportingOverflow(RetryAfter.delayMsMax)
        return !overflow && notBeforeMs > limit ? 0 : notBeforeMs
    }
}
