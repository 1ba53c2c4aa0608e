// The results of `stats` and `verify` for a store. Both read everything: stats counts, verify
// judges. A lane whose process died is not damaged; it is reported as unclean.

import CShims
import CordwoodCore
import Glibc

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
    /// Sum over the archives' payloads before compression.
    public var archiveRawBytes: UInt64 = 0
    public var records: UInt64 = 0
    /// Indexed by level; 0: without one.
    public var recordsByLevel = [UInt64](repeating: 0, count: 25)
    /// UTC ns; both 0 if there are no records.
    public var timeMin: UInt64 = 0
    public var timeMax: UInt64 = 0
    /// Records that were not kept, according to the gap records.
    public var refused: UInt64 = 0
    /// Names from FORMAT §8.6, in order of appearance, each once.
    public var refusedCauses: [String] = []
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

    /// Statistics of a store directory or a single file. Records that `options` excludes are not
    /// counted.
    public static func stats(
        path: String, options: ReaderOptions = ReaderOptions(),
        progress: (_ records: UInt64) -> Void = { _ in }
    ) throws(ReadProblem) -> StoreStats {
        var stats = StoreStats()
        let isStore = StoreFolder.isDirectory(path)
        if isStore {
            try StoreFolder.check(path)
            stats.lanes = try lanes(path)
        }
        for path in isStore ? try StoreFolder.archives(path) : [path] where path.hasSuffix(".cwa") {
            stats.archives += 1
            stats.archiveBytes &+= StoreFolder.bytes(of: path)
            let source = try? ArchiveSource.open(path: path, identities: options.identities)
            if let info = source?.header {
                stats.archiveRawBytes &+= info.rawBytes
            }
        }
        let reader = try StoreReader(path: path, options: options)
        var records: UInt64 = 0
        while reader.next({ count($0, &stats) }) == .record {
            records &+= 1
            if records % 16_384 == 0 { progress(records) }
        }
        for problem in reader.problems {
            if case .locked(let what) = problem {
                stats.encrypted.append(what)
            } else {
                stats.problems.append(text(problem))
            }
        }
        return stats
    }

    private static func count(_ record: RecordRef, _ stats: inout StoreStats) {
        let isFirst = stats.records == 0
        stats.records &+= 1
        stats.recordsByLevel[Int(min(record.level, 24))] &+= 1
        stats.timeMin = isFirst ? record.timeNs : min(stats.timeMin, record.timeNs)
        stats.timeMax = max(stats.timeMax, record.timeNs)
        if record.kind == RecordRef.gapKind { countGap(record, &stats) }
    }

    private static func countGap(_ record: RecordRef, _ stats: inout StoreStats) {
        var fields = RecordFields(record)
        while let (key, value) = fields.next() {
            switch value {
            case .uint(let count) where Bytes.equal(key, Bytes.literal("gap.records")):
                stats.refused &+= count
            case .string(let names) where Bytes.equal(key, Bytes.literal("gap.causes")):
                for name in Bytes.string(names).split(separator: " ").map(String.init)
                where !stats.refusedCauses.contains(name) {
                    stats.refusedCauses.append(name)
                }
            default: break
            }
        }
    }

    public static func stats(directory: String) throws(ReadProblem) -> StoreStats {
        try StoreFolder.check(directory)
        return try stats(path: directory)
    }

    /// Verifies a single archive or segment. The identities open encrypted archives.
    public static func verify(
        file path: String, identities: [AgeIdentity] = []
    ) throws(ReadProblem) -> VerifyReport {
        var report = VerifyReport()
        guard path.hasSuffix(".seg") || path.hasSuffix(".sealed") || path.hasSuffix(".lane") else {
            report.archives = 1
            try verify(archive: path, identities, &report)
            return report
        }
        let reader = try StoreReader(path: path)
        while reader.next({ _ in report.records &+= 1 }) == .record {}
        for problem in reader.problems { add(text(problem), &report) }
        report.unverified = UInt64(reader.unverifiedCount)
        return report
    }

    /// Skips segments that an archive covers: their records belong to the archive, and the files
    /// only remain to be removed (FORMAT §11).
    public static func verify(
        directory: String, identities: [AgeIdentity] = [], runningBoot: LaneID? = nil
    ) throws(ReadProblem) -> VerifyReport {
        try StoreFolder.check(directory)
        var report = VerifyReport()
        report.lanes = try lanes(directory)
        let listed = try LaneFiles.list(store: directory)
        let archives = try StoreFolder.archives(directory)
        var covered: [LaneID: [ClosedRange<UInt64>]] = [:]
        var coveredNames: [String: [ClosedRange<UInt64>]] = [:]
        for path in archives {
            // An archive that cannot be opened covers nothing, as for readers; it is reported
            // below.
            guard
                let info = try? ArchiveSource.open(path: path, identities: identities).header
            else { continue }
            for cover in info.covers where cover.first <= cover.last {
                covered[cover.laneID, default: []].append(cover.first...cover.last)
                coveredNames[cover.laneName, default: []].append(cover.first...cover.last)
            }
        }
        for problem in StoreFolder.headless(listed, covered: coveredNames) {
            add(text(problem), &report)
        }
        for files in listed where files.hasLaneFile {
            verify(files, covered, runningBoot, &report)
        }
        // List again: segments archived meanwhile are no longer in lanes/.
        for path in try StoreFolder.archives(directory) {
            report.archives += 1
            do throws(ReadProblem) {
                try verify(archive: path, identities, &report)
            } catch .locked(let what) {
                report.encrypted.append(what)
            } catch {
                add(text(error), &report)
            }
        }
        return report
    }

    private static func verify(
        archive path: String, _ identities: [AgeIdentity], _ report: inout VerifyReport
    ) throws(ReadProblem) {
        let found = try ArchiveVerifier.verify(path: path, identities: identities)
        for problem in found.problems { add(problem, &report) }
        if let locked = found.locked {
            report.encrypted.append(locked)
            return
        }
        report.records &+= found.info.recordCount
        report.unverified &+= found.unverifiedCount
    }

    private static func verify(
        _ files: LaneFiles, _ covered: [LaneID: [ClosedRange<UInt64>]], _ boot: LaneID?,
        _ report: inout VerifyReport
    ) {
        do throws(ReadProblem) {
            let source = try LaneSource(files: files, runningBoot: boot)
            for range in covered[source.laneID] ?? [] { source.exclude(range) }
            source.rendersText = false
            var failures = 0
            while failures < 100_000 {
                do throws(ReadProblem) {
                    guard let record = try source.advance() else { return }
                    report.records &+= 1
                    if record.flags.contains(.unverified) { report.unverified &+= 1 }
                } catch {
                    failures += 1
                    add(text(error), &report)
                }
            }
        } catch {
            if case .system(_, let number) = error, number == ENOENT { return }
            add(text(error), &report)
        }
    }

    private static func add(_ problem: String, _ report: inout VerifyReport) {
        if report.problems.count < problemsMax { report.problems.append(problem) }
    }

    public static func lanes(_ directory: String) throws(ReadProblem) -> [LaneStatus] {
        let boot = BootID.running()
        var all: [LaneStatus] = []
        for files in try LaneFiles.list(store: directory) where files.hasLaneFile {
            let head = LaneHead.read(files)
            var bytes = StoreFolder.bytes(of: files.lanePath)
            bytes &+= files.hasJournal ? StoreFolder.bytes(of: files.journalPath) : 0
            for segment in files.segments { bytes &+= StoreFolder.bytes(of: segment.path) }
            let state: LaneStatus.State =
                LaneFiles.isLocked(files.lanePath)
                ? .live : (head?.closed ?? false) ? .closed : .unclean
            let laneBoot = head?.bootID ?? .zero
            all.append(
                LaneStatus(
                    name: files.lane, state: state, processID: head?.processID ?? 0,
                    processName: head?.processName ?? "", segments: files.segments.count + 1,
                    bytes: bytes,
                    isOtherBoot: laneBoot != .zero && boot != .zero && laneBoot != boot,
                    isWritten: head?.isWritten ?? false,
                    otherMachine: state == .unclean
                        ? OtherMachine.name(directory: directory, lane: files.lane) : nil))
        }
        return all
    }

    static func text(_ problem: ReadProblem) -> String {
        switch problem {
        case .damaged(let text), .version(let text), .locked(let text): text
        case .system(let text, let number): unsafe "\(text): \(String(cString: strerror(number)))"
        }
    }
}
