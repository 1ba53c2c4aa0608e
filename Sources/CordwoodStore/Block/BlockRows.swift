// The rows of a block while it is gathered. A record is appended as one row; each column is taken
// from the rows when the block is stored. Owned by one Block.
// SAFETY: `claim` gave the memory of each row; views are used only while no row is appended.

import CordwoodCore

/// A record's numbers in the columns of FORMAT §11.4.
struct BlockRow: BitwiseCopyable {
    /// Monotonic ns.
    var time: UInt64
    /// UTC − monotonic ns.
    var offset: UInt64
    /// Minus the sequence expected after the thread's previous record.
    var sequence: UInt64
    /// Index of the context, plus 1; 0: none.
    var context: UInt32
    /// Bytes of the sections; 0: none.
    var sections: UInt32
    /// Bytes of the message; of a deferred record, the index of the format.
    var text: UInt32
    var thread: UInt16
    var logger: UInt16
    /// `BlockKind`.
    var kind: UInt8
    var level: UInt8

    var isDeferred: Bool { kind & BlockKind.deferred != 0 }
    var hasMessage: Bool { !isDeferred }
    var hasSections: Bool { sections > 0 }
}

struct BlockRows: ~Copyable {
    private var bytes = GrowingBytes()

    init() {}

    var failed: Bool { bytes.failed }

    @inline(__always)
    mutating func append(_ row: BlockRow) {
        guard let place = unsafe bytes.claim(MemoryLayout<BlockRow>.stride) else { return }
        unsafe place.assumingMemoryBound(to: BlockRow.self).initialize(to: row)
    }

    mutating func removeAll() { bytes.removeAll() }

    /// Valid until the next change.
    var all: Flat<BlockRow> {
        unsafe Flat(
            bytes.base.assumingMemoryBound(to: BlockRow.self),
            bytes.count / MemoryLayout<BlockRow>.stride)
    }

    /// Whether these are the numbers of the column, in the rows where `isIn` is true.
    @inline(__always)
    func have(
        _ numbers: Flat<UInt64>, where isIn: (BlockRow) -> Bool = { _ in true },
        _ column: (BlockRow) -> UInt64
    ) -> Bool {
        let (rows, found) = unsafe (all, numbers.base)
        let source = unsafe rows.base
        var (next, differing): (Int, UInt64) = (0, 0)
        for index in 0..<rows.count where unsafe isIn(source[index]) {
            guard next < numbers.count else { return false }
            unsafe differing |= found[next] ^ column(source[index])
            next &+= 1
        }
        return next == numbers.count && differing == 0
    }
}
