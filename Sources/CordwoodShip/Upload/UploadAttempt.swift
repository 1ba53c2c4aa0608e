// One attempt: one archive at one target, under the pair's lock. Reads the pair's state again,
// makes the body, or one after the other the parts that the target's limits require (UploadParts),
// sends them, writes down each result, reports to the host, and deletes the archive once all
// targets have it (UploadSettlement). A part's id and bytes are the same on every attempt.

import CordwoodCore
import CordwoodStore

struct UploadAttempt {
    let run: TargetRun
    /// nil: it could not be read when it was listed.
    let summary: ArchiveSummary?
    /// The target's 403s when it began.
    let forbiddenBefore: ForbiddenBodies

    init(run: TargetRun, summary: ArchiveSummary?) {
        self.run = run
        self.summary = summary
        forbiddenBefore = run.runner.forbiddenBodies
    }

    var service: UploadService { run.service }
    var runner: TargetRunner { run.runner }
    var target: Target { run.runner.target }

    /// How the attempt ended.
    struct Step {
        var verdict: AnswerVerdict
        var outcome: TransferOutcome
        /// A body of it was taken now or by an earlier attempt, apart from refused records.
        var hasSent = false
    }

    /// - Returns: the pair's new state; nil: nothing was attempted.
    func make(
        _ archive: borrowing ArchiveLock, _ transport: any Transport, _ result: inout UploadResult
    ) throws(UploadError) -> PairState? {
        // Another process may have sent it, or been asked to wait, since the run began.
        let read = try service.outbox.states(archive.stem)[target.key] ?? .waiting
        let unwritten = runner.unwritten(archive.stem, beyond: read)
        let state = unwritten?.state ?? read
        guard !state.isFinal, run.allows(state) else { return nil }
        let refusals: PairRefusals? =
            if let known = unwritten?.refusals { known } else {
                try service.outbox.refusals(archive.stem, target.key, read)
            }
        var course = UploadCourse(archive, state, runner.learned, refusals)
        course.judge(
            blame: runner.blame(archive.stem), isLately: runner.tookLately(service.clock),
            refusesUs: forbiddenBefore.refusesUs)
        let known: ArchiveSummary?
        do throws(UploadError) {
            known = try readSummary(archive.stem)
        } catch .locked(let text) {
            return try wait(archive, course, text, &result)
        }
        guard let summary = known else {
            return try quarantine(
                archive, course, httpStatus: 0, .damaged, "the archive cannot be read", &result)
        }
        target.callbacks.attempting?(StorePaths.file(ofStem: archive.stem), course.attempt)
        do throws(UploadError) {
            let step =
                if let encoder = try target.dialect.makeEncoder(
                    service.lines, store: service.paths)
                {
                    try parts(archive, summary, encoder, transport, &course, &result)
                } else {
                    try whole(archive, summary, transport, &course)
                }
            return try settle(archive, step, &course, &result)
        } catch .damaged(let text), .version(let text) {
            return try quarantine(archive, course, httpStatus: 0, .damaged, text, &result)
        } catch .locked(let text) {
            return try wait(archive, course, text, &result)
        } catch {
            let step = Step(verdict: .retry(.failed, delayMs: nil), outcome: .failed(error.text))
            return try settle(archive, step, &course, &result)
        }
    }

    /// nil: it is not an archive. Retries what the system would not provide during the listing.
    private func readSummary(_ stem: String) throws(UploadError) -> ArchiveSummary? {
        if let summary { return summary }
        do throws(ReadProblem) {
            return try service.summary(stem)
        } catch .system(let call, let code) {
            throw .system(call: call, path: "\(service.paths.archive(stem))", errno: code)
        } catch .locked(let text) {
            throw .locked(text)
        } catch {
            return nil
        }
    }

    // ── An archive sent as a file ──

    private func whole(
        _ archive: borrowing ArchiveLock, _ summary: ArchiveSummary, _ transport: any Transport,
        _ course: inout UploadCourse
    ) throws(UploadError) -> Step {
        while true {
            var delivery = try delivery(archive.stem, summary, range: nil, course)
            guard let body = try body(archive, course) else { return stopped() }
            var outcome = try send(&delivery, body, transport)
            let verdict = judge(&outcome, delivery)
            if verdict == .simplify, course.simplify() {
                noteRecovered(archive.stem, outcome, "the target wants another encoding")
                continue
            }
            let isSent = if case .sent = verdict { true } else { false }
            if isSent { noteTaken(archive.stem, &course) }
            return Step(verdict: verdict, outcome: outcome, hasSent: isSent)
        }
    }

    /// nil: stopped.
    private func body(
        _ archive: borrowing ArchiveLock, _ course: UploadCourse
    ) throws(UploadError) -> Body? {
        if course.encoding == .none { return Body(archive: archive) }
        return try ArchiveCopy.body(
            archive, service.paths, encoding: course.encoding, shouldStop: shouldStop)
    }

