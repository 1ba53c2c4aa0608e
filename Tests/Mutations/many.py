"""The mutations of many lanes and many segments: see table.py."""

from entry import ENGINE, STORE, mutation

mutation("many", "a-living-lane-is-over", STORE + "Lanes/LaneSource.swift",
         "isOver: context.isOver,\n", "isOver: true,\n",
         "swift OverLanesTests/testOnlyALivingLaneIsReadAgain",
         "a follower misses what a living process appends to its first segment")
mutation("many", "nothing-is-read-ahead", STORE + "Lanes/LaneContext.swift",
         "            try file.readAhead(at: UInt64(from), count: end &- from)\n", "",
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
         "LimitKeeper.archivedBytes / bounds.segmentBytes)", "0)",
         "processes listings_behind", "thousands of small segments become hundreds of archives")
mutation("many", "listed-out-of-order", STORE + "Files/LaneListing.swift",
         "        for name in lanes.keys { lanes[name]?.segments.sort "
         "{ $0.number < $1.number } }\n", "",
         "swift OverLanesTests/testAListingKnowsItsSegments",
         "an archive is sent while a segment that it covers exists")
mutation("many", "followers-miss-copies", STORE + "Lanes/LaneContext.swift",
         "isOver(follows ? .zero : runningBoot)", "isOver(runningBoot)",
         "swift OverLanesTests/testAFollowerReadsALaneOfADeadProcessAgain",
         "a follower misses what a copy of a dead process appends")
