"""The mutations of what archives and segments say about themselves, and when: see table.py."""

from entry import STORE, mutation

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
mutation("read", "events-decide-the-age", STORE + "Archive/ArchiveInfo.swift",
         "    package var writtenNs: UInt64 { min(writtenMax, createdRealtime) }\n",
         "    package var writtenNs: UInt64 { min(timeMax, createdRealtime) }\n",
         "swift ReadingVerbTests/testLogDeletesNothingThatTheStoreKeeps",
         "a record about an old event is deleted for its age")
