// The facts of archives by path. Readers mostly ask for them repeatedly in the order of their
// names; as long as they do, no path is hashed and no table is made. One thread at a time.

struct KnownFacts {
    typealias Entry = (path: String, key: FileKey, facts: ArchiveFacts)

    private var entries: [Entry?] = []
    private var removed = 0
    /// The path of the last entry; while `isSorted`, all entries before it have lesser paths.
    private var last = ""
    private var isSorted = true
    /// The last lookup was for a path beyond the last entry.
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

    mutating func find(_ path: String) -> (key: FileKey, facts: ArchiveFacts)? {
        place(of: path).flatMap { entries[$0] }.map { ($0.key, $0.facts) }
    }

    mutating func set(_ path: String, _ key: FileKey, _ facts: ArchiveFacts) {
        if let place = place(of: path) {
            if entries[place] == nil { removed -= 1 }
            entries[place] = (path, key, facts)
            return
        }
        add(path, key, facts)
    }

    /// Likewise, for a path that `find` has just not found.
    mutating func add(_ path: String, _ key: FileKey, _ facts: ArchiveFacts) {
        if !isBeyond, !entries.isEmpty, path < last { isSorted = false }
        isBeyond = false
        last = path
        entries.append((path, key, facts))
    }

    /// False: it was not there.
    mutating func remove(_ path: String) -> Bool {
        guard let place = place(of: path), entries[place] != nil else { return false }
        entries[place] = nil
        removed += 1
        // A removed entry has no path to search for: only the table finds it.
        fill()
        places[path] = place
        return true
    }

    private mutating func place(of path: String) -> Int? {
        isBeyond = isSorted && (entries.isEmpty || last < path)
        if isBeyond { return nil }
        if isAt(at, path) { return at }
        if isAt(at + 1, path) {
            at += 1
            return at
        }
        if isAt(0, path) {
            at = 0
            return at
        }
        guard let place = isSorted && removed == 0 ? search(path) : placeInTable(path)
        else { return nil }
        at = place
        return place
    }

    private mutating func placeInTable(_ path: String) -> Int? {
        fill()
        return places[path]
    }

    /// Requires that all entries are in order.
    private func search(_ path: String) -> Int? {
        var (low, high) = (0, entries.count)
        while low < high {
            let middle = low + (high - low) / 2
            guard let found = entries[middle]?.path else { return nil }
            if found < path { low = middle + 1 } else { high = middle }
        }
        return isAt(low, path) ? low : nil
    }

    private func isAt(_ place: Int, _ path: String) -> Bool {
        place < entries.count && entries[place]?.path == path
    }

    private mutating func fill() {
        while placed < entries.count {
            if let path = entries[placed]?.path { places[path] = placed }
            placed += 1
        }
    }
}
