// The archives of a store from a reader's point of view: which exist, what they cover, and how they
// enter a merge. If there are few, each is placed exactly, by a look at its first record. If there
// are many, name and footer must suffice, and an archive is placed a minute early. An archive that
// is remembered (Facts) need not be opened for this.

import CordwoodCore

final class ArchiveShelf {
    /// Up to this many archives are placed by their first record.
    static let placedExactlyMax = 64
    private static let slackNs: UInt64 = 60_000_000_000

    private let store: FilePath
    private let identities: [AgeIdentity]
    private let facts: StoreFacts?
    /// The reader's open archives.
    let files: OpenFiles?
    /// `listedFirst`: the first listing. `known`: all listings so far; made at the second one.
    private var listedFirst: [FilePath] = []
    private var known: Set<FilePath> = []
    /// The archives of the first listing, and the paths of those that could not be opened.
    private(set) var atFirst: (opened: [ArchiveInfo], others: [FilePath])?
    /// Archives seen but not read so far, because the lanes' own files supplied their records.
    private(set) var passedOver: [ArchiveInfo] = []
    private let replaced: ReplacedArchives

    init(
        store: FilePath, identities: [AgeIdentity], facts: StoreFacts? = nil,
        files: OpenFiles? = nil
    ) {
        self.store = store
        self.identities = identities
        self.facts = facts
        self.files = files
        replaced = ReplacedArchives(store: store, identities: identities)
    }

    /// Returns archives that are new since the last call; reports those that cannot be opened.
    func discover(_ report: (ReadProblem) -> Void) -> [ArchiveInfo] {
        var found: [ArchiveInfo] = []
        var others: [FilePath] = []
        do throws(ReadProblem) {
            var paths = try listed()
            facts?.begin(paths.count)
            var gone: [(path: FilePath, problem: ReadProblem)] = []
            var fresh = fresh(paths)
            while !fresh.isEmpty {
                let before = gone.count
                for path in fresh {
                    do throws(ReadProblem) {
                        found.append(try look(path))
                    } catch {
                        if ArchiveShelf.isGone(error) {
                            gone.append((path, error))
                            continue
                        }
                        others.append(path)
                        report(error)
                    }
                }
                if gone.count == before { break }
                // Deleted since they were listed, or replaced by an archive with another name.
                paths = try listed()
                fresh = self.fresh(paths)
            }
            let there = gone.isEmpty ? [] : Set(paths)
            for (path, problem) in gone where there.contains(path) {
                others.append(path)
                report(problem)
            }
        } catch {
            facts?.fail()
            report(error)
        }
        let whole = withoutReplaced(found)
        replaced.list(found)
        if atFirst == nil { atFirst = (whole, others) }
        return whole
    }

    private func listed() throws(ReadProblem) -> [FilePath] {
        try making { () throws(ReadProblem) in try StoreFolder.archives(store) }
    }

    /// Runs `make`, for which idle archives of the reader give up their descriptors.
    func making<Made>(_ make: () throws(ReadProblem) -> Made) throws(ReadProblem) -> Made {
        guard let files else { return try make() }
        return try files.making(make)
    }

    private func fresh(_ paths: [FilePath]) -> [FilePath] {
        if listedFirst.isEmpty, known.isEmpty {
            listedFirst = paths
            return paths
        }
        known.formUnion(listedFirst)
        listedFirst = []
        return paths.filter { known.insert($0).inserted }
    }

    /// Leaves out archives that another one replaces, and a replacement of archives seen before:
    /// its records were or will be read from these, or from the lanes that they cover.
    private func withoutReplaced(_ found: [ArchiveInfo]) -> [ArchiveInfo] {
        if found.allSatisfy({ $0.replaced.isEmpty }) { return found }
        let old = ArchiveInfo.replacedIDs(found)
        var fresh: [ArchiveInfo] = []
        for info in found where !old.contains(info.id) {
            if !info.replaced.isEmpty, replaced.hasListed(info) {
                // Archives that wait until they are needed are gone, or about to go.
                let all = passedOver.count
                passedOver.removeAll(where: Replacing(info).has)
                if passedOver.count < all { passedOver.append(info) }
            } else {
                fresh.append(info)
            }
        }
        return fresh
    }

