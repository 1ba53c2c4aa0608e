// Thresholds by dotted prefix; the longest wins: "app.db" covers app.db.pool, never app.dbx. A
// value: changing it makes another.

struct LevelTable: Sendable {
    static let prefixesMax = 4_096

    private var thresholds: [String: UInt8]

    init(root: UInt8, _ levels: [(prefix: String, level: UInt8)]) {
        thresholds = ["": root]
        for (prefix, level) in levels { thresholds[prefix] = level }
    }

    func threshold(_ name: String) -> UInt8 {
        var prefix = Substring(name)
        while true {
            if let threshold = thresholds[String(prefix)] { return threshold }
            guard let dot = prefix.lastIndex(of: ".") else { return thresholds[""] ?? 9 }
            prefix = prefix[..<dot]
        }
    }

    /// nil: too many prefixes.
    func setting(_ prefix: String, _ level: UInt8) -> LevelTable? {
        var changed = self
        changed.thresholds[prefix] = level
        return changed.thresholds.count <= LevelTable.prefixesMax ? changed : nil
    }
}
