// Lists the files of a store's lanes by their names (FORMAT §2). Names only: no file is opened.

import CordwoodCore

package struct LaneListing {
    package struct Lane {
        package var name: String
        package var hasLaneFile = false
        /// By number.
        package var segments: [LaneFiles.Segment] = []
        var others: [String] = []

        func hasSegment(in range: ClosedRange<UInt64>) -> Bool {
            var (low, high) = (0, segments.count)
            while low < high {
                let middle = (low &+ high) / 2
                if segments[middle].number < range.lowerBound {
                    low = middle &+ 1
                } else {
                    high = middle
                }
            }
            return low < segments.count && range.contains(segments[low].number)
        }
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
        for name in lanes.keys { lanes[name]?.segments.sort { $0.number < $1.number } }
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
        // In place: a copy of a lane of tens of thousands of segments takes long.
        if rest == "lane" {
            lanes[lane, default: Lane(name: lane)].hasLaneFile = true
        } else if rest.hasPrefix("catalog-") || rest == "journal" {
            lanes[lane, default: Lane(name: lane)].others.append(fileName)
        } else if let segment = LaneFiles.segment(
            rest, path: directory + "/lanes/\(fileName)")
        {
            lanes[lane, default: Lane(name: lane)].segments.append(segment)
        }
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
