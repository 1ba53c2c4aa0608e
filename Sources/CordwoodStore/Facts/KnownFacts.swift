// The facts of archives by name. Readers mostly ask for them repeatedly in the order of their
// names; as long as they do, no name is hashed and no table is made. One thread at a time.

struct KnownFacts {
    typealias Entry = (name: String, key: FileKey, facts: ArchiveFacts)

    private var entries: [Entry?] = []
    private var removed = 0
    /// The name of the last entry; while `isSorted`, all entries before it have lesser names.
    private var last = ""
    private var isSorted = true
    /// The last lookup was for a name beyond the last entry.
    private var isBeyond = false
    /// The entry that the last lookup found.
    private var at = 0
    /// Indexes of the first `placed` entries; made when the order does not help.
    private var places: [String: Int] = [:]
    private var placed = 0

    var count: Int { entries.count - removed }
    var all: [Entry] { entries.compactMap { $0 } }
    /// The number of entries about which something was learned.
    var learned: Int {
        var found = 0
        for index in entries.indices where entries[index]?.facts.hasNews == true { found += 1 }
        return found
    }

    mutating func reserve(_ count: Int) { entries.reserveCapacity(count) }

    mutating func find(_ name: String) -> (key: FileKey, facts: ArchiveFacts)? {
        place(of: name).flatMap { entries[$0] }.map { ($0.key, $0.facts) }
    }

    mutating func set(_ name: String, _ key: FileKey, _ facts: ArchiveFacts) {
        if let place = place(of: name) {
            if entries[place] == nil { removed -= 1 }
            entries[place] = (name, key, facts)
            return
        }
        add(name, key, facts)
    }

    /// Likewise, for a name that `find` has just not found.
    mutating func add(_ name: String, _ key: FileKey, _ facts: ArchiveFacts) {
        if !isBeyond, !entries.isEmpty, name < last { isSorted = false }
        isBeyond = false
        last = name
        entries.append((name, key, facts))
    }

    /// False: it was not there.
    mutating func remove(_ name: String) -> Bool {
        guard let place = place(of: name), entries[place] != nil else { return false }
        entries[place] = nil
        removed += 1
        // A removed entry has no name to search for: only the table finds it.
        fill()
        places[name] = place
        return true
    }

    private mutating func place(of name: String) -> Int? {
        isBeyond = isSorted && (entries.isEmpty || last < name)
        if isBeyond { return nil }
        if isAt(at, name) { return at }
        if isAt(at + 1, name) {
            at += 1
            return at
        }
        if isAt(0, name) {
            at = 0
            return at
        }
        guard let place = isSorted && removed == 0 ? search(name) : placeInTable(name)
        else { return nil }
        at = place
        return place
    }

    private mutating func placeInTable(_ name: String) -> Int? {
        fill()
        return places[name]
    }

    /// Requires that all entries are in order.
    private func search(_ name: String) -> Int? {
        var (low, high) = (0, entries.count)
        while low < high {
            let middle = low + (high - low) / 2
            guard let found = entries[middle]?.name else { return nil }
            if found < name { low = middle + 1 } else { high = middle }
        }
        return isAt(low, name) ? low : nil
    }

    private func isAt(_ place: Int, _ name: String) -> Bool {
        place < entries.count && entries[place]?.name == name
    }

    private mutating func fill() {
        while placed < entries.count {
            if let name = entries[placed]?.name { places[name] = placed }
            placed += 1
        }
    }
}
