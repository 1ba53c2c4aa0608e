// What all segments of a lane share when they are read: identity, catalog, drop counts and, after
// another boot, the journal. Reads the lane file itself; a segment without a lane file is read with
// an empty context.
// SAFETY: every view is of a ReadBuffer that a variable holds, and none is kept: the catalog copies
// its names.

import CordwoodCore

final class LaneContext {
    let files: LaneFiles
    private(set) var head: LaneHead?
    let laneFile: ReadFile?
    let catalog = Catalog()
    let journal: Journal?
    /// With the newest attributes.
    private(set) var process: ProcessInfo
    /// By version of the attributes.
    private var processes: [UInt16: ProcessInfo] = [:]
    private static let processesMax = 256
    /// The machine went down since: only durable data is trusted (FORMAT §9).
    let isOtherBoot: Bool
    /// Segment 0 is read, and nobody changes it any more.
    let isOver: Bool
    /// Likewise: there was no refused record, so there is no need to look again.
    private let hasNoDrops: Bool
    /// The lane file's header or catalog has changed, and no power cut explains it.
    private(set) var damage: ReadProblem?

    /// readsFirst: segment 0 is read. follows: and what is appended to it later.
    init(
        files: LaneFiles, runningBoot: LaneID, alone: SegmentHead?, readsFirst: Bool,
        follows: Bool, pool: OpenFiles
    ) throws(ReadProblem) {
        self.files = files
        var file: ReadFile?
        var head: LaneHead?
        var broken: ReadProblem?
        do throws(ReadProblem) {
            file = try ReadFile(path: files.lanePath, pool: pool)
            if let file {
                let page = try file.copy(at: 0, count: LaneHeader.dropsOffsetValue)
                head = unsafe try LaneHead(page.bytes, path: files.lanePath)
            }
        } catch {
            if case .version = error { throw error }
            if error.isForLack { throw error }
            broken = error
        }
        var alone = alone
        var boot = head?.bootID ?? alone?.bootID ?? .zero
        let differs = boot != .zero && runningBoot != .zero && boot != runningBoot
        let journal =
            differs || head == nil ? try LaneContext.journal(files.journalPath, pool) : nil
        if head == nil, let journal { head = try LaneContext.savedHead(journal, files) }
        if head == nil, alone == nil, let broken {
            // The header was lost in a power cut: the segments can still be read without names.
            alone = try LaneContext.firstHead(files)
            if alone == nil { throw broken }
        }
        boot = head?.bootID ?? alone?.bootID ?? .zero
        laneFile = file
        let known = head?.bootID ?? boot
        isOtherBoot = known != .zero && runningBoot != .zero && known != runningBoot
        self.journal = isOtherBoot ? journal : nil
        self.head = head
        isOver =
            readsFirst && !isOtherBoot && journal == nil && head?.archivedBelow == 0
            && LaneContext.isOver(head, file, follows ? .zero : runningBoot)
        hasNoDrops = isOver && LaneContext.readAhead(head, file)
        if !isOtherBoot { damage = broken ?? LaneContext.cutOff(head, file, files.lanePath) }
        process = LaneContext.process(head, alone, files.lane, [])
        try readCatalog(upTo: files.catalogs.map { $0.last ?? 0 } ?? CatalogHeader.filesMax)
    }

    /// Returns nil for a journal that does not exist or is not ours. Throws if the process lacks
    /// descriptors or memory to open it: it may hold what the lane's file has lost.
    private static func journal(
        _ path: FilePath, _ pool: OpenFiles
    ) throws(ReadProblem) -> Journal? {
        do throws(ReadProblem) { return try Journal(path: path, pool: pool) } catch {
            if error.isForLack { throw error }
            return nil
        }
    }

    /// The journal's copy of the lane's header; nil if it is missing or unreadable. Throws if the
    /// process lacks memory to read it.
    private static func savedHead(
        _ journal: Journal, _ files: LaneFiles
    ) throws(ReadProblem) -> LaneHead? {
        do throws(ReadProblem) {
            guard
                let saved = try journal.header(kind: JournalFrame.kindLaneHeader, segment: 0)
            else { return nil }
            // SAFETY: the head copies what it takes from `saved`.
            return try unsafe LaneHead(saved.bytes, path: files.journalPath)
        } catch {
            if error.isForLack { throw error }
            return nil
        }
    }

