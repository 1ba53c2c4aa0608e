// A reusable raw buffer that grows: columns, payloads and frames are built in it. It owns its
// memory; one thread at a time. It never traps: when memory runs out it drops appended bytes and
// sets `failed`, which the writer checks before it trusts a block.
// SAFETY: `base` is from malloc and moves only when the buffer grows, which invalidates views;
// every store follows a `reserve` or a check against `count`.

import CordwoodCore
import Glibc

@safe struct GrowingBytes: ~Copyable {
    private(set) var base: UnsafeMutableRawPointer
    private(set) var count = 0
    private(set) var capacity: Int
    /// Sticky: memory ran out, and the content must not be used.
    private(set) var failed = false

    init(capacity: Int = 4_096) {
        if let made = unsafe malloc(capacity) {
            unsafe base = made
            self.capacity = capacity
        } else {
            unsafe base = UnsafeMutableRawPointer(bitPattern: 16)!
            self.capacity = 0
        }
    }

    deinit {
        if capacity > 0 { unsafe free(base) }
    }

    var bytes: UnsafeRawBufferPointer { unsafe UnsafeRawBufferPointer(start: base, count: count) }

    mutating func removeAll() { count = 0 }

    /// True if `more` bytes can be written after `count`.
    @inline(__always)
    mutating func reserve(_ more: Int) -> Bool {
        if capacity &- count >= more { return true }
        return grow(more)
    }

    @inline(never)
    private mutating func grow(_ more: Int) -> Bool {
        let (needed, overflow) = count.addingReportingOverflow(more)
        if overflow || failed {
            failed = true
            return false
        }
        let wanted = max(needed, capacity &* 2, 4_096)
        guard let made = unsafe realloc(capacity > 0 ? base : nil, wanted) else {
            failed = true
            return false
        }
        unsafe base = made
        capacity = wanted
        return true
    }

    /// Claims `size` bytes for the caller to fill. nil: out of memory.
    mutating func claim(_ size: Int) -> UnsafeMutableRawPointer? {
        guard reserve(size) else { return nil }
        let start = unsafe base + count
        count &+= size
        return unsafe start
    }

    /// Sets the size after the caller has written past `count`; at most the capacity.
    mutating func resize(_ size: Int) { count = min(max(size, 0), capacity) }

    @inline(__always)
    mutating func append(byte: UInt8) {
        guard reserve(1) else { return }
        unsafe base.storeBytes(of: byte, toByteOffset: count, as: UInt8.self)
        count &+= 1
    }

    @safe @inline(__always)
    mutating func append(_ source: UnsafeRawBufferPointer) {
        guard let start = source.baseAddress, reserve(source.count) else { return }
        unsafe memcpy(base + count, start, source.count)
        count &+= source.count
    }

    @inline(__always)
    mutating func append<Word: FixedWidthInteger>(word: Word) {
        let size = MemoryLayout<Word>.size
        guard reserve(size) else { return }
        unsafe base.storeBytes(of: word.littleEndian, toByteOffset: count, as: Word.self)
        count &+= size
    }

    /// FORMAT §1.
    @inline(__always)
    mutating func append(varint value: UInt64) {
        guard reserve(10) else { return }
        var rest = value
        while rest >= 0x80 {
            unsafe base.storeBytes(
                of: UInt8(truncatingIfNeeded: rest) | 0x80, toByteOffset: count,
                as: UInt8.self)
            count &+= 1
            rest &>>= 7
        }
        unsafe base.storeBytes(
            of: UInt8(truncatingIfNeeded: rest), toByteOffset: count, as: UInt8.self)
        count &+= 1
    }

    /// FORMAT §1; takes the signed number as its 64 bits.
    @inline(__always)
    mutating func append(zigzag bits: UInt64) {
        let signed = Int64(bitPattern: bits)
        append(varint: UInt64(bitPattern: (signed &<< 1) ^ (signed &>> 63)))
    }

    /// A str of FORMAT §1, cut at `max` bytes.
    @safe mutating func append(string: UnsafeRawBufferPointer, max: Int) {
        let kept = unsafe UnsafeRawBufferPointer(rebasing: string.prefix(max))
        append(varint: UInt64(kept.count))
        append(kept)
    }

    mutating func append(string: String, max: Int) {
        var copy = string
        copy.withUTF8 { append(string: UnsafeRawBufferPointer($0), max: max) }
    }

    mutating func append(id: LaneID) {
        append(word: id.high)
        append(word: id.low)
    }

    /// Overwrites the word at `offset`; does nothing outside `count`.
    mutating func store<Word: FixedWidthInteger>(_ word: Word, at offset: Int) {
        guard offset >= 0, offset &+ MemoryLayout<Word>.size <= count else { return }
        unsafe base.storeBytes(of: word.littleEndian, toByteOffset: offset, as: Word.self)
    }
}
