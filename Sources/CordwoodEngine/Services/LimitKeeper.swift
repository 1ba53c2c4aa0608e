// Keeps the store within its limits: counts its files, lets retention remove archives, and tells
// the makers of segments how much more they may make (Quota). Runs on the ship thread, at each tick
// and when archiving says so (`Services.isLookDue`). If the quota gets short while that thread is
// busy, it runs on a thread of its own; only one at a time. docs/CONCURRENCY.md, A26.
// SAFETY: the engine's block is never unmapped; `monitor` guards all mutable state.

import CShims
import CordwoodCore
import CordwoodShip
import CordwoodStore

@safe final class LimitKeeper: @unchecked Sendable {
    private let engine: EngineBlock
    private let directory: FilePath
    private let uploads: UploadService
    /// Held while files are counted and removed, also during the callbacks.
    private let keeping = Monitor()
    private let monitor = Monitor()
    private var bounds: Bounds
    /// Counts the looks of `keep`, which run one after the other.
    private var looks: (begun: UInt64, ended: UInt64) = (0, 0)
    private var isRunning = false
    private var runner: ThreadIdentity?
    private var notBeforeNs: UInt64 = 0

    /// The interval between looks while the quota is short.
    private static let periodNs: UInt64 = 100_000_000
    /// The number of segments in a store that has room for no archive.
    private static let segmentsMin: UInt64 = 8

    init(engine: EngineBlock, directory: FilePath, settings: Settings, uploads: UploadService) {
        unsafe self.engine = engine
        self.directory = directory
        self.uploads = uploads
        bounds = Bounds(
            quotaBytes: settings.options.quotaBytes, segmentBytes: settings.segmentBytes)
    }

    /// The limits; a policy may change them.
    struct Bounds {
        var quotaBytes: UInt64
        var segmentBytes: UInt64

        /// Kept free of archives, so that writers do not wait for retention.
        var headroomBytes: UInt64 {
            quotaBytes == 0 ? 0 : max(2 * segmentBytes, quotaBytes / 16)
        }
    }

    private var current: Bounds { monitor.locked { bounds } }

    /// Sets limits that apply from the next look on.
    func set(_ new: Bounds) { monitor.locked { bounds = new } }

    /// The number of segments that one archive may cover so that its extra space stays within the
    /// quota: many small ones, because an archive costs several syncs whatever it holds.
    var segmentsInArchive: UInt64 {
        let bounds = current
        let most = max(
            LimitKeeper.segmentsAtLeast, StoreArchiver.bytesAtOnce / bounds.segmentBytes)
        return bounds.quotaBytes == 0
            ? most : min(most, max(1, bounds.quotaBytes / 16 / bounds.segmentBytes))
    }

    /// The same without regard to their size: so many are kept ready to be used again.
    var segmentsAtOnce: UInt64 { min(LimitKeeper.segmentsAtLeast, segmentsInArchive) }

    private static let segmentsAtLeast = UInt64(StoreArchiver.segmentsAtLeast)

    /// The extra space that archiving so many segments may take.
    func archiveBytes(segments: Int) -> UInt64 { UInt64(segments) * current.segmentBytes }

    /// Applies the quota before the first look, which may be late on a busy machine. Allows the
    /// space that retention keeps free, even if archives exceed the quota.
    func begin() {
        keeping.locked {
            let bounds = current
            guard bounds.quotaBytes > 0 else { return }
            unsafe Quota.name(engine, bytes: bounds.quotaBytes)
            let mark = unsafe Quota.mark(engine)
            let free = room(bounds, beside: count(bounds))
            unsafe Quota.allow(engine, from: mark, bytes: max(free, bounds.headroomBytes))
        }
    }

    /// Retention may have something to do at open.
    var hasArchives: Bool { !Directories.names(directory + "/archives").isEmpty }

    /// Runs retention and sets how much may be made from here on.
    func keep() {
        keeping.locked {
            monitor.locked { looks.begun += 1 }
            defer { monitor.locked { looks.ended = looks.begun } }
            let bounds = current
            let mark = unsafe Quota.mark(engine)
            unsafe Quota.name(engine, bytes: bounds.quotaBytes)
            let files = count(bounds)
            _ = try? uploads.applyRetention(otherBytes: files.now + bounds.headroomBytes)
            guard bounds.quotaBytes > 0 else {
                unsafe Quota.allow(engine, from: mark, bytes: nil)
                return
            }
            unsafe Quota.allow(engine, from: mark, bytes: room(bounds, beside: files))
        }
    }

