// What the engine's threads do while the system refuses memory: under a limit on the address space
// or on data, or where nothing may be overcommitted. What archives, adopts, removes or sends begins
// only where there is room for it; otherwise it is tried again each second. What writers wait for
// goes on: it takes little, at worst from a reserve (Sources/CShims/reserve.c).

import CShims
import CordwoodCore
import CordwoodShip
import CordwoodStore

extension Services {
    /// More than these jobs were measured to take (docs/RELIABILITY.md, "Little memory").
    static let roomBytes = 24 << 20
    static let denseRoomBytes = 48 << 20
    private static let bodiesRoomBytes = 64 << 20
    private static let roomPauseNs: UInt64 = 1_000_000_000
    private static let roomToldNsMin: UInt64 = 60_000_000_000

    static func noRoom(_ bytes: Int = roomBytes) -> CordwoodError {
        CordwoodError(
            Status.memory, "\(bytes >> 20) MiB of memory, which this takes, cannot be had")
    }

    /// What a run of uploads needs: bodies of records take more than archives that go whole.
    var uploadRoomBytes: Int {
        uploads.makesBodies ? Services.bodiesRoomBytes : Services.roomBytes
    }

    /// Whether a job may begin. A refusal is reported, at most once a minute.
    func hasRoom(_ bytes: Int = Services.roomBytes) -> Bool {
        if Memory.hasRoom(bytes) { return true }
        let now = cw_monotonic_ns()
        let isUpload = bytes > Services.roomBytes
        let isTold = monitor.locked {
            if !isUpload, !sealedWaiting.isEmpty { archiveFailure = Services.noRoom() }
            if let roomToldNs, now - roomToldNs < Services.roomToldNsMin { return true }
            roomToldNs = now
            return false
        }
        guard !isTold else { return false }
        report(
            UploadDiagnostic(
                level: UploadDiagnostic.warn,
                message: "memory is short: \(isUpload ? "" : "archives, limits and ")uploads wait",
                fields: [("bytes_wanted", .number(Int64(bytes)))]),
            as: "Cordwood.Engine")
        return false
    }

    /// On the ship thread. Returns the monotonic ns before which there is no need to try again.
    func startUploads() -> UInt64 {
        if hasRoom(uploadRoomBytes) {
            uploads.startBackground()
            return 0
        }
        return cw_monotonic_ns() + Services.roomPauseNs
    }

    /// On the ship thread. False: the engine closes.
    func awaitRoom() -> Bool {
        while !hasRoom() {
            // Those for which there was no thread: a new lane, limits.
            runErrands()
            guard waitForWork(until: cw_monotonic_ns() + Services.roomPauseNs) else { return false }
        }
        return true
    }
}
