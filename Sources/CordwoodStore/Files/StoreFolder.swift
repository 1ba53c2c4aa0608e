// A store directory and its names: whether it is a store, which format it has, and which archives
// it contains.

import CordwoodCore
import CordwoodFormats

package enum StoreFolder {
    /// Throws if there is no store, or one of a newer format (FORMAT §2.1).
    package static func check(_ path: FilePath) throws(ReadProblem) {
        let names = try LaneFiles.names(in: path)
        guard isDirectory(path) else { throw .system("\(path): no store", errno: Errno.ENOENT) }
        guard names.contains("store") || names.contains("lanes") || names.contains("archives")
        else { throw .system("\(path): no store", errno: Errno.ENOENT) }
        // An unreadable file must not hide records.
        guard let bytes = try? StoreFiles.read(path + "/store") else { return }
        for line in KeyValueFile.lines(bytes) {
            guard let value = UInt64(line.value) else { continue }
            let isNewer =
                line.key == "format" && value > UInt64(FormatVersion.current)
                || line.key == "incompat" && value & ~FormatVersion.incompatKnown != 0
            if isNewer { throw .version("\(path): a store of a newer format") }
        }
    }

    package static func isDirectory(_ path: FilePath) -> Bool {
        FileFacts(following: path)?.isDirectory == true
    }

    /// Total size of the files directly in a directory.
    static func bytes(of path: FilePath) -> UInt64 {
        FileFacts(following: path)?.bytes ?? 0
    }

    /// Paths of the archives, sorted by name.
    static func archives(_ store: FilePath) throws(ReadProblem) -> [FilePath] {
        let directory = store + "/archives"
        let listing = SortedNames(in: directory, suffix: ".cwa")
        guard listing.error == 0 || listing.error == Errno.ENOENT else {
            throw .system("list \(directory)", errno: listing.error)
        }
        return listing.names.map { directory + "/" + $0 }
    }

    /// Lanes whose lane file is missing: their segments cannot be read without it. An adopter
    /// removes the lane file last (RELIABILITY R32), so a segment that outlives it was not
    /// archived.
    /// - Parameter covered: ranges that archives cover, by lane name.
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
            let segments = Counted.text(left, "segment")
            return .damaged("\(files.lanePath): missing, and with it \(segments)")
        }
    }

    private static func isMissing(_ path: FilePath) -> Bool {
        FileFacts(at: path) == nil && Errno.last == Errno.ENOENT
    }
}