    /// A copy of the process that nobody told of its birth (raw clone(2)) may go on after the
    /// process, so of a boot that is not known only closed lanes are over. In a lane that was
    /// closed early (EarlyClose.swift), helpers may still seal, archive and overwrite segment 0.
    /// The state is stored last, so whatever is read after it is whole.
    private static func isOver(
        _ head: LaneHead?, _ file: ReadFile?, _ runningBoot: LaneID
    ) -> Bool {
        guard let head, let file else { return false }
        if head.isLetGo {
            let at = head.segmentOffset &+ UInt64(SegmentHeader.state)
            let state = try? file.copy(at: at, count: 4)
            if let state, unsafe Bytes.u32(state.bytes, 0) == SegmentHeader.stateSealed {
                return true
            }
        }
        return head.hasEnded(runningBoot: runningBoot)
    }

    /// Of a small lane that nobody changes any more, one read takes the drop slots, the names, and
    /// segment 0 with what a brief process leaves in it. True: no record was refused.
    private static func readAhead(_ head: LaneHead?, _ file: ReadFile?) -> Bool {
        guard let head, let file else { return false }
        let from = LaneHeader.dropsOffsetValue
        do throws(ReadProblem) {
            try file.readAhead(at: UInt64(from), count: smallBytes &- from)
            let slots = try file.copy(
                at: UInt64(head.dropsOffset), count: head.dropsCount &* DropSlot.bytes)
            return (0..<head.dropsCount).allSatisfy {
                unsafe Bytes.u64(slots.bytes, $0 &* DropSlot.bytes &+ DropSlot.dropped) == 0
            }
        } catch {
            return false  // It is reported where it is needed.
        }
    }

    static let smallBytes = LaneHeader.segmentOffsetValue &+ SegmentHeader.bytes &+ 2_048

    /// A mapped lane file has its full catalog region from the start; segment 0 follows it.
    private static func cutOff(_ head: LaneHead?, _ file: ReadFile?, _ path: FilePath)
        -> ReadProblem?
    {
        guard let head, let file, !head.isWritten else { return nil }
        let end = UInt64(head.catalogOffset) + UInt64(head.catalogBytes)
        let size = file.size(reaching: end)
        return size < end ? .damaged("\(path): cut off at \(size), and names with it") : nil
    }

    /// Returns nil if no segment has a header. Throws if the process lacks descriptors or memory to
    /// read one, because that one may have it.
    private static func firstHead(_ files: LaneFiles) throws(ReadProblem) -> SegmentHead? {
        for segment in files.segments {
            do throws(ReadProblem) {
                let page = try ReadFile(path: segment.path).copy(at: 0, count: SegmentHeader.bytes)
                // SAFETY: the head copies what it takes from `page`.
                return try unsafe SegmentHead(page.bytes, path: segment.path)
            } catch {
                if error.isForLack { throw error }
            }
        }
        return nil
    }

    static func process(
        _ head: LaneHead?, _ alone: SegmentHead?, _ lane: String,
        _ resource: [(key: String, value: String)]
    ) -> ProcessInfo {
        ProcessInfo(
            laneID: head?.laneID ?? alone?.laneID ?? .zero,
            bootID: head?.bootID ?? alone?.bootID ?? .zero,
            processID: head?.processID ?? processID(ofLane: lane), name: head?.processName ?? "",
            createdRealtime: head?.createdRealtime ?? 0,
            createdMonotonic: head?.createdMonotonic ?? 0, resource: resource)
    }

    private static func processID(ofLane name: String) -> UInt32 {
        let parts = name.split(separator: "-")
        return parts.count >= 2 ? UInt32(parts[1]) ?? 0 : 0
    }

    /// No writer makes a growth file larger than one entry of 16 MiB and a page (FORMAT §5).
    private static let growthBytesMax = UInt64(CatalogEntry.lengthMax) + 8_192

    /// Adds the current content of the catalog; returns the number of bytes read. Throws if the
    /// process lacks what reading a file of names needs: an archive would miss the names for good.
    /// upTo: the last growth file that may exist.
    @discardableResult
    func readCatalog(upTo last: Int = CatalogHeader.filesMax) throws(ReadProblem) -> UInt64 {
        guard let head else { return 0 }
        var bytesRead: UInt64 = 0
        if let laneFile {
            let region = try laneFile.copy(
                at: UInt64(head.catalogOffset), count: head.catalogBytes)
            unsafe catalog.read(region: region.bytes, salt: head.salt)
            bytesRead &+= UInt64(region.count)
        }
        for k in stride(from: 1, through: last, by: 1) {
            guard let file = try growthFile(k) else { break }
            let all = try file.copy(
                at: 0, count: Int(min(file.size, LaneContext.growthBytesMax)))
            bytesRead &+= UInt64(all.count)
            guard unsafe Bytes.u64(all.bytes, CatalogHeader.magic) == CatalogHeader.magicValue,
                unsafe Bytes.u32(all.bytes, CatalogHeader.version) <= FormatVersion.current,
                let region = unsafe Bytes.slice(
                    all.bytes, CatalogHeader.bytes, all.count &- CatalogHeader.bytes)
            else { continue }
            catalog.read(region: region, salt: head.salt)
        }
        if let journal {
            for frame in journal.frames where frame.kind == JournalFrame.kindCatalog {
                let region = try journal.content(frame)
                unsafe catalog.read(region: region.bytes, salt: head.salt)
            }
        }
        if catalog.redefinitions != seen.redefinitions { processes = [:] }
        if seen != (catalog.resourceVersion, catalog.redefinitions) {
            seen = (catalog.resourceVersion, catalog.redefinitions)
            let now = catalog.resource(catalog.resourceVersion) ?? []
            process = LaneContext.process(head, nil, files.lane, now)
        }
        return bytesRead
    }

