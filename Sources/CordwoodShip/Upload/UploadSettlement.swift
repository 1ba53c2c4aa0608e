// The end of an attempt: writes down the pair's new state, reports to the host, and deletes the
// archive once all targets have it.

import CordwoodStore

extension UploadAttempt {
    func settle(
        _ archive: borrowing ArchiveLock, _ step: Step, _ course: inout UploadCourse,
        _ result: inout UploadResult
    ) throws(UploadError) -> PairState? {
        // A target that was removed meanwhile has neither state nor callbacks.
        guard !runner.isGone else { return nil }
        let outcome = step.outcome
        // If nothing of it is wanted, there was no transfer.
        if step.hasSent || step.verdict != .sent(.none) {
            result.lastHTTPStatus = outcome.httpStatus
            result.lastOutcome = outcome.kind
        }
        course.countAnew()
        // The attempt ended before they were judged: they are kept.
        for refusal in course.retrials { noteRefused(archive.stem, 1, refusal.reason, &result) }
        let (attempt, now) = (course.attempt, service.clock.realtimeMs())
        let state: PairState
        switch step.verdict {
        case .sent:
            return finish(archive, step, course, &result)
        case .refuse, .simplify, .shrink, .stray:
            let (alone, inRow) = runner.noteRefused(archive.stem, attempt: attempt)
            let takesOthers = alone > 0
            // Events are only given up one by one.
            if alone >= UploadAttempt.refusalsMin,
                target.kind != .transactions || !course.suspects.isEmpty
            {
                return try giveUp(archive, step, &course, &result)
            }
            let delay =
                takesOthers
                ? Backoff.delayMs(attempts: attempt, random: service.random())
                : Backoff.restMs(refusals: inRow, random: service.random())
            state = .retry(
                attempts: attempt, notBeforeMs: now &+ delay,
                reason: takesOthers ? .failed : .refused, progress: course.stand)
        case .forbid:
            let alone = runner.noteForbiddenAlone(archive.stem, isAtFault: course.isAtFault)
            if course.isAtFault {
                if alone >= UploadAttempt.refusalsMin,
                    !course.suspects.isEmpty || target.format == .archive
                {
                    return try giveUp(archive, step, &course, &result)
                }
            } else {
                let random = service.random()
                runner.noteForbidden {
                    $0.noteRefused(before: forbiddenBefore.inRow, nowMs: now, random: random)
                }
            }
            state = .paused(
                attempts: attempt, httpStatus: outcome.httpStatus, progress: course.stand)
        case .pause:
            if outcome.httpStatus == HTTPStatus.forbidden {
                runner.noteForbidden { $0.noteCertain() }
            }
            state = .paused(
                attempts: attempt, httpStatus: outcome.httpStatus, progress: course.stand)
        case .retry(.stopped, _):
            return breakOff(archive, outcome, course, &result)
        case .retry(let said, let delayMs), .partly(_, _, let said, let delayMs):
            let isAlone = said == .busy && runner.noteBusy(archive.stem, attempt: attempt)
            let reason = isAlone ? .failed : said
            var delay =
                switch delayMs {
                case nil where said == .busy && runner.tookLately(service.clock):
                    Backoff.busyMs(attempts: attempt, random: service.random())
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
                progress: course.stand)
        }
        record(archive, state, cause: outcome.cause, refusals: course.refusals)
        if case .retry(_, let notBeforeMs, _, _) = state,
            AnswerVerdict.isOverload(outcome.httpStatus)
        {
            target.callbacks.busy?(target.name, notBeforeMs &- min(now, notBeforeMs))
        }
        result.failed += 1
        service.count { $0.failed += 1 }
        if target.dialect.asksForPolicy(outcome) { service.delegate?.policyWanted() }
        let (level, text) = meaning(step, state, course)
        service.report(
            level, text,
            fields(archive.stem, outcome.httpStatus, outcome.cause, attempt: attempt)
                + noted(outcome, archive.stem, attempt: attempt))
        return state
    }

    /// A failure in words for people.
    private func meaning(
        _ step: Step, _ state: PairState, _ course: UploadCourse
    ) -> (level: UInt8, text: String) {
        switch (step.verdict, state) {
        case (.pause, _): (UploadDiagnostic.error, "the target refuses our credentials")
        case (.forbid, _) where runner.forbiddenBodies.left(nowMs: service.clock.realtimeMs()) == 0:
            (
                UploadDiagnostic.error,
                "the target has refused \(ForbiddenBodies.perHourMax) bodies within an hour; all "
                    + "that waits for it waits for the hour's end"
            )
        case (.forbid, _) where course.isAtFault:
            (
                UploadDiagnostic.error,
                "the target takes others and refuses some of this archive; it goes on in smaller "
                    + "bodies"
            )
        case (.forbid, _) where runner.forbiddenBodies.refusesUs:
            (UploadDiagnostic.error, "the target refuses our credentials, or all that we send")
        case (.forbid, _):
            (
                UploadDiagnostic.error,
                "the target refuses our credentials, or this archive; another one will show which"
            )
        case (_, .retry(_, _, .refused, _)):
            (
                UploadDiagnostic.error,
                "the target refuses what we send; it rests, then one archive asks again"
            )
        default: (UploadDiagnostic.warn, "an upload failed; it will be repeated")
        }
    }

