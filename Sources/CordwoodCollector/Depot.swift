// The collector's directory: makes it a store that every reading verb can open, remembers its
// contents, and stores archives. An archive counts as stored once its bytes, its name and its
// directory entry are on the disk, and not before. Blocking: file pool only.

import Cordwood
import Synchronization

final class Depot: Sendable {
    enum Reception: Sendable {
        case stored(id: String, records: UInt64)
        /// Kept outside of the store, which readers do not see.
        case aside(id: String, records: UInt64, reason: String)
        case refused(String)
        /// Another archive of the same segments is being judged.
        case busy
        case crowded(String)
        case failed(FileProblem)
    }

    /// What the disk must take before it counts as well again.
    private static let trialBytes = 1 << 20
    /// Limits on what one archive is compared with: archives whose headers are read; those whose
    /// records are, of which `cordwood compact` merges 1,024; and what these inflate to.
    static let rivalsMax = 4_096
    static let readMax = 2_048
    private static let comparedBytesMax: UInt64 = 16 << 30
    /// How often a full table is compared with the disk: as clients come again.
    private static let tidySeconds: UInt64 = 60

    let senders: Senders
    private let table: ArchiveTable
    private let inspector: ArchiveInspector
    private let directory: String
    private let folder: String
    private let quarantine: Quarantine
    private let lock: Int32
    /// What kept the last archive from the disk; nil: the disk took it.
    private let failed = Mutex<FileProblem?>(nil)
    /// When the table was last compared with the disk; nil: not since the start.
    private let tidied = Mutex<UInt64?>(nil)

    init(_ options: CollectorOptions, inspector: ArchiveInspector) throws(CollectorError) {
        let directory = options.directory
        self.directory = directory
        let table = ArchiveTable(coversMax: options.coversMax)
        self.table = table
        self.inspector = inspector
        folder = "\(directory)/archives"
        quarantine = Quarantine(directory: directory, inspector: inspector)
        do throws(CordwoodError) {
            try StoreSettings.make(directory: directory)
        } catch {
            throw .store(error.text)
        }
        do throws(FileProblem) {
            lock = try DepotFiles.open("\(directory)/.collector", [.readWrite, .create])
        } catch {
            throw .directory(error.operation, errno: error.errno)
        }
        guard Files.lock(lock) else {
            FileCalls.close(lock)
            throw .inUse(directory)
        }
        do throws(CollectorError) {
            senders = try Senders(directory: directory) { table.own($0, $1) }
        } catch {
            FileCalls.close(lock)
            throw error
        }
        do throws(FileProblem) {
            try rebuild()
        } catch {
            throw .directory(error.operation, errno: error.errno)
        }
        table.tidyUp()
    }

    deinit { FileCalls.close(lock) }

    func admit() throws(FileProblem) -> IncomingFile {
        do throws(FileProblem) {
            return try IncomingFile(folder: folder)
        } catch {
            failed.withLock { $0 = error }
            throw error
        }
    }

    @safe func append(_ data: UnsafeRawBufferPointer, to file: IncomingFile) throws(FileProblem) {
        do throws(FileProblem) {
            try file.append(data)
        } catch {
            failed.withLock { $0 = error }
            throw error
        }
    }

    /// What keeps archives from the disk, as the last attempt found it.
    var problem: FileProblem? { failed.withLock { $0 } }

    /// Looks whether a disk that failed takes a small archive again. A health check that keeps
    /// clients away would otherwise keep them away for good.
    func tryAgain() {
        guard problem != nil else { return }
        do throws(FileProblem) {
            let file = try IncomingFile(folder: folder)
            defer { file.discard() }
            let room = [UInt8](repeating: 0x5a, count: Depot.trialBytes)
            // SAFETY: the array outlives the call.
            let problem: FileProblem? = unsafe room.withUnsafeBytes { bytes in
                do throws(FileProblem) { try file.append(bytes) } catch { return error }
                return nil
            }
            if let problem { throw problem }
            try file.sync()
            failed.withLock { $0 = nil }
        } catch {
            failed.withLock { $0 = error }
        }
    }

