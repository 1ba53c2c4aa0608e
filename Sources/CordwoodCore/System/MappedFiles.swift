// The lane files that this process has mapped, as /proc/self/maps names them. A mapping stays when
// the host closes every descriptor, its path follows each rename, and it keeps the directories
// above it from being freed. So their device and inode prove that a directory found here is the one
// that was open. System calls only: any thread, handlers and children, too.
// SAFETY: lines lie in a mapping of this call; a path is lent to one call of the body.

import CShims
import Glibc

enum MappedFiles {
    /// No look is possible, for example because no descriptor is free, or each meets a rename.
    static let notNow: Int32 = -2
    /// Between two looks for the same directory, if the first was in vain.
    static let pauseNs: UInt64 = 100_000_000
    private static let looksMax = 8
    private static let bufferBytes = 16_384

    /// Opens the directory that many levels above a mapped lane file. -1: none has that identity.
    /// Who renames a directory above it after its path was read makes that path lead nowhere, so
    /// a look is in vain only if the next one reads the same paths.
    static func directory(levels: Int, _ device: UInt64, _ inode: UInt64) -> Int32 {
        var before = Paths()
        for _ in 0..<looksMax {
            var paths = Paths()
            let found = look(levels: levels, device, inode, &paths)
            if found != -1 || paths == before { return found }
            before = paths
        }
        return notNow
    }

    private static func look(
        levels: Int, _ device: UInt64, _ inode: UInt64, _ paths: inout Paths
    ) -> Int32 {
        var found: Int32 = -1
        let isRead = unsafe forEach { path, count, _ in
            unsafe paths.add(path, count)
            var (left, end) = (levels, count)
            while left > 0, end > 1 {
                end -= 1
                if unsafe path[end] == slash { left -= 1 }
            }
            guard left == 0 else { return false }
            unsafe path[end] = 0
            let descriptor = unsafe FileCalls.openKept(path, .directory)
            unsafe path[end] = slash
            if cwi_fd_is(descriptor, device, inode) {
                found = descriptor
            } else if descriptor >= 0 {
                FileCalls.close(descriptor)
            } else if isShort {
                found = notNow
            }
            return found != -1
        }
        return isRead ? found : notNow
    }

    /// Tells apart the paths that two looks read: a sum of their bytes' FNV-1a.
    private struct Paths: Equatable {
        private var hash: UInt64 = 0xcbf2_9ce4_8422_2325

        mutating func add(_ path: UnsafePointer<CChar>, _ count: Int) {
            for i in 0...count {
                unsafe hash = (hash ^ UInt64(UInt8(bitPattern: path[i]))) &* 0x100_0000_01b3
            }
        }
    }

    /// Whether a mapped lane file has lost that name. False also if the system does not say.
    static func isDeleted(_ name: UnsafePointer<CChar>) -> Bool {
        var result = false
        let length = unsafe strlen(name)
        _ = unsafe forEach { path, count, isDeleted in
            guard count > length, unsafe path[count - length - 1] == slash,
                unsafe memcmp(path + count - length, name, length) == 0
            else { return false }
            result = isDeleted
            return true
        }
        return result
    }

    /// errno says that the process lacks something.
    private static var isShort: Bool { errno == EMFILE || errno == ENFILE || errno == ENOMEM }
    private static var slash: CChar { 47 }

    /// Calls the body with each path and its length, until it returns true. False: something is
    /// lacking.
    private static func forEach(
        _ body: (_ path: UnsafeMutablePointer<CChar>, _ count: Int, _ isDeleted: Bool) -> Bool
    ) -> Bool {
        guard let buffer = unsafe Mapping.anonymous(bytes: bufferBytes, wipedOnFork: false) else {
            return false
        }
        defer { unsafe Mapping.release(buffer, bytes: bufferBytes) }
        let file = unsafe cwi_file_open_at(AT_FDCWD, "/proc/self/maps", O_RDONLY, 0)
        guard file >= 0 else { return !isShort }
        defer { cwi_file_close(file) }
        let text = unsafe buffer.assumingMemoryBound(to: CChar.self)
        var held = 0
        // A file of the host's may have a path that is longer than the buffer.
        var isCut = false
        while true {
            let count = unsafe read(file, text + held, bufferBytes - held)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return count == 0 }
            held += count
            var start = 0
            while let end = unsafe memchr(text + start, 10, held - start) {
                let length = unsafe end.assumingMemoryBound(to: CChar.self) - (text + start)
                if !isCut, unsafe lend(text + start, length, body) { return true }
                isCut = false
                start += length + 1
            }
            if held - start == bufferBytes { isCut = true }
            if isCut { start = held }
            unsafe memmove(text, text + start, held - start)
            held -= start
        }
    }

    /// Cuts a line to its path, if that is a lane file's.
    private static func lend(
        _ line: UnsafeMutablePointer<CChar>, _ length: Int,
        _ body: (UnsafeMutablePointer<CChar>, Int, Bool) -> Bool
    ) -> Bool {
        guard let first = unsafe memchr(line, 47, length) else { return false }
        let path = unsafe first.assumingMemoryBound(to: CChar.self)
        var count = unsafe length - (path - line)
        let isDeleted = unsafe ends(path, count, with: " (deleted)")
        if isDeleted { count -= 10 }
        guard unsafe ends(path, count, with: ".lane") else { return false }
        unsafe path[count] = 0
        if unsafe body(path, count, isDeleted) { return true }
        let decoded = unsafe withLineFeeds(path, count)
        unsafe path[decoded] = 0
        return unsafe decoded < count && body(path, decoded, isDeleted)
    }

    private static func ends(
        _ text: UnsafePointer<CChar>, _ count: Int, with end: StaticString
    ) -> Bool {
        let length = end.utf8CodeUnitCount
        return unsafe count >= length && memcmp(text + count - length, end.utf8Start, length) == 0
    }

    /// The kernel writes a line feed of a path as `\012`, and a backslash as it is. Returns the
    /// path's length.
    private static func withLineFeeds(_ path: UnsafeMutablePointer<CChar>, _ count: Int) -> Int {
        var (from, to) = (0, 0)
        while from < count {
            let isFeed = unsafe count - from >= 4 && memcmp(path + from, "\\012", 4) == 0
            unsafe path[to] = isFeed ? 10 : path[from]
            from += isFeed ? 4 : 1
            to += 1
        }
        return to
    }
}
