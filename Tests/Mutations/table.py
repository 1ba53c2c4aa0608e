"""The mutations of `./dev mutate`: for each rule of the append, seal and recover protocol, and for
reading and sending, the lines that keep it, their mutation, and the case that must then fail.
`./dev check` compares the lines with the sources: whoever changes a source changes its entry.

R12, R22, R26 and R29 have no entry: other defences mask their lines (the engine's state refuses a
closed engine twice, the lane's once more), or no single line keeps the rule.

An entry's lines must occur exactly once in their file. If two defences mask each other the entry
changes both, and says so. `heavy`: a case of `./dev test --all`."""
from entry import CORE, ENGINE, STORE, mutation

# ── Claim, seal, stragglers ──

mutation("R1", "cut-off-is-kept", CORE + "Paths/AppendSlow.swift",
         "        guard unsafe settledKept(thread) else { return false }\n",
         "        _ = unsafe settledKept(thread)\n",
         "c-abi roll_steps", "a record behind the sealer's length is not written again")
mutation("R1", "no-first-membarrier", CORE + "Chunks/Sealer.swift",
         "SegmentHeader.stateSealing)\n        fence()\n",
         "SegmentHeader.stateSealing)\n",
         "c-abi seal_fences", "a claim's chunk and its look at the state pass the sealer's")
mutation("R1", "no-second-membarrier", CORE + "Chunks/Sealer.swift",
         "        fence()\n        unsafe ThreadBlocks.forEach(engine) { unsafe Settle.forced",
         "        unsafe ThreadBlocks.forEach(engine) { unsafe Settle.forced",
         "c-abi seal_fences", "committed and the look at the limit pass the poison")
mutation("R1", "no-poison", CORE + "Chunks/Sealer.swift",
         "                unsafe cwa_store_release_u64(AppendPath.limitWord(thread), 0)\n", "",
         "c-abi roll_steps", "a thread goes on in a sealed chunk")
mutation("R2", "claim-id-stays", CORE + "Chunks/Claim.swift",
         "Verdict.load(thread).claim &+ 1\n", "Verdict.load(thread).claim\n",
         "c-abi seal_steps", "the sealer closes a chunk that the thread has claimed since")
mutation("R2", "owner-leaves-final", CORE + "Chunks/Settle.swift",
         "        if hasCommitted, settled.offset < end {", "        if false {",
         "crash --points --mode duels --sample 200",
         "a kill before the sealer's final shows the record in both chunks")
mutation("R2", "sealer-leaves-final", CORE + "Chunks/Settle.swift",
         "                unsafe cwa_store_release_u32(chunk + ChunkHeader.final, committed)\n", "",
         "c-abi sealed_chunks", "a sealed chunk without length has no checksum either")
mutation("R3", "no-second-look", CORE + "Chunks/Claim.swift",
         "        if unsafe cwa_load_acquire_u32(Segments.stateWord(segment)) == Segments.open,\n"
         "            unsafe UnsafeMutableRawPointer(segment.pointee.base) == base\n",
         "        if unsafe UnsafeMutableRawPointer(segment.pointee.base) == base\n",
         "c-abi roll_steps", "a claim that was not published when sealing began goes on")
mutation("R3", "no-checksum", CORE + "Chunks/Sealer.swift",
         "                unsafe chunk.storeBytes(of: crc, toByteOffset: ChunkHeader.crc, "
         "as: UInt32.self)\n", "                _ = crc\n",
         "c-abi sealed_chunks", "after a power cut a sealed chunk cannot be believed")
mutation("R4", "salt-first", CORE + "Chunks/Claim.swift",
         "        unsafe chunk.storeBytes(of: bytes, toByteOffset: ChunkHeader.size, "
         "as: UInt32.self)\n",
         "        unsafe cwa_store_release_u64(chunk + ChunkHeader.salt, segment.pointee.salt)\n"
         "        unsafe chunk.storeBytes(of: bytes, toByteOffset: ChunkHeader.size, "
         "as: UInt32.self)\n",
         "c-abi reused_steps", "a header of the file's earlier life exists before the new one")
mutation("R5", "busy-is-quiet", CORE + "Chunks/Quiescence.swift",
         "AppendPath.busyWord(thread)) != 0 else { return }\n",
         "AppendPath.busyWord(thread)) == 1 else { return }\n",
         "c-abi frozen_steps", "a file is used again under a thread stopped inside an append")
