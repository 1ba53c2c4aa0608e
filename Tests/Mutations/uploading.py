"""The mutations of uploads, of many waiting archives, and of full disks: see table.py."""

from entry import SHIP, STORE, SYSTEM, mutation

MANY = "swift ManyArchivesTests/"

mutation("many", "nothing-is-marked", STORE + "Files/Outbox.swift",
         '        try StoreFiles.create(paths.queue + "/\\(stem)@\\(target.text).\\(suffix)")\n',
         "        _ = suffix\n",
         MANY + "testEachIsMarkedBeforeItIsSent",
         "after a kill, what a server has goes again as a part of another archive")
mutation("many", "begun-is-merged", STORE + "Keep/StoreCompactor.swift",
         "            mayMerge: states.values.allSatisfy(\\.isDone)\n"
         "                && Self",
         "            mayMerge: Self",
         MANY + "testWhatWasBegunIsNotMerged",
         "what may have been sent goes again as a part of another archive",
         also=((SHIP + "Upload/UploadPreparation.swift",
                "                pairs[stem]?.values.allSatisfy(\\.isDone) ?? true, !isAlone",
                "                !isAlone"),))
mutation("many", "each-goes-alone", SHIP + "Upload/UploadPreparation.swift",
         "        guard let first = try? small(), first.count >= UploadService.mergedMin,"
         " mayMerge,\n",
         "        guard let first = try? small(), first.isEmpty,\n",
         MANY + "testSmallArchivesGoAsFew", "ten thousand archives are ten thousand requests")
mutation("many", "wholes-are-merged", SHIP + "Upload/UploadPreparation.swift",
         "$0.kind == TargetKind.collector.rawValue || $0.format != BodyFormat.archive.rawValue",
         "!$0.kind.isEmpty",
         MANY + "testArchivesThatGoWholeAreNotMerged",
         "a server refuses a hundred archives for one record")
mutation("many", "merged-is-young", STORE + "Archive/PartFile.swift",
         "        if let modifiedNs {\n", "        if let modifiedNs, modifiedNs == 0 {\n",
         MANY + "testAMergedArchiveIsAsOldAsItsMembers",
         "what was made before a denial of consent stays and is sent after the next consent")
mutation("many", "merged-after-a-denial", STORE + "Keep/StoreCompactor.swift",
         "consent != .denied\n        }", "consent != .granted || true\n        }",
         MANY + "testNothingIsMergedAfterADenial",
         "what was made before a denial of consent becomes something else")
mutation("many", "replaced-is-merged-again", STORE + "Keep/StoreCompactor.swift",
         "            if isMerge, try areUnsettled(members) { return }\n", "",
         MANY + "testWhatADeadProcessMergedIsNotMergedAgain", "records exist twice")
mutation("many", "removals-are-missed", STORE + "Files/KeptListing.swift",
         "                if change.isAdded { add(change.name) } else { drop(change.name) }\n",
         "                if change.isAdded { add(change.name) }\n",
         MANY + "testAKeptListingIsAsANewOne", "a run works with states that are gone")
mutation("many", "lost-events-are-none", SYSTEM + "DirectoryEvents.swift",
         "UInt32(IN_Q_OVERFLOW | IN_DELETE_SELF", "UInt32(IN_DELETE_SELF",
         MANY + "testLostEventsListAnew", "a run works with states that are gone")
mutation("many", "replacements-are-others", SHIP + "Upload/TargetRun.swift",
         "            repeat { awaitOthers() } while adoptReplacements()\n",
         "            awaitOthers()\n",
         MANY + "testReplacementsAreSentByTheSameCall",
         "a call says that something waits which nobody had to send before")
mutation("many", "told-at-each-run", SHIP + "Upload/UploadRegistrations.swift",
         '                isNews("forsaken \\(target.key.text)")\n',
         "                !own.isEmpty\n",
         MANY + "testAForsakenTargetIsTold", "every run reports the same target again")
