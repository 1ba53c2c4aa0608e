// What archived records leave in the lanes of ended processes: spares, dead segments, an archived
// segment 0, what is between the records of files that were used before, and frames of the journal.
// For a program that denies consent: it archives nothing, and the next engine, which does, may
// come late. Each lane under an adopter's lock, so that nothing else writes to it. A lane of
// another boot is left to adopters: its journal may be all that is left of records.

import CordwoodCore

package enum DeadLeftovers {
    package static func clear(directory: FilePath) {
        let witness = AdoptionWitness()
        let names = LaneListing(directory: directory).lanes.values.filter(\.hasLaneFile)
            .map(\.name)
        // Only adopters change these lanes now, so one listing serves all of them.
        let over = Set(names.filter { AdoptionLock.isOver(directory: directory, lane: $0) })
        guard let listed = try? ListedLanes(directory: directory) else { return }
        for name in names {
            guard let lock = AdoptionLock(directory: directory, lane: name, witness: witness)
            else { continue }
            // If the process has ended since, it may have made or renamed files.
            if let known = over.contains(name) ? listed : try? ListedLanes(directory: directory) {
                clear(directory, name, known)
            }
            lock.release()
        }
    }

    private static func clear(_ directory: FilePath, _ name: String, _ listed: ListedLanes) {
        guard let lane = listed.listing.lanes[name], let files = listed.files[name],
            let source = try? LaneSource(files: files), !source.isOtherBoot,
            let head = source.head
        else { return }
        // While a segment is put on the disk, a second link leads to its file in memory.
        let memory = Set(lane.segments.compactMap { target($0.path) })
        for other in lane.others where other.hasPrefix(".") {
            let path = directory + "/lanes/\(other)"
            if let file = target(path), memory.contains(file) {
                Files.remove(path)
            } else {
                SegmentLink.remove(path)
            }
        }
        if head.archivedBelow > 0 {
            change(files.lanePath) {
                Leftovers.overwrite(
                    $0, segmentAt: head.segmentOffset, bytes: head.segmentBytes)
            }
        }
        var held = Set(files.segments.map(\.number))
        if head.archivedBelow == 0 { held.insert(0) }
        for segment in unsafe source.waiting where segment.number != 0 {
            if segment.isDead {
                held.remove(segment.number)
                SegmentLink.remove(segment.path)
            } else if segment.isReused, (try? segment.refresh()) == true,
                let chunks = try? segment.takeChunks(), !segment.isLost
            {
                change(segment.path) { clearBetween(chunks, $0) }
            }
        }
        if files.hasJournal { renewJournal(files, held) }
        _ = Directories.sync(directory + "/lanes")
    }

    private static func target(_ path: FilePath) -> String? {
        SegmentLink.target(path).map { "\($0)" }
    }

    private static func change(_ path: FilePath, _ body: (Int32) -> Bool) {
        let descriptor = Files.open(SegmentLink.target(path) ?? path, [.readWrite, .nonBlocking])
        guard descriptor >= 0 else { return }
        defer { Files.close(descriptor) }
        if StoreFiles.isRegular(descriptor), body(descriptor) { _ = Files.syncData(descriptor) }
    }

    /// Overwrites what is not a chunk's, the unused end of its header, and what is behind its
    /// records.
    private static func clearBetween(_ chunks: [ChunkHead], _ descriptor: Int32) -> Bool {
        guard let file = FileFacts(of: descriptor) else { return false }
        var from = UInt64(SegmentHeader.bytes)
        func clear(to end: UInt64) -> Bool {
            let end = min(end, file.bytes)
            guard end > from else { return true }
            return FileCalls.writeZeros(descriptor, offset: from, bytes: end - from) == 0
        }
        for chunk in chunks.sorted(by: { $0.offset < $1.offset }) {
            guard clear(to: chunk.offset) else { return false }
            from = chunk.offset &+ UInt64(ChunkHeader.crc &+ 4)
            guard clear(to: chunk.offset &+ UInt64(ChunkHeader.bytes)) else { return false }
            from = chunk.offset &+ UInt64(chunk.end)
        }
        return clear(to: .max)
    }

    /// CRASH: before the rename, a name that means nothing; the former journal is in place.
    private static func renewJournal(_ files: LaneFiles, _ held: Set<UInt64>) {
        func isWanted(_ frame: Journal.Frame) -> Bool {
            frame.kind == JournalFrame.kindCatalog || frame.kind == JournalFrame.kindLaneHeader
                || held.contains(frame.segment)
        }
        guard let journal = try? Journal(path: files.journalPath),
            !journal.frames.allSatisfy(isWanted)
        else { return }
        let path = files.directory + "/.\(files.lane).journal"
        let descriptor = Files.open(path, .newReadWrite)
        guard descriptor >= 0 else { return }
        defer { Files.close(descriptor) }
        guard journal.copy(to: descriptor, where: isWanted), Files.syncData(descriptor),
            Files.move(path, to: files.journalPath)
        else {
            Files.remove(path)
            return
        }
    }
}
