// The results of `stats` and `verify` for a store. Both read everything: stats counts, by columns
// where they suffice; verify checks. A lane whose process died is not damaged; it is reported as
// unclean.

import CShims
import CordwoodCore

public struct LaneStatus: Sendable {
    public enum State: String, Sendable {
        case live
        /// The process closed the lane.
        case closed
        /// The process died.
        case unclean
    }

    public var name: String
    public var state: State
    public var processID: UInt32
    public var processName: String
    public var segments: Int
    public var bytes: UInt64
    /// The machine went down or restarted since.
    public var isOtherBoot: Bool
    /// Its records are written by pwrite(2): the file system's mappings are not trusted.
    public var isWritten = false
    /// The name of another machine, on a network file system: no local process adopts the lane
    /// (`cordwood archive --foreign`). nil: the lane is of this machine, was closed, or is in use.
    public var otherMachine: String?
}

public struct StoreStats: Sendable {
    public var lanes: [LaneStatus] = []
    public var archives = 0
    public var archiveBytes: UInt64 = 0
    /// The size of all archives' blocks (FORMAT §11.10).
    public var archiveRawBytes: UInt64 = 0
    public var records: UInt64 = 0
    /// Indexed by level; 0: without one.
    public var recordsByLevel = [UInt64](repeating: 0, count: 25)
    public var loggers = RecordCounts<String>()
    public var processes = RecordCounts<ProcessLabel>()
    /// UTC ns of the hours' beginnings.
    public var hours = RecordCounts<UInt64>()
    /// UTC ns; both 0 if there are no records.
    public var timeMin: UInt64 = 0
    public var timeMax: UInt64 = 0
    /// Records that were not kept, according to the gap records.
    public var refused: UInt64 = 0
    /// Names from FORMAT §8.6, in the order in which they appear in records, each once.
    public var refusedCauses: [String] = []
    /// What limits or denied consent removed before every target had it, at most one of each
    /// reason.
    public var removed: [RemovedSum] = []
    public var problems: [String] = []
    /// Archives that no identity opens: not damage, and not counted as records.
    public var encrypted: [String] = []

    public var segments: Int { lanes.reduce(0) { $0 + $1.segments } }
    public var laneBytes: UInt64 { lanes.reduce(0) { $0 &+ $1.bytes } }
    public var lanesWritten: Int { lanes.count { $0.isWritten } }
    public var lanesElsewhere: Int { lanes.count { $0.otherMachine != nil } }
    /// Names of the other machines, each once.
    public var hostsElsewhere: [String] { Set(lanes.compactMap(\.otherMachine)).sorted() }
}

public struct VerifyReport: Sendable {
    public var lanes: [LaneStatus] = []
    public var archives = 0
    public var records: UInt64 = 0
    /// Records shown that no sync had covered before the machine went down, including archived
    /// ones.
    public var unverified: UInt64 = 0
    /// Damage found. Empty: everything is intact.
    public var problems: [String] = []
    /// Archives that no identity opens: only their outside was checked.
    public var encrypted: [String] = []

    public var unclean: [LaneStatus] { lanes.filter { $0.state == .unclean } }
    public var isWhole: Bool { problems.isEmpty }

    public init() {}
}

public enum StoreInspector {
    private static let problemsMax = 1_000
    /// Records between two reports of progress.
    private static let progressStep: UInt64 = 16_384

    /// Paths of the archives that no other archive replaces (FORMAT §11), by name.
    private static func wholeArchives(_ store: FilePath) throws(ReadProblem) -> [FilePath] {
        let paths = try StoreFolder.archives(store)
        let infos = paths.map { try? ArchiveInfo.peek(path: $0) }
        let replaced = ArchiveInfo.replacedIDs(infos.compactMap { $0 })
        return zip(paths, infos).filter { _, info in
            info.map { !replaced.contains($0.id) } ?? true
        }.map(\.0)
    }

