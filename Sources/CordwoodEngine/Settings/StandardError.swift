// The host's stderr: carries echoed records and complaints about the environment. The writing
// thread may be the host's, so a closed pipe must not kill it. Any thread.
// SAFETY: each buffer and signal set is lent to one call.

import CordwoodStore
import Glibc
import Synchronization

enum StandardError {
    /// Drops whatever cannot be written now.
    static func write(_ bytes: [UInt8]) {
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
        var done = 0
        while done < bytes.count {
            let n = unsafe bytes.withUnsafeBytes {
                unsafe Glibc.write(2, $0.baseAddress! + done, $0.count - done)
            }
            if n < 0, errno == EINTR { continue }
            guard n > 0 else { break }
            done += n
        }
    }

    /// Reports a problem with an environment variable, once per variable and process: the person
    /// who set it sees no record.
    static func complain(_ variable: String, _ text: String) {
        guard told.withLock({ $0.insert(variable).inserted }) else { return }
        write(Array("cordwood: \(variable): \(PlainText.oneLine(text))\n".utf8))
    }

    private static let told = Mutex<Set<String>>([])
}
