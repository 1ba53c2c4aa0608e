// Which segments of a store archives already cover (FORMAT §2, §11), according to the archives'
// names, and to their headers if they cover several lanes.

import CordwoodCore
import CordwoodFormats

extension LaneListing {
    /// True while a segment exists that the archive covers (FORMAT §11). Segment 0 exists in the
    /// lane file until the file says otherwise.
    package func isCovered(archive name: String, _ directory: FilePath) -> Bool {
        guard let covers = try? LaneListing.covers(of: name, directory) else {
            let unread = UnreadArchive(name: name, why: "", directory: directory)
            return !isWhole || lanes.values.contains(where: unread.mayCover)
        }
        guard !covers.isEmpty else { return false }
        // A segment that cannot be checked may exist.
        guard isWhole else { return true }
        return covers.contains { cover in
            guard let lane = lanes[cover.lane] else { return false }
            if cover.range.contains(0), lane.hasLaneFile,
                LaneListing.hasFirst(LaneFiles(lane: lane.name, directory: directory + "/lanes"))
            {
                return true
            }
            return lane.hasSegment(in: cover.range)
        }
    }

    /// Whether the lane file has segment 0, or may have it because the process cannot open it now.
    private static func hasFirst(_ files: LaneFiles) -> Bool {
        do throws(ReadProblem) { return try LaneHead.load(files).archivedBelow == 0 } catch {
            return error.isForLack
        }
    }

    /// The covers of an archive: from its name, or from its header if the name says there are more.
    /// An archive that is gone covers nothing. Throws if it exists and cannot be read.
    static func covers(
        of name: String, _ directory: FilePath
    ) throws(ReadProblem) -> [(lane: String, range: ClosedRange<UInt64>)] {
        guard let parsed = ArchiveName(name), name.hasSuffix(".cwa") else { return [] }
        if parsed.others == 0 { return [(parsed.lane, parsed.range)] }
        do throws(ReadProblem) {
            let info = try ArchiveInfo.peek(path: directory + "/archives/\(name)")
            return info.covers.filter { $0.first <= $0.last }
                .map { ($0.laneName, $0.first...$0.last) }
        } catch .system(_, Errno.ENOENT) {
            return []
        }
    }

}

/// An archive of several lanes that cannot be read now. Its lanes are unknown, except for what all
/// such archives have in common (FORMAT §11).
struct UnreadArchive {
    let name: String
    let why: String
    private let firstLane: Substring
    private let writtenNs: UInt64

    /// If a clock was set back since, an archive looks older than its lanes.
    private static let clockNs: UInt64 = 86_400_000_000_000

    init(name: String, why: String, directory: FilePath) {
        self.name = name
        self.why = why
        firstLane = name.prefix { $0 != "." }
        let file = FileFacts(at: directory + "/archives/\(name)")
        writtenNs = file.map { $0.modifiedSeconds &* 1_000_000_000 } ?? .max
    }

    /// Lanes go into one archive in the order of their names, each from its segment 0, and none is
    /// younger than the archive.
    func mayCover(_ lane: LaneListing.Lane) -> Bool {
        guard lane.name >= firstLane else { return false }
        let start = LaneName.start(lane.name) ?? 0
        return start <= writtenNs || start - writtenNs <= UnreadArchive.clockNs
    }
}

/// The contents of archives/, by lane. The directory is listed again under the locks of each batch
/// of lanes, but each archive is opened only once: archives never change, and everything that a
/// removed archive covered was archived.
struct ListedArchives {
    /// The archives of each lane, and the ranges of its segments that they cover.
    private(set) var covered: [String: [(name: String, range: ClosedRange<UInt64>)]] = [:]
    /// Names of archives that were being written. Those of several lanes are filed under the first
    /// lane.
    private(set) var parts: [String: [String]] = [:]
    /// Lanes that these archives may cover must wait; otherwise they would be archived twice.
    private(set) var unread: [UnreadArchive] = []
    private var known: Set<String> = []

    /// Throws if archives/ cannot be listed: its coverage is then unknown.
    mutating func list(_ directory: FilePath) throws(CordwoodError) {
        guard let names = Directories.list(directory + "/archives") else {
            throw Directories.failure("list", directory + "/archives")
        }
        parts = [:]
        unread = []
        for name in names {
            if name.hasSuffix(".part") {
                addPart(name)
            } else if !known.contains(name) {
                do throws(ReadProblem) {
                    for (lane, range) in try LaneListing.covers(of: name, directory) {
                        covered[lane, default: []].append((name, range))
                    }
                    known.insert(name)
                } catch {
                    // Not remembered but checked again each time: a disk error may go away.
                    unread.append(
                        UnreadArchive(
                            name: name, why: CordwoodError(error).text, directory: directory))
                }
            }
        }
    }

    /// An unread archive that may cover a lane whose coverage is otherwise unknown.
    func doubt(_ lane: LaneListing.Lane) -> UnreadArchive? {
        guard covered[lane.name]?.contains(where: { $0.range.contains(0) }) != true else {
            return nil
        }
        return unread.first { $0.mayCover(lane) }
    }

    private mutating func addPart(_ name: String) {
        guard let archive = ArchiveName(name) else { return }
        parts[archive.lane, default: []].append(name)
    }

    /// The segments of a lane that need no archive.
    func proven(_ files: LaneFiles, _ directory: FilePath) throws(ReadProblem) -> Set<UInt64> {
        guard covered[files.lane] != nil else { return [] }
        return try proven(LaneSource(files: files), directory)
    }

    func proven(_ source: LaneSource, _ directory: FilePath) throws(ReadProblem) -> Set<UInt64> {
        let said = source.deadSegments + (source.hasArchivedFirst ? [0] : [])
        return proven(source.lane, try source.content().seals, directory).union(said)
    }

    /// The segments of a lane whose content is proven to be in an archive (FORMAT §11): that of the
    /// same number and digest. A cover alone proves nothing; it may be that of a copy of the lane.
    private func proven(
        _ lane: String, _ seals: [SegmentSeal], _ directory: FilePath
    ) -> Set<UInt64> {
        var left = Set(seals)
        var found: Set<UInt64> = []
        for (name, range) in covered[lane] ?? []
        where left.contains(where: { range.contains($0.number) }) {
            let path = directory + "/archives/\(name)"
            guard let info = try? ArchiveInfo.peek(path: path, seals: true),
                info.lostPlaces == 0
            else { continue }
            for cover in info.covers where cover.laneName == lane {
                for seal in cover.seals where left.remove(seal) != nil {
                    found.insert(seal.number)
                }
            }
        }
        return found
    }
}
