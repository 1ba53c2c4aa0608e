// Turning segments into archives: an engine's own sealed ones, and whole lanes whose process died.
// The order is FORMAT §11's: archive durable under its name, then the segments go. Every step may
// be repeated, so a kill between any two costs nothing.
// SAFETY: the lane's header is read into 4,096 bytes on the stack, and every offset looked at lies
// in its first page.

import CShims
import CordwoodCore
import CordwoodShip
import Glibc

/// What archiving did.
public struct ArchivingSummary: Sendable {
    public var lanes = 0
    public var segments = 0
    public var archives = 0
    public var records: UInt64 = 0
    public var bytesIn: UInt64 = 0
    public var bytesOut: UInt64 = 0
    /// Lanes passed over because their process lives.
    public var lanesLive = 0
    /// Damaged places met, cut at 10,000; the rest was archived.
    public var damage: [String] = []

    private static let damageMax = 10_000

    public init() {}

    mutating func add(_ other: ArchivingSummary) {
        lanes += other.lanes
        segments += other.segments
        archives += other.archives
        records += other.records
        bytesIn += other.bytesIn
        bytesOut += other.bytesOut
        lanesLive += other.lanesLive
        // An engine adds what it meets every minute, for as long as it runs.
        damage += other.damage.prefix(max(0, ArchivingSummary.damageMax - damage.count))
    }
}

public enum StoreArchiver {
    /// Archives and removes every lane that has no living owner. Segments of living lanes are left
    /// alone. Throws where the directory is no store; what one lane's failure leaves is told in
    /// `damage`.
    public static func archiveDead(
        directory: String, codec: Codec = .zstd, level: Int32 = 0
    ) throws(CordwoodError) -> ArchivingSummary {
        var status = stat()
        guard unsafe stat(directory, &status) == 0 else {
            throw Directories.failure("open", directory)
        }
        guard status.st_mode & S_IFMT == S_IFDIR else {
            throw CordwoodError(Status.notDirectory, "\(directory) is not a directory")
        }
        for name in ["lanes", "archives"] {
            let path = "\(directory)/\(name)"
            guard unsafe lstat(path, &status) != 0 || status.st_mode & S_IFMT == S_IFDIR else {
                throw CordwoodError(Status.notDirectory, "\(path) is not a directory")
            }
        }
        var summary = ArchivingSummary()
        let listing = LaneListing(directory: directory)
        removeUnpublished(directory, listing.unpublished)
        let lanes = listing.lanes.values.sorted { $0.name < $1.name }
        for lane in lanes where !lane.hasLaneFile {
            if !removeOrphan(directory, lane) {
                summary.damage.append("lanes/\(lane.name): its lane file is missing; left alone")
            }
        }
        let dead = lanes.filter(\.hasLaneFile).map(\.name)
        for start in stride(from: 0, to: dead.count, by: lanesAtOnce) {
            let names = dead[start..<min(start + lanesAtOnce, dead.count)]
            let batch = DeadLanes(directory: directory, names: Array(names))
            defer { batch.release() }
            summary.lanesLive += batch.lanesLive
            for (lane, files) in batch.lanes {
                do {
                    let covered = batch.covered[lane.name] ?? []
                    summary.add(
                        try archiveLane(
                            directory: directory, lane: lane, files: files, covered: covered,
                            parts: batch.parts[lane.name] ?? [], codec: codec, level: level))
                } catch {
                    guard error.status != Status.full else { throw error }
                    summary.damage.append(error.text)
                }
            }
        }
        return summary
    }

    /// Lanes whose locks are held together, so that the directory is listed once for all of them.
    private static let lanesAtOnce = 64

    /// The lane file goes last, so what is left without one is covered by archives already. False:
    /// it is not.
    private static func removeOrphan(_ directory: String, _ lane: LaneListing.Lane) -> Bool {
        let covered = LaneListing.covered(directory: directory)[lane.name] ?? []
        guard lane.segments.allSatisfy({ s in covered.contains { $0.contains(s.number) } }) else {
            return false
        }
        removeFiles(directory, lane)
        return true
    }

