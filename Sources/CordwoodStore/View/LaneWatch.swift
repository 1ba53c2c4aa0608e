// Whether the writer of something unfinished is still active: which lanes of some stores had a
// living owner at one moment. Taken before the stores are read, so every record of the other lanes
// is seen. A value; any thread.

import CShims
import CordwoodCore

public struct LaneWatch: Sendable {
    private var living: Set<LaneID> = []
    /// UTC ns; lanes made later are unknown.
    private let taken = cw_realtime_ns()
    /// True if all inputs are stores that programs write to. The location of the lanes of single
    /// files and of collected archives is unknown.
    private var areStores = true

    public init(paths: [String]) {
        let boot = BootID.running()
        for path in paths.map({ FilePath(opening: $0) }) {
            guard StoreFolder.isDirectory(path + "/lanes"),
                let lanes = try? LaneFiles.list(store: path)
            else {
                areStores = false
                continue
            }
            for files in lanes where files.hasLaneFile {
                guard let head = LaneHead.read(files) else {
                    areStores = false
                    continue
                }
                if LaneWatch.isLiving(head, files, boot) { living.insert(head.laneID) }
            }
        }
    }

    /// The process has ended, or has closed the engine.
    package func isOver(_ process: ProcessInfo) -> Bool {
        areStores && process.createdRealtime < taken && !living.contains(process.laneID)
    }

    /// True if its lock is held, or if the lock was lost with all descriptors while the process
    /// lives.
    private static func isLiving(_ head: LaneHead, _ files: LaneFiles, _ boot: LaneID) -> Bool {
        if head.closed || head.hasEnded { return false }
        if LaneFiles.isLocked(files.lanePath) { return true }
        guard !head.lockIsLife, head.bootID == boot else { return false }
        let start = Machine.processStart(head.processID)
        return start != 0 && start == head.processStart
    }
}
