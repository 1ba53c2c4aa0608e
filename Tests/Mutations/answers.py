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
mutation("answer", "heads-may-be-cut", SHIP + "Transport/CurlExchange.swift",
         "        if !isHeadWhole { return \"the head of the answer is cut off\" }\n", "",
         "swift CurlTransportTests/testAnswerWhoseHeadIsBrokenIsNone",
         "a proxy that fails after its first line takes logs away")
mutation("answer", "interim-heads-count", SHIP + "Transport/CurlExchange.swift",
         "            isHeadWhole = false\n", "",
         "swift CurlTransportTests/testAnswerWhoseHeadIsBrokenIsNone", "as above, after a 100")
mutation("answer", "lengths-may-differ", SHIP + "Transport/CurlExchange.swift",
         "        return lengths.count > 1 ?", "        return lengths.count > 2 ?",
         "swift CurlTransportTests/testAnswerWhoseHeadIsBrokenIsNone",
         "an answer that two servers wrote takes logs away")
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
         "                    !course.suspects.isEmpty || target.format == .archive\n",
         "                    !course.suspects.isEmpty\n",
         FORBIDDEN + "testAnArchiveThatCannotBeCutIsQuarantined",
         "an archive that goes whole is refused again and again")
mutation("answer", "refusals-without-limit", SHIP + "Upload/ForbiddenBodies.swift",
         "        return recent.count < most ? 0 : recent[recent.count - most]"
         " &+ ForbiddenBodies.hourMs\n",
         "        return recent.count < most ? 0 : 0\n",
         FORBIDDEN + "testManyDislikedArchivesAreRefusedSeldom", "a firewall locks us out")
mutation("answer", "parallel-refusals-without-limit", SHIP + "Upload/TargetRun.swift",
         "\n                    && active <= runner.forbiddenLeftHeld(nowMs: now)\n",
         "\n",
         FORBIDDEN + "testManyDislikedArchivesAreRefusedSeldom",
         "requests side by side exceed the hour's refusals")
mutation("answer", "each-call-asks-all", SHIP + "Upload/TargetHold.swift",
         "        if explicit { return !isOpen || !isForbidden(state) || "
         "freeMs(state, nowMs: nowMs) == 0 }\n",
         "        if explicit { return true }\n",
         FORBIDDEN + "testACallDoesNotExceedTheHour",
         "every call has each paused archive refused once more")
mutation("answer", "spent-and-asked", SHIP + "Upload/TargetRun.swift",
         "                if hold.refusesUs || hold.isSpent(nowMs: now) {"
         " hold.isRefused = true }\n",
         "                if hold.refusesUs { hold.isRefused = true }\n",
         FORBIDDEN + "testACallEndsWhereTheHourIsSpent",
         "a call has every waiting archive refused, whatever the hour's limit")
mutation("answer", "two-refusals-give-up", SHIP + "Upload/UploadSettlement.swift",
         "                if alone >= UploadAttempt.refusalsMin,\n",
         "                if alone >= 2,\n",
         FORBIDDEN + "testARecordIsGivenUpAfterThreeRefusals",
         "a record is given up because one server of three dislikes it")
mutation("answer", "an-old-proof-counts-again", SHIP + "Upload/TargetRunner.swift",
         "            blamed[stem] = false\n",
         "            if blamed[stem] == nil { blamed[stem] = false }\n",
         FORBIDDEN + "testAnArchiveThatCannotBeCutIsQuarantined",
         "what was taken before a refusal proves that its archive is at fault")
mutation("answer", "tests-never-go-deep", SHIP + "Upload/TargetHold.swift",
         "        guard refusesUs, forbidden.inRow % 2 == 1 else { return nil }\n",
         "        guard refusesUs, forbidden.inRow == .max else { return nil }\n",
         FORBIDDEN + "testTestsGoDeepIfEveryArchiveHoldsADislikedRecord",
         "a target whose archives all hold disliked records gets nothing for weeks")