    private func fail(_ problem: FileProblem) -> Reception {
        failed.withLock { $0 = problem }
        return .failed(problem)
    }

    /// Finds what others put into the folder: `cordwood compact` replaces archives.
    private func lookAround() {
        guard let names = try? DepotFiles.names(in: folder) else { return }
        for name in names where !table.has(name: name) { know(name) }
    }

    /// Adds an archive that lies in the folder.
    private func know(_ name: String) {
        guard name.hasSuffix(".cwa"), !name.hasPrefix("."),
            let facts = try? inspector.identify("\(folder)/\(name)"),
            let key = LaneID(uuid: facts.id)
        else { return }
        table.add(facts, key, name: name)
    }

    /// Whether checking and storing this file may take long, also by what it is compared with. A
    /// file of unknown size may.
    func isLarge(_ file: IncomingFile) -> Bool {
        guard file.bytes < Pools.largeBytesMin, let facts = try? inspector.identify(file.path)
        else { return true }
        return max(facts.rawBytes, table.comparedBytes(facts)) >= Pools.largeBytesMin
    }

    /// `key` is the id that the client gave, nil if it gave none.
    func take(_ file: IncomingFile, key: String?, from sender: Sender) -> Reception {
        defer { file.discard() }
        let facts: ArchiveFacts
        do {
            facts = try inspector.verify(file.path)
        } catch let error as ArchiveRefused {
            return .refused(error.reason)
        } catch let error as FileProblem {
            return .failed(error)
        } catch {
            return .refused("not an archive: \(error)")
        }
        guard let name = StoredName.make(facts), let id = LaneID(uuid: facts.id) else {
            return .refused("the archive's lane name or segment range is not valid")
        }
        if let key, key != facts.id {
            return .refused("Idempotency-Key is \(key), the archive's id is \(facts.id)")
        }
        let new = NewArchive(file: file, facts: facts, name: name, id: id, sender: sender)
        var reception = judge(new)
        if reception == nil {
            lookAround()
            reception = judge(new)
        }
        if case .crowded = reception, tidyUp() { reception = judge(new) }
        return reception ?? .busy
    }

    /// Forgets what others removed from the folder. Listing it takes a while, and so does asking
    /// again at once.
    /// - Returns: false: it was done just now.
    private func tidyUp() -> Bool {
        let now = Machine.monotonicNs() / 1_000_000_000
        let isDue = tidied.withLock { last in
            if let last, now - last < Depot.tidySeconds { return false }
            last = now
            return true
        }
        guard isDue else { return false }
        // Before the listing: what is published meanwhile is not in it.
        let stored = table.stored
        guard let names = try? DepotFiles.names(in: folder) else { return false }
        let there = Set(names)
        for archive in stored where !there.contains(archive.name) { table.forget(archive) }
        for name in names where !table.has(name: name) { know(name) }
        table.tidyUp()
        return true
    }

    /// nil: archives that it was to be compared with are gone, and perhaps others in their place.
    private func judge(_ new: NewArchive) -> Reception? {
        switch table.enter(new.facts, new.id, from: new.sender.client, senders) {
        case .busy: return .busy
        case .foreign(let lane, let owner, let twin):
            switch compare(new, twin.map { [$0] } ?? []) {
            case .gone: return nil
            case .known: return new.stored
            case .failed(let problem): return .failed(problem)
            case .new, .contradiction:
                let client = new.sender.client
                return putAside(
                    new, "lane \(lane.hex) is of client \(owner), and client \(client) sends it")
            }
        case .entered(let number, let rivals, let claims):
            defer { table.leave(number, new.facts) }
            switch compare(new, rivals) {
            case .gone: return nil
            case .known: return new.stored
            case .failed(let problem): return .failed(problem)
            case .contradiction(let reason): return putAside(new, reason)
            case .new:
                guard table.hasRoom(number, new.facts, claims: claims, senders) else {
                    return .crowded("the collector remembers as much of this client as it may")
                }
                return publish(new, number, claims)
            }
        }
    }

