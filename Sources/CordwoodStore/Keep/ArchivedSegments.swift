// Which segments of a store archives cover already (FORMAT §2, §11): by their names, and by their
// headers where they cover several lanes.
// SAFETY: each `stat` is lent to one call.

import CordwoodCore
import CordwoodFormats
import Glibc

extension LaneListing {
    /// What an archive covers: by its name, or by its header where the name says there is more. Of
    /// one that is gone: nothing. Throws where it is there and cannot be read.
    package static func covers(
        of name: String, _ directory: String
    ) throws(ReadProblem) -> [(lane: String, range: ClosedRange<UInt64>)] {
        if let one = cover(of: name) { return [one] }
        guard name.hasSuffix(".cwa"), name.contains("+") else { return [] }
        do throws(ReadProblem) {
            let info = try ArchiveInfo.peek(path: "\(directory)/archives/\(name)")
            return info.covers.filter { $0.first <= $0.last }
                .map { ($0.laneName, $0.first...$0.last) }
        } catch .system(_, ENOENT) {
            return []
        }
    }

    /// What an archive's file name says that it covers; nil where it is none of ours.
    static func cover(of name: String) -> (lane: String, range: ClosedRange<UInt64>)? {
        let parts = name.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 3, parts[2] == "cwa" else { return nil }
        let numbers = parts[1].split(separator: "-", omittingEmptySubsequences: false)
        guard numbers.count == 2, let first: UInt64 = Digits.number(numbers[0].utf8),
            let last: UInt64 = Digits.number(numbers[1].utf8), first <= last
        else { return nil }
        return (String(parts[0]), first...last)
    }
}

/// An archive of several lanes that cannot be read now: which ones nobody knows but by what all
/// such archives have in common (FORMAT §11).
package struct UnreadArchive {
    let name: String
    let why: String
    private let firstLane: Substring
    private let writtenNs: UInt64

    /// A clock that was set back since makes an archive look older than its lanes.
    private static let clockNs: UInt64 = 86_400_000_000_000

    package init(name: String, why: String, directory: String) {
        self.name = name
        self.why = why
        firstLane = name.prefix { $0 != "." }
        var status = stat()
        let found = unsafe lstat("\(directory)/archives/\(name)", &status) == 0
        writtenNs = found ? UInt64(clamping: status.st_mtim.tv_sec) &* 1_000_000_000 : .max
    }

    /// Lanes go into one archive in the order of their names, none has a segment but the one in its
    /// file, and none is younger than the archive.
    package func mayCover(_ lane: LaneListing.Lane) -> Bool {
        guard lane.segments.isEmpty, lane.name >= firstLane else { return false }
        let start = LaneName.start(lane.name) ?? 0
        return start <= writtenNs || start - writtenNs <= UnreadArchive.clockNs
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
    /// Lanes that they may cover must wait, or they would be archived twice.
    private(set) var unread: [UnreadArchive] = []
    private var known: Set<String> = []

    /// Throws where archives/ cannot be listed: what it covers is not known then.
    mutating func list(_ directory: String) throws(CordwoodError) {
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
                        covered[lane, default: []].append(range)
                    }
                    known.insert(name)
                } catch {
                    // Looked at again each time: an error of the disk may pass.
                    unread.append(
                        UnreadArchive(
                            name: name, why: CordwoodError(error).text, directory: directory))
                }
            }
        }
    }

    /// The archive that may cover a lane of which nothing else is known.
    func doubt(_ lane: LaneListing.Lane) -> UnreadArchive? {
        guard covered[lane.name]?.contains(where: { $0.contains(0) }) != true else { return nil }
        return unread.first { $0.mayCover(lane) }
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
