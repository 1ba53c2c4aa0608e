"""What answers mean, and what a target does after a refusal."""

from entry import SHIP, mutation

FORBIDDEN = "swift UploadForbiddenTests/"

mutation("answer", "label-decides", SHIP + "Targets/AnswerContent.swift",
         "        return beginsLikePage(text[...])\n", "        return false\n",
         "swift AnswerContentTests/testNoPageConfirmsAtAnyKind",
         "a portal's page without a type takes logs away")
mutation("answer", "comments-hide-a-page", SHIP + "Targets/AnswerContent.swift",
         "                rest = behind\n            } else if begins(rest, \"<?\") {\n",
         "                _ = behind\n                return false\n"
         "            } else if begins(rest, \"<?\") {\n",
         "swift AnswerContentTests/testNoPageConfirmsAtAnyKind",
         "a page that begins with a comment is a receipt")
mutation("answer", "an-error-is-a-receipt", SHIP + "Targets/Dialect.swift",
         "        !AnswerContent.reportsError(outcome)\n", "        true\n",
         "swift AnswerContentTests/testKindsWithoutAProtocolTakeAnythingElseWithoutAnError",
         "a 200 that says `quota exceeded` takes logs away")
mutation("answer", "one-dislike-stops-all", SHIP + "Targets/AnswerVerdict.swift",
         "        case HTTPStatus.forbidden: return .forbid\n",
         "        case HTTPStatus.forbidden: return .pause\n",
         FORBIDDEN + "testOneCallDeliversAllButTheDislikedRecord",
         "an archive that a firewall dislikes stops all others")
mutation("answer", "no-second-attempt", SHIP + "Upload/TargetRun.swift",
         "                if retried.insert(archive.stem).inserted { "
         "unfinished.append(archive) }\n",
         "", FORBIDDEN + "testOneCallDeliversAllButTheDislikedRecord",
         "the other records of a refused archive wait for another call")
mutation("answer", "whole-is-refused-for-ever", SHIP + "Upload/UploadSettlement.swift",
         "            if course.isAtFault, !course.suspects.isEmpty || "
         "target.format == .archive {\n",
         "            if course.isAtFault, !course.suspects.isEmpty {\n",
         FORBIDDEN + "testAnArchiveThatCannotBeCutIsQuarantined",
         "an archive that goes whole is refused again and again")
mutation("answer", "refusals-without-limit", SHIP + "Upload/ForbiddenBodies.swift",
         "    func mayAsk(nowMs: UInt64) -> Bool { within(nowMs).count < "
         "ForbiddenBodies.perHourMax }\n",
         "    func mayAsk(nowMs: UInt64) -> Bool { true }\n",
         FORBIDDEN + "testARefusedArchiveHoldsUpNoOther", "a firewall locks us out")
mutation("answer", "refused-and-asked", SHIP + "Upload/TargetHold.swift",
         "        let testMs = refusesUs ? "
         "TargetHold.believed(forbidden.untilMs, nowMs: nowMs) : 0\n",
         "        let testMs: UInt64 = 0\n",
         FORBIDDEN + "testATargetThatRefusesEverythingIsAskedSeldom",
         "a target that refuses our credentials gets every archive in turn")
mutation("answer", "the-same-one-tests", SHIP + "Upload/TargetHold.swift",
         "            isBusy = true\n            serverMs = max(", "            serverMs = max(",
         FORBIDDEN + "testAServersTimeHoldsForAllAndAnotherArchiveTests",
         "an archive that a server always answers 503 to is the only one that is ever sent")
mutation("answer", "busy-holds-all", SHIP + "Upload/TargetRunner.swift",
         "busyAttemptsMax { busyAlone.insert(stem) }\n", "busyAttemptsMax {}\n",
         FORBIDDEN + "testAnArchiveThatIsAlwaysBusyHoldsUpNoOther",
         "an archive that a server always answers 503 to delays all others by up to an hour")
mutation("answer", "kept-and-unwritten", SHIP + "Upload/UploadCourse.swift",
         "            hasUnwritten = true\n", "",
         FORBIDDEN + "testEverySetOfDislikedRecords",
         "after a kill records go again under another id")
mutation("answer", "stale-proof", SHIP + "Upload/UploadCourse.swift",
         "        isAtFault = isLately && (isBlamed || isForbidden && takesOthers)\n",
         "        isAtFault = isBlamed || isForbidden && takesOthers\n",
         FORBIDDEN + "testWhatWasTakenLongAgoProvesNothing",
         "records are given up because a token has expired")
mutation("answer", "date-of-our-clock", SHIP + "Transport/RetryAfter.swift",
         "        return delayMs(text, nowUnixMs: date.map { $0 * 1_000 } ?? nowUnixMs)\n",
         "        return delayMs(text, nowUnixMs: date == nil ? nowUnixMs : nowUnixMs)\n",
         "swift QueueTests/testADateCountsFromTheServersClock",
         "with a clock that is an hour slow ten seconds become an hour")
mutation("answer", "every-loop-is-308", SHIP + "Transport/Redirection.swift",
         "                outcome.cause = \"HTTP",
         "                outcome.httpStatus = 308\n"
         "                outcome.cause = \"HTTP",
         "swift UploadServerTests/testRedirectionsEnd", "a loop of 307 is called 308")
mutation("answer", "short-secrets-garble", SHIP + "Transport/SentSecrets.swift",
         "            if let end, text.count >= SentSecrets.valueBytesMin "
         "|| isWord(bytes, start..<end) {\n",
         "            if let end {\n",
         "swift SecretTests/testAShortSecretGarblesNoWord", "cer***ifica***e")
mutation("answer", "expired-untold", SHIP + "Upload/Janitor.swift",
         "            service.noteExpired(UInt32(clamping: expired))\n",
         "            _ = expired\n",
         "swift UploadRulesTests/testExpiredArchivesAreNotSent",
         "an upload does not say that archives expired instead")
