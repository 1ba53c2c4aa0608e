// The collector's directory: makes it a store that every reading verb can open, remembers its
// contents, and stores archives. An archive counts as stored once its bytes, its name and its
// directory entry are on the disk, and not before. Blocking: file pool only.

import Cordwood
import Synchronization

final class Depot: Sendable {
    enum Reception: Sendable {
        case stored(id: String, records: UInt64)
        case refused(String)
        /// Another request is sending the same archive right now.
        case busy
        case failed(FileProblem)
    }

    enum Admission: Sendable {
        case open(IncomingFile)
        case closed(Reception)
    }

    /// What the disk must take before it counts as well again.
    private static let trialBytes = 1 << 20

    let table = ArchiveTable()
    private let inspector: ArchiveInspector
    private let folder: String
    private let lock: Int32
    /// What kept the last archive from the disk; nil: the disk took it.
    private let failed = Mutex<FileProblem?>(nil)

    init(directory: String, inspector: ArchiveInspector) throws(CollectorError) {
        self.inspector = inspector
        folder = "\(directory)/archives"
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
        do throws(FileProblem) {
            try rebuild()
        } catch {
            throw .directory(error.operation, errno: error.errno)
        }
    }

    deinit { FileCalls.close(lock) }

    /// Called before the body: an archive that is stored, or on its way, is not received again.
    /// With `.open` the caller holds a claim on `key`.
    func admit(key: String?) -> Admission {
        if let key {
            var claim = table.claim(key)
            if case .stored = claim {
                if let records = holds(key) { return .closed(.stored(id: key, records: records)) }
                claim = table.claim(key)
            }
            guard case .granted = claim else { return .closed(.busy) }
        }
        do throws(FileProblem) {
            return .open(try IncomingFile(folder: folder))
        } catch {
            if let key { table.release(key) }
            return .closed(fail(error))
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

    /// The number of the archive's records; nil: it is not stored, or its file is gone.
    func holds(_ id: String) -> UInt64? {
        guard let (name, records) = table.find(id) else { return nil }
        if Files.exists(following: FilePath("\(folder)/\(name)")) { return records }
        table.forget(id)
        // `cordwood compact` may have put others in its place.
        guard let names = try? DepotFiles.names(in: folder) else { return nil }
        for name in names where !table.has(name: name) { know(name) }
        return table.find(id)?.records
    }

    /// Adds an archive that lies in the folder.
    private func know(_ name: String) {
        guard name.hasSuffix(".cwa"), !name.hasPrefix("."),
            let facts = try? inspector.identify("\(folder)/\(name)")
        else { return }
        table.add(facts, name: name)
    }

    /// Whether checking and storing this file takes long. A file of unknown size may.
    func isLarge(_ file: IncomingFile) -> Bool {
        guard file.bytes < Pools.largeBytesMin, let facts = try? inspector.identify(file.path)
        else { return true }
        return facts.rawBytes >= Pools.largeBytesMin
    }

    /// `key` is the id that the client gave and claimed, nil if it gave none.
    func take(_ file: IncomingFile, key: String?) -> Reception {
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
        if let key {
            guard key == facts.id else {
                return .refused("Idempotency-Key is \(key), the archive's id is \(facts.id)")
            }
            return publish(file, facts)
        }
        switch table.claim(facts.id) {
        case .busy: return .busy
        case .stored:
            if let records = holds(facts.id) { return .stored(id: facts.id, records: records) }
            guard case .granted = table.claim(facts.id) else { return .busy }
        case .granted: break
        }
        defer { table.release(facts.id) }
        return publish(file, facts)
    }

    private func publish(_ file: IncomingFile, _ facts: ArchiveFacts) -> Reception {
        guard let name = StoredName.make(facts) else {
            return .refused("the archive's lane name or segment range is not valid")
        }
        guard table.reserve(name: name) else {
            return .refused("an archive of another id has this name: \(name)")
        }
        do throws(FileProblem) {
            try file.sync()
            // CRASH: before the rename, an incoming file that the next start removes; after it, a
            // complete archive that was not acknowledged: the client sends it again and gets 200.
            try file.publish(as: "\(folder)/\(name)")
            try DepotFiles.syncDirectory(folder)
        } catch {
            table.cancel(name: name)
            return fail(error)
        }
        failed.withLock { $0 = nil }
        table.add(facts, name: name)
        return .stored(id: facts.id, records: facts.recordCount)
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
        // disk yet.
        try DepotFiles.syncDirectory(folder)
    }
}
