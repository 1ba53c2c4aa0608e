// Turns segments into archives: an engine's own sealed ones, and whole lanes of dead processes. The
// order is that of FORMAT §11: first the archive becomes durable under its name, then the segments
// are removed. Every step may be repeated, so a kill between any two loses nothing.

import CShims
import CordwoodCore

/// The results of archiving.
public struct ArchivingSummary: Sendable {
    public var lanes = 0
    public var segments = 0
    public var archives = 0
    public var records: UInt64 = 0
    public var bytesIn: UInt64 = 0
    public var bytesOut: UInt64 = 0
    /// Number of lanes skipped because their process lives.
    public var lanesLive = 0
    /// Number of lanes skipped because a process of another machine made them, and the names of
    /// those machines.
    public var lanesForeign = 0
    public var foreignHosts: Set<String> = []
    /// Damaged places found, cut at 10,000; everything else was archived.
    public var damage: [String] = []

    private static let damageMax = 10_000
    private static let hostsMax = 1_000

    public init() {}

    public mutating func add(_ other: ArchivingSummary) {
        lanes += other.lanes
        segments += other.segments
        archives += other.archives
        records += other.records
        bytesIn += other.bytesIn
        bytesOut += other.bytesOut
        lanesLive += other.lanesLive
        lanesForeign += other.lanesForeign
        if foreignHosts.count < ArchivingSummary.hostsMax {
            foreignHosts.formUnion(other.foreignHosts)
        }
        // An engine adds its findings every minute, for as long as it runs.
        damage += other.damage.prefix(max(0, ArchivingSummary.damageMax - damage.count))
    }
}

public enum StoreArchiver {
    /// Where two parts of a lane meet, readers order a thread's records by times that must be right
    /// within 100 microseconds (ChainSource).
    public static let timeStepNsMax: UInt32 = 10_000

    /// Archives and removes every lane that has no living owner. Leaves segments of living lanes
    /// alone. Throws if the directory is not a store; `damage` reports lanes that failed.
    /// timeStepNs: times are rounded down to a multiple of it, 1 to `timeStepNsMax`.
    /// recipients: the keys that the archives are encrypted to; none: they are plain.
    /// witness: knowledge about lanes whose lock outlived their process; kept between two calls.
    /// progress: called now and then, on this thread, with the number of records since the last
    /// call.
    /// only: the names of lanes; nil: all.
    /// shouldStop: called between two archives; the next adopter takes the rest.
    package static func archiveDead(
        directory: FilePath, codec: Codec = .zstd, level: Int32 = 0, method: ArchiveMethod = .dense,
        timeStepNs: UInt64 = 1, recipients: [AgeRecipient] = [],
        witness: AdoptionWitness = AdoptionWitness(), only: Set<String>? = nil,
        progress: (@Sendable (_ records: UInt64) -> Void)? = nil, shouldStop: () -> Bool = { false }
    ) throws(CordwoodError) -> ArchivingSummary {
        var form = ArchiveForm(codec: codec, level: level, recipients: recipients)
        form.progress = progress
        form.method = method
        form.timeStepNs = timeStepNs
        guard let found = FileFacts(following: directory) else {
            throw Directories.failure("open", directory)
        }
        guard found.isDirectory else {
            throw CordwoodError(Status.notDirectory, "\(directory) is not a directory")
        }
        try StoreOwner.check(storeDirectory: directory)
        for name in ["lanes", "archives"] {
            let path = directory + "/\(name)"
            guard FileFacts(at: path)?.isDirectory != false else {
                throw CordwoodError(Status.notDirectory, "\(path) is not a directory")
            }
        }
        var summary = ArchivingSummary()
        let first = LaneListing(directory: directory)
        guard first.isWhole else { throw Directories.failure("list", directory + "/lanes") }
        if only == nil { removeUnpublished(directory, first.unpublished) }
        let names = first.lanes.values.filter { $0.hasLaneFile && only?.contains($0.name) != false }
            .map(\.name).sorted()
        witness.keep(only: Set(names))
        // Only adopters change these lanes now, so one listing serves all of them.
        let over = Set(names.filter { AdoptionLock.isOver(directory: directory, lane: $0) })
        let listed = try ListedLanes(directory: directory)
        var archives = ListedArchives()
        if only == nil { summary.add(try clearOrphans(directory, listed, &archives, form)) }
        for start in stride(from: 0, to: names.count, by: lanesAtOnce) where !shouldStop() {
            let batch = try DeadLanes(
                directory: directory,
                names: Array(names[start..<min(start + lanesAtOnce, names.count)]),
                witness: witness, listed: listed, over: over, archives: &archives)
            defer { batch.release() }
            summary.lanesLive += batch.lanesLive
            summary.lanesForeign += batch.hosts.count
            summary.foreignHosts.formUnion(batch.hosts)
            summary.damage += batch.damage
            summary.add(
                try archive(batch, directory: directory, form: form, shouldStop: shouldStop))
        }
        return summary
    }