    /// The engine broke the attempt off; it is repeated at once. The host itself caused it in every
    /// case but one, so only the end of a call's time is reported as a failed transfer.
    private func breakOff(
        _ archive: borrowing ArchiveLock, _ stopped: TransferOutcome, _ course: UploadCourse,
        _ result: inout UploadResult
    ) -> PairState {
        let stop = run.stop
        var outcome = stopped
        outcome.cause = stop.rawValue
        let state = PairState.retry(
            attempts: course.attempt, notBeforeMs: 0, reason: .stopped, progress: course.stand)
        record(archive, state, cause: outcome.cause, refusals: course.refusals)
        // The call that it gives way to goes on with it.
        if stop == .givesWay { return state }
        result.failed += 1
        service.count { $0.failed += 1 }
        if stop == .outOfTime {
            service.report(
                UploadDiagnostic.warn, "an upload failed; it will be repeated",
                fields(archive.stem, 0, outcome.cause, attempt: course.attempt)
                    + noted(outcome, archive.stem, attempt: course.attempt))
        }
        return state
    }

    /// How often an archive is refused, while the target takes others in between, before it is
    /// given up: one of several servers behind an address may be at fault.
    static let refusalsMin: UInt32 = 3

    /// The target takes others and refuses this archive again and again: the refused records are
    /// kept.
    private func giveUp(
        _ archive: borrowing ArchiveLock, _ step: Step, _ course: inout UploadCourse,
        _ result: inout UploadResult
    ) throws(UploadError) -> PairState {
        let outcome = step.outcome
        let known = noted(outcome, archive.stem, attempt: course.attempt)
        runner.forgetRefusals(archive.stem, isOver: course.suspects.isEmpty)
        guard !course.suspects.isEmpty else {
            return try quarantine(
                archive, course, httpStatus: outcome.httpStatus, .upload, outcome.cause, &result,
                known: known)
        }
        noteRefused(
            archive.stem, UInt32(course.suspects.count), outcome.cause, &result)
        course.giveUpSuspects()
        let state = PairState.retry(
            attempts: 0, notBeforeMs: 0, reason: .stopped, progress: course.stand)
        record(archive, state, cause: outcome.cause, refusals: course.refusals)
        result.failed += 1
        return state
    }

    /// Remembers a failed transfer for hosts that ask; returns it as fields (B-NET).
    private func noted(
        _ outcome: TransferOutcome, _ stem: String, attempt: UInt32
    ) -> [(key: String, value: DiagnosticValue)] {
        var outcome = outcome
        // Some servers refuse with a 200: neither a success nor anything that a status names.
        if outcome.kind == .success { outcome.kind = .unknown }
        let now = service.clock.realtimeMs()
        let detail = FailureDetail(outcome, nowUnixMs: now)
        service.failures.note(
            TransferFailure(
                detail: detail, target: target.name, archive: StorePaths.file(ofStem: stem),
                attempt: attempt, unixMs: now))
        return detail.fields
    }

    /// CRASH: between the 2xx and the state file the same body is sent again with the same id;
    /// between the state file and the deletion the next pass deletes.
    private func finish(
        _ archive: borrowing ArchiveLock, _ step: Step, _ course: UploadCourse,
        _ result: inout UploadResult
    ) -> PairState {
        let outcome = step.outcome
        let refusals = course.refusals
        if step.hasSent {
            result.bytesSent += outcome.bytesSent
            service.count { $0.bytes += outcome.bytesSent }
        }
        if !refusals.kept.isEmpty, target.keepsRefused {
            return keepRefused(archive, refusals, &result)
        }
        let state: PairState =
            step.hasSent ? .sent(httpStatus: outcome.httpStatus) : .filtered
        // An only target needs no state: the unlink is it, also on a full disk.
        let isGone = Janitor(service: service).unlinkSole(archive, target.key)
        if isGone { runner.remember(archive.stem, nil) } else { record(archive, state) }
        if state != .filtered {
            result.uploaded += 1
            service.count {
                $0.succeeded += 1
                $0.lastTakenHTTPStatus = outcome.httpStatus
            }
        }
        service.report(
            UploadDiagnostic.debug, state == .filtered ? "nothing of it is wanted" : "uploaded",
            fields(archive.stem, outcome.httpStatus, outcome.cause, attempt: nil))
        defer {
            target.callbacks.completed?(
                StorePaths.file(ofStem: archive.stem), .ok, outcome.httpStatus)
        }
        run.noteDone(archive.stem)
        return state
    }

