// Decoders, lent for one block each. However many archives a reader has open, only as
// many of these hold memory as threads load blocks at a time. One reader owns them; any thread.
// SAFETY: Sendable, because `monitor` guards the list, and what is lent has one borrower at a time.

import CordwoodCore

final class BlockDecoders: @unchecked Sendable {
    final class Lent {
        @exclusivity(unchecked) var decoder = BlockDecoder()
    }

    /// One for a reader, and one for the thread that loads ahead.
    private static let keptMax = 2

    private let monitor = Monitor()
    private var free: [Lent] = []

    func take() -> Lent { monitor.locked { free.popLast() } ?? Lent() }

    func put(back lent: Lent) {
        monitor.locked { if free.count < Self.keptMax { free.append(lent) } }
    }
}
