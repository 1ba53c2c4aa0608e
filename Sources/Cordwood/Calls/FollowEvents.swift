// Suspends the task of a following reader until it has to look again: a name appeared in the
// store's directories or left them, or the time is over (FollowWait). The kernel wakes a Dispatch
// queue, on which the task runtime of Linux is built; a waiting task holds no thread. One reader's
// task at a time.

import CShims
import CordwoodCore
import CordwoodStore
import Dispatch

/// SAFETY: all that changes is guarded by the monitor.
final class FollowEvents: @unchecked Sendable {
    /// One suspension. It ends once, for whichever reason comes first.
    private final class Wait: @unchecked Sendable {
        let times: FollowWait
        var task: CheckedContinuation<Void, Never>?
        var isOver = false

        init(_ times: FollowWait) { self.times = times }
    }

    /// Shared: with its own queue, each reader that wakes would cost a thread.
    private static let queue = DispatchQueue(label: "cordwood.follow")
    private let monitor = Monitor()
    private let source: (any DispatchSourceRead)?
    private let timer: any DispatchSourceTimer
    private var current: Wait?
    /// Since the reader was last told. True at first: something may have changed before the watch.
    private var hasChanged = true

    init(_ watch: DirectoryWatch) {
        source =
            watch.descriptor < 0
            ? nil
            : DispatchSource.makeReadSource(fileDescriptor: watch.descriptor, queue: Self.queue)
        timer = DispatchSource.makeTimerSource(queue: Self.queue)
        timer.setEventHandler { [weak self] in self?.end(nil) }
        timer.activate()
        source?.setEventHandler { [weak self] in
            watch.drain()
            self?.change()
        }
        // The descriptor stays open until the source has released it.
        source?.setCancelHandler { _ = watch }
        source?.activate()
    }

    deinit {
        source?.cancel()
        timer.cancel()
    }

    /// Returns when it is time to look. Throws CancellationError as soon as the task is cancelled.
    func wait(_ times: FollowWait) async throws {
        let wait = Wait(times)
        await withTaskCancellationHandler {
            await withCheckedContinuation { begin(wait, $0) }
        } onCancel: {
            end(wait)
        }
        try Task.checkCancellation()
    }

    private func begin(_ wait: Wait, _ task: CheckedContinuation<Void, Never>) {
        monitor.locked {
            guard !wait.isOver else { return task.resume() }
            wait.task = task
            current = wait
            wake(at: hasChanged ? wait.times.earliest : wait.times.latest)
            hasChanged = false
        }
    }

    private func change() {
        monitor.locked {
            hasChanged = current == nil
            if let current { wake(at: current.times.earliest) }
        }
    }

    private func wake(at time: UInt64) {
        let now = cw_monotonic_ns()
        timer.schedule(
            deadline: .now() + .nanoseconds(time > now ? Int(clamping: time - now) : 0),
            leeway: .milliseconds(1))
    }

    /// nil: the one under way.
    private func end(_ ended: Wait?) {
        monitor.locked {
            guard let wait = ended ?? current, !wait.isOver else { return }
            wait.isOver = true
            if current === wait { current = nil }
            wait.task?.resume()
            wait.task = nil
        }
    }
}
