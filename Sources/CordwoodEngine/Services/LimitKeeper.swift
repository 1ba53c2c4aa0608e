// What the store may hold: counts its files, lets retention remove archives, and tells the makers
// of segments how much more they may make (Quota). Runs on the ship thread after each archive and
// tick, and on a thread of its own where the quota gets short while that one is busy; one at a
// time. docs/CONCURRENCY.md, A26.
// SAFETY: the engine's block is never unmapped; what changes is guarded by `monitor`.

import CShims
import CordwoodCore
import CordwoodShip
import CordwoodStore
import Glibc

@safe final class LimitKeeper: @unchecked Sendable {
    private let engine: EngineBlock
    private let directory: String
    private let uploads: UploadService
    /// Held while files are counted and removed, also by the callbacks.
    private let keeping = Monitor()
    private let monitor = Monitor()
    private var bounds: Bounds
    /// Of `keep`, one after the other.
    private var looks: (begun: UInt64, ended: UInt64) = (0, 0)
    private var isRunning = false
    private var runner: pthread_t?
    private var notBeforeNs: UInt64 = 0

    /// While the quota is short it is looked at so often.
    private static let periodNs: UInt64 = 100_000_000
    /// Segments of a store that has room for no archive.
    private static let segmentsMin: UInt64 = 8

    init(engine: EngineBlock, directory: String, settings: Settings, uploads: UploadService) {
        unsafe self.engine = engine
        self.directory = directory
        self.uploads = uploads
        bounds = Bounds(
            quotaBytes: settings.options.quotaBytes, segmentBytes: settings.segmentBytes)
    }

    /// A policy may change them.
    struct Bounds {
        var quotaBytes: UInt64
        var segmentBytes: UInt64

        /// Kept free of archives, so that writers do not wait for retention.
        var headroomBytes: UInt64 {
            quotaBytes == 0 ? 0 : max(2 * segmentBytes, quotaBytes / 16)
        }
    }

    private var current: Bounds { monitor.locked { bounds } }

    /// Hold from the next look on.
    func set(_ new: Bounds) { monitor.locked { bounds = new } }

    /// Segments that one archive may cover: what it takes beside them stays within the quota.
    var segmentsAtOnce: UInt64 {
        let bounds = current
        return bounds.quotaBytes == 0
            ? 8 : min(8, max(1, bounds.quotaBytes / 16 / bounds.segmentBytes))
    }

    /// What archiving so many segments may take beside them.
    func archiveBytes(segments: Int) -> UInt64 { UInt64(segments) * current.segmentBytes }

    /// Before the first look, which may be late on a busy machine: the quota holds from the start.
    /// What retention keeps free may be made even where archives fill more than the quota.
    func begin() {
        keeping.locked {
            let bounds = current
            guard bounds.quotaBytes > 0 else { return }
            let mark = unsafe Quota.mark(engine)
            let free = room(bounds, beside: count(bounds))
            unsafe Quota.allow(engine, from: mark, bytes: max(free, bounds.headroomBytes))
        }
    }

    /// Retention, and how much may be made from here on.
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

    /// What the quota leaves beside these files and the archives.
    private func room(_ bounds: Bounds, beside files: FileBytes) -> UInt64 {
        let quota = max(bounds.quotaBytes, LimitKeeper.segmentsMin * bounds.segmentBytes)
        let used = files.grown + bytes(of: "archives") { $0.hasSuffix(".cwa") }
        return quota > used ? quota - used : 0
    }

    /// Retention has archives to remove, or hardly a segment can be made.
    var isShort: Bool {
        let bounds = current
        guard bounds.quotaBytes > 0 else { return false }
        let used = count(bounds).grown + bytes(of: "archives") { $0.hasSuffix(".cwa") }
        return used + bounds.headroomBytes > bounds.quotaBytes
    }

    /// What `mayMakeRoom` takes: looks that have begun.
    var looksBegun: UInt64 { monitor.locked { looks.begun } }

    /// False: the quota has room, or a look that began after so many had begun has made none.
    func mayMakeRoom(since begun: UInt64) -> Bool {
        unsafe Quota.isUsed(engine) && monitor.locked { looks.ended <= begun }
    }

    /// True for who shall call `keepAndEnd` now, on a thread of its own. The first look is the ship
    /// thread's, which adopts what others left before retention removes anything for it.
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
        monitor.locked { runner = pthread_self() }
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

    /// In one of the callbacks that retention makes here.
    var isRunningHere: Bool {
        monitor.locked { runner.map { pthread_equal($0, pthread_self()) != 0 } ?? false }
    }

    private struct FileBytes {
        /// What is on the disk but for archives.
        var now: UInt64 = 0
        /// The same with this lane's segments as large as they may grow.
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
        sizes(of: folder).reduce(0) { wanted($1.name) ? $0 + $1.bytes : $0 }
    }

    /// A folder's files, each once. A listing beside a rename may hold both names of a file, or
    /// neither: so files are told apart by their inodes, and looked for twice; of what the second
    /// look lacks a third says whether it is gone.
    private func sizes(of folder: String) -> [(name: String, bytes: UInt64)] {
        let first = look(folder)
        var found = look(folder)
        let lacking = first.filter { found[$0.key] == nil }
        if !lacking.isEmpty {
            for (inode, file) in look(folder) where lacking[inode] != nil { found[inode] = file }
        }
        return Array(found.values)
    }

    private func look(_ folder: String) -> [UInt64: (name: String, bytes: UInt64)] {
        var files: [UInt64: (name: String, bytes: UInt64)] = [:]
        for name in Directories.names("\(directory)/\(folder)") {
            var status = stat()
            // What is gone by now; a link's file is not the store's.
            guard unsafe lstat("\(directory)/\(folder)/\(name)", &status) == 0,
                status.st_mode & S_IFMT == S_IFREG
            else { continue }
            files[UInt64(status.st_ino)] = (name, FileSystem.bytesTaken(status))
        }
        return files
    }

    /// By parts: String.contains(String) brings the whole engine of regular expressions along.
    private static func isSpare(_ name: String) -> Bool {
        name.split(separator: ".").contains { $0.hasPrefix("spare-") }
    }
}