    /// The number of lanes locked together; at most this many share an archive.
    static let lanesAtOnce = 32

    /// Throws if the disk is full; `damage` reports other failures.
    private static func archive(
        _ batch: DeadLanes, directory: FilePath, form: ArchiveForm, shouldStop: () -> Bool
    ) throws(CordwoodError) -> ArchivingSummary {
        var summary = ArchivingSummary()
        var alone = batch.lanes
        // Groups the lanes that short-lived processes left. A lane that an archive covers in part
        // goes alone: if a group's archive cannot be read, segment 0 says which lanes wait (FORMAT
        // §11).
        let brief = alone.filter { lane, files in
            batch.archives.covered[lane.name] == nil && !files.isBlank
                && isSmall(files)
        }
        let names = Set(brief.map(\.0.name))
        if brief.count > 1 {
            do {
                summary.add(
                    try archiveTogether(
                        brief, parts: batch.parts, directory: directory, form: form))
                alone.removeAll { lane, _ in names.contains(lane.name) }
            } catch {
                guard error.status != Status.full else { throw error }
                // One of them cannot be read: archive each alone, and report that one.
            }
        }
        for (lane, files) in alone where !shouldStop() {
            do {
                summary.add(
                    try archiveLane(
                        directory: directory, lane: lane, files: files,
                        archives: batch.archives, parts: batch.parts[lane.name] ?? [],
                        form: form, shouldStop: shouldStop))
            } catch {
                guard error.status != Status.full else { throw error }
                summary.damage.append(error.text)
            }
        }
        return summary
    }

    private static let smallBytesMax: UInt64 = 4 << 20

    /// Whether the files hold little, whatever room they have.
    private static func isSmall(_ files: LaneFiles) -> Bool {
        ([files.lanePath] + files.segments.map(\.path)).reduce(0) { sum, path in
            sum &+ (FileFacts(following: path)?.bytesOnDisk ?? 0)
        } <= smallBytesMax
    }

