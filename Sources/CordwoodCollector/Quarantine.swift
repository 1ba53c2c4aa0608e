// Archives that contradict what is stored: the folder `quarantine` in the collector's directory,
// which no reader of the store looks into. Each lies there byte for byte, beside a text that says
// who sent it and why it is here. Kept until a person removes it. Blocking: file pool only.

import Cordwood

struct Quarantine: Sendable {
    static let folder = "quarantine"

    private let directory: String
    private let inspector: ArchiveInspector

    init(directory: String, inspector: ArchiveInspector) {
        self.directory = directory
        self.inspector = inspector
    }

    /// Durable when it returns. The same bytes are kept once.
    func keep(_ new: NewArchive, _ reason: String) throws(FileProblem) {
        let folder = "\(directory)/\(Quarantine.folder)"
        let digits: String
        do {
            digits = String(try inspector.fingerprint(new.file.path).prefix(16))
        } catch let error as FileProblem {
            throw error
        } catch {
            throw FileProblem(operation: "read", errno: Errno.EIO)
        }
        guard Files.makeDirectory(FilePath(folder)) || Errno.last == Errno.EEXIST else {
            throw FileProblem(operation: "mkdir \(folder)", errno: Errno.last)
        }
        // Also if another thread made it just now.
        try DepotFiles.syncDirectory(directory)
        let stem = "\(folder)/\(new.name.dropLast(4)).\(digits)"
        // CRASH: a text without its archive means nothing, and is written again.
        if Files.exists(following: FilePath(stem + ".cwa")) {
            try DepotFiles.syncDirectory(folder)
            return
        }
        try new.file.sync()
        try write(
            """
            archive \(new.facts.id)
            from \(new.sender.address)
            client \(new.sender.client)
            store \(new.sender.store)
            at \(Machine.realtimeNs() / 1_000_000_000)
            because \(reason)

            """, to: stem + ".why")
        try new.file.publish(as: stem + ".cwa")
        try DepotFiles.syncDirectory(folder)
    }

    private func write(_ text: String, to path: String) throws(FileProblem) {
        let descriptor = try DepotFiles.open(path, [.write, .create, .empty])
        defer { FileCalls.close(descriptor) }
        try DepotFiles.writeAll(descriptor, Array(text.utf8))
        try DepotFiles.sync(descriptor)
    }
}
