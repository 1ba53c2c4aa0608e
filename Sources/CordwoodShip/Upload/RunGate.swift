// Controls access to one target: one run at a time, explicit calls before the background, and as
// many threads in a run as it takes on. It is the target's only lock and also guards the state its
// threads share. It is never held while a callback runs, a file is touched or a byte is sent.

import CordwoodCore
import CordwoodStore

/// SAFETY: all members are touched with the monitor held.
final class RunGate: @unchecked Sendable {
    private let monitor = Monitor()
    private var isRunning = false
    private var isExplicit = false
    private var isExplicitWaiting = false
    private var isStopping = false
    /// The run's threads; the first is the one that entered.
    private var threads: [ThreadIdentity] = []
    /// Threads that were started for the run and have not joined yet.
    private var coming = 0
    /// Threads in callbacks outside a run.
    private var callers: [ThreadIdentity] = []

    func withLock<Result>(_ body: () -> Result) -> Result { monitor.locked(body) }

    // ── A run ──

    /// - Parameter remainingMs: how long an explicit call waits for a background run to end; the
    ///   background never waits.
    /// - Returns: nil: entered. Busy: a run is under way, or the calling thread is in one of its
    ///   callbacks.
    func enter(explicit: Bool, remainingMs: UInt64) -> UploadStatus? {
        withLock {
            if isStopping { return .closed }
            if isHere || (isRunning && (!explicit || isExplicit)) || isExplicitWaiting {
                return .busy
            }
            if isRunning {
                isExplicitWaiting = true
                defer { isExplicitWaiting = false }
                let until = remainingMs > .max / 4_000_000 ? .never : Deadline(afterMs: remainingMs)
                while isRunning && !isStopping {
                    if !monitor.wait(until: until), isRunning, !isStopping { return .timeout }
                }
                if isStopping { return .closed }
            }
            isRunning = true
            isExplicit = explicit
            threads = [.current]
            return nil
        }
    }

    /// Waits for the run's other threads to end.
    func join() {
        withLock {
            while threads.count + coming > 1 { _ = monitor.wait(until: .never) }
        }
    }

    /// Ends the run, which has one thread left.
    func leave() {
        withLock {
            threads = []
            isRunning = false
            monitor.notify()
        }
    }

    /// Runs a callback outside a run, unless `isOver`, which is called under the lock.
    func calling(unless isOver: () -> Bool, _ body: () -> Void) {
        let begins = withLock {
            if isOver() { return false }
            callers.append(.current)
            return true
        }
        guard begins else { return }
        body()
        withLock {
            let index = callers.firstIndex(of: .current)
            if let index { callers.remove(at: index) }
            monitor.notify()
        }
    }

    /// Starts another thread of the run; `leave` waits for its end.
    /// - Parameter start: false: the system has no more threads.
    func spawn(
        _ start: (_ body: @escaping @Sendable () -> Void) -> Bool,
        _ body: @escaping @Sendable () -> Void
    ) -> Bool {
        withLock { coming += 1 }
        let isStarted = start { [self] in
            withLock {
                coming -= 1
                threads.append(.current)
            }
            body()
            withLock {
                threads.removeAll { $0 == .current }
                monitor.notify()
            }
        }
        if !isStarted { withLock { coming -= 1 } }
        return isStarted
    }

    // ── Queries from outside ──

    /// Whether the calling thread is in the run or in a callback.
    var isRunningHere: Bool { withLock { isHere } }

    var isBusy: Bool { withLock { isBusyHeld } }

    /// The same for callers that hold the gate.
    var isBusyHeld: Bool { isRunning || isExplicitWaiting }

    /// From now on no run begins, and transfers are aborted.
    func stop() {
        withLock {
            isStopping = true
            monitor.notify()
        }
    }

    var isStopped: Bool { withLock { isStopping } }

    /// Whether a background run should give way to an explicit call.
    var shouldYield: Bool { withLock { isExplicitWaiting && !isExplicit } }

    /// Waits until no run and no callback is under way, unless the calling thread is in one.
    func waitUntilIdle() {
        withLock {
            while (isRunning || !callers.isEmpty) && !isHere {
                _ = monitor.wait(until: .never)
            }
        }
    }

    private var isHere: Bool {
        (threads + callers).contains(.current)
    }
}
