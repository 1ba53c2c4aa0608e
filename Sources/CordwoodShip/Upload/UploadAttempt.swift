// One attempt: one archive at one target, under the pair's lock. Reads the pair's state again,
// makes the body, or one after the other the parts that the target's limits ask for, sends them,
// writes down what came of each, tells the host, deletes the archive when all have it. A part's id
// and bytes are the same on every attempt.

import CordwoodCore

struct UploadAttempt {
    let run: TargetRun
    /// nil: it could not be read when it was listed.
    let summary: ArchiveSummary?

    private var service: UploadService { run.service }
    private var runner: TargetRunner { run.runner }
    private var target: Target { run.runner.target }

    /// How one part ended, and how far the archive is with it.
    private struct Step {
        var verdict: Verdict
        var outcome: TransferOutcome
        var progress: Progress
        var isLast = false
    }

    /// - Returns: the pair's new state; nil: nothing was attempted.
    func make(
        _ archive: borrowing ArchiveLock, _ transport: any Transport, _ result: inout UploadResult
    ) throws(UploadError) -> PairState? {
        // Another process may have sent it, or been told to wait, since the run began.
        let read = try service.outbox.states(archive.stem)[target.key] ?? .waiting
        let state = runner.known(archive.stem, read)
        guard !state.isFinal, run.allows(state) else { return nil }
        let attempt = state.attempts &+ 1
        let known: ArchiveSummary?
        do throws(UploadError) {
            known = try readSummary(archive.stem)
        } catch .locked(let text) {
            return try wait(archive, state.progress, attempt: attempt, text, &result)
        }
        guard let summary = known else {
            return try quarantine(
                archive, .start, httpStatus: 0, .damaged, "the archive cannot be read", &result)
        }
        target.callbacks.attempting?(StorePaths.file(ofStem: archive.stem), attempt)
        var progress = state.progress
        do throws(UploadError) {
            let step =
                if let encoder = try target.dialect.makeEncoder(
                    service.lines, store: service.paths)
                {
                    try parts(archive, summary, encoder, transport, &progress, &result)
                } else {
                    try whole(archive, summary, transport)
                }
            return try settle(archive, step, attempt: attempt, &result)
        } catch .damaged(let text), .version(let text) {
            return try quarantine(archive, progress, httpStatus: 0, .damaged, text, &result)
        } catch .locked(let text) {
            return try wait(archive, progress, attempt: attempt, text, &result)
        } catch {
            let step = Step(
                verdict: .retry(.failed, delayMs: nil), outcome: .failed(error.text),
                progress: progress)
            return try settle(archive, step, attempt: attempt, &result)
        }
    }

    /// nil: it is no archive. What the system would not give when it was listed is asked again.
    private func readSummary(_ stem: String) throws(UploadError) -> ArchiveSummary? {
        if let summary { return summary }
        do throws(ReadProblem) {
            return try service.hooks.archiveInfo(service.paths.archive(stem))
        } catch .system(let call, let code) {
            throw .system(call: call, path: service.paths.archive(stem), errno: code)
        } catch .locked(let text) {
            throw .locked(text)
        } catch {
            return nil
        }
    }

    // ── An archive as it is ──

    private func whole(
        _ archive: borrowing ArchiveLock, _ summary: ArchiveSummary, _ transport: any Transport
    ) throws(UploadError) -> Step {
        while true {
            let encoding = runner.learned.encoding
            var delivery = try delivery(archive.stem, summary, range: nil, encoding)
            let outcome: TransferOutcome
            if encoding == .none {
                let body = Body(archive: archive)
                outcome = try send(&delivery, body, transport)
            } else {
                let copy = try TemporaryBody.copy(
                    archive, service.paths, encoding: encoding, shouldStop: shouldStop)
                guard let copy else { return stopped(.start) }
                outcome = try send(&delivery, copy, transport)
            }
            let verdict = judge(outcome, delivery)
            if verdict == .simplify, simplify(from: encoding) {
                noteRecovered(archive.stem, outcome, "the target wants another encoding")
                continue
            }
            return Step(verdict: verdict, outcome: outcome, progress: .start, isLast: true)
        }
    }

