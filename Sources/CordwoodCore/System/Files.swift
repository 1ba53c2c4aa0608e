// The file system calls of all code above the append path, which has its own in FileCalls. A call
// is one system call, repeated only if its comment says so. On failure it returns -1 or false, with
// the reason in `Errno.last`; each module words its own errors. Any thread. Signal handlers and
// forked children may use the calls that take no path.
// SAFETY: a name is lent to one call; reads and writes take at most the view's bytes.

import CShims
import Glibc

/// How a file is opened. A new file is 0600, or takes after the store's directory (`cwi_open_at`),
/// and exec(2) closes every descriptor. One flag needs no heap; a list may, so the append path uses
/// none.
package struct OpenFlags: OptionSet, Sendable {
    package let rawValue: Int32
    package init(rawValue: Int32) { self.rawValue = rawValue }

    package static var read: OpenFlags { OpenFlags(rawValue: O_RDONLY) }
    package static var write: OpenFlags { OpenFlags(rawValue: O_WRONLY) }
    package static var readWrite: OpenFlags { OpenFlags(rawValue: O_RDWR) }
    package static var create: OpenFlags { OpenFlags(rawValue: O_CREAT) }
    /// Creates the file, and fails if the name exists.
    package static var new: OpenFlags { OpenFlags(rawValue: O_CREAT | O_EXCL) }
    package static var newReadWrite: OpenFlags { OpenFlags(rawValue: O_RDWR | O_CREAT | O_EXCL) }
    package static var empty: OpenFlags { OpenFlags(rawValue: O_TRUNC) }
    /// A FIFO or a device does not block the caller.
    package static var nonBlocking: OpenFlags { OpenFlags(rawValue: O_NONBLOCK) }
    package static var noTerminal: OpenFlags { OpenFlags(rawValue: O_NOCTTY) }
    /// A directory, to read its names.
    package static var directory: OpenFlags { OpenFlags(rawValue: O_RDONLY | O_DIRECTORY) }
}

