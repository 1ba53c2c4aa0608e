// Several queries that must all match, in the order in which a reader checks them: level, kind and
// time, which whole blocks and archives have; then columns; then fields; then texts. Says what an
// archive must have for any of its records to be wanted. A value; any thread.

import CordwoodCore

package struct QueryPlan: Sendable {
    /// Lowest level; 0: all, including records without one.
    package private(set) var level: UInt8 = 0
    /// Set of 1 << kind; all bits: any kind.
    package private(set) var kinds: UInt32 = .max
    /// UTC ns, inclusive.
    package private(set) var since: UInt64 = 0
    /// UTC ns, exclusive; `.max`: open.
    package private(set) var until: UInt64 = .max
    /// This name and those below it; empty: all.
    package private(set) var logger: [UInt8] = []
    /// What the bounds above do not express, the cheapest first.
    private var parts: [(cost: Int, node: QueryNode)] = []
    /// What `search` looks for, and the index of a part that the search decides before a text is
    /// made.
    private var searched: (bytes: [UInt8], coversFields: Bool)?
    private var decided = Int.max

    package init() {}

    package var takesAll: Bool {
        level == 0 && kinds == .max && since == 0 && until == .max && logger.isEmpty
            && hasOnlyBounds
    }

    /// The bounds on level, kind, time and logger express everything.
    package var hasOnlyBounds: Bool { parts.isEmpty }

    /// Every plain record of a program passes.
    var takesMessages: Bool {
        level == 0 && kinds & 1 != 0 && since == 0 && until == .max && logger.isEmpty
            && hasOnlyBounds
    }

    // MARK: Making it

    package mutating func require(level: UInt8) { self.level = max(self.level, level) }
    package mutating func require(kinds: UInt32) { self.kinds &= kinds }
    package mutating func require(since: UInt64) { self.since = max(self.since, since) }
    package mutating func require(until: UInt64) { self.until = min(self.until, until) }

    package mutating func require(_ node: QueryNode) {
        if case .all(let nodes) = node {
            for node in nodes { require(node) }
            return
        }
        if isBound(node) { return }
        let cost = QueryPlan.cost(node)
        let at = parts.firstIndex { $0.cost > cost } ?? parts.count
        parts.insert((cost, node), at: at)
        chooseSearch()
    }

    /// The longest text that all matching records must have; among equals one that must be in the
    /// message, which leaves out more.
    private mutating func chooseSearch() {
        searched = nil
        decided = .max
        for (index, part) in parts.enumerated() {
            let offer: (bytes: [UInt8], coversFields: Bool)
            var decides = false
            switch part.node {
            case .text(.literal(let bytes)): offer = (bytes, true)
            case .compare(.message, .contains, .text(.literal(let bytes))):
                offer = (bytes, false)
                decides = true
            case .compare(.message, .equal, .text(.literal(let bytes))): offer = (bytes, false)
            default: continue
            }
            let (old, new) = (searched?.bytes.count ?? 0, offer.bytes.count)
            guard new > old || new > 0 && new == old && !offer.coversFields else { continue }
            searched = offer
            decided = decides ? index : .max
        }
    }

    /// Whether the bounds express the whole node. They may also narrow for other nodes.
    private mutating func isBound(_ node: QueryNode) -> Bool {
        switch node {
        case .compare(.level, let operation, .level(let level)):
            switch operation {
            case .atLeast: require(level: level)
            case .more: require(level: level + 1)
            case .equal:
                require(level: level)
                return false
            default: return false
            }
        case .compare(.kind, .equal, .kind(let kind)) where kind < 32: require(kinds: 1 << kind)
        case .compare(.logger, .below, .text(.literal(let name))) where logger.isEmpty:
            logger = name
        case .compare(.time, let operation, .time(let time)):
            switch operation {
            case .atLeast: require(since: time)
            case .less: require(until: time)
            default: return false
            }
        default: return false
        }
        return true
    }

    private static func cost(_ node: QueryNode) -> Int {
        switch node {
        case .all(let parts), .any(let parts): parts.reduce(0) { $0 + cost($1) }
        case .not(let part): cost(part)
        case .compare(.time, _, _), .compare(.level, _, _), .compare(.kind, _, _): 1
        case .compare(.logger, .like, _): 20
        case .compare(.logger, _, _): 2
        case .compare(.field, _, _): 10
        case .compare(.any, _, _): 15
        case .compare(.message, .like, _): 300
        case .compare(.message, _, _): 100
        case .text(.expression): 400
        case .text: 120
        }
    }

    // MARK: Asking

    @inline(__always)
    package func matches(_ record: borrowing RecordRef) -> Bool {
        isWithin(record) && (parts.isEmpty || partsMatch(record))
    }

    private func partsMatch(_ record: borrowing RecordRef) -> Bool {
        for part in parts
        where QueryTest.verdict(part.node, record, hasText: true) != .yes {
            return false
        }
        return true
    }

    /// False: no text can make the record match. Does not check `search`, which a search decides.
    package func mayMatch(_ record: borrowing RecordRef) -> Bool {
        guard isWithin(record) else { return false }
        for index in parts.indices where index != decided {
            let node = parts[index].node
            if QueryTest.verdict(node, record, hasText: false) == .no { return false }
        }
        return true
    }

    /// Whether it asks about the origin of records.
    package var asksOrigin: Bool { parts.contains { OriginTest.isAsked($0.node) } }

    /// False: no record of such a process matches.
    package func mayMatch(_ names: OriginTest.Names) -> Bool {
        parts.allSatisfy { OriginTest.verdict($0.node, names) != .no }
    }

    @inline(__always)
    private func isWithin(_ record: borrowing RecordRef) -> Bool {
        if record.level < level { return false }
        if kinds != .max, record.kind > 31 || kinds & (1 << UInt32(record.kind)) == 0 {
            return false
        }
        guard record.timeNs >= since, record.timeNs < until || until == .max else { return false }
        return logger.isEmpty || QueryTest.covers(logger, record.logger)
    }

    /// A text that every matching record has, perhaps in one of its fields.
    package var search: (text: TextSearch, fields: FieldSearch?)? {
        searched.map {
            (TextSearch($0.bytes), $0.coversFields ? FieldSearch($0.bytes) : nil)
        }
    }

    /// False: checking a record does not need its text.
    package var needsText: Bool { parts.contains { QueryPlan.needsText($0.node) } }

    private static func needsText(_ node: QueryNode) -> Bool {
        switch node {
        case .all(let parts), .any(let parts): parts.contains(where: needsText)
        case .not(let part): needsText(part)
        case .text, .compare(.message, _, _): true
        case .compare: false
        }
    }
}