    // ── Records, part by part ──

    private func parts(
        _ archive: borrowing ArchiveLock, _ summary: ArchiveSummary,
        _ encoder: any RecordEncoder, _ transport: any Transport, _ progress: inout Progress,
        _ result: inout UploadResult
    ) throws(UploadError) -> Step {
        var parts = ArchiveParts(
            paths: service.paths, stem: archive.stem, archiveID: summary.idText,
            filter: target.filter, limits: target.dialect.limits, encoder: encoder,
            openRecords: service.hooks.openRecords)
        var hasSent = progress.done > 0
        while true {
            let encoding = runner.learned.encoding
            let first = progress.done
            let doubt = progress.doubt > first ? progress.doubt : nil
            let only = doubt.flatMap {
                runner.asked(archive.stem, PartRange(first: first, end: $0))
            }
            // What was sent without an answer goes again as it was, whatever was learnt since: the
            // server may have it, under this id.
            let next = try parts.next(
                from: first, end: doubt, only: only, encoding: encoding,
                bytesMax: doubt == nil ? runner.learned.bytesMax : 0, shouldStop: shouldStop)
            switch consume next {
            case .stopped: return stopped(progress)
            case .nothing(let upTo, let isLast, let oversized):
                noteOversized(archive.stem, oversized, &result)
                progress = Progress(done: upTo)
                guard isLast else { continue }
                if let damage = parts.damage { throw .damaged(damage) }
                var outcome = TransferOutcome(kind: .success, cause: "nothing more to send")
                outcome.httpStatus = hasSent ? 200 : 0
                return Step(
                    verdict: .sent(refused: 0), outcome: outcome, progress: progress, isLast: true)
            case .part(let part):
                let range = part.range
                let isWhole = range.first == 0 && part.isLast
                var delivery = try delivery(
                    archive.stem, summary, range: isWhole ? nil : range, encoding)
                delivery.entries = part.entries
                remember(archive, Progress(done: first, doubt: range.end))
                let outcome = try send(&delivery, part.body, transport)
                let verdict = judge(outcome, delivery)
                switch verdict {
                case .sent(let refused):
                    hasSent = true
                    noteOversized(archive.stem, part.oversized, &result)
                    noteRefused(archive.stem, refused, outcome.cause, &result)
                    noteTaken(part.entries &- min(refused, part.entries), &result)
                    runner.ask(archive.stem, range, nil)
                    progress = Progress(done: range.end)
                    // What could be read is there; what could not is kept for who looks.
                    if part.isLast, let damage = parts.damage {
                        advance(archive, progress, outcome, &result)
                        throw .damaged(damage)
                    }
                    if part.isLast {
                        return Step(
                            verdict: verdict, outcome: outcome, progress: progress, isLast: true)
                    }
                    advance(archive, progress, outcome, &result)
                    if !run.mayGoOn { return stopped(progress) }
                case .shrink where part.entries > 1:
                    noteRecovered(archive.stem, outcome, "the target wants smaller bodies")
                    // Half of the entries; what surrounds them stays as it is.
                    let frame = UInt64(encoder.frameBytes)
                    let entries = part.rawBytes - min(frame, part.rawBytes)
                    // What was in doubt may be larger than what was learnt since.
                    let half = frame + max(1, entries / 2)
                    runner.learn { $0.bytesMax = $0.bytesMax == 0 ? half : min($0.bytesMax, half) }
                    progress.doubt = 0
                case .shrink:
                    // Alone it is too large: this server will not have it.
                    noteRecovered(archive.stem, outcome, "the target takes no body so small")
                    noteOversized(archive.stem, 1, &result)
                    progress = Progress(done: range.end)
                case .simplify where simplify(from: encoding):
                    noteRecovered(archive.stem, outcome, "the target wants another encoding")
                case .partly(let again, let refused, _, _):
                    noteRefused(archive.stem, refused, outcome.cause, &result)
                    let left = UInt32(clamping: again.count) &+ refused
                    noteTaken(part.entries &- min(left, part.entries), &result)
                    runner.ask(archive.stem, range, again)
                    progress.doubt = range.end
                    return Step(verdict: verdict, outcome: outcome, progress: progress)
                default:
                    progress.doubt = range.end
                    return Step(verdict: verdict, outcome: outcome, progress: progress)
                }
            }
        }
    }

