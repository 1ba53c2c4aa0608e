// The few file operations of the collector, each with its retry and its error in one place.
// Blocking: called on the file pool or before the collector serves, never on an event loop.
// SAFETY: paths are lent to one call each; writes take the view's bytes and no more.

import Cordwood

struct FileProblem: Error {
    let operation: String
    let errno: Int32

    var isFull: Bool { errno == Errno.ENOSPC || errno == Errno.EDQUOT || errno == Errno.EFBIG }
}

enum DepotFiles {
    static func open(_ path: String, _ flags: OpenFlags) throws(FileProblem) -> Int32 {
        while true {
            let descriptor = Files.openKept(FilePath(path), flags)
            if descriptor >= 0 { return descriptor }
            if Errno.last != Errno.EINTR {
                throw FileProblem(operation: "open \(path)", errno: Errno.last)
            }
        }
    }

    @safe static func writeAll(_ descriptor: Int32, _ bytes: UnsafeRawBufferPointer)
        throws(FileProblem)
    {
        let error = unsafe Files.write(descriptor, bytes)
        guard error == 0 else { throw FileProblem(operation: "write", errno: error) }
    }

    static func writeAll(_ descriptor: Int32, _ bytes: [UInt8]) throws(FileProblem) {
        // SAFETY: the array outlives the call.
        let error = unsafe bytes.withUnsafeBytes { unsafe Files.write(descriptor, $0) }
        guard error == 0 else { throw FileProblem(operation: "write", errno: error) }
    }

    static func sync(_ descriptor: Int32) throws(FileProblem) {
        while !Files.sync(descriptor) {
            if Errno.last != Errno.EINTR {
                throw FileProblem(operation: "fsync", errno: Errno.last)
            }
        }
    }

    static func syncDirectory(_ path: String) throws(FileProblem) {
        let descriptor = try open(path, .directory)
        defer { FileCalls.close(descriptor) }
        try sync(descriptor)
    }

    static func move(_ from: String, to: String) throws(FileProblem) {
        guard Files.move(FilePath(from), to: FilePath(to)) else {
            throw FileProblem(operation: "rename to \(to)", errno: Errno.last)
        }
    }

    static func names(in path: String) throws(FileProblem) -> [String] {
        let listing = DirectoryListing(FilePath(path), hidden: true)
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
