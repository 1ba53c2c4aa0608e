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
    private var forbidden = ForbiddenBodies()
    /// An archive was answered 403 and waits.
    private var hasForbidden = false

    init() {}

    init(
        _ snapshot: OutboxSnapshot, _ target: TargetKey, isOpen: Bool,
        forbidden: ForbiddenBodies = ForbiddenBodies(), nowMs: UInt64
    ) {
        know(isOpen: isOpen, forbidden)
        for states in snapshot.pairs.values {
            if let state = states[target] { note(state, nowMs: nowMs) }
        }
    }

    mutating func know(isOpen: Bool, _ forbidden: ForbiddenBodies) {
        self.isOpen = isOpen
        self.forbidden = forbidden
    }

    mutating func note(_ state: PairState, nowMs: UInt64) {
        switch state {
        case .retry(_, let notBeforeMs, .server, _):
            isBusy = true
            serverMs = max(serverMs, TargetHold.believed(notBeforeMs, nowMs: nowMs))
        case .retry(_, let notBeforeMs, let reason, _)
        where reason == .unreachable || reason == .busy:
            isBusy = isBusy || reason == .busy
            unreachableMs = max(unreachableMs, TargetHold.believed(notBeforeMs, nowMs: nowMs))
        case .retry(_, let notBeforeMs, .refused, _):
            isProbing = true
            guard !isOpen else { return }
            refusedMs = max(refusedMs, TargetHold.believed(notBeforeMs, nowMs: nowMs))
        case .paused(_, HTTPStatus.forbidden, _):
            hasForbidden = true
            isProbing = isProbing || !isOpen
        case .paused: isPaused = true
        default: break
        }
    }

    /// The target refuses us, as far as can be seen: it gets tests only.
    var refusesUs: Bool { hasForbidden && !isOpen && forbidden.refusesUs }

    /// The server reported overload, perhaps because of one body.
    private(set) var isBusy = false

    /// An archive was refused in a way that says nothing about it: the next one is a test, sent
    /// alone.
    private(set) var isProbing = false

    /// The target has taken a body.
    mutating func noteTaken() {
        isOpen = true
        isProbing = false
        refusedMs = 0
    }

    /// Neither a new archive nor an old one may be refused within this hour.
    func isSpent(nowMs: UInt64) -> Bool { forbidden.left(nowMs: nowMs) == 0 }

    func allows(_ state: PairState, explicit: Bool, nowMs: UInt64) -> Bool {
        if isRefused || serverMs > nowMs { return false }
        // A call may always test whether the target takes anything; if it does, there is nothing
        // to test.
        if explicit { return !isOpen || !isForbidden(state) || freeMs(state, nowMs: nowMs) == 0 }
        if isPaused || unreachableMs > nowMs || refusedMs > nowMs { return false }
        guard let dueMs = dueMs(state, nowMs: nowMs) else { return false }
        return dueMs <= nowMs
    }

    /// When the background may try this pair; nil: not by itself, or with the next tick.
    func wakeMs(_ state: PairState, nowMs: UInt64) -> UInt64? {
        guard !isPaused, let dueMs = dueMs(state, nowMs: nowMs) else { return nil }
        if state == .waiting, dueMs == 0 { return nil }
        return max(serverMs, unreachableMs, refusedMs, dueMs)
    }

    /// When this pair may be tried, as far as the target's other archives allow; nil: not by
    /// itself.
    private func dueMs(_ state: PairState, nowMs: UInt64) -> UInt64? {
        if refusesUs, forbidden.isCertain { return nil }
        let restMs = TargetHold.believed(forbidden.untilMs, nowMs: nowMs)
        let freeMs = freeMs(state, nowMs: nowMs)
        let testMs = refusesUs ? max(restMs, freeMs) : freeMs
        switch state {
        case .retry(_, let notBeforeMs, let reason, _):
            if reason == .refused && isOpen { return testMs }
            return max(testMs, TargetHold.believed(notBeforeMs, nowMs: nowMs))
        // Refused by another process, which will try again itself.
        case .paused where !isOpen && forbidden.inRow == 0: return nil
        case .paused: return max(restMs, freeMs)
        default: return testMs
        }
    }

    private func isForbidden(_ state: PairState) -> Bool {
        if case .paused(_, HTTPStatus.forbidden, _) = state { true } else { false }
    }

    private func freeMs(_ state: PairState, nowMs: UInt64) -> UInt64 {
        forbidden.freeMs(again: isForbidden(state), nowMs: nowMs)
    }

    /// Every second test goes on with the archive that was cut furthest, because each may hold
    /// records that a firewall dislikes: one that is halved again and again ends with a body that
    /// the target takes, if it takes any.
    func begun(_ states: [PairState]) -> Int? {
        guard refusesUs, forbidden.inRow % 2 == 1 else { return nil }
        return states.indices.filter { isForbidden(states[$0]) && states[$0].progress.doubt > 0 }
            .max { states[$0].attempts < states[$1].attempts }
    }

    /// We never write a time more than a day ahead: such a time comes from another clock.
    private static func believed(_ notBeforeMs: UInt64, nowMs: UInt64) -> UInt64 {
        let (limit, overflow) = nowMs.addingReportingOverflow(RetryAfter.delayMsMax)
        return !overflow && notBeforeMs > limit ? 0 : notBeforeMs
    }
}
