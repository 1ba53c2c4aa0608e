"""The mutations of what archives and segments are and say about themselves: see table.py."""

from entry import CORE, SHIP, STORE, mutation

mutation("read", "a-damaged-header-hides", STORE + "View/StoreView.swift",
         "                info.covers.allSatisfy({ $0.laneID == .zero })\n"
         "                    || info.covers.contains(where: "
         "{ options.origin.mayHave(lane: $0.laneID) }),\n",
         "                info.covers.contains(where: "
         "{ $0.laneID != .zero && options.origin.mayHave(lane: $0.laneID) }),\n",
         "swift NeverSilentTests/testHeaders",
         "one bit of an archive's header hides the archive")
mutation("read", "a-newer-version-by-accident", STORE + "Archive/ArchiveIndex.swift",
         "        guard checksum(content, zeroAt: ArchiveHeader.crc) == crc, version > 0,\n",
         "        guard version != FormatVersion.current\n"
         "            || checksum(content, zeroAt: ArchiveHeader.crc) == crc, version > 0,\n",
         "swift NeverSilentTests/testHeaders",
         "a flipped bit of the version leaves the blocks out")
mutation("read", "missing-chunks-are-none", STORE + "Lanes/SegmentFile.swift",
         "        return crc == head.chunksCRC ? nil :", "        return crc != 0 ? nil :",
         "swift NeverSilentTests/testSealedSegments",
         "a sealed segment lacks a chunk, and nobody says so")
mutation("read", "any-clock-pairs", STORE + "Lanes/Heads.swift",
         "crc != Bytes.u32(b, SegmentHeader.sealedCRC)", "crc == nil",
         "swift NeverSilentTests/testHeadersOfSealedSegments",
         "a sealed segment's clocks have changed, and its records have other times in silence")
mutation("read", "sealed-headers-change", CORE + "Chunks/Sealer.swift",
         "            unsafe current.pointee.lane == lane, "
         "unsafe Segments.hasState(current, Segments.open),\n", "",
         "swift SupplyTests/testASealedSegmentGetsNoClockPair",
         "a segment of a lane that was left is called damaged")
mutation("read", "events-decide-the-age", STORE + "Archive/ArchiveInfo.swift",
         "    package var writtenNs: UInt64 { min(writtenMax, createdRealtime) }\n",
         "    package var writtenNs: UInt64 { min(timeMax, createdRealtime) }\n",
         "swift ReadingVerbTests/testLogDeletesNothingThatTheStoreKeeps",
         "a record about an old event is deleted for its age")
mutation("id", "any-number-of-records", SHIP + "Targets/Collector/CollectorDialect.swift",
         "        return UInt64(exactly: records) == delivery.archiveRecords\n",
         "        return UInt64(exactly: records) != nil\n",
         "swift UploadRefusalTests/testAnyWebServersAnswerIsNoReceipt",
         "the collector has a smaller archive, and the sender deletes its own")
mutation("id", "any-cover-proves", STORE + "Keep/ArchivedSegments.swift",
         "                for seal in cover.seals where left.remove(seal) != nil {\n",
         "                for seal in cover.seals {\n",
         "processes copies",
         "an adopter removes segments because a copy of the lane was archived")
mutation("id", "refusals-count-twice", STORE + "Merge/RecordsSeen.swift",
         "        rest.runs = lane.gaps.note(gap.runs)\n", "        _ = lane.gaps.note(gap.runs)\n",
         "swift CopiedStoresTests/testEveryRecordComesOnceAsItsOwners",
         "a copy and its original report the same refused records")
mutation("id", "guessed-clocks-are-forgotten", STORE + "Lanes/SegmentFile.swift",
         "        guessClock(chunks)\n        if now", "        if now",
         "swift ReadLaneTests/testRecordsWithoutAClockAreAsOldAsTheirFile",
         "records whose clock a power cut took are archived as of 1970, and expire at once")
mutation("id", "filters-decide-of-copies", STORE + "View/StoreView.swift",
         "                options = options.unfiltered\n", "",
         "swift CopiedLaneTests/testAFilterDoesNotShowWhatARecordHides",
         "a filter that leaves out a record shows bytes that a power cut left in its place")