    /// Archives several whole lanes in one archive (FORMAT §11).
    private static func archiveTogether(
        _ lanes: [(LaneListing.Lane, LaneFiles)], parts: [String: [String]], directory: FilePath,
        form: ArchiveForm, lostPlaces: UInt32 = 0
    ) throws(CordwoodError) -> ArchivingSummary {
        var summary = ArchivingSummary()
        summary.lanes = lanes.count
        var lost = lostPlaces
        do {
            var covers: [ArchiveCover] = []
            var segments = 0
            let merge = MergeSource()
            let pool = OpenFiles()
            for (lane, files) in lanes {
                let last = try numbers(of: lane, files).max() ?? 0
                let source = try LaneSource(files: files, segments: 0...last, pool: pool)
                source.reportsDrops = true
                source.rendersText = false
                let (seals, gap) = try source.content()
                let primed = PrimedSource(source)
                try primed.prime()
                summary.damage += primed.damage
                guard primed.hasRecord else { continue }
                if let process = source.process { merge.learn(process, lane: lane.name) }
                merge.add(
                    MergeInput(lowerBound: 0, order: UInt64(covers.count)) {
                        () throws(ReadProblem) -> (any RecordSource)? in primed
                    })
                covers.append(
                    ArchiveCover(
                        laneID: source.laneID, first: 0, last: last, laneName: lane.name,
                        seals: seals, gap: gap))
                segments += lane.segments.count + 1
            }
            if !covers.isEmpty {
                let before = summary.damage.count
                let info = try write(merge, covers, directory, form, lostPlaces) {
                    lost = UInt32(clamping: before + $0.damageCount)
                    return lostPlaces > 0 || lost == 0
                }
                summary.archives = 1
                summary.segments = segments
                summary.records = info.recordCount
                summary.bytesIn = info.rawBytes
                summary.bytesOut = info.fileBytes
                summary.damage += info.damage
            }
        } catch ArchiveError.unwanted {
            return try archiveTogether(
                lanes, parts: parts, directory: directory, form: form, lostPlaces: lost)
        } catch let problem as ReadProblem {
            throw CordwoodError(problem)
        } catch let error as ArchiveError {
            throw CordwoodError(error, lane: lanes[0].0.name)
        } catch {
            throw CordwoodError(Status.internal, "\(error)")
        }
        // CRASH: the archive has its name; adopters read in it which lanes it covers.
        for (lane, _) in lanes {
            removeParts(directory, parts[lane.name] ?? [])
            removeFiles(directory, lane)
        }
        _ = Directories.sync(directory + "/lanes")
        for (lane, _) in lanes { Files.remove(directory + "/lanes/\(lane.name).lane") }
        _ = Directories.sync(directory + "/lanes")
        return summary
    }

    /// Removes lane files whose makers died before they named them: they hold no records. A living
    /// maker locks its file immediately after making it.
    private static func removeUnpublished(_ directory: FilePath, _ names: [String]) {
        for name in names {
            let path = directory + "/lanes/\(name)"
            let descriptor = Files.open(path, [.read, .nonBlocking])
            guard descriptor >= 0 else { continue }
            defer { Files.close(descriptor) }
            guard let file = FileFacts(of: descriptor),
                file.secondsSinceModified > unpublishedSecondsMax, Files.lock(descriptor)
            else { continue }
            Files.remove(path)
        }
    }

    private static let unpublishedSecondsMax = 600

    /// The caller holds the lane's lock, so nothing writes to the lane any more.
    private static func archiveLane(
        directory: FilePath, lane: LaneListing.Lane, files: LaneFiles,
        archives: ListedArchives, parts: [String], form: ArchiveForm, shouldStop: () -> Bool
    ) throws(CordwoodError) -> ArchivingSummary {
        var summary = ArchivingSummary()
        if files.isBlank {
            summary.lanes = 1
            summary.damage.append("lanes/\(lane.name): nothing of it reached the disk")
            remove(directory, lane)
            return summary
        }
        let left: [UInt64]
        let proven: Set<UInt64>
        do throws(ReadProblem) {
            proven = try archives.proven(files, directory)
            left = try numbers(of: lane, files).subtracting(proven).sorted()
        } catch {
            throw CordwoodError(error)
        }
        removeParts(directory, parts)
        removeSegments(files.segments.filter { proven.contains($0.number) })
        let covered = archives.covered[lane.name]?.map(\.range) ?? []
        for run in pieces(of: runs(of: left, besides: covered), left, files) {
            if shouldStop() { return summary }
            let part = try archive(
                directory: directory, files: run.files, segments: run.range, form: form,
                endsLane: run.range.upperBound == left.last)
            // CRASH: covered segments are not archived again; the next adopter continues from here.
            summary.add(part)
            removeSegments(run.files.segments)
        }
        // CRASH: the archives exist; the next adopter removes the rest, the lane file last.
        remove(directory, lane)
        summary.lanes = 1
        return summary
    }

