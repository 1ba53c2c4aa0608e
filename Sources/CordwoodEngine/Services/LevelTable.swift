// Thresholds by dotted prefix; the longest wins: "app.db" covers app.db.pool, never app.dbx. The
// host's own and a policy's lie beside each other, so that the next policy finds what the host
// said; of two for the same prefix the policy's wins, until the host sets that prefix again. Over
// both lie those of the store's control file, as long as they stand there. A value: changing it
// makes another.

struct LevelTable: Sendable {
    static let prefixesMax = 4_096

    private var thresholds: [String: UInt8]
    private var policy: [String: UInt8] = [:]
    private var control: [String: UInt8] = [:]

    init(root: UInt8, _ levels: [(prefix: String, level: UInt8)]) {
        thresholds = ["": root]
        for (prefix, level) in levels { thresholds[prefix] = level }
    }

    func threshold(_ name: String) -> UInt8 {
        var prefix = Substring(name)
        while true {
            if let threshold = of(String(prefix)) { return threshold }
            guard let dot = prefix.lastIndex(of: ".") else { return of("") ?? 9 }
            prefix = prefix[..<dot]
        }
    }

    private func of(_ prefix: String) -> UInt8? {
        control[prefix] ?? policy[prefix] ?? thresholds[prefix]
    }

    /// nil: too many prefixes.
    func setting(_ prefix: String, _ level: UInt8) -> LevelTable? {
        var changed = self
        changed.thresholds[prefix] = level
        changed.policy[prefix] = nil
        return changed.thresholds.count <= LevelTable.prefixesMax ? changed : nil
    }

    /// With this policy's levels in the place of the last one's.
    func following(_ levels: [(prefix: String, level: UInt8)]) -> LevelTable {
        var changed = self
        changed.policy = [:]
        for (prefix, level) in levels { changed.policy[prefix] = level }
        return changed
    }

    /// With what the control file says now.
    func controlled(_ levels: [(prefix: String, level: UInt8)]) -> LevelTable {
        var changed = self
        changed.control = [:]
        for (prefix, level) in levels { changed.control[prefix] = level }
        return changed
    }
}
