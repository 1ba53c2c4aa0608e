// What a server's answers taught us of what it takes: the encoding, and how large a body may be. A
// limit is tried again now and then, for the proxy that set it may be gone. In memory: a restart
// asks anew. Pure.

struct LearnedLimits: Equatable, Sendable {
    /// Simpler than the target's own where the server refused that one and took this.
    private(set) var encoding: BodyEncoding
    /// The server has taken a body in this encoding: a 400 is about the content then.
    private(set) var isEncodingProven = false
    /// Bodies of several records stay below it, for the server refused larger ones; 0: none.
    private(set) var bytesMax: UInt64 = 0

    /// Bodies since the limit was last changed.
    private var bodies: UInt32 = 0
    /// The last change made it larger.
    private var hasGrown = false
    /// Monotonic ms; it does not grow before.
    private var fixedUntilMs: UInt64 = 0

    /// So many bodies below the limit, and it grows by a quarter.
    static let bodiesToGrow: UInt32 = 16
    /// What is refused again so soon after it has grown is the server's limit, for so long.
    static let fixedMs: UInt64 = 3_600_000

    struct Taken: Sendable {
        var encoding: BodyEncoding
        /// What the attempt kept to; 0: none.
        var bytesMax: UInt64 = 0
    }

    init(encoding: BodyEncoding) {
        self.encoding = encoding
    }

    /// - Parameters:
    ///   - nowMs: monotonic.
    ///   - bodyBytesMax: the target's own limit; a learnt one that reaches it is dropped. 0: the
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
