// Turns many archives into few, and small blocks into larger ones (FORMAT §11, compacting): an
// archive that stays alone gets blocks of 4 MiB, and small ones that belong together become one.
// First the new archive becomes durable under its name, then the old ones are removed. They are
// locked meanwhile, so nobody sends or deletes them. Every step may be repeated: a kill between any
// two loses nothing.

import CShims
import CordwoodCore

/// The results of compacting.
public struct CompactingSummary: Sendable {
    /// Archives that were replaced, and those that replace them.
    public var archivesIn = 0
    public var archivesOut = 0
    public var records: UInt64 = 0
    public var bytesIn: UInt64 = 0
    public var bytesOut: UInt64 = 0
    /// Archives that another one contained, left behind by a program that died.
    public var archivesLeft = 0
    /// Encrypted archives that no identity opens, or with a recipient that is not an identity.
    public var archivesLocked = 0
    /// Why archives were left as they are.
    public var damage: [String] = []

    public init() {}
}

public enum StoreCompactor {
    /// What a block holds.
    static let blockBytes = 4 << 20
    /// Limits on what merged archives hold, together and each.
    static let mergedBytesMax: UInt64 = 256 << 20
    static let memberBytesMax: UInt64 = 64 << 20
    static let mergedArchivesMax = 1_024
    /// Limit on the public part of an encrypted archive's header: half of what it may hold.
    static let sealedBytesMax = AgeHeader.bytesMax / 8 * 3
    /// Merged archives expire within this time.
    static let mergedSpanNs: UInt64 = 86_400_000_000_000

    /// Compacts archives whose records are all older than `ageSeconds`. Leaves alone damaged
    /// archives, and those that are being sent or whose segments still exist. An encrypted archive
    /// is encrypted to the same recipients again. Its header does not name them, so each of them
    /// must be one of the identities.
    /// - Parameters:
    ///   - level: of zstd; 0: 3.
    ///   - identities: the keys of encrypted archives.
    ///   - progress: called now and then with the number of records since the last call.
    package static func compact(
        directory: FilePath, ageSeconds: UInt64, level: Int32 = 0,
        identities: [AgeIdentity] = [],
        progress: (@Sendable (_ records: UInt64) -> Void)? = nil
    ) throws(CordwoodError) -> CompactingSummary {
        guard let found = FileFacts(following: directory) else {
            throw Directories.failure("open", directory)
        }
        guard found.isDirectory, FileFacts(at: directory + "/archives")?.isDirectory != false else {
            throw CordwoodError(Status.notDirectory, "\(directory) is not a store")
        }
        var summary = CompactingSummary()
        guard FileFacts(at: directory + "/archives") != nil else { return summary }
        try StoreOwner.check(storeDirectory: directory)
        // What was archived before a denial must go, so no archive may become younger.
        do throws(UploadError) {
            let file = try StoreFile.read(storeDirectory: directory)
            if file?.consent == .denied { return summary }
        } catch {
            throw CordwoodError(error.status.rawValue, error.text)
        }
        summary.archivesLeft = try CompactionLeftovers.remove(
            directory: directory, identities: identities, checkedMax: .max)
        do throws(UploadError) {
            try Outbox(paths: StorePaths(directory)).removeOrphans(ofArchives: true)
        } catch {
            throw CordwoodError(error.status.rawValue, error.text)
        }
        CompactionLeftovers.removeParts(directory: directory)
        var work = Compacting(
            directory: directory, level: level, identities: identities, progress: progress)
        let now = cw_realtime_ns()
        let age = ageSeconds.multipliedReportingOverflow(by: 1_000_000_000)
        let until = age.overflow || age.partialValue > now ? 0 : now - age.partialValue
        let groups = try work.groups(until: until, &summary)
        for group in groups {
            try work.compact(group, &summary)
        }
        return summary
    }
}

