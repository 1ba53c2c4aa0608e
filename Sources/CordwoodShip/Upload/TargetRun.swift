// One run over the archives that wait for one target: enters the target's gate, hands the archives
// to its threads, oldest first, and plans the next attempts. It ends early if time is up, an
// explicit call waits, consent is withdrawn or the server rejects us. The run's threads share it;
// it lives until the last of them has ended. A pass is a run of each target, side by side.

import CordwoodCore
import CordwoodFormats
import CordwoodStore

/// SAFETY: the private variables are guarded by the runner's gate, `endedMs` and `isPreparing` by
/// `pause`; `work` and `archives` change only while the run has one thread.
final class TargetRun: @unchecked Sendable {
    struct End {
        var result = UploadResult()
        /// The problem that kept the run from working; nil: none.
        var trouble: UploadStatus?
        var isOutOfTime = false
        var attempts = 0
        var stock = UploadStock()

        fileprivate mutating func add(_ other: End) {
            result.add(other.result)
            trouble = trouble ?? other.trouble
            isOutOfTime = isOutOfTime || other.isOutOfTime
            attempts += other.attempts
            stock.add(other.stock)
        }
    }

    let runner: TargetRunner
    let service: UploadService
    let explicit: Bool
    let deadlineMonotonicMs: UInt64
    private var work: UploadWork
    private var next = 0
    private var active = 0
    private var hold = TargetHold()
    private var archives: [UploadWork.Archive] = []
    private var sum = End()
    /// Archives that another process was sending, or whose segments another thread or process was
    /// about to remove.
    private var elsewhere: [UploadWork.Archive] = []
    /// Refused before the target took others, or records of it were given up: each gets another
    /// attempt, refused ones one.
    private var unfinished: [UploadWork.Archive] = []
    private var retried: Set<String> = []
    /// Archives of a batch that may be sent, the next one last.
    private var ready: [UploadWork.Archive] = []
    /// Size of the next batch. The first one tests the server.
    private var batch = 1
    /// The target has them, or wants nothing of them: still locked, and since the last settlement.
    private var (justDone, done): (Set<String>, [String]) = ([], [])
    /// Bodies since the last settlement, and its time.
    private var (bodies, settledMs): (Int, UInt64) = (0, 0)
    private let pause = Monitor()
    private var endedMs: UInt64?
    private var isPreparing = false
    private let listing: KeptListing

    private static let lookMs: UInt64 = 20
    private static let settleMs: UInt64 = 1_000

    init(
        _ runner: TargetRunner, _ service: UploadService, _ work: UploadWork, explicit: Bool,
        deadlineMonotonicMs: UInt64
    ) {
        self.runner = runner
        self.service = service
        self.work = work
        self.explicit = explicit
        self.deadlineMonotonicMs = deadlineMonotonicMs
        listing = service.keepListing()
    }

    /// Performs all of them side by side, the first on the calling thread; waits for all and adds
    /// up their ends, in the order in which they ended.
    static func perform(_ runs: [TargetRun]) -> End {
        let here = runs.enumerated().filter { index, run in
            index == 0 || !run.service.startThread(run.perform)
        }
        for (_, run) in here { run.perform() }
        for run in runs {
            run.pause.locked { while run.endedMs == nil { _ = run.pause.wait(until: .never) } }
        }
        return runs.sorted { ($0.endedMs ?? 0) < ($1.endedMs ?? 0) }
            .reduce(into: End()) { $0.add($1.sum) }
    }

    /// Makes one attempt for every waiting archive that may be tried. Runs on the calling thread,
    /// and on others if the server bears more.
    func perform() {
        let now = service.clock.monotonicMs()
        let trouble = runner.gate.enter(
            explicit: explicit, remainingMs: deadlineMonotonicMs - min(now, deadlineMonotonicMs))
        if let trouble {
            sum.trouble = trouble
        } else {
            runner.planNothing()  // the run's end plans
            look()
            tellHeld()
            active = 1
            loop()
            runner.gate.join()
            finish()
            repeat { awaitOthers() } while adoptReplacements()
            settle()
            sum.stock = runner.takeStock(
                service, covered: archives, didSomething: sum.attempts > 0)
            if !runner.isGone { runner.callDrained(sum) }
            runner.gate.leave()
        }
        pause.locked {
            endedMs = service.clock.monotonicMs()
            pause.notify()
        }
    }

