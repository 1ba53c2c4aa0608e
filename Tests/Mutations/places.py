"""The mutations of stores that are moved or deleted, and of smaller rooms: see table.py."""

from entry import CORE, ENGINE, SHIMS, SYSTEM, mutation

# ── A store that is moved or deleted ──

mutation("path", "starts-from-its-text", SYSTEM + "FilePath.swift",
         '        self.init(directory, "")\n', "        self.init(nil, directory.path)\n",
         "processes moved", "the helper loses a store that is renamed")
mutation("path", "deleted-is-kept", SYSTEM + "FilePath.swift",
         "        if let now, !now.isNameless { return", "        if let now { return",
         "processes made_again", "a follower sees nothing of the store that is made again")
mutation("path", "deleted-has-names", SYSTEM + "FileCalls.swift",
         "        return errno == ENOENT\n", "        return false\n",
         "processes store_removed_from_overlay", "a host writes into a deleted folder for ever")

mutation("path", "lost-is-not-looked-for", SYSTEM + "FilePath.swift",
         "            let found = lookFor(lost)\n",
         "            let found: Int32 = lost.inode == 0 ? lookFor(lost) : -1\n",
         "processes moved_closed", "a host that closed its descriptors loses a store that is moved")
mutation("path", "lanes-are-not-looked-for", CORE + "Lanes/Descriptors.swift",
         "            again = unsafe lookForLanes(engine)\n", "            again = -1\n",
         "processes moved_closed", "writers do not find the lanes of a store that is moved")
mutation("path", "lost-is-deleted", CORE + "Lanes/LaneRenewal.swift",
         "Descriptors.isLaneDeleted(lane) ? .directoryGone : .directoryLost",
         "Descriptors.isLaneDeleted(lane) ? .directoryGone : .directoryGone",
         "processes moved_unseen", "records that lie elsewhere are called lost")
mutation("path", "archives-elsewhere-are-missed", ENGINE + "Services/ServicesLane.swift",
         "            if trouble == .directoryLost { leaveRecordsBehind() }\n", "",
         "processes moved_unseen_removed", "archives that lie elsewhere are called lost")
mutation("path", "archives-made-since-are-missed", ENGINE + "Services/ServicesLane.swift",
         "            keeping.storeID = id\n            return (lanes, losses)\n",
         "            return (lanes, losses)\n",
         "processes moved_unseen", "archives of the store that was made are called lost")
mutation("path", "left-lane-makes-segments-elsewhere", CORE + "Segments/Segments.swift",
         "                if unsafe isElsewhere(lane) { return EBADF }\n", "",
         "swift ElsewhereTests/testALeftLaneMakesNoSegmentElsewhere",
         "records of a lane that is left lie in a store that has no file of the lane")
mutation("path", "refusals-end-the-mark", CORE + "Paths/Refusals.swift",
         "        if before != .max { _ =", "        if before != 1 { _ =",
         "swift ElsewhereTests/testALeftLaneMakesNoSegmentElsewhere",
         "a refusal that was under way lets a lane that is left make segments")
mutation("path", "directory-is-not-put-back", CORE + "Lanes/LaneRenewal.swift",
         "                unsafe Descriptors.replaceLanes(engine, left).close()\n",
         "                left.close()\n",
         "swift ElsewhereTests/testALaneThatCannotBeMadeChangesNothing",
         "a lane goes on in a directory in which it has no file")
mutation("path", "memory-goes-to-another-store", CORE + "Segments/MemorySegments.swift",
         "                unsafe !Segments.isElsewhere(lane)\n",
         "                unsafe lane.pointee.name_length > 0\n",
         "swift ElsewhereTests/testSegmentsInMemoryStayInTheirStore",
         "segments in memory are moved into a store that has no file of their lane")
mutation("path", "memory-of-deleted-stores-stays", CORE + "Lanes/LaneRenewal.swift",
         "            unsafe MemorySegments.remove(engine, segment)\n", "",
         "swift ElsewhereTests/testSegmentsInMemoryStayInTheirStore",
         "segments in memory whose links were deleted stay there for ever")
mutation("path", "opening-acknowledges", SYSTEM + "FilePath.swift",
         "known.pointee.losses + (isOther ? 1 : 0)\n", "isOther ? 1 : 0\n",
         "swift ElsewhereTests/testALossWaitsToBeAcknowledged",
         "a directory that is opened once more counts as the one that was lost")
mutation("path", "long-paths-end-the-list", SYSTEM + "MappedFiles.swift",
         "            if held - start == bufferBytes { isCut = true }\n",
         "            if held - start == bufferBytes { return true }\n",
         "processes moved_closed", "beside a mapped file with a long path, no store is found")
mutation("path", "backslashes-are-line-feeds", SYSTEM + "MappedFiles.swift",
         "        if unsafe body(path, count, isDeleted) { return true }\n", "",
         "processes moved_closed", "a store below a directory with a backslash is not found")