mutation("R6", "busy-is-not-set", CORE + "Paths/AppendPath.swift",
         "        unsafe cwa_store_relaxed_u64(busyWord(thread), UInt64(cwi_frame()))\n", "",
         "c-abi frozen_steps", "nobody sees that an append is running")
mutation("R6", "no-block-salt", CORE + "Chunks/Settle.swift",
         "cwa_load_acquire_u64(ThreadBlocks.saltWord(thread)) == segment.pointee.salt\n",
         "cwa_load_acquire_u64(ThreadBlocks.saltWord(thread)) != 0\n",
         "c-abi reused_idle", "an idle thread's old chunk cuts another's in the file's next life")
mutation("R7", "no-writer-fence", CORE + "Chunks/Membarrier.swift",
         "        if isMissing { cwa_fence_full() } else { cwa_fence_compiler() }\n",
         "        cwa_fence_compiler()\n",
         "c-abi append_fences", "without membarrier nobody orders the writer's look")
mutation("R7", "registered-late", CORE + "Chunks/Membarrier.swift",
         "        if !isMissing, cwi_has_one_thread() { register() }\n", "",
         "c-abi start_small", "the first close waits for milliseconds")
mutation("R10", "nobody-waits-for-supply", CORE + "Segments/Segments.swift",
         "        unsafe awaitSupply(engine, lane, oldWord, thread)\n", "",
         "swift SupplyTests/testAWriterWaitsForSupply",
         "writers make segments in line while supply does not run")
mutation("R10", "waits-in-vain-again", CORE + "Segments/SegmentMakers.swift",
         "        if unsafe spareCount(lane) == 0 { unsafe cwa_store_relaxed_u32("
         "lateWord(lane), 1) }\n", "", "swift SupplyTests/testAWaitInVainIsTheLast",
         "every segment costs its writers 5 ms while supply does not run")
mutation("R10", "first-spare-awaited", CORE + "Segments/SegmentMakers.swift",
         "        return lacksSpare && !isFirst && !isLate ?",
         "        return lacksSpare && !isLate ?",
         "swift SupplyTests/testTheFirstSpareIsNotAwaited",
         "a program's first 1,000 records end in a sleep")
mutation("R10", "rate-of-one-segment", CORE + "Segments/Supply.swift",
         "            return last.size - last.used + (segment - last.segment - 1) * size + used\n",
         "            return used\n", "swift SupplyTests/testTheRateCountsWholeSegments",
         "supply prepares too little at a full rate, and writers sleep")
mutation("R10", "priority-stays", ENGINE + "Services/Services.swift",
         "            raiseArchiver()\n", "",
         "swift ArchivingTests/testThePriorityRisesWithWhatWaits",
         "a busy host's archiver falls behind for ever")
mutation("R10", "helpers-wait-for-supply", CORE + "Segments/SegmentMakers.swift",
         "            unsafe cwi_tls_get().pointee.helper == 0,\n"
         "            unsafe !EngineCore.isForked(engine), unsafe patience",
         "            unsafe !EngineCore.isForked(engine), unsafe patience",
         "swift SupplyTests/testTheEnginesOwnThreadsDoNotWait",
         "supply waits for itself")
mutation("R10", "blocked-as-grow", CORE + "Segments/SegmentMakers.swift",
         "            return blockedWaitNs\n", "            return supplyWaitNs\n",
         "swift SupplyTests/testAWriterThatBlocksWaitsLonger",
         "under CW_OVERFLOW_BLOCK a writer makes segments in line after 5 ms")
mutation("R6", "pages-of-busy-threads", CORE + "Chunks/Quiescence.swift",
         "unsafe segment.pointee.populated != 0, unsafe !Lost.isLost(segment),\n"
         "                unsafe Quiescence.isQuiet(engine, segment)\n",
         "unsafe segment.pointee.populated != 0, unsafe !Lost.isLost(segment)\n",
         "swift SupplyTests/testSealedPagesAreLetGoOf",
         "a thread that still stores there faults a page in again")
mutation("R16", "pages-stay", CORE + "Chunks/Quiescence.swift",
         "            unsafe Mapping.discard(\n                UnsafeMutableRawPointer(segment"
         ".pointee.base)!, bytes: Int(segment.pointee.size))\n", "",
         "swift SupplyTests/testSealedPagesAreLetGoOf",
         "sealed segments stay in the host's memory")
