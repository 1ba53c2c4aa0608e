// An archive's description of itself: values only, filled by the writer and by readers of a header
// and a footer (FORMAT §11.1, §11.3). Also the names and ids of archives.

import CordwoodCore
import CordwoodFormats

/// A run of segments of one lane whose records an archive holds.
package struct ArchiveCover: Hashable, Sendable {
    package var laneID: LaneID
    package var first: UInt64
    package var last: UInt64
    package var laneName: String
    /// Segments that hold something. Only writers and adopters need them: empty in an archive that
    /// was opened otherwise.
    package var seals: [SegmentSeal]
    /// Refused records that the archive reports at the end of the lane; 0: none.
    package var gap: UInt64

    package init(
        laneID: LaneID, first: UInt64, last: UInt64, laneName: String, seals: [SegmentSeal] = [],
        gap: UInt64 = 0
    ) {
        self.laneID = laneID
        self.first = first
        self.last = last
        self.laneName = laneName
        self.seals = seals
        self.gap = gap
    }
}

/// An archive whose records another one holds.
package struct ReplacedArchive: Hashable, Sendable {
    package var id: LaneID
    package var recordCount: UInt64

    package init(id: LaneID, recordCount: UInt64) {
        self.id = id
        self.recordCount = recordCount
    }

    static let bytes = 24
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
    /// The size of all blocks (FORMAT §11.10).
    package var rawBytes: UInt64
    package var fileBytes: UInt64
    package var blockCount: Int
    /// FORMAT §11.2.
    package var levels: UInt32
    package var kinds: UInt32
    package var path: FilePath
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
    /// The archives whose records it contains, and which were removed for it.
    package var replaced: [ReplacedArchive] = []
    /// Places where records were lost when the archive was made (FORMAT §11.1).
    package var lostPlaces: UInt32 = 0

    /// UTC ns when its newest record was written. What was archived was written before: a later
    /// time is that of a clock that has been set back since.
    package var writtenNs: UInt64 { min(writtenMax, createdRealtime) }

    package var idText: String { ArchiveIdentity.text(id) }

    /// The ids of those that another one of them replaces.
    package static func replacedIDs(_ all: [ArchiveInfo]) -> Set<LaneID> {
        let new = all.filter { !$0.replaced.isEmpty }
        if new.isEmpty { return [] }
        let old = Dictionary(grouping: all, by: \.id)
        var ids: Set<LaneID> = []
        for info in new {
            let replacing = Replacing(info)
            for (id, _) in replacing.recordCounts {
                if let old = old[id], old.allSatisfy(replacing.has) { ids.insert(id) }
            }
        }
        return ids
    }

    func replaces(_ old: ArchiveInfo) -> Bool {
        replaced.contains { $0.id == old.id } && Replacing(self).has(old)
    }

    /// Whether it says that it has every segment of `part`, which are read with their seals.
    func hasSegments(of part: ArchiveInfo) -> Bool {
        guard lostPlaces == 0, !part.covers.isEmpty,
            part.recordCount == 0 || part.covers.allSatisfy(\.isSealed)
        else { return false }
        let wanted = LaneSeals.of(part.covers.filter(\.isSealed))
        let found = LaneSeals.of(covers)
        return wanted.allSatisfy { lane, part in
            // Of equal segments, the archive with more refused records was made later. One that
            // goes on may not report them yet.
            guard let whole = found[lane], whole.seals.isSuperset(of: part.seals) else {
                return false
            }
            return part.gap == 0
                || whole.seals.count == part.seals.count && whole.gap >= part.gap
        }
    }
}

extension ArchiveCover {
    fileprivate var isSealed: Bool { !seals.isEmpty }
}

/// What an archive says that it has of a lane.
private struct LaneSeals {
    var seals: Set<SegmentSeal> = []
    var gap: UInt64 = 0

    static func of(_ covers: [ArchiveCover]) -> [LaneID: LaneSeals] {
        var lanes: [LaneID: LaneSeals] = [:]
        for cover in covers {
            lanes[cover.laneID, default: LaneSeals()].seals.formUnion(cover.seals)
            lanes[cover.laneID]?.gap &+= cover.gap
        }
        return lanes
    }
}

