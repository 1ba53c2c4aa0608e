// The records of one lane in the order of FORMAT §4. Its segments are indexed when the merge comes
// near them; each thread's streams are merged by monotonic time, and within a stream the writer's
// order is kept. Reads while the writer runs, and resumes where it stopped after `refresh`. Reads
// only by pread (R11). One thread. SAFETY: nothing calls back while an unchecked property is used.

import CordwoodCore

package final class LaneSource: RecordSource {
    package let lane: String
    package let laneID: LaneID
    /// All damage found so far, cut at 1,000 places.
    @exclusivity(unchecked) package private(set) var damage: [String] = []
    /// Numbers of the segments that this source reads or has read.
    package private(set) var segmentNumbers: Set<UInt64> = []
    /// Segments that disappeared before they were read to the end: an archive holds them now.
    package private(set) var lostSegments: [UInt64] = []
    /// If a segment disappears while it is being read, no more records are returned while
    /// `isPaused`: the archive's share of the segment comes before the records that follow here.
    @exclusivity(unchecked) package var pausesAtLoss = false
    @exclusivity(unchecked) package var isPaused = false
    /// Whether unreported refused records become a gap at the end of the lane (FORMAT §3.2).
    package var reportsDrops: Bool
    /// Records before this monotonic time may be missing: they are not wanted.
    var startsAtNs: UInt64 = 0
    /// Following: records younger than this monotonic time wait for slower threads. nil: none do.
    @exclusivity(unchecked) package var holdAfter: UInt64?

    /// The next record's time, or an earlier one, if `holdAfter` holds it back.
    package var heldNs: UInt64? {
        guard let end = unsafe holdAfter, let next = unsafe heap.topKey else { return nil }
        return next > end ? next : nil
    }

    let context: LaneContext
    private let decoder: RecordDecoder
    private var range: ClosedRange<UInt64>?
    private var excluded: [ClosedRange<UInt64>] = []
    private let pool: OpenFiles
    /// Known but not indexed yet, the next one last: by the time of publishing, as a spare may be
    /// published after one that was made later.
    @exclusivity(unchecked) private(set) var waiting: [SegmentFile] = []
    /// Indexed, but still growing.
    private var growing: [SegmentFile] = []
    private var streams: [UInt64: StreamCursor] = [:]
    @exclusivity(unchecked) private var heap = MinHeap<StreamCursor>()
    private var parked: [StreamCursor] = []
    /// The record on top of the heap was given: its stream moves before the next one.
    private var isGiven = false
    private var threads: [UInt32: ThreadInfo] = [:]
    @exclusivity(unchecked) private var problems: [ReadProblem] = []
    /// Indexed chunk sequences, by thread.
    private var indexed: [UInt32: ChunkRuns] = [:]
    /// Records already returned from chunks in lost segments, by thread << 32 | chunk sequence.
    private var given: [UInt64: UInt32] = [:]
    private var gapsSeen: [UInt32: UInt64] = [:]
    private var chunkLoads: UInt64 = 0
    /// Total bytes of all chunks loaded.
    private(set) var chunkBytes: UInt64 = 0
    private var catalogAt: UInt64 = 0
    private var hasLostNames = false
    private static let readInVainMax: UInt64 = 64 << 20
    private var readInVain: UInt64 = 0
    private var lastClock: ClockTable?
    private var lastMonotonic: UInt64 = 0
    private var created: UInt64 = .max
    private var dropsTold = false

    /// False: deferred records keep their arguments and have no message.
    package var rendersText: Bool {
        get { decoder.text != nil }
        set { decoder.text = newValue ? DeferredText() : nil }
    }

    /// - Parameters:
    ///   - files: a listing. What was renamed since is found, what was added is not.
    ///   - segments: nil: everything that `archivedBelow` leaves.
    ///   - pool: what it shares with other sources of one reader.
    package convenience init(
        files: LaneFiles, segments: ClosedRange<UInt64>? = nil, runningBoot: LaneID? = nil
    ) throws(ReadProblem) {
        try self.init(files: files, segments: segments, runningBoot: runningBoot, pool: OpenFiles())
    }

    init(
        files: LaneFiles, segments: ClosedRange<UInt64>? = nil, runningBoot: LaneID? = nil,
        follows: Bool = false, pool: OpenFiles
    ) throws(ReadProblem) {
        lane = files.lane
        range = segments
        self.pool = pool
        reportsDrops = segments == nil
        context = try LaneContext(
            files: files, runningBoot: runningBoot ?? BootID.running(), alone: nil,
            readsFirst: segments?.contains(0) ?? true, follows: follows, pool: pool)
        laneID = context.process.laneID
        decoder = RecordDecoder(catalog: context.catalog)
        if let damage = context.damage { report(damage) }
        addSegments(files)
    }

    /// Reads one segment's file, and the lane file beside it if there is one.
    init(segment: LaneFiles.Segment, files: LaneFiles, runningBoot: LaneID?) throws(ReadProblem) {
        lane = files.lane
        reportsDrops = false
        let boot = runningBoot ?? BootID.running()
        pool = OpenFiles()
        let file = try ReadFile.segment(path: segment.path, pool: pool)
        let page = try file.copy(at: 0, count: SegmentHeader.bytes)
        // SAFETY: the head copies what it takes from `page`.
        let alone = try? unsafe SegmentHead(page.bytes, path: segment.path)
        context = try LaneContext(
            files: files, runningBoot: boot, alone: alone, readsFirst: false, follows: false,
            pool: pool)
        laneID = context.process.laneID
        decoder = RecordDecoder(catalog: context.catalog)
        range = segment.number...segment.number
        take(
            try SegmentFile(
                file: file, path: segment.path, base: 0, bytesMax: .max,
                sealedByName: segment.isSealed, number: segment.number, generation: nil,
                isOtherBoot: context.isOtherBoot, journal: context.journal))
    }

    package var process: ProcessInfo? { context.process }
    package var head: LaneHead? { context.head }
    package var isOtherBoot: Bool { context.isOtherBoot }
    package var createdMonotonicNs: UInt64 {
        created == .max ? context.process.createdMonotonic : created
    }

    // MARK: Segments

    private func addSegments(_ files: LaneFiles) {
        let below = context.head?.archivedBelow ?? 0
        let known = segmentNumbers
        func wanted(_ number: UInt64) -> Bool {
            number >= below && !known.contains(number)
                && !excluded.contains { $0.contains(number) }
                && (range?.contains(number) ?? true)
        }
        if let head = context.head, wanted(0) { openFirst(head) }
        for segment in files.segments where segment.number != 0 && wanted(segment.number) {
            open(segment)
        }
        var present = Set(files.segments.map(\.number)).subtracting(lostSegments)
        for frame in context.journal?.frames ?? []
        where frame.kind == JournalFrame.kindSegmentHeader && frame.segment != 0
            && wanted(frame.segment) && present.insert(frame.segment).inserted
        {
            openFromJournal(frame.segment)
        }
        unsafe waiting.sort {
            ($0.head.createdMonotonic, $0.number) > ($1.head.createdMonotonic, $1.number)
        }
    }

    private func openFirst(_ head: LaneHead) {
        let path = context.files.lanePath
        attempt {
            () throws(ReadProblem) in
            try SegmentFile(
                file: context.laneFile, path: path, base: head.segmentOffset,
                bytesMax: head.segmentBytes, sealedByName: false, number: 0, generation: 0,
                isOtherBoot: context.isOtherBoot, isOver: context.isOver,
                journal: context.journal)
        }
    }

    private func open(_ segment: LaneFiles.Segment) {
        do throws(ReadProblem) {
            var isSealed = segment.isSealed
            var path = segment.path
            var file = try openIfThere(path)
            if file == nil, !isSealed, path.lastName.hasSuffix(".seg") {
                // The segment was sealed after the listing.
                path = path.parent + "/\(path.lastName.dropLast(4)).sealed"
                isSealed = true
                file = try openIfThere(path)
            }
            guard let file else {
                guard !lostSegments.contains(segment.number) else { return }
                lostSegments.append(segment.number)
                if context.isOtherBoot, SegmentLink.target(path) != nil {
                    throw .damaged(
                        "\(path): was in memory, which the restart of the machine has emptied")
                }
                return
            }
            // The magic is stored last. A file without it is or was being made, or lost its blocks
            // in a power cut.
            if !isSealed, context.journal?.hasSegment(segment.number) != true {
                if try SegmentFile.isBeingMade(file) { return }
                if context.isOtherBoot,
                    try SegmentFile.isFromBefore(file, path, generation: segment.generation)
                {
                    return
                }
            }
            let made: SegmentFile
            do throws(ReadProblem) {
                made = try SegmentFile(
                    file: file, path: path, base: 0, bytesMax: .max, sealedByName: isSealed,
                    number: segment.number, generation: segment.generation,
                    isOtherBoot: context.isOtherBoot, journal: context.journal)
            } catch {
                if file.hasItsName { throw error }
                if !lostSegments.contains(segment.number) { lostSegments.append(segment.number) }
                return  // Used again since it was opened.
            }
            take(made)
        } catch {
            report(error)
        }
    }

    private func openFromJournal(_ number: UInt64) {
        attempt {
            () throws(ReadProblem) in
            try SegmentFile(
                file: nil, path: context.files.journalPath, base: 0, bytesMax: 0,
                sealedByName: false, number: number, generation: nil, isOtherBoot: true,
                journal: context.journal)
        }
    }

    private func attempt(_ make: () throws(ReadProblem) -> SegmentFile) {
        do throws(ReadProblem) { take(try make()) } catch { report(error) }
    }

    /// The path may change its meaning between two calls: a link may become a file. So the file is
    /// looked up two more times.
    private func openIfThere(_ path: FilePath) throws(ReadProblem) -> ReadFile? {
        for last in [false, false, true] {
            do throws(ReadProblem) {
                return try ReadFile.segment(path: path, pool: pool)
            } catch {
                guard case .system(_, 2) = error else { throw error }
                if last || !ReadFile.hasName(path) { return nil }
            }
        }
        return nil
    }

    private func take(_ segment: SegmentFile) {
        guard segment.head.laneID == laneID || context.head == nil else {
            report(.damaged("\(segment.path): segment of another lane"))
            return
        }
        unsafe waiting.append(segment)
        segmentNumbers.insert(segment.number)
        created = min(created, segment.head.createdMonotonic)
    }

    func noteLoad(_ bytes: Int) {
        chunkLoads &+= 1
        chunkBytes &+= UInt64(bytes)
        // A merge may have thousands of lanes open. A small one has nothing left to read.
        context.laneFile?.forgetAhead()
    }

    func report(_ problem: ReadProblem) {
        if unsafe problems.count < 1_000 { unsafe problems.append(problem) }
        guard unsafe damage.count < 1_000 else { return }
        switch problem {
        case .damaged(let text), .version(let text), .locked(let text): unsafe damage.append(text)
        case .system(let text, let number): unsafe damage.append("\(text): errno \(number)")
        }
    }

    /// Skips segments that an archive holds; call before the first `advance`.
    package func exclude(_ archived: ClosedRange<UInt64>, except kept: Set<UInt64> = []) {
        func isOut(_ number: UInt64) -> Bool { archived ~= number && !kept.contains(number) }
        unsafe waiting.removeAll { isOut($0.number) }
        segmentNumbers = segmentNumbers.filter { !isOut($0) }
        lostSegments.removeAll(where: isOut)
        // Those that are kept are known, so none is opened again.
        excluded.append(archived)
    }

    /// Counts missing segments of `expected` as lost; call before the first `advance`.
    package func miss(_ expected: Set<UInt64>) {
        lostSegments += expected.subtracting(segmentNumbers).sorted()
    }

    /// Whether this source has read or will read that segment to its end.
    package func owns(_ number: UInt64) -> Bool {
        segmentNumbers.contains(number) && !lostSegments.contains(number)
    }

    // MARK: Merge

    package func next(_ record: inout RecordRef) throws(ReadProblem) -> Bool {
        try moveGiven()
        while true {
            if unsafe !problems.isEmpty { throw unsafe problems.removeFirst() }
            if unsafe !waiting.isEmpty, try indexNext() { continue }
            if unsafe isPaused { return false }
            guard let stream = unsafe heap.top else { return try drops(&record) }
            if let holdAfter = unsafe holdAfter, unsafe heap.entries[0].key > holdAfter {
                return false
            }
            if stream.mustMove {
                // Its chunk was not loaded yet, or may have grown; now the true time decides.
                try move(stream)
                continue
            }
            isGiven = true
            try stream.restore(in: self)
            guard stream.hasRecord else {
                isGiven = false
                continue
            }
            stream.hasRecord = false
            let mayPassOver = stream.mayPassOver
            var isPassedOver = mayPassOver ? try stream.isCutOff() : false
            if !isPassedOver {
                give(stream, &record)
                if decoder.hasMissed, context.isGone, let segment = stream.segment {
                    // An archive has the record with its names.
                    (stream.hasRecord, isGiven) = (true, false)
                    lose(segment)
                    try move(stream)
                    continue
                }
                isPassedOver = mayPassOver && stream.passesOver(record)
            }
            if !isPassedOver { return true }
            isGiven = false
            try move(stream)
        }
    }

    private func moveGiven() throws(ReadProblem) {
        guard isGiven else { return }
        isGiven = false
        if let stream = unsafe heap.top { try move(stream) }
    }

    /// Indexes the next waiting segment if the merge is near: clocks differ by far less than 1 s.
    private func indexNext() throws(ReadProblem) -> Bool {
        guard let segment = unsafe waiting.last else { return false }
        let reach = unsafe heap.topKey?.addingReportingOverflow(1_000_000_000)
        if let reach, !reach.overflow, reach.partialValue < segment.head.createdMonotonic {
            return false
        }
        unsafe waiting.removeLast()
        try index(segment)
        return true
    }

    private func index(_ segment: SegmentFile) throws(ReadProblem) {
        guard try segment.refresh() else { return lose(segment) }
        let isMapped = !(context.head?.isWritten ?? true)
        if let text = try segment.cutOff(isMapped: isMapped) { report(.damaged(text)) }
        try takeChunks(of: segment)
    }

    private func takeChunks(of segment: SegmentFile) throws(ReadProblem) {
        let fresh = try segment.takeChunks()
        if segment.isLost { return lose(segment) }
        if let text = segment.sealedProblem() { report(.damaged(text)) }
        lastClock = unsafe segment.clock
        for chunk in fresh.sorted(by: { $0.sequence < $1.sequence }) {
            let key = UInt64(chunk.threadSerial) << 8 | UInt64(chunk.stream)
            indexed[chunk.threadSerial, default: ChunkRuns()].insert(chunk.sequence)
            if let stream = streams[key] {
                stream.enqueue(segment, chunk)
            } else {
                let stream = StreamCursor(
                    serial: chunk.threadSerial, stream: chunk.stream, thread: thread(chunk))
                stream.enqueue(segment, chunk)
                streams[key] = stream
                unsafe heap.push(stream.bound, stream.tie, stream)
            }
        }
        if !segment.isComplete { growing.append(segment) }
        for stream in parked where stream.hasQueued {
            stream.mustMove = true
            unsafe heap.push(stream.bound, stream.tie, stream)
        }
        parked.removeAll { $0.mustMove }
    }

    /// Moves the stream on top of the heap, and updates the heap.
    private func move(_ stream: StreamCursor) throws(ReadProblem) {
        stream.mustMove = false
        while true {
            let step: StreamCursor.Step
            do throws(ReadProblem) {
                step = try stream.step(in: self)
            } catch {
                unsafe heap.pop()
                stream.mustMove = stream.hasQueued
                if stream.mustMove {
                    unsafe heap.push(stream.bound, stream.tie, stream)
                } else {
                    parked.append(stream)
                }
                throw error
            }
            switch step {
            case .record:
                unsafe heap.rekeyTop(stream.monotonic)
                if stream.isLarge, unsafe heap.top !== stream { stream.evict() }
                return
            case .damaged(let text):
                report(.damaged(text))
            case .end:
                stream.mustMove = stream.hasQueued
                if stream.mustMove { return }
                unsafe heap.pop()
                if stream.isIdle { streams[stream.tie] = nil } else { parked.append(stream) }
                stream.evict()
                return
            }
        }
    }

    private func give(_ stream: StreamCursor, _ record: inout RecordRef) {
        decoder.decode(stream, into: &record)
        if decoder.hasMissed, catalogAt < chunkLoads {
            catalogAt = chunkLoads
            if readCatalogAgain() { decoder.decode(stream, into: &record) }
            if decoder.hasMissed { tellLostNames() }
        }
        if record.kind == RecordRef.gapKind, let gap = decoder.gapCounted(stream) {
            gapsSeen[gap.slot] = max(gapsSeen[gap.slot] ?? 0, gap.to)
        }
        lastMonotonic = max(lastMonotonic, record.monotonicNs)
    }

    /// Names are written before the first record that refers to them, so a missing name means that
    /// a file of names was cut or is gone.
    private func tellLostNames() {
        guard !hasLostNames, context.head != nil, !context.isOtherBoot, !context.isGone else {
            return
        }
        hasLostNames = true
        report(.damaged("\(context.files.lanePath): names or attributes are lost"))
    }

    /// The name may have been added since. A name that never appears would cause a read of the
    /// whole catalog for each chunk, so the amount read in vain is kept in proportion to the number
    /// of records.
    private func readCatalogAgain() -> Bool {
        guard readInVain <= LaneSource.readInVainMax &+ chunkBytes &* 4 else { return false }
        let (before, inVain) = (context.catalog.changes, readInVain)
        do throws(ReadProblem) { readInVain &+= try context.readCatalog() } catch { report(error) }
        guard context.catalog.changes != before else { return false }
        readInVain = inVain
        return true
    }

    /// The chunk's thread, with the attributes that its records have.
    func thread(_ chunk: ChunkHead) -> ThreadInfo {
        let name = chunk.threadName
        let process = process(chunk.resource) ?? context.unknownProcess
        if let known = threads[chunk.threadSerial], known.threadID == chunk.threadID,
            known.name == name, known.process === process
        {
            return known
        }
        let made = ThreadInfo(
            process: process, serial: chunk.threadSerial, threadID: chunk.threadID, name: name)
        threads[chunk.threadSerial] = made
        return made
    }

    /// nil: a change that led to that version is lost.
    private func process(_ version: UInt16) -> ProcessInfo? {
        if let known = context.process(version) { return known }
        // The entry is written before the chunk, so it may be younger than our catalog.
        if readCatalogAgain(), let known = context.process(version) { return known }
        tellLostNames()
        return nil
    }

    /// Whether the attributes of the chunk's records are lost.
    func hasLostResource(_ chunk: ChunkHead) -> Bool { context.process(chunk.resource) == nil }

    private func drops(_ record: inout RecordRef) throws(ReadProblem) -> Bool {
        guard reportsDrops, !dropsTold, !segmentNumbers.isEmpty else { return false }
        dropsTold = true
        let drops = try context.unreportedDrops(seen: gapsSeen)
        guard !drops.runs.isEmpty else { return false }
        let process = context.process
        record = RecordRef(
            thread: ThreadInfo(
                process: process, serial: 0, threadID: process.processID, name: ""))
        func utc(_ monotonic: UInt64) -> UInt64 {
            lastClock?.realtime(ofMonotonic: monotonic)
                ?? monotonic &+ (process.createdRealtime &- process.createdMonotonic)
        }
        record.monotonicNs = max(drops.lastMonotonic, lastMonotonic)
        record.writtenNs = utc(record.monotonicNs)
        record.timeNs = record.writtenNs
        record.sequence = drops.sequence
        Gap(
            runs: drops.runs, first: utc(drops.firstMonotonic), last: utc(drops.lastMonotonic),
            causes: drops.causes
        ).show(in: &record, decoder.scratch)
        return true
    }

    // MARK: Following

    /// Picks up what was committed, claimed or sealed since; returns no record twice. `files`: a
    /// fresh listing; nil makes one. Invalidates the record that `advance` returned.
    package func refresh(files: LaneFiles? = nil) throws(ReadProblem) {
        let store = context.files.directory.parent
        var listed = files
        if listed == nil {
            let all = try LaneFiles.list(store: store)
            listed = all.first { $0.lane == lane }
        }
        try context.refresh()
        unsafe isPaused = false
        if let listed { addSegments(listed) }
        try moveGiven()
        let all = growing
        growing = []
        for segment in all {
            guard try segment.refresh() else {
                lose(segment)
                continue
            }
            try takeChunks(of: segment)
        }
        for stream in parked {
            stream.mustMove = true
            unsafe heap.push(0, stream.tie, stream)
        }
        parked = []
    }

    /// Following from the end: skips everything that exists now.
    package func skipAll() throws(ReadProblem) {
        for segment in unsafe waiting where !segment.isSealed { try index(segment) }
        unsafe waiting = []
        for stream in streams.values {
            stream.keepLastChunk()
            while true {
                if case .end = try stream.step(in: self) { break }
            }
            stream.mustMove = false
            stream.evict()
        }
        unsafe heap = MinHeap()
        parked = Array(streams.values)
    }

    /// Whether this source has returned that record, or will.
    package func covers(thread serial: UInt32, sequence: UInt64) -> Bool {
        let chunk = UInt32(truncatingIfNeeded: sequence >> 32)
        if let count = given[UInt64(serial) << 32 | UInt64(chunk)] {
            return UInt32(truncatingIfNeeded: sequence) < count
        }
        return indexed[serial]?.contains(chunk) ?? false
    }

    /// Whether that archived record was already returned from a chunk that was settled short of it.
    package func passesOver(_ record: borrowing RecordRef) -> Bool {
        let digest = record.digest
        for stream in streams.values where stream.serial == record.thread.serial {
            if stream.passesOver(archived: record.sequence, digest) { return true }
        }
        return false
    }

    /// Leaves the rest of the segments up to that number to archives.
    package func cede(through last: UInt64) {
        let ceded = unsafe waiting.filter { $0.number <= last }.map(\.number)
        unsafe waiting.removeAll { $0.number <= last }
        segmentNumbers.subtract(ceded)
        excluded += ceded.map { $0...$0 }
        for segment in growing + streams.values.flatMap(\.segments) where segment.number <= last {
            drop(segment)
        }
    }

    func lose(_ segment: SegmentFile, chunk sequence: UInt32, of stream: StreamCursor) {
        given[UInt64(stream.serial) << 32 | UInt64(sequence)] = 0
        lose(segment)
    }

    func lose(_ segment: SegmentFile) { if drop(segment) { unsafe isPaused = unsafe pausesAtLoss } }

    @discardableResult
    private func drop(_ segment: SegmentFile) -> Bool {
        guard !lostSegments.contains(segment.number) else { return false }
        lostSegments.append(segment.number)
        growing.removeAll { $0 === segment }
        for stream in streams.values {
            stream.forget(segment) { sequence, count in
                self.given[UInt64(stream.serial) << 32 | UInt64(sequence)] = count
            }
        }
        return true
    }
}