    /// The background may have advanced while an explicit call waited.
    private func look() {
        let isNew = service.mergeSmall { shouldEnd() || !service.hadConsentLately }
        work = runner.known(explicit || isNew ? (try? service.work()) ?? work : work)
        hold = runner.hold(work.snapshot, nowMs: service.clock.realtimeMs())
        let key = runner.target.key
        // Right after a refusal another archive goes first, because the refused one may be at
        // fault. If the server was only busy, transactions keep their order.
        archives =
            hold.isProbing || hold.isBusy && runner.target.kind != .transactions
            ? work.archives.enumerated().sorted {
                let (a, b) = (
                    work.snapshot.state($0.element.stem, key).attempts,
                    work.snapshot.state($1.element.stem, key).attempts
                )
                return a != b ? a < b : $0.offset < $1.offset
            }.map(\.element) : work.archives
        if let begun = hold.begun(archives.map { work.snapshot.state($0.stem, key) }) {
            archives.insert(archives.remove(at: begun), at: 0)
        }
    }

    /// A call that may not even ask says why.
    private func tellHeld() {
        let now = service.clock.realtimeMs()
        let held = archives.map { work.snapshot.state($0.stem, runner.target.key) }
            .filter { !$0.isFinal && !hold.allows($0, explicit: true, nowMs: now) }
        guard explicit, let first = held.first else { return }
        let isAsked = hold.serverMs > now
        let untilMs = isAsked ? hold.serverMs : hold.wakeMs(first, nowMs: now) ?? 0
        service.report(
            UploadDiagnostic.warn,
            isAsked
                ? "the server asked us to wait"
                : "what the target refused waits, because it refused so much within an hour",
            [
                ("target", .text(runner.target.name)), ("origin", .text(runner.target.origin)),
                ("not_before", .text(Times.text(untilMs &* 1_000_000))),
            ])
    }

    /// The work of one thread.
    private func loop() {
        var transport: (any Transport)?
        while let archive = take() {
            handle(archive, &transport)
            grow()
        }
    }

    private func handle(_ archive: UploadWork.Archive, _ transport: inout (any Transport)?) {
        do throws(UploadError) {
            let made =
                if let transport { transport } else {
                    try runner.target.makeTransport(for: service.paths.root)
                }
            transport = made
            try attempt(archive, made)
        } catch {
            note(error, archive.stem)
        }
        runner.gate.withLock {
            if let stem = justDone.remove(archive.stem) { done.append(stem) }
        }
        settleIfDue()
    }

    /// What a refusal left open is finished once it is known that its archive is at fault. If
    /// nothing else was left to show that, and others were taken just before, its halves show it.
    private func finish() {
        var transport: (any Transport)?
        while mayGoOn, isConditionMet,
            mayBeForbiddenAgain
        {
            let open = runner.gate.withLock { unfinished }
            let isDivisible = runner.target.format != .archive
            let next =
                open.first { runner.isOpen || runner.blame($0.stem) == true }
                ?? (isDivisible && runner.tookLately(service.clock) ? open.first : nil)
            guard let next else { return }
            runner.gate.withLock { unfinished.removeAll { $0.stem == next.stem } }
            handle(next, &transport)
        }
    }

    /// Waits for archives that another process was sending, because the caller wants those sent,
    /// too. Polls, because a process that dies releases its lock without notice.
    private func awaitOthers() {
        guard explicit else { return }
        let coverEndMs = service.clock.monotonicMs() &+ service.coveredMs
        var transport: (any Transport)?
        while mayGoOn {
            let left = runner.gate.withLock {
                defer { elsewhere = [] }
                return elsewhere
            }
            guard !left.isEmpty else { return }
            settle()
            pause.locked { _ = pause.wait(until: Deadline(afterMs: TargetRun.lookMs)) }
            // A few at a time, the longest waiting first: those of a busy process are many.
            let some = Array(left.prefix(UploadService.batchMax))
            guard let (ready, held) = try? service.clear(some, for: runner.target.key) else {
                return
            }
            let isLate = service.clock.monotonicMs() >= coverEndMs
            let covered = isLate ? service.covered(held.map(\.stem)) : []
            runner.gate.withLock {
                elsewhere =
                    left.dropFirst(some.count) + held.filter { !covered.contains($0.stem) }
            }
            for archive in ready where mayGoOn { handle(archive, &transport) }
        }
    }

    /// A call also answers for what replaced its archives meanwhile. False: nothing did.
    private func adoptReplacements() -> Bool {
        guard explicit, mayGoOn, let now = try? service.work() else { return false }
        let (cover, stems) = (UploadCover(archives), Set(archives.map(\.stem)))
        let fresh = now.archives.filter {
            !stems.contains($0.stem) && cover.has($0)
                && !now.snapshot.state($0.stem, runner.target.key).isFinal
        }
        archives += fresh
        runner.gate.withLock { elsewhere = fresh }
        return !fresh.isEmpty
    }

