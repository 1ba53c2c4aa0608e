// A dictionary of slices in an arena: each distinct slice gets the index of its first appearance.
// Open addressing. The hash is seeded, because strangers choose what is hashed; it decides nothing
// by itself. A value of one encoder or decoder.
// SAFETY: the bytes of the slices outlive the table, which copies none.

import CordwoodCore

struct SliceTable {
    /// High half: of the hash; low half: index + 1; 0: free. At most half of the slots are used.
    private var slots: Flat<UInt64>
    private(set) var entries: Flat<Slice>
    private(set) var count = 0
    private let seed: UInt64

    /// At most `limit` entries.
    init(limit: Int, seed: UInt64, _ arena: inout Arena) throws(BlockProblem) {
        self.seed = seed
        slots = try arena.flat(64, of: 0)
        entries = try arena.flat(limit)
    }

    /// nil: it would exceed the limit.
    mutating func index(_ key: Slice, _ arena: inout Arena) throws(BlockProblem) -> Int? {
        let hash = Self.hash(key, seed)
        let mask = slots.count &- 1
        var slot = Int(truncatingIfNeeded: hash) & mask
        while slots[slot] != 0 {
            let found = slots[slot]
            if (found ^ hash) &>> 32 == 0 {
                let index = Int(truncatingIfNeeded: found & 0xFFFF_FFFF) &- 1
                if entries[index].isSame(key) { return index }
            }
            slot = (slot &+ 1) & mask
        }
        guard count < entries.count else { return nil }
        entries[count] = key
        count &+= 1
        slots[slot] = hash & ~0xFFFF_FFFF | UInt64(count)
        if count &* 2 > slots.count { try grow(&arena) }
        return count &- 1
    }

    private mutating func grow(_ arena: inout Arena) throws(BlockProblem) {
        let larger: Flat<UInt64> = try arena.flat(slots.count &* 4, of: 0)
        let mask = larger.count &- 1
        for old in 0..<slots.count where slots[old] != 0 {
            let index = Int(truncatingIfNeeded: slots[old] & 0xFFFF_FFFF) &- 1
            let hash = Self.hash(entries[index], seed)
            var slot = Int(truncatingIfNeeded: hash) & mask
            while larger[slot] != 0 { slot = (slot &+ 1) & mask }
            larger[slot] = slots[old]
        }
        slots = larger
    }

    @inline(__always) static func mixed(_ value: UInt64, _ factor: UInt64) -> UInt64 {
        let product = value.multipliedFullWidth(by: factor)
        return product.high ^ product.low
    }

    /// Both factors depend on the seed, so nobody can choose one that is 0.
    @inline(__always) static func hash(_ key: Slice, _ seed: UInt64) -> UInt64 {
        var hash = seed ^ UInt64(truncatingIfNeeded: key.count) &* 0x9E37_79B9_7F4A_7C15
        let lane = (seed &>> 32 | seed &<< 32) ^ 0xD6E8_FEB8_6659_FD93
        guard key.count > 0, var at = unsafe key.start else {
            return mixed(hash ^ 0xA076_1D64_78BD_642F, lane)
        }
        var left = key.count
        while left > 16 {
            hash = unsafe mixed(
                hash ^ at.loadUnaligned(as: UInt64.self),
                lane ^ (at + 8).loadUnaligned(as: UInt64.self))
            unsafe at += 16
            left &-= 16
        }
        var first: UInt64 = 0
        var last: UInt64 = 0
        if left >= 8 {
            first = unsafe at.loadUnaligned(as: UInt64.self)
            last = unsafe (at + (left &- 8)).loadUnaligned(as: UInt64.self)
        } else if left >= 4 {
            first = unsafe UInt64(at.loadUnaligned(as: UInt32.self))
            last = unsafe UInt64((at + (left &- 4)).loadUnaligned(as: UInt32.self))
        } else {
            first = unsafe UInt64(at.load(as: UInt8.self))
            first |= unsafe UInt64((at + left / 2).load(as: UInt8.self)) &<< 8
            last = unsafe UInt64((at + (left &- 1)).load(as: UInt8.self))
        }
        return mixed(hash ^ first ^ 0xA076_1D64_78BD_642F, lane ^ last)
    }
}

/// A number for each hash, initially 0. Two equal hashes are one key. Open addressing.
struct NumberTable {
    /// 0: free.
    private var keys: Flat<UInt64>
    private(set) var values: Flat<UInt64>
    private var count = 0

    init(_ arena: inout Arena) throws(BlockProblem) {
        keys = try arena.flat(256, of: 0)
        values = try arena.flat(256, of: 0)
    }

    /// Where the key's number is in `values`, until the next call.
    mutating func slot(of hash: UInt64, _ arena: inout Arena) throws(BlockProblem) -> Int {
        let key = hash == 0 ? 1 : hash
        if count &* 2 >= keys.count { try grow(&arena) }
        let slot = free(key)
        if keys[slot] == 0 {
            keys[slot] = key
            count &+= 1
        }
        return slot
    }

    /// The key's slot, or the free one that it would get.
    @inline(__always) private func free(_ key: UInt64) -> Int {
        let mask = keys.count &- 1
        var slot = Int(truncatingIfNeeded: key) & mask
        while keys[slot] != 0, keys[slot] != key { slot = (slot &+ 1) & mask }
        return slot
    }

    private mutating func grow(_ arena: inout Arena) throws(BlockProblem) {
        let (oldKeys, oldValues) = (keys, values)
        keys = try arena.flat(oldKeys.count &* 4, of: 0)
        values = try arena.flat(oldKeys.count &* 4, of: 0)
        for old in 0..<oldKeys.count where oldKeys[old] != 0 {
            let slot = free(oldKeys[old])
            keys[slot] = oldKeys[old]
            values[slot] = oldValues[old]
        }
    }
}
