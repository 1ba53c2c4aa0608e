// The file system calls of the append path. They avoid the heap and build names in fixed buffers,
// so a signal handler or a forked child may call them. They return 0 or an errno, a descriptor or
// -1 with `Errno.last`, and interpret nothing. Code above the append path uses Files.

import CShims
import Glibc

package enum FileCalls {
    /// Grows a file by blocks that are actually allocated. Returns 0 or an errno; never raises
    /// SIGXFSZ.
    static func allocate(_ descriptor: Int32, offset: UInt64, bytes: UInt64) -> Int32 {
        // Beyond the limit the kernel would send SIGXFSZ, whose default kills the host.
        guard offset &+ bytes <= cw_file_size_limit() else { return EFBIG }
        while true {
            if cw_fallocate(descriptor, 0, off_t(offset), off_t(bytes)) == 0 { return 0 }
            if errno != EINTR { return errno }
        }
    }

    /// Writes zeros over allocated bytes. The file's pages are then allocated in large pieces, and
    /// mapping them costs a quarter of faulting them in one by one. Returns 0 or an errno.
    package static func writeZeros(_ descriptor: Int32, offset: UInt64, bytes: UInt64) -> Int32 {
        guard offset &+ bytes <= cw_file_size_limit() else { return EFBIG }
        return cwi_write_zeros(descriptor, offset, bytes)
    }

    /// True if the file's last name was removed.
    static func isNameless(_ descriptor: Int32) -> Bool {
        var status = stat()
        return unsafe fstat(descriptor, &status) == 0 && status.st_nlink == 0
    }

    /// True if the directory was deleted. Overlayfs does not always take the names off its count;
    /// then only an attempt to make a file shows it.
    static func isDeleted(_ directory: Int32) -> Bool {
        if isNameless(directory) { return true }
        let name = ".try"
        guard unsafe mkdirat(directory, name, 0o700) != 0 else {
            unsafe unlinkat(directory, name, AT_REMOVEDIR)
            return false
        }
        return errno == ENOENT
    }

    /// Opens a file that forked children keep. Links are not followed. -1: `Errno.last` says why.
    static func openKept(_ path: UnsafePointer<CChar>, _ flags: OpenFlags) -> Int32 {
        unsafe cw_open_file(path, flags.rawValue, 0o600)
    }

    static func openKept(
        _ name: UnsafePointer<CChar>, in directory: Int32, _ flags: OpenFlags
    ) -> Int32 {
        unsafe cwi_open_at(directory, name, flags.rawValue, 0o600)
    }

    /// The same for a file that forked children close. Here `Files.close` closes it.
    static func open(
        _ name: UnsafePointer<CChar>, in directory: Int32, _ flags: OpenFlags
    ) -> Int32 {
        unsafe cwi_file_open_at(directory, name, flags.rawValue, 0o600)
    }

    static func remove(_ name: UnsafePointer<CChar>, in directory: Int32) {
        unsafe unlinkat(directory, name, 0)
    }

    /// Returns 0 or an errno.
    static func move(
        _ from: UnsafePointer<CChar>, to: UnsafePointer<CChar>, in directory: Int32
    ) -> Int32 {
        unsafe renameat(directory, from, directory, to) == 0 ? 0 : errno
    }

    static func link(
        _ name: UnsafePointer<CChar>, in directory: Int32, to target: UnsafePointer<CChar>
    ) -> Bool {
        unsafe symlinkat(target, directory, name) == 0
    }

    /// Makes a directory for this user alone. Returns 0 or an errno; it may exist already.
    static func makeDirectory(_ path: UnsafePointer<CChar>) -> Int32 {
        unsafe mkdir(path, 0o700) == 0 || errno == EEXIST ? 0 : errno
    }

    /// False: the name leads nowhere or to another file. True also if that cannot be determined.
    static func isNamed(
        _ name: UnsafePointer<CChar>, in directory: Int32, _ device: UInt64, _ inode: UInt64
    ) -> Bool {
        var status = stat()
        guard unsafe fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) == 0 else {
            return errno != ENOENT
        }
        return UInt64(status.st_dev) == device && UInt64(status.st_ino) == inode
    }

    /// The same for a path.
    static func isNamed(
        _ path: UnsafePointer<CChar>, _ device: UInt64, _ inode: UInt64
    ) -> Bool {
        unsafe isNamed(path, in: AT_FDCWD, device, inode)
    }

    /// Cuts or extends a file.
    static func resize(_ descriptor: Int32, to bytes: UInt64) -> Bool {
        ftruncate(descriptor, off_t(bytes)) == 0
    }

    package static func close(_ descriptor: Int32) {
        if descriptor >= 0 { _ = Glibc.close(descriptor) }
    }

    /// Makes the directory's recent renames and removals durable. Returns 0 or an errno.
    static func sync(_ descriptor: Int32) -> Int32 {
        while fsync(descriptor) != 0 {
            if errno != EINTR { return errno }
        }
        return 0
    }

    static func syncData(_ descriptor: Int32) -> Int32 {
        while fdatasync(descriptor) != 0 {
            if errno != EINTR { return errno }
        }
        return 0
    }

    /// Writes all bytes at an offset. Returns 0 or an errno.
    static func write(
        _ descriptor: Int32, _ bytes: UnsafeRawPointer, _ count: Int, at offset: UInt64
    ) -> Int32 {
        // As in allocate: do not raise SIGXFSZ in the host's thread.
        guard offset &+ UInt64(count) <= cw_file_size_limit() else { return EFBIG }
        var done = 0
        while done < count {
            let n = unsafe pwrite(
                descriptor, bytes + done, count - done, off_t(offset) + off_t(done))
            if n < 0 {
                if errno == EINTR { continue }
                return errno
            }
            if n == 0 { return EIO }
            done += n
        }
        return 0
    }

    /// Reads a small file of /proc or /sys into the buffer. Returns the bytes read, or -1.
    static func readSmall(_ path: StaticString, _ buffer: UnsafeMutableRawBufferPointer) -> Int {
        let descriptor = unsafe cw_open_file(
            UnsafeRawPointer(path.utf8Start).assumingMemoryBound(to: CChar.self), O_RDONLY, 0)
        guard descriptor >= 0 else { return -1 }
        defer { close(descriptor) }
        return unsafe read(descriptor, buffer.baseAddress, buffer.count)
    }
}