    private static func removeSegments(_ segments: [LaneFiles.Segment]) {
        for segment in segments { SegmentLink.remove(segment.path) }
    }

    /// At least so many segments go into one archive, and as many small ones as make so many bytes.
    package static let segmentsAtLeast = 8
    package static let bytesAtOnce: UInt64 = 32 << 20

    /// Cuts runs of those numbers into what goes into one archive each, with its files.
    private static func pieces(
        of runs: [ClosedRange<UInt64>], _ numbers: [UInt64], _ files: LaneFiles
    ) -> [(range: ClosedRange<UInt64>, files: LaneFiles)] {
        var ranges: [ClosedRange<UInt64>] = []
        var (numbers, segments) = (numbers[...], files.segments[...])
        for run in runs {
            var (count, bytes): (Int, UInt64) = (0, 0)
            while let number = numbers.first, number <= run.upperBound {
                numbers.removeFirst()
                segments = segments.drop { $0.number < number }
                let path = segments.first.flatMap { $0.number == number ? $0.path : nil }
                let size = min(
                    path.flatMap { FileFacts(following: $0)?.bytes } ?? 0, bytesAtOnce)
                if count == 0 || count >= segmentsAtLeast && bytes &+ size > bytesAtOnce {
                    ranges.append(number...number)
                    (count, bytes) = (0, 0)
                }
                count += 1
                bytes &+= size
                ranges[ranges.count - 1] = ranges[ranges.count - 1].lowerBound...number
            }
        }
        segments = files.segments[...]
        return ranges.map { range in
            segments = segments.drop { $0.number < range.lowerBound }
            var part = files
            part.segments = Array(segments.prefix { $0.number <= range.upperBound })
            return (range, part)
        }
    }

    /// The segments of which something is left. Throws if the journal may know and cannot be
    /// opened.
    private static func numbers(
        of lane: LaneListing.Lane, _ files: LaneFiles
    ) throws(ReadProblem) -> Set<UInt64> {
        var numbers = Set(lane.segments.map(\.number))
        numbers.insert(0)
        // After a power cut, the journal may hold all that is left of a segment (FORMAT §10).
        if files.hasJournal {
            do throws(ReadProblem) {
                numbers.formUnion(try LaneSource(files: files).segmentNumbers)
            } catch {
                if error.isForLack { throw error }
            }
        }
        return numbers
    }

    /// Left by the owner or by an adopter that died: only the holder of the lane writes them.
    private static func removeParts(_ directory: FilePath, _ parts: [String]) {
        for name in parts { Files.remove(directory + "/archives/\(name)") }
    }

    private static func remove(_ directory: FilePath, _ lane: LaneListing.Lane) {
        removeFiles(directory, lane)
        _ = Directories.sync(directory + "/lanes")
        Files.remove(directory + "/lanes/\(lane.name).lane")
        _ = Directories.sync(directory + "/lanes")
    }

    /// The current files of a lane in the store.
    package static func files(_ directory: FilePath, _ lane: String) throws(CordwoodError)
        -> LaneFiles
    {
        do {
            let all = try LaneFiles.list(store: directory)
            return all.first { $0.lane == lane }
                ?? LaneFiles(lane: lane, directory: directory + "/lanes")
        } catch {
            throw CordwoodError(error)
        }
    }

    /// Runs of numbers that one archive may cover. Numbers that never became a segment are allowed
    /// as gaps, but a number that is already in an archive ends the run.
    static func runs(
        of numbers: [UInt64], besides covered: [ClosedRange<UInt64>]
    ) -> [ClosedRange<UInt64>] {
        var result: [ClosedRange<UInt64>] = []
        for number in numbers {
            if let last = result.last,
                number == last.upperBound + 1
                    || !covered.contains(where: {
                        $0.upperBound > last.upperBound && $0.lowerBound < number
                    })
            {
                result[result.count - 1] = last.lowerBound...number
            } else {
                result.append(number...number)
            }
        }
        return result
    }

