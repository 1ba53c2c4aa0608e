// Machine durability with a deadline. A dedicated thread writes and syncs the journal, so that a
// host's call ends in time even if the disk does not respond, and calls that wait together share
// one sync. The first such call starts the thread. If the system gives none, the call syncs itself.

import CordwoodCore

final class Flusher: @unchecked Sendable {
    // SAFETY: everything below `monitor` is read and written under it.
    enum FlushOutcome: Equatable {
        /// 0, or the errno of the failure.
        case done(Int32)
        case timeout
        case closed
    }

    private final class Request {
        var error: Int32?
    }

    /// Number of calls that no running sync covers.
    var waitingCount: Int { monitor.locked { waiting.count } }

    private let monitor = Monitor()
    private var waiting: [Request] = []
    private var hasThread = false
    private var isStopping = false

    /// start: runs a body on an engine thread; false if no thread is available. sync: makes
    /// everything committed so far durable; returns 0 or an errno.
    func flush(
        _ deadline: Deadline, start: (@escaping @Sendable () -> Void) -> Bool,
        sync: @escaping @Sendable () -> Int32
    ) -> FlushOutcome {
        let outcome: FlushOutcome? = monitor.locked {
            guard !isStopping else { return .closed }
            if !hasThread {
                hasThread = start { [self] in run(sync) }
                guard hasThread else { return nil }
            }
            let request = Request()
            waiting.append(request)
            monitor.notify()
            while request.error == nil {
                if !monitor.wait(until: deadline), request.error == nil { return .timeout }
            }
            return .done(request.error ?? 0)
        }
        return outcome ?? .done(sync())
    }

    /// Refuses new calls; waiting calls are still served.
    func stop() {
        monitor.locked {
            isStopping = true
            monitor.notify()
        }
    }

    private func run(_ sync: () -> Int32) {
        while let batch = next() {
            let error = sync()
            monitor.locked {
                for request in batch { request.error = error }
                monitor.notify()
            }
        }
    }

    /// All calls that wait now; nil: the engine closes.
    private func next() -> [Request]? {
        monitor.locked {
            while waiting.isEmpty {
                if isStopping { return nil }
                _ = monitor.wait(until: Deadline(timeoutMs: .max))
            }
            defer { waiting = [] }
            return waiting
        }
    }
}
