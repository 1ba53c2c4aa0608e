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
    ///   - prefix: only names that begin with it, to find one in a large directory.
    package init(_ path: FilePath, hidden: Bool = false, prefix: String = "") {
        guard let directory = unsafe path.openNames() else {
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

/// Many names in a directory, in order. They are sorted as bytes, and become strings at the end.
package struct SortedNames {
    package private(set) var names: [String] = []
    /// An errno. If it is not 0, there may be more names. ENOENT: no such directory.
    package private(set) var error: Int32 = 0

    /// Fewer names than this are sorted by comparison.
    private static let comparedMax = 256

    private struct Name {
        var start: Int
        var end: Int
        /// The eight bytes after the shared prefix.
        var key: UInt64 = 0
    }

    /// Takes names that end in `suffix` and do not begin with a dot.
    package init(in directory: FilePath, suffix: String) {
        guard let opened = unsafe directory.openNames() else {
            error = errno
            return
        }
        defer { unsafe closedir(opened) }
        let ending = Array(suffix.utf8)
        var text: [UInt8] = []
        var names: [Name] = []
        errno = 0
        while let entry = unsafe readdir(opened) {
            unsafe withUnsafePointer(to: &entry.pointee.d_name) { field in
                let first = unsafe UnsafeRawPointer(field).assumingMemoryBound(to: UInt8.self)
                let count = unsafe strlen(
                    UnsafeRawPointer(field).assumingMemoryBound(to: CChar.self))
                let name = unsafe UnsafeBufferPointer(start: first, count: count)
                guard count > ending.count, unsafe name[0] != 0x2e,
                    unsafe name.suffix(ending.count).elementsEqual(ending)
                else { return }
                names.append(Name(start: text.count, end: text.count &+ count))
                unsafe text.append(contentsOf: name)
            }
            errno = 0
        }
        error = errno
        Self.sort(&names, text)
        self.names = names.map { String(decoding: text[$0.start..<$0.end], as: UTF8.self) }
    }

    private static func sort(_ names: inout [Name], _ text: [UInt8]) {
        guard let first = names.first else { return }
        var shared = first.end &- first.start
        for name in names {
            var at = 0
            while at < min(shared, name.end &- name.start),
                text[first.start &+ at] == text[name.start &+ at]
            { at &+= 1 }
            shared = at
        }
        sort(&names, names.indices, text, from: shared)
    }

    /// Sorts names that share all bytes before `from`: by the next eight bytes, and those that
    /// share these, too, by what follows.
    private static func sort(
        _ names: inout [Name], _ range: Range<Int>, _ text: [UInt8], from: Int
    ) {
        for index in range {
            names[index].key = 0
            let start = names[index].start &+ from
            for at in start..<start &+ 8 {
                let byte = at < names[index].end ? text[at] : 0
                names[index].key = names[index].key &<< 8 | UInt64(byte)
            }
        }
        sortByKeys(&names, range)
        var start = range.lowerBound
        while start < range.upperBound {
            var end = start &+ 1
            while end < range.upperBound, names[end].key == names[start].key { end &+= 1 }
            // A directory that changes while it is read may list a name twice.
            if end &- start > 1,
                names[start..<end].contains(where: { $0.end &- $0.start > from &+ 8 })
            {
                sort(&names, start..<end, text, from: from &+ 8)
            }
            start = end
        }
    }

    /// Many names: a radix sort from the last byte to the first, which skips bytes that all names
    /// share.
    private static func sortByKeys(_ names: inout [Name], _ range: Range<Int>) {
        if range.count < comparedMax { return names[range].sort { $0.key < $1.key } }
        var (from, sorted) = (Array(names[range]), Array(names[range]))
        for shift in stride(from: 0, to: 64, by: 8) {
            var places = [Int](repeating: 0, count: 256)
            for name in from { places[Int(name.key >> shift & 255)] &+= 1 }
            if places.contains(from.count) { continue }
            var next = 0
            for byte in places.indices {
                let count = places[byte]
                places[byte] = next
                next &+= count
            }
            for name in from {
                let byte = Int(name.key >> shift & 255)
                sorted[places[byte]] = name
                places[byte] &+= 1
            }
            swap(&from, &sorted)
        }
        for (offset, name) in from.enumerated() { names[range.lowerBound &+ offset] = name }
    }
}
