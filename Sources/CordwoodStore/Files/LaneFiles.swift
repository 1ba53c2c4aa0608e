// The contents of a store's lanes/ directory, by lane (FORMAT §2). Names only: no file is opened. A
// listing is a momentary view; a file may have been renamed by the time it is opened. A single
// readdir(3) is not even that: it may miss both names of a file that is renamed while it runs. So
// it runs twice. One of the two runs finds a file that existed before and is renamed once (a
// segment being sealed); a file that is renamed again meanwhile is in an archive.

import CordwoodCore
import CordwoodFormats

package struct LaneFiles: Sendable {
    package struct Segment: Sendable {
        package let number: UInt64
        package let generation: UInt32
        package let isSealed: Bool
        package let path: FilePath
    }

    package let lane: String
    /// The directory of the files: `lanes` of a store.
    package let directory: FilePath
    package internal(set) var hasLaneFile = false
    package internal(set) var hasJournal = false
    /// nil: not known.
    package internal(set) var catalogs: [Int]?
    /// By number. Excludes segment 0, which lies in the lane file.
    package internal(set) var segments: [Segment] = []

    package var lanePath: FilePath { directory + "/\(lane).lane" }
    package var journalPath: FilePath { directory + "/\(lane).journal" }

    package init(lane: String, directory: FilePath) {
        self.lane = lane
        self.directory = directory
    }

    func without(_ numbers: Set<UInt64>) -> LaneFiles {
        var files = self
        files.segments.removeAll { numbers.contains($0.number) }
        return files
    }

    /// All lanes of the store at `store`, by name. A store without lanes/ has none.
    package static func list(store: FilePath) throws(ReadProblem) -> [LaneFiles] {
        let directory = store + "/lanes"
        var lanes: [String: LaneFiles] = [:]
        let names = Set(try names(in: directory)).union(try names(in: directory))
        for name in names {
            guard let (lane, rest) = parts(name[...]), !lane.isEmpty else { continue }
            lanes[lane, default: LaneFiles(lane: lane, directory: directory)].add(rest, name)
        }
        return lanes.values.sorted { $0.lane < $1.lane }.map { files in
            var files = files
            files.settle()
            return files
        }
    }

    /// The names in a directory, unsorted; empty if it does not exist.
    package static func names(in directory: FilePath) throws(ReadProblem) -> [String] {
        let listing = DirectoryListing(directory)
        guard listing.error == 0 || listing.error == Errno.ENOENT else {
            throw .system("list \(directory)", errno: listing.error)
        }
        return listing.names
    }

    private mutating func add(_ rest: Substring, _ name: String) {
        if rest == "lane" { hasLaneFile = true }
        if rest == "journal" { hasJournal = true }
        if rest.hasPrefix("catalog-"), let k = Int(rest.dropFirst(8)),
            k >= 1, k <= CatalogHeader.filesMax
        {
            catalogs = (catalogs ?? []) + [k]
        }
        if let segment = LaneFiles.segment(rest, path: directory + "/\(name)") {
            segments.append(segment)
        }
    }

    /// The lane, and the part after its dot; nil: there is no dot.
    static func parts(_ name: Substring) -> (lane: String, rest: Substring)? {
        guard let dot = name.utf8.firstIndex(of: 0x2e) else { return nil }
        return (String(name[..<dot]), name[name.utf8.index(after: dot)...])
    }

    /// Those segments of a lane that have a name, sealed or not: their owner knows them, and so
    /// needs no listing, which would take long where thousands wait for it. `first`: segment 0 is
    /// among them.
    package init(
        lane: String, store: FilePath, sealed: [SealedSegment], first: Bool
    ) {
        self.init(lane: lane, directory: store + "/lanes")
        hasLaneFile = first
        for segment in sealed where segment.number != 0 {
            let number = Digits.text(segment.number, width: 8)
            let generation = Digits.text(UInt64(segment.generation), width: 4)
            for isSealed in [true, false] {
                let ending = isSealed ? "sealed" : "seg"
                let path = directory + "/\(lane).\(number)-\(generation).\(ending)"
                // If it cannot be looked at, it may exist. Sealing renames it, or may fail to.
                guard FileFacts(at: path) != nil || Errno.last != Errno.ENOENT else { continue }
                segments.append(
                    Segment(
                        number: segment.number, generation: segment.generation,
                        isSealed: isSealed, path: path))
                break
            }
        }
    }

    /// `<number>-<generation>.seg` or `.sealed`.
    static func segment(_ rest: Substring, path: FilePath) -> Segment? {
        let parts = rest.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 2, parts[1] == "seg" || parts[1] == "sealed" else { return nil }
        let numbers = parts[0].split(separator: "-", omittingEmptySubsequences: false)
        guard numbers.count == 2, numbers[0].utf8.count >= 8, numbers[1].utf8.count >= 4,
            let number: UInt64 = Digits.number(numbers[0].utf8),
            let generation: UInt32 = Digits.number(numbers[1].utf8)
        else { return nil }
        return Segment(
            number: number, generation: generation, isSealed: parts[1] == "sealed", path: path)
    }

    /// A listing that ran beside a rename may hold both names of a segment: keeps the later one.
    private mutating func settle() {
        catalogs = catalogs?.sorted() ?? []
        segments.sort {
            $0.number != $1.number
                ? $0.number < $1.number
                : $0.generation != $1.generation
                    ? $0.generation > $1.generation : $0.isSealed && !$1.isSealed
        }
        var last: UInt64?
        segments.removeAll { segment in
            defer { last = segment.number }
            return segment.number == last
        }
    }
}

extension LaneFiles {
    /// Whether a process holds that lane file (FORMAT §2). Tests it by taking a shared lock for a
    /// moment.
    package static func isLocked(_ path: FilePath) -> Bool {
        let fd = Files.openKept(path, [.read, .nonBlocking, .noTerminal])
        guard fd >= 0 else { return false }
        defer { FileCalls.close(fd) }
        return !Files.lock(fd, shared: true) && Errno.last == Errno.EWOULDBLOCK
    }
}