    /// All records were delivered except for the refused ones.
    private func keepRefused(
        _ archive: borrowing ArchiveLock, _ refusals: PairRefusals, _ result: inout UploadResult
    ) -> PairState {
        let (status, cause) = (refusals.httpStatus, refusals.kept.first?.reason ?? "")
        let state = PairState.kept(httpStatus: status, records: refusals.records)
        record(archive, state, cause: cause, refusals: refusals.settled)
        countQuarantined(status, &result)
        service.report(
            UploadDiagnostic.error, "an archive is kept for what its target does not take",
            fields(archive.stem, status, cause, attempt: nil)
                + [("records", .number(Int64(refusals.records)))])
        target.callbacks.completed?(StorePaths.file(ofStem: archive.stem), .upload, status)
        return state
    }

    private func countQuarantined(_ httpStatus: Int32, _ result: inout UploadResult) {
        result.failed += 1
        result.quarantined += 1
        service.count {
            $0.failed += 1
            $0.quarantined += 1
            if target.kind == .transactions { $0.eventsQuarantined += 1 }
            $0.lastRefusal = (httpStatus, TransferOutcome.kind(httpStatus: httpStatus))
        }
    }

    func quarantine(
        _ archive: borrowing ArchiveLock, _ course: UploadCourse, httpStatus: Int32,
        _ status: UploadStatus, _ cause: String, _ result: inout UploadResult,
        known: [(key: String, value: DiagnosticValue)] = []
    ) throws(UploadError) -> PairState {
        let state = PairState.quarantined(httpStatus: httpStatus, progress: course.stand)
        record(archive, state, cause: cause, refusals: course.refusals)
        countQuarantined(httpStatus, &result)
        service.report(
            UploadDiagnostic.error,
            status == .damaged
                ? "an archive is damaged; it is kept" : "the target will not take this archive",
            fields(archive.stem, httpStatus, cause, attempt: nil) + known)
        target.callbacks.completed?(StorePaths.file(ofStem: archive.stem), status, httpStatus)
        return state
    }

    /// Waits for a key: a host that opens the store with one may come at any time. Reported once,
    /// because nothing that this engine does will change it.
    func wait(
        _ archive: borrowing ArchiveLock, _ course: UploadCourse, _ cause: String,
        _ result: inout UploadResult
    ) throws(UploadError) -> PairState {
        let attempt = course.attempt
        let state = PairState.retry(
            attempts: attempt, notBeforeMs: service.clock.realtimeMs() &+ Backoff.delayMsMax,
            reason: .failed, progress: course.stand)
        let text = cause + "; this target needs plain records"
        record(archive, state, cause: text, refusals: course.refusals)
        result.failed += 1
        service.count { $0.failed += 1 }
        if attempt == 1 {
            service.report(
                UploadDiagnostic.error, "an encrypted archive waits for a key",
                fields(archive.stem, 0, text, attempt: nil))
        }
        return state
    }

    /// Writes down the result. If that fails, this process remembers it: it neither sends a server
    /// what it has nor retries without a pause.
    func record(
        _ archive: borrowing ArchiveLock, _ state: PairState, cause: String = "",
        refusals: PairRefusals = .none
    ) {
        do throws(UploadError) {
            try service.outbox.set(
                archive.stem, target.key, to: state, cause: cause, refusals: refusals)
            runner.remember(archive.stem, nil)
        } catch {
            guard runner.remember(archive.stem, (state, refusals)) else { return }
            service.report(
                UploadDiagnostic.error, "what came of an upload could not be written down",
                fields(archive.stem, 0, error.text, attempt: nil))
        }
    }

    /// Reports a failed transfer that is repeated within the attempt (B-NET-4).
    func noteRecovered(_ stem: String, _ outcome: TransferOutcome, _ what: String) {
        let detail = FailureDetail(outcome, nowUnixMs: service.clock.realtimeMs())
        service.report(
            UploadDiagnostic.warn, what,
            fields(stem, outcome.httpStatus, outcome.cause, attempt: nil) + detail.fields)
    }

    /// Counts records that the target has now.
    func noteTaken(_ count: UInt32, _ result: inout UploadResult) {
        result.records &+= UInt64(count)
        service.count {
            $0.records &+= UInt64(count)
            if target.kind == .transactions { $0.events &+= UInt64(count) }
        }
    }

    /// Records that this target will never get; the archive's other targets are not affected.
    func noteRefused(
        _ stem: String, _ count: UInt32, _ cause: String, _ result: inout UploadResult
    ) {
        guard count > 0 else { return }
        result.refused &+= count
        service.count {
            $0.refused &+= UInt64(count)
            if target.kind == .transactions { $0.eventsRefused &+= UInt64(count) }
        }
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
