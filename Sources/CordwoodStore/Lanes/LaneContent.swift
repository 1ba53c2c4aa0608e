// What the segments of a lane hold, before a record is read: whether archives have it already. One
// thread; call all of this before the first `advance`.
// SAFETY: the bytes that are hashed outlive the call; views of a page are not kept.

import CSodium
import CordwoodCore

/// What a segment holds: its number, and a digest of its chunks (FORMAT §11.1).
package struct SegmentSeal: Hashable, Sendable {
    package var number: UInt64
    package var digest: LaneID

    static let bytes = 24
}

extension LaneSource {
    /// `directory`: the store, which is listed first.
    package static func open(
        directory: FilePath, lane: String, segments: ClosedRange<UInt64>? = nil,
        runningBoot: LaneID? = nil
    ) throws(ReadProblem) -> LaneSource {
        let all = try LaneFiles.list(store: directory)
        let files =
            all.first { $0.lane == lane } ?? LaneFiles(lane: lane, directory: directory + "/lanes")
        return try LaneSource(files: files, segments: segments, runningBoot: runningBoot)
    }

    /// What its segments hold, and the refused records that it reports at its end, for an archive's
    /// id (FORMAT §11.1). Of a lane that nobody writes to.
    package func content() throws(ReadProblem) -> (seals: [SegmentSeal], gap: UInt64) {
        var seals: [SegmentSeal] = []
        _ = try segments { _, seal in
            if let seal { seals.append(seal) }
            return false
        }
        seals.sort { $0.number < $1.number }
        let gap = reportsDrops ? try context.unreportedDrops(seen: [:]).count : 0
        return (seals, gap)
    }

    /// Whether it reports refused records at its end, according to the lane's file alone.
    func endsInGap() throws(ReadProblem) -> Bool {
        guard reportsDrops else { return false }
        return try context.unreportedDrops(seen: [:]).count > 0
    }

    /// Those of which archives hold everything, as their headers say (FORMAT §6).
    package var deadSegments: [UInt64] { unsafe waiting.filter(\.isDead).map(\.number) }

    /// The owner has archived segment 0, which lies in the lane file.
    package var hasArchivedFirst: Bool { (head?.archivedBelow ?? 0) > 0 }

    /// The numbers of the segments for which that is true of what they hold; nil: nothing so far. A
    /// segment that is gone is not asked about.
    func segments(
        where isWanted: (_ number: UInt64, _ seal: SegmentSeal?) -> Bool
    ) throws(ReadProblem) -> Set<UInt64> {
        var found: Set<UInt64> = []
        for segment in unsafe waiting {
            guard try segment.refresh() else { continue }
            let seal = try segment.seal(laneID)
            guard try segment.recheck() else { continue }
            if isWanted(segment.number, seal) { found.insert(segment.number) }
        }
        return found
    }

    func createdMonotonicNs(ofSegments numbers: Set<UInt64>) -> UInt64 {
        unsafe waiting.lazy.filter { numbers.contains($0.number) }.map(\.head.createdMonotonic)
            .min() ?? .max
    }
}

extension LaneFiles {
    /// True if a power cut took all readable content of a lane and left only its names: neither its
    /// file nor any segment or journal has a header. False if one of them cannot be opened.
    package var isBlank: Bool {
        for path in [lanePath] + segments.map(\.path) {
            do throws(ReadProblem) {
                let page = try ReadFile(path: path).copy(at: 0, count: SegmentHeader.bytes)
                let isZero = unsafe Bytes.u64(page.bytes, 0) == 0
                guard page.count < SegmentHeader.bytes || isZero else { return false }
            } catch {
                // 2: no such file. A segment in memory is gone once the machine has restarted.
                guard case .system(_, 2) = error else { return false }
            }
        }
        if hasJournal {
            do throws(ReadProblem) {
                return try Journal(path: journalPath).frames.isEmpty
            } catch { if case .damaged = error { return true } else { return false } }
        }
        return true
    }
}

package enum SHA256 {
    package static func first16(_ text: String) -> LaneID {
        var content = GrowingBytes()
        var text = text
        text.withUTF8 { content.append(UnsafeRawBufferPointer($0)) }
        return first16(content)
    }

    /// The first half of the sum.
    package static func first16(_ content: borrowing GrowingBytes) -> LaneID {
        var hash = [UInt8](repeating: 0, count: 32)
        // SAFETY: `content` outlives the call, which fills the 32 bytes of `hash`.
        let input = unsafe content.base.assumingMemoryBound(to: UInt8.self)
        unsafe crypto_hash_sha256(&hash, input, UInt64(content.count))
        return unsafe hash.withUnsafeBytes { $0.id(0) }
    }
}
