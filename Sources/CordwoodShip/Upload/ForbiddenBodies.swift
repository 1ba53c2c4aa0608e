// The 403s of one target in this process. A 403 refuses either us, or a body whose content a
// firewall before the server dislikes; whether the target takes another archive tells which. Until
// it does, tests come in growing intervals; once it has, the refused archives are cut. A firewall
// may lock out whoever is refused often, so there is a limit on refusals an hour, of whatever
// archive. A value, guarded by the runner's gate.

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
    /// Archives that were refused before get fewer, so that new ones may go on beside them.
    static let againPerHourMax = 12
    static let hourMs: UInt64 = 3_600_000

    /// The target's protocol says that it refuses us.
    var isCertain: Bool { inRow == .max }
    var refusesUs: Bool { inRow >= 2 }

    mutating func noteBody(nowMs: UInt64) {
        recentMs = within(nowMs).suffix(ForbiddenBodies.perHourMax - 1) + [nowMs]
    }

    /// Unix ms: when one more body may be refused; 0: now.
    /// - Parameter again: a body of an archive that was refused before.
    func freeMs(again: Bool, nowMs: UInt64) -> UInt64 {
        let most = again ? ForbiddenBodies.againPerHourMax : ForbiddenBodies.perHourMax
        guard recentMs.count >= most else { return 0 }
        let recent = within(nowMs)
        return recent.count < most ? 0 : recent[recent.count - most] &+ ForbiddenBodies.hourMs
    }

    /// How many more bodies may be refused within this hour.
    func left(nowMs: UInt64) -> Int { ForbiddenBodies.perHourMax - within(nowMs).count }

    /// An attempt ended with 403, and nothing says that its archive is at fault.
    /// - Parameters:
    ///   - before: `inRow` when it began.
    ///   - random: all 64 bits are used.
    mutating func noteRefused(before: UInt32, nowMs: UInt64, random: UInt64) {
        guard before < .max else { return }
        inRow = max(inRow, before + 1)
        let rest = Backoff.restMs(refusals: max(inRow, 2) - 1, random: random)
        untilMs = nowMs &+ rest
    }

    /// The protocol says that we are refused: only an explicit call tries again.
    mutating func noteCertain() { inRow = .max }

    /// The target has taken a body.
    mutating func noteTaken() { (inRow, untilMs) = (0, 0) }

    /// A time ahead of ours comes from a clock that was set back: it does not count.
    private func within(_ nowMs: UInt64) -> [UInt64] {
        recentMs.filter { $0 <= nowMs && nowMs - $0 < ForbiddenBodies.hourMs }
    }
}