mutation("many", "failed-syncs-count", STORE + "Files/KeptListing.swift",
         "            if isDone { return .success(()) }\n",
         "            if isDone { return .success(()) }\n"
         "            monitor.locked { synced = wanted }\n",
         MANY + "testStatesAreSyncedOnce",
         "what was sent is deleted though its states may be lost")
mutation("many", "synced-again", STORE + "Files/KeptListing.swift",
         "(wanted, isDone) = monitor.locked { (changes, synced == changes) }\n",
         "(wanted, isDone) = monitor.locked { (changes, changes == .max) }\n",
         MANY + "testStatesAreSyncedOnce", "each thread of a run syncs for itself")
mutation("many", "nothing-is-settled", SHIP + "Upload/TargetRun.swift",
         "        do throws(UploadError) { try listing.sync() } catch {\n",
         "        do throws(UploadError) { if now == 0 { try listing.sync() } } catch {\n",
         MANY + "testARunLeavesNothingUnsynced",
         "after a power cut everything that a run sent goes again")
mutation("many", "unpaused-unsynced", SHIP + "Upload/UploadService.swift",
         "            try outbox.set(lock.stem, key, to: state)\n        }\n"
         "        try outbox.sync()\n",
         "            try outbox.set(lock.stem, key, to: state)\n        }\n",
         MANY + "testWhatIsWrittenBesideRunsIsSynced",
         "after a power cut a target that was added again is paused")
mutation("many", "tidied-unsynced", SHIP + "Upload/UploadService.swift",
         "        try? outbox.sync()\n", "",
         MANY + "testWhatIsWrittenBesideRunsIsSynced",
         "after a power cut what could be written at last is lost")
mutation("many", "orphans-stay", SHIP + "Upload/UploadService.swift",
         "        try outbox.removeOrphans()\n", "",
         MANY + "testAPassRemovesOrphans", "queue/ grows with each crash")
mutation("many", "gone-but-not-forgotten", SHIP + "Upload/Janitor.swift",
         "                    if !StoreFiles.exists(service.paths.archive(stem))"
         " { gone.append(stem) }\n"
         "                    continue\n",
         "                    continue\n",
         MANY + "testSmallArchivesGoAsFew", "queue/ keeps the states of what was sent")
mutation("many", "merges-take-their-time", SHIP + "Upload/TargetRun.swift",
         "service.mergeSmall { shouldEnd() || !service.hadConsentLately }\n",
         "service.mergeSmall { !service.hadConsentLately }\n",
         MANY + "testTheTimeOfACallHoldsWhileItMerges",
         "a call with a second merges ten thousand archives")
mutation("many", "mergers-wait-for-ever", SHIP + "Upload/UploadPreparation.swift",
         "                if shouldStop() { return nil }\n", "",
         MANY + "testTheTimeOfACallHoldsWhileItMerges",
         "a call with a second waits ten for another that merges")
mutation("full", "no-room-no-target", SHIP + "Upload/UploadRegistrations.swift",
         "            guard error.status == .full else { throw error }\n",
         "            guard error.status == .busy else { throw error }\n",
         "disk uploads_from_full_tmpfs", "a full disk cannot be drained to a new target")
mutation("full", "an-only-target-needs-a-state", SHIP + "Upload/UploadSettlement.swift",
         "        let isGone = Janitor(service: service).unlinkSole(archive, target.key)\n",
         "        let isGone = false\n",
         MANY + "testEachIsMarkedBeforeItIsSent", "a full disk has no room for the state")
mutation("full", "each-round-has-its-time", "Sources/CordwoodCLI/Commands/UploadCommand.swift",
         "                let more = try session.upload(deadlineMonotonicMs: deadlineMs,",
         "                let more = try session.upload(deadlineMonotonicMs: deadlineMs + 2_000,",
         "disk rounds_share_one_timeout", "cordwood upload --timeout 60 takes an hour")
