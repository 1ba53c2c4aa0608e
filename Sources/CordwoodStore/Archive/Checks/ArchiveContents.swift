// Whether one archive has the records of another, read side by side. Whoever removes or hides an
// archive for another one asks here first: what an archive says of others proves nothing. Blocking;
// each call opens the files anew.

import CSodium
import CordwoodCore
import CordwoodFormats

package enum ArchiveContents {
    /// Whether `whole` has all records of `part`, in their order; nil: that cannot be known,
    /// because one of them is encrypted and no identity opens it. False also where one is damaged,
    /// or reports refused records in more pieces than an archive of ours.
    /// Refused records are compared by their running totals: an archive that was made later may
    /// report more of them at once.
    package static func has(
        _ whole: FilePath, all part: FilePath, identities: [AgeIdentity] = []
    ) throws(ReadProblem) -> Bool? {
        do throws(ReadProblem) {
            let source = try open(whole, identities)
            let wanted = try open(part, identities)
            var pair = RecordPair()
            var record = RecordRef()
            var found = RecordRef()
            var wantedGaps = LaneGaps()
            var gaps = LaneGaps()
            while try wanted.next(&record) {
                if let gap = Gap(record) {
                    guard wantedGaps.note(gap, record) else { return false }
                    continue
                }
                repeat {
                    guard try source.next(&found) else { return false }
                    if let gap = Gap(found), !gaps.note(gap, found) { return false }
                } while !pair.areSame(found, record)
            }
            if wantedGaps.isEmpty { return true }
            while try source.next(&found) {
                if let gap = Gap(found), !gaps.note(gap, found) { return false }
            }
            return gaps.have(wantedGaps)
        } catch {
            switch error {
            case .locked: return nil
            case .damaged, .version: return false
            case .system: throw error
            }
        }
    }

    private static func open(
        _ path: FilePath, _ identities: [AgeIdentity]
    ) throws(ReadProblem) -> ArchiveSource {
        let source = try ArchiveSource.open(path: path, identities: identities)
        source.rendersText = false
        return source
    }

    /// SHA-256 of the file, in hex digits.
    static func fingerprint(_ path: FilePath) throws(ReadProblem) -> String {
        let file = try ReadFile(path: path)
        let piece = ReadBuffer()
        var state = crypto_hash_sha256_state()
        unsafe crypto_hash_sha256_init(&state)
        var offset: UInt64 = 0
        repeat {
            try piece.fill(from: file, at: offset, count: 1 << 20)
            // SAFETY: `piece` outlives the call.
            let bytes = unsafe piece.bytes.bindMemory(to: UInt8.self)
            _ = unsafe crypto_hash_sha256_update(&state, bytes.baseAddress, UInt64(bytes.count))
            offset += UInt64(piece.count)
        } while piece.count > 0
        var hash = [UInt8](repeating: 0, count: Int(crypto_hash_sha256_BYTES))
        unsafe crypto_hash_sha256_final(&state, &hash)
        return Hex.text(hash)
    }
}

/// The refused records that an archive reports: their running totals by drop slot.
private struct LaneGaps {
    private struct Slot: Hashable {
        var lane: LaneID
        var number: UInt32
    }

    /// A few KiB may inflate to any number of reports.
    private static let piecesMax = 65_536

    private var pieces: [Slot: [Range<UInt64>]] = [:]
    private var count = 0

    var isEmpty: Bool { pieces.isEmpty }

    /// Returns false beyond the limit.
    mutating func note(_ gap: Gap, _ record: borrowing RecordRef) -> Bool {
        for run in gap.runs {
            let slot = Slot(lane: record.thread.process.laneID, number: run.slot)
            var list = pieces[slot, default: []]
            pieces[slot] = []
            // A slot's reports follow one another.
            if let last = list.last, last.upperBound == run.from {
                list[list.count - 1] = last.lowerBound..<run.to
            } else {
                list.append(run.from..<run.to)
                count += 1
            }
            pieces[slot] = list
        }
        return count <= LaneGaps.piecesMax
    }

    /// Whether all of the others' are among them.
    func have(_ others: LaneGaps) -> Bool {
        others.pieces.allSatisfy { slot, wanted in
            var joined: [Range<UInt64>] = []
            for piece in (pieces[slot] ?? []).sorted(by: { $0.lowerBound < $1.lowerBound }) {
                if let last = joined.last, piece.lowerBound <= last.upperBound {
                    joined[joined.count - 1] =
                        last.lowerBound..<max(last.upperBound, piece.upperBound)
                } else {
                    joined.append(piece)
                }
            }
            var place = joined[...]
            return wanted.sorted { $0.lowerBound < $1.lowerBound }.allSatisfy { piece in
                place = place.drop { $0.upperBound < piece.upperBound }
                return place.first.map { $0.lowerBound <= piece.lowerBound } ?? false
            }
        }
    }
}

/// Two records of two archives. Threads come again and again: the last pair is remembered.
private struct RecordPair {
    /// Archives round times (FORMAT §11), and the clocks of two makers differ by microseconds.
    private static let sameNs: UInt64 = 1_000_000

    private var threads: (ThreadInfo, ThreadInfo)?

    mutating func areSame(_ a: borrowing RecordRef, _ b: borrowing RecordRef) -> Bool {
        a.sequence == b.sequence && a.thread.serial == b.thread.serial && a.level == b.level
            && a.kind == b.kind && a.isDeferred == b.isDeferred
            && a.flags.contains(.truncated) == b.flags.contains(.truncated)
            && RecordPair.near(a.writtenNs, b.writtenNs) && RecordPair.near(a.timeNs, b.timeNs)
            && Bytes.equal(a.message, b.message) && Bytes.equal(a.arguments, b.arguments)
            && Bytes.equal(a.format, b.format) && Bytes.equal(a.argumentTypes, b.argumentTypes)
            && a.style == b.style && a.originalLength == b.originalLength
            && Bytes.equal(a.logger, b.logger) && a.line == b.line && Bytes.equal(a.file, b.file)
            && Bytes.equal(a.function, b.function) && Bytes.equal(a.context, b.context)
            && Bytes.equal(a.trace, b.trace) && RecordPair.sections(a.sections, b.sections)
            && areSame(a.thread, b.thread)
    }

    private static func near(_ a: UInt64, _ b: UInt64) -> Bool {
        max(a, b) - min(a, b) <= sameNs
    }

    @safe private static func sections(
        _ a: UnsafeRawBufferPointer, _ b: UnsafeRawBufferPointer
    ) -> Bool {
        if Bytes.equal(a, b) { return true }
        var (a, b) = (SectionIterator(a), SectionIterator(b))
        while let (kind, bytes) = a.next() {
            // A site is a number of its own archive; its place was compared.
            guard let (other, others) = b.next(), kind == other,
                kind == SectionKind.site || Bytes.equal(bytes, others)
            else { return false }
        }
        return unsafe b.next() == nil
    }

    private mutating func areSame(_ a: ThreadInfo, _ b: ThreadInfo) -> Bool {
        if let threads, threads.0 === a, threads.1 === b { return true }
        let (p, q) = (a.process, b.process)
        guard a.serial == b.serial, a.threadID == b.threadID, a.name == b.name,
            p.laneID == q.laneID, p.bootID == q.bootID, p.processID == q.processID,
            p.name == q.name, p.createdRealtime == q.createdRealtime,
            p.createdMonotonic == q.createdMonotonic,
            p.resource.elementsEqual(q.resource, by: { $0 == $1 })
        else { return false }
        threads = (a, b)
        return true
    }
}
