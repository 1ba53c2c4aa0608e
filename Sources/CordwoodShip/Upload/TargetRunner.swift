// One target's uploads in this process: the limits learnt from its server, and its runs over the
// waiting archives, oldest first, with as many concurrent requests as the server bears (AIMD: one
// more after each full window of successes, half as many after a failure). A target has its own
// threads, so a slow or dead server holds up no other. State that must survive lives in file names
// (Outbox).

import CordwoodStore

/// SAFETY: the private variables are guarded by the gate.
final class TargetRunner: @unchecked Sendable {
    let id: UInt32
    let target: Target
    let gate = RunGate()
    private var slot: LearnedLimits
    private var isRemoved = false
    /// Number of concurrent requests.
    private var window = 1.0
    private var wakeRealtimeMs = UInt64.max
    /// A run that could do nothing is not repeated before this time.
    private var restMonotonicMs: UInt64 = 0
    /// The records that the server asked for again, of parts it took partially.
    private var again: [String: (range: PartRange, ordinals: Set<UInt64>)] = [:]
    private var hadWork = false
    /// States that could not be written down; they hold as long as this process lives.
    private var unwrittenStates: [String: Unwritten] = [:]
    /// It has taken a body since it last refused an archive.
    private var takes = false
    /// It was unreachable or answered 5xx since it last took a body.
    private var wasDown = false
    /// It has taken a body since it last reported overload.
    private var takesSinceBusy = false
    /// Archives to which it reports overload again and again, while it takes others.
    private var busyAlone: Set<String> = []
    private var forbidden = ForbiddenBodies()
    /// Archives that it answered 403. True: it took another body since the last time, so they are
    /// at fault.
    private var blamed: [String: Bool] = [:]
    /// How often it refused an archive without taking any of it, while it took others in between.
    private var refusalsAlone: [String: UInt32] = [:]
    /// Consecutive refusals that suggest an error on the way.
    private var refusals: UInt32 = 0
    /// Consecutive HTTP/2 streams that the server reset; from the second on HTTP/1.1 is used.
    private var resets: UInt32 = 0
    /// When it last took a body; 0: never.
    private var takenMonotonicMs: UInt64 = 0

    /// - refusals: nil: those in the old state's file.
    typealias Unwritten = (state: PairState, refusals: PairRefusals?)

    private static let restMs: UInt64 = 1_000

    init(id: UInt32, target: Target) {
        self.id = id
        self.target = target
        slot = LearnedLimits(encoding: target.encoding)
    }

    // ── Learnt facts ──

    var learned: LearnedLimits { gate.withLock { slot } }

    /// A body was taken: learns the server's limits from its encoding and size.
    func learn(
        _ taken: LearnedLimits.Taken, of stem: String, _ clock: UploadClock
    ) -> LearnedLimits {
        let now = clock.monotonicMs()
        return gate.withLock {
            slot.note(taken, nowMs: now, bodyBytesMax: target.dialect.limits.bytes)
            takes = true
            takesSinceBusy = true
            forbidden.noteTaken()
            for stem in blamed.keys { blamed[stem] = true }
            wasDown = false
            refusals = 0
            refusalsAlone[stem] = nil
            if resets < TargetRunner.resetsMax { resets = 0 }
            takenMonotonicMs = now
            return slot
        }
    }

    var isOpen: Bool { gate.withLock { takes } }

    /// A body was refused, and the body may not be at fault.
    /// - Returns: alone: how often the target refused this archive while it took others, which
    ///   makes the archive suspect. inRow: consecutive refusals, if it takes none.
    func noteRefused(_ stem: String, attempt: UInt32) -> (alone: UInt32, inRow: UInt32) {
        gate.withLock {
            defer { takes = false }
            if takes, !wasDown {
                let alone = refusalsAlone[stem, default: 0] &+ 1
                refusalsAlone[stem] = alone
                return (alone, 0)
            }
            refusals = max(refusals &+ 1, attempt)
            return (0, refusals)
        }
    }

    var forbiddenBodies: ForbiddenBodies { gate.withLock { forbidden } }

    /// nil: none of its bodies was answered 403. True: it is at fault.
    func blame(_ stem: String) -> Bool? { gate.withLock { blamed[stem] } }

    /// A body of it was answered 403: what was taken before proves nothing from here on.
    func noteForbidden(_ stem: String, nowMs: UInt64) {
        gate.withLock {
            forbidden.noteBody(nowMs: nowMs)
            blamed[stem] = false
        }
    }

