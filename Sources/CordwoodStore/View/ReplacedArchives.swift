// What a reader does if `cordwood compact` replaced an archive after the reader listed it but
// before it opened it (FORMAT §11): it reads the replacement instead, without the records that it
// has read from other archives. The first archive found missing supplies the records of all that
// are not opened yet; the others then have no more. One thread at a time.

import CordwoodCore

final class ReplacedArchives {
    private let store: FilePath
    private let identities: [AgeIdentity]
    /// All archives listed, in the order found.
    private var listed: [[ArchiveInfo]] = []
    /// Archives opened for reading, as long as they are read.
    private var opened: [LaneID: Opened] = [:]
    /// Archives counted from what is remembered of them, without reading.
    private var answered: Set<LaneID> = []
    /// Archives whose records come, or came, from a replacement.
    private var supplied: Set<LaneID> = []

    private struct Opened { weak var source: ArchiveSource? }

    init(store: FilePath, identities: [AgeIdentity]) {
        self.store = store
        self.identities = identities
    }

    func list(_ found: [ArchiveInfo]) { if !found.isEmpty { listed.append(found) } }
    func answer(_ info: ArchiveInfo) { answered.insert(info.id) }
    func open(_ info: ArchiveInfo, _ source: ArchiveSource) {
        opened[info.id] = Opened(source: source)
    }
    func isSupplied(_ info: ArchiveInfo) -> Bool { supplied.contains(info.id) }

    /// The source of everything in a replacement that this reader has not read; nil: nothing
    /// replaced the archive, or it is unclear which of the replacement's records are new.
    func replacement(
        of missing: ArchiveInfo, _ options: ReaderOptions
    ) -> (any RecordSource)? {
        guard let (source, info) = find(missing) else { return nil }
        let members = members(of: info)
        let ids = Set(members.map(\.id))
        guard answered.isDisjoint(with: ids), ReplacedArchives.isCovered(info, members),
            let shares = shares(members)
        else { return nil }
        for member in members where opened[member.id] == nil { supplied.insert(member.id) }
        if shares.isEmpty {
            ArchiveShelf.prepare(source, options)
            return source
        }
        // The shares count records, so the source may leave none out.
        var all = ReaderOptions()
        (all.ahead, all.room, all.rendersText) = (options.ahead, options.room, options.rendersText)
        ArchiveShelf.prepare(source, all)
        return ReplacementSource(source, shares)
    }

    private func find(_ missing: ArchiveInfo) -> (ArchiveSource, ArchiveInfo)? {
        let known = Set(listed.lazy.joined().map(\.path))
        for path in (try? StoreFolder.archives(store)) ?? [] where !known.contains(path) {
            guard let info = try? ArchiveInfo.peek(path: path, identities: identities),
                info.replaces(missing), info.isWhole,
                let source = try? ArchiveSource.open(path: path, identities: identities)
            else { continue }
            return (source, info)
        }
        return nil
    }

    /// Whether it replaces archives that were listed, and has no segments beyond theirs.
    func hasListed(_ info: ArchiveInfo) -> Bool {
        ReplacedArchives.isCovered(info, members(of: info))
    }

    private func members(of info: ArchiveInfo) -> [ArchiveInfo] {
        listed.joined().filter(Replacing(info).has)
    }

    /// Whether it has no segments beyond those of the members.
    private static func isCovered(_ info: ArchiveInfo, _ members: [ArchiveInfo]) -> Bool {
        info.covers.allSatisfy(LaneRanges(members.flatMap(\.covers)).has)
    }

    /// What was read, by lane; nil: that is unclear.
    private func shares(_ members: [ArchiveInfo]) -> [LaneID: ReadShare]? {
        var shares: [LaneID: ReadShare] = [:]
        for lane in Set(members.flatMap { $0.covers.map(\.laneID) }) {
            let all = members.filter { $0.covers.contains { $0.laneID == lane } }
                .sorted { start($0, lane) < start($1, lane) }
            let read = all.filter { opened[$0.id] != nil }
            guard let last = read.last else { continue }
            if read.count == all.count {
                shares[lane] = ReadShare(isWhole: true)
                continue
            }
            // A chain opens archives one after another, and holds the last one.
            guard read.count == all.prefix(read.count).count(where: { opened[$0.id] != nil }),
                read.dropLast().allSatisfy({ $0.covers.count == 1 }),
                let source = opened[last.id]?.source,
                let ranges = source.again().sequences(of: lane)
            else { return nil }
            shares[lane] = ReadShare(
                before: read.dropLast().reduce(0) { $0 + $1.recordCount }, ranges: ranges)
        }
        return shares
    }

    private func start(_ info: ArchiveInfo, _ lane: LaneID) -> UInt64 {
        info.covers.first { $0.laneID == lane }?.first ?? 0
    }
}

/// What was read of a lane's consecutive archives. A chain of archives interleaves only neighbours
/// (ChainSource): all records of archives before the last one opened come before those of the
/// archives after it.
struct ReadShare {
    var isWhole = false
    /// Records still to come of the archives before the last one opened.
    var before: UInt64 = 0
    /// For each thread in the last archive: its first and last sequence.
    var ranges: [UInt32: ClosedRange<UInt64>] = [:]

    mutating func hasRead(_ record: borrowing RecordRef) -> Bool {
        if isWhole { return true }
        if let range = ranges[record.thread.serial] {
            if record.sequence > range.upperBound { return false }
            if record.sequence < range.lowerBound, before > 0 { before -= 1 }
            return true
        }
        guard before > 0 else { return false }
        before -= 1
        return true
    }
}

/// A replacement without what was read from other archives.
private final class ReplacementSource: RecordSource {
    private let source: ArchiveSource
    private var shares: [LaneID: ReadShare]

    init(_ source: ArchiveSource, _ shares: [LaneID: ReadShare]) {
        self.source = source
        self.shares = shares
    }

    var process: ProcessInfo? { source.process }
    var createdMonotonicNs: UInt64 { source.createdMonotonicNs }

    func next(_ record: inout RecordRef) throws(ReadProblem) -> Bool {
        while try source.next(&record) {
            if shares[record.thread.process.laneID]?.hasRead(record) != true { return true }
        }
        return false
    }
}
