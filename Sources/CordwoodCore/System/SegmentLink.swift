// A segment whose file lies in memory: its name in lanes/ is a symbolic link (FORMAT §2). Used by
// readers, and by code that removes a segment by its name; any thread.

import Glibc

package enum SegmentLink {
    /// Followed by the user's number, `/` and 16 hex digits.
    static let folder: StaticString = "/dev/shm/cordwood-segments-"

    /// The target of a link in lanes/. nil: it is a file, or not one of our links.
    package static func target(_ path: FilePath) -> String? {
        unsafe withUnsafeTemporaryAllocation(byteCount: 128, alignment: 1) { buffer in
            let start = unsafe buffer.baseAddress!.assumingMemoryBound(to: CChar.self)
            let count = unsafe path.lend { unsafe readlinkat($0, $1, start, buffer.count) }
            guard count > 0, count < buffer.count else { return nil }
            let text = unsafe String(
                decoding: UnsafeRawBufferPointer(rebasing: buffer[..<count]), as: UTF8.self)
            // Accepts only our folder and our file names, so that a link leads nowhere else.
            let folder = "\(folder)"
            guard text.hasPrefix(folder) else { return nil }
            let parts = text.dropFirst(folder.count).split(
                separator: "/", omittingEmptySubsequences: false)
            guard parts.count == 2, UInt32(parts[0]) != nil, parts[1].utf8.count == 16,
                UInt64(parts[1], radix: 16) != nil
            else { return nil }
            return text
        }
    }

    /// Removes a segment's file. The link's target goes first: a link to nothing is harmless.
    package static func remove(_ path: FilePath) {
        if let target = target(path) { Files.remove(FilePath(target)) }
        Files.remove(path)
    }
}