    /// An attempt ended with 403.
    /// - Returns: how many did, each but the first after the target took another body.
    func noteForbiddenAlone(_ stem: String, isAtFault: Bool) -> UInt32 {
        gate.withLock {
            let count = max(refusalsAlone[stem] ?? 0, 1) &+ (isAtFault ? 1 : 0)
            refusalsAlone[stem] = count
            return count
        }
    }

    /// The target takes nothing, as far as is known.
    func noteForbidden(_ change: (inout ForbiddenBodies) -> Void) {
        gate.withLock {
            change(&forbidden)
            takes = false
        }
    }

    /// How many more bodies it may refuse; the caller holds the gate.
    func forbiddenLeftHeld(nowMs: UInt64) -> Int { forbidden.left(nowMs: nowMs) }

    /// Whether it may refuse an archive again; the caller holds the gate.
    func forbiddenFreeHeld(nowMs: UInt64) -> Bool {
        forbidden.freeMs(again: true, nowMs: nowMs) == 0
    }

    /// The server reported overload and named no time.
    /// - Returns: whether this archive alone waits, because the target took others since it last
    ///   said so, and has said it of this one again and again.
    func noteBusy(_ stem: String, attempt: UInt32) -> Bool {
        gate.withLock {
            if busyAlone.contains(stem) { return true }
            defer { takesSinceBusy = false }
            guard takesSinceBusy, attempt >= TargetRunner.busyAttemptsMax else {
                // Not of those archives only: it has a rate.
                busyAlone = []
                return false
            }
            busyAlone.insert(stem)
            return true
        }
    }

    private static let busyAttemptsMax: UInt32 = 3

    /// Records of it were given up: the others start counting anew.
    /// - Parameter isOver: all of it was.
    func forgetRefusals(_ stem: String, isOver: Bool) {
        gate.withLock {
            refusalsAlone[stem] = nil
            if isOver { blamed[stem] = nil }
        }
    }

    /// The server reset an HTTP/2 stream: the body may be too large for it or for a proxy. Once
    /// HTTP/1.1 is used, it stays in use.
    /// - Returns: whether to send the body again at once, over HTTP/1.1.
    func noteReset(isDivisible: Bool) -> Bool {
        guard target.settings.httpVersion == .automatic else { return false }
        return gate.withLock {
            resets = isDivisible && resets == 0 ? 1 : TargetRunner.resetsMax
            return resets == TargetRunner.resetsMax
        }
    }

    var speaksHTTP1: Bool { gate.withLock { resets == TargetRunner.resetsMax } }

    private static let resetsMax: UInt32 = 2

    /// Whether it took a body within the last minute: such a server reports overload because of its
    /// rate, and is not overloaded.
    func tookLately(_ clock: UploadClock) -> Bool {
        let now = clock.monotonicMs()
        return gate.withLock {
            takenMonotonicMs > 0 && now - min(takenMonotonicMs, now) < 60_000
        }
    }

    func hold(_ snapshot: OutboxSnapshot, nowMs: UInt64) -> TargetHold {
        let (isOpen, forbidden) = gate.withLock { (takes, self.forbidden) }
        return TargetHold(
            snapshot, target.key, isOpen: isOpen, forbidden: forbidden, nowMs: nowMs)
    }

    /// Brings a run's hold up to date; the caller holds the gate.
    func refreshHeld(_ hold: inout TargetHold) { hold.know(isOpen: takes, forbidden) }

    /// Removed targets send nothing and call no callbacks.
    var isGone: Bool { gate.withLock { isRemoved } }
    func remove() { gate.withLock { isRemoved = true } }

    func asked(_ stem: String, _ range: PartRange) -> Set<UInt64>? {
        gate.withLock { again[stem].flatMap { $0.range == range ? $0.ordinals : nil } }
    }

    func ask(_ stem: String, _ range: PartRange, _ ordinals: Set<UInt64>?) {
        gate.withLock { again[stem] = ordinals.map { (range, $0) } }
    }

    // ── Unwritten states ──

    /// nil: it is written by now, or its archive is gone. True: it is a new one.
    @discardableResult
    func remember(_ stem: String, _ state: Unwritten?) -> Bool {
        gate.withLock {
            defer { unwrittenStates[stem] = state }
            return unwrittenStates[stem] == nil
        }
    }

    /// nil: nothing is unwritten, or another process has changed the state since.
    func unwritten(_ stem: String, beyond read: PairState) -> Unwritten? {
        gate.withLock {
            guard let one = unwrittenStates[stem],
                PairState.further(one.state, read) == one.state,
                one.refusals != nil || one.state.progress == read.progress
            else { return nil }
            return one
        }
    }

