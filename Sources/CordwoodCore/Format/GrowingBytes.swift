// Bytes that grow: columns, payloads, frames and fields are built in them, in the encodings of
// FORMAT §1. A buffer owns its memory; one thread at a time. It never traps: when memory runs out
// it drops the bytes that do not fit and sets `failed`, which the owner checks before it uses the
// content.
// SAFETY: `base` is from Memory, or points nowhere while `capacity` is 0. It moves only when the
// buffer grows or is cleared, which invalidates views; every store follows a `reserve` or a check
// against `count`.

@safe public struct GrowingBytes: ~Copyable {
    public private(set) var base = unsafe UnsafeMutableRawPointer(bitPattern: 16)!
    @usableFromInline var used = 0
    public private(set) var capacity = 0
    /// Memory ran out since the buffer was made or cleared: bytes are missing.
    public private(set) var failed = false

    private static let bytesMax = 1 << 31

    public init() {}

    deinit { if capacity > 0 { unsafe Memory.free(base) } }

    @inlinable public var count: Int { used }

    /// Valid until the next change.
    @inlinable public var bytes: UnsafeRawBufferPointer {
        unsafe UnsafeRawBufferPointer(start: base, count: used)
    }

    @inlinable public mutating func removeAll() { used = 0 }

    /// Empties the buffer and resets `failed`. Frees the memory if it exceeds `bytesMax` or ran
    /// out.
    @inlinable public mutating func clear(keeping bytesMax: Int) {
        used = 0
        if failed || capacity > bytesMax { release() }
    }

    @usableFromInline mutating func release() {
        if capacity > 0 { unsafe Memory.free(base) }
        capacity = 0
        failed = false
    }

    /// True if `more` bytes can be written after `count`.
    @inlinable @inline(__always)
    public mutating func reserve(_ more: Int) -> Bool {
        if capacity &- used >= more { return true }
        return grow(more)
    }

    @usableFromInline @inline(never)
    mutating func grow(_ more: Int) -> Bool {
        let (needed, overflow) = used.addingReportingOverflow(more)
        let wanted = max(needed, capacity &* 2, 512)
        guard !overflow, wanted <= GrowingBytes.bytesMax,
            let made = unsafe Memory.resize(capacity > 0 ? base : nil, to: wanted)
        else {
            failed = true
            return false
        }
        unsafe base = made
        capacity = wanted
        return true
    }

    /// The owner lost bytes that it kept elsewhere.
    package mutating func fail() { failed = true }

    /// Claims `size` bytes for the caller to fill. nil: out of memory.
    @inlinable public mutating func claim(_ size: Int) -> UnsafeMutableRawPointer? {
        guard reserve(size) else { return nil }
        let start = unsafe base + used
        used &+= size
        return unsafe start
    }

    /// Sets the size after the caller has written past `count`; at most the capacity.
    @inlinable public mutating func resize(_ size: Int) { used = min(max(size, 0), capacity) }

    @inlinable @inline(__always)
    public mutating func append(_ byte: UInt8) {
        guard reserve(1) else { return }
        unsafe base.storeBytes(of: byte, toByteOffset: used, as: UInt8.self)
        used &+= 1
    }

    @safe @inlinable @inline(__always)
    public mutating func append(_ source: UnsafeRawBufferPointer) {
        guard let start = source.baseAddress, reserve(source.count) else { return }
        unsafe (base + used).copyMemory(from: start, byteCount: source.count)
        used &+= source.count
    }

    /// Inlined, so that a short word's bytes are stored and not copied.
    @inlinable @inline(__always)
    public mutating func append(_ word: StaticString) { append(Bytes.literal(word)) }

    @inlinable @inline(__always)
    public mutating func append<Word: FixedWidthInteger>(word: Word) {
        let size = MemoryLayout<Word>.size
        guard reserve(size) else { return }
        unsafe base.storeBytes(of: word.littleEndian, toByteOffset: used, as: Word.self)
        used &+= size
    }

    @inlinable @inline(__always)
    public mutating func append(varint value: UInt64) {
        guard reserve(10) else { return }
        var rest = value
        var target = unsafe base + used
        while rest >= 0x80 {
            unsafe target.storeBytes(of: UInt8(truncatingIfNeeded: rest) | 0x80, as: UInt8.self)
            unsafe target += 1
            rest &>>= 7
        }
        unsafe target.storeBytes(of: UInt8(truncatingIfNeeded: rest), as: UInt8.self)
        used = unsafe target + 1 - base
    }

    /// Takes the signed number as its 64 bits.
    @inlinable @inline(__always)
    public mutating func append(zigzag bits: UInt64) {
        let signed = Int64(bitPattern: bits)
        append(varint: UInt64(bitPattern: (signed &<< 1) ^ (signed &>> 63)))
    }

    /// A str, cut at `max` bytes.
    @safe public mutating func append(string: UnsafeRawBufferPointer, max: Int) {
        let kept = unsafe UnsafeRawBufferPointer(rebasing: string.prefix(max))
        append(varint: UInt64(kept.count))
        append(kept)
    }

    public mutating func append(string: String, max: Int) {
        var copy = string
        copy.withUTF8 { append(string: UnsafeRawBufferPointer($0), max: max) }
    }

    public mutating func append(id: LaneID) {
        append(word: id.high)
        append(word: id.low)
    }

    /// Overwrites the word at `offset`; does nothing outside `count`.
    @inlinable
    public mutating func store<Word: FixedWidthInteger>(_ word: Word, at offset: Int) {
        guard offset >= 0, offset &+ MemoryLayout<Word>.size <= used else { return }
        unsafe base.storeBytes(of: word.littleEndian, toByteOffset: offset, as: Word.self)
    }
}