    /// The next archive that may be tried; nil: no more work for this thread.
    private func take() -> UploadWork.Archive? {
        let mayGoOn = self.mayGoOn && isConditionMet
        while mayGoOn {
            let now = service.clock.realtimeMs()
            let (archive, isEnough): (UploadWork.Archive?, Bool) = runner.gate.withLock {
                runner.refreshHeld(&hold)
                // Each request under way may be refused.
                let bearsMore =
                    Double(active) <= runner.windowHeld && !hold.isProbing
                    && active <= runner.forbiddenLeftHeld(nowMs: now)
                guard active <= 1 || bearsMore else { return (nil, true) }
                while let archive = ready.popLast() {
                    if allowsHeld(archive, now) { return (archive, false) }
                }
                return (nil, false)
            }
            if let archive { return archive }
            if isEnough || !prepare() { break }
        }
        runner.gate.withLock { active -= 1 }
        return nil
    }

    /// The caller holds the gate.
    private func allowsHeld(_ archive: UploadWork.Archive, _ now: UInt64) -> Bool {
        let state = work.snapshot.state(archive.stem, runner.target.key)
        return !state.isFinal && hold.allows(state, explicit: explicit, nowMs: now)
    }

    // ── Batches ──

    /// Settles the batch before and makes the next one ready, on one thread at a time. False: there
    /// are no more.
    private func prepare() -> Bool {
        pause.locked {
            while isPreparing { _ = pause.wait(until: .never) }
            isPreparing = true
        }
        defer {
            pause.locked {
                isPreparing = false
                pause.notify()
            }
        }
        if runner.gate.withLock({ !ready.isEmpty }) { return true }
        settle()
        let now = service.clock.realtimeMs()
        let chosen = runner.gate.withLock {
            var chosen: [UploadWork.Archive] = []
            let most = hold.isProbing ? 1 : batch
            while next < archives.count, chosen.count < most {
                if allowsHeld(archives[next], now) { chosen.append(archives[next]) }
                next += 1
            }
            batch = min(2 * batch, UploadService.batchMax)
            return chosen
        }
        guard !chosen.isEmpty else { return false }
        do throws(UploadError) {
            let (clear, held) = try service.clear(chosen, for: runner.target.key)
            runner.gate.withLock {
                ready = clear.reversed()
                elsewhere += held
            }
        } catch {
            for archive in chosen { note(error, archive.stem) }
        }
        return true
    }

    /// The target has the archive, or wants nothing of it.
    func noteDone(_ stem: String) { runner.gate.withLock { _ = justDone.insert(stem) } }

    /// A body was taken, or a state changed. After a while the states so far are made durable,
    /// however long the batch takes.
    func settleIfDue() {
        let now = service.clock.monotonicMs()
        let isDue = runner.gate.withLock {
            bodies += 1
            return bodies >= UploadService.batchMax || now >= settledMs &+ TargetRun.settleMs
        }
        if isDue { settle() }
    }

    /// Syncs the states since the last call, then deletes what all targets have.
    /// CRASH: a power cut before this repeats the bodies since the last call, under the same ids.
    private func settle() {
        let now = service.clock.monotonicMs()
        let done = runner.gate.withLock {
            defer { (self.done, bodies, settledMs) = ([], 0, now) }
            return self.done
        }
        do throws(UploadError) { try listing.sync() } catch {
            if service.isNews("\(service.paths.queue)") {
                service.report(
                    UploadDiagnostic.error, "what came of uploads could not be made durable",
                    [("cause", .text(error.text))])
            }
        }
        if done.isEmpty { return }
        Janitor(service: service).deleteDone(done, done: runner.target.key)
    }

    /// In the background the host may postpone the upload.
    private var isConditionMet: Bool { explicit || runner.target.callbacks.condition?() ?? true }

