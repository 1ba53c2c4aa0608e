// An attempt for a target that wants records: one body after the other, each as large as the
// target's limits allow. Bodies are smaller if the server demands it, and halved if it refuses
// their content, until the one unacceptable record is found.

import CordwoodStore

extension UploadAttempt {
    func parts(
        _ archive: borrowing ArchiveLock, _ summary: ArchiveSummary,
        _ encoder: any RecordEncoder, _ transport: any Transport, _ course: inout UploadCourse,
        _ result: inout UploadResult
    ) throws(UploadError) -> Step {
        var parts = ArchiveParts(
            paths: service.paths, stem: archive.stem, filter: target.filter,
            limits: target.dialect.limits, encoder: encoder, identities: service.identities,
            hashes: target.kind == .s3, again: target.encoders(service.lines, service.paths))
        var hasSent = course.progress.done > 0
        var last = TransferOutcome.failed("nothing was sent")
        while true {
            let first = course.first
            let doubt = course.doubt
            let only = doubt.flatMap {
                runner.asked(archive.stem, PartRange(first: first, end: $0))
            }
            let next = try parts.next(
                from: first, end: course.bound, only: only, wanted: course.refusals,
                encoding: course.encoding, bytesMax: doubt == nil ? course.bytesMax : 0,
                shouldStop: shouldStop)
            switch consume next {
            case .stopped: return stopped()
            case .nothing(let upTo, let isLast, let oversized):
                keepOversized(oversized, &course, archive.stem, &result)
                course.pass(to: upTo)
                guard isLast, course.retrials.isEmpty else { continue }
                guard course.suspects.isEmpty else { return Step(verdict: .refuse, outcome: last) }
                if let damage = parts.damage { throw .damaged(damage) }
                var outcome = TransferOutcome(kind: .success, cause: "nothing more to send")
                outcome.httpStatus = hasSent ? 200 : 0
                return Step(verdict: .sent(.none), outcome: outcome, hasSent: hasSent)
            case .part(let part):
                let range = part.range
                let isWhole = range.first == 0 && part.isLast && course.refusals.round == 0
                var delivery = try delivery(
                    archive.stem, summary, range: isWhole ? nil : range, course)
                delivery.entries = part.entries
                delivery.ordinals = part.ordinals
                delivery.recordIDs = part.recordIDs
                if course.suspects.isEmpty, course.retrials.isEmpty {
                    course.progress.doubt = range.end
                }
                remember(archive, course)
                var outcome = try send(&delivery, part.body, transport)
                let verdict = judge(&outcome, delivery)
                last = outcome
                switch verdict {
                case .sent(var refused):
                    hasSent = true
                    refused.count = min(refused.count, part.entries)
                    noteTaken(archive.stem, &course)
                    // First, because it releases records that the same answer may refuse.
                    course.take(to: range.end)
                    keepOversized(part.oversized, &course, archive.stem, &result)
                    keep(refused, range, outcome, &course, archive.stem, &result)
                    noteTaken(part.entries &- refused.count, &result)
                    runner.ask(archive.stem, range, nil)
                    let isOver = part.isLast && course.retrials.isEmpty
                    // The readable records were delivered; the unreadable part is kept for
                    // inspection.
                    if isOver, let damage = parts.damage {
                        advance(archive, course, outcome, &result)
                        throw .damaged(damage)
                    }
                    if isOver {
                        return Step(verdict: verdict, outcome: outcome, hasSent: true)
                    }
                    advance(archive, course, outcome, &result)
                    // Suspects that are kept are judged before another archive's turn.
                    if course.retrials.isEmpty, !run.mayGoOn { return stopped() }
                case .shrink where part.entries > 1:
                    noteRecovered(archive.stem, outcome, "the target wants smaller bodies")
                    // Half of the entries; their frame stays the same.
                    let frame = UInt64(encoder.frameBytes)
                    let entries = part.rawBytes - min(frame, part.rawBytes)
                    course.shrink(range, to: frame + max(1, entries / 2))
                case .simplify where course.simplify():
                    noteRecovered(archive.stem, outcome, "the target wants another encoding")
                case .refuse where part.entries > 1,
                    .forbid where part.entries > 1 && course.isForbidden:
                    course.halve(range)
                    guard mayAsk(again: course, after: verdict, takesOthers: runner.isOpen) else {
                        return Step(verdict: verdict, outcome: outcome)
                    }
                    noteRecovered(archive.stem, outcome, "the target refuses some of the records")
                case .refuse, .shrink,
                    .forbid where course.isForbidden:
                    let only = part.ordinals.last?.upperBound ?? range.end
                    let refusal = RefusedRecords(
                        PartRange(first: only - 1, end: only), count: 1,
                        httpStatus: outcome.httpStatus, reason: outcome.cause)
                    if course.suspect(refusal, to: range.end) {
                        noteRefused(archive.stem, 1, outcome.cause, &result)
                        let isOver = part.isLast && course.retrials.isEmpty
                        if verdict == .forbid, !isOver, !mayBeForbidden() {
                            return Step(verdict: verdict, outcome: outcome)
                        }
                        continue
                    }
                    let goesOn = mayAsk(again: course, after: verdict, takesOthers: true)
                    guard goesOn, !part.isLast else {
                        return Step(
                            verdict: verdict == .forbid ? .forbid : .refuse, outcome: outcome)
                    }
                    noteRecovered(archive.stem, outcome, "the target refuses a record")
                case .partly(let again, let refused, _, _):
                    noteTaken(archive.stem, &course)
                    keepOversized(part.oversized, &course, archive.stem, &result)
                    keep(refused, range, outcome, &course, archive.stem, &result)
                    let left = UInt32(clamping: again.count) &+ refused.count
                    noteTaken(part.entries &- min(left, part.entries), &result)
                    result.bytesSent += outcome.bytesSent
                    service.count { $0.bytes += outcome.bytesSent }
                    // A server that asks for records outside the part gets all of it again.
                    let isOurs = again.allSatisfy { one in
                        delivery.ordinals.contains { $0.contains(one) }
                    }
                    runner.ask(archive.stem, range, isOurs ? again : nil)
                    return Step(verdict: verdict, outcome: outcome)
                default: return Step(verdict: verdict, outcome: outcome)
                }
            }
        }
    }

