// The files of one reader's archives, only some of which are open at a time: a merge of ten
// thousand archives needs a record of each, but a process has fewer descriptors, or its host needs
// them. The file that was not read for longest is closed. It is opened again by its name, if that
// still leads to it. Up to the limit, an archive that is deleted meanwhile is read to its end. If a
// host has used nearly all descriptors, files that are not being read are closed sooner. One reader
// owns it; two threads.
// SAFETY: @unchecked Sendable, because `monitor` guards the list and every descriptor; a lent one
// is not closed. Reads go into the caller's room.

import CShims
import CordwoodCore

final class OpenFiles: @unchecked Sendable {
    /// A reader takes at most this share of the process's descriptor limit.
    private static let share: UInt64 = 4
    private static let least: UInt64 = 8
    private static let most: UInt64 = 1_024

    private let monitor = Monitor()
    private let limit: Int
    private var opened: [OpenFile] = []
    private var turn: UInt64 = 0
    /// Threads that wait for another thread's descriptor.
    private var waiting = 0

    /// `limit`: nil: the process's descriptor limit decides.
    init(limit: Int? = nil) {
        let usual = cw_descriptor_limit() / Self.share
        self.limit = limit ?? Int(min(max(usual, Self.least), Self.most))
    }

    /// Adds a file that is open.
    func add(_ file: OpenFile) {
        monitor.locked { keep(file) }
    }

    /// The file stays open until `takeBack`. -1, with the reason in `Errno.last`: it cannot be
    /// opened, or is another file by now.
    func lend(_ file: OpenFile) -> Int32 {
        monitor.locked {
            let wasClosed = file.descriptor < 0
            if wasClosed {
                while !file.open() {
                    guard OpenFiles.isForLack(Errno.last), giveUp() else { return -1 }
                }
            }
            // Before it is kept: if the other thread is using all files that may be open, this one
            // would be closed.
            file.borrowers += 1
            if wasClosed { keep(file) } else { use(file) }
            return file.descriptor
        }
    }

    /// Runs `make`, which needs a descriptor. If the process has none left, closes archives one by
    /// one and tries again.
    func making<Made>(_ make: () throws(ReadProblem) -> Made) throws(ReadProblem) -> Made {
        while true {
            do throws(ReadProblem) { return try make() } catch {
                guard case .system(_, let number) = error, OpenFiles.isForLack(number),
                    monitor.locked({ giveUp() })
                else { throw error }
            }
        }
    }

    private static func isForLack(_ number: Int32) -> Bool {
        number == Errno.EMFILE || number == Errno.ENFILE
    }

    func isGone(_ file: OpenFile) -> Bool { monitor.locked { file.isLost } }

    func takeBack(_ file: OpenFile) {
        monitor.locked {
            file.borrowers -= 1
            if waiting > 0 { monitor.notify() }
        }
    }

    func remove(_ file: OpenFile) {
        monitor.locked {
            opened.removeAll { $0 === file }
            file.close()
            if waiting > 0 { monitor.notify() }
        }
    }

    /// With the lock held.
    private func use(_ file: OpenFile) {
        turn &+= 1
        file.lastUse = turn
    }

    /// Likewise.
    private func keep(_ file: OpenFile) {
        use(file)
        opened.append(file)
        while opened.count > limit, closeIdle() {}
    }

    /// Likewise; the process has no descriptor left. Closes a file that is not being read, or waits
    /// until the other thread has finished reading. False: none is open.
    private func giveUp() -> Bool {
        while !closeIdle() {
            if opened.isEmpty { return false }
            waiting += 1
            _ = monitor.wait(until: .never)
            waiting -= 1
        }
        return true
    }

    /// Likewise. Closes the file that was not read for longest; false: all are being read.
    private func closeIdle() -> Bool {
        var oldest: Int?
        for index in opened.indices where opened[index].borrowers == 0 {
            guard let known = oldest else {
                oldest = index
                continue
            }
            if opened[index].lastUse < opened[known].lastUse { oldest = index }
        }
        guard let oldest else { return false }
        opened[oldest].close()
        opened.swapAt(oldest, opened.count - 1)
        opened.removeLast()
        return true
    }
}

/// One of these files. Without a pool, it stays open.
final class OpenFile: @unchecked Sendable {
    private let path: FilePath
    private let facts: FileFacts
    fileprivate private(set) var descriptor: Int32
    fileprivate var borrowers = 0
    fileprivate var lastUse: UInt64 = 0
    fileprivate private(set) var isLost = false
    /// Set once, before another thread reads.
    private var pool: OpenFiles?

    /// Owns the descriptor; `facts` describes it.
    init(_ descriptor: Int32, _ facts: FileFacts, path: FilePath) {
        self.descriptor = descriptor
        self.facts = facts
        self.path = path
    }

    deinit { close() }

    func join(_ pool: OpenFiles) {
        if self.pool != nil { return }
        self.pool = pool
        pool.add(self)
    }

    /// Call before its owner releases it.
    func end() { pool?.remove(self) }

    /// It was closed, and could not be opened again.
    var isGone: Bool { pool?.isGone(self) ?? false }

    /// Only while it is in no pool.
    var held: Int32 { descriptor }

    /// Returns the bytes read, or -1.
    func read(into room: UnsafeMutableRawBufferPointer, at offset: UInt64) -> Int {
        guard let pool else { return unsafe Files.read(descriptor, into: room, at: offset) }
        let lent = pool.lend(self)
        guard lent >= 0 else { return -1 }
        defer { pool.takeBack(self) }
        return unsafe Files.read(lent, into: room, at: offset)
    }

    fileprivate func open() -> Bool {
        let opened = Files.openOwn(path, [.read, .nonBlocking])
        if opened < 0 {
            isLost = Errno.last == Errno.ENOENT
            return false
        }
        guard let now = FileFacts(of: opened), now.isSameFile(as: facts) else {
            Files.close(opened)
            isLost = true
            Errno.last = Errno.ENOENT
            return false
        }
        descriptor = opened
        return true
    }

    fileprivate func close() {
        if descriptor >= 0 { Files.close(descriptor) }
        descriptor = -1
    }
}