    /// Where a part ends is written down before it goes, where another process, with other limits
    /// or another answer of the server's behind it, would make another part of it.
    /// CRASH: the next attempt sends the same range, under the same id.
    private func remember(_ archive: borrowing ArchiveLock, _ progress: Progress) {
        guard target.kind == .transactions || runner.learned.bytesMax > 0 else { return }
        record(
            archive, .retry(attempts: 0, notBeforeMs: 0, reason: .stopped, progress: progress))
    }

    /// CRASH: between the 2xx and the state file the same part goes again with the same id.
    private func advance(
        _ archive: borrowing ArchiveLock, _ progress: Progress, _ outcome: TransferOutcome,
        _ result: inout UploadResult
    ) {
        record(
            archive, .retry(attempts: 0, notBeforeMs: 0, reason: .stopped, progress: progress))
        result.bytesSent += outcome.bytesSent
        service.count { $0.bytes += outcome.bytesSent }
    }

    // ── One exchange ──

    private func delivery(
        _ stem: String, _ summary: ArchiveSummary, range: PartRange?, _ encoding: BodyEncoding
    ) throws(UploadError) -> Delivery {
        var delivery = Delivery(
            id: Delivery.id(archiveID: summary.idText, range: range),
            archiveID: summary.idText, range: range, fileName: StorePaths.file(ofStem: stem),
            encoding: encoding, credentials: target.keeper.current,
            nowUnixMs: service.clock.realtimeMs())
        delivery.isEncodingProven = runner.learned.isEncodingProven
        if target.dialect.needsOrigin {
            delivery.origin = try ArchiveOrigin.read(
                service.paths.archive(stem), timeUnixMs: summary.timeMaxNs / 1_000_000,
                service.hooks.openRecords)
        }
        return delivery
    }

    private func send(
        _ delivery: inout Delivery, _ body: borrowing Body, _ transport: any Transport
    ) throws(UploadError) -> TransferOutcome {
        delivery.contentBytes = body.contentBytes
        var outcome = try target.send(
            &delivery, body, bytesPerSecond: run.explicit ? 0 : target.bytesPerSecond,
            isStopped: shouldStop
        ) { transport.perform($0, tick: run.tick) }
        outcome.bytesSent = body.bytes
        return outcome
    }

    private func judge(_ outcome: TransferOutcome, _ delivery: Delivery) -> Verdict {
        // What a server objects to stands in its answer: half of one is no last word.
        let isHalf =
            outcome.httpStatus == 400 && outcome.isBodyCut
            && outcome.body.count < TransferOutcome.bodyBytesMax
        let verdict =
            isHalf
            ? .retry(.failed, delayMs: nil)
            : target.dialect.verdict(outcome, delivery)
                ?? Verdict.judge(
                    outcome, isCollector: target.kind == .collector,
                    isOnlyIfAbsent: target.asksOnlyIfAbsent,
                    isEncodingProven: runner.learned.isEncodingProven,
                    nowUnixMs: service.clock.realtimeMs())
        switch verdict {
        case .sent, .partly:
            runner.learn { $0.isEncodingProven = true }
            runner.note(success: true)
        case .retry(let reason, _) where reason != .stopped: runner.note(success: false)
        default: break
        }
        return verdict
    }

    /// False: there is no simpler encoding.
    private func simplify(from encoding: BodyEncoding) -> Bool {
        guard let simpler = encoding.simpler else { return false }
        runner.learn {
            if $0.encoding == encoding { $0.encoding = simpler }
        }
        return true
    }

    private func shouldStop() -> Bool { run.tick() == .stop }

    private func stopped(_ progress: Progress) -> Step {
        var outcome = TransferOutcome.failed("stopped while the body was made")
        outcome.isStopped = true
        return Step(
            verdict: .retry(.stopped, delayMs: 0), outcome: outcome, progress: progress)
    }

    // ── What came of it ──

