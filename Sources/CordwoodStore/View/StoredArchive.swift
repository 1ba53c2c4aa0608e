// One archive file checked from outside: which archive it is, and whether every byte is what its
// writer wrote. For programs that receive archives from others, such as the collector. Values only;
// any thread; each call reads the file anew.

import CordwoodCore

/// Why a file could not be checked.
public struct StoredArchiveProblem: Error, Sendable {
    /// Does not contain the file's path.
    public var text: String
    /// Error of the failed system call; 0: the file itself is at fault.
    public var errno: Int32
}

public struct StoredArchive: Sendable {
    /// 8-4-4-4-12 lowercase hex digits.
    public var id: String
    /// Name of the first cover's lane, as written in the file: do not trust it as a name.
    public var laneName: String
    public var firstSegment: UInt64
    public var lastSegment: UInt64
    /// Covers besides the first.
    public var otherCovers: Int
    /// Archives that it replaces: their ids, likewise, and their numbers of records.
    public var replaced: [(id: String, recordCount: UInt64)]
    public var recordCount: UInt64
    public var fileBytes: UInt64
    /// Sum over all payloads, inflated; 0 for an encrypted archive.
    public var rawBytes: UInt64
    /// For an encrypted archive, `verify` checks only the outside.
    public var isEncrypted: Bool
    /// Problems that `verify` found, without the file's path; empty: the archive is intact.
    public var problems: [String] = []

    /// Reads header and footer.
    public static func identify(path: String) throws(StoredArchiveProblem) -> StoredArchive {
        do throws(ReadProblem) {
            return try StoredArchive(ArchiveInfo.peek(path: FilePath(path)))
        } catch {
            throw problem(error, path)
        }
    }

    /// Reads the whole archive, unless its payloads together exceed `rawBytesMax`.
    public static func verify(
        path: String, rawBytesMax: UInt64 = .max
    ) throws(StoredArchiveProblem) -> StoredArchive {
        do throws(ReadProblem) {
            let found = try ArchiveVerifier.verify(path: FilePath(path), rawBytesMax: rawBytesMax)
            var archive = StoredArchive(found.info)
            archive.problems = found.problems.map { plain($0, path) }
            return archive
        } catch {
            throw problem(error, path)
        }
    }

    private init(_ info: ArchiveInfo) {
        id = info.idText
        laneName = info.covers.first?.laneName ?? ""
        firstSegment = info.covers.first?.first ?? 0
        lastSegment = info.covers.first?.last ?? 0
        otherCovers = max(0, info.covers.count - 1)
        replaced = info.replaced.map { (ArchiveIdentity.text($0.id), $0.recordCount) }
        recordCount = info.recordCount
        fileBytes = info.fileBytes
        rawBytes = info.rawBytes
        isEncrypted = info.isEncrypted
    }

    private static func problem(_ problem: ReadProblem, _ path: String) -> StoredArchiveProblem {
        switch problem {
        case .damaged(let text), .version(let text), .locked(let text):
            StoredArchiveProblem(text: plain(text, path), errno: 0)
        case .system(let text, let errno):
            StoredArchiveProblem(text: plain(text, path), errno: errno)
        }
    }

    private static func plain(_ text: String, _ path: String) -> String {
        text.hasPrefix(path + ": ") ? String(text.dropFirst(path.count + 2)) : text
    }
}
