// Little-endian loads from untrusted bytes (FORMAT §1). A load outside the buffer gives zero, and a
// slice outside it gives nil, so nothing read from disk can reach a trap. Callers that must tell
// zero from "not there" check the length first.
// SAFETY: the maker of a view vouches, by `unsafe`, that its memory stays valid for as long as it
// is read. Reading one is @safe here and in every reader: each access is checked against its count.

public enum Bytes {
    @safe @inlinable public static var none: UnsafeRawBufferPointer {
        unsafe UnsafeRawBufferPointer(start: nil, count: 0)
    }

    @safe @inlinable @inline(__always)
    static func load<T: FixedWidthInteger>(_ b: UnsafeRawBufferPointer, _ at: Int, _: T.Type) -> T {
        guard at >= 0, let base = b.baseAddress, b.count &- at >= MemoryLayout<T>.size else {
            return 0
        }
        // SAFETY: at + size lies within the buffer; unaligned loads are allowed.
        return unsafe T(littleEndian: (base + at).loadUnaligned(as: T.self))
    }

    @safe @inlinable public static func u8(_ b: UnsafeRawBufferPointer, _ at: Int) -> UInt8 {
        load(b, at, UInt8.self)
    }

    @safe @inlinable public static func u16(_ b: UnsafeRawBufferPointer, _ at: Int) -> UInt16 {
        load(b, at, UInt16.self)
    }

    @safe @inlinable public static func u32(_ b: UnsafeRawBufferPointer, _ at: Int) -> UInt32 {
        load(b, at, UInt32.self)
    }

    @safe @inlinable public static func u64(_ b: UnsafeRawBufferPointer, _ at: Int) -> UInt64 {
        load(b, at, UInt64.self)
    }

    /// The `count` bytes from `at` on, or nil if they do not lie within `b`.
    @safe @inlinable public static func slice(
        _ b: UnsafeRawBufferPointer, _ at: Int, _ count: Int
    ) -> UnsafeRawBufferPointer? {
        guard at >= 0, count >= 0, at <= b.count, count <= b.count &- at else { return nil }
        guard count > 0, let base = b.baseAddress else { return none }
        return unsafe UnsafeRawBufferPointer(start: base + at, count: count)
    }

    /// Reads a str (FORMAT §1) at `at` and moves past it; nil if it does not fit.
    @safe public static func str(
        _ b: UnsafeRawBufferPointer, _ at: inout Int
    ) -> UnsafeRawBufferPointer? {
        guard let length = varint(b, &at), length <= UInt64(Int32.max) else { return nil }
        guard let part = slice(b, at, Int(length)) else { return nil }
        at &+= part.count
        return unsafe part
    }

    /// Reads a varint (FORMAT §1) at `at` and moves past it; nil if it has no end.
    @safe public static func varint(_ b: UnsafeRawBufferPointer, _ at: inout Int) -> UInt64? {
        var value: UInt64 = 0
        var shift: UInt64 = 0
        while at < b.count, shift < 70 {
            let byte = u8(b, at)
            at &+= 1
            if shift < 64 { value |= UInt64(byte & 0x7F) &<< shift }
            if byte < 0x80 { return value }
            shift &+= 7
        }
        return nil
    }

    @safe @inlinable public static func equal(
        _ a: UnsafeRawBufferPointer, _ b: UnsafeRawBufferPointer
    ) -> Bool {
        unsafe a.count == b.count && a.elementsEqual(b)
    }

    @safe public static func string(_ b: UnsafeRawBufferPointer) -> String {
        unsafe String(decoding: b, as: UTF8.self)
    }

    /// SAFETY: a StaticString that is ASCII points into the program and never goes away.
    @safe @inlinable public static func literal(_ s: StaticString) -> UnsafeRawBufferPointer {
        unsafe UnsafeRawBufferPointer(start: s.utf8Start, count: s.utf8CodeUnitCount)
    }
}