    /// Lane files whose makers died before they gave them their names: nobody has written there. A
    /// maker that lives takes its lock at once after the file is made.
    private static func removeUnpublished(_ directory: String, _ names: [String]) {
        for name in names {
            let path = "\(directory)/lanes/\(name)"
            let descriptor = unsafe cw_open_file(path, O_RDONLY, 0)
            guard descriptor >= 0 else { continue }
            defer { Glibc.close(descriptor) }
            var status = stat()
            guard unsafe fstat(descriptor, &status) == 0,
                time(nil) - status.st_mtim.tv_sec > unpublishedSecondsMax,
                flock(descriptor, LOCK_EX | LOCK_NB) == 0
            else { continue }
            unsafe unlink(path)
        }
    }

    private static let unpublishedSecondsMax = 600

    /// The caller holds the lane's lock: nobody writes to it any more.
    private static func archiveLane(
        directory: String, lane: LaneListing.Lane, files: LaneFiles,
        covered: [ClosedRange<UInt64>], parts: [String], codec: Codec, level: Int32
    ) throws(CordwoodError) -> ArchivingSummary {
        var summary = ArchivingSummary()
        summary.lanes = 1
        if LaneSource.isBlank(files) {
            summary.damage.append("lanes/\(lane.name): nothing of it reached the disk")
            remove(directory, lane)
            return summary
        }
        var numbers = Set(lane.segments.map(\.number))
        numbers.insert(0)
        // After loss of power the journal may be all that is left of a segment (FORMAT §10).
        if files.hasJournal, let source = try? LaneSource(files: files) {
            numbers.formUnion(source.segmentNumbers)
        }
        let left = numbers.filter { n in !covered.contains { $0.contains(n) } }.sorted()
        for range in runs(of: left, besides: covered) {
            let part = try archive(
                directory: directory, files: files, segments: range, codec: codec, level: level,
                endsLane: range.upperBound == left.last)
            // CRASH: what is covered now is not archived again; the next adopter goes on from here.
            summary.add(part)
        }
        // Of the owner, or of an adopter that died: only who holds the lane writes one.
        for name in parts { unsafe unlink("\(directory)/archives/\(name)") }
        // CRASH: the archives stand; whoever comes next removes what is left, the lane file last.
        remove(directory, lane)
        return summary
    }

    private static func remove(_ directory: String, _ lane: LaneListing.Lane) {
        removeFiles(directory, lane)
        unsafe unlink("\(directory)/lanes/\(lane.name).lane")
        _ = Directories.sync(directory + "/lanes")
    }

    /// What a lane has in the store now.
    static func files(_ directory: String, _ lane: String) throws(CordwoodError) -> LaneFiles {
        do {
            let all = try LaneFiles.list(store: directory)
            return all.first { $0.lane == lane }
                ?? LaneFiles(lane: lane, directory: directory + "/lanes")
        } catch {
            throw CordwoodError(error)
        }
    }

    /// Runs of numbers that one archive may cover: gaps are numbers that never became a segment,
    /// but a number in an archive already ends the run.
    static func runs(
        of numbers: [UInt64], besides covered: [ClosedRange<UInt64>]
    ) -> [ClosedRange<UInt64>] {
        var result: [ClosedRange<UInt64>] = []
        for number in numbers {
            if let last = result.last,
                !covered.contains(where: {
                    $0.lowerBound > last.upperBound && $0.upperBound < number
                })
            {
                result[result.count - 1] = last.lowerBound...number
            } else {
                result.append(number...number)
            }
        }
        return result
    }

    private static func removeFiles(_ directory: String, _ lane: LaneListing.Lane) {
        for segment in lane.segments {
            SegmentLink.remove("\(directory)/lanes/\(segment.fileName)")
        }
        for name in lane.others { SegmentLink.remove("\(directory)/lanes/\(name)") }
        _ = Directories.sync(directory + "/lanes")
    }

