// Character classes of ASCII. Functions for inner loops of other modules are public and inlinable,
// because a package function is a call there. No state: any thread.

public enum ASCII {
    @inlinable @inline(__always)
    public static func lower(_ byte: UInt8) -> UInt8 { byte &- 0x41 < 26 ? byte | 0x20 : byte }
    @inlinable @inline(__always)
    public static func isUpper(_ byte: UInt8) -> Bool { byte &- 0x41 < 26 }
    @inlinable @inline(__always)
    public static func isLower(_ byte: UInt8) -> Bool { byte &- 0x61 < 26 }
    @inlinable @inline(__always)
    public static func isDigit(_ byte: UInt8) -> Bool { byte &- 0x30 < 10 }
    @inlinable @inline(__always)
    public static func isBlank(_ byte: UInt8) -> Bool {
        byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09
    }
    /// Letters and digits.
    @inlinable @inline(__always)
    public static func isAlphanumeric(_ byte: UInt8) -> Bool {
        isUpper(byte) || isLower(byte) || isDigit(byte)
    }
    /// Letters, digits, and `_`.
    @inlinable @inline(__always)
    public static func isWordByte(_ byte: UInt8) -> Bool { isAlphanumeric(byte) || byte == 0x5F }
    /// 255: not a hex digit.
    @inlinable @inline(__always)
    public static func hex(_ byte: UInt8) -> UInt8 {
        if isDigit(byte) { return byte &- 0x30 }
        let letter = byte | 0x20
        return letter &- 0x61 < 6 ? letter &- 0x61 &+ 10 : 255
    }
    /// Of 0…15, in lower case.
    @inlinable @inline(__always)
    public static func hexDigit(_ nibble: UInt8) -> UInt8 {
        nibble < 10 ? 0x30 &+ nibble : 0x57 &+ nibble
    }

    /// Ignores the case of letters.
    package static func isSame(_ one: [UInt8], _ other: [UInt8]) -> Bool {
        one.count == other.count && zip(one, other).allSatisfy { lower($0) == lower($1) }
    }

    /// Without surrounding blanks.
    package static func trimmed(_ bytes: some Collection<UInt8>) -> String {
        let start = bytes.drop(while: isBlank)
        let end = start.reversed().drop(while: isBlank)
        return String(decoding: end.reversed(), as: UTF8.self)
    }
}
