// Threads: a mutex and a condition with deadlines on the monotonic clock, thread identities, and
// the engine's own threads. One monitor per service object; a forked child makes new ones and never
// touches the inherited ones.

import CShims
import Glibc

@safe package final class Monitor: @unchecked Sendable {
    // SAFETY: both are allocated once, used only through pthread, and freed with the object.
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)

    package init() {
        unsafe pthread_mutex_init(mutex, nil)
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

    /// Disables cancellation meanwhile, because it would leave the lock taken (R19).
    package func locked<T>(_ body: () throws -> T) rethrows -> T {
        let cancel = cwi_disable_cancel()
        defer { cwi_restore_cancel(cancel) }
        unsafe pthread_mutex_lock(mutex)
        defer { unsafe pthread_mutex_unlock(mutex) }
        return try body()
    }

    package func notify() {
        unsafe pthread_cond_broadcast(condition)
    }

    /// Called with the lock held. Sleeps until notified or until the deadline. False: the deadline
    /// has passed.
    package func wait(until deadline: Deadline) -> Bool {
        guard let ns = deadline.monotonicNs else {
            unsafe pthread_cond_wait(condition, mutex)
            return true
        }
        var time = timespec(
            tv_sec: Int(ns / 1_000_000_000), tv_nsec: Int(ns % 1_000_000_000))
        return unsafe pthread_cond_timedwait(condition, mutex, &time) != ETIMEDOUT
    }
}

extension Duration {
    /// Counts as C does: UInt32.max means no limit.
    package init?(ms: UInt32) {
        guard ms != .max else { return nil }
        self = .milliseconds(Int64(ms))
    }

    /// In milliseconds, rounded up; 0 for negative ones.
    package var wholeMs: UInt64 {
        let (seconds, attoseconds) = components
        guard seconds >= 0, attoseconds >= 0 else { return 0 }
        let (ms, isFar) = UInt64(seconds).multipliedReportingOverflow(by: 1_000)
        let part = UInt64(attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000
        let (sum, isFarther) = ms.addingReportingOverflow(part)
        return isFar || isFarther ? .max : sum
    }
}

/// A point on the monotonic clock; nil: never.
package struct Deadline: Sendable {
    package var monotonicNs: UInt64?

    /// 0 has already passed, UINT32_MAX never passes.
    package init(timeoutMs: UInt32) {
        monotonicNs = timeoutMs == .max ? nil : cw_monotonic_ns() + UInt64(timeoutMs) * 1_000_000
    }

    /// nil: no deadline.
    package init(_ timeout: Duration?) {
        guard let parts = timeout?.components else {
            monotonicNs = nil
            return
        }
        let seconds = UInt64(clamping: parts.seconds).multipliedReportingOverflow(by: 1_000_000_000)
        let ns = UInt64(clamping: parts.attoseconds / 1_000_000_000)
        let (end, isFar) = cw_monotonic_ns().addingReportingOverflow(seconds.partialValue &+ ns)
        monotonicNs = seconds.overflow || isFar ? nil : end
    }

    package init(afterMs: UInt64) {
        monotonicNs = cw_monotonic_ns() + afterMs * 1_000_000
    }

    package static let never = Deadline(timeoutMs: .max)

    package var hasPassed: Bool {
        guard let monotonicNs else { return false }
        return cw_monotonic_ns() >= monotonicNs
    }

    /// Milliseconds of the monotonic clock.
    package var monotonicMs: UInt64 { monotonicNs.map { $0 / 1_000_000 } ?? .max }
}

/// A thread, for as long as it runs.
package struct ThreadIdentity: Equatable, Sendable {
    private let thread: pthread_t

    package static var current: ThreadIdentity { ThreadIdentity(thread: pthread_self()) }

    /// A number that no other running thread has.
    package var bits: UInt64 { UInt64(thread) }

    package static func == (one: ThreadIdentity, other: ThreadIdentity) -> Bool {
        pthread_equal(one.thread, other.thread) != 0
    }

    /// The calling thread sleeps, or returns early for a signal.
    package static func pause(microseconds: UInt32) {
        var pause = timespec(
            tv_sec: Int(microseconds / 1_000_000), tv_nsec: Int(microseconds % 1_000_000) * 1_000)
        unsafe nanosleep(&pause, nil)
    }

    static func yield() { sched_yield() }
}

/// One of the engine's own threads. It blocks all signals that others send, so it never runs the
/// host's handlers and never takes a signal from its `sigwait`; it has a name and a stack of 1 MiB.
package enum EngineThread {
    /// background: yields to the host and to the supply thread when processors are short. False:
    /// the system gives none.
    package static func start(
        _ name: StaticString, background: Bool = false, _ body: @escaping @Sendable () -> Void
    ) -> Bool {
        final class Start {
            let name: StaticString
            let background: Bool
            let body: @Sendable () -> Void
            init(_ name: StaticString, _ background: Bool, _ body: @escaping @Sendable () -> Void) {
                self.name = name
                self.background = background
                self.body = body
            }
        }
        guard cwi_thread_may_start() else { return false }
        var attributes = pthread_attr_t()
        unsafe pthread_attr_init(&attributes)
        defer { unsafe pthread_attr_destroy(&attributes) }
        unsafe pthread_attr_setdetachstate(&attributes, Int32(PTHREAD_CREATE_DETACHED))
        unsafe pthread_attr_setstacksize(&attributes, 1 << 20)
        var all = sigset_t()
        var old = sigset_t()
        unsafe cwi_fill_signals(&all)
        unsafe pthread_sigmask(SIG_SETMASK, &all, &old)
        defer { unsafe pthread_sigmask(SIG_SETMASK, &old, nil) }
        let start = unsafe Unmanaged.passRetained(Start(name, background, body))
        var thread = pthread_t()
        let error = unsafe pthread_create(
            &thread, &attributes,
            { argument in
                let start = unsafe Unmanaged<Start>.fromOpaque(argument!).takeRetainedValue()
                unsafe cwi_tls_get().pointee.helper = UInt8(CWI_HELPER_THREAD)
                unsafe cw_set_thread_name(
                    UnsafeRawPointer(start.name.utf8Start).assumingMemoryBound(to: CChar.self))
                // On Linux, 0 means this thread alone, and a thread may always become nicer. It has
                // the host's value, which need not be 0.
                if start.background {
                    let one = __priority_which_t(PRIO_PROCESS.rawValue)
                    _ = setpriority(one, 0, getpriority(one, 0) + 10)
                }
                start.body()
                return nil
            }, unsafe start.toOpaque())
        if error != 0 { unsafe start.release() }
        return error == 0
    }
}