mutation("R7", "not-marked", CORE + "Chunks/Membarrier.swift",
         "            ThreadBlocks.markAll()\n", "",
         "c-abi append_fences", "threads that have a block stay on the path without fences")
mutation("R8", "only-busy-are-settled", CORE + "Chunks/Settle.swift",
         "        for _ in 0..<4 {\n            let verdict = unsafe Verdict.load(thread)\n",
         "        guard unsafe thread.pointee.busy != 0 else { return }\n"
         "        for _ in 0..<4 {\n            let verdict = unsafe Verdict.load(thread)\n",
         "c-abi sealed_chunks", "an idle thread's chunk is never settled")
mutation("R9", "roll-does-not-seal", ENGINE + "Services/Services.swift",
         "            eventsAtRoll = events\n        }\n        seal()\n",
         "            eventsAtRoll = events\n        }\n",
         "c-abi sealed_chunks", "cw_roll returns before what was written is sealed")
mutation("R9", "empty-is-sealed", CORE + "Lanes/EngineCore.swift",
         "segment.pointee.in_lane != 0 || !isEmpty(segment)\n",
         "segment.pointee.in_lane != 0 || !isEmpty(segment) || true\n",
         "c-abi publish_steps", "a segment that is about to be current is sealed (A10)",
         release=True)
mutation("R10", "not-counted", CORE + "Paths/Drops.swift",
         "        let before = unsafe cwa_add_u64(slot + DropSlot.dropped, 1)\n",
         "        let before = unsafe cwa_load_relaxed_u64(slot + DropSlot.dropped)\n",
         "c-abi file_limit_exact", "refused records are not told")
mutation("R10", "not-reported", CORE + "Paths/Drops.swift",
         "            unsafe cwa_store_release_u64(slot + DropSlot.reported, to)\n", "",
         "c-abi gap_told_once", "after a kill the archived gap is told again")

# ── Recycling, mapping, readers ──

mutation("R6", "ready-order", CORE + "Segments/Segments.swift",
         """        while shown < target {
            if unsafe cwa_cas_u64(header, shown, target) { break }
            shown = unsafe cwa_load_relaxed_u64(header)
        }
        while ready < target {
            if unsafe cwa_cas_u64(readyWord(segment), ready, target) { break }
            ready = unsafe cwa_load_acquire_u64(readyWord(segment))
        }
""", """        while ready < target {
            if unsafe cwa_cas_u64(readyWord(segment), ready, target) { break }
            ready = unsafe cwa_load_acquire_u64(readyWord(segment))
        }
        while shown < target {
            if unsafe cwa_cas_u64(header, shown, target) { break }
            shown = unsafe cwa_load_relaxed_u64(header)
        }
""", "c-abi grow_steps", "another thread's record lies beyond what readers look at (A6)")
mutation("R11", "read-while-reused", CORE + "Segments/Recycling.swift",
         "        guard unsafe flock(segment.pointee.fd, LOCK_EX | LOCK_NB) == 0 else "
         "{ return false }\n", "",
         "c-abi reader_keeps_file", "a file that a reader has open is used again")
mutation("R11", "no-recheck", STORE + "Lanes/SegmentFile.swift",
         "            && Bytes.u32(now.bytes, SegmentHeader.state) != SegmentHeader.stateDead\n",
         "            && Bytes.u32(now.bytes, SegmentHeader.state) != SegmentHeader.stateDead "
         "|| true\n",
         "c-abi reused_reads", "a reader returns records of the file's next use")
mutation("R11", "only-the-header", STORE + "Lanes/StreamCursor.swift",
         "        guard try entry.segment.recheck() else {\n",
         "        guard !entry.segment.isLost else {\n",
         "c-abi reused_reads", "a chunk is read after the last look at the file's header")
mutation("R11", "use-is-damage", STORE + "Lanes/LaneSource.swift",
         "                if file.hasItsName { throw error }\n",
         "                if file.hasItsName || true { throw error }\n",
         "c-abi reused_reads", "a file used again just after it was opened is shown as damaged")
mutation("R13", "no-watch", CORE + "Segments/Lost.swift",
         " file.bytes < whole else {\n", " file.bytes < whole, false else {\n",
         "disk cut_mends_itself", "a file that somebody cut is not extended again")
