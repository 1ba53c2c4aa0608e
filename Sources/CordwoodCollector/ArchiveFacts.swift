// The facts that the collector needs about an archive file: its identity, and whether it is intact.
// The file's name is made only from these facts, after a check of their form, so nothing that a
// client sends can reach a path. Pure, except for the functions that are passed in.

import Cordwood

struct ArchiveFacts: Sendable {
    /// 8-4-4-4-12 lowercase hex digits.
    var id: String
    var laneName: String
    var first: UInt64
    var last: UInt64
    /// Covers besides the first.
    var others = 0
    /// Of all covers.
    var segments = LaneRanges()
    var recordCount: UInt64 = 0
    /// Inflated size; 0: unknown.
    var rawBytes: UInt64 = 0
}

/// The reason a file is refused; the text goes to the client.
struct ArchiveRefused: Error {
    let reason: String
}

struct ArchiveInspector: Sendable {
    /// Header, every block's checksums and footer.
    var verify: @Sendable (_ path: String) throws -> ArchiveFacts
    /// The header alone.
    var identify: @Sendable (_ path: String) throws -> ArchiveFacts
    /// What one that arrives is to one that is stored.
    var relate: @Sendable (_ path: String, _ stored: String) throws -> StoredArchive.Relation
    /// Of every byte.
    var fingerprint: @Sendable (_ path: String) throws -> String
}

enum StoredName {
    /// FORMAT §11; nil if the lane's name does not have its required form.
    static func make(_ facts: ArchiveFacts) -> String? {
        guard LaneName.isWhole(facts.laneName), facts.first <= facts.last else { return nil }
        let range = ArchiveIdentity.rangeName(
            facts.laneName, facts.first, facts.last, others: facts.others)
        return "\(range).\(facts.id.filter { $0 != "-" }.prefix(16)).cwa"
    }
}