    private func settle(
        _ archive: borrowing ArchiveLock, _ step: Step, attempt: UInt32,
        _ result: inout UploadResult
    ) throws(UploadError) -> PairState? {
        // A target that was removed meanwhile has no state and no callbacks any more.
        guard !runner.isGone else { return nil }
        let outcome = step.outcome
        result.lastHTTPStatus = outcome.httpStatus
        result.lastOutcome = outcome.kind
        let now = service.clock.realtimeMs()
        let state: PairState
        switch step.verdict {
        case .sent:
            return try finish(archive, outcome, &result)
        case .refuse, .simplify, .shrink:
            return try quarantine(
                archive, step.progress, httpStatus: outcome.httpStatus, .upload, outcome.cause,
                &result, known: noted(outcome, archive.stem, attempt: attempt))
        case .pause:
            state = .paused(
                attempts: attempt, httpStatus: outcome.httpStatus, progress: step.progress)
        case .retry(.stopped, _):
            state = .retry(
                attempts: attempt, notBeforeMs: 0, reason: .stopped, progress: step.progress)
            record(archive, state)
            return state
        case .retry(let reason, let delayMs), .partly(_, _, let reason, let delayMs):
            var delay =
                switch delayMs {
                case nil: Backoff.delayMs(attempts: attempt, random: service.random())
                case 0: Backoff.soonMs(attempts: attempt, random: service.random())
                case let said?: said
                }
            if reason == .server {
                delay += Backoff.spreadMs(delayMs: delay, random: service.random())
                delay = min(delay, RetryAfter.delayMsMax)
            }
            state = .retry(
                attempts: attempt, notBeforeMs: now &+ delay, reason: reason,
                progress: step.progress)
        }
        record(archive, state, cause: outcome.cause)
        if case .retry(_, let notBeforeMs, _, _) = state,
            outcome.httpStatus == 503 || outcome.httpStatus == 429
        {
            target.callbacks.busy?(target.name, notBeforeMs &- min(now, notBeforeMs))
        }
        result.failed += 1
        service.count { $0.failed += 1 }
        let isPause = step.verdict == .pause
        if target.dialect.asksForPolicy(outcome) { service.hooks.policyWanted() }
        service.report(
            isPause ? UploadDiagnostic.error : UploadDiagnostic.warn,
            isPause ? pauseText(outcome) : "an upload failed; it will be repeated",
            fields(archive.stem, outcome.httpStatus, outcome.cause, attempt: attempt)
                + noted(outcome, archive.stem, attempt: attempt))
        return state
    }

    private func pauseText(_ outcome: TransferOutcome) -> String {
        outcome.httpStatus == 401 || outcome.httpStatus == 403
            ? "the target refuses our credentials"
            : "the target is not ready for what we send; it rests until somebody has looked"
    }

    /// Keeps what is known of a failed transfer for hosts that ask; gives it as fields (B-NET).
    private func noted(
        _ outcome: TransferOutcome, _ stem: String, attempt: UInt32
    ) -> [(key: String, value: DiagnosticValue)] {
        var outcome = outcome
        // Some servers refuse behind a 200: no success, and nothing that a status names.
        if outcome.kind == .success { outcome.kind = .unknown }
        let now = service.clock.realtimeMs()
        let detail = FailureDetail(outcome, nowUnixMs: now)
        service.failures.note(
            TransferFailure(
                detail: detail, target: target.name, archive: StorePaths.file(ofStem: stem),
                attempt: attempt, unixMs: now))
        return detail.fields
    }

    /// CRASH: between the 2xx and the state file the same body goes again with the same id;
    /// between the state file and the deletion the next pass deletes.
    private func finish(
        _ archive: borrowing ArchiveLock, _ outcome: TransferOutcome, _ result: inout UploadResult
    ) throws(UploadError) -> PairState {
        let state: PairState =
            outcome.httpStatus == 0 ? .filtered : .sent(httpStatus: outcome.httpStatus)
        record(archive, state)
        if state != .filtered {
            result.uploaded += 1
            result.bytesSent += outcome.bytesSent
            service.count {
                $0.succeeded += 1
                $0.bytes += outcome.bytesSent
            }
        }
        service.report(
            UploadDiagnostic.debug, state == .filtered ? "nothing of it is wanted" : "uploaded",
            fields(archive.stem, outcome.httpStatus, outcome.cause, attempt: nil))
        defer {
            target.callbacks.completed?(
                StorePaths.file(ofStem: archive.stem), .ok, outcome.httpStatus)
        }
        try Janitor(service: service).deleteIfDone(archive, done: target.key)
        return state
    }