extension StoreCompactor {
    /// Merges the named archives, which no target has begun, into archives of at most 4 MiB, so
    /// that uploads send few. What cannot be merged is left alone.
    /// - Parameter shouldStop: asked between the archives that are made.
    /// - Returns: the number of archives made.
    package static func merge(
        _ names: [String], directory: FilePath, identities: [AgeIdentity],
        shouldStop: () -> Bool
    ) throws(CordwoodError) -> Int {
        var summary = CompactingSummary()
        var work = Compacting(
            directory: directory, level: 0, identities: identities, progress: nil)
        work.mergedBytesMax = sentBytesMax
        work.memberBytesMax = sentBytesMax / 4
        work.archivesMax = sentArchivesMax
        work.listed = Set(names)
        let states: OutboxSnapshot
        do throws(UploadError) { states = try work.outbox.snapshot() } catch {
            throw CordwoodError(error.status.rawValue, error.text)
        }
        let groups = work.groups(names, [], states, until: .max, &summary)
        for group in groups where group.count > 1 {
            if shouldStop() { break }
            try work.compact(group, &summary)
        }
        return summary.archivesOut
    }

    /// The payload of an archive that uploads merge, and how many it replaces. Two files are open
    /// for each of them.
    static let sentBytesMax: UInt64 = 4 << 20
    static let sentArchivesMax = 128
}

/// An archive that may be compacted.
private struct Candidate {
    var name: String
    var stem: String
    var info: ArchiveInfo
    /// Its processes according to their resources; only archives with equal ones are merged.
    var origin: String
    /// What targets have done with it; only archives with the same states are merged.
    var states: [TargetKey: PairState]
    /// The recipients that it is encrypted to; empty: it is plain.
    var recipients: [AgeRecipient]
    var hasSmallBlocks: Bool
    var mayMerge: Bool

    /// Equal in all archives that may become one.
    var kin: String {
        states.map { "\($0.key.text)@\($0.value.suffix ?? "")" }.sorted().joined(separator: "\n")
            + "\n\n" + recipients.map(\.text).sorted().joined(separator: "\n") + "\n\n" + origin
    }

    /// The most that it adds to the public part of an encrypted archive's header.
    var sealedBytes: Int {
        recipients.isEmpty
            ? 0
            : info.covers.reduce(
                ReplacedArchive.bytes * (1 + info.replaced.count)
            ) {
                $0 + 64 + $1.laneName.utf8.count + SegmentSeal.bytes * $1.seals.count
            }
    }
}

/// The segments of a group. Archives of two copies of a lane stay apart: they may have the same
/// records, or report the same refused ones.
private struct TakenSegments {
    private var covers: [LaneID: [ArchiveCover]] = [:]

    mutating func add(_ cover: ArchiveCover) {
        if cover.first <= cover.last { covers[cover.laneID, default: []].append(cover) }
    }

    func has(_ cover: ArchiveCover) -> Bool {
        cover.first <= cover.last
            && covers[cover.laneID]?.contains {
                let (before, after) = $0.first < cover.first ? ($0, cover) : (cover, $0)
                return before.gap > 0 || before.last >= after.first
            } ?? false
    }
}

/// Holds its lock until it is released.
private final class Held {
    let lock: ArchiveLock
    init(_ lock: consuming ArchiveLock) { self.lock = lock }
}

private struct Compacting {
    let directory: FilePath
    let level: Int32
    let identities: [AgeIdentity]
    let progress: (@Sendable (_ records: UInt64) -> Void)?
    var mergedBytesMax = StoreCompactor.mergedBytesMax
    var memberBytesMax = StoreCompactor.memberBytesMax
    var archivesMax = StoreCompactor.mergedArchivesMax
    /// Names of archives: what they replace was known when groups were made.
    var listed: Set<String> = []
    private let kept: KeptListing

    init(
        directory: FilePath, level: Int32, identities: [AgeIdentity],
        progress: (@Sendable (_ records: UInt64) -> Void)?
    ) {
        self.directory = directory
        self.level = level
        self.identities = identities
        self.progress = progress
        kept = KeptListing(StorePaths(directory))
    }

    private var paths: StorePaths { StorePaths(directory) }
    var outbox: Outbox { Outbox(paths: paths, kept: kept) }

    // MARK: Which

    /// Groups of archives that each become one, oldest first.
    mutating func groups(
        until: UInt64, _ summary: inout CompactingSummary
    ) throws(CordwoodError) -> [[Candidate]] {
        let names: [String]
        let states: OutboxSnapshot
        do throws(UploadError) {
            names = try StoreFiles.list(paths.archives).filter { $0.hasSuffix(".cwa") }.sorted()
            states = try outbox.snapshot()
        } catch {
            throw CordwoodError(error.status.rawValue, error.text)
        }
        listed = Set(names)
        let unsettled = CompactionLeftovers.unsettled(peek(names))
        return groups(names, unsettled, states, until: until, &summary)
    }