mutation("id", "sealed-chunks-are-stale", STORE + "Lanes/SegmentFile.swift",
         "            if !sealedBefore, known < chunks.count,",
         "            if known < chunks.count,",
         "swift ReadLaneTests/testFollowingGivesNothingTwice",
         "a segment that is sealed while it is read is told to be damaged")
mutation("id", "copies-come-twice", STORE + "Merge/RecordsSeen.swift",
         "                return .known\n", "                return .new\n",
         "swift CopiedLaneTests/testEachRecordComesOnce",
         "a record of the original comes from the copy, too")
mutation("id", "clones-are-one", STORE + "Merge/RecordsSeen.swift",
         "            if other.content == content\n", "            if other.content != 0\n",
         "swift CopiedLaneTests/testTwoCopiesThatWentOnAreBothShownAndTold",
         "a clone's records are hidden by the original's")
mutation("id", "contained-archives-are-read", STORE + "View/LaneOverlaps.swift",
         "                contained.insert(info.path)\n", "                _ = info\n",
         "swift CopiedLaneTests/testWhatIsProvenIsReadOnce",
         "an archive is read although another one has all of it")
mutation("id", "first-covers-alone-overlap", STORE + "View/LaneOverlaps.swift",
         "            for cover in info.covers {\n",
         "            for cover in info.covers.prefix(1) {\n",
         "swift ClaimsTests/testSharedSegmentsAreFoundInEachCover",
         "records that two merged archives share come twice")
mutation("id", "ids-are-forgotten-early", STORE + "Merge/RecordsSeen.swift",
         "            lane.named[lane.first].monotonicNs < bound - reach\n",
         "            lane.named[lane.first].monotonicNs < bound + reach\n",
         "swift CopiedLaneTests/testEachRecordComesOnce",
         "ids are forgotten while a file that has them is still behind")
mutation("id", "others-have-begun", STORE + "Merge/RecordsSeen.swift",
         "min(reached.values.min() ?? 0, passed, heldFrom)",
         "min(reached.values.min() ?? 0, heldFrom)",
         "swift CopiedStoresTests/testEveryRecordComesOnceAsItsOwners",
         "ids are forgotten before a store that has them is read")
mutation("id", "clones-are-forgotten-together", STORE + "Merge/RecordsSeen.swift",
         "            lane.seen[name]?.removeFirst()\n", "            lane.seen[name] = nil\n",
         "swift CopiedStoresTests/testACloneIsForgottenByItself",
         "with a record's id, its younger clone is forgotten")
mutation("id", "later-files-go-first", STORE + "Merge/UnionSource.swift",
         "            .min { $0.turn < $1.turn }\n",
         "            .min { $0.record.monotonicNs < $1.record.monotonicNs }\n",
         "swift CopiedLaneTests/testEachRecordComesOnce",
         "two files' clocks decide the order of a thread's records")
mutation("owner", "chunks-go-on", CORE + "Lanes/Resource.swift",
         "            unsafe cwa_store_release_u64(AppendPath.limitWord(thread), 0)\n",
         "            _ = unsafe AppendPath.limitWord(thread)\n",
         "swift ResourceTests/testEarlierRecordsKeepTheirUser",
         "a thread goes on in its chunk after the user has changed")
mutation("owner", "equal-values-count", CORE + "Lanes/Resource.swift",
         "        if unsafe result == count && now.elementsEqual(next.prefix(result)) {",
         "        if unsafe result == count && now.isEmpty {",
         "swift ResourceTests/testAnEqualValueChangesNothing",
         "setting the same value again ends the chunks of all threads")
mutation("owner", "a-new-lane-has-nobody", CORE + "Lanes/Resource.swift",
         "        while let attribute = unsafe take(&rest), let start = attribute.baseAddress {\n",
         "        while false, let attribute = unsafe take(&rest), "
         "let start = attribute.baseAddress {\n",
         "swift ResourceTests/testManyChangesBeginALane",
         "a lane that replaces another one has no attributes")
mutation("owner", "the-newest-user-has-all", STORE + "Lanes/LaneSource.swift",
         "        if let known = context.process(version) { return known }\n        // The entry",
         "        if let known = Optional(context.process) { return known }\n        // The entry",
         "swift ResourceVersionTests/testEachChunkHasItsVersion",
         "earlier records become the present user's")
