// How long to wait before the next try: exponential backoff with full jitter. Pure; the caller
// supplies randomness.

enum Backoff {
    static let delayMsMin: UInt64 = 1_000
    static let delayMsMax: UInt64 = 3_600_000

    /// The delay after `attempts` failures: random between a second and 2^attempts seconds, at most
    /// an hour.
    /// - Parameter random: all 64 bits are used.
    static func delayMs(attempts: UInt32, random: UInt64) -> UInt64 {
        let ceiling = attempts >= 12 ? delayMsMax : min(delayMsMax, delayMsMin << UInt64(attempts))
        let span = ceiling - delayMsMin + 1
        return delayMsMin + random.multipliedFullWidth(by: span).high
    }

    /// The delay if the server says "now": a second, for three attempts. If the server still says
    /// so, it has not checked its clock, and the delay grows.
    /// - Parameter random: all 64 bits are used.
    static func soonMs(attempts: UInt32, random: UInt64) -> UInt64 {
        attempts <= soonAttempts
            ? delayMsMin : delayMs(attempts: attempts - soonAttempts, random: random)
    }

    private static let soonAttempts: UInt32 = 3

    /// The delay for a server that accepts bodies but is briefly overloaded (429 without
    /// Retry-After, between two refills of its rate): up to two seconds, for six attempts, so that
    /// at most that much of a refill is lost. A server that still says so is overloaded.
    /// - Parameter random: all 64 bits are used.
    static func busyMs(attempts: UInt32, random: UInt64) -> UInt64 {
        delayMs(
            attempts: attempts <= busyAttempts ? 1 : attempts - busyAttempts + 1, random: random)
    }

    private static let busyAttempts: UInt32 = 6

    /// The rest of a target whose refusals suggest an error on the way: a minute, then twice as
    /// long each time, at most six hours. Adds up to an eighth, because a whole fleet is refused at
    /// once.
    /// - Parameters:
    ///   - refusals: consecutive refusals, from 1.
    ///   - random: all 64 bits are used.
    static func restMs(refusals: UInt32, random: UInt64) -> UInt64 {
        let doublings = UInt64(min(max(refusals, 1) - 1, 16))
        let rest = min(restMsMin << doublings, restMsMax)
        return rest + random.multipliedFullWidth(by: rest / 8 + 1).high
    }

    static let restMsMin: UInt64 = 60_000
    static let restMsMax: UInt64 = 21_600_000

    /// Added to a server's delay, because it names the same date to all clients: up to an eighth of
    /// the wait, at most five minutes. Adds nothing below half a minute: such an answer is meant
    /// for this client.
    /// - Parameter random: all 64 bits are used.
    static func spreadMs(delayMs: UInt64, random: UInt64) -> UInt64 {
        guard delayMs >= spreadFromMs else { return 0 }
        return random.multipliedFullWidth(by: min(delayMs / 8, spreadMsMax) + 1).high
    }

    static let spreadFromMs: UInt64 = 30_000

    static let spreadMsMax: UInt64 = 300_000
}