    private func compare(_ new: NewArchive, _ all: [ArchiveTable.Rival]) -> Comparison {
        // One that has its id comes first, and is always compared.
        let rivals = all.count > Depot.rivalsMax ? Array(all.prefix(1)) : all
        let tooMuch = Comparison.contradiction(
            "it has segments of \(all.count) archives, too much to compare")
        if forgetGone(rivals) { return .gone }
        var read = 0
        var bytes: UInt64 = 0
        for rival in rivals {
            if read >= Depot.readMax || bytes > Depot.comparedBytesMax { return tooMuch }
            do {
                switch try inspector.relate(new.file.path, "\(folder)/\(rival.name)") {
                case .other: break
                case .superset:
                    read += 1
                    bytes &+= new.facts.rawBytes &+ rival.bytes
                case .known: return .known
                case .contradiction(let reason): return .contradiction("\(rival.name): \(reason)")
                }
            } catch {
                // `cordwood compact` removed it meanwhile.
                if forgetGone([rival]) { return .gone }
                if let error = error as? FileProblem { return .failed(error) }
                return .contradiction("\(rival.name): it cannot be read")
            }
        }
        // What was made of them meanwhile may say more than each of them.
        if forgetGone(rivals) { return .gone }
        return rivals.count < all.count ? tooMuch : .new
    }

    /// - Returns: true: one of them is gone.
    private func forgetGone(_ rivals: [ArchiveTable.Rival]) -> Bool {
        let gone = rivals.filter { !Files.exists(following: FilePath("\(folder)/\($0.name)")) }
        gone.forEach(table.forget)
        return !gone.isEmpty
    }

    private func publish(
        _ new: NewArchive, _ number: UInt64, _ claims: Set<LaneID>
    ) -> Reception {
        guard table.reserve(name: new.name) else {
            return putAside(new, "\(new.name): an archive of another id has this name")
        }
        do throws(FileProblem) {
            try new.file.sync()
            // CRASH: until the rename, lanes without an archive, and an incoming file that the next
            // start removes; after it, a complete archive that was not acknowledged: the client
            // sends it again and gets 200.
            if !claims.isEmpty { try senders.note(claims, new.sender) }
            try new.file.publish(as: "\(folder)/\(new.name)")
            try DepotFiles.syncDirectory(folder)
        } catch {
            table.cancel(name: new.name)
            return fail(error)
        }
        failed.withLock { $0 = nil }
        table.settle(number, name: new.name, claims: claims)
        return new.stored
    }

    private func putAside(_ new: NewArchive, _ reason: String) -> Reception {
        do throws(FileProblem) {
            try quarantine.keep(new, reason)
        } catch {
            return fail(error)
        }
        return .aside(id: new.facts.id, records: new.facts.recordCount, reason: reason)
    }

    private func rebuild() throws(FileProblem) {
        for name in try DepotFiles.names(in: folder) {
            let path = "\(folder)/\(name)"
            if name.hasPrefix(IncomingFile.prefix) {
                Files.remove(FilePath(path))
            } else {
                know(name)
            }
        }
        // The last run may have been killed right after a rename: a listed name need not be on the
        // disk yet. Nor need that of the senders, or of the quarantine.
        try DepotFiles.syncDirectory(folder)
        try DepotFiles.syncDirectory(directory)
    }
}

/// A whole archive that was received.
struct NewArchive {
    var file: IncomingFile
    var facts: ArchiveFacts
    var name: String
    var id: LaneID
    var sender: Sender

    fileprivate var stored: Depot.Reception {
        .stored(id: facts.id, records: facts.recordCount)
    }
}

private enum Comparison {
    case new, known
    case contradiction(String)
    /// An archive that was to be compared with.
    case gone
    case failed(FileProblem)
}
