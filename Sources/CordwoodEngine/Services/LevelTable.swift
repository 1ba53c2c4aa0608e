// Thresholds by dotted prefix; the longest prefix wins: "app.db" covers app.db.pool, never app.dbx.
// The host's levels and a policy's are kept separately, so that the next policy finds the host's
// choice. For the same prefix the policy wins until the host sets that prefix again. The levels in
// the store's control file override both for as long as the file has them. A value: a change makes
// a new table.

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

    /// The table with this policy's levels in place of the previous policy's.
    func following(_ levels: [(prefix: String, level: UInt8)]) -> LevelTable {
        var changed = self
        changed.policy = [:]
        for (prefix, level) in levels { changed.policy[prefix] = level }
        return changed
    }

    /// The table with the present levels of the control file.
    func controlled(_ levels: [(prefix: String, level: UInt8)]) -> LevelTable {
        var changed = self
        changed.control = [:]
        for (prefix, level) in levels { changed.control[prefix] = level }
        return changed
    }
}
