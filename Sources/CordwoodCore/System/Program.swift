// Starts another program. For the command line only: a library starts none.
// SAFETY: the words are copied into memory of their own for one call, and freed after it.

import Glibc

package enum Program {
    /// Starts a program of PATH in its own session, without our streams, and does not wait for it.
    /// Returns an errno, or 0. PATH is the caller's: a privileged program starts none.
    package static func start(_ words: [String]) -> Int32 {
        guard !Machine.isPrivileged else { return EPERM }
        // Nothing asks how it ended.
        signal(SIGCHLD, SIG_IGN)
        var files = unsafe posix_spawn_file_actions_t()
        unsafe posix_spawn_file_actions_init(&files)
        defer { unsafe posix_spawn_file_actions_destroy(&files) }
        for stream in Int32(0)...2 {
            unsafe posix_spawn_file_actions_addopen(&files, stream, "/dev/null", O_RDWR, 0)
        }
        var attributes = posix_spawnattr_t()
        unsafe posix_spawnattr_init(&attributes)
        defer { unsafe posix_spawnattr_destroy(&attributes) }
        var none = sigset_t()
        var pipe = sigset_t()
        unsafe sigemptyset(&none)
        unsafe sigemptyset(&pipe)
        unsafe sigaddset(&pipe, SIGPIPE)
        unsafe posix_spawnattr_setsigmask(&attributes, &none)
        unsafe posix_spawnattr_setsigdefault(&attributes, &pipe)
        let flags = Int32(POSIX_SPAWN_SETSIGMASK) | Int32(POSIX_SPAWN_SETSIGDEF) | setSession
        unsafe posix_spawnattr_setflags(&attributes, Int16(flags))
        var arguments: [UnsafeMutablePointer<CChar>?] = unsafe words.map { unsafe strdup($0) }
        unsafe arguments.append(nil)
        defer { unsafe arguments.forEach { unsafe free($0) } }
        guard let program = words.first else { return EINVAL }
        var process = pid_t()
        return unsafe posix_spawnp(&process, program, &files, &attributes, arguments, environ)
    }

    /// POSIX_SPAWN_SETSID, which the C library shows to some programs only.
    private static let setSession: Int32 = 0x80
}
