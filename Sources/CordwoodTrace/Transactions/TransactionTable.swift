// An engine's data about its transactions in this process: the names that the host registered, and
// the number of events written. Shared by an engine and its handles, which hold it; a forked child
// has a copy. Any threads read and never wait; one thread writes at a time.
// SAFETY: the slots, slotsMax of them, are allocated with the first name and freed with the object;
// a slot's index is taken below slotsMax; a name is copied word by word and trusted only if the
// count around it has not changed.

import CShims
import CordwoodCore

@safe package final class TransactionTable: @unchecked Sendable {
    package static let namesMax = 4_096
    package static let nameBytesMax = 255
    /// Marks the name of a use case itself.
    package static let noEvent = Int32.min

    /// Twice the limit of names, so that a search ends soon.
    private static let slotsMax = 8_192
    /// u32 sequence (odd: being written), u32 bytes + 1 (0: the slot is free), u64 key, the name.
    private static let slotBytes = 272
    private static let nameAt = 16
    private static let triesMax = 64

    /// u64 events, u32 names in use, at slotsAt the address of the slots (0: none yet).
    private let words: UnsafeMutableRawPointer
    private static let slotsAt = 16

    package init() {
        unsafe words = .allocate(byteCount: 24, alignment: 16)
        unsafe words.initializeMemory(as: UInt64.self, repeating: 0, count: 3)
    }

    deinit {
        unsafe Memory.free(slots)
        unsafe words.deallocate()
    }

    /// nil: no name was ever set.
    private var slots: UnsafeMutableRawPointer? {
        // ORDER: acquire. A thread that finds the slots finds them empty, or written to (A32).
        let word = unsafe cwa_load_acquire_u64(words + TransactionTable.slotsAt)
        return unsafe UnsafeMutableRawPointer(bitPattern: UInt(word))
    }

    /// Called late, because most engines never name anything. False: no memory. One caller at a
    /// time.
    private func makeSlots() -> Bool {
        if unsafe slots != nil { return true }
        // The system commits a page when a name is written to it.
        let made = unsafe Memory.allocateZeroed(
            TransactionTable.slotsMax * TransactionTable.slotBytes)
        // ORDER: release. Pairs with `slots` (A32).
        unsafe cwa_store_release_u64(
            words + TransactionTable.slotsAt, UInt64(UInt(bitPattern: made)))
        return unsafe made != nil
    }

    // MARK: Events

    /// ORDER: relaxed. A count that the background reads now and then (A32).
    package var events: UInt64 { unsafe cwa_load_relaxed_u64(words) }

    func countEvent() { _ = unsafe cwa_add_u64(words, 1) }

    // MARK: Names

    /// False: no names are set.
    var hasNames: Bool { unsafe cwa_load_acquire_u32(words + 8) != 0 }

    /// Copies a name, at most nameBytesMax, and returns its length; 0: it has none.
    package func name(_ usecase: Int32, _ event: Int32, into out: UnsafeMutableRawPointer) -> Int {
        guard let slot = unsafe find(key(usecase, event)) else { return 0 }
        for _ in 0..<TransactionTable.triesMax {
            // ORDER: acquire, as for the words of the name: they belong to one write if the count
            // before and after them is even and equal (A32).
            let before = unsafe cwa_load_acquire_u32(slot)
            guard before & 1 == 0 else { continue }
            let bytes = unsafe min(
                Int(cwa_load_acquire_u32(slot + 4)) &- 1, TransactionTable.nameBytesMax)
            var at = 0
            while at < bytes {
                let word = unsafe cwa_load_acquire_u64(slot + TransactionTable.nameAt + at)
                unsafe out.storeBytes(of: word, toByteOffset: at, as: UInt64.self)
                at &+= 8
            }
            if unsafe cwa_load_relaxed_u32(slot) == before { return max(0, bytes) }
        }
        return 0
    }

    /// Room that `name` may write to.
    package static let nameRoom = 256

    /// Empty removes it. False: too many names. One caller at a time.
    package func set(_ usecase: Int32, _ event: Int32, _ name: [UInt8]) -> Bool {
        let key = key(usecase, event)
        if let slot = unsafe find(key) {
            let sequence = unsafe cwa_load_relaxed_u32(slot)
            let before = unsafe cwa_load_relaxed_u32(slot + 4) > 1
            let count = unsafe cwa_load_relaxed_u32(words + 8)
            if !before, !name.isEmpty, count >= UInt32(TransactionTable.namesMax) { return false }
            unsafe cwa_store_relaxed_u32(slot, sequence &+ 1)
            cwa_fence_full()
            unsafe write(name, slot)
            cwa_fence_full()
            unsafe cwa_store_release_u32(slot, sequence &+ 2)
            if before != !name.isEmpty {
                unsafe cwa_store_release_u32(words + 8, name.isEmpty ? count - 1 : count + 1)
            }
            return true
        }
        if name.isEmpty { return true }
        guard makeSlots() else { return false }
        let count = unsafe cwa_load_relaxed_u32(words + 8)
        guard count < UInt32(TransactionTable.namesMax),
            let slot = unsafe find(key, orFree: true)
        else { return false }
        unsafe cwa_store_relaxed_u64(slot + 8, key)
        unsafe write(name, slot)
        unsafe cwa_store_release_u32(words + 8, count + 1)
        return true
    }

    /// Writes the length last: it puts the slot in use.
    private func write(_ name: [UInt8], _ slot: UnsafeMutableRawPointer) {
        var at = 0
        while at < name.count {
            var word: UInt64 = 0
            for index in (at..<min(at + 8, name.count)).reversed() {
                word = word << 8 | UInt64(name[index])
            }
            unsafe cwa_store_relaxed_u64(slot + TransactionTable.nameAt + at, word)
            at += 8
        }
        // ORDER: release. A thread that finds the slot in use finds its key and name (A32).
        unsafe cwa_store_release_u32(slot + 4, UInt32(name.count) + 1)
    }

    private func key(_ usecase: Int32, _ event: Int32) -> UInt64 {
        UInt64(UInt32(bitPattern: usecase)) << 32 | UInt64(UInt32(bitPattern: event))
    }

    /// The slot of that key; nil: it has none. `orFree`: returns a free slot for it then.
    private func find(_ key: UInt64, orFree: Bool = false) -> UnsafeMutableRawPointer? {
        guard let memory = unsafe slots else { return nil }
        var index = Int((key &* 0x9E37_79B9_7F4A_7C15) >> 51)
        for _ in 0..<TransactionTable.slotsMax {
            let slot = unsafe memory + index * TransactionTable.slotBytes
            // ORDER: acquire. Pairs with `write` (A32).
            if unsafe cwa_load_acquire_u32(slot + 4) == 0 { return orFree ? unsafe slot : nil }
            if unsafe cwa_load_relaxed_u64(slot + 8) == key { return unsafe slot }
            index = (index + 1) & (TransactionTable.slotsMax - 1)
        }
        return nil
    }
}
