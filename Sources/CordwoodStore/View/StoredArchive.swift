// One archive file judged from outside: which archive it is, and whether every byte of it is what
// its writer meant. For whoever takes archives from others, as the collector does. Values only; any
// thread; reads the file anew in each call.

import CordwoodCore

/// Why a file could not be judged.
public struct StoredArchiveProblem: Error, Sendable {
    /// Without the file's path.
    public var text: String
    /// Of the system call that failed; 0: the file itself is at fault.
    public var errno: Int32
}

public struct StoredArchive: Sendable {
    /// 8-4-4-4-12 lowercase hex digits.
    public var id: String
    /// Of the first cover, as written in the file: not to be trusted as a name.
    public var laneName: String
    public var firstSegment: UInt64
    public var lastSegment: UInt64
    public var recordCount: UInt64
    public var fileBytes: UInt64
    /// Of all payloads, inflated; 0 of one that is encrypted.
    public var rawBytes: UInt64
    /// Of one that is encrypted `verify` looks at the outside alone.
    public var isEncrypted: Bool
    /// What `verify` found wrong, without the file's path; empty: the archive is whole.
    public var problems: [String] = []

    /// Reads header and footer.
    public static func identify(path: String) throws(StoredArchiveProblem) -> StoredArchive {
        do throws(ReadProblem) {
            return try StoredArchive(ArchiveInfo.peek(path: path))
        } catch {
            throw problem(error, path)
        }
    }

    /// Reads all of it, unless its payloads are more than `rawBytesMax` together.
    public static func verify(
        path: String, rawBytesMax: UInt64 = .max
    ) throws(StoredArchiveProblem) -> StoredArchive {
        do throws(ReadProblem) {
            let found = try ArchiveVerifier.verify(path: path, rawBytesMax: rawBytesMax)
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
