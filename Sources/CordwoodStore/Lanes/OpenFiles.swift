// The files that one reader or archiver reads, only some of which are open at a time: a merge of
// ten thousand archives, or a lane of as many segments, needs a record of each, but a process has
// fewer descriptors, or its host needs them. The file that was not read for longest is closed. It
// is opened again by its name, if that still leads to it. Up to the limit, a file that is deleted
// meanwhile is read to its end. If a host has used nearly all descriptors, files that are not being
// read are closed sooner. One reader owns it; two threads.
// SAFETY: @unchecked Sendable, because `monitor` guards the list and every descriptor; a lent one
// is not closed. Reads go into the caller's room.

import CShims
import CordwoodCore

final class OpenFiles: @unchecked Sendable {
    /// At most, and at most this share of the process's descriptor limit.
    private static let most: UInt64 = 24
    private static let share: UInt64 = 4
    private static let least: UInt64 = 8

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
    let path: FilePath
    private let facts: FileFacts
    /// It holds a shared lock while it is open, so that its owner does not reuse it (FORMAT §6).
    private let isSegment: Bool
    fileprivate private(set) var descriptor: Int32
    fileprivate var borrowers = 0
    fileprivate var lastUse: UInt64 = 0
    fileprivate private(set) var isLost = false
    /// Set once, before another thread reads.
    private var pool: OpenFiles?

    /// Owns the descriptor; `facts` describes it.
    init(_ descriptor: Int32, _ facts: FileFacts, path: FilePath, isSegment: Bool = false) {
        self.descriptor = descriptor
        self.facts = facts
        self.path = path
        self.isSegment = isSegment
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

    /// Calls with the descriptor; nil, with the reason in `Errno.last`: the file cannot be opened
    /// again.
    func lend<T>(_ body: (Int32) -> T) -> T? {
        guard let pool else { return body(descriptor) }
        let lent = pool.lend(self)
        guard lent >= 0 else { return nil }
        defer { pool.takeBack(self) }
        return body(lent)
    }

    /// Returns the bytes read, or -1.
    func read(into room: UnsafeMutableRawBufferPointer, at offset: UInt64) -> Int {
        lend { unsafe Files.read($0, into: room, at: offset) } ?? -1
    }

    fileprivate func open() -> Bool {
        for name in names {
            let opened = Files.openOwn(name, [.read, .nonBlocking, .noTerminal])
            if opened < 0, Errno.last == Errno.ENOENT { continue }
            guard opened >= 0 else { return false }
            guard let now = FileFacts(of: opened), now.isSameFile(as: facts),
                !isSegment || OpenFile.lockSegment(opened)
            else {
                Files.close(opened)
                continue
            }
            descriptor = opened
            return true
        }
        isLost = true
        Errno.last = Errno.ENOENT
        return false
    }

    /// A segment may have been sealed since it was opened.
    private var names: [FilePath] {
        guard isSegment, path.lastName.hasSuffix(".seg") else { return [path] }
        return [path, path.parent + "/\(path.lastName.dropLast(4)).sealed"]
    }

    /// False: its owner is about to reuse the file. On a file system without such locks, no owner
    /// reuses files.
    static func lockSegment(_ descriptor: Int32) -> Bool {
        Files.lock(descriptor, shared: true) || Errno.last != Errno.EWOULDBLOCK
    }

    fileprivate func close() {
        if descriptor >= 0 { Files.close(descriptor) }
        descriptor = -1
    }
}
