// The few file operations of the collector, each with its retry and its error in one place.
// Blocking: called on the file pool or before the collector serves, never on an event loop.
// SAFETY: paths are lent to one call each; writes take the view's bytes and no more.

import Cordwood
import Glibc

struct FileProblem: Error {
    let operation: String
    let errno: Int32

    var isFull: Bool { errno == ENOSPC || errno == EDQUOT || errno == EFBIG }
}

func errorText(_ number: Int32) -> String {
    unsafe String(cString: strerror(number))
}

enum DepotFiles {
    static func open(_ path: String, _ flags: Int32) throws(FileProblem) -> Int32 {
        while true {
            let descriptor = unsafe Glibc.open(path, flags | O_CLOEXEC | O_NOFOLLOW, 0o600)
            if descriptor >= 0 { return descriptor }
            if errno != EINTR { throw FileProblem(operation: "open \(path)", errno: errno) }
        }
    }

    @safe static func writeAll(_ descriptor: Int32, _ bytes: UnsafeRawBufferPointer)
        throws(FileProblem)
    {
        var done = 0
        while done < bytes.count {
            let written = unsafe write(descriptor, bytes.baseAddress! + done, bytes.count - done)
            if written > 0 {
                done += written
            } else if written == 0 {
                throw FileProblem(operation: "write", errno: EIO)
            } else if errno != EINTR {
                throw FileProblem(operation: "write", errno: errno)
            }
        }
    }

    static func sync(_ descriptor: Int32) throws(FileProblem) {
        while fsync(descriptor) != 0 {
            if errno != EINTR { throw FileProblem(operation: "fsync", errno: errno) }
        }
    }

    static func syncDirectory(_ path: String) throws(FileProblem) {
        let descriptor = try open(path, O_RDONLY | O_DIRECTORY)
        defer { close(descriptor) }
        try sync(descriptor)
    }

    static func move(_ from: String, to: String) throws(FileProblem) {
        guard unsafe rename(from, to) == 0 else {
            throw FileProblem(operation: "rename to \(to)", errno: errno)
        }
    }

    static func exists(_ path: String) -> Bool { unsafe access(path, F_OK) == 0 }

    static func names(in path: String) throws(FileProblem) -> [String] {
        let listing = DirectoryListing(path, hidden: true)
        guard listing.error == 0 else {
            throw FileProblem(operation: "list \(path)", errno: listing.error)
        }
        return listing.names
    }

    /// 16 unpredictable hex digits.
    static func randomName() -> String {
        Hex.text(UInt64.random(in: .min ... .max))
    }
}