    private func quarantine(
        _ archive: borrowing ArchiveLock, _ progress: Progress, httpStatus: Int32,
        _ status: UploadStatus, _ cause: String, _ result: inout UploadResult,
        known: [(key: String, value: DiagnosticValue)] = []
    ) throws(UploadError) -> PairState {
        let state = PairState.quarantined(httpStatus: httpStatus, progress: progress)
        record(archive, state, cause: cause)
        result.failed += 1
        service.count {
            $0.failed += 1
            $0.quarantined += 1
            $0.lastRefusal = (httpStatus, TransferOutcome.kind(httpStatus: httpStatus))
        }
        service.report(
            UploadDiagnostic.error,
            status == .damaged
                ? "an archive is damaged; it is kept" : "the target will not take this archive",
            fields(archive.stem, httpStatus, cause, attempt: nil) + known)
        target.callbacks.completed?(StorePaths.file(ofStem: archive.stem), status, httpStatus)
        return state
    }

    /// For a key: a host that opens the store with one may come any time. Told of once, for nothing
    /// that this engine does will change it.
    private func wait(
        _ archive: borrowing ArchiveLock, _ progress: Progress, attempt: UInt32, _ cause: String,
        _ result: inout UploadResult
    ) throws(UploadError) -> PairState {
        let state = PairState.retry(
            attempts: attempt, notBeforeMs: service.clock.realtimeMs() &+ Backoff.delayMsMax,
            reason: .failed, progress: progress)
        let text = cause + "; this target needs plain records"
        record(archive, state, cause: text)
        result.failed += 1
        service.count { $0.failed += 1 }
        if attempt == 1 {
            service.report(
                UploadDiagnostic.error, "an encrypted archive waits for a key",
                fields(archive.stem, 0, text, attempt: nil))
        }
        return state
    }

    /// Writes down what came of it. Where that cannot be, this process remembers: a server is not
    /// asked again for what it has, nor without a pause.
    private func record(
        _ archive: borrowing ArchiveLock, _ state: PairState, cause: String = ""
    ) {
        do throws(UploadError) {
            try service.outbox.set(archive.stem, target.key, to: state, cause: cause)
            runner.remember(archive.stem, nil)
        } catch {
            guard runner.remember(archive.stem, state) else { return }
            service.report(
                UploadDiagnostic.error, "what came of an upload could not be written down",
                fields(archive.stem, 0, error.text, attempt: nil))
        }
    }

    /// A transfer that failed and is made anew within the attempt (B-NET-4).
    private func noteRecovered(_ stem: String, _ outcome: TransferOutcome, _ what: String) {
        let detail = FailureDetail(outcome, nowUnixMs: service.clock.realtimeMs())
        service.report(
            UploadDiagnostic.warn, what,
            fields(stem, outcome.httpStatus, outcome.cause, attempt: nil) + detail.fields)
    }

    /// Records that are at the target now.
    private func noteTaken(_ count: UInt32, _ result: inout UploadResult) {
        result.records &+= UInt64(count)
        if target.kind == .transactions { service.count { $0.events &+= UInt64(count) } }
    }

    private func noteOversized(_ stem: String, _ count: UInt32, _ result: inout UploadResult) {
        noteRefused(stem, count, "larger than the target takes", &result)
    }

    /// Records that this target will never have; the archive's other targets are not touched.
    private func noteRefused(
        _ stem: String, _ count: UInt32, _ cause: String, _ result: inout UploadResult
    ) {
        guard count > 0 else { return }
        result.refused &+= count
        service.count { $0.refused &+= UInt64(count) }
        service.report(
            UploadDiagnostic.error, "the target does not take some records",
            [
                ("archive", .text(StorePaths.file(ofStem: stem))), ("target", .text(target.name)),
                ("records", .number(Int64(count))), ("cause", .text(cause)),
            ])
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
