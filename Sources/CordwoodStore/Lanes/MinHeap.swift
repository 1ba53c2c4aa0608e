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
    var topKey: UInt64? { entries.first?.key }
    var top: Item? { entries.first?.item }

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
        rekeyTop(last.key)
    }

    /// True if the item stays on top.
    @discardableResult
    mutating func rekeyTop(_ key: UInt64) -> Bool {
        unsafe entries.withUnsafeMutableBufferPointer { heap in
            if heap.isEmpty { return false }
            unsafe heap[0].key = key
            return unsafe Self.sink(heap)
        }
    }

    private func less(_ a: Int, _ b: Int) -> Bool { Self.less(entries[a], entries[b]) }

    @inline(__always)
    private static func less(_ a: Entry, _ b: Entry) -> Bool {
        a.key != b.key ? a.key < b.key : a.tie < b.tie
    }

    /// True if the top stays where it is.
    @inline(__always)
    private static func sink(_ heap: UnsafeMutableBufferPointer<Entry>) -> Bool {
        var parent = 0
        while true {
            var child = parent &* 2 &+ 1
            guard child < heap.count else { return parent == 0 }
            if child &+ 1 < heap.count, unsafe less(heap[child &+ 1], heap[child]) {
                child &+= 1
            }
            guard unsafe less(heap[child], heap[parent]) else { return parent == 0 }
            unsafe heap.swapAt(child, parent)
            parent = child
        }
    }
}
