// A cursor over stores and single files, merged by time; within a thread the order is exact. Runs
// beside writers and archivers without affecting them. One thread at a time.

import CordwoodCore

public enum ReadStatus: Sendable {
    case record
    /// No more records; never returned while following.
    case end
    /// Following, and there is nothing now: call again after `wait`.
    case again
}

public final class StoreReader {
    /// Problems kept as text; the rest are only counted.
    private static let problemsMax = 1_000

    public let options: ReaderOptions
    /// Problems found, in order. Iteration continued after each.
    public private(set) var problems: [ReadProblem] = []
    public private(set) var problemCount = 0
    /// Records shown that no sync had covered before the machine went down.
    public private(set) var unverifiedCount = 0

    /// Called now and then with the number of records looked at, including those that the filter
    /// leaves out.
    package var onProgress: ((_ records: UInt64) -> Void)?
    private static let progressStep: UInt64 = 16_384

    private let paths: [FilePath]
    private let runningBoot: LaneID
    private let asked: QueryPlan
    /// A record that is returned whatever the filter says.
    private let apart: RecordID?
    private var watch: DirectoryWatch?
    private let sourceOptions: ReaderOptions
    /// Makes the texts of returned records; sources make none.
    private let text: DeferredText?
    /// The filter needs a record's text, so it is made first.
    private let asksText: Bool
    private let shownSearch: (text: TextSearch, fields: FieldSearch)?
    private let printer = NumberPrinter()
    private var merge = MergeSource()
    private var views: [StoreView] = []
    /// With `ReaderOptions.last`: a record of a single file has the same ordering time, whatever is
    /// read first.
    private var filesArePlaced = true
    private var singleArchives: [ArchiveInfo] = []
    /// Reported by the next `advance`. Here and below: one thread at a time and no callbacks, so
    /// accesses need no check.
    @exclusivity(unchecked) private var pending: ArraySlice<ReadProblem> = []
    /// With `ReaderOptions.last`: the records to return, once they have been found.
    @exclusivity(unchecked) private var kept: KeptRecords
    private var isGathered: Bool
    /// Without order: damage found, reported after the records, in the order of an ordered read.
    private var delayed: [(place: MergePlace, problem: ReadProblem)] = []
    /// Where an ordered read would have returned the last record.
    var place: MergePlace { merge.place }
    /// Asked now and then; true: the read ends as if there were no more records.
    package var shouldStop: (() -> Bool)?
    package private(set) var isStopped = false
    /// With `ReaderOptions.last`: receives every matching record if finding the last ones takes
    /// reading all of the stores. The last ones are returned after that.
    package var onMatch: ((borrowing RecordRef) -> Void)?
    /// `onMatch` has received all of them.
    package private(set) var hasMatchedAll = false
    /// With `ReaderOptions.last` or `window`: receives records to return, newest first, as soon as
    /// they are certain, while older ones are searched. `isLast`: the last one that is certain now.
    /// They are returned nevertheless.
    package var onCertain: ((borrowing RecordRef, _ isLast: Bool) -> Void)?
    /// The oldest record that `onCertain` has received.
    private var certain: RecordID?
    /// With `ReaderOptions.window`: how many records may still follow; nil: all.
    @exclusivity(unchecked) private var windowLeft: Int?
    /// With `ReaderOptions.isPage`: the requested records were too large together, so older ones
    /// are missing.
    package private(set) var isCut = false
    /// The window's record is not in the stores.
    package private(set) var isMissing = false
    /// Records looked at so far.
    package var looked: UInt64 { unsafe given &+ passed.count }
    /// Of these, the records that were made. `passed` counts the rows that were not.
    @exclusivity(unchecked) package private(set) var given: UInt64 = 0
    private let passed = PassedRows()
    @exclusivity(unchecked) private var toldNext = StoreReader.progressStep
    /// The source of the next records, bypassing `merge`; nil: they come from `merge`.
    @exclusivity(unchecked) private var run: RecordRun?
    /// Records may be taken in runs: each is returned as soon as it is read.
    private let mayRun: Bool
    /// Every record is returned.
    private let isUnfiltered: Bool
    private let takesAllOrigins: Bool
    /// A program's messages are never left out.
    private let mayGiveTexts: Bool

