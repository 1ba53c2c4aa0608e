// Whether anybody still writes where something was begun: which lanes of some stores had a living
// owner at one moment. Taken before the stores are read, so that of all others every record is
// seen. A value; any thread.

import CShims
import CordwoodCore
import Glibc

public struct LaneWatch: Sendable {
    private var living: Set<LaneID> = []
    /// UTC ns; later lanes are not known.
    private let taken = cw_realtime_ns()
    /// Stores that programs write to, all of them; of single files, and of archives that were
    /// collected, nobody knows where their lanes are.
    private var areStores = true

    public init(paths: [String]) {
        let boot = BootID.running()
        for path in paths {
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

    /// Its process has ended, or closed the engine.
    package func isOver(_ process: ProcessInfo) -> Bool {
        areStores && process.createdRealtime < taken && !living.contains(process.laneID)
    }

    /// Its lock is held; or it was let go with all descriptors, and the process lives.
    private static func isLiving(_ head: LaneHead, _ files: LaneFiles, _ boot: LaneID) -> Bool {
        if head.closed { return false }
        if LaneFiles.isLocked(files.lanePath) { return true }
        guard !head.lockIsLife, head.bootID == boot else { return false }
        let start = Machine.processStart(head.processID)
        return start != 0 && start == head.processStart
    }
}
