"""The mutations of what archived records leave in the other files of a store: see table.py."""

from entry import CORE, ENGINE, STORE, mutation

SERVICES = ENGINE + "Services/ServicesLeftovers.swift"
LEFTOVERS = CORE + "Segments/Leftovers.swift"
JOURNAL = CORE + "Lanes/JournalWriter.swift"
DEAD = STORE + "Keep/DeadLeftovers.swift"

mutation("leftovers", "files-are-used-again", SERVICES,
         "            let most = leavesNothingLocked ? 0 : keeping.leftovers.ringMax\n",
         "            let most = keeping.leftovers.ringMax\n",
         "age leftovers_of_bursts", "encrypted records lie in spares and behind the next ones")
mutation("leftovers", "first-stays", SERVICES,
         "            switch sealing.locked({ unsafe EngineCore.clearFirst(engine) }) {\n",
         "            switch EngineCore.FirstSegment.done {\n",
         "age leftovers_beside", "an archived segment 0 stays in the lane file")
mutation("leftovers", "first-is-not-dead", LEFTOVERS,
         "                descriptor, &dead, 4, at:", "                descriptor, &dead, 0, at:",
         "swift LeftoverTests/testAReaderGoesOnInTheArchive",
         "a reader takes zeros for what segment 0 had")
mutation("leftovers", "first-is-in-use", LEFTOVERS,
         "            unsafe Quiescence.isQuiet(engine, first),\n", "",
         "swift FirstSegmentTests/testOverwrittenOnceItIsArchived",
         "segment 0 is overwritten while a thread is in it")
mutation("leftovers", "cut-file-grows", LEFTOVERS,
         "        let end = min(file.bytes, offset &+ bytes)\n",
         "        let end = max(file.bytes, offset &+ bytes)\n",
         "swift FirstSegmentTests/testAFileThatWasCutDoesNotGrow",
         "zeros make a file longer that somebody has cut")
mutation("leftovers", "journal-stays", SERVICES,
         "journal.locked { unsafe journalWriter.renew(engine, journalGuards) }\n",
         "Int32(0)\n",
         "age leftovers_beside", "flushed records stay in the journal once they are encrypted")
mutation("leftovers", "failed-journal-is-used", JOURNAL,
         "            file = former\n", "",
         "swift LeftoverTests/testAFailedRenewalChangesNothing",
         "a journal that could not be made replaces the one that is there")
mutation("leftovers", "failure-is-forgotten", JOURNAL,
         "        failure = error == 0 ? 0 : former\n", "        failure = 0\n",
         "swift LeftoverTests/testAFailedRenewalChangesNothing",
         "after a failed flush, a failed renewal makes the old journal believed")
mutation("leftovers", "archived-is-copied", JOURNAL,
         "unsafe state != Segments.sealed || waiting.contains(segment.pointee.number),\n",
         "unsafe segment.pointee.size > 0,\n",
         "swift FirstSegmentTests/testANewJournalHasNoArchivedSegment",
         "a new journal has archived segments that are still mapped")
mutation("leftovers", "close-archives-nothing", ENGINE + "Services/Services.swift",
         "            archiveOwn(lanes)\n            end()\n        }\n",
         "            _ = lanes\n            end()\n        }\n",
         "age leftovers_after_close", "close leaves plain records although archives are encrypted")
mutation("leftovers", "reused-stay", SERVICES,
         "        let isFresh = sealingOnSupply { unsafe EngineCore.dropReused(engine) }\n",
         "        let isFresh = true\n",
         "age leftovers_denied", "what denied consent removes stays in spares and behind records")
mutation("leftovers", "empty-segment-stays", LEFTOVERS,
         "        _ = unsafe cwa_add_u64(\n"
         "            UnsafeMutableRawPointer(base) + SegmentHeader.allocated, "
         "segment.pointee.size)\n",
         "",
         "age leftovers_denied", "a file that was used before stays in use until a host logs")
mutation("leftovers", "consent-is-not-followed", ENGINE + "Services/ServicesLane.swift",
         "            follow(found.consent)\n",
         "            monitor.locked { keeping.consent = found.consent }\n",
         "age leftovers_denied", "an engine clears nothing when the command denies consent")
mutation("leftovers", "expired-stay", SERVICES,
         "now - last >= days * LeftoverKeeping.halfDayNs else", "now == 0 else",
         "swift LeftoverTests/testClearedBeforeItExpires",
         "what has expired stays in the files of a process that runs on")
mutation("leftovers", "nothing-is-used-again", SERVICES,
         "        if isDone { limitRing() }\n", "",
         "swift LeftoverTests/testClearedBeforeItExpires",
         "once anything has expired, no file is used again")
mutation("leftovers", "dead-stay", ENGINE + "Stores/StoreSettings.swift",
         "            defer { DeadLeftovers.clear(directory: store) }\n", "",
         "age leftovers_denied_after_death", "the command clears nothing of ended processes")
mutation("leftovers", "dead-journal-is-emptied", DEAD,
         "                || held.contains(frame.segment)\n", "",
         "age leftovers_denied_after_death",
         "the journal of an ended process loses what is not archived")
mutation("leftovers", "dead-records-are-cleared", DEAD,
         "            from = chunk.offset &+ UInt64(chunk.end)\n",
         "            from = chunk.offset &+ UInt64(ChunkHeader.bytes)\n",
         "age leftovers_denied_after_death", "records of ended processes are overwritten")
mutation("leftovers", "memory-goes-with-a-second-link", DEAD,
         "            if let file = target(path), memory.contains(file) {\n",
         "            if let file = target(path), file.isEmpty {\n",
         "age leftovers_of_a_move_to_the_disk",
         "a segment of an ended process that was being put on the disk is removed")
mutation("leftovers", "closed-journal-stays", JOURNAL,
         "            unsafe lane.pointee.generation == generation\n        else { return 0 }\n",
         "            unsafe lane.pointee.generation == generation, file.isThere\n"
         "        else { return 0 }\n",
         "swift FirstSegmentTests/testARenewalNeedsNoDescriptor",
         "archived records stay in a journal whose descriptor the host has closed")
mutation("leftovers", "files-are-synced-again", JOURNAL,
         "            filesDone.formUnion(released)\n",
         "            file.whole.formUnion(released)\n",
         "swift FirstSegmentTests/testANewJournalSyncsNoFileAgain",
         "each archive of a backlog syncs every file that waits")
mutation("leftovers", "close-archives-itself", ENGINE + "Services/Services.swift",
         "        guard let deadline, !lanes.isEmpty else {\n",
         "        guard let deadline, lanes.isEmpty else {\n",
         "c-abi close_encrypted",
         "the last archive is made on the host's thread, however long it takes")