    /// Statistics of a store directory or a single file. Records that `options` excludes are not
    /// counted.
    public static func stats(
        path: String, options: ReaderOptions = ReaderOptions(),
        progress: @escaping (_ records: UInt64) -> Void = { _ in }
    ) throws(ReadProblem) -> StoreStats {
        var stats = StoreStats()
        let opened = FilePath(opening: path)
        if StoreFolder.isDirectory(opened) {
            try StoreFolder.check(opened)
            stats.lanes = try lanes(of: opened)
            stats.removed = RemovedFile.sums(storeDirectory: opened)
        }
        var options = options
        options.rendersText = false
        options.isUnordered = true
        let tally = BlockTally()
        options.tally = tally
        let answers = ArchiveAnswers(options, tally, progress: progress)
        options.answers = answers
        let reader = try StoreReader([opened], options: options)
        reader.onProgress = { progress($0 &+ answers.records) }
        addArchives(of: reader, to: &stats)
        var record = RecordRef()
        var causes: [String: MergePlace] = [:]
        while reader.skipProblems(&record) {
            count(record, &stats)
            if record.kind == RecordRef.gapKind { countGap(record, reader.place, &causes, &stats) }
            tally.common.count(record)
        }
        add(tally.records, tally.byLevel, tally.timeMin, tally.timeMax, to: &stats)
        add(answers.records, answers.byLevel, answers.timeMin, answers.timeMax, to: &stats)
        stats.refusedCauses = causes.sorted { ($0.value, $0.key) < ($1.value, $1.key) }.map(\.key)
        // Equal counts are sorted by name, whatever is read first.
        stats.loggers = tally.common.byLogger
        stats.loggers.records.sort { ($1.count, $0.key) < ($0.count, $1.key) }
        stats.processes = tally.common.byProcess
        stats.processes.records.sort {
            ($1.count, $0.key.name, $0.key.id) < ($0.count, $1.key.name, $1.key.id)
        }
        stats.hours = tally.common.byHour
        addProblems(of: reader, to: &stats)
        return stats
    }

    private static func count(_ record: borrowing RecordRef, _ stats: inout StoreStats) {
        let isFirst = stats.records == 0
        stats.records &+= 1
        stats.recordsByLevel[Int(min(record.level, 24))] &+= 1
        stats.timeMin = isFirst ? record.timeNs : min(stats.timeMin, record.timeNs)
        stats.timeMax = max(stats.timeMax, record.timeNs)
    }

    private static func add(
        _ records: UInt64, _ byLevel: [UInt64], _ timeMin: UInt64, _ timeMax: UInt64,
        to stats: inout StoreStats
    ) {
        if records == 0 { return }
        stats.timeMin = stats.records == 0 ? timeMin : min(stats.timeMin, timeMin)
        stats.timeMax = max(stats.timeMax, timeMax)
        stats.records &+= records
        for (level, count) in byLevel.enumerated() { stats.recordsByLevel[level] &+= count }
    }

    private static func countGap(
        _ record: borrowing RecordRef, _ place: MergePlace, _ causes: inout [String: MergePlace],
        _ stats: inout StoreStats
    ) {
        var fields = RecordFields(record)
        while let (key, value) = fields.next() {
            switch value {
            case .uint(let count) where Bytes.equal(key, Bytes.literal("gap.records")):
                stats.refused &+= count
            case .string(let names) where Bytes.equal(key, Bytes.literal("gap.causes")):
                for name in Bytes.string(names).split(separator: " ").map(String.init) {
                    causes[name] = min(causes[name] ?? place, place)
                }
            default: break
            }
        }
    }

    /// How many records a store or a single file has, and of which times. Archives say so in their
    /// footers: only lanes, and archives that are encrypted or damaged, are read.
    package static func totals(
        path: String, options asked: ReaderOptions, shouldStop: @escaping () -> Bool = { false }
    ) throws(ReadProblem) -> StoreStats {
        var stats = StoreStats()
        let opened = FilePath(opening: path)
        if StoreFolder.isDirectory(opened) {
            try StoreFolder.check(opened)
            stats.lanes = try lanes(of: opened)
        }
        var options = asked
        options.rendersText = false
        options.isUnordered = true
        let answers = ArchiveAnswers(options, BlockTally(), areTotals: true) { _ in }
        options.answers = answers
        let reader = try StoreReader([opened], options: options)
        reader.shouldStop = shouldStop
        addArchives(of: reader, to: &stats)
        var record = RecordRef()
        while reader.skipProblems(&record) { count(record, &stats) }
        add(answers.records, answers.byLevel, answers.timeMin, answers.timeMax, to: &stats)
        addProblems(of: reader, to: &stats)
        return stats
    }