    static func removeFiles(_ directory: FilePath, _ lane: LaneListing.Lane) {
        removeSegments(lane.segments)
        for name in lane.others { SegmentLink.remove(directory + "/lanes/\(name)") }
    }

    /// Makes one archive of a run of a lane's segments, or none if they hold no record; the
    /// segments stay.
    /// endsLane: nothing follows, so refused records that were not reported become a gap.
    /// boot: the boot that counts as running; nil: the actual one.
    /// lostPlaces: so many were found in a first try. An archive that lacks records has another id
    /// (FORMAT §11), which its first bytes say.
    package static func archive(
        directory: FilePath, files: LaneFiles, segments: ClosedRange<UInt64>, form: ArchiveForm,
        endsLane: Bool, boot: LaneID? = nil, lostPlaces: UInt32 = 0
    ) throws(CordwoodError) -> ArchivingSummary {
        var summary = ArchivingSummary()
        let lane = files.lane
        var lost = lostPlaces
        do {
            let source = try LaneSource(files: files, segments: segments, runningBoot: boot)
            source.reportsDrops = endsLane
            source.rendersText = false
            let (seals, gap) = try source.content()
            let primed = PrimedSource(source)
            try primed.prime()
            guard primed.hasRecord else {
                summary.damage = primed.damage
                return summary
            }
            let cover = ArchiveCover(
                laneID: source.laneID, first: segments.lowerBound, last: segments.upperBound,
                laneName: lane, seals: seals, gap: gap)
            let info = try write(primed, [cover], directory, form, lostPlaces) {
                lost = UInt32(clamping: primed.damage.count + $0.damageCount)
                return lostPlaces > 0 || lost == 0
            }
            summary.archives = 1
            // Counted, not computed: the numbers come from file names and may be far apart.
            summary.segments =
                files.segments.count { segments.contains($0.number) }
                + (files.hasLaneFile && segments.contains(0) ? 1 : 0)
            summary.records = info.recordCount
            summary.bytesIn = info.rawBytes
            summary.bytesOut = info.fileBytes
            summary.damage = info.damage + primed.damage
        } catch ArchiveError.unwanted {
            return try archive(
                directory: directory, files: files, segments: segments, form: form,
                endsLane: endsLane, boot: boot, lostPlaces: lost)
        } catch let problem as ReadProblem {
            throw CordwoodError(problem)
        } catch let error as ArchiveError {
            throw CordwoodError(error, lane: lane)
        } catch {
            throw CordwoodError(Status.internal, "\(error)")
        }
        return summary
    }
}

/// The form in which archives are written.
package struct ArchiveForm: Sendable {
    package var codec: Codec
    /// 0 selects the codec's default.
    package var level: Int32
    /// The keys that the archives are encrypted to; none: they are plain.
    package var recipients: [AgeRecipient]
    /// Called with the number of records read since the last call.
    var progress: (@Sendable (_ records: UInt64) -> Void)?
    package var method = ArchiveMethod.dense
    /// Times are rounded down to a multiple of it.
    package var timeStepNs: UInt64 = 1
    package init(codec: Codec, level: Int32, recipients: [AgeRecipient]) {
        self.codec = codec
        self.level = level
        self.recipients = recipients
    }
}

extension StoreArchiver {
    private static func write(
        _ source: any RecordSource, _ covers: [ArchiveCover], _ directory: FilePath,
        _ form: ArchiveForm, _ lostPlaces: UInt32, _ accepts: (ArchiveInfo) -> Bool
    ) throws(ArchiveError) -> ArchiveInfo {
        let told = form.progress.map { CountedSource(source, tell: $0) }
        return try ArchiveWriter.write(
            source: told ?? source, covers: covers, archivesDirectory: directory + "/archives",
            codec: form.codec, level: form.level == 0 ? form.codec.defaultLevel : form.level,
            now: cw_realtime_ns(),
            recipients: form.recipients, effort: form.method.effort, timeStepNs: form.timeStepNs,
            lostPlaces: lostPlaces, accepts: accepts)
    }
}

