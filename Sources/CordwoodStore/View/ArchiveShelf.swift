// The archives of a store as a reader needs them: which exist, what they cover, and as inputs of a
// merge. An archive's first record is looked at beforehand to place it exactly while archives are
// few; where they are many its name and footer must do, a minute early.

import CordwoodCore

final class ArchiveShelf {
    /// Up to so many archives are placed by their first record.
    static let placedExactlyMax = 64
    private static let slackNs: UInt64 = 60_000_000_000

    private let store: String
    private let identities: [AgeIdentity]
    private var known: Set<String> = []
    /// Seen and not read so far, because the lanes' own files gave their records.
    private(set) var passedOver: [ArchiveInfo] = []

    init(store: String, identities: [AgeIdentity]) {
        self.store = store
        self.identities = identities
    }

    /// Archives that were not there before; what cannot be opened is told of.
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

    /// Whether any record of it can be wanted. Of one that is damaged nobody knows, and it says so
    /// when it is read.
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

    /// Ordering time before which it has nothing, by what its covers and footer say.
    static func roughBound(_ info: ArchiveInfo) -> UInt64 {
        var bound = info.timeMin
        for cover in info.covers where cover.first == 0 {
            bound = min(bound, LaneName.start(cover.laneName) ?? 0)
        }
        return bound > slackNs ? bound - slackNs : 0
    }
}

/// An archive behind a lane that was partly read from its own files: gives the rest. Following, its
/// young records wait as those of lanes do, or they would overtake them.
final class RestOfArchive: RecordSource {
    private let source: any RecordSource
    private let isGiven: (RecordRef) -> Bool
    /// Monotonic time beyond which that process's records wait; nil: none does.
    private let holdAfter: (ProcessInfo) -> UInt64?
    /// Read and too young; the source stands at it.
    private var held: RecordRef?
    /// Nothing is left, for ever.
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
/// lane goes on, so each thread keeps its order, although the clocks of two segments differ by
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