mutation("answer", "a-rate-brands-archives", SHIP + "Upload/TargetRunner.swift",
         "                busyAlone = []\n", "",
         FORBIDDEN + "testARateIsNoFaultOfAnArchive",
         "archives of a target with a rate wait alone, and thus too often")
mutation("answer", "headers-confirm-pages", SHIP + "Targets/TargetTransport.swift",
         "            if expectation.readsBody { return true }\n", "            return true\n",
         "swift AnswerContentTests/testWhatTheHostExpectsOfHeadersConfirmsNoPage",
         "a sign-in page of the same nginx takes logs away")
mutation("answer", "marks-hide-pages", SHIP + "Targets/AnswerContent.swift",
         "            guard rest.starts(with: mark) else { return rest }\n",
         "            guard rest.starts(with: mark), false else { return rest }\n",
         "swift AnswerContentTests/testNoPageConfirmsAtAnyKind",
         "a page behind a blank and a byte order mark is a receipt")
mutation("answer", "marks-hide-errors", SHIP + "Targets/JSONMemberScan.swift",
         "        while text[at...].starts(with: AnswerContent.mark) {\n",
         "        while at > text.count {\n",
         "swift AnswerContentTests/testKindsWithoutAProtocolTakeAnythingElseWithoutAnError",
         "an error behind a byte order mark is a receipt")
mutation("answer", "xml-is-a-page", SHIP + "Targets/AnswerContent.swift",
         "        return !isForeign && elements.contains(name)\n",
         "        return elements.contains(name)\n",
         "swift AnswerContentTests/testKindsWithoutAProtocolTakeAnythingElseWithoutAnError",
         "a server that confirms with XML gets the same logs for ever")
mutation("answer", "wrong-key-is-a-firewall", SHIP + "Targets/S3/S3Dialect.swift",
         "            403 where code != \"AccessDenied\" && "
         "S3Dialect.credentialCodes.contains(code):\n",
         "            403 where false:\n",
         "swift S3DialectTests/testVerdicts",
         "a wrong key is tried with one archive after the other")
mutation("answer", "expired-swallowed", SHIP + "Upload/UploadService.swift",
         "            if kind == nil { result.expired = takeExpired() }\n",
         "            result.expired = takeExpired()\n",
         "swift UploadRulesTests/testExpiredArchivesAreNotSent",
         "a call for transactions takes the count of expired archives from the next one")
mutation("answer", "refused-and-asked", SHIP + "Upload/TargetHold.swift",
         "        let testMs = refusesUs ? max(restMs, freeMs) : freeMs\n",
         "        let testMs = freeMs\n",
         FORBIDDEN + "testATargetThatRefusesEverythingIsAskedSeldom",
         "a target that refuses our credentials gets every archive in turn")
mutation("answer", "the-same-one-tests", SHIP + "Upload/TargetHold.swift",
         "            isBusy = true\n            serverMs = max(", "            serverMs = max(",
         FORBIDDEN + "testAServersTimeHoldsForAllAndAnotherArchiveTests",
         "an archive that a server always answers 503 to is the only one that is ever sent")
mutation("answer", "busy-holds-all", SHIP + "Upload/TargetRunner.swift",
         "            busyAlone.insert(stem)\n            return true\n",
         "            return false\n",
         FORBIDDEN + "testAnArchiveThatIsAlwaysBusyHoldsUpNoOther",
         "an archive that a server always answers 503 to delays all others by up to an hour")
mutation("answer", "kept-and-unwritten", SHIP + "Upload/UploadCourse.swift",
         "            hasUnwritten = true\n", "",
         FORBIDDEN + "testEverySetOfDislikedRecords",
         "after a kill records go again under another id")
mutation("answer", "stale-proof", SHIP + "Upload/UploadCourse.swift",
         "        isAtFault = isLately && blame == true\n",
         "        isAtFault = isLately\n",
         FORBIDDEN + "testWhatWasTakenBeforeProvesNothing",
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