    /// Store directories or single files (.cwa, .seg, .sealed, .lane), in any mix. Throws if one of
    /// them does not exist, is not one of our files, or has a newer format.
    public convenience init(
        paths: [String], options: ReaderOptions = ReaderOptions(), runningBoot: LaneID? = nil
    ) throws(ReadProblem) {
        try self.init(
            paths.map { FilePath(opening: $0) }, options: options, runningBoot: runningBoot)
    }

    /// The same. An open directory is followed wherever it is moved.
    package init(
        _ paths: [FilePath], options: ReaderOptions = ReaderOptions(), runningBoot: LaneID? = nil
    ) throws(ReadProblem) {
        self.options = options.narrowed
        self.paths = paths
        self.runningBoot = runningBoot ?? BootID.running()
        asked = options.plan
        apart = options.window.flatMap { $0.isApart ? $0.id : nil }
        shownSearch = options.shownSearch
        asksText = asked.needsText || shownSearch != nil
        text = options.rendersText || asksText ? DeferredText() : nil
        isUnfiltered = options.takesAll && !asksText
        takesAllOrigins = options.origin.takesAll
        mayRun = !options.follow && !options.looksBack && !options.isUnordered
        mayGiveTexts = mayRun && takesAllOrigins && !asksText && asked.takesMessages
        var inner = options.ofSources
        inner.rendersText = false
        inner.passed = passed
        if options.readsAhead { inner.ahead = ReadAhead() }
        inner.room = options.room ?? BlockRoom(isBrief: options.isBrief || options.looksBack)
        sourceOptions = inner
        unsafe kept = KeptRecords(
            limit: options.window.map { $0.before &+ 1 } ?? options.last,
            bytesMax: options.keptBytesMax)
        unsafe windowLeft = options.window?.after
        isGathered = !options.looksBack
        unsafe passed.shouldStop = { [unowned self] in
            if !isStopped, mayStop() { isStopped = true }
            return isStopped
        }
        try open()
    }

    deinit { sourceOptions.ahead?.stop() }

    /// Reports progress; true: the read is to end.
    private func mayStop() -> Bool {
        if unsafe looked >= toldNext {
            unsafe toldNext = looked &+ StoreReader.progressStep
            onProgress?(looked)
        }
        return shouldStop?() ?? false
    }

    private func open() throws(ReadProblem) {
        views = []
        filesArePlaced = true
        singleArchives = []
        unsafe pending = []
        merge = MergeSource()
        merge.isOrdered = !options.isUnordered || options.follow || options.looksBack
        merge.onEnd = { [weak self] source in
            for view in self?.views ?? [] { view.ended(source) }
        }
        var files: [(archive: ArchiveSource, order: UInt64)] = []
        for (index, path) in paths.enumerated() {
            let order = UInt64(index) << 52
            if StoreFolder.isDirectory(path) {
                views.append(
                    try StoreView(
                        path: path, options: sourceOptions, merge: merge, order: order,
                        runningBoot: runningBoot
                    ) { [weak self] problem in
                        unsafe self?.pending.append(problem)
                    })
            } else if Self.isOfLane(path) {
                let lane = try SegmentFileSource.open(path: path, runningBoot: runningBoot)
                lane.rendersText = false
                learn(lane, path)
                merge.add(MergeInput(lowerBound: 0, order: order) { lane })
            } else {
                let archive = try ArchiveSource.open(
                    path: path, identities: options.identities, files: sourceOptions.room?.files)
                // Of many files, few stay open.
                archive.room = sourceOptions.room
                learn(archive, path)
                singleArchives.append(archive.info)
                files.append((archive, order))
            }
        }
        var overlaps = LaneOverlaps(
            views.flatMap(\.found) + singleArchives, lanes: Set(views.flatMap(\.foundLanes)),
            options.identities)
        for view in views { view.settle(&overlaps) }
        let seen = overlaps.makeSeen(isOrdered: merge.isOrdered)
        // Ids of records that several files have are forgotten as the merge goes on, in order.
        if seen != nil { filesArePlaced = false }
        for view in views { view.begin(overlaps, seen) }
        for file in files { add(file.archive, file.order, overlaps, seen) }
    }

    public convenience init(
        path: String, options: ReaderOptions = ReaderOptions(), runningBoot: LaneID? = nil
    ) throws(ReadProblem) {
        try self.init(paths: [path], options: options, runningBoot: runningBoot)
    }

