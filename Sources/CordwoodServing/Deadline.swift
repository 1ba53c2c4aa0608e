// One timer of a connection: arming it again replaces the previous timer. Event loop of the
// connection.

import NIOCore

package struct Deadline {
    private var scheduled: Scheduled<Void>?

    package init() {}

    package mutating func arm(_ loop: any EventLoop, ms: Int64, _ action: @escaping () -> Void) {
        scheduled?.cancel()
        scheduled = loop.assumeIsolated().scheduleTask(in: .milliseconds(ms), action)
    }

    package mutating func cancel() {
        scheduled?.cancel()
        scheduled = nil
    }
}

/// The speed of an incoming body, judged once per step. Time in which our own job kept us from
/// reading does not count against the client. Pure; the clock is passed in.
package struct Pace {
    private var stepBegan: NIODeadline
    private var arrived: UInt64 = 0
    private var jobBegan: NIODeadline?
    private var ours = TimeAmount.zero

    package init(now: NIODeadline) { stepBegan = now }

    package mutating func add(_ bytes: Int) { arrived += UInt64(bytes) }

    package mutating func jobBegins(now: NIODeadline) { jobBegan = now }

    package mutating func jobEnds(now: NIODeadline) {
        if let jobBegan { ours = ours + (now - max(jobBegan, stepBegan)) }
        jobBegan = nil
    }

    /// Returns bytes per second and begins the next step. Nil: nearly all of the step was our own
    /// time.
    package mutating func endStep(now: NIODeadline) -> UInt64? {
        let isJobRunning = jobBegan != nil
        jobEnds(now: now)
        let all = now - stepBegan
        let theirs = all - ours
        let bytes = arrived
        self = Pace(now: now)
        if isJobRunning { jobBegan = now }
        guard theirs.nanoseconds > all.nanoseconds / 10 else { return nil }
        return UInt64(Double(bytes) * 1e9 / Double(theirs.nanoseconds))
    }
}