package enum Files {
    // MARK: Opening. Links are followed only where it says so.

    /// A file that every forked child closes. If a child kept it, its lock would stay.
    package static func open(_ path: FilePath, _ flags: OpenFlags) -> Int32 {
        unsafe path.lend { unsafe cwi_file_open_at($0, $1, flags.rawValue, 0o600) }
    }

    package static func open(_ name: String, in directory: Int32, _ flags: OpenFlags) -> Int32 {
        unsafe cwi_file_open_at(directory, name, flags.rawValue, 0o600)
    }

    /// Children close it if one of the engine's own threads opened it, and keep it if a host's did.
    package static func openOwn(_ path: FilePath, _ flags: OpenFlags) -> Int32 {
        unsafe path.lend { unsafe cwi_file_open_own($0, $1, flags.rawValue, 0) }
    }

    /// Children keep it; `FileCalls.close` closes it.
    package static func openKept(_ path: FilePath, _ flags: OpenFlags) -> Int32 {
        unsafe path.lend { unsafe cwi_open_at($0, $1, flags.rawValue, 0o600) }
    }

    /// The same, for a path that the user chose: links are followed, and the standard streams'
    /// numbers are not avoided.
    package static func openFollowing(_ path: FilePath, _ flags: OpenFlags) -> Int32 {
        unsafe path.lend { unsafe openat($0, $1, flags.rawValue | O_CLOEXEC) }
    }

    /// An empty, nameless file in memory, which every forked child closes.
    package static func openMemory() -> Int32 { cwi_file_memory() }

    /// Closes what `open`, `openOwn` or `openMemory` opened. If the number denotes another file by
    /// now, that file is the host's and stays open.
    package static func close(_ descriptor: Int32) { cwi_file_close(descriptor) }

    // MARK: Content

    /// Raises a pipe's capacity to `bytes`, if it is lower and the system allows it. Leaves other
    /// files as they are.
    package static func widenPipe(_ descriptor: Int32, _ bytes: Int32) {
        // Linux's F_GETPIPE_SZ and F_SETPIPE_SZ, which Glibc's module leaves out.
        let held = fcntl(descriptor, 1032)
        if held >= 0, held < bytes { _ = fcntl(descriptor, 1031, bytes) }
    }

    /// Reads at an offset until the buffer is full or the file ends; EINTR repeats. Returns the
    /// bytes read, or -1.
    package static func read(
        _ descriptor: Int32, into buffer: UnsafeMutableRawBufferPointer, at offset: UInt64
    ) -> Int {
        guard let start = buffer.baseAddress else { return 0 }
        var done = 0
        while done < buffer.count {
            let got = unsafe pread(
                descriptor, start + done, buffer.count &- done,
                off_t(clamping: offset &+ UInt64(done)))
            if got < 0 && errno == EINTR { continue }
            guard got >= 0 else { return -1 }
            if got == 0 { break }
            done &+= got
        }
        return done
    }

    /// Reads once at an offset; EINTR repeats. Returns the bytes read, 0 at the end, or -1.
    package static func readOnce(
        _ descriptor: Int32, into buffer: UnsafeMutableRawBufferPointer, at offset: UInt64
    ) -> Int {
        while true {
            let got = unsafe pread(
                descriptor, buffer.baseAddress, buffer.count, off_t(clamping: offset))
            if got >= 0 || errno != EINTR { return got }
        }
    }

    /// The same into the beginning of an array, at most as many bytes as it has.
    package static func readOnce(
        _ descriptor: Int32, into bytes: inout [UInt8], _ count: Int, at offset: UInt64
    ) -> Int {
        unsafe bytes.withUnsafeMutableBytes {
            unsafe readOnce(
                descriptor, into: UnsafeMutableRawBufferPointer(rebasing: $0.prefix(count)),
                at: offset)
        }
    }

    /// Reads once where the last read ended; EINTR repeats. Returns the bytes read, 0 at the end,
    /// or -1.
    package static func readNext(
        _ descriptor: Int32, into buffer: UnsafeMutableRawBufferPointer
    ) -> Int {
        while true {
            let got = unsafe Glibc.read(descriptor, buffer.baseAddress, buffer.count)
            if got >= 0 || errno != EINTR { return got }
        }
    }

    /// Reads a whole file, also one of /proc, whose size is not known before. Follows links. nil:
    /// it cannot be read, or has more bytes.
    package static func content(_ path: FilePath, bytesMax: Int) -> [UInt8]? {
        let descriptor = openFollowing(path, [.read, .nonBlocking, .noTerminal])
        guard descriptor >= 0 else { return nil }
        defer { _ = Glibc.close(descriptor) }
        var bytes: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: 64 << 10)
        while bytes.count <= bytesMax {
            let count = unsafe piece.withUnsafeMutableBytes {
                unsafe readNext(descriptor, into: $0)
            }
            if count <= 0 { return count == 0 ? bytes : nil }
            bytes += piece.prefix(count)
        }
        return nil
    }

    /// Only this user has access to files that the body makes. The mask is the whole process's: no
    /// other thread may make files meanwhile.
    package static func privately<T>(_ body: () throws -> T) rethrows -> T {
        let old = umask(0o177)
        defer { umask(old) }
        return try body()
    }

    /// Writes all bytes where the last write ended; EINTR repeats. Returns 0 or an errno.
    package static func write(_ descriptor: Int32, _ bytes: UnsafeRawBufferPointer) -> Int32 {
        guard let start = bytes.baseAddress else { return 0 }
        var done = 0
        while done < bytes.count {
            let put = unsafe Glibc.write(descriptor, start + done, bytes.count - done)
            if put > 0 {
                done += put
            } else if put == 0 {
                return EIO
            } else if errno != EINTR {
                return errno
            }
        }
        return 0
    }

    /// Writes once. Returns the bytes written, or -1.
    package static func writeOnce(_ descriptor: Int32, _ bytes: UnsafeRawBufferPointer) -> Int {
        unsafe Glibc.write(descriptor, bytes.baseAddress, bytes.count)
    }

    /// Waits until a pipe, terminal or socket takes bytes. timeoutMs -1: for ever. False: not yet.
    @discardableResult
    package static func isWritable(_ descriptor: Int32, timeoutMs: Int32) -> Bool {
        var wait = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
        return unsafe poll(&wait, 1, timeoutMs) == 1 && Int32(wait.revents) & POLLOUT != 0
    }

    /// A pipe's readers, or a socket's other end, are gone.
    package static func isHungUp(_ descriptor: Int32) -> Bool {
        var state = pollfd(fd: descriptor, events: 0, revents: 0)
        return unsafe poll(&state, 1, 0) == 1 && Int32(state.revents) & (POLLERR | POLLHUP) != 0
    }

    /// The next read or write begins at the file's first byte.
    package static func rewind(_ descriptor: Int32) -> Bool {
        lseek(descriptor, 0, SEEK_SET) == 0
    }

    /// The size of a seekable file or device; -1: it is not seekable.
    package static func seekEnd(_ descriptor: Int32) -> Int { lseek(descriptor, 0, SEEK_END) }

    /// Sets when the file was written, and accessed, in Unix ns.
    package static func setModified(_ descriptor: Int32, _ ns: UInt64) -> Bool {
        let time = timespec(
            tv_sec: Int(ns / 1_000_000_000), tv_nsec: Int(ns % 1_000_000_000))
        return unsafe futimens(descriptor, [time, time]) == 0
    }

    /// Makes a file's content, or a directory's names, durable.
    package static func sync(_ descriptor: Int32) -> Bool { fsync(descriptor) == 0 }
    package static func syncData(_ descriptor: Int32) -> Bool { fdatasync(descriptor) == 0 }

    // MARK: Names

    package static func makeDirectory(_ path: FilePath) -> Bool {
        unsafe path.lend {
            let error = unsafe cwi_make_directory_at($0, $1)
            if error != 0 { errno = error }
            return error == 0
        }
    }

    /// Takes back what others may change of this user's file or folder. True also on a file system
    /// without modes, where the mount says who may change it (vfat, drvfs, CIFS).
    package static func closeToOthers(_ path: FilePath, _ known: FileFacts) -> Bool {
        guard known.owner == Machine.userID() else { return false }
        let descriptor = open(path, [.read, .nonBlocking, .noTerminal])
        guard descriptor >= 0 else { return false }
        defer { close(descriptor) }
        guard let facts = FileFacts(of: descriptor), facts.isSameFile(as: known) else {
            return false
        }
        return fchmod(descriptor, facts.mode & ~0o022) == 0 || errno == EPERM || errno == EOPNOTSUPP
    }

    package static func move(_ from: FilePath, to: FilePath) -> Bool {
        unsafe from.lend { fromBase, from in
            unsafe to.lend { unsafe renameat(fromBase, from, $0, $1) == 0 }
        }
    }

    package static func move(_ from: String, to: String, in directory: Int32) -> Bool {
        unsafe renameat(directory, from, directory, to) == 0
    }

    @discardableResult
    package static func remove(_ path: FilePath) -> Bool {
        unsafe path.lend { unsafe unlinkat($0, $1, 0) == 0 }
    }

    package static func remove(_ name: String, in directory: Int32) {
        unsafe unlinkat(directory, name, 0)
    }

    package static func removeDirectory(_ path: FilePath) {
        _ = unsafe path.lend { unsafe unlinkat($0, $1, AT_REMOVEDIR) }
    }

    package static func exists(following path: FilePath) -> Bool { isAllowed(path, F_OK) }

    package static func isReadable(_ path: FilePath) -> Bool { isAllowed(path, R_OK) }

    /// True if files may be made in that directory; false on read-only media, too.
    package static func mayChange(directory path: FilePath) -> Bool { isAllowed(path, W_OK | X_OK) }

    private static func isAllowed(_ path: FilePath, _ mode: Int32) -> Bool {
        unsafe path.lend { unsafe faccessat($0, $1, mode, 0) == 0 }
    }

    /// The target of a link; nil: not a link, or its target has more than `bytesMax` bytes.
    package static func target(of path: FilePath, bytesMax: Int = 4_095) -> String? {
        unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: bytesMax + 1) { buffer in
            let count = unsafe path.lend {
                unsafe readlinkat($0, $1, buffer.baseAddress!, bytesMax)
            }
            guard count > 0 else { return nil }
            unsafe buffer[count] = 0
            return unsafe String(cString: buffer.baseAddress!)
        }
    }

    package static func workingDirectory() -> String? {
        guard let path = unsafe getcwd(nil, 0) else { return nil }
        defer { unsafe free(path) }
        return unsafe String(cString: path)
    }

    // MARK: Locks. None of them waits.

    /// Takes flock(2)'s lock: exclusive, or shared with others that share.
    package static func lock(_ descriptor: Int32, shared: Bool = false) -> Bool {
        flock(descriptor, (shared ? LOCK_SH : LOCK_EX) | LOCK_NB) == 0
    }

    package static func unlock(_ descriptor: Int32) { flock(descriptor, LOCK_UN) }

    /// Takes the open file's own lock, which is independent of flock's, on the whole file or on one
    /// byte, which need not exist. Also true on a file system without such locks.
    package static func lockOpenFile(_ descriptor: Int32, byte: UInt64? = nil) -> Bool {
        if let byte { return cwi_lock_byte(descriptor, off_t(byte)) == 0 }
        return cwi_lock_file(descriptor) == 0
    }

    /// Releases every lock that `lockOpenFile` took through this open file.
    package static func unlockOpenFile(_ descriptor: Int32) { cwi_unlock_file(descriptor) }
}
