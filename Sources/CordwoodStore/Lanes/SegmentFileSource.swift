// One file given by name: a segment (.seg, .sealed) or a lane file, read as the lane's own reader
// would read it, with whatever still exists of the lane beside it.

import CordwoodCore

package enum SegmentFileSource {
    /// `path` ends in .lane, .seg or .sealed. A lane file yields only segment 0, archived or not.
    package static func open(path: FilePath, runningBoot: LaneID? = nil) throws(ReadProblem)
        -> LaneSource
    {
        guard let (lane, rest) = LaneFiles.parts(path.lastName) else {
            throw .damaged("\(path): not a file of a store")
        }
        let files = LaneFiles(lane: lane, directory: path.parent)
        if rest == "lane" {
            let source = try LaneSource(files: files, segments: 0...0, runningBoot: runningBoot)
            source.reportsDrops = true
            return source
        }
        guard let segment = LaneFiles.segment(rest, path: path) else {
            throw .damaged("\(path): not a file of a store")
        }
        return try LaneSource(segment: segment, files: files, runningBoot: runningBoot)
    }
}
