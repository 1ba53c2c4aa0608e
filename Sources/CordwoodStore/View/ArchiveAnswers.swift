// What `stats` learns of archives without reading them: from their digests (Facts), and totals from
// their footers. An archive whose digest is not remembered is counted by its columns once, and then
// remembered. Answers only what a digest knows exactly: levels, and times that leave out nothing of
// the archive. One `stats` owns it; one thread at a time.
// SAFETY: Sendable because options are; only that thread uses it.

import CordwoodCore

final class ArchiveAnswers: @unchecked Sendable {
    private let options: ReaderOptions
    private let isPossible: Bool
    /// Only the number of records and the range of their times.
    private let areTotals: Bool
    private(set) var records: UInt64 = 0
    private(set) var byLevel = [UInt64](repeating: 0, count: ArchiveDigest.levelsMax)
    /// UTC ns.
    private(set) var timeMin: UInt64 = .max
    private(set) var timeMax: UInt64 = 0
    private let tally: BlockTally
    /// Receives every archive with the processes of its records; nil: they cannot be determined.
    var onOrigins: ((ArchiveInfo, ArchiveOrigins?) -> Void)?
    /// Asked before an archive is opened to find its processes.
    var mayCount: () -> Bool = { true }
    private let progress: (UInt64) -> Void

    init(
        _ asked: ReaderOptions, _ tally: BlockTally, areTotals: Bool = false,
        progress: @escaping (UInt64) -> Void
    ) {
        self.areTotals = areTotals
        options = asked.narrowed
        let plan = options.plan
        isPossible =
            options.facts != nil && plan.hasOnlyBounds && plan.kinds == .max && plan.logger.isEmpty
            && options.origin.takesAll
        self.tally = tally
        self.progress = progress
    }

    /// True: the archive has been counted.
    func take(
        _ info: ArchiveInfo, _ facts: ArchiveFacts?, _ reading: ReaderOptions
    ) -> Bool {
        if let onOrigins {
            guard info.isWhole, !info.isEncrypted else { return false }
            onOrigins(info, facts?.origins ?? origins(info, facts, reading))
            return true
        }
        if areTotals {
            guard info.isWhole, !info.isEncrypted else { return false }
            records &+= info.recordCount
            timeMin = min(timeMin, info.timeMin)
            timeMax = max(timeMax, info.timeMax)
            return true
        }
        guard isPossible, let facts, ArchiveDigest.suffices(for: info),
            options.since == 0 || info.timeMin >= options.since,
            options.until == 0 || info.timeMax < options.until,
            let digest = facts.digest ?? count(info, facts, reading)
        else { return false }
        for level in Int(options.level)..<ArchiveDigest.levelsMax {
            add(digest, digest.levels[level], level)
        }
        progress(records)
        return true
    }

    private func origins(
        _ info: ArchiveInfo, _ facts: ArchiveFacts?, _ reading: ReaderOptions
    ) -> ArchiveOrigins? {
        guard mayCount(),
            let source = try? ArchiveSource.open(path: info.path, identities: options.identities),
            source.intactBlocks != nil, source.header.id == info.id
        else { return nil }
        source.room = reading.room
        guard let found = source.origins() else { return nil }
        facts?.learn(found)
        return found
    }

    private func count(
        _ info: ArchiveInfo, _ facts: ArchiveFacts, _ reading: ReaderOptions
    ) -> ArchiveDigest? {
        guard
            let source = try? ArchiveSource.open(path: info.path, identities: options.identities),
            source.intactBlocks != nil, source.header.id == info.id
        else { return nil }
        source.ahead = reading.ahead
        source.room = reading.room
        guard let digest = source.digest() else { return nil }
        facts.learn(digest)
        return digest
    }

    private func add(_ digest: ArchiveDigest, _ found: LevelDigest, _ level: Int) {
        guard found.records > 0 else { return }
        records &+= found.records
        byLevel[level] &+= found.records
        timeMin = min(timeMin, found.timeMin)
        timeMax = max(timeMax, found.timeMax)
        for (index, count) in found.loggers {
            unsafe digest.loggers[index].withUnsafeBytes {
                tally.common.count(count, logger: $0)
            }
        }
        for (index, count) in found.processes {
            let process = digest.processes[index]
            tally.common.count(count, process)
        }
        for (second, count) in found.seconds {
            tally.common.count(count, timeNs: second &* 1_000_000_000)
        }
    }
}