    private func look(_ path: FilePath) throws(ReadProblem) -> ArchiveInfo {
        let (key, remembered) = facts?.find(path) ?? (nil, nil)
        if let remembered { return remembered.info }
        let source = try ArchiveSource.open(path: path, identities: identities, files: files)
        facts?.note(path, key, source.header, source.intactBlocks)
        return source.header
    }

    /// The process of the archive's first record, perhaps only its lane, boot and clocks, and the
    /// record's monotonic time; nil: the archive cannot be opened.
    func first(of info: ArchiveInfo) -> (process: ProcessInfo?, monotonicNs: UInt64)? {
        if let (process, time) = facts?.facts(of: info.path)?.first { return (process, time) }
        guard
            let source = try? ArchiveSource.open(
                path: info.path, identities: identities, files: files)
        else { return nil }
        let (process, time) = (source.process, source.createdMonotonicNs)
        if let process, let remembered = facts?.facts(of: info.path) {
            remembered.learn(first: process, time)
        }
        return (process, time)
    }

    /// The blocks according to the footer; nil: not remembered.
    func blocks(of info: ArchiveInfo) -> [BlockEntry]? { facts?.facts(of: info.path)?.blocks }

    /// Times of a block whose records all belong to `process`, without an offset; nil: not
    /// remembered.
    func times(ofBlock block: Int, of path: FilePath, _ process: ProcessInfo) -> BlockTimes? {
        facts?.facts(of: path)?.times(ofBlock: block, of: process)
    }

    func learn(
        _ times: BlockTimes, ofBlock block: Int, of path: FilePath, _ process: ProcessInfo
    ) {
        facts?.facts(of: path)?.learn(times, ofBlock: block, of: process)
    }

    /// True: `stats` needs no record of the archive.
    func isAnswered(_ info: ArchiveInfo, _ options: ReaderOptions) -> Bool {
        let isTaken =
            options.answers?.take(info, facts?.facts(of: info.path), options) ?? false
        if isTaken { replaced.answer(info) }
        return isTaken
    }

    /// False: as far as is known, the reader wants none of its records, because all belong to other
    /// processes. An archive of one block is looked at once and then remembered: a reader would
    /// open it and load that block anyway.
    func mayHave(_ info: ArchiveInfo, _ asked: OriginsAsked) -> Bool {
        guard let known = facts?.facts(of: info.path) else { return true }
        guard let origins = known.origins ?? origins(of: info, known) else { return true }
        return asked.mayMatch(origins)
    }

    private func origins(of info: ArchiveInfo, _ known: ArchiveFacts) -> ArchiveOrigins? {
        guard info.blockCount == 1,
            let source = try? ArchiveSource.open(
                path: info.path, identities: identities, files: files),
            source.intactBlocks != nil, source.header.id == info.id,
            let found = source.origins()
        else { return nil }
        known.learn(found)
        return found
    }

    private static func isGone(_ problem: ReadProblem) -> Bool {
        if case .system(_, Errno.ENOENT) = problem { return true }
        return false
    }

    /// Opens an archive to read it from `start`, or what has replaced it. nil: a replacement
    /// supplies its records.
    func open(
        _ info: ArchiveInfo, at start: ArchiveStart = ArchiveStart(), _ options: ReaderOptions
    ) throws(ReadProblem) -> (any RecordSource)? {
        if replaced.isSupplied(info) { return nil }
        do throws(ReadProblem) {
            let source = try open(info, options)
            replaced.open(info, source)
            // It may have been written again, with other blocks under the same name.
            if source.header.blockCount == info.blockCount { source.begin(at: start) }
            return source
        } catch {
            guard ArchiveShelf.isGone(error),
                let source = replaced.replacement(of: info, options)
            else { throw error }
            return source
        }
    }