    private static func addArchives(of reader: StoreReader, to stats: inout StoreStats) {
        let archives = reader.archives
        stats.archives = archives.opened.count + archives.others.count
        for info in archives.opened {
            stats.archiveBytes &+= info.fileBytes
            stats.archiveRawBytes &+= info.rawBytes
        }
        for path in archives.others { stats.archiveBytes &+= StoreFolder.bytes(of: path) }
    }

    private static func addProblems(of reader: StoreReader, to stats: inout StoreStats) {
        for problem in reader.problems {
            if case .locked(let what) = problem {
                stats.encrypted.append(what)
            } else {
                stats.problems.append(text(problem))
            }
        }
    }

    public static func stats(directory: String) throws(ReadProblem) -> StoreStats {
        try StoreFolder.check(FilePath(opening: directory))
        return try stats(path: directory)
    }

    /// Bytes checked, of all that were there at the start.
    public typealias Progress = (_ bytes: UInt64, _ all: UInt64) -> Void

    /// Verifies a single archive or segment. The identities open encrypted archives. `progress`
    /// reports on archives.
    public static func verify(
        file path: String, identities: [AgeIdentity] = [], progress: Progress = { _, _ in }
    ) throws(ReadProblem) -> VerifyReport {
        var report = VerifyReport()
        guard path.hasSuffix(".seg") || path.hasSuffix(".sealed") || path.hasSuffix(".lane") else {
            report.archives = 1
            let archive = FilePath(path)
            let all = StoreFolder.bytes(of: archive)
            try verify(archive: archive, identities, &report) { progress($0, all) }
            return report
        }
        let reader = try StoreReader(path: path)
        while reader.next({ _ in report.records &+= 1 }) == .record {}
        for problem in reader.problems { add(text(problem), &report) }
        report.unverified = UInt64(reader.unverifiedCount)
        return report
    }

    /// Skips segments that are proven to be in an archive: the files only remain to be removed
    /// (FORMAT §11).
    public static func verify(
        directory: String, identities: [AgeIdentity] = [], runningBoot: LaneID? = nil,
        progress: Progress = { _, _ in }
    ) throws(ReadProblem) -> VerifyReport {
        let store = FilePath(opening: directory)
        try StoreFolder.check(store)
        var report = VerifyReport()
        report.lanes = try lanes(of: store)
        let listed = try LaneFiles.list(store: store)
        let archives = try wholeArchives(store)
        var opened: [ArchiveInfo] = []
        var covered: [String: [ClosedRange<UInt64>]] = [:]
        for path in archives {
            // An archive that cannot be opened covers nothing, as for readers; it is reported
            // below.
            guard
                let info = try? ArchiveSource.open(path: path, identities: identities).header
            else { continue }
            for cover in info.covers where cover.first <= cover.last {
                covered[cover.laneName, default: []].append(cover.first...cover.last)
            }
            opened.append(info)
        }
        for problem in StoreFolder.headless(listed, covered: covered) {
            add(text(problem), &report)
        }
        let lanes = Set(opened.lazy.flatMap(\.covers).map(\.laneID))
        var overlaps = LaneOverlaps(opened, lanes: lanes, identities)
        var done: UInt64 = 0
        let all =
            listed.reduce(0) { $0 &+ bytes(of: $1) }
            &+ archives.reduce(0) { $0 &+ StoreFolder.bytes(of: $1) }
        for files in listed {
            if files.hasLaneFile {
                verify(files, &overlaps, runningBoot, &report) { progress(done &+ $0, all) }
            }
            done &+= bytes(of: files)
        }
        // List again: segments archived meanwhile are no longer in lanes/.
        for path in try wholeArchives(store) {
            report.archives += 1
            do throws(ReadProblem) {
                try verify(archive: path, identities, &report) { progress(done &+ $0, all) }
            } catch .locked(let what) {
                report.encrypted.append(what)
            } catch {
                add(text(error), &report)
            }
            done &+= StoreFolder.bytes(of: path)
        }
        return report
    }

