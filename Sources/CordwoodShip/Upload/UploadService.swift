// Everything a store sends, and everything that leaves it: targets, passes over the waiting
// archives, retention, consent. Owned by one engine. It has no thread of its own: it works on
// whichever thread calls it, one pass at a time (PassGate). State that must survive lives in file
// names (Outbox); in memory are only the targets of this process and what their servers taught us.

/// SAFETY: `slots`, `totals`, `limits`, `wakeRealtimeMs` and `summaries` are guarded by the gate.
public final class UploadService: @unchecked Sendable {
    public static let targetsMax = 64

    /// A target of this process.
    struct Slot: Sendable {
        let id: UInt32
        let target: Target
        /// Simpler than the target's own where the server refused that one.
        var encoding: BodyEncoding
        /// The server has taken a body in this encoding: a 400 is about the content then.
        var isEncodingProven: Bool
    }

    let paths: StorePaths
    let outbox: Outbox
    let registry: TargetRegistry
    let hooks: UploadHooks
    let clock: UploadClock
    let random: @Sendable () -> UInt64
    let encoder: Encoder
    let gate = PassGate()

    private var slots: [Slot] = []
    private var lastID: UInt32 = 0
    private var sum = UploadTotals()
    private var limits = RetentionLimits.unlimited
    private var wakeRealtimeMs = UInt64.max
    private var summaries: [String: ArchiveSummary] = [:]

    public init(
        storeDirectory: String, hooks: UploadHooks, lines: LineRenderers = .standard,
        clock: UploadClock = .system, random: @escaping @Sendable () -> UInt64
    ) throws(UploadError) {
        paths = StorePaths(storeDirectory)
        outbox = Outbox(paths: paths)
        registry = TargetRegistry(storeDirectory: storeDirectory)
        self.hooks = hooks
        self.clock = clock
        self.random = random
        encoder = Encoder(
            paths: paths, openRecords: hooks.openRecords, jsonLine: lines.json,
            textLine: lines.text)
        try paths.makeDirectories()
    }

    // ── Targets ──

    /// Registers a target and lets what waited for its credentials be tried again.
    public func addTarget(_ target: Target) throws(UploadError) -> UInt32 {
        try CurlTransport.load()
        let refusal: UploadError? = gate.withLock {
            if slots.contains(where: { $0.target.key == target.key }) {
                return .exists("a target named \(target.name) is already added")
            }
            return slots.count < UploadService.targetsMax
                ? nil : .limit("an engine has at most \(UploadService.targetsMax) targets")
        }
        if let refusal { throw refusal }
        try registry.register(target.registration)
        try unpause(target.key)
        return gate.withLock {
            lastID &+= 1
            slots.append(
                Slot(
                    id: lastID, target: target, encoding: target.encoding, isEncodingProven: false))
            return lastID
        }
    }

    /// After this returns no callback of that target is called any more.
    public func removeTarget(_ name: String) throws(UploadError) {
        let key = TargetKey(name: name)
        let removed: UInt32? = gate.withLock {
            guard let index = slots.firstIndex(where: { $0.target.key == key }) else { return nil }
            return slots.remove(at: index).id
        }
        if let removed { gate.waitUntilIdle(removed) }
        do throws(UploadError) {
            try registry.remove(name: name)
        } catch .notFound where removed != nil {
            // Another process was faster.
        }
    }

    private func unpause(_ key: TargetKey) throws(UploadError) {
        for (stem, states) in try outbox.snapshot().pairs {
            guard case .paused(let attempts, _) = states[key] else { continue }
            // Someone who is at it right now finds out by himself.
            guard let lock = try ArchiveLock(paths: paths, stem: stem) else { continue }
            try outbox.set(
                lock.stem, key, to: .retry(attempts: attempts, notBeforeMs: 0, reason: .stopped))
        }
    }

    // ── Passes ──