    /// The archives that existed at the start, and the paths of those that cannot be opened.
    package var archives: (opened: [ArchiveInfo], others: [FilePath]) {
        (
            views.flatMap(\.archives.opened) + singleArchives,
            views.flatMap(\.archives.others)
        )
    }

    private static func isOfLane(_ path: FilePath) -> Bool {
        [".seg", ".sealed", ".lane"].contains { path.lastName.hasSuffix($0) }
    }

    private func learn(_ source: any RecordSource, _ path: FilePath) {
        if let process = source.process {
            merge.learn(process, lane: "\(path)")
        } else {
            filesArePlaced = false
        }
    }

    private func add(
        _ archive: ArchiveSource, _ order: UInt64, _ overlaps: LaneOverlaps, _ seen: RecordsSeen?
    ) {
        let info = archive.info
        if overlaps.contained.contains(info.path) { return }
        var source: any RecordSource = archive
        let isShared = overlaps.isShared(info)
        ArchiveShelf.prepare(archive, isShared ? sourceOptions.unfiltered : sourceOptions)
        if let seen, isShared {
            // Some of its records may be returned from another file.
            archive.tally = nil
            filesArePlaced = false
            source = UnionSource(seen, [(ChainSource([{ archive }]), [])])
        }
        if info.covers.count > 1 { filesArePlaced = false }
        merge.add(MergeInput(lowerBound: 0, order: order) { source })
    }

    /// The next record that passes the filter; nil at the end, or while following when there is
    /// nothing now. Throws once per damaged place: call again for the records after it. The
    /// record's bytes stay valid until the next call.
    public func advance() throws(ReadProblem) -> RecordRef? {
        var record = RecordRef()
        return try advance(into: &record) ? record : nil
    }

    /// The same, into the caller's record, which copies less. False: the end, or nothing now; the
    /// content of `record` is then undefined.
    package func advance(into record: inout RecordRef) throws(ReadProblem) -> Bool {
        if unsafe run != nil, goOn(&record) {
            if record.flags.contains(.unverified) { unverifiedCount &+= 1 }
            return true
        }
        do throws(ReadProblem) {
            guard try step(&record) else { return false }
            if record.flags.contains(.unverified) { unverifiedCount &+= 1 }
            return true
        } catch {
            throw note(error)
        }
    }

    /// The messages of the next records, each followed by a newline, if they lie one after another
    /// in one block and have no sections; nil: `advance` returns the next record. Valid until the
    /// next call.
    @safe package func nextTexts() -> UnsafeRawBufferPointer? {
        guard mayGiveTexts, let texts = unsafe run?.texts() else { return nil }
        unsafe given &+= UInt64(texts.count)
        return texts.bytes
    }

    /// The next record, of this run or a later one, that passes the filter; false: the merge has
    /// the next record.
    @inline(__always)
    private func goOn(_ record: inout RecordRef) -> Bool {
        while true {
            while unsafe run!.next(&record) {
                unsafe given &+= 1
                if isUnfiltered || passes(&record) {
                    if !asksText { text?.render(&record) }
                    return true
                }
                if endsRun() { return false }
            }
            unsafe run = merge.run(after: run!)
            if unsafe run == nil { return false }
        }
    }

    /// Reports progress; true: the read must end. A separate function, like `passes`, so that reads
    /// without a filter do not pay for it.
    @inline(never)
    private func endsRun() -> Bool {
        guard unsafe looked >= toldNext, mayStop() else { return false }
        isStopped = true
        unsafe run = nil
        return true
    }

    private func step(_ record: inout RecordRef) throws(ReadProblem) -> Bool {
        if !isGathered {
            isGathered = true
            if let window = options.window { gather(window) } else { gather() }
        }
        if unsafe !pending.isEmpty { throw unsafe pending.removeFirst() }
        var isFound = unsafe !kept.isEmpty
        if isFound { isFound = unsafe kept.take(&record) }
        if !isFound {
            if isMissing { return false }
            if unsafe windowLeft == 0 { return false }
            isFound = merge.isOrdered ? try go(&record) : try goPastDamage(&record)
            if isFound, let left = unsafe windowLeft { unsafe windowLeft = left - 1 }
        }
        // If the filter asked for the text, it was made.
        if isFound, !asksText { text?.render(&record) }
        return isFound
    }

