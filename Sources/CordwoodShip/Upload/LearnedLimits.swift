// Limits learnt from a server's answers: the encoding it accepts, and the size of a body. A limit
// is tested again now and then, because the proxy that set it may be gone. In memory: a restart
// learns anew. Pure.

struct LearnedLimits: Equatable, Sendable {
    /// Simpler than the target's own encoding if the server refused that one and accepted this one.
    private(set) var encoding: BodyEncoding
    /// The server has accepted a body in this encoding, so a 400 is about the content.
    private(set) var isEncodingProven = false
    /// Bodies of several records stay below it, because the server refused larger ones; 0: none.
    private(set) var bytesMax: UInt64 = 0

    /// Bodies since the limit was last changed.
    private var bodies: UInt32 = 0
    /// The last change raised it.
    private var hasGrown = false
    /// Monotonic ms; until then it does not grow.
    private var fixedUntilMs: UInt64 = 0

    /// After this many bodies below the limit, it grows by a quarter.
    static let bodiesToGrow: UInt32 = 16
    /// A size refused again this soon after growing is the server's limit; it stays fixed that
    /// long.
    static let fixedMs: UInt64 = 3_600_000

    struct Taken: Sendable {
        var encoding: BodyEncoding
        /// The limit that the attempt kept to; 0: none.
        var bytesMax: UInt64 = 0
    }

    init(encoding: BodyEncoding) {
        self.encoding = encoding
    }

    /// - Parameters:
    ///   - nowMs: monotonic.
    ///   - bodyBytesMax: the target's own limit; a learnt limit that reaches it is dropped. 0: the
    ///     target has none.
    mutating func note(_ taken: Taken, nowMs: UInt64, bodyBytesMax: UInt64) {
        encoding = taken.encoding
        isEncodingProven = true
        if taken.bytesMax > 0, bytesMax == 0 || taken.bytesMax < bytesMax {
            if hasGrown && bodies < LearnedLimits.bodiesToGrow {
                fixedUntilMs = nowMs &+ LearnedLimits.fixedMs
            }
            bytesMax = taken.bytesMax
            bodies = 0
            hasGrown = false
            return
        }
        guard bytesMax > 0 else { return }
        bodies &+= 1
        guard bodies >= LearnedLimits.bodiesToGrow, nowMs >= fixedUntilMs else { return }
        bodies = 0
        hasGrown = true
        bytesMax += max(1, bytesMax / 4)
        let enough = bodyBytesMax > 0 ? bodyBytesMax : 1 << 40
        if bytesMax >= enough { bytesMax = 0 }
    }
}
