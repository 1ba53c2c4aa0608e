// What an archive says about itself: values only, made by the writer and by whoever reads a header
// and a footer (FORMAT §11.1, §11.3), and how archives are named and identified.

import CSodium
import CordwoodCore
import CordwoodFormats

/// A run of segments of one lane whose records stand in an archive.
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
    /// UTC ns shown; both 0 where there is no record.
    package var timeMin: UInt64
    package var timeMax: UInt64
    /// Of all payloads.
    package var rawBytes: UInt64
    package var fileBytes: UInt64
    package var blockCount: Int
    /// FORMAT §11.2.
    package var levels: UInt32
    package var kinds: UInt32
    package var path: String
    /// What the source of the records reported as damaged while they were written, cut at 64 texts;
    /// empty for an archive that was opened.
    package var damage: [String] = []
    package var damageCount = 0
    /// Of one that was opened: header and footer are. Else it may have held more than it says.
    package var isWhole = true
    /// An age file (FORMAT §11.5). Without a key that opens it `rawBytes` and `blockCount` are 0,
    /// and `levels` and `kinds` are full.
    package var isEncrypted = false

    package var idText: String { ArchiveIdentity.text(id) }
}

package enum ArchiveError: Error, Sendable {
    /// The disk; nothing was left behind.
    case system(operation: String, path: String, errno: Int32)
    /// The records could not be read, or are of a newer format; they must not be removed.
    case source(ReadProblem)
    case memory
    /// Name or covers are not valid.
    case argument(String)
    /// FORMAT §1.
    case limit(String)
}

package enum ArchiveIdentity {
    /// FORMAT §11: the same covers give the same id, whoever computes it.
    package static func id(_ covers: [ArchiveCover]) -> LaneID {
        var content = GrowingBytes()
        for byte in "cordwood archive 1".utf8 { content.append(byte: byte) }
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

    /// Of several lanes: the first one's name, `+` and how many more there are. A lane is first in
    /// one archive at most, so nobody else has the name.
    package static func fileName(of covers: [ArchiveCover]) -> String {
        guard covers.count > 1 else { return fileName(covers[0]) }
        return fileName(covers[0]).dropLast(4) + "+\(covers.count - 1).cwa"
    }

    /// 8-4-4-4-12 lowercase hex digits.
    package static func text(_ id: LaneID) -> String {
        var text = Hex.text(id.bytes)
        for index in [20, 16, 12, 8] {
            text.insert("-", at: text.utf8.index(text.startIndex, offsetBy: index))
        }
        return text
    }

    /// A plain file name that a `.part` can be added to.
    static func isFileName(_ name: String) -> Bool {
        let bytes = name.utf8
        return !bytes.isEmpty && bytes.count <= 240 && bytes.first != 0x2e
            && !bytes.contains(0x2f) && !bytes.contains(0)
    }
}