    private func goPastDamage(_ record: inout RecordRef) throws(ReadProblem) -> Bool {
        while true {
            do throws(ReadProblem) {
                if try go(&record) { return true }
                break
            } catch {
                delayed.append((merge.place, error))
            }
        }
        takeDelayed()
        if unsafe !pending.isEmpty { throw unsafe pending.removeFirst() }
        return false
    }

    /// From now on, delayed damage is reported.
    private func takeDelayed() {
        let sorted = delayed.indices.sorted {
            (delayed[$0].place, $0) < (delayed[$1].place, $1)
        }
        unsafe pending.append(contentsOf: sorted.map { delayed[$0].problem })
        delayed = []
    }

    private func go(_ record: inout RecordRef) throws(ReadProblem) -> Bool {
        if try scan(&record) { return true }
        if isStopped { return false }
        if options.follow {
            for view in views { view.poll() }
            merge.poll { ($0 as? RestOfArchive)?.isDone ?? false }
            return try scan(&record)
        }
        for view in views where view.recover() { return try go(&record) }
        return false
    }

    /// Following, after `advance` returned nil: blocks the calling thread until there may be more.
    /// It waits for new names in the stores' directories, and looks into lanes that may grow 11
    /// times a second; without such lanes, once a second. This is not the end: `advance` may return
    /// nil again.
    public func wait() {
        if let watch { return followWait().block(watch) }
        // The next look finds whatever changed before there was a watch.
        watch = makeWatch()
        var first = followWait()
        first.latest = first.earliest
        watch.map(first.block)
    }

    /// Reports names that appear in the stores' directories or disappear.
    package func makeWatch() -> DirectoryWatch {
        DirectoryWatch(paths.flatMap { [$0 + "/lanes", $0 + "/archives"] })
    }

    /// Following, after `advance` returned nil: when to call it again.
    package func followWait() -> FollowWait {
        FollowWait(
            isGrowing: views.contains { $0.isGrowing }, held: views.compactMap(\.heldNs).min())
    }

    private func scan(_ record: inout RecordRef) throws(ReadProblem) -> Bool {
        while true {
            if unsafe !pending.isEmpty { throw unsafe pending.removeFirst() }
            // The merge may close the source of the run.
            unsafe run = nil
            guard !isStopped, try merge.next(&record) else { return false }
            if isStopped { return false }
            unsafe given &+= 1
            if unsafe looked >= toldNext { isStopped = mayStop() }
            if options.follow, merge.isLate { record.flags.insert(.late) }
            if let apart, record.id == apart {
                if asksText { text?.render(&record) }
                return true
            }
            if mayRun, !isStopped, unsafe pending.isEmpty { unsafe run = merge.run() }
            if isUnfiltered || passes(&record) { return true }
        }
    }

    /// Whether the record passes the filter, which may make its text.
    @inline(never)
    private func passes(_ record: inout RecordRef) -> Bool {
        guard takesAllOrigins || options.origin.matches(record) else { return false }
        if asksText {
            guard asked.mayMatch(record) else { return false }
            text?.render(&record)
        }
        return asked.matches(record) && mayShow(record)
    }

    private func mayShow(_ record: borrowing RecordRef) -> Bool {
        guard let shownSearch else { return true }
        return shownSearch.text.isIn(record.message)
            || FieldSearch.hasParts(record) && shownSearch.fields.mayBeIn(record, printer)
    }

    /// Keeps the last records of the read. If too few in the newest blocks pass the filter, reads
    /// again from four times as far back.
    private func gather() {
        var wanted = UInt64(options.last)
        while true {
            let plan = plan(wanted)
            for view in views { view.start(at: plan) }
            merge.isOrdered = options.follow || !filesArePlaced || views.contains { !$0.isPlaced }
            var record = RecordRef()
            var (all, found) = (0, 0)
            while true {
                do throws(ReadProblem) {
                    guard try go(&record) else { break }
                    all += 1
                    if plan.isWhole { onMatch?(record) }
                    if merge.isOrdered {
                        unsafe kept.add(record)
                    } else {
                        unsafe kept.add(record, at: merge.place)
                    }
                    if (merge.isOrdered ? merge.latest : merge.place.time) >= plan.time {
                        found += 1
                    }
                } catch {
                    delayed.append((merge.place, error))
                }
            }
            merge.isOrdered = true
            guard !plan.isWhole, found < options.last, !isStopped else {
                hasMatchedAll = plan.isWhole && !isStopped && !options.follow
                isCut = unsafe kept.isCut
                if isCut, !options.isPage, !isStopped { return giveLast(of: all, from: plan) }
                unsafe kept.settle()
                return takeDelayed()
            }
            delayed = []
            tellCertain(found)
            wanted = plan.more(than: wanted)
            unsafe kept.removeAll()
            do throws(ReadProblem) { try open() } catch {
                unsafe pending = [error]
                return
            }
        }
    }