    /// Whether the next body of a refused archive may go now.
    private func mayAsk(
        again course: UploadCourse, after verdict: AnswerVerdict, takesOthers: Bool
    ) -> Bool {
        guard verdict == .forbid else { return course.mayAsk(takesOthers: takesOthers) }
        let hasTaken = course.isAtFault || runner.tookLately(service.clock)
        return course.mayAsk(takesOthers: hasTaken) && mayBeForbidden()
    }

    private func mayBeForbidden() -> Bool { run.mayBeForbiddenAgain }

    /// Writes down the end of a part before sending it, if another process, with other limits or
    /// another answer of the server, would make a different part.
    /// CRASH: the next attempt sends the same range, under the same id.
    private func remember(_ archive: borrowing ArchiveLock, _ course: UploadCourse) {
        guard target.kind == .transactions || course.isOfItsOwn else { return }
        record(archive, course.underWay, refusals: course.refusals)
    }

    /// CRASH: between the 2xx and the state file the same part is sent again with the same id.
    private func advance(
        _ archive: borrowing ArchiveLock, _ course: UploadCourse, _ outcome: TransferOutcome,
        _ result: inout UploadResult
    ) {
        record(
            archive,
            .retry(attempts: 0, notBeforeMs: 0, reason: .stopped, progress: course.stand),
            refusals: course.refusals)
        result.bytesSent += outcome.bytesSent
        service.count { $0.bytes += outcome.bytesSent }
        run.settleIfDue()
    }

    // ── Refused records ──

    private func keepOversized(
        _ ordinals: [UInt64], _ course: inout UploadCourse, _ stem: String,
        _ result: inout UploadResult
    ) {
        guard !ordinals.isEmpty else { return }
        let cause = "larger than the target takes"
        var count: UInt32 = 0
        for ordinal in ordinals {
            let refusal = RefusedRecords(
                PartRange(first: ordinal, end: ordinal + 1), count: 1, httpStatus: 0, reason: cause)
            if course.refusals.keep(refusal) { count += 1 }
        }
        noteRefused(stem, count, cause, &result)
    }

    private func keep(
        _ refused: Refused, _ range: PartRange, _ outcome: TransferOutcome,
        _ course: inout UploadCourse, _ stem: String, _ result: inout UploadResult
    ) {
        guard refused.count > 0 else { return }
        let named = refused.ordinals.filter(range.contains).sorted()
        var ranges = named.map { (PartRange(first: $0, end: $0 + 1), UInt32(1)) }
        // The server does not name the other records of the part that it refused.
        let others = refused.count - min(UInt32(clamping: named.count), refused.count)
        if others > 0 { ranges.append((range, others)) }
        var kept: UInt32 = 0
        for (range, count) in ranges {
            let refusal = RefusedRecords(
                range, count: count, httpStatus: outcome.httpStatus, reason: outcome.cause)
            if course.refusals.keep(refusal) { kept &+= count }
        }
        noteRefused(stem, kept, outcome.cause, &result)
    }
}
