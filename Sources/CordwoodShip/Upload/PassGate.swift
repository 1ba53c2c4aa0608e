// Who may run a pass: one thread at a time in a service, explicit calls before the background. It
// is the service's only lock and also guards what threads share there; it is never held while a
// callback runs, a file is touched or a byte is sent. Waiting is by condition, on the monotonic
// clock.
// SAFETY: mutex and condition stay where they were allocated until deinit, when nobody can wait.

import Glibc

/// SAFETY: all members but the lock itself are touched with the lock held.
@safe final class PassGate: @unchecked Sendable {
    enum Entry {
        case entered
        /// Another explicit call runs or waits.
        case busy
        case timeout
        case stopped
    }

    private let mutex: UnsafeMutablePointer<pthread_mutex_t>
    private let condition: UnsafeMutablePointer<pthread_cond_t>
    private var isRunning = false
    private var isExplicit = false
    private var isExplicitWaiting = false
    private var isStopping = false
    private var runner = pthread_self()
    private var currentTarget: UInt32?

    init() {
        unsafe mutex = .allocate(capacity: 1)
        unsafe mutex.initialize(to: pthread_mutex_t())
        unsafe pthread_mutex_init(mutex, nil)
        unsafe condition = .allocate(capacity: 1)
        unsafe condition.initialize(to: pthread_cond_t())
        var attributes = pthread_condattr_t()
        unsafe pthread_condattr_init(&attributes)
        unsafe pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
        unsafe pthread_cond_init(condition, &attributes)
        unsafe pthread_condattr_destroy(&attributes)
    }

    deinit {
        unsafe pthread_cond_destroy(condition)
        unsafe pthread_mutex_destroy(mutex)
        unsafe condition.deallocate()
        unsafe mutex.deallocate()
    }

    func withLock<Result>(_ body: () -> Result) -> Result {
        unsafe pthread_mutex_lock(mutex)
        defer { unsafe pthread_mutex_unlock(mutex) }
        return body()
    }

    /// - Parameter remainingMs: how long an explicit call waits for a background pass to end; a
    ///   background pass never waits.
    func enter(explicit: Bool, remainingMs: UInt64) -> Entry {
        withLock {
            if isStopping { return .stopped }
            if explicit && (isExplicitWaiting || (isRunning && isExplicit)) { return .busy }
            if !explicit && (isRunning || isExplicitWaiting) { return .busy }
            if isRunning && pthread_equal(runner, pthread_self()) != 0 { return .busy }
            if isRunning {
                isExplicitWaiting = true
                defer { isExplicitWaiting = false }
                let until = PassGate.deadline(afterMs: remainingMs)
                while isRunning && !isStopping {
                    guard wait(until: until) else { return .timeout }
                }
                if isStopping { return .stopped }
            }
            isRunning = true
            isExplicit = explicit
            runner = pthread_self()
            return .entered
        }
    }

    /// Whether the calling thread is inside a pass.
    var isRunningHere: Bool { withLock { isRunning && pthread_equal(runner, pthread_self()) != 0 } }

    func leave() {
        withLock {
            isRunning = false
            currentTarget = nil
            unsafe pthread_cond_broadcast(condition)
        }
    }

    /// From now on no pass begins and a running transfer is broken off.
    func stop() {
        withLock {
            isStopping = true
            unsafe pthread_cond_broadcast(condition)
        }
    }

    var isStopped: Bool { withLock { isStopping } }

    /// Whether a background pass should let an explicit call have its turn.
    var shouldYield: Bool { withLock { isExplicitWaiting && !isExplicit } }

    func setCurrent(_ target: UInt32?) {
        withLock {
            currentTarget = target
            unsafe pthread_cond_broadcast(condition)
        }
    }

    /// Waits until no attempt at that target runs, unless it is this thread that runs it.
    func waitUntilIdle(_ target: UInt32) {
        withLock {
            while currentTarget == target && pthread_equal(runner, pthread_self()) == 0 {
                unsafe pthread_cond_wait(condition, mutex)
            }
        }
    }

    /// nil: for ever.
    private static func deadline(afterMs remainingMs: UInt64) -> timespec? {
        guard remainingMs < 1_000 * 86_400 * 365 else { return nil }
        var now = timespec()
        unsafe clock_gettime(CLOCK_MONOTONIC, &now)
        let ns = now.tv_nsec + Int(remainingMs % 1_000) * 1_000_000
        return timespec(
            tv_sec: now.tv_sec + Int(remainingMs / 1_000) + ns / 1_000_000_000,
            tv_nsec: ns % 1_000_000_000)
    }

    private func wait(until deadline: timespec?) -> Bool {
        guard var deadline else { return unsafe pthread_cond_wait(condition, mutex) == 0 }
        return unsafe pthread_cond_timedwait(condition, mutex, &deadline) != ETIMEDOUT
    }
}
