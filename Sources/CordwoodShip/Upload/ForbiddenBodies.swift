// The 403s of one target in this process. A 403 refuses either us, or a body whose content a
// firewall before the server dislikes; whether the target takes another archive tells which. Until
// it does, tests come in growing intervals; once it has, the refused archives are cut, with a limit
// on refusals an hour, because a firewall may lock out whoever is refused often. A value, guarded
// by the runner's gate.

struct ForbiddenBodies: Equatable, Sendable {
    /// Attempts in a row that ended with 403, each begun after the one before had ended, with
    /// nothing taken in between. From the second on the target refuses us, as far as can be seen.
    private(set) var inRow: UInt32 = 0
    /// Unix ms: before this, no refused archive is tried again and, from the second in a row on, no
    /// other one either.
    private(set) var untilMs: UInt64 = 0
    /// Unix ms of the refusals within the last hour; at most `perHourMax`, oldest first.
    private var recentMs: [UInt64] = []

    static let perHourMax = 16
    static let hourMs: UInt64 = 3_600_000

    /// The target's protocol says that it refuses us.
    var isCertain: Bool { inRow == .max }
    var refusesUs: Bool { inRow >= 2 }

    mutating func noteBody(nowMs: UInt64) {
        recentMs = within(nowMs).suffix(ForbiddenBodies.perHourMax - 1) + [nowMs]
    }

    /// Whether one more body may be refused.
    func mayAsk(nowMs: UInt64) -> Bool { within(nowMs).count < ForbiddenBodies.perHourMax }

    /// An attempt ended with 403, and nothing says that its archive is at fault.
    /// - Parameters:
    ///   - before: `inRow` when it began.
    ///   - random: all 64 bits are used.
    mutating func noteRefused(before: UInt32, nowMs: UInt64, random: UInt64) {
        guard before < .max else { return }
        inRow = max(inRow, before + 1)
        let rest = Backoff.restMs(refusals: max(inRow, 2) - 1, random: random)
        untilMs = max(nowMs &+ rest, freeMs(nowMs))
    }

    /// The protocol says that we are refused: only an explicit call tries again.
    mutating func noteCertain() { inRow = .max }

    /// The archive is at fault: it goes on when the hour allows.
    mutating func noteAtFault(nowMs: UInt64) {
        untilMs = inRow == 0 ? freeMs(nowMs) : max(untilMs, freeMs(nowMs))
    }

    /// The target has taken a body.
    mutating func noteTaken(nowMs: UInt64) {
        inRow = 0
        untilMs = freeMs(nowMs)
    }

    /// When one more body may be refused; 0: now.
    private func freeMs(_ nowMs: UInt64) -> UInt64 {
        let recent = within(nowMs)
        guard recent.count >= ForbiddenBodies.perHourMax, let first = recent.first else { return 0 }
        return first &+ ForbiddenBodies.hourMs
    }

    /// A time ahead of ours comes from a clock that was set back: it does not count.
    private func within(_ nowMs: UInt64) -> [UInt64] {
        recentMs.filter { $0 <= nowMs && nowMs - $0 < ForbiddenBodies.hourMs }
    }
}
