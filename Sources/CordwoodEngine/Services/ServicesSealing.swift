// Sealing: a thread of its own fixes the lengths and writes the checksums of segments that are no
// longer current, so that the supply thread only supplies. It starts with the first such segment: a
// program that logs little has no such thread. The ship thread would not do, because a slow disk or
// server can hold it up for longer than the engine has slots for segments. Callers of roll, upload
// and flush seal by themselves.

import CordwoodCore

/// How the supply thread asks for sealing. Any thread.
final class SealerCalls: @unchecked Sendable {
    // SAFETY: everything is read and written under `monitor`.
    private let monitor = Monitor()
    private var hasThread = false
    private var isWanted = false
    private var isStopping = false
    private var hasSupplyWaiting = false
    /// The sealing thread waits for supply to be done with the lock.
    private var isHeldBack = false

    /// True: the caller must start the thread.
    func want() -> Bool {
        monitor.locked {
            isWanted = true
            monitor.notify()
            defer { hasThread = true }
            return !hasThread
        }
    }

    /// The system refused the thread.
    func hasNone() { monitor.locked { hasThread = false } }

    /// On the sealing thread: waits for work. False: the engine closes.
    func waits() -> Bool {
        monitor.locked {
            while !isWanted, !isStopping { _ = monitor.wait(until: .never) }
            isWanted = false
            return !isStopping
        }
    }

    /// The first thread to ask gets the sealing lock, which would always be the sealing thread
    /// again. So between two segments it lets the supply thread in.
    func supplyWaits(_ waits: Bool) {
        monitor.locked {
            hasSupplyWaiting = waits
            // Supply asks several times a check: a thread that only waits for work sleeps on.
            if !waits, isHeldBack { monitor.notify() }
        }
    }

    func letSupplyIn() {
        monitor.locked {
            isHeldBack = true
            while hasSupplyWaiting, !isStopping { _ = monitor.wait(until: .never) }
            isHeldBack = false
        }
    }

    func stop() {
        monitor.locked {
            isStopping = true
            monitor.notify()
        }
    }
}

extension Services {
    /// On the supply thread, which alone releases mappings.
    func sealAndRelease() {
        if unsafe EngineCore.isSealingDue(engine), sealer.want(),
            !startThread("cordwood-seal", sealLoop)
        {
            sealer.hasNone()
            seal()
        }
        let below = keptBelow
        // Never while a flush copies mapped segments or a roll looks at them.
        sealingOnSupply { unsafe EngineCore.releaseQuiet(engine, keptBelow: below) }
    }

    /// Sealed segments from this number on wait for more than the next two archives: keeping their
    /// pages until then costs memory and saves nothing.
    private var keptBelow: UInt64 {
        let reach = limits.segmentsAtOnce * 2
        return monitor.locked { sealedWaiting.first.map { $0.number + reach } ?? .max }
    }

    /// The sealing lock for the supply thread, which gets it after one segment at most.
    func sealingOnSupply<T>(_ body: () -> T) -> T {
        sealer.supplyWaits(true)
        defer { sealer.supplyWaits(false) }
        return sealing.locked(body)
    }

    private func sealLoop() {
        while sealer.waits() { sealRetired() }
    }

    /// One at a time: in between, others get the lock, and writers that wait for sealing go on.
    private func sealRetired() {
        while seal(atMost: 1) > 0 {
            let below = keptBelow
            sealing.locked { unsafe EngineCore.letPagesGo(engine, keptBelow: below) }
            sealer.letSupplyIn()
        }
    }

    /// Returns how many it sealed.
    @discardableResult
    func seal(atMost: Int = .max) -> Int {
        sealing.locked {
            let sealed = unsafe EngineCore.sealRetired(engine, all: false, atMost: atMost)
            guard !sealed.isEmpty else { return 0 }
            noteSealed(sealed)
            return sealed.count
        }
    }

    /// Under the sealing lock: the archiver gets them.
    func noteSealed(_ sealed: [SealedSegment]) {
        monitor.locked {
            for segment in sealed {
                let after = sealedWaiting.lastIndex { $0.number < segment.number }
                sealedWaiting.insert(segment, at: after.map { $0 + 1 } ?? 0)
            }
            sealedCount += UInt64(sealed.count)
            wakeShipperLocked()
        }
    }
}
