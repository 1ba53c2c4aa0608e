// Loads blocks of archives before their reader asks for them, on a thread of its own: readers of
// the command line use two processors. Blocks come as they would without it, and so do errors. What
// is loaded ahead is bounded, whatever the number of archives. Two threads: the reader's, and its
// own, which lives until `stop`.
// SAFETY: Sendable, since `monitor` guards everything here and each block's state; of a block that
// is being loaded, only the thread that loads it touches the rest.

import CordwoodCore

package final class ReadAhead: @unchecked Sendable {
    /// Blocks of one archive that are loaded, or wait for it.
    static let depth = 2
    /// Of all blocks that are loaded, or wait for it: their number, and their bytes in the file and
    /// inflated, as the footers have them.
    private static let countMax = 8
    private static let bytesMax: UInt64 = 16 << 20

    private let monitor = Monitor()
    private var waiting: [BlockAhead] = []
    private var count = 0
    private var bytes: UInt64 = 0
    private var isStarted = false
    private var isStopped = false
    /// Of blocks whose reader has exchanged them for its own: their memory is used again.
    private var spare: [LentLoader] = []
    private static let spareMax = 1

    package init() {}

    /// The thread ends once it has loaded what it is at.
    package func stop() {
        monitor.locked {
            isStopped = true
            waiting = []
            monitor.notify()
        }
    }

    /// False: too much is loaded ahead already.
    func add(_ block: BlockAhead) -> Bool {
        monitor.locked {
            guard count < Self.countMax, bytes &+ block.bytes <= Self.bytesMax, !isStopped else {
                return false
            }
            count += 1
            bytes &+= block.bytes
            block.lent = spare.popLast()
            waiting.append(block)
            if isStarted {
                monitor.notify()
            } else {
                // Without a thread, the reader loads every block itself.
                isStarted = true
                _ = EngineThread.start("cordwood-read") { self.run() }
            }
            return true
        }
    }

    /// Exchanges the reader's loader for that of a block that is loaded.
    func take(_ block: BlockAhead, for loader: inout BlockLoader) {
        guard let lent = block.lent else { return }
        swap(&loader, &lent.loader)
        block.lent = nil
        monitor.locked { if spare.count < Self.spareMax { spare.append(lent) } }
    }

    /// Nobody asks for these any more.
    func remove(_ blocks: [BlockAhead]) {
        monitor.locked {
            for block in blocks {
                forget(block)
                waiting.removeAll { $0 === block }
            }
        }
    }

    /// Waits until the block is loaded; loads it, or others meanwhile.
    func finish(_ block: BlockAhead) {
        while let other = next(for: block) { load(other) }
    }

    /// What the reader loads until that block is there; nil: it is.
    private func next(for block: BlockAhead) -> BlockAhead? {
        monitor.locked {
            while true {
                if block.state == .loaded {
                    forget(block)
                    return nil
                }
                if block.state == .waiting {
                    waiting.removeAll { $0 === block }
                    block.state = .loading
                    return block
                }
                if let other = takeFirst() { return other }
                _ = monitor.wait(until: Deadline(nil))
            }
        }
    }

    /// With the lock held.
    private func forget(_ block: BlockAhead) {
        count -= 1
        bytes &-= block.bytes
    }

    /// With the lock held.
    private func takeFirst() -> BlockAhead? {
        guard !waiting.isEmpty else { return nil }
        let block = waiting.removeFirst()
        block.state = .loading
        return block
    }

    private func load(_ block: BlockAhead) {
        block.load()
        monitor.locked {
            block.state = .loaded
            monitor.notify()
        }
    }

    private func run() {
        while true {
            let block: BlockAhead? = monitor.locked {
                while true {
                    if isStopped { return nil }
                    if let block = takeFirst() { return block }
                    _ = monitor.wait(until: Deadline(nil))
                }
            }
            guard let block else { return }
            load(block)
        }
    }
}

/// One block that is loaded ahead.
final class BlockAhead: @unchecked Sendable {
    enum State { case waiting, loading, loaded }

    let block: Int
    let bytes: UInt64
    var state = State.waiting
    var lent: LentLoader?
    private(set) var result: Result<BlockHead, ReadProblem>?
    private let entry: BlockEntry
    private let parts: BlockParts
    private let letters: LetterRun?
    private let rows: DenseRows?
    private let decoders: BlockDecoders
    private let file: SharedArchive

    init(
        _ block: Int, _ entry: BlockEntry, of file: SharedArchive, parts: BlockParts,
        unless letters: LetterRun?, rows: DenseRows?, decoders: BlockDecoders
    ) {
        self.letters = letters
        self.rows = rows
        self.decoders = decoders
        self.block = block
        self.entry = entry
        self.file = file
        self.parts = parts
        bytes = entry.spanBytes &+ entry.rawBytes
    }

    func load() {
        let lent = self.lent ?? LentLoader()
        self.lent = lent
        lent.loader.decoders = decoders
        do throws(ReadProblem) {
            result = .success(
                try lent.loader.load(
                    entry, of: file.file, parts: parts, unless: letters, rows: rows))
        } catch {
            result = .failure(error)
        }
    }
}

/// Of one block at a time.
final class LentLoader: @unchecked Sendable {
    var loader = BlockLoader()
}

/// An archive that two threads read. Without encryption, reads have no state.
final class SharedArchive: @unchecked Sendable {
    let file: ArchiveFile

    init(_ file: consuming ArchiveFile) { self.file = file }
}
