// Decides whether the wall clock can be trusted to remove archives by age. A single jump forward
// would delete all of them, sent or not. So a jump, or a pause that cannot be told from one,
// suspends removal by age until the machine has run for a day. The rule is pure; ClockFile stores
// its observations. Removal by quota and count does not depend on time and continues.

import CordwoodCore

/// The clocks at one moment.
package struct ClockLook: Equatable {
    /// Zero if not known.
    package var boot: LaneID
    /// CLOCK_BOOTTIME, which keeps running while the machine sleeps and cannot be set.
    package var boottimeNs: UInt64
    package var realtimeNs: UInt64

    package init(boot: LaneID, boottimeNs: UInt64, realtimeNs: UInt64) {
        self.boot = boot
        self.boottimeNs = boottimeNs
        self.realtimeNs = realtimeNs
    }
}

package struct AgeTrust: Equatable {
    /// The last observation in one boot of one machine. Several machines share a store on a network
    /// file system, and each judges its own clock.
    struct Anchor: Equatable {
        var look: ClockLook
        /// CLOCK_BOOTTIME of that boot at which removal by age resumes; 0: it is not suspended.
        var waitsUntilNs: UInt64
    }

    package enum ClockVerdict: Equatable {
        case believed
        /// begins: this check found the reason to wait.
        case waits(leftNs: UInt64, begins: Bool)
    }

    static let anchorsMax = 8
    static let waitNs: UInt64 = 86_400_000_000_000
    /// A pause of up to this length is normal; a jump within it removes nothing much too early.
    static let pauseNs: UInt64 = 86_400_000_000_000
    static let jumpNs: UInt64 = 3_600_000_000_000
    /// The age at which an anchor is worth rewriting.
    static let refreshNs: UInt64 = 3_600_000_000_000

    /// In the order of their last checks.
    var anchors: [Anchor] = []

    /// - Parameter newestRecordNs: UTC of the newest record in an archive; 0: not known.
    package mutating func look(_ now: ClockLook, newestRecordNs: UInt64) -> ClockVerdict {
        let own = anchors.firstIndex { $0.look.boot == now.boot }
        var until: UInt64
        let begins: Bool
        if let own {
            // Boot time proves how much time has passed.
            let last = anchors[own]
            begins = AgeTrust.hasJumped(from: last.look, to: now)
            until = last.waitsUntilNs
        } else {
            // No clock spans two boots: a pause longer than a day may be a jump.
            let before = anchors.last?.look.realtimeNs ?? newestRecordNs
            let (bound, overflow) = before.addingReportingOverflow(AgeTrust.pauseNs)
            begins = before > 0 && !overflow && now.realtimeNs > bound
            // The remaining wait of another boot.
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

    /// True if the two clocks advanced by different amounts.
    private static func hasJumped(from last: ClockLook, to now: ClockLook) -> Bool {
        let before = last.realtimeNs &- last.boottimeNs
        let after = now.realtimeNs &- now.boottimeNs
        return min(after &- before, before &- after) > jumpNs
    }

    /// True if the change since the file was read is worth writing.
    package func differs(from read: AgeTrust) -> Bool {
        guard let mine = anchors.last,
            let old = read.anchors.first(where: { $0.look.boot == mine.look.boot })
        else { return true }
        return old.waitsUntilNs != mine.waitsUntilNs
            || mine.look.boottimeNs &- old.look.boottimeNs >= AgeTrust.refreshNs
            || AgeTrust.hasJumped(from: old.look, to: mine.look)
    }
}
