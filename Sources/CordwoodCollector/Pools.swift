// The threads that may block. Small steps (opening, writing, removing a file) have their own
// threads, and so do the checks of small archives and those of large ones: a large check takes up
// to half a minute and must hold up no other client. Started once, stopped once; any thread.

import NIOPosix
import Synchronization

struct Pools: Sendable {
    /// The size, on the disk or inflated, from which an archive counts as large.
    static let largeBytesMin: UInt64 = 64 << 20

    let files = NIOThreadPool(numberOfThreads: 4)
    private let checks = NIOThreadPool(numberOfThreads: 2)
    private let largeChecks = NIOThreadPool(numberOfThreads: 2)

    func checks(isLarge: Bool) -> NIOThreadPool { isLarge ? largeChecks : checks }

    func start() { for pool in all { pool.start() } }

    func stop() { for pool in all { try? pool.syncShutdownGracefully() } }

    private var all: [NIOThreadPool] { [largeChecks, checks, files] }
}

/// Large archives that are checked or wait for it: a quarter of the connections at most.
final class LargeChecks: Sendable {
    private let countMax: Int
    private let count = Mutex(0)

    init(_ options: CollectorOptions) { countMax = max(options.connectionsMax / 4, 1) }

    /// False: there are too many. True: `end` must follow.
    func begin() -> Bool {
        count.withLock { count in
            guard count < countMax else { return false }
            count += 1
            return true
        }
    }

    func end() { count.withLock { $0 -= 1 } }
}