mutation("R14", "no-write-mode", CORE + "Segments/WriteThrough.swift",
         "        guard isFirst, error == Errno.EOPNOTSUPP || error == Errno.ENOSYS else "
         "{ return error }\n",
         "        guard isFirst, error == Errno.EOPNOTSUPP, false else { return error }\n",
         "c-abi no_fallocate", "where nothing is preallocated nothing can be logged")
mutation("R15", "not-resident", CORE + "Segments/Recycling.swift",
         "unsafe Quiescence.isQuiet(engine, segment), unsafe isResident(segment),\n",
         "unsafe Quiescence.isQuiet(engine, segment),\n",
         "c-abi evicted", "a file is used again whose pages have left memory")
mutation("R15", "unmapped-not-resident", CORE + "Segments/Recycling.swift",
         "let base = unsafe Segments.map(engine, slot, descriptor), unsafe isResident(slot),\n",
         "let base = unsafe Segments.map(engine, slot, descriptor),\n",
         "swift SupplyTests/testAnUnmappedFileIsLeftAlone",
         "a file is used again whose pages have left memory")
mutation("R5", "unmapped-beside-its-mapping", CORE + "Segments/Recycling.swift",
         "lane = unsafe readyLane(engine), unsafe !isMapped(engine, number...number) else {\n",
         "lane = unsafe readyLane(engine) else {\n",
         "swift SupplyTests/testAnUnmappedFileIsUsedAgain",
         "a file is used again to which a thread may still store")
mutation("pages", "unmapped-without-end", CORE + "Segments/Recycling.swift",
         "            unsafe Segments.spareCount(lane) < Supply.freshMax,\n", "",
         "swift SupplyTests/testFewUnmappedFilesAreUsedAgain",
         "an engine far ahead of its archiver keeps its memory")
mutation("R16", "salt-stays", CORE + "Segments/Recycling.swift",
         "        unsafe segment.pointee.salt = Machine.random()\n", "",
         "c-abi reused_steps", "chunks of the file's earlier life exist in the new one")
mutation("R17", "one-count-a-stream", CORE + "Chunks/Claim.swift",
         "        let own = unsafe thread.pointee.own ?? thread\n"
         "        // ORDER: acquire-release, for its indivisibility alone",
         "        let own = unsafe thread\n"
         "        // ORDER: acquire-release, for its indivisibility alone",
         "c-abi alternate_steps", "two chunks of a thread have one number (A30)")
mutation("R18", "no-stack-question", CORE + "Threads/Abandoned.swift",
         "guard unsafe next != nil, cwi_on_alternate_stack() == 0 else",
         "guard unsafe next != nil else",
         "c-abi alternate_steps", "an append that a handler interrupted is taken for abandoned")
mutation("R18", "never-abandoned", CORE + "Threads/Abandoned.swift",
         "            if frame &+ slowPathBytes > busy { break }\n", "",
         "c-abi longjmp", "an append that was left is busy for ever, and each later call nested")
mutation("R19", "cancellable", CORE + "Paths/AppendSlow.swift",
         "        let cancel = cwi_disable_cancel()\n        defer { cwi_restore_cancel(cancel) }\n"
         "        // ORDER: acquire. Pairs with close",
         "        // ORDER: acquire. Pairs with close",
         "c-abi cancel_pending", "a thread is cancelled within an append")
mutation("R20", "no-settle-at-exit", CORE + "Threads/ThreadBlocks.swift",
         "            _ = unsafe Settle.own(block)\n"
         "            unsafe cwa_store_release_u64(AppendPath.busyWord(block), 0)\n",
         "            unsafe cwa_store_release_u64(AppendPath.busyWord(block), 0)\n",
         "c-abi sealed_chunks", "the chunk of a thread that has ended has no length")
mutation("R21", "sequence-stays", CORE + "Chunks/Claim.swift",
         "cwi_thread_chunk_sequence_at(own), 1)\n",
         "cwi_thread_chunk_sequence_at(own), 0)\n",
         "c-abi alternate_steps", "two chunks of a thread have one number")

mutation("R23", "not-pinned", CORE + "Lanes/EngineCore.swift",
         "        cwi_pin_module()\n", "",
         "processes unload", "a plugin with the static library is unloaded under our threads")

# ── Fork ──

mutation("R24", "blocks-not-wiped", "Sources/CordwoodCore/System/Mapping.swift",
         "        if wipedOnFork, unsafe madvise(",
         "        if wipedOnFork, bytes < 0, unsafe madvise(",
         "processes fork_clone", "a child without handlers goes on in its parent's chunk")