    /// Makes one archive of a run of a lane's segments, none where they hold no record; they stay.
    /// endsLane: nothing comes after, so what was refused and not reported is told as a gap.
    static func archive(
        directory: String, files: LaneFiles, segments: ClosedRange<UInt64>, codec: Codec,
        level: Int32, endsLane: Bool
    ) throws(CordwoodError) -> ArchivingSummary {
        var summary = ArchivingSummary()
        let lane = files.lane
        do {
            let source = try LaneSource(files: files, segments: segments)
            source.reportsDrops = endsLane
            source.rendersText = false
            let primed = PrimedSource(source)
            try primed.prime()
            guard primed.hasRecord else {
                summary.damage = primed.damage
                return summary
            }
            let cover = ArchiveCover(
                laneID: source.laneID, first: segments.lowerBound, last: segments.upperBound,
                laneName: lane)
            let info = try ArchiveWriter.write(
                source: primed, covers: [cover], archivesDirectory: directory + "/archives",
                codec: codec, level: level == 0 ? codec.defaultLevel : level,
                now: cw_realtime_ns())
            summary.archives = 1
            // Counted, not computed: the numbers come from file names, and may lie far apart.
            summary.segments =
                files.segments.count { segments.contains($0.number) }
                + (files.hasLaneFile && segments.contains(0) ? 1 : 0)
            summary.records = info.recordCount
            summary.bytesIn = info.rawBytes
            summary.bytesOut = info.fileBytes
            summary.damage = info.damage + primed.damage
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

/// Some lanes of dead processes, locked, and what is theirs: listed under the locks, for until it
/// died a process may have made, sealed or renamed segments that an earlier listing does not know.
private struct DeadLanes {
    private var locks: [LaneLock] = []
    private(set) var lanesLive = 0
    private(set) var lanes: [(LaneListing.Lane, LaneFiles)] = []
    private(set) var covered: [String: [ClosedRange<UInt64>]] = [:]
    private(set) var parts: [String: [String]] = [:]

    init(directory: String, names: [String]) {
        var held: [String] = []
        for name in names {
            if let lock = LaneLock(directory: directory, lane: name) {
                locks.append(lock)
                held.append(name)
            } else {
                lanesLive += 1
            }
        }
        guard !held.isEmpty else { return }
        let listing = LaneListing(directory: directory)
        covered = LaneListing.covered(directory: directory)
        parts = LaneListing.parts(directory: directory)
        let all = (try? LaneFiles.list(store: directory)) ?? []
        let files = Dictionary(all.map { ($0.lane, $0) }, uniquingKeysWith: { first, _ in first })
        for name in held {
            guard let lane = listing.lanes[name], lane.hasLaneFile, let mine = files[name] else {
                continue
            }
            lanes.append((lane, mine))
        }
    }

    func release() {
        for lock in locks { lock.release() }
    }
}

/// A lane whose first record is known before it is read, and whose end is its end.
private final class PrimedSource: RecordSource {
    private let source: LaneSource
    private var first: RecordRef?
    private(set) var damage: [String] = []

    init(_ source: LaneSource) { self.source = source }

    var hasRecord: Bool { first != nil }
    var createdMonotonicNs: UInt64 { source.createdMonotonicNs }
    var process: ProcessInfo? { source.process }

    func prime() throws(ReadProblem) {
        while first == nil {
            do {
                var record = RecordRef()
                guard try fromSource(&record) else { return }
                first = record
            } catch .damaged(let text) {
                damage.append(text)
            } catch {
                throw error
            }
        }
    }

    func advance() throws(ReadProblem) -> RecordRef? {
        var record = RecordRef()
        return try next(&record) ? record : nil
    }

    func next(_ record: inout RecordRef) throws(ReadProblem) -> Bool {
        guard let primed = first else { return try fromSource(&record) }
        first = nil
        record = primed
        return true
    }

    /// A segment that is not there now is no segment without records: nothing may be removed for
    /// an archive without it. After a restart of the machine it never comes back.
    private func fromSource(_ record: inout RecordRef) throws(ReadProblem) -> Bool {
        if try source.next(&record) { return true }
        if let number = source.lostSegments.first, !source.isOtherBoot {
            throw .system("open segment \(number) of lanes/\(source.lane)", errno: ENOENT)
        }
        return false
    }
}

/// The lock of a lane whose process is gone. nil: it lives, or another adopter was faster.
struct LaneLock {
    private let descriptor: Int32

    init?(directory: String, lane: String) {
        let path = "\(directory)/lanes/\(lane).lane"
        let descriptor = unsafe cw_open_file(path, O_RDWR, 0)
        guard descriptor >= 0 else { return nil }
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0,
            LaneLock.isSameFile(descriptor, path), LaneLock.isOwnerGone(descriptor)
        else {
            Glibc.close(descriptor)
            return nil
        }
        self.descriptor = descriptor
    }

    func release() { Glibc.close(descriptor) }

    /// The name still means the inode that we locked (R32).
    private static func isSameFile(_ descriptor: Int32, _ path: String) -> Bool {
        var held = stat()
        var named = stat()
        return unsafe fstat(descriptor, &held) == 0 && lstat(path, &named) == 0
            && held.st_ino == named.st_ino && held.st_dev == named.st_dev
    }

    /// A host that closed all its descriptors has lost its lock and lives: it is left alone.
    private static func isOwnerGone(_ descriptor: Int32) -> Bool {
        unsafe withUnsafeTemporaryAllocation(byteCount: 4096, alignment: 8) { header in
            guard unsafe pread(descriptor, header.baseAddress, 4096, 0) == 4096,
                unsafe header.load(as: UInt64.self) == LaneHeader.magicValue
            else { return true }
            func word(_ offset: Int) -> UInt64 {
                unsafe header.load(fromByteOffset: offset, as: UInt64.self)
            }
            if unsafe header.load(fromByteOffset: LaneHeader.closed, as: UInt32.self) != 0 {
                return true
            }
            // Its lock may be known to that machine only.
            if isOnNetwork(descriptor), unsafe isOtherMachine(header) { return false }
            let boot = Machine.bootID()
            let sameBoot =
                word(LaneHeader.bootID) == boot.high
                && word(LaneHeader.bootID + 8) == boot.low
            var namespace = stat()
            guard sameBoot, unsafe stat("/proc/self/ns/pid", &namespace) == 0,
                UInt64(namespace.st_ino) == word(LaneHeader.processNamespace)
            else { return true }
            let processID = unsafe header.load(
                fromByteOffset: LaneHeader.processID, as: UInt32.self)
            let start = Machine.processStart(processID)
            return start == 0 || start != word(LaneHeader.processStart)
        }
    }

    /// File systems that several machines may have mounted (R33).
    private static func isOnNetwork(_ descriptor: Int32) -> Bool {
        var system = statfs()
        guard unsafe fstatfs(descriptor, &system) == 0 else { return false }
        let types: [UInt32] = [
            0x6969 /* NFS */, 0x517B /* SMB */, 0xFF53_4D42 /* CIFS */, 0xFE53_4D42 /* SMB 2 */,
            0x6573_5546 /* FUSE */, 0x0102_1997 /* 9P */, 0x00C3_6400 /* Ceph */,
            0x5346_414F /* AFS */, 0x786F_4256 /* VirtualBox */,
        ]
        return types.contains(UInt32(truncatingIfNeeded: system.f_type))
    }

    /// Both machines' ids are known, and they differ.
    private static func isOtherMachine(_ header: UnsafeMutableRawBufferPointer) -> Bool {
        let file = unsafe cw_open_file("/etc/machine-id", O_RDONLY, 0)
        guard file >= 0 else { return false }
        defer { Glibc.close(file) }
        let ours = unsafe withUnsafeTemporaryAllocation(byteCount: 32, alignment: 1) { text in
            unsafe read(file, text.baseAddress, 32) == 32 ? Array(text) : []
        }
        guard ours.count == 32 else { return false }
        let digits = Array("0123456789abcdef".utf8)
        let theirs = unsafe header[LaneHeader.machineID..<LaneHeader.machineID + 16].flatMap {
            [digits[Int($0 >> 4)], digits[Int($0 & 15)]]
        }
        return theirs != ours && theirs.contains { $0 != digits[0] }
    }
}

extension CordwoodError {
    public init(_ problem: ReadProblem) {
        switch problem {
        case .damaged(let text): self.init(Status.damaged, text)
        case .version(let text): self.init(Status.version, text)
        case .system(let text, let number): self.init(Status.of(errno: number), text)
        }
    }
}

extension CordwoodError {
    init(_ error: ArchiveError, lane: String) {
        switch error {
        case .system(let operation, let path, let number):
            self.init(
                Status.of(errno: number),
                unsafe "could not \(operation) \(path): \(String(cString: strerror(number)))")
        case .source(let problem): self.init(problem)
        case .memory: self.init(Status.memory, "no memory to archive lane \(lane)")
        case .argument(let text): self.init(Status.argument, text)
        case .limit(let text): self.init(Status.limit, text)
        }
    }
}
