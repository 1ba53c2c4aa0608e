// Lists the files of a store's lanes by their names (FORMAT §2). Names only: no file is opened.

import CordwoodCore

package struct LaneListing {
    package struct Lane {
        package var name: String
        package var hasLaneFile = false
        package var segments: [LaneFiles.Segment] = []
        var others: [String] = []
    }

    package var lanes: [String: Lane] = [:]
    /// Lane files that were still being made.
    var unpublished: [String] = []
    /// Why the listing may be incomplete; empty: these are all lanes.
    package let cause: String
    package var isWhole: Bool { cause.isEmpty }

    package init(directory: FilePath) {
        let names = Directories.list(directory + "/lanes")
        cause = names == nil ? Directories.failure("list", directory + "/lanes").text : ""
        for name in names ?? [] { add(name, directory) }
    }

    private mutating func add(_ fileName: String, _ directory: FilePath) {
        let isHidden = fileName.hasPrefix(".")
        let visible = fileName.dropFirst(isHidden ? 1 : 0)
        guard let (lane, rest) = LaneFiles.parts(visible) else { return }
        if isHidden {
            // Spares and journals that were being made. A lane that is being made belongs to its
            // maker.
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
            let path = directory + "/lanes/\(fileName)"
            guard let segment = LaneFiles.segment(rest, path: path) else { return }
            entry.segments.append(segment)
        }
        lanes[lane] = entry
    }

    /// Whether a lane has a file now, published or still being made. A listing that runs beside a
    /// rename may miss both names of a file, but a lookup by name finds it. The hidden name is
    /// looked up first: a rename leads from the hidden name to the other one, never back.
    static func hasFile(_ lane: String, _ directory: FilePath) -> Bool {
        for name in [".\(lane).lane", "\(lane).lane"] {
            // If it cannot be looked at, it may exist.
            if FileFacts(at: directory + "/lanes/\(name)") != nil || Errno.last != Errno.ENOENT {
                return true
            }
        }
        return false
    }
}