    private func peek(_ names: [String]) -> [ArchiveInfo] {
        names.compactMap { try? ArchiveInfo.peek(path: directory + "/archives/\($0)") }
    }

    /// - Parameter unsettled: the ids of archives that must stay apart.
    func groups(
        _ names: [String], _ unsettled: Set<LaneID>, _ states: OutboxSnapshot, until: UInt64,
        _ summary: inout CompactingSummary
    ) -> [[Candidate]] {
        let lanes = LaneListing(directory: directory)
        var loader = BlockLoader(isStrict: true)
        var alone: [[Candidate]] = []
        var merging: [String: [Candidate]] = [:]
        for name in names {
            guard let stem = StorePaths.stem(ofFile: name),
                !lanes.isCovered(archive: name, directory)
            else { continue }
            let candidate: Candidate?
            do throws(ReadProblem) {
                candidate = try look(name, stem, until, states.pairs[stem] ?? [:], &loader)
            } catch {
                if case .locked = error {
                    summary.archivesLocked += 1
                    continue
                }
                if case .system(_, Errno.ENOENT) = error { continue }
                summary.damage.append(CordwoodError(error).text)
                continue
            }
            guard let candidate, !unsettled.contains(candidate.info.id) else { continue }
            if candidate.mayMerge {
                merging[candidate.kin, default: []].append(candidate)
            } else {
                alone.append([candidate])
            }
        }
        for candidates in merging.values { alone += merged(candidates) }
        return alone.filter { $0.count > 1 || $0[0].hasSmallBlocks }
            .sorted { ($0[0].info.writtenNs, $0[0].name) < ($1[0].info.writtenNs, $1[0].name) }
    }

    private func look(
        _ name: String, _ stem: String, _ until: UInt64, _ states: [TargetKey: PairState],
        _ loader: inout BlockLoader
    ) throws(ReadProblem) -> Candidate? {
        let path = paths.archive(stem)
        let file = try ArchiveFile(path: path, identities: identities)
        let index = try ArchiveIndex.load(file, salvage: false, seals: true)
        let info = index.info
        guard info.writtenNs < until, info.recordCount > 0 else { return nil }
        if let problem = index.locked ?? index.problems.first { throw problem }
        guard let recipients = try file.recipients(identities) else { throw .locked("\(path)") }
        let blocks = UInt64(index.blocks.count)
        var candidate = Candidate(
            name: name, stem: stem, info: info, origin: "", states: states, recipients: recipients,
            hasSmallBlocks: blocks > 1
                && Self.heldBytes(info) / blocks < UInt64(StoreCompactor.blockBytes / 2),
            // If a target has begun an archive, it may have part of it: the archive keeps its id.
            mayMerge: states.values.allSatisfy(\.isDone)
                && Self.heldBytes(info) <= memberBytesMax)
        let lanes = Set(info.covers.map(\.laneID))
        var origins: Set<String> = []
        for entry in index.blocks where candidate.mayMerge {
            _ = try loader.load(entry, of: file, parts: .processes)
            let found = loader.view.dictionaries.processes
            for process in found { origins.insert(Compacting.text(process)) }
            // Merged, it would spoil the others for whoever verifies them.
            if !found.allSatisfy({ lanes.contains($0.laneID) }) { candidate.mayMerge = false }
        }
        if !candidate.mayMerge { return candidate }
        // Servers take one resource per body.
        candidate.mayMerge = origins.count == 1
        candidate.origin = origins.first ?? ""
        return candidate
    }

    /// What blocks are closed by, approximately.
    private static func heldBytes(_ info: ArchiveInfo) -> UInt64 {
        let rows = info.recordCount &* UInt64(BlockSize.row - ArchiveLimits.recordCost)
        return info.rawBytes - min(rows, info.rawBytes)
    }

    private static func text(_ process: ProcessInfo) -> String {
        ([process.name]
            + process.resource.sorted { $0.key < $1.key }.flatMap { [$0.key, $0.value] })
            .map { "\($0.utf8.count):\($0)" }.joined()
    }

