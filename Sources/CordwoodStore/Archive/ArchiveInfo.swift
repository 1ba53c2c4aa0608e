// An archive's description of itself: values only, filled by the writer and by readers of a header
// and a footer (FORMAT §11.1, §11.3). Also the names and ids of archives.

import CSodium
import CordwoodCore
import CordwoodFormats

/// A run of segments of one lane whose records an archive holds.
package struct ArchiveCover: Hashable, Sendable {
    package var laneID: LaneID
    package var first: UInt64
    package var last: UInt64
    package var laneName: String

    package init(laneID: LaneID, first: UInt64, last: UInt64, laneName: String) {
        self.laneID = laneID
        self.first = first
        self.last = last
        self.laneName = laneName
    }
}

package struct ArchiveInfo: Sendable {
    package var id: LaneID
    package var covers: [ArchiveCover]
    package var createdRealtime: UInt64
    package var recordCount: UInt64
    /// UTC ns of the records as shown; both 0 if there is no record.
    package var timeMin: UInt64
    package var timeMax: UInt64
    /// UTC ns when the records were written, as the clocks then said; both 0 if there is no record.
    package var writtenMin: UInt64 = 0
    package var writtenMax: UInt64 = 0
    /// Sum over all payloads.
    package var rawBytes: UInt64
    package var fileBytes: UInt64
    package var blockCount: Int
    /// FORMAT §11.2.
    package var levels: UInt32
    package var kinds: UInt32
    package var path: String
    /// Damage that the source of the records reported during writing, cut at 64 texts; empty for an
    /// archive that was opened.
    package var damage: [String] = []
    package var damageCount = 0
    /// For an opened archive: header and footer are intact. If not, it may have held more than they
    /// say.
    package var isWhole = true
    /// True for an age file (FORMAT §11.5). Without a key that opens it, `rawBytes` and
    /// `blockCount` are 0, and `levels` and `kinds` are full.
    package var isEncrypted = false
    /// Everything that sends its records names them by RecordID. False: written before RecordIDs
    /// existed, so the names under which it was sent stay (FORMAT §11.1).
    package var hasRecordIDs = false
    /// The ids of the archives whose records it contains, and which were removed for it.
    package var replaced: [LaneID] = []

    /// UTC ns when its newest record was written. What was archived was written before: a later
    /// time is that of a clock that has been set back since.
    package var writtenNs: UInt64 { min(writtenMax, createdRealtime) }

    package var idText: String { ArchiveIdentity.text(id) }

    /// The ids of all archives that any of these replaces.
    package static func replacedIDs(_ all: [ArchiveInfo]) -> Set<LaneID> {
        Set(all.lazy.flatMap(\.replaced))
    }
}

package enum ArchiveError: Error, Sendable {
    /// The disk failed; nothing was left behind.
    case system(operation: String, path: String, errno: Int32)
    /// The records could not be read, or have a newer format; they must not be removed.
    case source(ReadProblem)
    case memory
    /// The name or the covers are not valid.
    case argument(String)
    /// Exceeds a limit of FORMAT §1.
    case limit(String)
    /// The caller rejected the archive; nothing was left behind.
    case unwanted
}

package enum ArchiveIdentity {
    /// FORMAT §11: the same covers always give the same id.
    package static func id(_ covers: [ArchiveCover]) -> LaneID {
        var content = GrowingBytes()
        content.append("cordwood archive 1")
        for cover in covers {
            content.append(id: cover.laneID)
            content.append(word: cover.first)
            content.append(word: cover.last)
        }
        var hash = [UInt8](repeating: 0, count: 32)
        // SAFETY: `content` outlives the call, which fills the 32 bytes of `hash`.
        let input = unsafe content.base.assumingMemoryBound(to: UInt8.self)
        unsafe crypto_hash_sha256(&hash, input, UInt64(content.count))
        return unsafe hash.withUnsafeBytes { $0.id(0) }
    }

    /// FORMAT §11: `<lane>.<first>-<last>.cwa`.
    package static func fileName(_ lane: String, _ first: UInt64, _ last: UInt64) -> String {
        "\(lane).\(Digits.text(first, width: 8))-\(Digits.text(last, width: 8)).cwa"
    }

    package static func fileName(_ cover: ArchiveCover) -> String {
        fileName(cover.laneName, cover.first, cover.last)
    }

    /// For several lanes: the first one's name, `+` and the number of further lanes. A lane comes
    /// first in at most one archive, so the name is unique.
    package static func fileName(of covers: [ArchiveCover]) -> String {
        guard covers.count > 1 else { return fileName(covers[0]) }
        return fileName(covers[0]).dropLast(4) + "+\(covers.count - 1).cwa"
    }

    /// The cover in an archive's file name; nil: it is not one of ours.
    static func cover(of name: String) -> (lane: String, range: ClosedRange<UInt64>)? {
        let parts = name.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 3, parts[2] == "cwa" else { return nil }
        let numbers = parts[1].split(separator: "-", omittingEmptySubsequences: false)
        guard numbers.count == 2, let first: UInt64 = Digits.number(numbers[0].utf8),
            let last: UInt64 = Digits.number(numbers[1].utf8), first <= last
        else { return nil }
        return (String(parts[0]), first...last)
    }

    /// 8-4-4-4-12 lowercase hex digits.
    package static func text(_ id: LaneID) -> String {
        var text = Hex.text(id.bytes)
        for index in [20, 16, 12, 8] {
            text.insert("-", at: text.utf8.index(text.startIndex, offsetBy: index))
        }
        return text
    }

    /// True for a plain file name with room for `.part`.
    static func isFileName(_ name: String) -> Bool {
        let bytes = name.utf8
        return !bytes.isEmpty && bytes.count <= 240 && bytes.first != 0x2e
            && !bytes.contains(0x2f) && !bytes.contains(0)
    }
}
