// Counts records by time and level in a limited number of bins, without knowing the range in
// advance: when there are too many bins, they are merged. Each step of the ladder is a multiple of
// the one before. A value.

package struct TimeHistogram {
    package static let binsMax = 200
    package static let groups = 8

    private static let ms: UInt64 = 1_000_000
    private static let second: UInt64 = 1_000 * ms
    private static let ladder: [UInt64] =
        [1, 2, 10, 20, 100, 200].map { $0 * ms }
        + [1, 2, 10, 30, 60, 120, 600, 1_800, 3_600, 7_200, 21_600, 43_200, 86_400].map {
            $0 * second
        }

    package private(set) var stepNs = ladder[0]
    private var rung = 0
    /// Eight counts each, by step number since 1970.
    private var bins: [UInt64: [UInt64]] = [:]
    private var lowest = UInt64.max
    private var highest: UInt64 = 0
    /// The bin of the last record, and the counts in it since it became current.
    private var current = UInt64.max
    private var counts = [UInt64](repeating: 0, count: groups)

    package init() {}

    /// 0: no level; trace, debug, info, notice, warn, error, fatal.
    static func group(_ level: UInt8) -> Int {
        switch level {
        case 0: 0
        case 1...4: 1
        case 5...8: 2
        case 9: 3
        case 10...12: 4
        case 13...16: 5
        case 17...20: 6
        default: 7
        }
    }

    package mutating func add(timeNs: UInt64, level: UInt8) {
        add(1, timeNs: timeNs, group: TimeHistogram.group(level))
    }

    mutating func add(_ more: UInt64, timeNs: UInt64, group: Int) {
        let bin = timeNs / stepNs
        if bin != current { move(to: bin) }
        counts[group] &+= more
    }

    private mutating func move(to bin: UInt64) {
        settle()
        let timeNs = bin &* stepNs
        lowest = min(lowest, timeNs)
        highest = max(highest, timeNs)
        while highest / stepNs - lowest / stepNs >= UInt64(TimeHistogram.binsMax) { widen() }
        current = timeNs / stepNs
    }

    private mutating func settle() {
        guard current != .max else { return }
        add(counts, to: current)
        for index in counts.indices { counts[index] = 0 }
        current = .max
    }

    private mutating func add(_ counts: [UInt64], to bin: UInt64) {
        guard let old = bins[bin] else {
            bins[bin] = counts
            return
        }
        bins[bin] = zip(old, counts).map { $0 &+ $1 }
    }

    private mutating func widen() {
        let old = stepNs
        if rung + 1 < TimeHistogram.ladder.count {
            rung += 1
            stepNs = TimeHistogram.ladder[rung]
        } else {
            stepNs = stepNs &* 2
        }
        let all = bins
        bins = [:]
        for (bin, counts) in all { add(counts, to: bin * old / stepNs) }
    }

    /// In order of time. - Returns: the beginning of each bin, UTC ns, and eight counts.
    package mutating func sums() -> [(startNs: UInt64, counts: [UInt64])] {
        settle()
        return bins.keys.sorted().map { ($0 &* stepNs, bins[$0] ?? []) }
    }
}
