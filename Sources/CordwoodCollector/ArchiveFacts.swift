// What the collector asks of an archive file: which one it is, and whether all of it is whole. The
// file's name is made from these facts alone, after their form was checked, so nothing a client
// sends can reach a path. Pure, but for the two functions that are handed in.

import Cordwood

struct ArchiveFacts: Sendable {
    /// 8-4-4-4-12 lowercase hex digits.
    var id: String
    var laneName: String
    var first: UInt64
    var last: UInt64
    /// Inflated; 0 where that is not known.
    var rawBytes: UInt64 = 0
}

/// Why a file is not taken; the text goes to the client.
struct ArchiveRefused: Error {
    let reason: String
}

struct ArchiveInspector: Sendable {
    /// Header, every block's checksums and footer.
    var verify: @Sendable (_ path: String) throws -> ArchiveFacts
    /// The header alone.
    var identify: @Sendable (_ path: String) throws -> ArchiveFacts
}

enum StoredName {
    /// FORMAT §2: `<lane>.<first>-<last>.cwa`; nil where the lane's name is not of the one form.
    static func make(_ facts: ArchiveFacts) -> String? {
        guard LaneName.isWhole(facts.laneName), facts.first <= facts.last else { return nil }
        return ArchiveIdentity.fileName(facts.laneName, facts.first, facts.last)
    }
}