mutation("owner", "a-lost-change-is-skipped", STORE + "Lanes/Catalog.swift",
         "resource.take(change)\n            else { return nil }\n",
         "resource.take(change)\n            else { return resource.attributes }\n",
         "swift ResourceVersionTests/testALostChangeIsNobodys",
         "records whose user is lost become the user's before")
mutation("owner", "the-first-definition-applies", STORE + "Lanes/Catalog.swift",
         "        if let old, old == (key, value) { return }\n",
         "        if old != nil { return }\n",
         "swift ResourceVersionTests/testTheLastDefinitionOfAVersionApplies",
         "an entry that its writer gave up counts")
mutation("owner", "failed-changes-count", CORE + "Lanes/Resource.swift",
         "        guard status == Status.ok else { return status }\n"
         "        // CRASH: the catalog has a version",
         "        // CRASH: the catalog has a version",
         "swift ResourceTests/testAChangeThatFailsChangesNothing",
         "chunks name a version that the catalog has no room for")
mutation("owner", "attributes-without-a-limit", STORE + "Lanes/Catalog.swift",
         "        guard bytes - before + after <= Resource.halfBytes else { return false }\n", "",
         "swift ResourceVersionTests/testAttributesThatExceedTheLimitAreUnknown",
         "a damaged file makes its reader keep huge attributes for each version")
mutation("id", "names-alone-replace", STORE + "Archive/ArchiveInfo.swift",
         "            && old.covers.allSatisfy(segments.has)\n", "",
         "swift UploadServerTests/testNobodyIsReplacedByWhatLacksTheRecords",
         "an archive that names others keeps them from readers and targets")
mutation("id", "covers-alone-replace", STORE + "Keep/CompactionLeftovers.swift",
         "            return try ArchiveContents.has(new.path, all: old.path, "
         "identities: identities) ?? false\n",
         "            return true\n",
         "swift UploadServerTests/testNobodyIsReplacedByWhatLacksTheRecords",
         "an archive is removed for another one without its records")
mutation("id", "strange-lanes-are-merged", STORE + "Keep/StoreCompactor.swift",
         "            if !found.allSatisfy({ lanes.contains($0.laneID) }) "
         "{ candidate.mayMerge = false }\n", "",
         "swift RealArchiveTests/testLanesOfBlocksAreCovered",
         "one archive with a lane that it does not cover spoils those that it is merged with")
mutation("id", "an-inside-is-believed", STORE + "Archive/ArchiveIndex.swift",
         "        if let facts = file.facts { try index.compare(facts, salvage: salvage) }\n", "",
         "swift AgeArchiveTests/testWhatItCoversInsideCountsForNothing",
         "an encrypted archive hides others by what only the key shows")
mutation("id", "covers-inside-are-believed", STORE + "Archive/ArchiveIndex.swift",
         "        (info.id, info.covers, info.replaced) = (facts.id, [], [])\n", "",
         "swift ClientsTests/testEachClientsRecordsAreAsItSentThem",
         "an encrypted archive hides others by what only the key shows")
mutation("id", "nobody-knows-and-it-goes", STORE + "Keep/CompactionLeftovers.swift",
         "identities: identities) ?? false\n", "identities: identities) ?? true\n",
         "swift CompactEncryptedTests/testWhatItReplacedGoesWithTheKey",
         "an archive is removed for one that may not have its records")
mutation("id", "a-merged-id-has-no-lanes", STORE + "Archive/ArchiveInfo.swift",
         "        for cover in covers {\n            content.append(id: cover.laneID)\n",
         "        for cover in covers where replaced.isEmpty {\n"
         "            content.append(id: cover.laneID)\n",
         "swift RealArchiveTests/testAMergedArchiveWithAnothersNameIsStoredBesideIt",
         "whoever sends first an archive with the name of a device's merged one keeps it out")
mutation("id", "claims-are-combined", STORE + "Keep/CompactionLeftovers.swift",
         "        ).union(LaneRanges.sharing(infos).map(\\.id))\n", "        )\n",
         "swift ClaimsTests/testMergedArchivesReplaceWhatEachReplaces",
         "what two archives say is true of neither, and hides a third one once they are merged")
