// Decides which archives must go: those too old, too many, or too large in total, oldest first. A
// pure function of the current state; Janitor carries out the decision. 0 means unlimited
// everywhere.

package struct RetentionLimits: Equatable, Sendable {
    /// Limit for all files of the store.
    package var quotaBytes: UInt64
    package var archivesMax: UInt32
    package var expirationDays: UInt32

    package init(quotaBytes: UInt64, archivesMax: UInt32, expirationDays: UInt32) {
        self.quotaBytes = quotaBytes
        self.archivesMax = archivesMax
        self.expirationDays = expirationDays
    }

    package static let unlimited = RetentionLimits(quotaBytes: 0, archivesMax: 0, expirationDays: 0)
    /// Those of a program that sets none.
    package static let standard = RetentionLimits(
        quotaBytes: 5 << 30, archivesMax: 0, expirationDays: 30)
}

package struct RetentionItem: Equatable {
    package var stem: String
    /// Space on the disk.
    package var bytes: UInt64
    /// UTC ns when its newest record was written; 0: not known, so it never expires.
    package var writtenNs: UInt64
    /// Counted, but must not be removed: it is being uploaded, or its segments still exist.
    package var isPinned: Bool

    package init(stem: String, bytes: UInt64, writtenNs: UInt64, isPinned: Bool) {
        self.stem = stem
        self.bytes = bytes
        self.writtenNs = writtenNs
        self.isPinned = isPinned
    }
}

package enum Retention {
    static let dayNs: UInt64 = 86_400_000_000_000

    /// - Parameters:
    ///   - items: oldest first.
    ///   - otherBytes: files of the store that are not archives; they count, but are never removed.
    ///   - believesClock: false: nothing is removed for its age (AgeTrust).
    /// - Returns: what to remove, in the order of removal.
    package static func decide(
        items: [RetentionItem], otherBytes: UInt64, limits: RetentionLimits, nowNs: UInt64,
        believesClock: Bool = true
    ) -> [(stem: String, reason: RemovalReason)] {
        let bytes = items.reduce(otherBytes) { sum, item in
            let (total, overflow) = sum.addingReportingOverflow(item.bytes)
            return overflow ? UInt64.max : total
        }
        var remainingBytes = bytes
        var remainingCount = items.count
        var removals: [(stem: String, reason: RemovalReason)] = []
        // Expired archives go in any case; that may already be enough.
        var kept: [RetentionItem] = []
        for item in items where !item.isPinned {
            guard believesClock,
                isExpired(item.writtenNs, days: limits.expirationDays, nowNs: nowNs)
            else {
                kept.append(item)
                continue
            }
            removals.append((item.stem, .expired))
            remainingCount -= 1
            remainingBytes -= min(item.bytes, remainingBytes)
        }
        for item in kept {
            let isTooMany = limits.archivesMax > 0 && remainingCount > Int(limits.archivesMax)
            let isTooMuch = limits.quotaBytes > 0 && remainingBytes > limits.quotaBytes
            guard isTooMany || isTooMuch else { break }
            removals.append((item.stem, isTooMany ? .count : .quota))
            remainingCount -= 1
            remainingBytes -= min(item.bytes, remainingBytes)
        }
        return removals
    }

    static func isExpired(_ writtenNs: UInt64, days: UInt32, nowNs: UInt64) -> Bool {
        guard days > 0, writtenNs > 0 else { return false }
        let (age, overflow) = UInt64(days).multipliedReportingOverflow(by: dayNs)
        return !overflow && nowNs > age && writtenNs < nowNs - age
    }
}