    /// The lane's file was removed while it was closed.
    var isGone: Bool { laneFile?.isGone ?? false }

    /// What the catalog had when `process` was made.
    private var seen = (version: 0, redefinitions: 0)

    /// The process with its attributes as of that version. nil: the catalog does not know them
    /// (yet).
    func process(_ version: UInt16) -> ProcessInfo? {
        if let known = processes[version] { return known }
        guard let head else { return process }
        guard let resource = catalog.resource(Int(version)) else { return nil }
        let made = LaneContext.process(head, nil, files.lane, resource)
        if processes.count >= LaneContext.processesMax { processes = [:] }
        processes[version] = made
        return made
    }

    /// The process of records whose attributes are lost.
    private(set) lazy var unknownProcess = LaneContext.process(head, nil, files.lane, [])

    /// Returns nil for a file that does not exist, as is usual, or that cannot be opened, which is
    /// reported.
    private func growthFile(_ k: Int) throws(ReadProblem) -> ReadFile? {
        do throws(ReadProblem) {
            return try ReadFile(path: files.directory + "/\(files.lane).catalog-\(k)")
        } catch {
            if error.isForLack { throw error }
            if case .system(let what, let number) = error, number != Errno.ENOENT, !isOtherBoot {
                damage = damage ?? .damaged("\(what): \(Errno.text(number))")
            }
            return nil
        }
    }

    /// Reads the lane header again (`archivedBelow`, `closed`).
    func refresh() throws(ReadProblem) {
        guard let laneFile, journal == nil else { return }
        let page = try laneFile.copy(at: 0, count: LaneHeader.dropsOffsetValue)
        if let now = try? unsafe LaneHead(page.bytes, path: files.lanePath), now.salt == head?.salt
        {
            head = now
        }
    }

    struct Drops {
        var runs: [Gap.Run] = []
        var firstMonotonic: UInt64 = .max
        var lastMonotonic: UInt64 = 0
        var causes: UInt64 = 0
        /// Totals of all slots: refused records, and those reported by gap records.
        var dropped: UInt64 = 0
        var reported: UInt64 = 0

        var count: UInt64 { Gap.count(runs) }

        /// FORMAT §3.2: each report has a different sequence.
        var sequence: UInt64 {
            UInt64(UInt32(truncatingIfNeeded: reported)) << 32
                | UInt64(UInt32(truncatingIfNeeded: dropped))
        }
    }

    /// Refused records that no gap record reports (FORMAT §3.2). `seen`: largest `to` by slot.
    func unreportedDrops(seen: [UInt32: UInt64]) throws(ReadProblem) -> Drops {
        var drops = Drops()
        guard let laneFile, let head, !hasNoDrops else { return drops }
        let slots = try laneFile.copy(
            at: UInt64(head.dropsOffset), count: head.dropsCount &* DropSlot.bytes)
        for index in 0..<head.dropsCount {
            let at = index &* DropSlot.bytes
            let dropped = unsafe Bytes.u64(slots.bytes, at &+ DropSlot.dropped)
            let reported = unsafe max(
                Bytes.u64(slots.bytes, at &+ DropSlot.reported), seen[UInt32(index)] ?? 0)
            drops.dropped &+= dropped
            drops.reported &+= reported
            guard dropped > reported else { continue }
            drops.runs.append(Gap.Run(slot: UInt32(index), from: reported, to: dropped))
            unsafe drops.causes |= Bytes.u64(slots.bytes, at &+ DropSlot.causes)
            let first = unsafe Bytes.u64(slots.bytes, at &+ DropSlot.firstMonotonic)
            let last = unsafe Bytes.u64(slots.bytes, at &+ DropSlot.lastMonotonic)
            drops.firstMonotonic = min(drops.firstMonotonic, first)
            drops.lastMonotonic = max(drops.lastMonotonic, last)
        }
        return drops
    }
}
