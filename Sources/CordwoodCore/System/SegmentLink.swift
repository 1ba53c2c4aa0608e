// A segment whose file lies in memory: its name in lanes/ is a symbolic link (FORMAT §2). Used by
// readers, and by code that removes a segment by its name; any thread. Only the user that made the
// link can have made the file: another one's link would lead a reader with more rights to files
// that its maker may not see.

import Glibc

package enum SegmentLink {
    /// Followed by the user's number, `/` and 16 hex digits.
    static let folder: StaticString = "/dev/shm/cordwood-segments-"

    /// The target of a link in lanes/. nil: it is a file, or not one of our links.
    package static func target(_ path: FilePath) -> FilePath? {
        guard let (text, user) = text(path), FileFacts(at: path)?.owner == user else { return nil }
        // Opened: any user may make names there, and no link below it is followed.
        return FilePath(opening: "/dev/shm") + String(text.dropFirst("/dev/shm".utf8.count))
    }

    /// Whether the open file can be the target of a link: it belongs to the user of its folder.
    package static func isTarget(_ file: FileFacts, _ target: FilePath) -> Bool {
        "\(target)".hasPrefix("\(folder)\(file.owner)/")
    }

    /// What the link says, and the user whose folder it names.
    private static func text(_ path: FilePath) -> (String, UInt32)? {
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
            guard parts.count == 2, let user = UInt32(parts[0]), parts[1].utf8.count == 16,
                UInt64(parts[1], radix: 16) != nil
            else { return nil }
            return (text, user)
        }
    }

    /// Removes a segment's file. The link's target goes first: a link to nothing is harmless.
    package static func remove(_ path: FilePath) {
        if let target = target(path) { Files.remove(target) }
        Files.remove(path)
    }
}