    /// Passes the newest `count` records of a failed attempt to `onCertain`: they came where a full
    /// read has them. Records written since the previous attempt are newer than those it passed,
    /// and left out.
    private func tellCertain(_ count: Int) {
        guard let onCertain else { return }
        unsafe kept.settle()
        var isNew = certain == nil
        let count = unsafe min(count, kept.count)
        for index in 0..<count {
            var record = unsafe kept.newest(index)
            if isNew {
                if !asksText { text?.render(&record) }
                certain = record.id
                onCertain(record, index + 1 == count)
            } else {
                isNew = record.id == certain
            }
        }
    }

    /// Reads so many records again, in order, and skips all but the last ones, which are returned
    /// as they come; none is kept.
    private func giveLast(of all: Int, from plan: EndPlan) {
        delayed = []
        unsafe kept.removeAll()
        do throws(ReadProblem) { try open() } catch {
            unsafe pending = [error]
            return
        }
        for view in views { view.start(at: plan) }
        var record = RecordRef()
        var left = max(0, all - options.last)
        while left > 0 {
            do throws(ReadProblem) {
                guard try go(&record) else { break }
                left -= 1
            } catch {
                delayed.append((merge.place, error))
            }
        }
        if !options.follow { unsafe windowLeft = min(all, options.last) }
        takeDelayed()
    }

    /// Keeps the window's record and those before it. An attempt counts only if all of them come
    /// where a full read has them (`EndPlan.time`); otherwise it reads again from further back.
    private func gather(_ window: RecordWindow) {
        var wanted = UInt64(window.before) &+ 1
        while true {
            let plan = plan(wanted, upTo: window.timeNs)
            for view in views { view.start(at: plan) }
            var record = RecordRef()
            var placed = 0
            var isFound = false
            while !isFound {
                do throws(ReadProblem) {
                    guard try go(&record) else { break }
                    unsafe kept.add(record)
                    if merge.latest >= plan.time { placed += 1 }
                    isFound = record.id == window.id
                } catch {
                    delayed.append((merge.place, error))
                }
            }
            if plan.isWhole || isStopped || isFound && placed > window.before {
                isMissing = !isFound
                isCut = unsafe kept.isCut
                if isMissing { unsafe kept.removeAll() }
                return takeDelayed()
            }
            delayed = []
            if isFound { tellCertain(placed) }
            wanted = plan.more(than: wanted)
            unsafe kept.removeAll()
            do throws(ReadProblem) { try open() } catch {
                isMissing = true
                unsafe pending = [error]
                return
            }
        }
    }

    private func plan(_ wanted: UInt64, upTo: UInt64 = .max) -> EndPlan {
        let merge = merge
        return EndPlan(views.flatMap(\.ends), wanted: wanted, upTo: upTo, options: options) {
            merge.orderingTime($0, 0)
        }
    }

    private func note(_ problem: ReadProblem) -> ReadProblem {
        problemCount &+= 1
        if problems.count < StoreReader.problemsMax { problems.append(problem) }
        return problem
    }

    /// Passes the next record to `body`; damage goes to `problems` and is skipped.
    public func next<E: Error>(_ body: (RecordRef) throws(E) -> Void) throws(E) -> ReadStatus {
        var record = RecordRef()
        guard skipProblems(&record) else { return options.follow ? .again : .end }
        try body(record)
        return .record
    }

    /// The next record as a value of its own; nil at the end, or while following when there is
    /// nothing now.
    public func nextRecord() -> Record? {
        var record = RecordRef()
        return skipProblems(&record) ? Record(record) : nil
    }

    /// The next record, skipping damage, which goes to `problems`.
    func skipProblems(_ record: inout RecordRef) -> Bool {
        while true {
            do throws(ReadProblem) { return try advance(into: &record) } catch { continue }
        }
    }
}
