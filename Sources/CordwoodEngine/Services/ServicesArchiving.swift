// The ship thread's work on sealed segments: it archives some neighbours at a time, up to eight or
// as many small ones as make 32 MiB, then reuses or removes them. A lane that is abandoned
// meanwhile (ServicesLane) keeps its lock until the archive has its name: an adopter that does not
// see the archive yet would archive the same segments once more.

import CShims
import CordwoodCore
import CordwoodStore

extension Services {
    /// Archives the oldest sealed segment and its neighbours. True: it archived something.
    func archiveNext() -> Bool {
        let most = limits.segmentsInArchive
        var epoch = 0
        let waiting: [SealedSegment] = monitor.locked {
            guard !isStopping, archivingEpoch == nil else { return [] }
            epoch = laneEpoch
            let next = nextRun(atMost: most)
            if !next.isEmpty { archivingEpoch = epoch }
            return next
        }
        guard let first = waiting.first, let last = waiting.last else { return false }
        let run = first.number...last.number
        defer {
            monitor.locked {
                archivingEpoch = nil
                monitor.notify()
            }
        }
        // The lane of these numbers; nil: the lane was abandoned meanwhile, and adoption has it.
        guard let lane = laneName(at: epoch) else { return false }
        do {
            let known = monitor.locked { epoch == laneEpoch ? archivedRun?.summary : nil }
            if known == nil, try settleMissing(waiting, of: lane, at: epoch) { return true }
            let files = files(waiting, of: lane)
            let done = if let known { known } else { try archive(run, files) }
            monitor.locked { if epoch == laneEpoch { archivedRun = (run, done) } }
            try removeArchived(run, files, at: epoch)
            monitor.locked {
                archiving.add(done)
                archiveFailure = nil
                // Segments of an abandoned lane are counted, or at most reported as lost.
                guard epoch == laneEpoch else { return }
                ownArchived += done.records
                archivedRun = nil
                sealedWaiting.removeAll { run.contains($0.number) }
                archivedCount += UInt64(run.count)
                monitor.notify()
            }
            return true
        } catch {
            monitor.locked { archiveFailure = error }
            limits.keep()  // takes the charge back
            // A clean-up of /dev/shm took only the names.
            sealing.locked { unsafe EngineCore.putOnDisk(engine, namelessOnly: true) }
            return false
        }
    }

    /// Under the monitor: the segments that go into the next archive, or went into the last one and
    /// are not removed yet.
    private func nextRun(atMost most: UInt64) -> [SealedSegment] {
        if let archivedRun {
            return Array(sealedWaiting.prefix { $0.number <= archivedRun.run.upperBound })
        }
        guard let first = sealedWaiting.first?.number,
            !firstWaits || first != 0 || sealedWaiting.count > 1
        else { return [] }
        // Segment 0 comes on top: it is small, and part of the lane file.
        let end = first + most + (first == 0 ? 1 : 0)
        var next = first
        return Array(
            sealedWaiting.prefix {
                defer { next += 1 }
                return $0.number == next && next < end
            })
    }

    /// Their names tell where they are: a listing would take long where thousands wait.
    func files(_ waiting: [SealedSegment], of lane: String) -> LaneFiles {
        LaneFiles(
            lane: lane, store: directory, sealed: waiting, first: waiting.first?.number == 0)
    }

    /// Looking at the store's limits takes long where thousands of segments wait, so it is not
    /// done after each archive. A quota, which bounds how many there are, waits for it.
    var isLookDue: Bool {
        limits.hasQuota
            || monitor.locked {
                archivedCount - archivedAtLook >= UInt64(sealedWaiting.count) / Services.lookShare
            }
    }

    private static let lookShare: UInt64 = 8

    private func laneName(at epoch: Int) -> String? {
        sealing.locked {
            monitor.locked({ epoch == laneEpoch }) ? unsafe EngineCore.laneName(engine) : nil
        }
    }

    private func archive(
        _ run: ClosedRange<UInt64>, _ files: LaneFiles
    ) throws(CordwoodError) -> ArchivingSummary {
        unsafe Quota.charge(engine, bytes: limits.archiveBytes(segments: run.count))
        return try StoreArchiver.archive(
            directory: directory, files: files, segments: run, form: form, endsLane: false)
    }

    /// Dense archives cost more processor time than plain ones, so a helper that is behind makes
    /// plain ones until it has caught up.
    var form: ArchiveForm { form(segmentsWaiting: monitor.locked { sealedWaiting.count }) }

