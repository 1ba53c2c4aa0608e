// The mutable half of an engine in this process: names and levels under one lock, the threads, and
// the segments that they have sealed and archived. A forked child makes new services and never
// touches its parent's.

import CShims
import CordwoodCore
import CordwoodShip
import CordwoodStore
import CordwoodTrace

@safe package final class Services: @unchecked Sendable {
    // SAFETY: everything below `monitor` is read and written under it; the rest never changes.
    let engine: EngineBlock
    let settings: Settings
    let store: OpenDirectory
    var directory: FilePath { FilePath(store) }
    let transactions: TransactionTable
    /// Tells these services from those of the process that forked this one; never 0.
    let mark = UInt32.random(in: 1 ... .max)
    let monitor = Monitor()
    /// Only one thread seals at a time (Sealer).
    let sealing = Monitor()
    let uploads: UploadService
    let limits: LimitKeeper
    let echo: Echo?
    let journal = Monitor()
    let journalWriter = JournalWriter()
    let flusher = Flusher()
    let sealer = SealerCalls()
    /// Up to a tenth less than the host's, so that programs that start together roll and send
    /// apart.
    private let rollAgeNs: UInt64
    let adoption: Adoption
    let policyKeeper: PolicyKeeper?
    /// Policies are applied one at a time.
    let applying = Monitor()
    /// Unknown keys of the last policy, reported once. Under `applying`.
    var unknownPolicyKeys: [String] = []
    /// `retry_quarantined` of the last policy, if it was followed.
    var retryWord: String?

    /// Loggers by name (LoggerNames).
    var names: [String: LoggerBlock] = unsafe [:]
    var levels: LevelTable
    var isStopping = false
    private var threadsRunning = 0
    private var threadsBegun = 0
    private var finishesAtEnd = false
    /// Sealed segments of this lane that wait for the archiver, by number.
    var sealedWaiting: [SealedSegment] = []
    /// Segment 0, which is small, waits for segment 1: one archive of both takes less space. It
    /// does not wait once a caller waits for archives.
    var firstWaits = true
    var sealedCount: UInt64 = 0
    var archivedCount: UInt64 = 0
    /// As the store's limits were last looked at.
    var archivedAtLook: UInt64 = 0
    private var recoveredCount: UInt64 = 0
    var reusedCount: UInt64 = 0
    var archiveFailure: CordwoodError?
    var roomToldNs: UInt64?
    /// Archived segments that are not removed yet. They are never archived again (FORMAT §11).
    var archivedRun: (run: ClosedRange<UInt64>, summary: ArchivingSummary)?
    /// Counts the lanes that `sealedWaiting` has belonged to.
    var laneEpoch = 0
    /// The epoch of the lane that is being archived now.
    var archivingEpoch: Int?
    /// A thread at the host's priority archives instead of the ship thread.
    var isArchiverRaised = false
    /// The raised archiver has archived something that the ship thread has not seen yet.
    var hasRaisedArchived = false
    /// The number of archives that it made.
    var raisedArchives = 0
    /// Records of this process's lanes in archives that have their names. A gap record counts as
    /// one, and reports at least one refusal.
    var ownArchived: UInt64 = 0
    /// Kept records that a gap record of the present lane reports as lost (ServicesLane).
    var ownLost: UInt64 = 0
    /// State about abandoned lanes (ServicesLane).
    var keeping = LaneKeeping()
    var archiving = ArchivingSummary()
    private var hostRecordsAtRoll: UInt64 = 0
    /// In a child, those of its parent.
    let uncountedBefore: UInt64
    private var eventsAtRoll: UInt64 = 0
    /// When events may next make an archive; 0: as soon as there are any.
    private var transactionsDue: UInt64 = 0
    /// The engine's threads that call back into the host.
    private var callers: [ThreadIdentity] = []
    private var shipper: ThreadIdentity?
    private var isShipperWoken = false
    /// Work for which the system gave no thread; the ship thread does it.
    private var errands: [@Sendable () -> Void] = []
    /// For uploads (ServicesUploads).
    var isAsyncUploading = false
    var hasRunEnded = false
    /// Set by a policy (ServicesPolicy).
    var uploadInterval: UInt32 = 30
    var transactionInterval: UInt32 = 300
    var archiveMethod: ArchiveMethod
    var haveLimitsChanged = false
    /// Belongs to the supply thread once it runs.
    private var control = ControlKeeper()
    private var finished = false

    init(
        engine: EngineBlock, settings: Settings, store: OpenDirectory, levels: LevelTable,
        transactions: TransactionTable = TransactionTable()
    ) throws(CordwoodError) {
        unsafe self.engine = engine
        self.settings = settings
        self.store = store
        let directory = FilePath(store)
        self.levels = levels
        self.transactions = transactions
        archiveMethod = settings.options.archiveMethod
        adoption = Adoption(directory: directory)
        let age = UInt64(settings.options.rollAgeSeconds) * 1_000_000_000
        rollAgeNs = age - .random(in: 0...age / 10)
        uncountedBefore = unsafe Uncounted.count(engine)
        policyKeeper = settings.policySource.map { PolicyKeeper($0, directory: directory) }
        echo = Echo(
            console: settings.console, level: settings.options.consoleLevel, store: directory)
        do {
            uploads = try UploadService(
                storeDirectory: directory, identities: settings.identities)
        } catch {
            throw CordwoodError(error.status.rawValue, error.text)
        }
        limits = unsafe LimitKeeper(
            engine: engine, directory: directory, settings: settings, uploads: uploads)
        uploads.delegate = self
        restoreNames()
        do {
            try beginPolicy()
            try beginControl(&control)
        } catch {
            throw CordwoodError(error.status.rawValue, error.text)
        }
    }

    // MARK: Threads

    /// Starts what logging, archiving and limits need, and waits until it runs: a filter of system
    /// calls that the host sets afterwards may refuse what a thread does as it begins.
    func startThreads() throws(CordwoodError) {
        limits.begin()
        var bodies: [(StaticString, Bool, @Sendable () -> Void)] = [
            ("cordwood-supply", false, { [self] in supply() }),
            ("cordwood-ship", true, { [self] in ship() }),
        ]
        if policyKeeper != nil {
            bodies.append(("cordwood-policy", true, { [self] in policyLoop() }))
        }
        if echo != nil { bodies.append(("cordwood-echo", false, { [self] in echoLoop() })) }
        for (name, background, body) in bodies {
            monitor.locked { threadsRunning += 1 }
            guard
                EngineThread.start(
                    name, background: background,
                    { [self] in
                        monitor.locked {
                            threadsBegun += 1
                            monitor.notify()
                        }
                        body()
                        threadEnds()
                    })
            else {
                monitor.locked { threadsRunning -= 1 }
                throw CordwoodError(Status.memory, "the system gave no thread")
            }
        }
        monitor.locked {
            while threadsBegun < bodies.count { _ = monitor.wait(until: .never) }
        }
        adoption.letRun()
    }

    private func threadEnds() {
        let finishes = monitor.locked {
            threadsRunning -= 1
            monitor.notify()
            guard threadsRunning == 0, finishesAtEnd else { return false }
            // A thread of a call that outlived the close may end later.
            finishesAtEnd = false
            return true
        }
        if finishes { finish() }
    }

    private var stops: Bool { monitor.locked { isStopping } }

    /// Keeps the append path supplied: room ahead of the writers, clock pairs, rolls by age.
    private func supply() {
        unsafe EngineCore.helperStarts(engine)
        var supply = Supply()
        var clock = ClockWatch()
        var nextWatch: UInt64 = 0
        var reaping = Reaping()
        while !stops {
            let pause = unsafe supply.prepare(engine)
            let now = cw_monotonic_ns()
            if reaping.isDue(now) { sealingOnSupply { _ = unsafe EngineCore.reapThreads(engine) } }
            if sealingOnSupply({ unsafe clock.look(engine) }) { _ = try? roll(onSupply: true) }
            if now >= nextWatch {
                sealingOnSupply { unsafe EngineCore.watchFiles(engine) }
                unsafe EngineCore.writeLateCounts(engine)
                watchLane(now: now)
                leaveReused()
                unsafe EngineCore.watchSpares(engine)
                nextWatch = cw_monotonic_ns() + 100_000_000
            }
            followControl(&control, now: now)
            if limits.beginsSoon(now: now) { keepLimitsSoon() }
            rollByAge()
            sealAndRelease()
            raiseArchiver()
            unsafe EngineCore.sleep(engine, ns: clock.isWaiting ? min(pause, 5_000_000) : pause)
        }
    }

    /// Unlike the ship thread, a thread of its own is not in the middle of an archive or an upload.
    private func keepLimitsSoon() {
        onThread("cordwood-limits") { [self] in hasRoom() ? limits.keepAndEnd() : limits.ends() }
    }

    /// Runs the body on a thread of its own; if the system gives none, on the ship thread.
    func onThread(_ name: StaticString, _ body: @escaping @Sendable () -> Void) {
        guard !startThread(name, body) else { return }
        monitor.locked {
            errands.append(body)
            wakeShipperLocked()
        }
    }

    func runErrands() {
        let waiting = monitor.locked {
            defer { errands = [] }
            return errands
        }
        for errand in waiting { asCaller(errand) }
    }

    /// Starts another engine thread, which close waits for. False: the system refuses a thread.
    func startThread(
        _ name: StaticString, background: Bool = false, _ body: @escaping @Sendable () -> Void
    ) -> Bool {
        monitor.locked { threadsRunning += 1 }
        let started = EngineThread.start(name, background: background) { [self] in
            asCaller(body)
            threadEnds()
        }
        if !started { monitor.locked { threadsRunning -= 1 } }
        return started
    }

    /// Runs the body as a thread that calls the host. If the host closes the engine there, close
    /// must not wait for that thread.
    private func asCaller(_ body: () -> Void) {
        monitor.locked { callers.append(.current) }
        body()
        monitor.locked { callers.removeAll { $0 == .current } }
    }

    /// Segments with nothing but the engine's own diagnostics and exchanges that may be uploads
    /// stay open longer. An archive of them would be sent, which may add more of them.
    private func rollByAge() {
        let now = Machine.sharedMonotonicNs()
        let since = unsafe EngineCore.currentSince(engine)
        guard rollAgeNs > 0, since > 0, now > since, now - since >= rollAgeNs,
            now - since >= Services.rollAge(rollAgeNs, hasHostRecords: hasNewRecords)
        else { return }
        _ = try? roll(onSupply: true)
    }

    private func echoLoop() {
        while !stops {
            unsafe echo?.pump(lane: EngineCore.laneName(engine))
            echo?.wait(ms: 20)
        }
        unsafe echo?.pump(lane: EngineCore.laneName(engine))
    }

    // MARK: Rolling and archiving

    /// Seals the open segments, which covers everything whose call returned before. onSupply: the
    /// caller is the thread that releases sealed and quiet segments.
    func roll(onSupply: Bool = false) throws(CordwoodError) {
        let (records, events) = (hostRecords(), transactions.events)
        var status = sealing.locked { unsafe EngineCore.roll(engine) }
        let deadline = Deadline(afterMs: 5_000)
        var look = limits.looksBegun
        var (isLast, isArchiving) = (false, false)
        var adopting: UInt64?
        if status == Status.full { letFirstGo() }
        while status == Status.full, !deadline.hasPassed, !isLast, !stops {
            if unsafe !EngineCore.hasFreeSlot(engine) {
                // Sealed and quiet segments make room.
                seal()
                if onSupply { sealing.locked { unsafe EngineCore.releaseQuiet(engine) } }
            } else {
                // Retention makes room; these threads run it themselves.
                guard !onSupply, !isShipper, !limits.isRunningHere else { break }
                // Archives make room, including those of dead processes' segments. The look after
                // the last one sees it.
                let wasArchiving = isArchiving
                let goal = adopting ?? adoption.makeRoom(wake: wakeShipper)
                adopting = goal
                isArchiving = hasMore || !adoption.isOver(goal)
                if isArchiving || wasArchiving { look = limits.looksBegun }
                isLast = !isArchiving && !limits.mayMakeRoom(since: look)
            }
            unsafe EngineCore.wakeHelper(engine)
            ThreadIdentity.pause(microseconds: 1_000)
            status = sealing.locked { unsafe EngineCore.roll(engine) }
        }
        guard status == Status.ok else {
            throw CordwoodError(status, "no new segment could be made in \(directory)/lanes")
        }
        monitor.locked {
            hostRecordsAtRoll = records
            eventsAtRoll = events
        }
        seal()
        letFirstGo()
    }

    /// Rolls if the host wrote something since the last roll.
    func rollForUpload() throws(CordwoodError) {
        let events = transactions.events
        if hasNewRecords || monitor.locked({ events > eventsAtRoll }) { try roll() }
    }

    private var hasNewRecords: Bool {
        let records = hostRecords()
        return monitor.locked { records > hostRecordsAtRoll }
    }

    /// Rolls if events were written since the last roll and a target waits for them.
    private func rollForTransactions(_ now: UInt64) {
        let events = transactions.events
        guard monitor.locked({ events > eventsAtRoll && now >= transactionsDue }),
            uploads.wantsTransactions
        else { return }
        let isRolled = (try? roll()) != nil
        monitor.locked {
            transactionsDue = now + UInt64(isRolled ? transactionInterval : 1) * 1_000_000_000
        }
    }

    /// After sealing, or the archiver takes segment 0 alone; before it only where that makes room.
    private func letFirstGo() {
        monitor.locked {
            guard firstWaits else { return }
            firstWaits = false
            wakeShipperLocked()
        }
    }

    func archiveWait(_ deadline: Deadline) throws(CordwoodError) {
        seal()
        letFirstGo()
        let failure: CordwoodError? = monitor.locked {
            let goal = sealedCount
            while archivedCount < goal {
                if isStopping { return CordwoodError(Status.closed, "the engine is closed") }
                if !monitor.wait(until: deadline), archivedCount < goal {
                    return archiveFailure
                        ?? CordwoodError(Status.timeout, "archiving did not end in time")
                }
            }
            return nil
        }
        if let failure { throw failure }
    }

    /// Archives, adopts, applies retention and uploads until the engine closes.
    private func ship() {
        monitor.locked { shipper = .current }
        // Leftovers of others are checked even if the engine closes at once. A program that logs a
        // little and ends has no other work for this thread.
        if !adoption.isCrowded, !limits.hasArchives, !waitForWork(until: adoption.firstNs) {
            return
        }
        // Files that others left in the store count from the first segment on.
        guard awaitRoom() else { return }
        keepLimits()
        adoption.begin()
        var nextTick: UInt64 = 0
        while awaitRoom() {
            let now = cw_monotonic_ns()
            let adopts = adoption.isDue(now)
            if adopts { adopt() }
            runErrands()
            if now >= nextTick { rollForTransactions(now) }
            let archived = archiveInTurn()
            clearCopies(now: now)
            if takesNewLimits() {
                keepLimits()
                if unsafe EngineCore.isOversize(engine) { _ = try? roll() }
                nextTick = min(nextTick, now + UInt64(interval) * 1_000_000_000)
            } else if archived && isLookDue || adopts || nextTick > 0 && now >= nextTick {
                keepLimits()
            }
            // At a full rate another archive is always due.
            if archived && now < nextTick && hasMore && !isUploadPlanned {
                if stops { return }
                continue
            }
            let isTick = archived || now >= nextTick
            if isTick {
                // The first interval is a random fraction of one, so that fleets that start
                // together spread out.
                let span = UInt64(interval) * 1_000_000_000
                nextTick = cw_monotonic_ns() + (nextTick == 0 ? .random(in: 0...span) : span)
            }
            let earliest = isTick || isUploadDue ? startUploads() : 0
            let wake = min(
                nextTick, adoption.next, nsOf(ms: uploads.nextWakeMonotonicMs), copiesDue)
            if !waitForWork(until: max(wake, earliest)) { return }
        }
    }

    private var interval: UInt32 { monitor.locked { uploadInterval } }

    private func nsOf(ms: UInt64) -> UInt64 {
        let (ns, overflow) = ms.multipliedReportingOverflow(by: 1_000_000)
        return overflow ? .max : ns
    }

    /// False: the engine closes.
    func waitForWork(until ns: UInt64) -> Bool {
        monitor.locked {
            var deadline = Deadline(timeoutMs: 0)
            // After a failure the same segment is tried again, after a pause.
            let retry = archiveFailure == nil ? UInt64.max : cw_monotonic_ns() + 1_000_000_000
            deadline.monotonicNs = min(ns, retry)
            while !isStopping, !isShipperWoken {
                if !monitor.wait(until: deadline) { break }
            }
            isShipperWoken = false
            return !isStopping
        }
    }

    func wakeShipper() { monitor.locked { wakeShipperLocked() } }

    func wakeShipperLocked() {
        isShipperWoken = true
        monitor.notify()
    }

    private var hasMore: Bool { monitor.locked { !sealedWaiting.isEmpty } }

    /// A planned upload is due.
    private var isUploadPlanned: Bool {
        uploads.nextWakeMonotonicMs <= cw_monotonic_ns() / 1_000_000
    }

    private var isUploadDue: Bool {
        isUploadPlanned
            || monitor.locked {
                defer { hasRunEnded = false }
                return hasRunEnded
            }
    }

    /// Runs on the ship thread.
    private func keepLimits() {
        if limits.hasQuota, adoption.mayMakeRoom(cw_monotonic_ns()), limits.isShort { adopt() }
        monitor.locked { archivedAtLook = archivedCount }
        limits.keep()
        clearExpiring()
    }

    private func adopt() {
        guard let summary = adoption.run(form) else { return }
        monitor.locked {
            archiving.add(summary)
            recoveredCount += UInt64(summary.segments)
        }
    }

    // MARK: Stats and close

    struct Totals {
        var segmentsSealed: UInt64
        var segmentsRecovered: UInt64
        var segmentsReused: UInt64
        var archiving: ArchivingSummary
    }

    var totals: Totals {
        monitor.locked {
            Totals(
                segmentsSealed: sealedCount, segmentsRecovered: recoveredCount,
                segmentsReused: reusedCount, archiving: archiving)
        }
    }

    /// On the engine's own threads, or in one of their callbacks: close would wait for itself.
    var isOwnThread: Bool {
        uploads.isPassing || limits.isRunningHere || isShipper
            || monitor.locked { callers.contains(.current) }
    }

    var isShipper: Bool { monitor.locked { shipper == .current } }

    /// True once only handles still use the engine's memory.
    var isFinished: Bool { monitor.locked { finished } }

    /// Stops the threads and finishes. False: a thread is still busy, and finishes when it ends.
    func close(_ deadline: Deadline) -> Bool {
        unsafe EngineCore.closeHandles(engine)
        uploads.requestStop()
        adoption.stop()
        flusher.stop()
        sealer.stop()
        policyKeeper?.stop()
        let ended = monitor.locked {
            isStopping = true
            monitor.notify()
            unsafe EngineCore.wakeHelper(engine)
            echo?.wake()
            let ended = threadsEnd(until: deadline)
            finishesAtEnd = !ended
            return ended
        }
        guard ended else {
            unsafe EngineCore.closeEarly(engine)
            return false
        }
        // Without the locks of `finish`: a slow disk may hold a thread in an append for long.
        unsafe EngineCore.waitForQuiet(engine, deadline)
        return finish(deadline)
    }

    /// Under the monitor. False: not in time.
    private func threadsEnd(until deadline: Deadline) -> Bool {
        while threadsRunning > 0 {
            if !monitor.wait(until: deadline), threadsRunning > 0 { return false }
        }
        return true
    }

    /// deadline: until then a close waits for the thread that archives; on the host's own, short
    /// memory would end the host, and an archive takes as long as it takes. nil: this is one of the
    /// engine's threads.
    @discardableResult
    private func finish(_ deadline: Deadline? = nil) -> Bool {
        followStore()
        let lanes = lanesToArchive
        let ended = journal.locked {
            journalWriter.end()
            return sealing.locked { unsafe EngineCore.finish(engine, left: keeping.left) }
        }
        guard ended else { return false }
        guard let deadline, !lanes.isEmpty else {
            archiveOwn(lanes)
            end()
            return true
        }
        let isStarted = startThread("cordwood-close") { [self] in
            archiveOwn(lanes)
            end()
        }
        if isStarted { return monitor.locked { threadsEnd(until: deadline) } }
        end()
        return true
    }

    private func end() {
        monitor.locked { finished = true }
        if settings.isMemory { MemoryStore.remove(store.path) }
        // Handles of the host keep the engine's memory, which must not keep a descriptor.
        store.close()
    }
}