mutation("R25", "not-overlaid", CORE + "Lanes/Lanes.swift",
         "                    unsafe Mapping.overlay(\n"
         "                        UnsafeMutableRawPointer(base), bytes: "
         "Int(segment.pointee.size))\n", "",
         "processes fork_idle", "an idle child keeps deleted files")
mutation("R27", "sites-not-told", CORE + "Lanes/CatalogWriter.swift",
         "guard unsafe Sites.writeAll(engine, lane), unsafe", "guard unsafe",
         "c-abi places_fork", "a child's records refer to places that its lane does not name")

# ── Catalog, time ──

mutation("R28", "names-not-told", CORE + "Lanes/CatalogWriter.swift",
         "            guard status == Status.ok else { return false }\n"
         "            at += (keptHeaderBytes + count + 3) & ~3\n",
         "            guard status == Status.ok else { return false }\n            break\n",
         "c-abi fork_names", "a child's records have loggers that its lane does not name")

mutation("R30", "step-unseen", CORE + "Segments/ClockWatch.swift",
         "sample.monotonic >= nextPairNs || step.magnitude > ClockWatch.stepNs else {",
         "sample.monotonic >= nextPairNs else {",
         "disk utc_set", "records behind a step of UTC show the time before it")

# ── Lanes ──

mutation("R31", "lock-inherited", "Sources/CordwoodCore/System/Mapping.swift",
         "        guard unsafe madvise(page, holdBytes, 10 /* MADV_DONTFORK */) == 0 else {\n",
         "        guard holdBytes > 0 else {\n",
         "processes clone_orphan", "a clone keeps the lock of its dead parent")
mutation("R31", "lock-of-a-descriptor", CORE + "Lanes/OwnerLock.swift",
         "            return unsafe lane.pointee.life == nil ? Errno.last : 0\n        }\n",
         "            unsafe release(lane)\n"
         "            return Files.lock(descriptor) ? 0 : Errno.last\n        }\n",
         "processes owner_written", "a host that closes all descriptors loses its lock")
mutation("R31", "mapping-is-believed", CORE + "Lanes/OwnerLock.swift",
         "        guard Files.lock(descriptor) else {\n",
         "        guard unsafe lane.pointee.life == nil, Files.lock(descriptor) else {\n",
         "processes owner_on_overlay", "a mapping is believed that holds no lock")
mutation("R31", "busy-is-overruled", STORE + "Keep/AdoptionLock.swift",
         "        if owner.lockIsLife { return isLocked }\n", "",
         "processes owner_executes", "/proc is asked where the lock says it")
mutation("R31", "no-quiet-time", STORE + "Keep/AdoptionLock.swift",
         # Not the look at it: `cordwood archive` itself sleeps that long, which masks it.
         "    public static let quietNs: UInt64 = 10_000_000_000\n",
         "    public static let quietNs: UInt64 = 1_000\n",
         "processes clone_orphan_descriptor", "a lane is adopted while a vfork child may write")
mutation("R32", "inode-not-asked", STORE + "Keep/AdoptionLock.swift",
         "        guard Files.lockOpenFile(descriptor), FileFacts.isNamed(descriptor, path),\n",
         "        guard Files.lockOpenFile(descriptor),\n",
         "processes lane_replaced", "the lock of a file without its name guards nothing")
mutation("R32", "lock-after-rename", CORE + "Lanes/Lanes.swift",
         "        var error = unsafe OwnerLock.take(lane, descriptor, directory, temporary)\n",
         "        var error: Int32 = 0\n"
         "        defer { _ = unsafe OwnerLock.take(lane, descriptor, directory, name) }\n",
         "c-abi locked_first", "a lane has its name before it is locked")

mutation("R33", "other-machines", STORE + "Keep/AdoptionLock.swift",
         "                if unsafe OtherMachine.made(header, descriptor) { return .remote }\n",
         "",
         "disk another_machines_lane", "a lane whose owner lives elsewhere is adopted")

# ── Archive, upload, power ──

mutation("R34", "name-not-synced", STORE + "Archive/PartFile.swift",
         "        guard Files.sync(directory) else {\n", "        guard directory >= 0 else {\n",
         "simulation --seeds 200", "segments go before the archive's name is safe")
