// An archive while it arrives: a file whose name begins with a dot, which means nothing to readers
// (FORMAT §2) and is removed at the next start. Blocking: lives on the file pool, one job at a
// time.

import Cordwood

/// SAFETY: a connection starts the next job on a file only after the previous one has ended.
final class IncomingFile: @unchecked Sendable {
    static let prefix = ".incoming-"

    let path: String
    private(set) var bytes: UInt64 = 0
    private var descriptor: Int32

    init(folder: String) throws(FileProblem) {
        path = "\(folder)/\(IncomingFile.prefix)\(DepotFiles.randomName())"
        descriptor = try DepotFiles.open(path, [.write, .new])
    }

    deinit { discard() }

    @safe func append(_ data: UnsafeRawBufferPointer) throws(FileProblem) {
        try DepotFiles.writeAll(descriptor, data)
        bytes += UInt64(data.count)
    }

    func sync() throws(FileProblem) { try DepotFiles.sync(descriptor) }

    /// After this the file is an archive and no longer ours.
    func publish(as target: String) throws(FileProblem) {
        try DepotFiles.move(path, to: target)
        FileCalls.close(descriptor)
        descriptor = -1
    }

    /// Safe to call again.
    func discard() {
        guard descriptor >= 0 else { return }
        FileCalls.close(descriptor)
        descriptor = -1
        Files.remove(FilePath(path))
    }
}
