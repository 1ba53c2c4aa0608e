// When a following reader has to look again. Writers notify nobody of a record: writing one is a
// few stores into a mapped page, and a call to wake readers would cost more. A reader can wait for
// new names in the store's directories (segments, lanes, archives), and for the time at which a
// record that it saw has been held long enough for slower threads. It looks into lanes that may
// grow slightly more often than that time, so every record is found while it would be held anyway,
// and is returned as soon as it may be. A value; any thread.

import CShims
import CordwoodCore

package struct FollowWait: Sendable {
    /// Not before this, whatever happens (monotonic ns): one look then finds many records.
    package var earliest: UInt64
    /// At this time even if no directory has changed.
    package var latest: UInt64

    private static let shortestNs: UInt64 = 10_000_000
    /// Shorter than StoreView.reorderWindowNs.
    private static let lookNs: UInt64 = 90_000_000
    /// If no lane can grow, only new names can appear. Names made on other machines are not
    /// reported.
    private static let stillNs: UInt64 = 1_000_000_000

    /// - Parameters:
    ///   - isGrowing: a lane may grow without a change of the directories.
    ///   - held: the time of the oldest held record; nil: none is held.
    init(isGrowing: Bool, held: UInt64?) {
        let now = cw_monotonic_ns()
        earliest = now &+ FollowWait.shortestNs
        if let held {
            // A damaged lane may contain any time.
            latest = max(earliest, min(held, now) &+ StoreView.reorderWindowNs &+ 1)
        } else {
            latest = now &+ (isGrowing ? FollowWait.lookNs : FollowWait.stillNs)
        }
    }

    /// Blocks the calling thread until it is time to look.
    func block(_ watch: DirectoryWatch) {
        guard watch.hasNews(within: FollowWait.ms(until: latest)) else { return }
        watch.drain()
        let rest = FollowWait.ms(until: earliest)
        ThreadIdentity.pause(microseconds: UInt32(clamping: Int64(rest) * 1_000))
    }

    private static func ms(until time: UInt64) -> Int32 {
        let now = cw_monotonic_ns()
        return time <= now ? 0 : Int32(clamping: (time - now + 999_999) / 1_000_000)
    }
}
