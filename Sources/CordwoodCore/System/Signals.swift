// Signals and the end of the process, except what the crash handler (CShims) does. Masks apply to
// the calling thread and to threads that it starts afterwards.
// SAFETY: each signal set is lent to one call.

import Glibc

package enum Signals {
    /// Runs the body. Its writes to a pipe without a reader raise no SIGPIPE; one that was pending
    /// before stays.
    package static func withoutPipe(_ body: () -> Void) {
        var pipe = sigset_t()
        var old = sigset_t()
        var pending = sigset_t()
        unsafe sigemptyset(&pipe)
        unsafe sigaddset(&pipe, SIGPIPE)
        unsafe sigpending(&pending)
        let wasPending = unsafe sigismember(&pending, SIGPIPE) == 1
        unsafe pthread_sigmask(SIG_BLOCK, &pipe, &old)
        defer {
            var none = timespec()
            if !wasPending { unsafe sigtimedwait(&pipe, nil, &none) }
            unsafe pthread_sigmask(SIG_SETMASK, &old, nil)
        }
        body()
    }

    /// For the whole process: writing to a pipe without a reader fails with EPIPE.
    package static func ignorePipe() { signal(SIGPIPE, SIG_IGN) }

    /// Blocks SIGTERM and SIGINT, for `waitForEnd`.
    package static func blockEnd() {
        var signals = endSignals()
        unsafe pthread_sigmask(SIG_BLOCK, &signals, nil)
    }

    /// Returns when one of them has come.
    package static func waitForEnd() {
        var signals = endSignals()
        var signal: Int32 = 0
        unsafe sigwait(&signals, &signal)
    }

    /// The same, but false if none has come within the time.
    package static func waitForEnd(withinMs ms: UInt64) -> Bool {
        var signals = endSignals()
        var time = timespec(tv_sec: Int(ms / 1_000), tv_nsec: Int(ms % 1_000) * 1_000_000)
        return unsafe sigtimedwait(&signals, nil, &time) > 0
    }

    private static func endSignals() -> sigset_t {
        var signals = sigset_t()
        unsafe sigemptyset(&signals)
        unsafe sigaddset(&signals, SIGTERM)
        unsafe sigaddset(&signals, SIGINT)
        return signals
    }

    /// Ends the process as a return from main would.
    package static func exit(_ code: Int32) -> Never { Glibc.exit(code) }
}
