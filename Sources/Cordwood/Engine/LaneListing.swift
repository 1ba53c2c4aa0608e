// The files of a store's lanes by their names (FORMAT §2), and which segments archives cover
// already. Names only: nothing is opened here but archives that cover several lanes.

import CordwoodCore
import CordwoodShip

struct LaneListing {
    struct Segment {
        var number: UInt64
        var fileName: String
        var isSealed: Bool
    }

    struct Lane {
        var name: String
        var hasLaneFile = false
        var segments: [Segment] = []
        var others: [String] = []
    }

    var lanes: [String: Lane] = [:]
    /// Lane files that were being made.
    var unpublished: [String] = []
    /// False: there may be more, which could not be listed.
    let isWhole: Bool

    init(directory: String) {
        let names = Directories.list(directory + "/lanes")
        isWhole = names != nil
        for name in names ?? [] { add(name) }
    }

    private mutating func add(_ fileName: String) {
        let isHidden = fileName.hasPrefix(".")
        let visible = fileName.dropFirst(isHidden ? 1 : 0)
        guard let dot = visible.firstIndex(of: ".") else { return }
        let lane = String(visible[..<dot])
        let rest = visible[visible.index(after: dot)...]
        if isHidden {
            // Spares and journals that were being made; a lane that is being made is its maker's.
            if rest == "lane" { unpublished.append(fileName) }
            guard rest.hasPrefix("spare-") || rest == "journal" else { return }
            lanes[lane, default: Lane(name: lane)].others.append(fileName)
            return
        }
        var entry = lanes[lane] ?? Lane(name: lane)
        if rest == "lane" {
            entry.hasLaneFile = true
        } else if rest.hasPrefix("catalog-") || rest == "journal" {
            entry.others.append(fileName)
        } else {
            let parts = rest.split(separator: ".")
            guard parts.count == 2, parts[1] == "seg" || parts[1] == "sealed",
                let number = parts[0].split(separator: "-").first.flatMap({ UInt64($0) })
            else { return }
            entry.segments.append(
                Segment(number: number, fileName: fileName, isSealed: parts[1] == "sealed"))
        }
        lanes[lane] = entry
    }

    /// What an archive covers: by its name, or by its header where the name says there is more.
    static func covers(
        of name: String, _ directory: String
    ) -> [(lane: String, range: ClosedRange<UInt64>)] {
        if let one = cover(of: name) { return [one] }
        guard name.hasSuffix(".cwa"), name.contains("+"),
            let info = try? ArchiveInfo.peek(path: "\(directory)/archives/\(name)")
        else { return [] }
        return info.covers.filter { $0.first <= $0.last }.map { ($0.laneName, $0.first...$0.last) }
    }

    /// What an archive's file name says that it covers; nil where it is none of ours.
    static func cover(of name: String) -> (lane: String, range: ClosedRange<UInt64>)? {
        let parts = name.split(separator: ".")
        guard parts.count == 3, parts[2] == "cwa" else { return nil }
        let numbers = parts[1].split(separator: "-").compactMap { UInt64($0) }
        guard numbers.count == 2, numbers[0] <= numbers[1] else { return nil }
        return (String(parts[0]), numbers[0]...numbers[1])
    }
}

/// What stands in archives/, by lane. Listed again under the locks of each batch of lanes, but each
/// archive is looked into once: none ever changes, and of one that is gone by now all that it
/// covered was archived.
struct ListedArchives {
    /// Ranges of segment numbers that archives cover: `<lane>.<first>-<last>.cwa`, or `…+<n>.cwa`
    /// where n more lanes are covered.
    private(set) var covered: [String: [ClosedRange<UInt64>]] = [:]
    /// Names of archives that were being written; of several lanes by the first one.
    private(set) var parts: [String: [String]] = [:]
    private var known: Set<String> = []

    mutating func list(_ directory: String) {
        parts = [:]
        for name in Directories.names(directory + "/archives") {
            if name.hasSuffix(".part") {
                addPart(name)
            } else if known.insert(name).inserted {
                for (lane, range) in LaneListing.covers(of: name, directory) {
                    covered[lane, default: []].append(range)
                }
            }
        }
    }

    private mutating func addPart(_ name: String) {
        var archive = name.dropLast(5)
        if archive.hasSuffix(".cwa"), let plus = archive.lastIndex(of: "+") {
            archive = archive[..<plus] + ".cwa"
        }
        guard let (lane, _) = LaneListing.cover(of: String(archive)) else { return }
        parts[lane, default: []].append(name)
    }
}