    /// Neighbours in time that expire within a day.
    private func merged(_ candidates: [Candidate]) -> [[Candidate]] {
        var groups: [[Candidate]] = []
        var bytes: UInt64 = 0
        var covers = 0
        var sealed = 0
        var taken = TakenSegments()
        let sorted = candidates.sorted {
            ($0.info.writtenNs, $0.name) < ($1.info.writtenNs, $1.name)
        }
        for candidate in sorted {
            if let first = groups.last?.first, let count = groups.last?.count,
                candidate.info.writtenNs - first.info.writtenNs < StoreCompactor.mergedSpanNs,
                bytes + Self.heldBytes(candidate.info) <= mergedBytesMax,
                covers + candidate.info.covers.count <= ArchiveLimits.coversMax / 2,
                sealed + candidate.sealedBytes <= StoreCompactor.sealedBytesMax,
                count < archivesMax,
                !candidate.info.covers.contains(where: { taken.has($0) })
            {
                groups[groups.count - 1].append(candidate)
            } else {
                groups.append([candidate])
                bytes = 0
                covers = 0
                sealed = 0
                taken = TakenSegments()
            }
            for cover in candidate.info.covers { taken.add(cover) }
            bytes += Self.heldBytes(candidate.info)
            covers += candidate.info.covers.count
            sealed += candidate.sealedBytes
        }
        return groups
    }

    // MARK: How

    /// Throws if the disk is full; `damage` reports other failures.
    func compact(
        _ group: [Candidate], _ summary: inout CompactingSummary
    ) throws(CordwoodError) {
        do throws(UploadError) {
            let isMerge = group.count > 1
            // Retention would count the new archive beside its members, and remove it for them;
            // and another process may merge the same.
            let lock = try StoreFiles.lockDirectory(paths.archives)
            defer { _ = lock.number }
            var held: [Held] = []
            var members: [Candidate] = []
            for candidate in group {
                guard
                    let lock = try ArchiveLock(paths: paths, stem: candidate.stem, target: nil)
                else { continue }
                if isMerge {
                    // A target may have begun it since it was listed.
                    let states = try outbox.states(candidate.stem)
                    guard states == candidate.states else { continue }
                }
                held.append(Held(lock))
                members.append(candidate)
            }
            defer { withExtendedLifetime(held) {} }
            guard members.count == group.count || members.count > 1 else { return }
            if isMerge, try areUnsettled(members) { return }
            try write(members, &summary)
        } catch {
            let text = error.text
            guard error.status != .full else { throw CordwoodError(Status.full, text) }
            summary.damage.append("archives/\(group[0].name): \(text); left as it is")
        }
    }

    private func write(
        _ members: [Candidate], _ summary: inout CompactingSummary
    ) throws(UploadError) {
        let covers = Compacting.covers(members)
        let replaced = Compacting.replaced(members)
        // One archive that is written again keeps its id, and with it its name.
        let lostPlaces = members.reduce(0) { $0 &+ $1.info.lostPlaces }
        let name = ArchiveIdentity.fileName(
            of: covers, ArchiveIdentity.id(covers, replaced: replaced, lostPlaces: lostPlaces))
        let bytes = members.reduce(0) { $0 + $1.info.fileBytes }
        let records = members.reduce(0) { $0 + $1.info.recordCount }
        let made: ArchiveInfo
        do throws(ArchiveError) {
            let exact = ExactSource(try source(members))
            let counted = progress.map { CountedSource(exact, tell: $0) }
            made = try ArchiveWriter.write(
                source: counted ?? exact, covers: covers, archivesDirectory: paths.archives,
                codec: .zstd, level: level == 0 ? Codec.zstd.defaultLevel : level,
                now: members.map(\.info.createdRealtime).max() ?? 0,
                recipients: members[0].recipients, effort: .dense,
                blockBytes: StoreCompactor.blockBytes, replaced: replaced, lostPlaces: lostPlaces,
                accepts: { info in
                    info.recordCount == records && (members.count > 1 || info.fileBytes < bytes)
                        && isAllowed
                },
                // A denial of consent removes what is older than it.
                modifiedNs: members.map { StoreFiles.modifiedNs(paths.archive($0.stem)) }.max())
        } catch .unwanted {
            return
        } catch {
            let problem = CordwoodError(error, lane: members[0].name)
            if problem.status == Status.full {
                throw .system(call: "write", path: "\(paths.archives)", errno: Errno.ENOSPC)
            }
            throw .damaged(problem.text)
        }
        // CRASH: the new archive has its name. Readers pass over the others, and the next program
        // that compacts or sends gives it their states and removes them.
        let stems = members.map(\.stem).filter { StorePaths.file(ofStem: $0) != name }
        guard let stem = StorePaths.stem(ofFile: name),
            try CompactionLeftovers.inherit(stem, from: stems, outbox)
        else { return }
        // CRASH: it has their states: no target gets their records again.
        for stem in stems { try StoreFiles.remove(paths.archive(stem)) }
        try StoreFiles.syncDirectory(paths.archives)
        for member in members where !member.states.isEmpty && stems.contains(member.stem) {
            try outbox.removeAll(of: member.stem)
        }
        summary.archivesIn += members.count
        summary.archivesOut += 1
        summary.records += records
        summary.bytesIn += bytes
        summary.bytesOut += made.fileBytes
    }