mutation("R35", "journal-not-synced", CORE + "Lanes/JournalWriter.swift",
         "        if result == 0 { result = FileCalls.syncData(file.descriptor) }\n", "",
         "simulation --seeds 200", "a flush answers OK for bytes that are not on the disk")

mutation("R34", "names-not-synced", STORE + "Files/ArchiveLock.swift",
         "        if StoreFiles.exists(paths.lanes) "
         "{ try StoreFiles.syncDirectory(paths.lanes) }\n", "",
         "c-abi names_synced",
         "an archive is deleted before its segments' names are durably gone; both syncs",
         also=[(ENGINE + "Services/ServicesArchiving.swift",
                "            SegmentLink.remove(segment.path)\n"
                "        }\n        _ = Directories.sync(directory + \"/lanes\")\n",
                "            SegmentLink.remove(segment.path)\n        }\n")])
mutation("R36", "failure-forgotten", CORE + "Lanes/JournalWriter.swift",
         "        failure = unsafe write(engine, lane, guards, fresh: fresh)\n"
         "        guard failure == 0 else { return failure }\n",
         "        let error = unsafe write(engine, lane, guards, fresh: fresh)\n"
         "        guard error == 0 else { return error }\n",
         "disk failed_sync_is_told", "after a failed sync the old journal is believed")
mutation("R36", "journal-is-replaced", CORE + "Lanes/JournalWriter.swift",
         "            unsafe result = unsynced.isEmpty ? publish(engine, lane) : unsyncedError\n",
         "            unsafe result = publish(engine, lane)\n",
         "disk failed_sync_heals", "a new journal lacks segments that only the old one had")
mutation("R36", "lane-is-kept", CORE + "Lanes/JournalWriter.swift",
         "                unsafe Lanes.setUnusable(lane)\n", "",
         "disk failed_catalog", "names that the disk refused are believed after the next sync")
mutation("A36", "reported-refusals-are-left-out", CORE + "Lanes/LaneRenewal.swift",
         "        var most = unsafe counts(engine).records &+ refused\n",
         "        var most = unsafe counts(engine).records\n",
         "disk deleted_after_refusals", "refusals reported in lost gap records stay unreported")
mutation("A36", "store-file-is-read-once", ENGINE + "Services/ServicesLane.swift",
         "        guard state == nil || state != keeping.store else { return }\n",
         "        guard keeping.storeID == nil else { return }\n",
         "disk deleted_slowly", "archives of a store that is removed slowly are not missed")
mutation("R37", "all-believed", STORE + "Lanes/StreamCursor.swift",
         "        believed = segment.isOtherBoot ? [] : nil\n", "        believed = nil\n",
         "simulation --seeds 200", "what was torn by a power cut is shown as verified")
mutation("R38", "archive-not-locked", STORE + "Files/ArchiveLock.swift",
         "        guard Files.lockOpenFile(opened, byte: target.map(ArchiveLock.byte)),\n",
         "        guard target == nil\n"
         "                || Files.lockOpenFile(opened, byte: target.map(ArchiveLock.byte)),\n",
         "c-abi archive_held", "an archive that somebody sends is deleted")
mutation("R38", "unread-clocks-are-none", STORE + "Keep/ClockFile.swift",
         "            default: return nil\n",
         "            default: return AgeTrust()\n",
         "disk a_jump_deletes_nothing", "archives go for their age by a clock that jumped")
mutation("R39", "signals-not-blocked", "Sources/CordwoodCore/System/Monitor.swift",
         "        unsafe pthread_sigmask(SIG_SETMASK, &all, &old)\n",
         "        unsafe pthread_sigmask(SIG_SETMASK, nil, &old)\n",
         "hostile signals", "the helper takes a signal that the host waits for")

# ── Invariants ──

mutation("A5", "limit-behind-chunk", CORE + "Chunks/Claim.swift",
         "UInt64(UInt(bitPattern: chunk + Int(bytes))))\n",
         "UInt64(UInt(bitPattern: chunk + Int(bytes) + 64)))\n",
         "swift AppendModelTests", "a record runs over its chunk's end into the next one")
mutation("A22", "number-survives-reuse", CORE + "Segments/Recycling.swift",
         "        unsafe segment.pointee.number = 0\n", "",
         "swift AppendModelTests", "a spare has the number of the segment that it was")

# ── Copies of the library, and what longjmp left ──

