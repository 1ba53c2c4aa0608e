// Whether the wall clock may be believed when archives are removed by their age. One jump forward
// would delete all of them, sent or not; so a jump, and a pause that cannot be told from one, makes
// removal by age wait for a day in which the machine runs. The rule is pure; ClockFile keeps what
// it has seen. Quota and count are no matter of time and go on.

import CordwoodCore

/// The clocks at one moment.
package struct ClockLook: Equatable {
    /// Zero: not known.
    package var boot: LaneID
    /// CLOCK_BOOTTIME, which runs on while the machine sleeps and is set by nobody.
    package var boottimeNs: UInt64
    package var realtimeNs: UInt64

    package init(boot: LaneID, boottimeNs: UInt64, realtimeNs: UInt64) {
        self.boot = boot
        self.boottimeNs = boottimeNs
        self.realtimeNs = realtimeNs
    }
}

package struct AgeTrust: Equatable {
    /// What one boot of one machine saw last. Several share a store on a network file system, and
    /// each judges its own clock.
    struct Anchor: Equatable {
        var look: ClockLook
        /// CLOCK_BOOTTIME of that boot at which removal by age goes on; 0: it does not wait.
        var waitsUntilNs: UInt64
    }

    package enum ClockVerdict: Equatable {
        case believed
        /// begins: this look found why.
        case waits(leftNs: UInt64, begins: Bool)
    }

    static let anchorsMax = 8
    static let waitNs: UInt64 = 86_400_000_000_000
    /// A pause this long is nothing special; what jumped less removes nothing early that matters.
    static let pauseNs: UInt64 = 86_400_000_000_000
    static let jumpNs: UInt64 = 3_600_000_000_000
    /// How old an anchor may get before it is worth writing anew.
    static let refreshNs: UInt64 = 3_600_000_000_000

    /// In the order in which they looked.
    var anchors: [Anchor] = []

    /// - Parameter newestRecordNs: UTC of the newest record in an archive; 0: not known.
    package mutating func look(_ now: ClockLook, newestRecordNs: UInt64) -> ClockVerdict {
        let own = anchors.firstIndex { $0.look.boot == now.boot }
        var until: UInt64
        let begins: Bool
        if let own {
            // Boot time vouches for all that passed since.
            let last = anchors[own]
            begins = AgeTrust.hasJumped(from: last.look, to: now)
            until = last.waitsUntilNs
        } else {
            // Nothing vouches for the time between two boots: what is longer than a day may be a
            // jump.
            let before = anchors.last?.look.realtimeNs ?? newestRecordNs
            let (bound, overflow) = before.addingReportingOverflow(AgeTrust.pauseNs)
            begins = before > 0 && !overflow && now.realtimeNs > bound
            // What another boot had still to wait.
            until =
                anchors.last.map { $0.waitsUntilNs - min($0.look.boottimeNs, $0.waitsUntilNs) }
                ?? 0
        }
        if begins { until = now.boottimeNs &+ AgeTrust.waitNs }
        if now.boottimeNs >= until { until = 0 }
        if let own { anchors.remove(at: own) }
        if anchors.count >= AgeTrust.anchorsMax { anchors.removeFirst() }
        anchors.append(Anchor(look: now, waitsUntilNs: until))
        return until == 0 ? .believed : .waits(leftNs: until - now.boottimeNs, begins: begins)
    }

    /// Whether the two clocks went on by different times.
    private static func hasJumped(from last: ClockLook, to now: ClockLook) -> Bool {
        let before = last.realtimeNs &- last.boottimeNs
        let after = now.realtimeNs &- now.boottimeNs
        return min(after &- before, before &- after) > jumpNs
    }

    /// Whether what was read and became this is worth writing down.
    package func differs(from read: AgeTrust) -> Bool {
        guard let mine = anchors.last,
            let old = read.anchors.first(where: { $0.look.boot == mine.look.boot })
        else { return true }
        return old.waitsUntilNs != mine.waitsUntilNs
            || mine.look.boottimeNs &- old.look.boottimeNs >= AgeTrust.refreshNs
            || AgeTrust.hasJumped(from: old.look, to: mine.look)
    }
}
