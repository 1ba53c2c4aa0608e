// Files of lanes that have no lane file. An adopter removes the lane file last, so such files
// should all be archived. But a listing may miss the file of a living lane that was renamed behind
// its cursor, and no archive holds a lane whose file somebody removed by hand. So before anything
// is removed, the lane file is looked up by name, and then the archives are listed. A journal is
// read before it is removed, because it may hold records that exist nowhere else. Adopters only.
// SAFETY: the buffer is lent to one call.

import CShims
import CordwoodCore

extension StoreArchiver {
    /// Throws if the disk is full or cannot be listed; `damage` reports what is left alone.
    static func clearOrphans(
        _ directory: FilePath, _ listed: ListedLanes, _ archives: inout ListedArchives,
        _ form: ArchiveForm
    ) throws(CordwoodError) -> ArchivingSummary {
        var summary = ArchivingSummary()
        let orphans = listed.listing.lanes.values.filter {
            !$0.hasLaneFile && !LaneListing.hasFile($0.name, directory)
        }
        // The process that removed a lane file had made its archives before.
        try archives.list(directory)
        for lane in orphans.sorted(by: { $0.name < $1.name }) {
            let files = listed.files[lane.name]
            let proven = files.flatMap { try? archives.proven($0, directory) } ?? []
            let left = lane.segments.contains { segment in
                !proven.contains(segment.number) && isThere(segment.path)
            }
            guard !left else {
                summary.damage.append("lanes/\(lane.name): its lane file is missing; left alone")
                continue
            }
            guard lane.others.contains("\(lane.name).journal") else {
                removeFiles(directory, lane)
                continue
            }
            do throws(CordwoodError) {
                summary.add(try archiveJournal(directory, lane, files, archives, form))
            } catch {
                guard error.status != Status.full else { throw error }
                summary.damage.append("lanes/\(lane.name).journal: \(error.text); left alone")
            }
        }
        return summary
    }

    private static func isThere(_ path: FilePath) -> Bool {
        FileFacts(at: path) != nil || Errno.last != Errno.ENOENT
    }

    /// Archives the records that only a journal has, then removes the lane's files.
    private static func archiveJournal(
        _ directory: FilePath, _ lane: LaneListing.Lane, _ listed: LaneFiles?,
        _ archives: ListedArchives, _ form: ArchiveForm
    ) throws(CordwoodError) -> ArchivingSummary {
        var summary = ArchivingSummary()
        let path = directory + "/lanes/\(lane.name).journal"
        let descriptor = Files.open(path, [.readWrite, .nonBlocking])
        guard descriptor >= 0 else {
            if Errno.last == Errno.ENOENT { return summary }
            throw Directories.failure("open", path)
        }
        defer { Files.close(descriptor) }
        // Another adopter is at work; or it has finished, and the journal has lost its name.
        guard Files.lockOpenFile(descriptor), isThere(path), let files = listed else {
            return summary
        }
        guard try hasFrames(descriptor, path) else {
            removeFiles(directory, lane)
            return summary
        }
        // An id of no running boot, so that the journal is trusted (FORMAT §10).
        let boot = LaneID(high: .max, low: .max)
        let numbers: [UInt64]
        do throws(ReadProblem) {
            let source = try LaneSource(files: files, runningBoot: boot)
            guard let head = source.head, !mayLive(head) else { return summary }
            let proven = try archives.proven(source, directory)
            numbers = source.segmentNumbers.subtracting(proven).sorted()
        } catch {
            throw CordwoodError(error)
        }
        let covered = archives.covered[lane.name]?.map(\.range) ?? []
        for range in runs(of: numbers, besides: covered) {
            summary.add(
                try archive(
                    directory: directory, files: files, segments: range, form: form,
                    endsLane: range.upperBound == numbers.last, boot: boot))
            // CRASH: what is proven to be in an archive is not archived again.
        }
        removeFiles(directory, lane)
        return summary
    }

    /// False: the journal has less than its magic number, so it holds nothing. Throws if it cannot
    /// be read, or if its header is damaged: an owner syncs it before the journal gets its name.
    private static func hasFrames(
        _ descriptor: Int32, _ path: FilePath
    ) throws(CordwoodError) -> Bool {
        var words = (UInt64(0), UInt64(0))
        let count = unsafe withUnsafeMutableBytes(of: &words) {
            unsafe Files.readOnce(descriptor, into: $0, at: 0)
        }
        guard count >= 0 else { throw Directories.failure("read", path) }
        if count < 16 { return false }
        guard words.0 == JournalHeader.magicValue else {
            throw CordwoodError(ReadProblem.damaged("its header is not a journal's"))
        }
        return true
    }

    /// The process may still be writing, although its lane file has lost its name.
    private static func mayLive(_ head: LaneHead) -> Bool {
        guard head.bootID == BootID.running() else { return false }
        guard head.processNamespace == Machine.processNamespace() else { return true }
        return !Machine.isGone(head.processID, startedAt: head.processStart)
    }
}