/// A NUL-terminated name in a fixed buffer. Longer text is cut, and `isCut` says so.
@safe struct NameBuffer: ~Copyable {
    /// SAFETY: owned by this struct alone; anonymous memory would work, too, but the stack is
    /// faster.
    private let start: UnsafeMutablePointer<CChar>
    private let capacity: Int
    private(set) var count = 0
    private(set) var isCut = false

    init(_ buffer: UnsafeMutableBufferPointer<CChar>) {
        unsafe start = buffer.baseAddress!
        capacity = buffer.count - 1
        unsafe start[0] = 0
    }

    var pointer: UnsafePointer<CChar> { unsafe UnsafePointer(start) }

    mutating func add(byte: UInt8) {
        guard count < capacity else {
            isCut = true
            return
        }
        unsafe start[count] = CChar(bitPattern: byte)
        count += 1
        unsafe start[count] = 0
    }

    mutating func add(_ text: StaticString) {
        for i in 0..<text.utf8CodeUnitCount { unsafe add(byte: text.utf8Start[i]) }
    }

    mutating func add(_ text: UnsafePointer<CChar>, _ length: Int) {
        for i in 0..<length { unsafe add(byte: UInt8(bitPattern: text[i])) }
    }

    mutating func add(decimal value: UInt64, digits: Int = 1) {
        var divisor: UInt64 = 1
        var width = 1
        while value / divisor >= 10 || width < digits {
            divisor *= 10
            width += 1
        }
        while divisor > 0 {
            add(byte: UInt8(48 + value / divisor % 10))
            divisor /= 10
        }
    }

    mutating func add(hex value: UInt64) {
        for shift in stride(from: 60, through: 0, by: -4) {
            let digit = UInt8(value >> UInt64(shift) & 15)
            add(byte: digit < 10 ? 48 + digit : 87 + digit)
        }
    }
}