    private func attempt(
        _ archive: UploadWork.Archive, _ transport: any Transport
    ) throws(UploadError) {
        let key = runner.target.key
        guard let lock = try ArchiveLock(paths: service.paths, stem: archive.stem, target: key)
        else {
            // A directory or a link with such a name is not an archive.
            if StoreFiles.bytesOnDisk(service.paths.archive(archive.stem)) != nil {
                runner.gate.withLock { elsewhere.append(archive) }
            }
            return
        }
        // Nothing new can replace it while it is locked.
        guard !service.isBeingReplaced(archive.stem) else {
            runner.gate.withLock { elsewhere.append(archive) }
            return
        }
        var result = UploadResult()
        let attempt = UploadAttempt(run: self, summary: archive.summary)
        defer {
            runner.gate.withLock {
                sum.attempts += 1
                sum.result.add(result)
            }
        }
        guard let after = try attempt.make(lock, transport, &result) else { return }
        let now = service.clock.realtimeMs()
        runner.gate.withLock {
            runner.refreshHeld(&hold)
            hold.note(after, nowMs: now)
            switch after {
            case .paused(_, HTTPStatus.forbidden, _):
                // Beside other requests: one of them may have ended the run.
                if hold.refusesUs || hold.isSpent(nowMs: now) { hold.isRefused = true }
                if retried.insert(archive.stem).inserted { unfinished.append(archive) }
            case .paused, .retry(_, _, .refused, _): hold.isRefused = true
            case .retry(0, 0, .stopped, _): unfinished.append(archive)
            default: break
            }
        }
    }

    /// An archive that the system cannot provide must neither hold back the others nor be retried
    /// without a pause.
    private func note(_ error: UploadError, _ stem: String) {
        let read = work.snapshot.state(stem, runner.target.key)
        let known = runner.unwritten(stem, beyond: read)
        let state = known?.state ?? read
        let attempts = state.attempts &+ 1
        let delay = Backoff.delayMs(attempts: attempts, random: service.random())
        runner.remember(
            stem,
            (
                .retry(
                    attempts: attempts, notBeforeMs: service.clock.realtimeMs() &+ delay,
                    reason: .failed, progress: state.progress), known?.refusals
            ))
        runner.gate.withLock {
            sum.attempts += 1
            sum.result.failed += 1
        }
        // Tried in every run, reported once.
        guard service.isNews("\(service.paths.archive(stem))@\(runner.target.key.text)") else {
            return
        }
        service.report(
            UploadDiagnostic.error, "an archive could not be handled; the others go",
            [
                ("archive", .text(StorePaths.file(ofStem: stem))), ("cause", .text(error.text)),
            ])
    }

    /// Adds a thread if the server bears more and work waits.
    private func grow() {
        let isWanted = runner.gate.withLock {
            guard next < archives.count || !ready.isEmpty, !hold.isProbing,
                Double(active) + 1 <= runner.windowHeld
            else { return false }
            active += 1
            return true
        }
        guard isWanted else { return }
        let isStarted = runner.gate.spawn(service.startThread) { [self] in loop() }
        if !isStarted { runner.gate.withLock { active -= 1 } }
    }

    // ── Also used by attempts ──

    /// Whether an archive that was refused before may have one more body refused, as may each
    /// request under way.
    var mayBeForbiddenAgain: Bool {
        let now = service.clock.realtimeMs()
        return runner.gate.withLock {
            runner.forbiddenFreeHeld(nowMs: now)
                && max(active, 1) <= runner.forbiddenLeftHeld(nowMs: now)
        }
    }

    /// The target has taken a body.
    func noteTaken() {
        runner.gate.withLock {
            runner.refreshHeld(&hold)
            hold.noteTaken()
        }
    }

    /// Whether another archive or part may begin.
    var mayGoOn: Bool { !shouldEnd() && service.isEnabled && service.hasConsent }

    /// Whether the pair's present state allows an attempt.
    func allows(_ state: PairState) -> Bool {
        let now = service.clock.realtimeMs()
        return runner.gate.withLock {
            hold.note(state, nowMs: now)
            return hold.allows(state, explicit: explicit, nowMs: now)
        }
    }

    /// Whether the transfer under way continues.
    func tick() -> TransferTick {
        if runner.gate.isStopped || runner.isGone || !service.hadConsentLately { return .stop }
        if service.clock.monotonicMs() >= deadlineMonotonicMs { return .stop }
        return explicit || runner.gate.shouldYield ? .goUnlimited : .go
    }

    /// What broke an attempt off; the raw value is its cause, for people.
    enum Stop: String {
        case closed = "the engine closed"
        case noConsent = "consent was withdrawn"
        case outOfTime = "the time of the upload call ran out"
        case switchedOff = "a policy switched uploading off"
        case givesWay = "it gave way to an upload call"
    }

    var stop: Stop {
        if runner.gate.isStopped { return .closed }
        if !service.hasConsent { return .noConsent }
        if service.clock.monotonicMs() >= deadlineMonotonicMs { return .outOfTime }
        return service.isEnabled ? .givesWay : .switchedOff
    }

    private func shouldEnd() -> Bool {
        let isOut = service.clock.monotonicMs() >= deadlineMonotonicMs
        if isOut { runner.gate.withLock { sum.isOutOfTime = true } }
        return isOut || runner.gate.isStopped || runner.isGone || runner.gate.shouldYield
    }
}