    func form(segmentsWaiting: Int) -> ArchiveForm {
        var form = settings.form
        let isBehind = segmentsWaiting > Services.segmentsBehindMax
        form.method = isBehind ? .plain : monitor.locked { archiveMethod }
        if form.method == .dense, !Memory.hasRoom(Services.denseRoomBytes) { form.method = .plain }
        return form
    }

    static let segmentsBehindMax = 4

    // MARK: Priority

    /// On the supply thread, whose priority a new thread inherits. The ship thread is nicer than
    /// the host, and the system lets no thread take that back. So while too much waits, a thread at
    /// the host's priority archives instead.
    func raiseArchiver() {
        let most = raisesAbove
        let starts = monitor.locked {
            guard !isArchiverRaised, !isStopping, sealedWaiting.count > most else { return false }
            isArchiverRaised = true
            return true
        }
        if starts, !hasRoom() || !startThread("cordwood-urgent", archiveRaised) {
            monitor.locked { isArchiverRaised = false }
        }
    }

    /// 64 segments, or half of the quota.
    var raisesAbove: Int { Int(limits.segmentsAtOnce) * 8 }

    private func archiveRaised() {
        monitor.locked {
            // The ship thread may be in the middle of an archive.
            while archivingEpoch != nil, !isStopping { _ = monitor.wait(until: .never) }
        }
        while monitor.locked({ sealedWaiting.count > Services.segmentsBehindMax }), hasRoom(),
            archiveNext()
        {
            monitor.locked {
                raisedArchives += 1
                hasRaisedArchived = true
            }
            wakeShipper()
        }
        monitor.locked { isArchiverRaised = false }
        wakeShipper()
    }

    /// On the ship thread. True: something was archived since the last call.
    func archiveInTurn() -> Bool {
        let (leaves, wasArchived) = monitor.locked {
            defer { hasRaisedArchived = false }
            return (isArchiverRaised, hasRaisedArchived)
        }
        return leaves ? wasArchived : archiveNext() || wasArchived
    }

    /// CRASH: the archive has its name; readers and adopters see that it covers these segments. If
    /// the lane was abandoned meanwhile, adoption does all of this.
    private func removeArchived(
        _ run: ClosedRange<UInt64>, _ files: LaneFiles, at epoch: Int
    ) throws(CordwoodError) {
        guard let name = laneName(at: epoch) else { return }
        if run.lowerBound == 0 {
            let error = unsafe EngineCore.markArchived(engine, of: name, below: 1)
            guard error == 0 else {
                throw CordwoodError(Status.of(errno: error), "could not sync the lane file")
            }
        }
        var reused: Set<UInt64> = []
        let isOurs = sealing.locked {
            guard monitor.locked({ epoch == laneEpoch }) else { return false }
            reused = unsafe EngineCore.recycle(engine, run)
            return true
        }
        guard isOurs else { return }
        monitor.locked { reusedCount += UInt64(reused.count) }
        awaitUnmapped(run)
        for segment in files.segments
        where !reused.contains(segment.number) && !reuseUnmapped(segment, at: epoch) {
            SegmentLink.remove(segment.path)
        }
        _ = Directories.sync(directory + "/lanes")
        if leavesNothing { clearCopies() }
    }

    /// Reuses the file of an archived segment that is no longer mapped. False: remove it.
    private func reuseUnmapped(_ segment: LaneFiles.Segment, at epoch: Int) -> Bool {
        let isReused = sealing.locked {
            guard segment.isSealed, monitor.locked({ epoch == laneEpoch && !isStopping }) else {
                return false
            }
            return unsafe EngineCore.recycleUnmapped(
                engine, number: segment.number, generation: segment.generation)
        }
        if isReused { monitor.locked { reusedCount += 1 } }
        return isReused
    }

    /// Supply unmaps them at its next check. Gives it a little time; no caller waits for this.
    private func awaitUnmapped(_ run: ClosedRange<UInt64>) {
        for _ in 0..<Services.unmappedLooks {
            guard !monitor.locked({ isStopping }), unsafe EngineCore.isMapped(engine, run) else {
                return
            }
            unsafe EngineCore.wakeHelper(engine)
            ThreadIdentity.pause(microseconds: 1_000)
        }
    }

    private static let unmappedLooks = 20
}
