// What a store has as it is opened, before any record of it is read.

import CordwoodCore

struct StoreStart {
    var listed: [LaneFiles] = []
    var chains: [String: LaneChain] = [:]
    var lanes: [LaneSource] = []
    /// Those that are opened later.
    var later: [LaterLane] { chains.values.compactMap(\.later) }
    var archives: [ArchiveInfo] = []
}

/// A lane that is opened when its time comes, and the segments that it then should have.
typealias LaterLane = (id: LaneID, files: LaneFiles, segments: Set<UInt64>)

/// The files of one lane, in lanes/ and in archives.
struct LaneChain {
    var lane: String
    var archives: [ArchiveInfo] = []
    var source: LaneSource?
    var later: LaterLane?
    /// Of a small lane that is opened later.
    var span: SegmentSpan?
    /// Other files have some of its records, too.
    var isShared = false
    var process: ProcessInfo?
    /// Monotonic ns; none of its records is older.
    var created: UInt64 = 0

    /// nil: it has nothing yet.
    var laneID: LaneID? {
        source?.laneID ?? later?.id ?? archives.first?.covers.first?.laneID
    }
}
