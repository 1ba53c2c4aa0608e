// Environment variables, paths and the store's directories: what open needs from the system.
// SAFETY: what the C library returns is copied before the next call; buffers lie on the stack and
// are read as far as the call says it filled them.

import CShims
import CordwoodCore
import CordwoodShip
import Glibc

enum Environment {
    static func value(_ name: String) -> String? {
        unsafe getenv(name).map { unsafe String(cString: $0) }
    }

    /// The program's own name, without directories.
    static func processName() -> String {
        unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: 4096) { buffer in
            let count = unsafe readlink("/proc/self/exe", buffer.baseAddress!, 4095)
            guard count > 0 else { return "unknown" }
            unsafe buffer[count] = 0
            let path = unsafe String(cString: buffer.baseAddress!)
            return path.split(separator: "/").last.map(String.init) ?? "unknown"
        }
    }

    /// host.name, os.*, device.* (OpenTelemetry's names); what cannot be read is left out.
    static func resource() -> [(String, String)] {
        var result: [(String, String)] = []
        var names = utsname()
        if unsafe uname(&names) == 0 {
            result.append(("host.name", text(&names.nodename)))
            result.append(("os.type", text(&names.sysname).lowercased()))
            result.append(("os.version", text(&names.release)))
            result.append(("host.arch", text(&names.machine)))
        }
        if let maker = firstLine("/sys/class/dmi/id/sys_vendor") {
            result.append(("device.manufacturer", maker))
        }
        if let model = firstLine("/sys/class/dmi/id/product_name") {
            result.append(("device.model.identifier", model))
        }
        return result.filter { !$0.1.isEmpty }
    }

    private static func text<T>(_ field: inout T) -> String {
        unsafe withUnsafeBytes(of: &field) { bytes in
            unsafe String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
        }
    }

    private static func firstLine(_ path: String) -> String? {
        let descriptor = unsafe cw_open_file(path, O_RDONLY, 0)
        guard descriptor >= 0 else { return nil }
        defer { Glibc.close(descriptor) }
        return unsafe withUnsafeTemporaryAllocation(byteCount: 256, alignment: 1) { buffer in
            let count = unsafe read(descriptor, buffer.baseAddress, 256)
            guard count > 0 else { return nil }
            let line = unsafe buffer.prefix(count).prefix { $0 != 10 }
            return unsafe line.isEmpty ? nil : String(decoding: line, as: UTF8.self)
        }
    }
}

enum Directories {
    /// Makes a directory and its missing parents, 0700. lasts: their names outlast a loss of power;
    /// what is in them is worth nothing without.
    static func make(_ path: String, lasts: Bool = false) throws(CordwoodError) {
        var status = stat()
        if unsafe stat(path, &status) == 0 {
            guard status.st_mode & S_IFMT == S_IFDIR else {
                throw CordwoodError(Status.notDirectory, "\(path) is not a directory")
            }
            return
        }
        if errno == ENOTDIR {
            throw CordwoodError(Status.notDirectory, "a part of \(path) is not a directory")
        }
        var parent = path.hasPrefix("/") ? "/" : "."
        if let slash = path.lastIndex(of: "/"), slash != path.startIndex {
            parent = String(path[..<slash])
            try make(parent, lasts: lasts)
        }
        if unsafe mkdir(path, 0o700) != 0 {
            if errno == EEXIST { return }
            throw failure("make directory", path)
        }
        // A folder of somebody else's may be closed to us for reading: no reason not to log.
        if lasts { _ = sync(parent + "/.") }
    }

    /// One of the store's own directories. A link is refused: what is made and removed there would
    /// be made and removed elsewhere.
    static func makeOwn(_ path: String) throws(CordwoodError) {
        var status = stat()
        if unsafe lstat(path, &status) == 0, status.st_mode & S_IFMT != S_IFDIR {
            throw CordwoodError(Status.notDirectory, "\(path) is not a directory")
        }
        try make(path)
    }

    /// The host may change its working directory as soon as a store is open.
    static func absolute(_ path: String) throws(CordwoodError) -> String {
        if path.hasPrefix("/") { return path }
        let here = unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: 4096) { buffer in
            unsafe getcwd(buffer.baseAddress!, buffer.count).map { unsafe String(cString: $0) }
        }
        guard let here else { throw failure("find the working directory for", path) }
        return here == "/" ? here + path : here + "/" + path
    }

    static func open(_ path: String) throws(CordwoodError) -> Int32 {
        let descriptor = unsafe cw_open_file(path, O_RDONLY | O_DIRECTORY, 0)
        guard descriptor >= 0 else { throw failure("open directory", path) }
        return descriptor
    }

    /// Names in a directory, unsorted; none where it does not exist or cannot be read.
    static func names(_ path: String) -> [String] { list(path) ?? [] }

    /// The same; nil: it cannot be read.
    static func list(_ path: String) -> [String]? {
        guard let directory = unsafe opendir(path) else { return errno == ENOENT ? [] : nil }
        defer { unsafe closedir(directory) }
        var names: [String] = []
        errno = 0
        while let entry = unsafe readdir(directory) {
            let name = unsafe withUnsafePointer(to: &entry.pointee.d_name) {
                unsafe $0.withMemoryRebound(to: CChar.self, capacity: 256) {
                    unsafe String(cString: $0)
                }
            }
            if name != ".", name != ".." { names.append(name) }
            errno = 0
        }
        return errno == 0 ? names : nil
    }

    /// Makes a directory's names, or a file's content, durable. 0 or an errno.
    static func sync(_ path: String) -> Int32 {
        var descriptor = unsafe cw_open_file(path, O_RDONLY | O_NONBLOCK, 0)
        if descriptor < 0, errno == ELOOP, let target = SegmentLink.target(path) {
            descriptor = unsafe cw_open_file(target, O_RDONLY | O_NONBLOCK, 0)
        }
        guard descriptor >= 0 else { return errno }
        defer { Glibc.close(descriptor) }
        return fsync(descriptor) == 0 ? 0 : errno
    }

    /// The last errno as an error that names what was tried, and where.
    static func failure(_ action: String, _ path: String) -> CordwoodError {
        let number = errno
        return CordwoodError(
            Status.of(errno: number),
            "could not \(action) \(path): \(systemText(number))")
    }

    /// Removes a directory that holds files and directories of ours; used for ":memory:" stores
    /// only.
    static func removeTree(_ path: String) {
        for name in names(path) {
            let child = path + "/" + name
            if unsafe unlink(child) != 0, errno == EISDIR || errno == EPERM { removeTree(child) }
        }
        unsafe rmdir(path)
    }
}