    private static func verify(
        archive path: FilePath, _ identities: [AgeIdentity], _ report: inout VerifyReport,
        _ progress: (UInt64) -> Void
    ) throws(ReadProblem) {
        let found = try ArchiveVerifier.verify(
            path: path, identities: identities, progress: progress)
        for problem in found.problems { add(problem, &report) }
        if let locked = found.locked {
            report.encrypted.append(locked)
            return
        }
        report.records &+= found.info.recordCount
        report.unverified &+= found.unverifiedCount
    }

    private static func verify(
        _ files: LaneFiles, _ overlaps: inout LaneOverlaps, _ boot: LaneID?,
        _ report: inout VerifyReport, _ progress: (UInt64) -> Void
    ) {
        do throws(ReadProblem) {
            var records: UInt64 = 0
            let source = try LaneSource(files: files, runningBoot: boot)
            overlaps.settle(source)
            source.rendersText = false
            var failures = 0
            var record = RecordRef()
            while failures < 100_000 {
                do throws(ReadProblem) {
                    guard try source.next(&record) else { return }
                    report.records &+= 1
                    records &+= 1
                    if records % progressStep == 0 { progress(source.chunkBytes) }
                    if record.flags.contains(.unverified) { report.unverified &+= 1 }
                } catch {
                    failures += 1
                    add(text(error), &report)
                }
            }
        } catch {
            if case .system(_, let number) = error, number == Errno.ENOENT { return }
            add(text(error), &report)
        }
    }

    private static func add(_ problem: String, _ report: inout VerifyReport) {
        if report.problems.count < problemsMax { report.problems.append(problem) }
    }

    public static func lanes(_ directory: String) throws(ReadProblem) -> [LaneStatus] {
        try lanes(of: FilePath(opening: directory))
    }

    private static func lanes(of store: FilePath) throws(ReadProblem) -> [LaneStatus] {
        let boot = BootID.running()
        var all: [LaneStatus] = []
        for files in try LaneFiles.list(store: store) where files.hasLaneFile {
            // The lock first, and the header last: a process marks its lane as closed, then lets go
            // of the lock, and then ends.
            let isLocked = LaneFiles.isLocked(files.lanePath)
            var head = LaneHead.read(files)
            let isLive = isLocked && !(head?.hasEnded ?? false)
            if isLocked, !isLive { head = LaneHead.read(files) }
            // An adopter has archived and removed it since the listing.
            if head == nil, FileFacts(at: files.lanePath) == nil, Errno.last == Errno.ENOENT {
                continue
            }
            let state: LaneStatus.State =
                isLive ? .live : (head?.closed ?? false) ? .closed : .unclean
            let laneBoot = head?.bootID ?? .zero
            all.append(
                LaneStatus(
                    name: files.lane, state: state, processID: head?.processID ?? 0,
                    processName: head?.processName ?? "", segments: files.segments.count + 1,
                    bytes: bytes(of: files),
                    isOtherBoot: laneBoot != .zero && boot != .zero && laneBoot != boot,
                    isWritten: head?.isWritten ?? false,
                    otherMachine: state == .unclean
                        ? OtherMachine.name(directory: store, lane: files.lane) : nil))
        }
        return all
    }

    private static func bytes(of files: LaneFiles) -> UInt64 {
        let journal = files.hasJournal ? [files.journalPath] : []
        return ([files.lanePath] + journal + files.segments.map(\.path)).reduce(0) {
            $0 &+ StoreFolder.bytes(of: $1)
        }
    }

    static func text(_ problem: ReadProblem) -> String {
        switch problem {
        case .damaged(let text), .version(let text), .locked(let text): text
        case .system(let text, let number): "\(text): \(Errno.text(number))"
        }
    }
}
