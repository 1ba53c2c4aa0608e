// A binary heap of small keys, for the merge of streams and of sources. The smallest (key, tie) is
// on top. The usual step changes the top's key and lets it sink: one or two comparisons while runs
// last.

struct MinHeap<Item> {
    struct Entry {
        var key: UInt64
        var tie: UInt64
        var item: Item
    }

    private(set) var entries: [Entry] = []

    var isEmpty: Bool { entries.isEmpty }
    var top: Entry? { entries.first }

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

    mutating func rekeyTop(_ key: UInt64) {
        guard !entries.isEmpty else { return }
        entries[0].key = key
        sink()
    }

    private func less(_ a: Int, _ b: Int) -> Bool {
        entries[a].key != entries[b].key
            ? entries[a].key < entries[b].key : entries[a].tie < entries[b].tie
    }

    private mutating func sink() {
        var parent = 0
        while true {
            var child = parent * 2 + 1
            guard child < entries.count else { return }
            if child + 1 < entries.count, less(child + 1, child) { child += 1 }
            guard less(child, parent) else { return }
            entries.swapAt(child, parent)
            parent = child
        }
    }
}
