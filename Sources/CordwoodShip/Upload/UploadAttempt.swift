// One attempt: one archive, one target, under the archive's lock. Reads the pair's state again,
// makes the body, sends it, writes down what came of it, tells the host, deletes the archive when
// all have it. The idempotency key is the archive's id on every attempt and in every encoding.

struct UploadAttempt {
    let service: UploadService
    let slot: UploadService.Slot
    let summary: ArchiveSummary?
    let explicit: Bool
    let deadlineMonotonicMs: UInt64

    private var target: Target { slot.target }

    /// - Returns: the pair's new state; nil: nothing was attempted.
    func run(
        _ archive: borrowing ArchiveLock, _ transport: inout CurlTransport,
        _ result: inout UploadResult
    ) throws(UploadError) -> PairState? {
        // Another process may have sent it since the pass began.
        let state = try service.outbox.states(archive.stem)[target.key] ?? .waiting
        guard !state.isFinal else { return nil }
        let file = StorePaths.file(ofStem: archive.stem)
        let attempt = state.attempts &+ 1
        guard let summary else {
            try quarantine(archive, httpStatus: 0, .damaged, "the archive cannot be read", &result)
            return .quarantined(httpStatus: 0)
        }
        target.attempting?(file, attempt)
        let outcome: TransferOutcome
        do throws(UploadError) {
            outcome = try transfer(archive, summary, file, &transport)
        } catch .damaged(let text), .version(let text) {
            try quarantine(archive, httpStatus: 0, .damaged, text, &result)
            return .quarantined(httpStatus: 0)
        } catch {
            outcome = .failed(error.text)
        }
        result.lastHTTPStatus = outcome.httpStatus
        result.lastOutcome = outcome.kind
        return try settle(archive, outcome, attempt: attempt, &result)
    }

    // ── Sending ──

    /// Sends the body, in simpler encodings where the server takes no better one.
    private func transfer(
        _ archive: borrowing ArchiveLock, _ summary: ArchiveSummary, _ file: String,
        _ transport: inout CurlTransport
    ) throws(UploadError) -> TransferOutcome {
        var encoding = slot.encoding
        while true {
            let body = try service.encoder.encode(
                archive, format: target.format, encoding: encoding,
                shouldStop: { tick() == .stop })
            guard let body else {
                var outcome = TransferOutcome.failed("stopped while the body was made")
                outcome.isStopped = true
                return outcome
            }
            let request = TransferRequest(
                url: target.url(archiveID: summary.idText, fileName: file),
                method: target.method, headers: headers(summary, encoding),
                descriptor: body.temporary ?? archive.descriptor, bytes: body.bytes,
                connectTimeoutMs: target.connectTimeoutMs,
                requestTimeoutMs: target.requestTimeoutMs,
                bytesPerSecond: explicit ? 0 : target.bytesPerSecond)
            var outcome = transport.perform(request, tick: tick)
            outcome.bytesSent = body.bytes
            if outcome.kind == .success { service.learn(slot.id, encoding: encoding) }
            let isRefused =
                outcome.httpStatus == 415 || (outcome.httpStatus == 400 && !slot.isEncodingProven)
            guard isRefused, let simpler = encoding.simpler else { return outcome }
            encoding = simpler
        }
    }

    private func headers(
        _ summary: ArchiveSummary, _ encoding: BodyEncoding
    ) -> [RequestHeader] {
        var headers = target.headers
        func set(_ name: String, _ value: String) {
            headers.append(RequestHeader(name: name, value: value))
        }
        if !headers.contains(where: { $0.lowercasedName == "content-type" }) {
            set("Content-Type", target.contentType)
        }
        if !headers.contains(where: { $0.lowercasedName == "user-agent" }) {
            set("User-Agent", "cordwood")
        }
        if encoding != .none { set("Content-Encoding", encoding.rawValue) }
        set("Idempotency-Key", "\"\(summary.idText)\"")
        if let token = target.authToken { set("Authorization", "Bearer \(token)") }
        return headers
    }

    private func tick() -> TransferTick {
        if service.gate.isStopped || service.slot(slot.id) == nil { return .stop }
        if service.clock.monotonicMs() >= deadlineMonotonicMs { return .stop }
        return explicit || service.gate.shouldYield ? .goUnlimited : .go
    }