    // ── One exchange ──

    func delivery(
        _ stem: String, _ summary: ArchiveSummary, range: PartRange?, _ course: UploadCourse
    ) throws(UploadError) -> Delivery {
        var delivery = Delivery(
            target, summary, stem: stem, range: range, round: course.refusals.round,
            encoding: course.encoding, nowUnixMs: service.clock.realtimeMs())
        delivery.isEncodingProven =
            course.encoding == .none || runner.learned.isEncodingProven
        if target.dialect.needsOrigin {
            delivery.origin = try ArchiveOrigin.read(
                service.paths.archive(stem), timeUnixMs: summary.writtenNs / 1_000_000,
                service.identities)
        }
        return delivery
    }

    func send(
        _ delivery: inout Delivery, _ body: borrowing Body, _ transport: any Transport
    ) throws(UploadError) -> TransferOutcome {
        delivery.contentBytes = body.contentBytes
        var outcome = try exchange(&delivery, body, transport)
        if outcome.isReset, runner.noteReset(isDivisible: delivery.entries > 1) {
            noteRecovered(
                StorePaths.stem(ofFile: delivery.fileName) ?? "", outcome,
                "the target resets HTTP/2 streams; HTTP/1.1 is used from now on")
            outcome = try exchange(&delivery, body, transport)
        }
        outcome.bytesSent = body.bytes
        return outcome
    }

    private func exchange(
        _ delivery: inout Delivery, _ body: borrowing Body, _ transport: any Transport
    ) throws(UploadError) -> TransferOutcome {
        let speaksHTTP1 = runner.speaksHTTP1
        return try target.send(
            &delivery, body, bytesPerSecond: run.explicit ? 0 : target.bytesPerSecond,
            isStopped: shouldStop
        ) {
            var request = $0
            if speaksHTTP1 { request.settings.httpVersion = .http1 }
            return transport.perform(request, tick: run.tick)
        }
    }

    func judge(_ outcome: inout TransferOutcome, _ delivery: Delivery) -> AnswerVerdict {
        let isOther = outcome.kind == .success && !target.isReceipt(outcome, delivery)
        if isOther {
            outcome.cause += ", and no answer of kind \(target.kind.rawValue) that it is there"
        }
        let verdict = isOther ? .stray : meaning(of: outcome, delivery)
        // Some servers refuse with a 200: then its text says why, unless the dialect has done so.
        var isUntold = isOther || outcome.cause == "HTTP \(outcome.httpStatus)"
        switch verdict {
        case .sent, .partly:
            isUntold = false
            runner.note(success: true)
        case .retry(let reason, _) where reason != .stopped:
            runner.note(
                success: false, isDown: outcome.isUnreachable || outcome.httpStatus >= 500)
        case .forbid:
            runner.noteForbidden(
                StorePaths.stem(ofFile: delivery.fileName) ?? "",
                nowMs: service.clock.realtimeMs())
        default: break
        }
        // The protocol has read the answer; from here on the answer is only shown.
        let request = target.request(delivery, bytesPerSecond: 0)
        let secrets = SentSecrets(request, also: delivery.credentials.secrets)
        secrets.clean(&outcome)
        if outcome.kind == .success, isUntold {
            let words = AnswerText.words(secrets.cleaned(outcome.body))
            if !words.isEmpty { outcome.cause += ": \(words)" }
        }
        return verdict
    }

    private func meaning(of outcome: TransferOutcome, _ delivery: Delivery) -> AnswerVerdict {
        // The answer says what the server objects to; a truncated one may leave that out.
        if outcome.httpStatus == 400, outcome.isBodyCut,
            outcome.body.count < TransferOutcome.bodyBytesMax
        {
            return .retry(.failed, delayMs: nil)
        }
        // Try a smaller body first; after the next reset HTTP/1.1 is used.
        if outcome.isReset, delivery.entries > 1, target.settings.httpVersion == .automatic {
            return .shrink
        }
        return target.dialect.verdict(outcome, delivery)
            ?? AnswerVerdict.judge(
                outcome, isCollector: target.kind == .collector,
                isOnlyIfAbsent: target.asksOnlyIfAbsent
                    && target.dialect.isAddressOfBody(delivery),
                isEncodingProven: delivery.isEncodingProven,
                nowUnixMs: service.clock.realtimeMs())
    }

    /// The target has taken a body made this way.
    func noteTaken(_ stem: String, _ course: inout UploadCourse) {
        course.know(runner.learn(course.taken, of: stem, service.clock))
        run.noteTaken()
    }

    func shouldStop() -> Bool { run.tick() == .stop }

    func stopped() -> Step {
        var outcome = TransferOutcome.failed("stopped while the body was made")
        outcome.isStopped = true
        return Step(verdict: .retry(.stopped, delayMs: 0), outcome: outcome)
    }
}