mutation("full", "streams-begin-at-the-start", SHIP + "Bodies/ArchiveParts.swift",
         "            _ = try parts.seek(ask.first) { false }\n", "",
         "swift BodyStreamTests/testAStreamHasTheSameBytes",
         "a large part is another one when it is sent than when it was measured")
mutation("full", "streams-do-not-rewind", SHIP + "Bodies/BodyStream.swift",
         "        if let start, maker == nil || offset < windowStart {\n",
         "        if let start, maker == nil {\n",
         "swift BodyStreamTests/testAStreamHasTheSameBytes",
         "a body that is asked for again cannot be sent")

# ── What is sent ──

mutation("send", "any-answer-will-do", SHIP + "Upload/UploadAttempt.swift",
         "        let isOther = outcome.kind == .success && !target.isReceipt(outcome, delivery)\n",
         "        let isOther = outcome.kind != .success && !target.isReceipt(outcome, delivery)\n",
         "swift UploadRefusalTests/testAnyWebServersAnswerIsNoReceipt",
         "a web server's page at the address counts as delivered, and the archive is deleted")
mutation("send", "first-target-alone", SHIP + "Upload/UploadService.swift",
         "        adding.isEmpty ? max(standsStillUntilMs, settledMs) : .max\n",
         "        standsStillUntilMs\n",
         "swift UploadPartTests/testTheBackgroundWaitsForAllTargetsOfAProgram",
         "an archive is deleted before the program has added its second target")
mutation("send", "run-is-forgotten", SHIP + "Upload/UploadService.swift",
         "            isRunOwed = now < beginsMs\n            return !isRunOwed\n",
         "            return now >= beginsMs\n",
         "swift UploadPartTests/testTheBackgroundWaitsForAllTargetsOfAProgram",
         "a run that could not begin while targets were added waits for the next tick")
mutation("send", "compacted-is-unsent", STORE + "Keep/CompactionLeftovers.swift",
         "        if done.isEmpty { return true }\n", "        if !done.isEmpty { return true }\n",
         "swift CompactTests/testArchivesOfEqualStatesBecomeOne",
         "a target gets the records of a compacted archive that it has")
mutation("send", "one-target-is-all", SHIP + "Upload/Janitor.swift",
         "            registered.allSatisfy({ $0 == done || states[$0]?.isDone == true })\n",
         "            registered.contains(where: { $0 == done || states[$0]?.isDone == true })\n",
         "swift UploadServerTests/testAnotherProcessTargetKeepsTheArchive",
         "an archive is deleted once the first target has it")
mutation("send", "unwritten-is-forgotten", SHIP + "Upload/UploadSettlement.swift",
         "            guard runner.remember(archive.stem, (state, refusals)) else { return }\n",
         "            guard runner.remember(archive.stem, nil) else { return }\n",
         "swift UploadTroubleTests/testWhatCouldNotBeWrittenDownIsNotSentAgain",
         "what a server has is sent again and again where its state cannot be written down")
mutation("send", "half-an-answer-counts", SHIP + "Upload/UploadAttempt.swift",
         "        if outcome.httpStatus == 400, outcome.isBodyCut,\n",
         "        if outcome.httpStatus == 400, outcome.isBodyCut, false,\n",
         "swift UploadTroubleTests/testHalfAnObjectionIsNoLastWord",
         "an answer that was cut off is taken for the server's last word")
mutation("send", "replaced-is-sent", SHIP + "Upload/UploadService.swift",
         "                    || isBeingReplaced($0)\n", "",
         "swift UploadServerTests/testOfACompactedArchiveOnlyTheWholeIsSent",
         "an archive goes, and with the compacted one its records go again",
         also=((SHIP + "Upload/TargetRun.swift",
                "        guard !service.isBeingReplaced(archive.stem) else {\n",
                "        guard !archive.stem.isEmpty else {\n"),))