/// Which archives one replaces: those that it names, if it covers all that they cover. What it says
/// of others counts for nothing (FORMAT §11).
struct Replacing {
    fileprivate let recordCounts: [LaneID: UInt64]
    private let segments: LaneRanges

    init(_ info: ArchiveInfo) {
        recordCounts = Dictionary(
            info.replaced.map { ($0.id, $0.recordCount) }, uniquingKeysWith: { first, _ in first })
        segments = LaneRanges(info.covers)
    }

    func has(_ old: ArchiveInfo) -> Bool {
        recordCounts[old.id] == old.recordCount && !old.covers.isEmpty
            && old.covers.allSatisfy(segments.has)
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
    /// FORMAT §11: the same records always give the same id, whoever archives them.
    /// - Parameters:
    ///   - replaced: of a merged archive. Others may name the same ones, so covers count, too.
    ///   - lostPlaces: an archive that lacks records is another one.
    package static func id(
        _ covers: [ArchiveCover], replaced: [ReplacedArchive] = [], lostPlaces: UInt32 = 0
    ) -> LaneID {
        var content = GrowingBytes()
        content.append("cordwood archive 1")
        content.append(word: lostPlaces)
        for archive in replaced { content.append(id: archive.id) }
        for cover in covers {
            content.append(id: cover.laneID)
            content.append(word: cover.gap)
            content.append(word: UInt32(cover.seals.count))
            for seal in cover.seals { content.append(id: seal.digest) }
            if cover.seals.isEmpty {
                content.append(word: cover.first)
                content.append(word: cover.last)
            }
        }
        return SHA256.first16(content)
    }

    /// FORMAT §11: `<lane>.<first>-<last>`, with `+<n>` for n more covers. A `.part` has this name.
    package static func rangeName(
        _ lane: String, _ first: UInt64, _ last: UInt64, others: Int
    ) -> String {
        let name = "\(lane).\(Digits.text(first, width: 8))-\(Digits.text(last, width: 8))"
        return others == 0 ? name : "\(name)+\(others)"
    }

    package static func rangeName(of covers: [ArchiveCover]) -> String {
        rangeName(
            covers[0].laneName, covers[0].first, covers[0].last, others: covers.count - 1)
    }

    /// `<range>.<16 hex digits>.cwa`: the digits are the first ones of the id.
    package static func fileName(of covers: [ArchiveCover], _ id: LaneID) -> String {
        "\(rangeName(of: covers)).\(digits(id)).cwa"
    }

    package static func digits(_ id: LaneID) -> String { String(Hex.text(id.bytes).prefix(16)) }

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

/// `<lane>.<first>-<last>[+<n>].<16 hex digits>.cwa`; of a `.part` without the digits and `.cwa`.
struct ArchiveName {
    /// Of the first cover.
    let lane: String
    let range: ClosedRange<UInt64>
    /// Covers besides the first, which only the header names.
    let others: Int
    /// The first digits of the id; empty: a `.part`.
    private let digits: Substring

    /// nil: the name of something else.
    init?(_ name: String) {
        let parts = name.split(separator: ".", omittingEmptySubsequences: false)
        let isPart = parts.count == 3 && parts[2] == "part"
        guard isPart || parts.count == 4 && parts[3] == "cwa" && parts[2].utf8.count == 16 else {
            return nil
        }
        let words = parts[1].split(separator: "+", omittingEmptySubsequences: false)
        let numbers = words[0].split(separator: "-", omittingEmptySubsequences: false)
        guard numbers.count == 2, let first: UInt64 = Digits.number(numbers[0].utf8),
            let last: UInt64 = Digits.number(numbers[1].utf8), first <= last, words.count <= 2
        else { return nil }
        var others = 0
        if words.count == 2 {
            guard let count: UInt32 = Digits.number(words[1].utf8), count > 0 else { return nil }
            others = Int(count)
        }
        lane = String(parts[0])
        range = first...last
        self.others = others
        digits = isPart ? "" : parts[2]
    }

    init?(path: FilePath) {
        self.init(String(path.lastName))
    }

    /// Whether the archive is the one that the name says.
    func names(_ info: ArchiveInfo) -> Bool {
        guard let first = info.covers.first else { return false }
        return first.laneName == lane && first.first == range.lowerBound
            && first.last == range.upperBound && info.covers.count == others + 1
            && ArchiveIdentity.digits(info.id) == digits
    }
}