mutation("id", "a-follower-knows-segments", STORE + "View/ReplacedArchives.swift",
         "        ReplacedArchives.isCovered(info, members(of: info))\n",
         "        ReplacedArchives.isCovered(info, Array(listed.joined()))\n",
         "swift ClaimsTests/testAFollowerKnowsWhatIsReplaced",
         "a follower passes over records for those of others that cover the same segments")
mutation("id", "a-name-is-a-lane", STORE + "View/StoreView.swift",
         "            chains[cover.laneName]?.laneID ?? cover.laneID == cover.laneID\n",
         "            !cover.laneName.isEmpty\n",
         "swift ClaimsTests/testLanesOfOneNameAreTwo",
         "archives of another lane change the order of records")
mutation("id", "names-are-merged", STORE + "Keep/StoreCompactor.swift",
         "cover.laneName + ArchiveIdentity.text(cover.laneID)", "cover.laneName",
         "swift ClaimsTests/testLanesOfOneNameAreTwo",
         "a merged archive has the records of two lanes in no order")
mutation("id", "neighbours-are-apart", STORE + "Archive/LaneRanges.swift",
         "range.lowerBound <= last.upperBound + 1\n", "range.lowerBound <= last.upperBound\n",
         "swift LaneRangesTests/testTheyAreSetsOfSegments",
         "two archives beside each other do not have what one of both covers")
mutation("id", "seals-are-anywhere", STORE + "Archive/ArchiveIndex.swift",
         "                    number >= first, number <= last\n",
         "                    number <= .max\n",
         "swift ClientsTests/testEachClientsRecordsAreAsItSentThem",
         "seals of segments that an archive does not cover hide another client's archive")
mutation("id", "covers-of-nothing", STORE + "Archive/ArchiveIndex.swift",
         "<= cursor.left / SegmentSeal.bytes, first <= last\n",
         "<= cursor.left / SegmentSeal.bytes\n",
         "swift ClientsTests/testEachClientsRecordsAreAsItSentThem",
         "an archive has records of a lane without a segment of it, and nobody asks whose it is")
mutation("id", "no-covers-are-proof", STORE + "Archive/ArchiveInfo.swift",
         "== old.recordCount && !old.covers.isEmpty\n", "== old.recordCount\n",
         "swift LaneRangesTests/testNoCoversAreNoProof",
         "an archive whose covers are in doubt is hidden by any that names it")
mutation("id", "any-number-of-refusals", STORE + "Archive/Checks/ArchiveContents.swift",
         "        return count <= LaneGaps.piecesMax\n", "        return true\n",
         "swift ClaimsTests/testReportsOfRefusedRecordsAreBounded",
         "a few KiB that inflate to reports of refused records take the collector's memory")
mutation("id", "reports-do-not-follow", STORE + "Archive/Checks/ArchiveContents.swift",
         "if let last = list.last, last.upperBound == run.from {",
         "if let last = list.last, last.upperBound == run.from, run.from == .max {",
         "swift ClaimsTests/testReportsOfRefusedRecordsAreBounded",
         "the archive of a lane that refused records for long is put aside")
mutation("id", "all-leftovers-at-once", STORE + "Keep/CompactionLeftovers.swift",
         "prefix(checkedMax))", "prefix(.max))",
         "swift ClaimsTests/testAFewLeftoversAreCheckedAtOnce",
         "a program that sends reads an archive a thousand times first")
mutation("id", "neighbours-report-twice", STORE + "View/LaneOverlaps.swift",
         "            || reporting[lane]?.contains(cover.archive) == true\n", "",
         "swift ClaimsTests/testNeighboursReportRefusedRecordsOnce",
         "refused records that a copy's end and the lane report count twice")
mutation("id", "ends-are-merged", STORE + "Keep/StoreCompactor.swift",
         "return before.gap > 0 || before.last >= after.first", "return before.last >= after.first",
         "swift ClaimsTests/testNeighboursReportRefusedRecordsOnce",
         "one archive has two reports of the same refused records")
