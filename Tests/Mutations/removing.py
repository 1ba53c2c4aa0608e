"""The mutations of what is removed unsent, and of who is told: see table.py."""

from entry import ENGINE, SHIP, STORE, mutation

mutation("removed", "a-dead-remover-counts", STORE + "Files/RemovedFile.swift",
         "        archives.removeAll { stems.contains($0.stem) }\n", "",
         "swift RemovedTests/testModel", "an archive that still exists counts as lost")
mutation("removed", "a-sent-archive-counts", STORE + "Files/RemovedFile.swift",
         "        guard unsent != nil || hasLine(stem, storeDirectory),\n",
         "        guard unsent != nil,\n",
         "swift RemovedTests/testNoLossThatDidNotHappen",
         "the line of a remover that died outlives the archive, which was sent")
mutation("removed", "the-line-comes-late", STORE + "Files/RemovedFile.swift",
         "        let isNoted = note(unsent, stem, storeDirectory)\n",
         "        let isNoted = false\n",
         "processes removed_kills", "a kill after the unlink leaves no line")
mutation("removed", "told-again", STORE + "Files/RemovedFile.swift",
         "            archives[index].untold.subtract(askers)\n", "",
         "swift RemovedTests/testEachRemovalIsToldOnce", "a host is told at every tick")
mutation("removed", "behind-a-torn-line", STORE + "Files/RemovedFile.swift",
         "bytes), old.last == 0x0A,\n", "bytes),\n",
         "swift RemovedTests/testModel", "a line is lost in one that a power cut tore")
mutation("removed", "no-bound", STORE + "Files/RemovedFile.swift",
         "        while bytes > RemovedFile.bytesMax / 2, count < archives.count - 1 {\n",
         "        while bytes < 0, count < archives.count - 1 {\n",
         "swift RemovedTests/testBound", "the file grows past its limit, and readers refuse it")
mutation("removed", "own-waits-for-a-tick", SHIP + "Upload/Janitor.swift",
         "        if !removed.isEmpty { tellUntold() }\n", "",
         "swift UploadRulesTests/testDenialRemovesWhatIsNotSent",
         "a host is not told of what it removes itself")
mutation("removed", "final-is-told-again", SHIP + "Upload/Janitor.swift",
         "        let waiting = registered.filter { !(removal.states[$0] ?? .waiting).isFinal }\n",
         "        let waiting = registered\n",
         "swift RemovedTests/testFinalStatesAreNotToldAgain",
         "a target hears of an archive whose end it knows")
mutation("removed", "no-target-added-asks", SHIP + "Upload/UploadService.swift",
         "            if isUntold { isRunOwed = true }\n", "",
         "swift RemovedTests/testATargetAddedLateIsTold",
         "a program with no work hears nothing until the next tick")
mutation("removed", "a-limit-is-named-each-time", STORE + "Files/RemovedFile.swift",
         "        guard file.named.insert(reason).inserted else { return false }\n",
         "        file.named.insert(reason)\n",
         "swift RemovedTests/testTheLimitIsNamedOnce", "each program names the limit again")
mutation("removed", "a-limit-is-named-at-the-end", SHIP + "Upload/Janitor.swift",
         "!sums.isEmpty, !service.isStopped, ", "!sums.isEmpty, ",
         "swift RemovedTests/testTheLimitIsNamedOnce",
         "a program whose log takes no more records uses up the one record")
mutation("removed", "more-than-the-quota-asks", ENGINE + "Services/LimitKeeper.swift",
         "applyRetention(otherBytes: files.now + bounds.headroomBytes)",
         "applyRetention(otherBytes: files.now + bounds.quotaBytes)",
         "disk quota_of_slow_writers", "the quota removes every archive")
mutation("removed", "rolls-by-another-clock", ENGINE + "Services/Services.swift",
         "        let now = Machine.sharedMonotonicNs()\n", "        let now = cw_monotonic_ns()\n",
         "disk time_namespace", "in a time namespace, each look at a segment's age rolls it")
