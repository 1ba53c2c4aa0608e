// Everything that a store sends, and everything that leaves it: targets, passes over the waiting
// archives, retention, consent. Owned by one engine. It makes no thread of its own: a pass works on
// the calling thread and on threads that the engine starts for it, one or more per target. State
// that must survive lives in file names (Outbox); memory holds only the targets of this process and
// the limits learnt from their servers.

import CordwoodCore
import CordwoodStore

/// SAFETY: `monitor` guards the private variables and is held for no call out of here; `delegate`
/// is set before another thread has the service.
package final class UploadService: @unchecked Sendable {
    package static let targetsMax = 64
    package static let settleMs: UInt64 = 250
    private static let toldMax = 1_000

    let paths: StorePaths
    let registry: TargetRegistry
    let identities: [AgeIdentity]
    let clock: UploadClock
    let random: @Sendable () -> UInt64
    let lines: LineRenderers
    package weak var delegate: (any UploadDelegate)?
    /// The last failures, by target.
    package let failures = FailureLog()
    private let monitor = Monitor()
    private let known: UploadArchives
    /// Lives as long as the runs that share it.
    private weak var listing: KeptListing?

    private var runners: [TargetRunner] = []
    private var lastID: UInt32 = 0
    private var sum = UploadTotals()
    private var limits = RetentionLimits.unlimited
    private var isStopping = false
    private var isSwitchedOff = false
    private var isExplicit = false
    /// Explicit calls under way, counted from before they make archives.
    private var explicitCalls = 0
    /// Targets that are being added.
    private var adding: Set<TargetKey> = []
    /// The background begins no run before this time, which is a while after the last target was
    /// added: an archive that the first of several targets has must not be deleted before the
    /// program has added the others.
    private var settledMs: UInt64 = 0
    private let settleMs: UInt64
    let coveredMs: UInt64
    /// The background could not begin, and has to as soon as it may.
    private var isRunOwed = false
    /// Consecutive failures of the background to begin, and the time of its next attempt.
    private var stumbles: UInt32 = 0
    private var standsStillUntilMs: UInt64 = 0
    /// Paths of undeletable files that were reported.
    private var told: Set<String> = []
    private var expired: UInt32 = 0
    /// Small archives that were looked at and are sent one by one.
    private var alone: Set<String> = []
    private var areLanesSynced = false
    private var unregistered: [RegisteredTarget] = []
    /// An archive that waits longer for another program's target is reported.
    let forsakenMs: UInt64
    private var consentSeen: (isGranted: Bool, atMs: UInt64)?
    /// The content for the store's `clock` that could not be written.
    private var trust: AgeTrust?

    /// - Parameters:
    ///   - identities: open encrypted archives.
    ///   - settleMs: how long after a target was added the background begins no run.
    ///   - coveredMs: how long an explicit call waits for segments to go after their archive was
    ///     made.
    ///   - forsakenMs: how old archives are before they are told to wait for a target of others.
    package init(
        storeDirectory: FilePath, identities: [AgeIdentity] = [], lines: LineRenderers = .standard,
        clock: UploadClock = .system, settleMs: UInt64 = UploadService.settleMs,
        coveredMs: UInt64 = 1_000, forsakenMs: UInt64 = 3_600_000,
        random: @escaping @Sendable () -> UInt64 = { .random(in: .min ... .max) }
    ) throws(UploadError) {
        paths = StorePaths(storeDirectory)
        known = UploadArchives(paths, identities)
        registry = TargetRegistry(storeDirectory: storeDirectory)
        self.identities = identities
        self.clock = clock
        self.settleMs = settleMs
        self.coveredMs = coveredMs
        self.forsakenMs = forsakenMs
        self.random = random
        self.lines = lines
        try paths.makeDirectories()
    }

    // ── Targets ──

    /// Registers a target and releases archives that waited for its credentials.
    package func addTarget(_ target: Target) throws(UploadError) -> UInt32 {
        try target.requireTransport()
        try dropUnregistered(target.key)
        let refusal: UploadError? = monitor.locked {
            if adding.contains(target.key)
                || runners.contains(where: { $0.target.key == target.key })
            {
                return .exists("a target named \(target.name) is already added")
            }
            guard runners.count + adding.count < UploadService.targetsMax else {
                return .limit("an engine has at most \(UploadService.targetsMax) targets")
            }
            adding.insert(target.key)
            return nil
        }
        if let refusal { throw refusal }
        defer {
            _ = monitor.locked { adding.remove(target.key) }
            delegate?.uploadsReplanned()
        }
        try register(target.registration)
        try unpause(target.key, in: try outbox.snapshot())
        let work = try work()
        let isUntold = StoreFiles.exists(paths.root + "/" + RemovedFile.fileName)
        let runner = monitor.locked {
            lastID &+= 1
            let runner = TargetRunner(id: lastID, target: target)
            if isStopping { runner.gate.stop() }
            runners.append(runner)
            settledMs = clock.monotonicMs() &+ settleMs
            // It may have to be told what was removed before (Janitor.tellUntold).
            if isUntold { isRunOwed = true }
            return runner
        }
        // Archives that an earlier process failed to send keep their due times.
        runner.plan(work, self)
        return runner.id
    }

    /// Of the targets added here.
    package var origins: [(origin: String, isHostTransport: Bool)] {
        currentRunners.map { ($0.target.origin, $0.target.host != nil) }
    }

    /// Forgets a target that was removed from outside, so that it can be added again.
    private func dropUnregistered(_ key: TargetKey) throws(UploadError) {
        guard let stale = currentRunners.first(where: { $0.target.key == key }),
            // It was registered before it became a runner.
            try !registeredKeys().contains(key)
        else { return }
        // Another thread that adds it may have been faster.
        monitor.locked { runners.removeAll { $0 === stale } }
        end(stale)
    }

    private func end(_ removed: TargetRunner) {
        removed.remove()
        removed.gate.waitUntilIdle()
    }

    /// No callback of that target is called after this returns.
    package func removeTarget(_ name: String) throws(UploadError) {
        let key = TargetKey(name: name)
        let removed: TargetRunner? = monitor.locked {
            guard let index = runners.firstIndex(where: { $0.target.key == key }) else {
                return nil
            }
            return runners.remove(at: index)
        }
        if let removed { end(removed) }
        settleOwed(key)
        do throws(UploadError) {
            try registry.remove(name: name)
        } catch .notFound where removed != nil {
            // Another process was faster.
        }
    }

    /// Releases quarantined archives for another attempt at the next occasion.
    /// - Parameter target: nil: all targets.
    /// - Returns: the number of pairs.
    package func retryQuarantined(target: String?) throws(UploadError) -> Int {
        // Runs even after an error, because some pairs were changed.
        defer {
            if let work = try? work() {
                for runner in currentRunners { runner.plan(work, self) }
                delegate?.uploadsReplanned()
            }
        }
        return try QueueListing(storeDirectory: paths.root).retryQuarantined(target: target)
    }

    /// Finds a target by the number that addTarget returned.
    package func target(_ id: UInt32) -> Target? {
        currentRunners.first { $0.id == id }?.target
    }

    func unpause(_ key: TargetKey, in snapshot: OutboxSnapshot) throws(UploadError) {
        for (stem, states) in snapshot.pairs {
            guard case .paused = states[key] else { continue }
            // A run that is working on it will notice by itself. An archive that cannot be opened
            // is reported by the run that meets it.
            guard let lock = try? ArchiveLock(paths: paths, stem: stem, target: key) else {
                continue
            }
            // Another process may have sent it since.
            guard case .paused(let attempts, let http, let progress) = try outbox.states(stem)[key]
            else { continue }
            // After a 403 another archive tests first, because this one may be at fault.
            let reason = http == HTTPStatus.forbidden ? RetryReason.refused : .stopped
            let state = PairState.retry(
                attempts: attempts, notBeforeMs: 0, reason: reason, progress: progress)
            try outbox.set(lock.stem, key, to: state)
        }
        try outbox.sync()
    }

    // ── Passes ──

    /// Makes one attempt for every waiting archive at every target of this process, oldest first,
    /// all targets side by side; returns when all have ended. An explicit pass overrides backoff,
    /// condition and byte rate, never consent or a server's Retry-After. `result` is written on
    /// every return.
    /// - Parameter kind: nil: targets of every kind.
    package func pass(
        explicit: Bool, kind: TargetKind? = nil, deadlineMonotonicMs: UInt64,
        result: inout UploadResult
    ) -> UploadStatus {
        if isStopped { return .closed }
        if explicit {
            guard !isPassing, beginExplicit() else { return .busy }
        }
        defer { if explicit { monitor.locked { isExplicit = false } } }
        Janitor(service: self).tellUntold()
        do throws(UploadError) {
            guard isEnabled, hasConsent else {
                for runner in currentRunners { runner.planNothing() }
                return isEnabled ? .consent : .notEnabled
            }
            let open = try registered().open.filter { kind == nil || $0.target.kind == kind }
            guard !open.isEmpty else { return .noTarget }
            let listing = keepListing()
            defer { withExtendedLifetime(listing) {} }
            try tidy()
            let work = try work()
            let end = TargetRun.perform(
                open.map {
                    TargetRun(
                        $0, self, work, explicit: explicit,
                        deadlineMonotonicMs: deadlineMonotonicMs)
                })
            try Janitor(service: self).deleteDone()
            // A call for one kind leaves the count to the next one for all.
            if kind == nil { result.expired = takeExpired() }
            tellForsaken(try self.work())
            result.add(end.result)
            result.waiting = end.stock.waiting
            return status(end, result, deadlineMonotonicMs)
        } catch {
            report(UploadDiagnostic.error, "uploading failed", [("cause", .text(error.text))])
            return error.status
        }
    }

    /// Whether events of transactions may be sent to a target now.
    package var wantsTransactions: Bool {
        currentRunners.contains { $0.target.kind == .transactions } && isEnabled && hasConsent
    }

    /// No background run begins during the body, which thus tries and reports everything it finds.
    package func holdingBackground<Result, Failure: Error>(
        _ body: () throws(Failure) -> Result
    ) throws(Failure) -> Result {
        monitor.locked { explicitCalls += 1 }
        defer {
            monitor.locked { explicitCalls -= 1 }
            delegate?.uploadRunEnded()
        }
        return try body()
    }

    private var isBackgroundHeld: Bool { monitor.locked { explicitCalls > 0 } }

    /// Allows only one explicit call at a time.
    private func beginExplicit() -> Bool {
        monitor.locked {
            defer { isExplicit = true }
            return !isExplicit
        }
    }

    /// Starts a thread for every target that has work, and waits for none. If the system has no
    /// threads, sends here.
    package func startBackground() {
        guard !isStopped, !isBackgroundHeld, mayBegin() else { return }
        Janitor(service: self).tellUntold()
        do throws(UploadError) {
            guard isEnabled, hasConsent else {
                for runner in currentRunners { runner.planNothing() }
                try removeDenied()
                return
            }
            let (open, removed) = try registered()
            for runner in removed { runner.planNothing() }
            // One that was added since the first look may be among them.
            guard !open.isEmpty, mayBegin() else { return }
            let listing = keepListing()
            defer { withExtendedLifetime(listing) {} }
            try tidy()
            begin(open, try work())
            monitor.locked { stumbles = 0 }
        } catch {
            let isFirst = monitor.locked {
                stumbles &+= 1
                let delay = Backoff.delayMs(attempts: min(stumbles, 6), random: random())
                standsStillUntilMs = clock.monotonicMs() &+ delay
                return stumbles == 1
            }
            guard isFirst else { return }
            report(UploadDiagnostic.error, "uploading failed", [("cause", .text(error.text))])
        }
    }

    private func begin(_ open: [TargetRunner], _ work: UploadWork) {
        tellForsaken(work)
        for runner in open {
            guard runner.isDue(work, self) else {
                runner.plan(work, self)
                continue
            }
            runner.planNothing()  // the run's end plans
            let run = TargetRun(runner, self, work, explicit: false, deadlineMonotonicMs: .max)
            let body: @Sendable () -> Void = { [self] in
                run.perform()
                delegate?.uploadRunEnded()
            }
            if !startThread(body) { body() }
        }
    }

    private func mayBegin() -> Bool {
        let now = clock.monotonicMs()
        return monitor.locked {
            isRunOwed = now < beginsMs
            return !isRunOwed
        }
    }

    /// When the background may begin a run; the caller holds the monitor.
    private var beginsMs: UInt64 {
        adding.isEmpty ? max(standsStillUntilMs, settledMs) : .max
    }

    private func status(
        _ end: TargetRun.End, _ result: UploadResult, _ deadlineMonotonicMs: UInt64
    ) -> UploadStatus {
        if isStopped { return .closed }
        if let trouble = end.trouble { return trouble }
        let isOver = end.isOutOfTime || clock.monotonicMs() >= deadlineMonotonicMs
        if result.waiting > 0 { return isOver ? .timeout : .upload }
        if result.failed > 0 || result.quarantined > 0 { return .upload }
        return result.uploaded > 0 ? .ok : .end
    }

    /// When the background has work again. UInt64.max: nothing is planned, or a run under way sets
    /// the time when it ends.
    package var nextWakeMonotonicMs: UInt64 {
        guard !isBackgroundHeld else { return .max }
        let (begins, isOwed) = monitor.locked { (beginsMs, isRunOwed) }
        if isOwed { return begins }
        let wake = currentRunners.map(\.wakeMs).min() ?? UInt64.max
        guard wake != UInt64.max else { return UInt64.max }
        let realtime = clock.realtimeMs()
        return max(clock.monotonicMs() &+ (wake - min(realtime, wake)), begins)
    }

    /// Aborts running transfers within 50 ms, and lets nothing begin any more. Any thread.
    package func requestStop() {
        let all = monitor.locked {
            isStopping = true
            return runners
        }
        for runner in all { runner.gate.stop() }
    }

    /// True if the calling thread is inside a run, in one of its callbacks.
    package var isPassing: Bool { currentRunners.contains { $0.gate.isRunningHere } }

    package var totals: UploadTotals { monitor.locked { sum } }

    // ── Retention and consent ──

    package func setLimits(_ new: RetentionLimits) { monitor.locked { limits = new } }

    /// Removes archives beyond the limits of age, size or number, oldest first.
    /// - Parameter otherBytes: the size of the store's other files.
    /// - Returns: the number of archives removed.
    package func applyRetention(otherBytes: UInt64) throws(UploadError) -> UInt32 {
        try Janitor(service: self).enforce(currentLimits, otherBytes: otherBytes)
    }

    /// Consent was denied: removes every archive that is not sent everywhere, including quarantined
    /// ones. Transfers under way are aborted, and the background removes their archives.
    package func removeWaiting() throws(UploadError) -> UInt32 {
        monitor.locked { consentSeen = nil }
        return try Janitor(service: self).removeWaiting(until: .max)
    }

    /// Removes archives that waited when consent was denied and could not be removed then.
    private func removeDenied() throws(UploadError) {
        guard try StoreFile.read(storeDirectory: paths.root)?.consent == .denied else { return }
        _ = try Janitor(service: self).removeWaiting(
            until: StoreFiles.modifiedNs(paths.root + "/" + StoreFile.fileName))
    }

    /// A policy switches uploading off and on again; waiting archives are kept, transfers finish.
    package func setEnabled(_ isEnabled: Bool) { monitor.locked { isSwitchedOff = !isEnabled } }

    var isEnabled: Bool { monitor.locked { !isSwitchedOff } }

    /// A missing or unreadable store file means no consent.
    var hasConsent: Bool {
        guard let store = try? StoreFile.read(storeDirectory: paths.root) else { return false }
        return store.consent == .granted
    }

    /// Like hasConsent, but up to a second old: a transfer checks it again and again.
    var hadConsentLately: Bool {
        let now = clock.monotonicMs()
        if let seen = monitor.locked({ consentSeen }), now - min(seen.atMs, now) < 1_000 {
            return seen.isGranted
        }
        let isGranted = hasConsent
        monitor.locked { consentSeen = (isGranted, now) }
        return isGranted
    }

    /// By archives' file names. Those that do not exist any more are forgotten.
    func noteAlone(_ names: [String], of all: Set<String>) {
        monitor.locked { alone = alone.union(names).intersection(all) }
    }

    func isAlone(_ stem: String) -> Bool {
        monitor.locked { alone.contains(StorePaths.file(ofStem: stem)) }
    }

    /// Whether the removal of segments was durable when it was last synced.
    var mayDelete: Bool { monitor.locked { areLanesSynced } }
    func setMayDelete(_ may: Bool) { monitor.locked { areLanesSynced = may } }

    /// Completes what a crash or a full disk left unfinished, and removes archives that are too old
    /// to be sent.
    private func tidy() throws(UploadError) {
        try removeReplaced()
        registerOwed()
        try outbox.removeOrphans()
        let janitor = Janitor(service: self)
        for runner in currentRunners { janitor.writeDown(runner) }
        try? outbox.sync()
        try janitor.deleteDone()
        var limits = RetentionLimits.unlimited
        limits.expirationDays = currentLimits.expirationDays
        _ = try janitor.enforce(limits, otherBytes: 0)
    }

    /// Archives that this process removed for their age before they were sent, whichever of its
    /// threads did; told to the next call.
    func noteExpired(_ count: UInt32) { monitor.locked { expired &+= count } }

    private func takeExpired() -> UInt32 {
        monitor.locked {
            defer { expired = 0 }
            return expired
        }
    }

    // ── Shared by passes, runs and the janitor ──

    var isStopped: Bool { monitor.locked { isStopping } }
    var unwrittenTrust: AgeTrust? {
        get { monitor.locked { trust } }
        set { monitor.locked { trust = newValue } }
    }
    var currentLimits: RetentionLimits { monitor.locked { limits } }
    package var expirationDays: UInt32 { currentLimits.expirationDays }
    var currentRunners: [TargetRunner] { monitor.locked { runners } }

    /// A target gets the records of archives in another form.
    package var makesBodies: Bool { currentRunners.contains { $0.target.format != .archive } }

    func count(_ change: (inout UploadTotals) -> Void) { monitor.locked { change(&sum) } }

    /// Targets of this process, and those of them that another process has removed.
    private func registered() throws(UploadError) -> (open: [TargetRunner], removed: [TargetRunner])
    {
        // One that is added meanwhile is in neither list.
        let all = currentRunners
        let keys = Set(try registeredKeys())
        return (
            all.filter { keys.contains($0.target.key) },
            all.filter { !keys.contains($0.target.key) }
        )
    }

    func work() throws(UploadError) -> UploadWork {
        UploadWork(
            archives: try archives().map { UploadWork.Archive(stem: $0.stem, summary: $0.summary) },
            snapshot: try outbox.snapshot())
    }

    /// True once for each path, approximately: a limited number is remembered.
    func isNews(_ path: String) -> Bool {
        monitor.locked {
            if told.count >= UploadService.toldMax { told = [] }
            return told.insert(path).inserted
        }
    }

    func report(
        _ level: UInt8, _ message: String, _ fields: [(key: String, value: DiagnosticValue)]
    ) {
        delegate?.report(UploadDiagnostic(level: level, message: message, fields: fields))
    }

    /// False: none is available.
    func startThread(_ body: @escaping @Sendable () -> Void) -> Bool {
        delegate?.startUploadThread(body) ?? false
    }

    /// Those of the archives of which a segment exists or may exist, or which are being replaced:
    /// they stay.
    func covered(_ stems: [String]) -> Set<String> {
        let lanes = LaneListing(directory: paths.root)
        if !lanes.isWhole, isNews("\(paths.lanes)") {
            report(
                UploadDiagnostic.error,
                "archives wait: whether their segments are gone cannot be seen",
                [("cause", .text(lanes.cause))])
        }
        return Set(
            stems.filter {
                lanes.isCovered(archive: StorePaths.file(ofStem: $0), paths.root)
                    || isBeingReplaced($0)
            })
    }

    func isBeingReplaced(_ stem: String) -> Bool {
        known.isBeingReplaced(stem, currentListing)
    }

    /// A compacting program that died leaves archives that another archive replaces. Those being
    /// sent now are removed later.
    private func removeReplaced() throws(UploadError) {
        let ids = Set(try archives().flatMap { $0.summary?.replaced ?? [] })
        guard !ids.isEmpty,
            try archives().contains(where: { ids.contains($0.summary?.idText ?? "") })
        else { return }
        _ = try? CompactionLeftovers.remove(directory: paths.root, identities: identities)
    }

    /// nil: it cannot be read.
    func knownSummary(_ stem: String) -> ArchiveSummary? {
        known.summary(stem) ?? (try? summary(stem))
    }

    func summary(_ stem: String) throws(ReadProblem) -> ArchiveSummary {
        try ArchiveSummary(path: paths.archive(stem), identities: identities)
    }

    /// Archives with their summaries, oldest first; nil: it could not be read.
    func archives() throws(UploadError) -> [UploadArchives.Entry] {
        try known.list(currentListing)
    }

    // ── The listing ──

    /// The listing that runs share; the caller keeps it as long as it works.
    func keepListing() -> KeptListing {
        monitor.locked {
            let kept = listing ?? KeptListing(paths)
            listing = kept
            return kept
        }
    }

    private var currentListing: KeptListing? { monitor.locked { listing } }

    var outbox: Outbox { Outbox(paths: paths, kept: currentListing) }

    /// Registered targets, kept if a listing is.
    func listedKeys() throws(UploadError) -> [TargetKey] {
        if let kept = currentListing { return try kept.targetKeys() }
        return try registry.keys()
    }

    func listedTargets() throws(UploadError) -> [RegisteredTarget] {
        if let kept = currentListing { return try kept.registeredTargets() }
        return try registry.list()
    }

    /// Registrations for which the disk has no room yet.
    var owed: [RegisteredTarget] { monitor.locked { unregistered } }
    func owe(_ target: RegisteredTarget) { monitor.locked { unregistered.append(target) } }
    func settleOwed(_ key: TargetKey) {
        monitor.locked { unregistered.removeAll { $0.key == key } }
    }
}
