// Loads blocks of archives before their reader needs them, on a separate thread, so that readers of
// the command line use two processors. Blocks and errors come as they would without it. The amount
// loaded ahead is bounded, whatever the number of archives. Two threads: the reader's, and its own,
// which lives until `stop`.
// SAFETY: Sendable, because `monitor` guards everything here and each block's state; only the
// thread that is loading a block touches the rest of it.

import CordwoodCore

package final class ReadAhead: @unchecked Sendable {
    /// Blocks of one archive that are loaded or waiting.
    static let depth = 2
    /// Limits on all blocks that are loaded or waiting: their number, and their size in the file
    /// plus inflated, according to the footers. One block may be larger.
    private static let countMax = 8
    private static let bytesMax: UInt64 = 16 << 20

    private let monitor = Monitor()
    private var waiting: [BlockAhead] = []
    private var count = 0
    private var bytes: UInt64 = 0
    private var isStarted = false
    private var isStopped = false
    /// Loaders of blocks whose reader took them in exchange for its own: their memory is reused.
    private var spare: [LentLoader] = []
    private static let spareMax = 1

    package init() {}

    /// The thread ends after the block that it is loading.
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
            let hasRoom = count == 0 || bytes &+ block.bytes <= Self.bytesMax
            guard count < Self.countMax, hasRoom, !isStopped else { return false }
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

    /// Exchanges the reader's loader for that of a loaded block.
    func take(_ block: BlockAhead, for loader: inout BlockLoader) {
        guard let lent = block.lent else { return }
        swap(&loader, &lent.loader)
        block.lent = nil
        monitor.locked { if spare.count < Self.spareMax { spare.append(lent) } }
    }

    /// These are no longer needed.
    func remove(_ blocks: [BlockAhead]) {
        monitor.locked {
            for block in blocks {
                forget(block)
                waiting.removeAll { $0 === block }
            }
        }
    }

    /// Waits until the block is loaded; meanwhile loads it, or other blocks.
    func finish(_ block: BlockAhead) {
        while let other = next(for: block) { load(other) }
    }

    /// The block for the reader to load until that block is loaded; nil: it is loaded.
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
    private let rows: WantedRows?
    private let decoders: BlockDecoders
    private let file: SharedArchive

    init(
        _ block: Int, _ entry: BlockEntry, of file: SharedArchive, parts: BlockParts,
        unless letters: LetterRun?, rows: WantedRows?, decoders: BlockDecoders
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

/// Lent to one block at a time.
final class LentLoader: @unchecked Sendable {
    var loader = BlockLoader()
}

/// An archive that two threads read. Without encryption, reads have no state.
final class SharedArchive: @unchecked Sendable {
    let file: ArchiveFile

    init(_ file: consuming ArchiveFile) { self.file = file }
}
