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
    /// The segments of lanes that it says it has.
    package var segments: LaneRanges
    public var recordCount: UInt64
    public var fileBytes: UInt64
    /// The size of all blocks (FORMAT §11.10); 0 for an encrypted archive.
    public var rawBytes: UInt64
    /// For an encrypted archive, `verify` checks only the outside.
    public var isEncrypted: Bool
    /// Problems that `verify` found, without the file's path; empty: the archive is intact.
    public var problems: [String] = []

    /// What an archive that arrives is to one that is there.
    public enum Relation: Sendable, Equatable {
        /// Neither says that it has the other's records: only headers were read.
        case other
        /// The one that arrives has all of its records.
        case superset
        /// Its records are there.
        case known
        /// One says that it has the other's records, and has not: the reason.
        case contradiction(String)
    }

    /// Reads header and footer.
    public static func identify(path: String) throws(StoredArchiveProblem) -> StoredArchive {
        do throws(ReadProblem) {
            return try StoredArchive(ArchiveInfo.peek(path: FilePath(path)))
        } catch {
            throw problem(error, path)
        }
    }

    /// Reads the whole archive, unless its blocks together exceed `rawBytesMax`.
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

    /// Compares the records, as far as the headers say that both have the same ones. Encrypted
    /// archives are the same only if every byte is.
    public static func relation(
        of path: String, toStored stored: String
    ) throws(StoredArchiveProblem) -> Relation {
        let (path, stored) = (FilePath(path), FilePath(stored))
        do throws(ReadProblem) {
            let new = try ArchiveInfo.peek(path: path, seals: true)
            let old = try ArchiveInfo.peek(path: stored, seals: true)
            let isSame = new.id == old.id
            if isSame || old.replaces(new) || old.hasSegments(of: new) {
                let what = isSame ? "has its id" : "says that it has its records"
                if isSame, new.covers != old.covers || new.recordCount != old.recordCount {
                    return .contradiction("an archive with other covers or records \(what)")
                }
                switch try ArchiveContents.has(stored, all: path) {
                case true?: return .known
                case false?: return .contradiction("an archive without its records \(what)")
                case nil:
                    let prints = try [path, stored].map { path throws(ReadProblem) in
                        try ArchiveContents.fingerprint(path)
                    }
                    return isSame && prints[0] == prints[1]
                        ? .known : .contradiction("an archive that is encrypted \(what)")
                }
            }
            guard new.replaces(old) || new.hasSegments(of: old) else { return .other }
            switch try ArchiveContents.has(path, all: stored) {
            case true?: return .superset
            case false?:
                return .contradiction("it says that it has records of another archive, and has not")
            case nil:
                return .contradiction(
                    "it says that it has records of another archive, and one of them is encrypted")
            }
        } catch {
            throw problem(error, "\(path)")
        }
    }

    /// SHA-256 of the file, in hex digits.
    public static func fingerprint(path: String) throws(StoredArchiveProblem) -> String {
        do throws(ReadProblem) { return try ArchiveContents.fingerprint(FilePath(path)) } catch {
            throw problem(error, path)
        }
    }

    private init(_ info: ArchiveInfo) {
        id = info.idText
        laneName = info.covers.first?.laneName ?? ""
        firstSegment = info.covers.first?.first ?? 0
        lastSegment = info.covers.first?.last ?? 0
        otherCovers = max(0, info.covers.count - 1)
        segments = LaneRanges(info.covers)
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
