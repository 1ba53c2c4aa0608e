// Machine durability for an engine's services: what the journal's writer asks of them, and the
// files that are synced in place. Any thread, under the journal's lock.

import CordwoodCore
import CordwoodStore

extension Services {
    /// Copies committed records to the journal and syncs it.
    func flushToMachine(_ deadline: Deadline) -> Flusher.FlushOutcome {
        flusher.flush(
            deadline,
            start: { startThread("cordwood-sync", $0) },
            sync: { [self] in
                journal.locked {
                    let error = leftLaneError
                    guard error == 0 else { return error }
                    return unsafe journalWriter.flush(engine, journalGuards)
                }
            })
    }

    var journalGuards: JournalGuards {
        JournalGuards(
            copying: { copy in self.sealing.locked { copy(self.waitingForArchive) } },
            syncing: { self.syncSealed($0) })
    }

    private var waitingForArchive: Set<UInt64> {
        monitor.locked {
            // Those of an archive that has its name wait for their removal alone.
            Set(sealedWaiting.map(\.number).filter { archivedRun?.run.contains($0) != true })
        }
    }

    /// Makes sealed segments of this lane durable where they are.
    private func syncSealed(_ numbers: Set<UInt64>) -> SyncedFiles {
        let lane = unsafe EngineCore.laneName(engine)
        var synced = SyncedFiles()
        guard let files = try? StoreArchiver.files(directory, lane) else {
            synced.error = Errno.EAGAIN
            return synced
        }
        for segment in files.segments where numbers.contains(segment.number) {
            let error = Directories.sync(segment.path)
            if error != Errno.ENOENT { synced.add(segment.number, error) }
        }
        let error = Directories.sync(directory + "/lanes")
        for number in numbers { synced.add(number, error) }
        let gone = numbers.subtracting(files.segments.map(\.number)).subtracting([0])
        if synced.error == 0, isMissing(gone) { synced.error = Errno.EIO }
        return synced
    }

    /// True if one of these has neither a file nor an archive: a flush must not report it as
    /// durable.
    private func isMissing(_ numbers: Set<UInt64>) -> Bool {
        monitor.locked {
            sealedWaiting.contains {
                numbers.contains($0.number) && archivedRun?.run.contains($0.number) != true
            }
        }
    }
}