mutation("A21", "plan-of-another-copy", CORE + "Sites/SitePlan.swift",
         "        guard word &- table &- 1 < SitePlan.tableBytes else { return nil }\n",
         "        guard word &- table &- 1 < .max &- table else { return nil }\n",
         "processes shared_place", "a place that another copy filled has that copy's number")
mutation("R18", "entry-does-not-look", CORE + "Paths/DeferredPath.swift",
         "        Abandoned.reclaimFromEntry()\n        return unsafe write(logger, level, plan,",
         "        return unsafe write(logger, level, plan,",
         "c-abi jump_large", "the slow path's own frames make what was left look nested")
mutation("A35", "nested-go-to-the-pool", CORE + "Threads/ThreadBlocks.swift",
         "            unsafe convert(evicted, mark)\n",
         "            if let nested = unsafe evicted.pointee.nested { unsafe giveBack(nested) }\n"
         "            unsafe convert(evicted, mark)\n",
         "swift BlockTableTests", "another thread takes a block that an append is about to look at")
mutation("A35", "found-goes-to-the-pool", CORE + "Threads/BlockTable.swift",
         "        if isNew { unsafe ThreadBlocks.giveBack(block) }\n",
         "        unsafe ThreadBlocks.giveBack(block)\n",
         "swift BlockTableTests", "another thread takes a block that an append has just found")

mutation("A21", "message-tokens-by-twos", CORE + "Sites/MessageSites.swift",
         "            guard differs == 0 else { return false }\n", "",
         "swift MessageTests",
         "a place's record with other types gets the site of the first ones")
mutation("A21", "message-second-token", CORE + "Sites/MessageSites.swift",
         "                | (other ^ place.load(fromByteOffset: at &+ 8, as: UInt64.self))\n", "",
         "swift MessageTests",
         "a place's record with other types gets the site of the first ones")

mutation("A21", "quick-third-token", CORE + "Sites/MessageSites.swift",
         "            unsafe frame.tokens <= 16 || isToken(words, low, 16),\n", "",
         "swift EverydayMessageTests",
         "a place's record with another text gets the site of the first one")
mutation("A21", "quick-function", CORE + "Sites/MessageSites.swift",
         "unsafe isWord(words, bytes &- 16, function),", "",
         "swift EverydayMessageTests", "one place under two functions shows the first one's name")
mutation("A21", "quick-text-function", CORE + "Sites/MessageSites.swift",
         "        guard unsafe isWord(words, 24, file), unsafe isWord(words, 16, function),\n",
         "        guard unsafe isWord(words, 24, file),\n",
         "swift EverydayMessageTests", "one place under two functions shows the first one's name")
mutation("A23", "quick-in-a-context", "Sources/CShims/message.c",
         "    __atomic_store_n(&cwi_context_hooks_words.take, take, __ATOMIC_SEQ_CST);\n"
         "    __atomic_store_n(&cwi_message_table_words.quick, NULL, __ATOMIC_SEQ_CST);\n",
         "    __atomic_store_n(&cwi_context_hooks_words.take, take, __ATOMIC_SEQ_CST);\n",
         "swift ContextTests", "records lack their task's context")

mutation("A4", "fields-end-late", CORE + "Paths/FieldsPath.swift",
         "            var fieldBytes = 2\n", "            var fieldBytes = 1\n",
         "python-speed test_logger.LoggerTest.test_fields_of_every_number_and_length",
         "a record's fields end one byte behind their section")

# ── The append in the header ──

HEADER = "include/cordwood/append.h"
mutation("R1", "header-cut-off-is-kept", HEADER,
         "    if (!CW_LIKELY_(block->limit != NULL)) return false;\n", "",
         "c-abi roll_steps_inlined", "a record behind the sealer's length is not written again")
mutation("R5", "header-keeps-the-block", HEADER,
         "    return __atomic_load_n(&cw_append_1, __ATOMIC_RELAXED);\n",
         "    static cw_append_block *kept;\n"
         "    return kept ? kept : (kept = __atomic_load_n(&cw_append_1, __ATOMIC_RELAXED));\n",
         "c-abi fibers", "a fiber that has moved appends into the block of the thread that it left")
mutation("R1", "header-cut-off-text-is-kept", HEADER,
         "    if (!CW_LIKELY_(block->limit != NULL)) return false;\n", "",
         "c-abi roll_steps_text", "cw_write answers for a record behind the sealer's length")
