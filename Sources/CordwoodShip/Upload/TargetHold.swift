// Reasons that hold back all of a target's archives: a server's Retry-After, an absent server,
// refused credentials, answers of another protocol. Derived from the states of its archives, so it
// survives a restart. Pure.

import CordwoodStore

struct TargetHold: Equatable {
    /// Unix ms; set by the server.
    var serverMs: UInt64 = 0
    /// Unix ms; nothing answered, or the server only reported overload.
    var unreachableMs: UInt64 = 0
    /// Unix ms; the way to the server has an error.
    private(set) var refusedMs: UInt64 = 0
    var isPaused = false
    /// Refused in this very run: more attempts would only lock accounts, or flood the server.
    var isRefused = false
    /// The target has taken a body since it was last refused: earlier refusals no longer hold back
    /// an archive, neither the refused one nor any other.
    private(set) var isOpen = false

    init() {}

    init(_ snapshot: OutboxSnapshot, _ target: TargetKey, isOpen: Bool, nowMs: UInt64) {
        self.isOpen = isOpen
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
        case .retry(_, let notBeforeMs, .refused, _):
            isProbing = true
            guard !isOpen else { return }
            refusedMs = max(refusedMs, TargetHold.believed(notBeforeMs, nowMs: nowMs))
        case .paused: isPaused = true
        default: break
        }
    }

    /// An archive was refused in a way that says nothing about it: the next one is a test, sent
    /// alone.
    private(set) var isProbing = false

    /// The target has taken a body.
    mutating func noteTaken() {
        isOpen = true
        isProbing = false
        refusedMs = 0
    }

    func allows(_ state: PairState, explicit: Bool, nowMs: UInt64) -> Bool {
        if isRefused || serverMs > nowMs { return false }
        if explicit { return true }
        if isPaused || unreachableMs > nowMs || refusedMs > nowMs { return false }
        return dueMs(state, nowMs: nowMs) <= nowMs
    }

    /// When the background may try this pair; nil: not by itself.
    func wakeMs(_ state: PairState, nowMs: UInt64) -> UInt64? {
        guard !isPaused, case .retry = state else { return nil }
        return max(serverMs, unreachableMs, refusedMs, dueMs(state, nowMs: nowMs))
    }

    private func dueMs(_ state: PairState, nowMs: UInt64) -> UInt64 {
        guard case .retry(_, let notBeforeMs, let reason, _) = state else { return 0 }
        if reason == .refused && isOpen { return 0 }
        return TargetHold.believed(notBeforeMs, nowMs: nowMs)
    }

    /// We never write a time more than a day ahead: such a time comes from another clock.
    private static func believed(_ notBeforeMs: UInt64, nowMs: UInt64) -> UInt64 {
        let (limit, overflow) = nowMs.addingReportingOverflow(RetryAfter.delayMsMax)
        return !overflow && notBeforeMs > limit ? 0 : notBeforeMs
    }
}