    // ── What came of it ──

    private func settle(
        _ archive: borrowing ArchiveLock, _ outcome: TransferOutcome, attempt: UInt32,
        _ result: inout UploadResult
    ) throws(UploadError) -> PairState? {
        // A target that was removed meanwhile has no state and no callbacks any more.
        guard service.slot(slot.id) != nil else { return nil }
        let now = service.clock.realtimeMs()
        let verdict = Verdict.judge(
            outcome, isCollector: target.kind == .collector,
            isOnlyIfAbsent: target.asksOnlyIfAbsent, nowUnixMs: now)
        let state: PairState
        switch verdict {
        case .sent:
            state = .sent(httpStatus: outcome.httpStatus)
            try finish(archive, state, outcome, &result)
            return state
        case .refuse:
            try quarantine(
                archive, httpStatus: outcome.httpStatus, .upload, outcome.cause, &result)
            return .quarantined(httpStatus: outcome.httpStatus)
        case .pause:
            state = .paused(attempts: attempt, httpStatus: outcome.httpStatus)
        case .retry(.stopped, _):
            state = .retry(attempts: attempt, notBeforeMs: 0, reason: .stopped)
            try service.outbox.set(archive.stem, target.key, to: state)
            return state
        case .retry(let reason, let delayMs):
            let delay = delayMs ?? Backoff.delayMs(attempts: attempt, random: service.random())
            state = .retry(attempts: attempt, notBeforeMs: now &+ delay, reason: reason)
        }
        try service.outbox.set(archive.stem, target.key, to: state)
        result.failed += 1
        service.count { $0.failed += 1 }
        let isPause = verdict == .pause
        service.report(
            isPause ? UploadDiagnostic.error : UploadDiagnostic.warn,
            isPause
                ? "the target refuses our credentials" : "an upload failed; it will be repeated",
            fields(archive.stem, outcome.httpStatus, outcome.cause, attempt: attempt))
        return state
    }

    /// CRASH: between the 2xx and the state file the same body goes again with the same id;
    /// between the state file and the deletion the next pass deletes.
    private func finish(
        _ archive: borrowing ArchiveLock, _ state: PairState, _ outcome: TransferOutcome,
        _ result: inout UploadResult
    ) throws(UploadError) {
        do throws(UploadError) {
            try service.outbox.set(archive.stem, target.key, to: state)
        } catch {
            service.report(
                UploadDiagnostic.error, "what was sent could not be written down",
                fields(archive.stem, outcome.httpStatus, error.text, attempt: nil))
        }
        result.uploaded += 1
        result.bytesSent += outcome.bytesSent
        service.count {
            $0.succeeded += 1
            $0.bytes += outcome.bytesSent
        }
        service.report(
            UploadDiagnostic.debug, "uploaded",
            fields(archive.stem, outcome.httpStatus, outcome.cause, attempt: nil))
        defer { target.completed?(StorePaths.file(ofStem: archive.stem), .ok, outcome.httpStatus) }
        try Janitor(service: service).deleteIfSent(archive, sent: target.key)
    }

    private func quarantine(
        _ archive: borrowing ArchiveLock, httpStatus: Int32, _ status: UploadStatus,
        _ cause: String, _ result: inout UploadResult
    ) throws(UploadError) {
        try service.outbox.set(
            archive.stem, target.key, to: .quarantined(httpStatus: httpStatus))
        result.failed += 1
        service.count { $0.failed += 1 }
        service.report(
            UploadDiagnostic.error, "the target will not take this archive",
            fields(archive.stem, httpStatus, cause, attempt: nil))
        target.completed?(StorePaths.file(ofStem: archive.stem), status, httpStatus)
    }

    private func fields(
        _ stem: String, _ httpStatus: Int32, _ cause: String, attempt: UInt32?
    ) -> [(key: String, value: DiagnosticValue)] {
        var fields: [(key: String, value: DiagnosticValue)] = [
            ("archive", .text(StorePaths.file(ofStem: stem))),
            ("target", .text(target.name)), ("origin", .text(target.origin)),
            ("http.status", .number(Int64(httpStatus))), ("cause", .text(cause)),
        ]
        if let attempt { fields.append(("attempt", .number(Int64(attempt)))) }
        return fields
    }
}