mutation("R1", "header-kept-is-written-again", HEADER,
         "    if (!block || !cw_append_settled(block)) return false;\n",
         "    if (!block || !cw_append_settled(block) || block) return false;\n",
         "c-abi roll_steps_text", "a record within the sealer's length is written twice")
mutation("R5", "header-busy-is-not-set", HEADER, "    cw_append_busy_(block);\n", "",
         "c-abi frozen_steps_inlined", "nobody sees that an append is running")
mutation("A21", "header-measures-what-it-may-not", HEADER,
         "text && __atomic_load_n(&site->inlined, __ATOMIC_RELAXED) ?", "text ?",
         "c-abi format_strings", "the bytes of %.5s are read beyond their end")
mutation("R18", "header-busy-is-left", HEADER,
         "return false;\n    block->records++;\n    cw_append_idle_(block);\n    return true;\n}\n"
         "CW_INLINED_", "return false;\n    block->records++;\n    return true;\n}\nCW_INLINED_",
         "c-abi inlined_bytes", "every later record looks nested or abandons a chunk")
mutation("R18", "header-frame-is-busy", HEADER,
         '    __asm__ volatile("movq %%rsp, %0" : "=m"(block->busy) : : "memory");\n',
         "    block->busy = (uintptr_t)__builtin_frame_address(0);\n",
         "c-abi jump_large", "what longjmp left in a large frame looks nested for ever")
mutation("R24", "header-reads-the-chunk-again", HEADER,
         "(record->chunk + 8), (uint32_t)(end - record->chunk)",
         "(block->chunk + 8), (uint32_t)(end - block->chunk)",
         "c-abi fork_steps_inlined", "a child that a handler forked stores to address 8")
mutation("A35", "header-any-engine", HEADER,
         "__atomic_load_n(&block->engine, __ATOMIC_RELAXED) == logger->engine",
         "__atomic_load_n(&block->engine, __ATOMIC_RELAXED) != NULL",
         "c-abi table_steps_inlined", "a record goes to the engine that the thread used last")
mutation("A35", "header-any-clock", HEADER, " || block->clock != CW_APPEND_COARSE_ ||\n", " ||\n",
         "c-abi inlined_coarse", "records of another clock of the system's get coarse times")
mutation("A21", "string-as-pointer", CORE + "Sites/SitePlan.swift",
         "                case UInt32(CW_ARG_STRING):\n"
         "                    type(index) == ArgumentType.text && bound(index) == "
         "UInt32(CW_STRING_MAX)\n",
         "                case UInt32(CW_ARG_STRING): true\n",
         "c-abi inlined_places", "%p of a string is appended as its text")

# ── Pages and large chunks ──

mutation("pages", "late-segment-grows", CORE + "Segments/SegmentMakers.swift",
         "isWhole: isSoonFull, isNested", "isWhole: false, isNested",
         "swift SupplyTests/testASegmentThatIsMadeLateIsWhole",
         "writers wait for the disk under the lock of the file that all store to")
mutation("pages", "header-page-reads-around", CORE + "Segments/Segments.swift",
         "            _ = FileCalls.writeZeros(descriptor, offset: 0, bytes: bytes)\n",
         "            _ = bytes\n",
         "swift SupplyTests/testAWholeSegmentHasFewFaults",
         "a whole segment's pages come one by one")
mutation("pages", "sealed-is-not-mapped", CORE + "Segments/Recycling.swift",
         "            isMapped = true\n", "            isMapped = false\n",
         "swift SupplyTests/testASealedSegmentIsMappedUntilItIsReleased",
         "the name of a mapped file goes, and supply frees its blocks")
mutation("read", "large-chunks-are-small", STORE + "Lanes/StreamCursor.swift",
         "buffer.count > ChunkHeader.largeBytes", "buffer.count > 1 << 20",
         "swift ReadLaneTests/testChunksOfAllSizesAreReadByTurns",
         "readers and archives lack the end of chunks above 1 MiB")

# ── Numbers of queries ──

mutation("read", "long-numbers-are-doubles", STORE + "Query/QueryNumber.swift",
         "        if a != nearest { return", "        if true { return",
         "swift QueryTests/testNumbersAreComparedExactly",
         "a whole number beyond 64 bits is not equal to itself as a double")
mutation("read", "numbers-are-not-as-written", STORE + "Query/JSONPath.swift",
         " || number(text) != nil\n", "\n",
         "swift JSONFieldTests/testTypes",
         "a number in JSON is not found in the form in which cat prints it")