    /// Whether an archive that came since the listing keeps a member apart: its maker may have died
    /// before it removed the member. The caller has the locks of archives/ and the members.
    private func areUnsettled(_ members: [Candidate]) throws(UploadError) -> Bool {
        let fresh = try StoreFiles.list(paths.archives).filter { !listed.contains($0) }
        let unsettled = CompactionLeftovers.unsettled(peek(fresh) + members.map(\.info))
        return members.contains { unsettled.contains($0.info.id) }
    }

    /// After a denial, waiting archives are removed, so none may be merged into a younger one.
    private var isAllowed: Bool {
        do throws(UploadError) {
            return try StoreFile.read(storeDirectory: directory)?.consent != .denied
        } catch {
            return false
        }
    }

    /// Sorted; neighbours of a lane are joined.
    private static func covers(_ members: [Candidate]) -> [ArchiveCover] {
        if members.count == 1 { return members[0].info.covers }
        let sorted = members.flatMap(\.info.covers).sorted {
            ($0.laneName, $0.first) < ($1.laneName, $1.first)
        }
        var joined: [ArchiveCover] = []
        for cover in sorted {
            if let last = joined.last, last.laneID == cover.laneID,
                last.laneName == cover.laneName, last.last < .max, last.last + 1 == cover.first
            {
                joined[joined.count - 1].last = cover.last
                joined[joined.count - 1].seals += cover.seals
                joined[joined.count - 1].gap += cover.gap
            } else {
                joined.append(cover)
            }
        }
        return joined
    }

    private static func replaced(_ members: [Candidate]) -> [ReplacedArchive] {
        guard members.count > 1 else { return members[0].info.replaced }
        return members.flatMap { member in
            [ReplacedArchive(id: member.info.id, recordCount: member.info.recordCount)]
                + member.info.replaced
        }
    }

    /// The records in the order of FORMAT §4; those of a lane in the order of its segments.
    private func source(_ members: [Candidate]) throws(ArchiveError) -> any RecordSource {
        do throws(ReadProblem) {
            if members.count == 1 { return try open(members[0]) }
            let merge = MergeSource()
            var lanes: [String: [Candidate]] = [:]
            for member in members {
                var lane = member.name
                if member.info.covers.count == 1, let cover = member.info.covers.first {
                    lane = cover.laneName + ArchiveIdentity.text(cover.laneID)
                }
                lanes[lane, default: []].append(member)
            }
            for (order, lane) in lanes.keys.sorted().enumerated() {
                let parts = (lanes[lane] ?? []).sorted {
                    ($0.info.covers.first?.first ?? 0) < ($1.info.covers.first?.first ?? 0)
                }
                var sources: [any RecordSource] = []
                for part in parts { sources.append(try open(part)) }
                for source in sources {
                    if let process = source.process { merge.learn(process, lane: lane) }
                }
                let chain = ChainSource(sources.map { Compacting.part($0) })
                merge.add(
                    MergeInput(lowerBound: 0, order: UInt64(order)) {
                        () throws(ReadProblem) -> (any RecordSource)? in chain
                    })
            }
            return merge
        } catch {
            throw .source(error)
        }
    }

    private static func part(_ source: any RecordSource) -> ChainSource.Part {
        { () throws(ReadProblem) -> (any RecordSource)? in source }
    }

    private func open(_ member: Candidate) throws(ReadProblem) -> ArchiveSource {
        let source = try ArchiveSource.open(
            path: paths.archive(member.stem), identities: identities)
        source.rendersText = false
        return source
    }
}
