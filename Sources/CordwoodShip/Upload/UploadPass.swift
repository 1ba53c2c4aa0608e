// One pass over the waiting archives: oldest first, one attempt at each target that may be tried
// now. Lives on one thread for the length of UploadService.pass; it decides what is tried,
// UploadAttempt does it.

struct UploadPass: ~Copyable {
    let service: UploadService
    let explicit: Bool
    let deadlineMonotonicMs: UInt64
    var result = UploadResult()
    private var transport: CurlTransport?
    private var holds: [TargetKey: TargetHold] = [:]
    private var isOutOfTime = false
    private var trouble: UploadStatus?
    /// A background pass that could do nothing is not repeated at once.
    private static let restMs: UInt64 = 1_000

    init(service: UploadService, explicit: Bool, deadlineMonotonicMs: UInt64) {
        self.service = service
        self.explicit = explicit
        self.deadlineMonotonicMs = deadlineMonotonicMs
    }

    mutating func run() throws(UploadError) -> UploadStatus {
        // Whatever this pass meets, the engine must not call again at once.
        service.setWake(realtimeMs: UInt64.max)
        let store = try StoreFile.read(storeDirectory: service.paths.root)
        // Without a store file nobody has consented to anything.
        guard let store, store.consent == .granted else { return .consent }
        let slots = try registeredSlots()
        guard !slots.isEmpty else { return .noTarget }

        try tidy()
        let snapshot = try service.outbox.snapshot()
        let now = service.clock.realtimeMs()
        for slot in slots {
            holds[slot.target.key] = TargetHold(snapshot, slot.target.key, nowMs: now)
        }
        archives: for (stem, summary) in try service.archives() {
            if service.hooks.isCovered(StorePaths.file(ofStem: stem)) { continue }
            for slot in slots {
                if shouldEnd() { break archives }
                do throws(UploadError) {
                    try consider(stem, summary, slot, snapshot.state(stem, slot.target.key))
                } catch {
                    note(error, stem)
                }
            }
        }
        try takeStock(slots)
        return status()
    }

    /// Targets of this process that no other process has ended.
    private func registeredSlots() throws(UploadError) -> [UploadService.Slot] {
        let registered = Set(try service.registry.keys())
        return service.currentSlots.filter { registered.contains($0.target.key) }
    }

    /// Ends what a crash left half done, and removes what is too old to be sent.
    private mutating func tidy() throws(UploadError) {
        try service.outbox.removeOrphans()
        let janitor = Janitor(service: service)
        let registered = try service.registry.keys()
        for (stem, states) in try service.outbox.snapshot().pairs {
            guard registered.allSatisfy({ states[$0]?.isSent == true }) else { continue }
            guard let lock = try ArchiveLock(paths: service.paths, stem: stem) else { continue }
            try janitor.deleteIfSent(lock)
        }
        var limits = RetentionLimits.unlimited
        limits.expirationDays = service.currentLimits.expirationDays
        result.expired = try janitor.enforce(limits, otherBytes: 0)
    }

    private mutating func consider(
        _ stem: String, _ summary: ArchiveSummary?, _ slot: UploadService.Slot, _ state: PairState
    ) throws(UploadError) {
        let now = service.clock.realtimeMs()
        guard !state.isFinal, var hold = holds[slot.target.key],
            hold.allows(state, explicit: explicit, nowMs: now),
            let current = service.slot(slot.id)
        else { return }
        if transport == nil { transport = try CurlTransport() }
        service.gate.setCurrent(slot.id)
        defer { service.gate.setCurrent(nil) }
        guard let lock = try ArchiveLock(paths: service.paths, stem: stem) else { return }
        let attempt = UploadAttempt(
            service: service, slot: current, summary: summary, explicit: explicit,
            deadlineMonotonicMs: deadlineMonotonicMs)
        guard let after = try attempt.run(lock, &transport!, &result) else { return }
        hold.note(after, nowMs: service.clock.realtimeMs())
        if case .paused = after { hold.isRefused = true }
        holds[slot.target.key] = hold
    }

    /// One archive that the system will not give must not keep the others back.
    private mutating func note(_ error: UploadError, _ stem: String) {
        trouble = error.status
        result.failed += 1
        service.report(
            UploadDiagnostic.error, "an archive could not be handled",
            [
                ("archive", .text(StorePaths.file(ofStem: stem))), ("cause", .text(error.text)),
            ])
    }

    private mutating func shouldEnd() -> Bool {
        if service.clock.monotonicMs() >= deadlineMonotonicMs { isOutOfTime = true }
        return isOutOfTime || service.gate.isStopped || service.gate.shouldYield
    }

    /// Counts what waits and plans the next pass.
    private mutating func takeStock(_ slots: [UploadService.Slot]) throws(UploadError) {
        let snapshot = try service.outbox.snapshot()
        let now = service.clock.realtimeMs()
        var wake = UInt64.max
        var waiting: UInt32 = 0
        let stems = try service.archives().map { $0.stem }
        for slot in slots where service.slot(slot.id) != nil {
            let hold = TargetHold(snapshot, slot.target.key, nowMs: now)
            for stem in stems {
                let state = snapshot.state(stem, slot.target.key)
                if state.isFinal { continue }
                waiting += 1
                wake = min(wake, hold.wakeMs(state, nowMs: now) ?? UInt64.max)
            }
        }
        result.waiting = waiting
        service.setWake(realtimeMs: max(wake, now &+ UploadPass.restMs))
    }

    private func status() -> UploadStatus {
        if service.gate.isStopped { return .closed }
        if let trouble { return trouble }
        let isOver = isOutOfTime || service.clock.monotonicMs() >= deadlineMonotonicMs
        if result.waiting > 0 { return isOver ? .timeout : .upload }
        if result.failed > 0 { return .upload }
        return result.uploaded > 0 ? .ok : .end
    }
}