mutation("path", "one-look-is-enough", SYSTEM + "MappedFiles.swift",
         "            if found != -1 || paths == before { return found }\n",
         "            if found != -1 || before == before { return found }\n",
         "swift ElsewhereTests/testADirectoryIsFoundWhileItIsRenamed",
         "a store that is renamed while it is looked for is not found")
mutation("path", "child-follows-no-link", CORE + "Lanes/Descriptors.swift",
         '        name.add("/.")\n', "",
         "processes child_moved", "a forked child refuses every record of a store behind a link")
mutation("path", "contents-are-missed", ENGINE + "Services/ServicesLane.swift",
         "        if store.isElsewhere { return true }\n", "        return store.isElsewhere\n",
         "processes moved_contents", "records that were moved elsewhere are called lost")
mutation("path", "child-finds-no-directory", CORE + "Lanes/Lanes.swift",
         "        unsafe Descriptors.beginAnew(engine)\n", "",
         "processes child_moved", "a forked child refuses every record once the store is moved")

# ── Other users, and smaller rooms ──

mutation("room", "root-keeps-its-files", SHIMS + "made.c",
         "    return folder->st_uid != 0 || folder->st_gid != 0;\n",
         "    return folder == NULL;\n",
         "processes dropped", "a daemon can make no files once it has dropped its privileges")
mutation("room", "everybody-is-private", SHIMS + "made.c",
         "    if ((parent->st_mode & SHARED) == SHARED) (void)!fchmod(fd, shared);\n",
         "    (void)shared;\n",
         "processes shared", "the group of a store cannot read it")
mutation("room", "folders-stay-roots", SHIMS + "made.c",
         "    (void)take_after(model, fd, geteuid() == 0, SHARED | S_IRWXU);\n",
         "    errno = 0;\n",
         "processes dropped", "nothing can be made in lanes/ after privileges were dropped")
mutation("room", "threads-start-blindly", SHIMS + "shims.c",
         "    return syscall(SYS_rseq, NULL, 0, 0, 0) == 0 || errno == EINVAL;\n",
         "    return true;\n",
         "processes filter_little", "the C library ends a host whose filter refuses rseq")
mutation("room", "no-reserve", SHIMS + "reserve.c",
         "        if (!block) block = take(bytes, align);\n", "",
         "processes limited_few", "Swift's runtime ends a host that has no memory left")
mutation("room", "jobs-begin-anyway", SHIMS + "reserve.c",
         "        has = room != MAP_FAILED;\n", "",
         "processes limited_few", "an archive takes the host's last memory")
mutation("room", "each-job-is-tried", SHIMS + "reserve.c",
         "    if (is_limited()) {\n", "    {\n",
         "hostile steady", "each archive holds up the host's own mmap")
mutation("room", "the-shipper-gives-up", ENGINE + "Services/ServicesMemory.swift",
         "        while !hasRoom() {\n",
         "        if !hasRoom() { return false }\n        while false {\n",
         "processes limited_few", "after a shortage nothing is archived any more")
mutation("room", "errands-are-forgotten", ENGINE + "Services/Services.swift",
         "            errands.append(body)\n", "",
         "processes filter_no_threads", "without another thread, a removed lane is never replaced")
mutation("room", "errands-wait-for-memory", ENGINE + "Services/ServicesMemory.swift",
         "            runErrands()\n", "",
         "processes limited_errand", "without memory and threads, a removed lane is not replaced")
mutation("room", "bodies-take-nothing", ENGINE + "Services/ServicesMemory.swift",
         "        uploads.makesBodies ? Services.bodiesRoomBytes : Services.roomBytes\n",
         "        uploads.makesBodies ? Services.roomBytes : Services.roomBytes\n",
         "processes limited_bodies", "an upload ends a host that has little memory")
mutation("room", "close-waits-for-itself", ENGINE + "Services/Services.swift",
         "        uploads.isPassing || limits.isRunningHere || isShipper\n",
         "        uploads.isPassing || limits.isRunningHere\n",
         "processes close_in_callback", "a close in a callback of the thread that archives hangs")
mutation("R10", "late-counts-under-the-lock", ENGINE + "Services/Services.swift",
         "                unsafe EngineCore.writeLateCounts(engine)\n",
         "                sealingOnSupply { unsafe EngineCore.writeLateCounts(engine) }\n",
         "disk late_counts_hold_nobody", "a host's call waits for a disk that refuses the counts")
mutation("room", "opening-does-not-wait", ENGINE + "Services/Services.swift",
         "        adoption.letRun()\n", "",
         "processes short_lived",
         "processes that live for milliseconds leave ever more lanes")
mutation("R10", "late-counts-asked-each-time", CORE + "Paths/Drops.swift",
         "        if unsafe cwa_load_acquire_u32(late) == UInt32(CWI_COUNTS_WRITTEN),\n"
         "            unsafe",
         "        if unsafe",
         "disk full_while_written", "every refusal waits for a disk that is slow to refuse")
mutation("R10", "late-counts-stay", ENGINE + "Services/Services.swift",
         "                unsafe EngineCore.writeLateCounts(engine)\n", "",
         "disk full_while_written", "a kill loses counts that the disk had refused long ago")
