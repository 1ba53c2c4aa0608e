// A store directory as names: is it one, which
// format does it have, which archives stand in it.

import CShims
import CordwoodCore
import Glibc

package enum StoreFolder {
    /// Throws where there is no store, or one of a newer format (FORMAT §2.1).
    package static func check(_ path: String) throws(ReadProblem) {
        let names = try LaneFiles.names(in: path)
        guard isDirectory(path) else { throw .system("\(path): no store", errno: ENOENT) }
        guard names.contains("store") || names.contains("lanes") || names.contains("archives")
        else { throw .system("\(path): no store", errno: ENOENT) }
        guard names.contains("store") else { return }
        for line in read(path + "/store").split(separator: "\n") {
            let words = line.split(separator: " ")
            guard words.count == 2, let value = UInt64(words[1]) else { continue }
            let isNewer =
                words[0] == "format" && value > UInt64(FormatVersion.current)
                || words[0] == "incompat" && value & ~FormatVersion.incompatKnown != 0
            if isNewer { throw .version("\(path): a store of a newer format") }
        }
    }

    package static func isDirectory(_ path: String) -> Bool {
        var status = stat()
        return unsafe stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
    }

    /// Bytes of all files directly in a directory.
    static func bytes(of path: String) -> UInt64 {
        var status = stat()
        guard unsafe stat(path, &status) == 0, status.st_size > 0 else { return 0 }
        return UInt64(status.st_size)
    }

    /// Paths of archives, by name.
    static func archives(_ store: String) throws(ReadProblem) -> [String] {
        let directory = store + "/archives"
        return try LaneFiles.names(in: directory).filter { $0.hasSuffix(".cwa") }.sorted()
            .map { "\(directory)/\($0)" }
    }

    /// Lanes whose lane file is missing: nobody can read their segments without it. Whoever
    /// archives a lane removes that file last (PROTOCOL R32), so a segment that outlives it was not
    /// archived.
    /// - Parameter covered: by archives, by the lane's name.
    static func headless(
        _ listed: [LaneFiles], covered: [String: [ClosedRange<UInt64>]]
    ) -> [ReadProblem] {
        listed.compactMap { files in
            guard !files.hasLaneFile, isMissing(files.lanePath) else { return nil }
            let left = files.segments.count { segment in
                let isCovered = covered[files.lane]?.contains { $0.contains(segment.number) }
                return isCovered != true && !isMissing(segment.path)
            }
            guard left > 0 else { return nil }
            return .damaged("\(files.lanePath): missing, and with it \(left) segments")
        }
    }

    private static func isMissing(_ path: String) -> Bool {
        var status = stat()
        return unsafe lstat(path, &status) != 0 && errno == ENOENT
    }

    /// Small text; cut at 64 KiB. What is no file has none: a FIFO would be waited for.
    private static func read(_ path: String) -> String {
        let fd = unsafe cw_open_file(path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0)
        guard fd >= 0 else { return "" }
        defer { close(fd) }
        var status = stat()
        guard unsafe fstat(fd, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return "" }
        var bytes = [UInt8](repeating: 0, count: 65_536)
        // SAFETY: read takes the array's count.
        let count = unsafe bytes.withUnsafeMutableBytes {
            unsafe Glibc.read(fd, $0.baseAddress, $0.count)
        }
        return String(decoding: bytes.prefix(max(count, 0)), as: UTF8.self)
    }
}
