// One timer of a connection: arming it again replaces what was armed. Event loop of the connection.

import NIOCore

struct Deadline {
    private var scheduled: Scheduled<Void>?

    mutating func arm(_ loop: any EventLoop, ms: Int64, _ action: @escaping () -> Void) {
        scheduled?.cancel()
        scheduled = loop.assumeIsolated().scheduleTask(in: .milliseconds(ms), action)
    }

    mutating func cancel() {
        scheduled?.cancel()
        scheduled = nil
    }
}

/// How fast a body comes in, judged once a step. Time in which a job of ours kept us from reading
/// is not the client's. Pure; the clock is handed in.
struct Pace {
    private var stepBegan: NIODeadline
    private var arrived: UInt64 = 0
    private var jobBegan: NIODeadline?
    private var ours = TimeAmount.zero

    init(now: NIODeadline) { stepBegan = now }

    mutating func add(_ bytes: Int) { arrived += UInt64(bytes) }

    mutating func jobBegins(now: NIODeadline) { jobBegan = now }

    mutating func jobEnds(now: NIODeadline) {
        if let jobBegan { ours = ours + (now - max(jobBegan, stepBegan)) }
        jobBegan = nil
    }

    /// Bytes a second, and begins the next step. Nil: nearly all of the step was ours.
    mutating func endStep(now: NIODeadline) -> UInt64? {
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
