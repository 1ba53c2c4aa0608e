// Reports that names were added to some directories or removed from them. Sees only this machine's
// changes: an NFS client learns nothing of others. One thread at a time; any thread may wait on the
// descriptor.
// SAFETY: the events are read into a buffer of this call and thrown away.

import CShims
import Glibc

package final class DirectoryWatch: Sendable {
    /// Readable when something has changed. -1: the system provides no watch, and nothing is
    /// reported.
    package let descriptor: Int32

    /// Directories that do not exist are left out.
    package init(_ directories: [FilePath]) {
        descriptor = inotify_init1(Int32(IN_NONBLOCK | IN_CLOEXEC))
        guard descriptor >= 0 else { return }
        for path in directories {
            let opened = unsafe path.lend { unsafe cwi_open_at($0, $1, O_RDONLY | O_DIRECTORY, 0) }
            guard opened >= 0 else { continue }
            // inotify takes no directory's descriptor, but its path in /proc.
            _ = unsafe inotify_add_watch(
                descriptor, "/proc/self/fd/\(opened)",
                UInt32(IN_CREATE | IN_MOVED_TO | IN_DELETE | IN_ONLYDIR))
            close(opened)
        }
    }

    deinit { if descriptor >= 0 { close(descriptor) } }

    /// Blocks until a name has changed; false: none has within that time.
    package func hasNews(within ms: Int32) -> Bool {
        // A negative descriptor is never ready.
        var one = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        return unsafe poll(&one, 1, ms) > 0
    }

    /// Discards the events so far. The descriptor becomes readable again at the next change.
    package func drain() {
        unsafe withUnsafeTemporaryAllocation(byteCount: 4_096, alignment: 8) {
            while unsafe read(descriptor, $0.baseAddress, $0.count) > 0 {}
        }
    }
}