    /// One attempt for every waiting archive at every target of this process, oldest first. In the
    /// background what has to wait is left out; an explicit pass overrides backoff and byte rate,
    /// never consent or a server's Retry-After. `result` is written on every return.
    public func pass(
        explicit: Bool, deadlineMonotonicMs: UInt64, result: inout UploadResult
    ) -> UploadStatus {
        let now = clock.monotonicMs()
        let remaining = deadlineMonotonicMs - min(now, deadlineMonotonicMs)
        switch gate.enter(explicit: explicit, remainingMs: remaining) {
        case .busy: return .busy
        case .timeout: return .timeout
        case .stopped: return .closed
        case .entered: break
        }
        defer { gate.leave() }
        var pass = UploadPass(
            service: self, explicit: explicit, deadlineMonotonicMs: deadlineMonotonicMs)
        let status: UploadStatus
        do throws(UploadError) {
            status = try pass.run()
        } catch {
            report(UploadDiagnostic.error, "uploading failed", [("cause", .text(error.text))])
            status = error.status
        }
        result = pass.result
        return status
    }

    /// When a background pass has something to do again; UInt64.max: nothing is planned.
    public var nextWakeMonotonicMs: UInt64 {
        let wake = gate.withLock { wakeRealtimeMs }
        guard wake != UInt64.max else { return UInt64.max }
        let realtime = clock.realtimeMs()
        return clock.monotonicMs() &+ (wake - min(realtime, wake))
    }

    /// Breaks off what runs, within 50 ms, and lets nothing begin any more. Any thread.
    public func requestStop() { gate.stop() }

    /// True inside a pass that the calling thread runs: in one of its callbacks.
    public var isPassing: Bool { gate.isRunningHere }

    public var totals: UploadTotals { gate.withLock { sum } }

    // ── Retention and consent ──

    public func setLimits(_ new: RetentionLimits) { gate.withLock { limits = new } }

    /// Removes what is too old, too much or too many, oldest first.
    /// - Parameter otherBytes: files of the store that are not archives.
    /// - Returns: how many archives were removed.
    public func applyRetention(otherBytes: UInt64) throws(UploadError) -> UInt32 {
        try Janitor(service: self).enforce(currentLimits, otherBytes: otherBytes)
    }

    /// Consent was denied: removes every archive that waits to be sent somewhere.
    public func removeWaiting() throws(UploadError) -> UInt32 {
        try Janitor(service: self).removeWaiting()
    }

    // ── What pass and janitor share ──

    var currentLimits: RetentionLimits { gate.withLock { limits } }
    var currentSlots: [Slot] { gate.withLock { slots } }
    func slot(_ id: UInt32) -> Slot? { gate.withLock { slots.first { $0.id == id } } }
    func setWake(realtimeMs: UInt64) { gate.withLock { wakeRealtimeMs = realtimeMs } }
    func count(_ change: (inout UploadTotals) -> Void) { gate.withLock { change(&sum) } }

    func learn(_ id: UInt32, encoding: BodyEncoding) {
        gate.withLock {
            guard let index = slots.firstIndex(where: { $0.id == id }) else { return }
            slots[index].encoding = encoding
            slots[index].isEncodingProven = true
        }
    }

    func report(
        _ level: UInt8, _ message: String, _ fields: [(key: String, value: DiagnosticValue)]
    ) {
        hooks.diagnostics(UploadDiagnostic(level: level, message: message, fields: fields))
    }

    /// Archives with what they say of themselves, oldest first; nil: it could not be read.
    func archives() throws(UploadError) -> [(stem: String, summary: ArchiveSummary?)] {
        let known = gate.withLock { summaries }
        var fresh: [String: ArchiveSummary] = [:]
        var list: [(stem: String, summary: ArchiveSummary?)] = []
        for name in try Files.list(paths.archives) {
            guard let stem = StorePaths.stem(ofFile: name) else { continue }
            // An archive never changes, so it is asked once.
            let summary = known[stem] ?? hooks.archiveInfo(paths.archive(stem))
            fresh[stem] = summary
            list.append((stem, summary))
        }
        gate.withLock { summaries = fresh }
        return list.sorted {
            let (a, b) = ($0.summary?.timeMaxNs ?? 0, $1.summary?.timeMaxNs ?? 0)
            return a != b ? a < b : $0.stem < $1.stem
        }
    }
}
