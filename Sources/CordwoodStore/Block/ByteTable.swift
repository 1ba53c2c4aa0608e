// The dictionary of one block: each byte string gets the index of its first appearance. Open
// addressing over an arena that is reused for every block, so a record allocates nothing. The hash
// is seeded, because strangers choose log text. The seed never shows in the output.
// SAFETY: an entry's offset and size lie in the arena, which shrinks only in `removeAll`.

import CordwoodCore

struct ByteTable: ~Copyable {
    private struct Entry {
        var offset: Int
        var size: Int
        var hash: UInt64
    }

    private var arena = GrowingBytes()
    private var entries: [Entry] = []
    /// Index + 1; 0: free. The count is a power of two, at most half of them used.
    private var slots: [UInt32] = Array(repeating: 0, count: 256)
    private let seed: UInt64
    private var last = -1

    init(seed: UInt64) { self.seed = seed }

    var count: Int { entries.count }
    /// Total bytes of all strings.
    var size: Int { arena.count }
    var failed: Bool { arena.failed }

    mutating func removeAll() {
        if entries.isEmpty { return }
        arena.removeAll()
        entries.removeAll(keepingCapacity: true)
        for index in slots.indices { slots[index] = 0 }
        last = -1
    }

    /// SAFETY: valid until the next `index`.
    func bytes(_ index: Int) -> UnsafeRawBufferPointer {
        let entry = entries[index]
        return unsafe UnsafeRawBufferPointer(
            start: arena.base + entry.offset, count: max(entry.size, 0))
    }

    @safe @inline(__always)
    mutating func index(_ key: UnsafeRawBufferPointer) -> Int {
        if last >= 0, same(last, key) { return last }
        last = find(key)
        return last
    }

    @safe @inline(__always)
    private func same(_ index: Int, _ key: UnsafeRawBufferPointer) -> Bool {
        let entry = entries[index]
        return unsafe Slice(start: arena.base + entry.offset, count: entry.size).isSame(Slice(key))
    }

    @safe private mutating func find(_ key: UnsafeRawBufferPointer) -> Int {
        let hash = hashed(key)
        var slot = Int(truncatingIfNeeded: hash) & (slots.count - 1)
        while slots[slot] != 0 {
            let index = Int(slots[slot]) - 1
            if entries[index].hash == hash, same(index, key) { return index }
            slot = (slot &+ 1) & (slots.count - 1)
        }
        let index = entries.count
        entries.append(Entry(offset: arena.count, size: key.count, hash: hash))
        arena.append(key)
        // Without its bytes the entry must not be compared; the block is abandoned anyway.
        if arena.failed { entries[index].size = -1 }
        slots[slot] = UInt32(truncatingIfNeeded: index &+ 1)
        if entries.count * 2 > slots.count { rehash() }
        return index
    }

    private mutating func rehash() {
        slots = Array(repeating: 0, count: slots.count * 2)
        for (index, entry) in entries.enumerated() {
            var slot = Int(truncatingIfNeeded: entry.hash) & (slots.count - 1)
            while slots[slot] != 0 { slot = (slot &+ 1) & (slots.count - 1) }
            slots[slot] = UInt32(truncatingIfNeeded: index &+ 1)
        }
    }

    @safe private func hashed(_ key: UnsafeRawBufferPointer) -> UInt64 {
        var hash = seed ^ UInt64(key.count)
        var offset = 0
        while offset &+ 8 <= key.count {
            hash = unsafe Self.mixed(
                hash ^ key.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
            offset &+= 8
        }
        var tail: UInt64 = 0
        while offset < key.count {
            tail = unsafe tail &<< 8 | UInt64(key[offset])
            offset &+= 1
        }
        return Self.mixed(hash ^ tail)
    }

    @inline(__always)
    private static func mixed(_ value: UInt64) -> UInt64 {
        let product = value.multipliedFullWidth(by: 0x9E37_79B9_7F4A_7C15)
        return product.high ^ product.low
    }
}
