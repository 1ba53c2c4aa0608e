// The memory that all archives of one reader hold in blocks, and their open files. While there is
// room, each archive keeps its whole block. A further one keeps only the next rows of its block,
// and loads it again for later rows. One reader owns it; one thread at a time.
// SAFETY: Sendable because options are; only the thread that reads with them uses it.

import CordwoodCore

final class BlockRoom: @unchecked Sendable {
    /// Limit on whole blocks. Few merges have so many lanes that they exceed it.
    private static let wholeMax = 64 << 20
    /// The same for readers that probably stop early, or begin near the end.
    private static let briefMax = 24 << 20
    /// Above this share of the room, memory that only loading needs is freed afterwards.
    private static let leanShare = 4

    private let limit: Int
    private(set) var held = 0
    let decoders: BlockDecoders
    let files: OpenFiles
    /// Loads for all archives that keep no block: its memory is reused.
    var loader: BlockLoader

    convenience init(isBrief: Bool) {
        self.init(bytesMax: isBrief ? Self.briefMax : Self.wholeMax)
    }

    /// `filesMax`: nil: the process's descriptor limit decides.
    init(bytesMax: Int, filesMax: Int? = nil) {
        limit = bytesMax
        files = OpenFiles(limit: filesMax)
        decoders = BlockDecoders()
        loader = BlockLoader(decoders: decoders)
    }

    var isLean: Bool { held >= limit / Self.leanShare }

    /// False: there is no room for these bytes.
    func take(_ bytes: Int) -> Bool {
        guard held &+ bytes <= limit else { return false }
        held &+= bytes
        return true
    }

    /// Adds without checking, for what cannot be smaller.
    func add(_ bytes: Int) { held &+= bytes }

    func remove(_ bytes: Int) { held &-= bytes }
}

/// A block of which only some rows are kept.
struct BlockPieces {
    /// The most times that a block is decoded: the last piece is everything that is left.
    private static let decodesMax = 4
    /// The first piece is small: many readers need no more than the first row.
    private static let firstShare = 32
    private static let rowsMin = 16

    let recordCount: Int
    /// The first row of the next piece.
    private(set) var next: Int
    private var decodes = 0

    init(recordCount: Int) {
        self.recordCount = recordCount
        next = 0
    }

    var isLast: Bool { next >= recordCount }

    /// The rows of the next piece. The block has just been decoded; rows before `first` are done.
    mutating func take(from first: Int) -> Range<Int> {
        decodes += 1
        let left = recordCount - first
        var count = left
        if decodes == 1 {
            count = left / Self.firstShare
        } else if decodes < Self.decodesMax {
            count = left / (Self.decodesMax - decodes + 1)
        }
        next = first + min(left, max(count, Self.rowsMin))
        return first..<next
    }
}
