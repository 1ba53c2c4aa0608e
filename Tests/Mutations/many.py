"""The mutations of many lanes and many segments: see table.py."""

from entry import ENGINE, STORE, mutation

mutation("many", "a-living-lane-is-over", STORE + "Lanes/LaneSource.swift",
         "isOver: context.isOver,\n", "isOver: true,\n",
         "swift OverLanesTests/testOnlyALivingLaneIsReadAgain",
         "a follower misses what a living process appends to its first segment")
mutation("many", "nothing-is-read-ahead", STORE + "Lanes/LaneContext.swift",
         "            try file.readAhead(at: UInt64(from), count: smallBytes &- from)\n", "",
         "processes listings", "each part of a small lane costs a system call")
mutation("many", "growth-is-probed", STORE + "Lanes/LaneContext.swift",
         "        try readCatalog(upTo: files.catalogs.map { $0.last ?? 0 } "
         "?? CatalogHeader.filesMax)\n", "        try readCatalog()\n",
         "processes listings", "a file of names is looked for that the listing lacks")
mutation("many", "sizes-are-asked-again", STORE + "Lanes/ReadFile.swift",
         "        if knownSize < wanted { knownSize", "        do { knownSize",
         "processes listings", "each part of a lane costs a call for the file's size")
mutation("many", "refusals-are-not-read", STORE + "Lanes/LaneContext.swift",
         "&+ DropSlot.dropped) == 0\n", "&+ DropSlot.dropped) >= 0\n",
         "swift OverLanesTests/testItReadsAsALivingOne",
         "refused records of a closed lane are not reported")
mutation("many", "creation-ends-a-segment", STORE + "View/EndPlan.swift",
         "isBefore($0.lastNs &+ offset, time)", "isBefore($0.firstNs &+ offset, time)",
         "swift LastRecordsTests/testOnlyTheLastSegmentsAreRead",
         "a slow thread's young record is left out with its old segment")
mutation("many", "gaps-are-left-out", STORE + "View/StoreView.swift",
         "                if start != nil, try source.endsInGap() {\n",
         "                if start == nil, try source.endsInGap() {\n",
         "swift LastRecordsTests/testOnlyTheLastSegmentsAreRead",
         "refusals are reported that a gap record in an older segment reports")
mutation("many", "all-segments-are-read", STORE + "View/EndPlan.swift",
         "        if old.isEmpty { return }\n", "        if !old.isEmpty { return }\n",
         "swift LastRecordsTests/testOnlyTheLastSegmentsAreRead",
         "the last record of a long lane costs reading all of it")
mutation("many", "unsealed-names-are-missing", STORE + "Files/LaneFiles.swift",
         "            for isSealed in [true, false] {\n", "            for isSealed in [true] {\n",
         "swift OverLanesTests/testSealedSegmentsAreFoundByTheirNames",
         "a segment whose rename failed is given up as removed")
mutation("many", "eight-small-segments", ENGINE + "Services/LimitKeeper.swift",
         "StoreArchiver.bytesAtOnce / bounds.segmentBytes)", "0)",
         "processes listings_behind", "thousands of small segments become hundreds of archives")
mutation("many", "listed-out-of-order", STORE + "Files/LaneListing.swift",
         "        for name in lanes.keys { lanes[name]?.segments.sort "
         "{ $0.number < $1.number } }\n", "",
         "swift OverLanesTests/testAListingKnowsItsSegments",
         "an archive is sent while a segment that it covers exists")
mutation("many", "followers-miss-copies", STORE + "Lanes/LaneContext.swift",
         "isOver(head, file, follows ? .zero : runningBoot)",
         "isOver(head, file, runningBoot)",
         "swift OverLanesTests/testAFollowerReadsALaneOfADeadProcessAgain",
         "a follower misses what a copy of a dead process appends")
mutation("many", "closed-lanes-are-sealed", STORE + "Lanes/LaneContext.swift",
         "            if let state, unsafe Bytes.u32(state.bytes, 0) == "
         "SegmentHeader.stateSealed {\n", "            if state != nil {\n",
         "swift OverLanesTests/testOnlyALivingLaneIsReadAgain",
         "a segment is read once while the helpers of a closed engine still seal it")
mutation("many", "closed-early-is-over", STORE + "Lanes/LaneContext.swift",
         "        if head.isLetGo {\n", "        if head.closed {\n",
         "swift OverLanesTests/testALaneThatWasClosedEarlyIsChecked",
         "a reader takes zeros for what the helpers of a closed engine overwrite")
mutation("many", "ends-are-believed", STORE + "View/EndPlan.swift",
         "            head.end <= head.size, head.end <= file.size(reaching: head.end),\n", "",
         "swift LastRecordsTests/testEndsThatCannotBeAreNotBelieved",
         "the last records come without the damage of a file that was cut")
mutation("many", "small-lanes-are-opened", STORE + "View/StoreView.swift",
         "                if start?.isNone ?? false { return nil }\n", "",
         "swift LastRecordsTests/testSmallLanesBeforeTheEndAreNotRead",
         "the last records of many small lanes cost opening each")
mutation("many", "refusals-are-left-out", STORE + "View/LaneGlance.swift",
         "        guard !hasDrops, let base", "        guard let base",
         "swift LastRecordsTests/testSmallLanesBeforeTheEndAreNotRead",
         "a loss that is told at a lane's end is left out with the lane")
mutation("many", "what-is-wanted-overflows", STORE + "View/EndPlan.swift",
         "        return overflow ? .max : next\n", "        return next\n",
         "swift OverLanesTests/testWhatIsWantedNextDoesNotOverflow",
         "the next attempt of a reader looks at less than the last one")
mutation("many", "a-dead-lane-is-one-archive", STORE + "Keep/StoreArchiver.swift",
         "if count == 0 || count >= segmentsAtLeast && bytes &+ size > bytesAtOnce {\n",
         "if count == 0 {\n", "swift AdoptionTests/testALongLaneIsArchivedInPieces",
         "an adopter that is killed begins a long lane anew")
mutation("many", "lanes-are-not-left", STORE + "Keep/StoreArchiver.swift",
         "            if shouldStop() { return summary }\n", "",
         "swift AdoptionTests/testALongLaneIsArchivedInPieces",
         "closing an engine waits until a long lane is archived")
mutation("many", "proven-segments-stay", STORE + "Keep/StoreArchiver.swift",
         "        removeSegments(files.segments.filter { proven.contains($0.number) })\n", "",
         "processes long_lane", "what a killed adopter archived takes space until the lane's end")