/// The contents of lanes/, by lane.
struct ListedLanes {
    let listing: LaneListing
    let files: [String: LaneFiles]

    init(directory: FilePath) throws(CordwoodError) {
        listing = LaneListing(directory: directory)
        guard listing.isWhole, let all = try? LaneFiles.list(store: directory) else {
            throw Directories.failure("list", directory + "/lanes")
        }
        files = Dictionary(all.map { ($0.lane, $0) }, uniquingKeysWith: { first, _ in first })
    }
}

/// Some lanes of dead processes, locked, with their files. Before it died, a process may have made,
/// sealed or renamed segments that an earlier listing lacks. What archives cover is always listed
/// under the locks, because an adopter may have been killed in the middle of its work.
private struct DeadLanes {
    private var locks: [AdoptionLock] = []
    private(set) var lanesLive = 0
    /// Machine names of the lanes that may be adopted only if the user says so.
    private(set) var hosts: [String] = []
    private(set) var damage: [String] = []
    private(set) var lanes: [(LaneListing.Lane, LaneFiles)] = []
    private(set) var archives = ListedArchives()
    private(set) var parts: [String: [String]] = [:]

    /// listed: made when the lanes of `over` no longer had a process.
    init(
        directory: FilePath, names: [String], witness: AdoptionWitness, listed: ListedLanes,
        over: Set<String>, archives: inout ListedArchives
    ) throws(CordwoodError) {
        var held: [String] = []
        for name in names {
            if let lock = AdoptionLock(directory: directory, lane: name, witness: witness) {
                locks.append(lock)
                held.append(name)
            } else if !witness.adoptsForeign,
                let host = OtherMachine.name(directory: directory, lane: name)
            {
                hosts.append(host)
            } else {
                lanesLive += 1
            }
        }
        guard !held.isEmpty else { return }
        do throws(CordwoodError) {
            let known =
                held.allSatisfy(over.contains) ? listed : try ListedLanes(directory: directory)
            try archives.list(directory)
            take(held, known, archives)
        } catch {
            release()
            throw error
        }
    }

    private mutating func take(
        _ held: [String], _ known: ListedLanes, _ archives: ListedArchives
    ) {
        parts = archives.parts
        self.archives = archives
        var told: Set<String> = []
        for name in held {
            guard let lane = known.listing.lanes[name], lane.hasLaneFile,
                let mine = known.files[name]
            else { continue }
            guard let archive = archives.doubt(lane) else {
                lanes.append((lane, mine))
                continue
            }
            if told.insert(archive.name).inserted {
                damage.append("\(archive.why); the lanes that it may cover are left alone")
            }
        }
    }

    func release() {
        for lock in locks { lock.release() }
    }
}

extension CordwoodError {
    public init(_ problem: ReadProblem) {
        switch problem {
        case .damaged(let text): self.init(Status.damaged, text)
        case .version(let text): self.init(Status.version, text)
        case .system(let text, let number): self.init(Status.of(errno: number), text)
        case .locked(let text): self.init(Status.encrypted, text)
        }
    }
}

extension CordwoodError {
    init(_ error: ArchiveError, lane: String) {
        switch error {
        case .system(let operation, let path, let number):
            self.init(
                Status.of(errno: number),
                "could not \(operation) \(path): \(systemText(number))")
        case .source(let problem): self.init(problem)
        case .memory: self.init(Status.memory, "no memory to archive lane \(lane)")
        case .argument(let text): self.init(Status.argument, text)
        case .limit(let text): self.init(Status.limit, text)
        case .unwanted: self.init(Status.internal, "an archive was not wanted")
        }
    }
}