    /// If the archive is not what was remembered, the next reader looks at it again.
    private func open(
        _ info: ArchiveInfo, _ options: ReaderOptions
    ) throws(ReadProblem) -> ArchiveSource {
        let source = try ArchiveSource.open(
            path: info.path, identities: options.identities, files: files)
        let now = source.header
        if (now.id, now.recordCount, now.timeMin, now.timeMax) != (
            info.id, info.recordCount, info.timeMin, info.timeMax
        ) || now.covers != info.covers || now.replaced != info.replaced
            || now.isWhole != info.isWhole
        {
            facts?.forget(info.path)
        }
        ArchiveShelf.prepare(source, options)
        return source
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

    /// Makes the source leave out what the reader does not want.
    static func prepare(_ source: ArchiveSource, _ options: ReaderOptions) {
        var limits = RowLimits()
        limits.since = options.since
        limits.until = options.until
        limits.level = options.level
        limits.kinds = options.kinds
        let plan = options.plan
        let origin = options.origin
        if !plan.logger.isEmpty {
            limits.isLogger = { QueryTest.covers(plan.logger, $0) }
        }
        source.restrict(limits)
        source.tally = plan.hasOnlyBounds && origin.takesAll ? options.tally : nil
        source.ahead = options.ahead
        source.room = options.room
        source.passed = options.passed
        if !options.rendersText { source.rendersText = false }
        if let search = options.shownSearch {
            source.look(for: search.text, inFields: search.fields)
        } else if let search = plan.search {
            source.look(for: search.text, inFields: search.fields)
        }
        if options.takesAll { return }
        source.select { record in origin.matches(record) && plan.mayMatch(record) }
    }

    /// Ordering time before which the archive has no record, according to its covers and footer.
    static func roughBound(_ info: ArchiveInfo) -> UInt64 {
        var bound = info.writtenMin
        for cover in info.covers where cover.first == 0 {
            bound = min(bound, LaneName.start(cover.laneName) ?? 0)
        }
        return bound > slackNs ? bound - slackNs : 0
    }
}

/// The rest of an archive whose lane was partly read from its own files. When following, its young
/// records wait as those of lanes do; otherwise they would overtake them.
final class RestOfArchive: RecordSource {
    private let source: any RecordSource
    private let isGiven: (borrowing RecordRef) -> Bool
    /// Monotonic time after which that process's records wait; nil: none wait.
    private let holdAfter: (ProcessInfo) -> UInt64?
    /// A record that was read and is too young; the source has not moved past it.
    private var held: RecordRef?
    /// Nothing more will ever come.
    private(set) var isDone = false

    init(
        _ source: any RecordSource, holdAfter: @escaping (ProcessInfo) -> UInt64?,
        isGiven: @escaping (borrowing RecordRef) -> Bool
    ) {
        self.source = source
        self.isGiven = isGiven
        self.holdAfter = holdAfter
    }

    var process: ProcessInfo? { source.process }
    var createdMonotonicNs: UInt64 { source.createdMonotonicNs }

    func next(_ record: inout RecordRef) throws(ReadProblem) -> Bool {
        while true {
            if let waiting = held {
                record = waiting
                held = nil
            } else if try !source.next(&record) {
                isDone = true
                return false
            }
            if let limit = holdAfter(record.thread.process), record.monotonicNs > limit {
                held = record
                return false
            }
            if !isGiven(record) { return true }
        }
    }
}

/// A followed lane and the archives that hold part of it. An archive's part is read before the lane
/// continues, so each thread keeps its order although the clocks of two segments differ by
/// microseconds.
final class LaneFeed: RecordSource {
    private let lane: LaneSource
    private var parts: [ChainSource.Part] = []
    private var rest: (any RecordSource)?

    init(_ lane: LaneSource) { self.lane = lane }

    var process: ProcessInfo? { lane.process }
    var createdMonotonicNs: UInt64 { lane.createdMonotonicNs }

    func precede(with part: @escaping ChainSource.Part) { parts.append(part) }

    func next(_ record: inout RecordRef) throws(ReadProblem) -> Bool {
        while true {
            if rest == nil, !parts.isEmpty { rest = try parts.removeFirst()() }
            guard let source = rest else {
                if parts.isEmpty { return try lane.next(&record) }
                continue
            }
            if try source.next(&record) { return true }
            guard (source as? RestOfArchive)?.isDone ?? true else { return false }
            rest = nil
        }
    }
}
