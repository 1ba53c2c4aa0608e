// A binary heap of small keys, for merging streams and sources. The smallest (key, tie) is on top.
// The usual step changes the top's key and lets it sink: one or two comparisons while runs last.

struct MinHeap<Item> {
    struct Entry {
        var key: UInt64
        var tie: UInt64
        var item: Item
    }

    private(set) var entries: [Entry] = []

    var isEmpty: Bool { entries.isEmpty }
    var top: Entry? { entries.first }

    /// The entry that would be on top if the top were removed.
    var second: Entry? {
        guard entries.count > 1 else { return nil }
        return entries.count > 2 && less(2, 1) ? entries[2] : entries[1]
    }

    mutating func push(_ key: UInt64, _ tie: UInt64, _ item: Item) {
        entries.append(Entry(key: key, tie: tie, item: item))
        var child = entries.count - 1
        while child > 0 {
            let parent = (child - 1) / 2
            guard less(child, parent) else { return }
            entries.swapAt(child, parent)
            child = parent
        }
    }

    mutating func pop() {
        guard let last = entries.popLast(), !entries.isEmpty else { return }
        entries[0] = last
        sink()
    }

    /// True if the item stays on top.
    @discardableResult
    mutating func rekeyTop(_ key: UInt64) -> Bool {
        guard !entries.isEmpty else { return false }
        entries[0].key = key
        return sink()
    }

    private func less(_ a: Int, _ b: Int) -> Bool {
        entries[a].key != entries[b].key
            ? entries[a].key < entries[b].key : entries[a].tie < entries[b].tie
    }

    @discardableResult
    private mutating func sink() -> Bool {
        var parent = 0
        while true {
            var child = parent * 2 + 1
            guard child < entries.count else { return parent == 0 }
            if child + 1 < entries.count, less(child + 1, child) { child += 1 }
            guard less(child, parent) else { return parent == 0 }
            entries.swapAt(child, parent)
            parent = child
        }
    }
}
