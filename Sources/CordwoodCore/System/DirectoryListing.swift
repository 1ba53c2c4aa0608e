// Lists the names in a directory; all code that reads directories uses this. Any thread.
// SAFETY: a name is NUL-terminated within its entry, which stays valid until the next one is read;
// the name is copied before that.

import Glibc

package struct DirectoryListing {
    /// Unsorted, without `.` and `..`.
    package private(set) var names: [String] = []
    /// An errno. If it is not 0, there may be more names. ENOENT: no such directory.
    package private(set) var error: Int32 = 0

    /// - Parameters:
    ///   - hidden: also names that begin with a dot.
    ///   - prefix: only names that begin so; large directories are looked through for one.
    package init(_ path: String, hidden: Bool = false, prefix: String = "") {
        guard let directory = unsafe opendir(path) else {
            error = errno
            return
        }
        defer { unsafe closedir(directory) }
        let wanted = prefix.utf8CString
        errno = 0
        while let entry = unsafe readdir(directory) {
            unsafe withUnsafePointer(to: &entry.pointee.d_name) { field in
                let name = unsafe UnsafeRawPointer(field).assumingMemoryBound(to: CChar.self)
                let begins = unsafe wanted.withUnsafeBufferPointer {
                    unsafe strncmp(name, $0.baseAddress.unsafelyUnwrapped, wanted.count - 1) == 0
                }
                guard begins else { return }
                let text = unsafe String(cString: name)
                let isWanted = hidden ? text != "." && text != ".." : !text.hasPrefix(".")
                if isWanted { names.append(text) }
            }
            errno = 0
        }
        error = errno
    }
}