    /// The room that the quota leaves after these files and the archives.
    private func room(_ bounds: Bounds, beside files: FileBytes) -> UInt64 {
        let quota = max(bounds.quotaBytes, LimitKeeper.segmentsMin * bounds.segmentBytes)
        let used = files.grown + bytes(of: "archives") { $0.hasSuffix(".cwa") }
        return quota > used ? quota - used : 0
    }

    var hasQuota: Bool { current.quotaBytes > 0 }

    /// True if retention has archives to remove, or the quota has room for hardly another segment.
    var isShort: Bool {
        let bounds = current
        guard bounds.quotaBytes > 0 else { return false }
        let used = count(bounds).grown + bytes(of: "archives") { $0.hasSuffix(".cwa") }
        return used + bounds.headroomBytes > bounds.quotaBytes
    }

    /// The number of looks that have begun, as `mayMakeRoom` takes it.
    var looksBegun: UInt64 { monitor.locked { looks.begun } }

    /// False: the quota has no need of room, or a look that began after that number made none.
    func mayMakeRoom(since begun: UInt64) -> Bool {
        unsafe Quota.isUsed(engine) && monitor.locked { looks.ended <= begun }
    }

    /// True if the caller must now run `keepAndEnd` on a thread of its own. The first look belongs
    /// to the ship thread, which adopts other processes' leftovers before retention removes
    /// anything.
    func beginsSoon(now: UInt64) -> Bool {
        let bounds = current
        guard bounds.quotaBytes > 0, unsafe Quota.left(engine) < bounds.headroomBytes / 2 else {
            return false
        }
        return monitor.locked {
            guard !isRunning, looks.ended > 0, now >= notBeforeNs else { return false }
            isRunning = true
            return true
        }
    }

    func keepAndEnd() {
        monitor.locked { runner = .current }
        keep()
        ends()
    }

    func ends() {
        monitor.locked {
            isRunning = false
            runner = nil
            notBeforeNs = cw_monotonic_ns() + LimitKeeper.periodNs
        }
    }

    /// True in a callback that retention makes on this thread.
    var isRunningHere: Bool {
        monitor.locked { runner == .current }
    }

    private struct FileBytes {
        /// Bytes on the disk, without archives.
        var now: UInt64 = 0
        /// The same, with this lane's segments at the size to which they may grow.
        var grown: UInt64 = 0
    }

    private func count(_ bounds: Bounds) -> FileBytes {
        var files = FileBytes()
        let lane = unsafe EngineCore.laneName(engine)
        let known = unsafe Quota.growing(engine)
        var growing: UInt64 = 0
        for (name, bytes) in sizes(of: "lanes") {
            files.now += bytes
            let isOwn = !lane.isEmpty && name.dropFirst(name.hasPrefix(".") ? 1 : 0).hasPrefix(lane)
            let grows = name.hasSuffix(".seg") || LimitKeeper.isSpare(name)
            if isOwn && grows { growing += 1 } else { files.grown += bytes }
        }
        files.grown += max(known.bytes, growing * bounds.segmentBytes)
        let part = bytes(of: "archives") { !$0.hasSuffix(".cwa") }
        files.now += part
        files.grown += part
        return files
    }

    private func bytes(of folder: String, where wanted: (String) -> Bool) -> UInt64 {
        sizes(of: folder, where: wanted).reduce(0) { $0 + $1.bytes }
    }

    /// The files of a folder, each once. A listing that runs during a rename may hold both names of
    /// a file, or neither. Files are therefore told apart by their inodes and listed twice; a third
    /// look checks whether those missing from the second are gone.
    private func sizes(
        of folder: String, where wanted: (String) -> Bool = { _ in true }
    ) -> [(name: String, bytes: UInt64)] {
        let first = look(folder, wanted)
        var found = look(folder, wanted)
        let lacking = first.filter { found[$0.key] == nil }
        if !lacking.isEmpty {
            for (inode, file) in look(folder, wanted) where lacking[inode] != nil {
                found[inode] = file
            }
        }
        return Array(found.values)
    }

    private func look(
        _ folder: String, _ wanted: (String) -> Bool
    ) -> [UInt64: (name: String, bytes: UInt64)] {
        var files: [UInt64: (name: String, bytes: UInt64)] = [:]
        for name in Directories.names(directory + "/\(folder)") where wanted(name) {
            // Skips files that are gone by now, and links, whose files are not the store's.
            guard let file = FileFacts(at: directory + "/\(folder)/\(name)"), file.isRegular
            else { continue }
            files[file.inode] = (name, file.bytesOnDisk)
        }
        return files
    }

    /// Compares by parts, because `spare-` may also stand inside one.
    private static func isSpare(_ name: String) -> Bool {
        name.split(separator: ".").contains { $0.hasPrefix("spare-") }
    }
}
