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

/// Whether a body comes in fast enough, judged once a step.
struct Pace {
    private var arrived: UInt64 = 0
    private var isOurs = false

    mutating func add(_ bytes: Int) { arrived += UInt64(bytes) }

    /// The disk, not the client, was slow in this step.
    mutating func excuse() { isOurs = true }

    mutating func isTooSlow(_ options: CollectorOptions) -> Bool {
        let wanted = Int64(options.bodyBytesPerSecondMin) * options.stallTimeoutMs / 1000
        let isSlow = !isOurs && arrived < UInt64(max(wanted, 1))
        arrived = 0
        isOurs = false
        return isSlow
    }
}
