// The archives of a store from a reader's point of view: which exist, what they cover, and how they
// enter a merge. If there are few archives, each is placed exactly, by a look at its first record.
// If there are many, its name and footer must suffice, and it is placed a minute early.

import CordwoodCore

final class ArchiveShelf {
    /// Up to this many archives are placed by their first record.
    static let placedExactlyMax = 64
    private static let slackNs: UInt64 = 60_000_000_000

    private let store: String
    private let identities: [AgeIdentity]
    private var known: Set<String> = []
    /// Archives seen and not read so far, because the lanes' own files supplied their records.
    private(set) var passedOver: [ArchiveInfo] = []

    init(store: String, identities: [AgeIdentity]) {
        self.store = store
        self.identities = identities
    }

    /// Returns archives that were not there before; reports those that cannot be opened.
    func discover(_ report: (ReadProblem) -> Void) -> [ArchiveInfo] {
        var found: [ArchiveInfo] = []
        do throws(ReadProblem) {
            for path in try StoreFolder.archives(store) where known.insert(path).inserted {
                do throws(ReadProblem) {
                    found.append(
                        try ArchiveSource.open(path: path, identities: identities).header)
                } catch {
                    report(error)
                }
            }
        } catch {
            report(error)
        }
        return found
    }

    func passOver(_ info: ArchiveInfo) { passedOver.append(info) }

    func takePassedOver(_ isWanted: (ArchiveInfo) -> Bool) -> [ArchiveInfo] {
        let wanted = passedOver.filter(isWanted)
        passedOver.removeAll(where: isWanted)
        return wanted
    }

    /// Whether a reader may want any of its records. A damaged archive always counts, and reports
    /// its damage when it is read.
    static func overlaps(_ info: ArchiveInfo, _ options: ReaderOptions) -> Bool {
        if !info.isWhole { return true }
        if info.recordCount == 0 { return false }
        if options.since != 0, info.timeMax < options.since { return false }
        if options.until != 0, info.timeMin >= options.until { return false }
        return true
    }

    static func open(_ info: ArchiveInfo, _ options: ReaderOptions) throws(ReadProblem)
        -> ArchiveSource
    {
        let source = try ArchiveSource.open(path: info.path, identities: options.identities)
        source.restrict(since: options.since, until: options.until, level: options.level)
        return source
    }

    /// Ordering time before which the archive has no record, according to its covers and footer.
    static func roughBound(_ info: ArchiveInfo) -> UInt64 {
        var bound = info.timeMin
        for cover in info.covers where cover.first == 0 {
            bound = min(bound, LaneName.start(cover.laneName) ?? 0)
        }
        return bound > slackNs ? bound - slackNs : 0
    }
}

/// An archive that continues a lane which was partly read from its own files: supplies the rest.
/// When following, its young records wait like those of lanes; otherwise they would overtake them.
final class RestOfArchive: RecordSource {
    private let source: any RecordSource
    private let isGiven: (RecordRef) -> Bool
    /// Monotonic time beyond which that process's records wait; nil: none do.
    private let holdAfter: (ProcessInfo) -> UInt64?
    /// A record that was read and is too young; the source is still at it.
    private var held: RecordRef?
    /// Nothing more will ever come.
    private(set) var isDone = false

    init(
        _ source: any RecordSource, holdAfter: @escaping (ProcessInfo) -> UInt64?,
        isGiven: @escaping (RecordRef) -> Bool
    ) {
        self.source = source
        self.isGiven = isGiven
        self.holdAfter = holdAfter
    }

    var process: ProcessInfo? { source.process }
    var createdMonotonicNs: UInt64 { source.createdMonotonicNs }

    func advance() throws(ReadProblem) -> RecordRef? {
        while true {
            var found = held
            held = nil
            if found == nil { found = try source.advance() }
            guard let record = found else {
                isDone = true
                return nil
            }
            if let limit = holdAfter(record.thread.process), record.monotonicNs > limit {
                held = record
                return nil
            }
            if !isGiven(record) { return record }
        }
    }
}

/// A followed lane with the archives that hold part of it. An archive's part is read before the
/// lane continues, so each thread keeps its order although the clocks of two segments differ by
/// microseconds.
final class LaneFeed: RecordSource {
    private let lane: LaneSource
    private var parts: [ChainSource.Part] = []
    private var rest: (any RecordSource)?

    init(_ lane: LaneSource) { self.lane = lane }

    var process: ProcessInfo? { lane.process }
    var createdMonotonicNs: UInt64 { lane.createdMonotonicNs }

    func precede(with part: @escaping ChainSource.Part) { parts.append(part) }

    func advance() throws(ReadProblem) -> RecordRef? {
        while true {
            if rest == nil, !parts.isEmpty { rest = try parts.removeFirst()() }
            guard let source = rest else {
                if parts.isEmpty { return try lane.advance() }
                continue
            }
            if let record = try source.advance() { return record }
            guard (source as? RestOfArchive)?.isDone ?? true else { return nil }
            rest = nil
        }
    }
}