    /// A pair's state: as read, or our newer knowledge.
    func known(_ stem: String, _ read: PairState) -> PairState {
        unwritten(stem, beyond: read)?.state ?? read
    }

    var unwrittenStems: [String] { gate.withLock { Array(unwrittenStates.keys) } }

    func known(_ work: UploadWork) -> UploadWork {
        var work = work
        for stem in unwrittenStems {
            let state = known(stem, work.snapshot.state(stem, target.key))
            work.snapshot.pairs[stem, default: [:]][target.key] = state
        }
        return work
    }

    /// Calls the host outside a run, unless the target is removed.
    func tell(_ call: (TargetCallbacks) -> Void) {
        gate.calling(unless: { isRemoved }) { call(target.callbacks) }
    }

    /// A request succeeded, or the server reported overload.
    /// - Parameter isDown: the server does not work.
    func note(success: Bool, isDown: Bool = false) {
        let most = target.bytesPerSecond > 0 ? 1.0 : Double(target.requestsAtOnce)
        gate.withLock {
            window = success ? min(most, window + 1 / window) : max(1, window / 2)
            if isDown { wasDown = true }
        }
    }

    /// Number of concurrent requests; the caller holds the gate.
    var windowHeld: Double { window }

    // ── Timing ──

    var wakeMs: UInt64 { gate.withLock { wakeRealtimeMs } }
    func planNothing() { gate.withLock { wakeRealtimeMs = .max } }

    /// Whether the background has work here now.
    func isDue(_ work: UploadWork, _ service: UploadService) -> Bool {
        let work = known(work)
        let now = service.clock.realtimeMs()
        let rests = gate.withLock { restMonotonicMs > service.clock.monotonicMs() }
        guard !rests, !gate.isBusy, !gate.isStopped else { return false }
        let hold = hold(work.snapshot, nowMs: now)
        return work.archives.contains { archive in
            let state = work.snapshot.state(archive.stem, target.key)
            return !state.isFinal && hold.allows(state, explicit: false, nowMs: now)
        }
    }

    // ── The end of a run ──

    /// Counts the waiting archives and plans the next run.
    /// - Parameter covered: the archives that the run found when it began.
    func takeStock(
        _ service: UploadService, covered: [UploadWork.Archive], didSomething: Bool
    ) -> UploadStock {
        if !didSomething {
            let monotonic = service.clock.monotonicMs()
            gate.withLock { restMonotonicMs = monotonic &+ TargetRunner.restMs }
        }
        if isGone { return UploadStock() }
        // If they cannot be listed, some may be waiting.
        guard let work = try? service.work() else {
            let now = service.clock.realtimeMs()
            gate.withLock { wakeRealtimeMs = now &+ TargetRunner.restMs }
            return UploadStock(waiting: 1, left: 1)
        }
        return stock(work, service, covered: covered)
    }

    /// Sets the time of the background's next work here. A run under way does so itself when it
    /// ends.
    func plan(_ work: UploadWork, _ service: UploadService) {
        if !gate.isBusy { _ = stock(work, service, unlessBusy: true) }
    }

    private func stock(
        _ work: UploadWork, _ service: UploadService, covered: [UploadWork.Archive] = [],
        unlessBusy: Bool = false
    ) -> UploadStock {
        let work = known(work)
        let cover = UploadCover(covered)
        let (now, monotonic) = (service.clock.realtimeMs(), service.clock.monotonicMs())
        let hold = hold(work.snapshot, nowMs: now)
        var wake = UInt64.max
        var found = UploadStock()
        for archive in work.archives {
            let state = work.snapshot.state(archive.stem, target.key)
            if state.isFinal { continue }
            found.left += 1
            if cover.has(archive) { found.waiting += 1 }
            wake = min(wake, hold.wakeMs(state, nowMs: now) ?? UInt64.max)
        }
        let stems = Set(work.archives.map(\.stem))
        gate.withLock {
            refusalsAlone = refusalsAlone.filter { stems.contains($0.key) }
            blamed = blamed.filter { stems.contains($0.key) }
            busyAlone.formIntersection(stems)
            if unlessBusy && gate.isBusyHeld { return }
            let rest = restMonotonicMs - min(monotonic, restMonotonicMs)
            wakeRealtimeMs = max(wake, now &+ max(rest, unlessBusy ? 0 : TargetRunner.restMs))
        }
        return found
    }

    func callDrained(_ end: TargetRun.End) {
        let isDrained = gate.withLock {
            if end.attempts > 0 || end.stock.left > 0 { hadWork = true }
            guard hadWork, end.stock.left == 0 else { return false }
            hadWork = false
            return true
        }
        if isDrained { target.callbacks.drained?() }
    }
}
