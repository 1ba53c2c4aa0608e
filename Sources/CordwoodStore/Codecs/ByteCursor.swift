// Reads numbers and strings from untrusted bytes. Every read is checked against the remaining bytes
// and returns nil if it does not fit, so a caller can only find damage, never leave the buffer.

import CordwoodCore

/// SAFETY: points into a buffer of its creator and is valid as long as that buffer.
@safe struct ByteCursor {
    private(set) var position: UnsafeRawPointer
    private(set) var end: UnsafeRawPointer

    @safe init(_ bytes: UnsafeRawBufferPointer) {
        unsafe position = bytes.baseAddress ?? UnsafeRawPointer(bitPattern: 16)!
        unsafe end = position + bytes.count
    }

    var left: Int { unsafe end - position }

    var rest: UnsafeRawBufferPointer {
        unsafe UnsafeRawBufferPointer(start: position, count: left)
    }

    @inline(__always)
    mutating func byte() -> UInt8? {
        guard unsafe position < end else { return nil }
        let value = unsafe position.loadUnaligned(as: UInt8.self)
        unsafe position += 1
        return value
    }

    /// The next byte, which is not consumed.
    @inline(__always)
    var first: UInt8? {
        unsafe position < end ? position.loadUnaligned(as: UInt8.self) : nil
    }

    @inline(__always)
    mutating func word<Word: FixedWidthInteger & BitwiseCopyable>(_: Word.Type) -> Word? {
        guard unsafe end - position >= MemoryLayout<Word>.size else { return nil }
        let value = unsafe Word(littleEndian: position.loadUnaligned(as: Word.self))
        unsafe position += MemoryLayout<Word>.size
        return value
    }

    @inline(__always)
    mutating func varint() -> UInt64? {
        guard unsafe position < end else { return nil }
        let first = unsafe position.loadUnaligned(as: UInt8.self)
        unsafe position += 1
        if first < 0x80 { return UInt64(first) }
        return longVarint(first)
    }

    private mutating func longVarint(_ first: UInt8) -> UInt64? {
        var value = UInt64(first & 0x7f)
        var shift: UInt64 = 7
        while unsafe position < end, shift < 70 {
            let next = unsafe position.loadUnaligned(as: UInt8.self)
            unsafe position += 1
            value |= UInt64(next & 0x7f) &<< shift
            if next < 0x80 { return value }
            shift &+= 7
        }
        return nil
    }

    /// The 64 bits of a signed number.
    @inline(__always)
    mutating func zigzag() -> UInt64? {
        guard let value = varint() else { return nil }
        return (value &>> 1) ^ (0 &- (value & 1))
    }

    @safe @inline(__always)
    mutating func bytes(_ size: UInt64) -> UnsafeRawBufferPointer? {
        guard unsafe size <= UInt64(end - position) else { return nil }
        let found = unsafe UnsafeRawBufferPointer(start: position, count: Int(size))
        unsafe position += Int(size)
        return unsafe found
    }

    /// False: fewer bytes are left.
    @inline(__always)
    mutating func skip(_ size: UInt64) -> Bool {
        guard unsafe size <= UInt64(end - position) else { return false }
        unsafe position += Int(size)
        return true
    }

    @safe mutating func string() -> UnsafeRawBufferPointer? {
        guard let size = varint() else { return nil }
        return bytes(size)
    }

    /// Repairs malformed UTF-8: for names that are only shown.
    mutating func text() -> String? {
        guard let found = string() else { return nil }
        return unsafe String(decoding: found, as: UTF8.self)
    }

    mutating func id() -> LaneID? {
        guard let high = word(UInt64.self), let low = word(UInt64.self) else { return nil }
        return LaneID(high: high, low: low)
    }
}

extension UnsafeRawBufferPointer {
    /// The little-endian word at `offset`. The caller has checked that it lies inside; otherwise
    /// the result is 0.
    @safe func word<Word: FixedWidthInteger & BitwiseCopyable>(_ offset: Int, _: Word.Type) -> Word
    {
        guard offset >= 0, offset <= count - MemoryLayout<Word>.size else { return 0 }
        return unsafe Word(littleEndian: loadUnaligned(fromByteOffset: offset, as: Word.self))
    }

    @safe func id(_ offset: Int) -> LaneID {
        LaneID(high: word(offset, UInt64.self), low: word(offset + 8, UInt64.self))
    }
}
