// What inflates and decodes blocks, lent for one block each: as many as threads load blocks at a
// time have memory, however many archives a reader has open. One reader owns them; any thread.
// SAFETY: Sendable, since `monitor` guards the list, and one borrower at a time has what is lent.

import CordwoodCore

final class BlockDecoders: @unchecked Sendable {
    final class Lent {
        @exclusivity(unchecked) var decoder = DenseDecoder()
        @exclusivity(unchecked) var decompressor = BlockDecompressor()
    }

    /// A reader and the thread that loads ahead.
    private static let keptMax = 2

    private let monitor = Monitor()
    private var free: [Lent] = []

    func take() -> Lent { monitor.locked { free.popLast() } ?? Lent() }

    func put(back lent: Lent) {
        monitor.locked { if free.count < Self.keptMax { free.append(lent) } }
    }
}
