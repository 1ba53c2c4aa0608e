// Arguments of deferred records (FORMAT §8.7): the type of an argument in the record, and the bytes
// before its content.

public enum ArgumentType {
    /// 4 bytes.
    public static let int: UInt8 = 1
    /// 8 bytes.
    public static let long: UInt8 = 2
    /// 8 bytes, IEEE 754.
    public static let double: UInt8 = 3
    /// 16 bytes: the format of a `long double` on the writer's processor.
    public static let extended: UInt8 = 4
    /// 8 bytes.
    public static let pointer: UInt8 = 5
    /// u32 length word, bytes.
    public static let text: UInt8 = 6
    /// u32 length word, units of 4 bytes.
    public static let wide: UInt8 = 7
    /// 4 bytes: errno at the call, stored after the arguments.
    public static let error: UInt8 = 8
    /// 1 byte, 0 or 1.
    public static let bool: UInt8 = 9
    /// 1 byte.
    public static let char: UInt8 = 10
    /// 4 bytes.
    public static let uint: UInt8 = 11
    /// 8 bytes.
    public static let ulong: UInt8 = 12
    /// 4 bytes, IEEE 754.
    public static let float: UInt8 = 13

    /// The most arguments of one call site.
    static let countMax = 32

    /// True for integers other than bool and characters.
    static func isInteger(_ type: UInt8) -> Bool {
        type == int || type == long || type == uint || type == ulong
    }

    enum Length { case int, long, extended }

    /// Bytes in the record, excluding a string's content; 0: an unknown type.
    package static func fixedBytes(_ type: UInt8) -> Int {
        switch type {
        case bool, char: 1
        case int, text, wide, error, uint, float: 4
        case long, double, pointer, ulong: 8
        case extended: 16
        default: 0
        }
    }

    /// The stored type of an argument of that class (CW_ARG_… of the header); nil: no such class.
    static func of(class number: UInt8) -> UInt8? {
        switch number {
        case 1: int
        case 2: long
        case 3: double
        case 4: extended
        case 5: pointer
        case 6: bool
        case 7: char
        case 8: uint
        case 9: ulong
        case 10: float
        case 11: text
        default: nil
        }
    }

    /// The type that a conversion takes; nil: unknown, or `%n`.
    static func of(conversion: UInt8, _ length: Length) -> UInt8? {
        switch conversion {
        case 0x64, 0x69, 0x6F, 0x75, 0x78, 0x58, 0x62, 0x42:  // d i o u x X b B
            length == .int ? int : long
        case 0x61, 0x41, 0x65, 0x45, 0x66, 0x46, 0x67, 0x47:  // a A e E f F g G
            length == .extended ? extended : double
        case 0x63, 0x43: int  // c C
        case 0x73: length == .long ? wide : text  // s
        case 0x53: wide  // S
        case 0x70: pointer  // p
        case 0x6D: error  // m
        default: nil
        }
    }
}

/// The length word of a string.
public enum LengthWord {
    /// NULL was passed instead of a string.
    public static let null: UInt32 = 0xFFFF_FFFF
    /// Bit: the string was cut.
    public static let cut: UInt32 = 0x8000_0000
}

/// Payload of a site's catalog entry (FORMAT §5).
public enum SiteLayout {
    public static let line = 0
    public static let level = 4
    public static let argumentCount = 5
    public static let style = 6
    public static let strings = 8

    /// The format is the text. 0 means printf.
    public static let styleText: UInt8 = 1
    /// std::format.
    public static let styleBraces: UInt8 = 2
    /// std::format, except where Swift's interpolation prints differently.
    public static let styleSwift: UInt8 = 3
}

/// Reads a format's numbers and assigns its arguments: all by position, or all by number.
/// SAFETY: `bytes` stay valid while the value is used; every index is compared with their count.
@safe struct FormatCursor {
    private let bytes: UnsafeRawBufferPointer
    var at = 0
    private var next = 0
    private var isNumbered: Bool?

    @safe init(_ bytes: UnsafeRawBufferPointer) { unsafe self.bytes = unsafe bytes }

    var isAtEnd: Bool { unsafe at >= bytes.count }

    /// The byte at the index, or 0 past the end.
    func byte(_ index: Int) -> UInt8 { unsafe index < bytes.count ? bytes[index] : 0 }

    /// Reads a number up to INT32_MAX; returns nil and consumes nothing if there is no digit.
    mutating func digits() -> Int? {
        guard byte(at) >= 0x30, byte(at) <= 0x39 else { return nil }
        var value = 0
        while byte(at) >= 0x30, byte(at) <= 0x39 {
            value = min(value * 10 + Int(byte(at) - 0x30), Int(Int32.max))
            at += 1
        }
        return value
    }

    /// The named index (from 0), or that of the next argument. nil: one format has both kinds, or
    /// the index exceeds the limit.
    mutating func argument(_ named: Int?) -> Int? {
        guard isNumbered ?? (named != nil) == (named != nil) else { return nil }
        isNumbered = named != nil
        let index = named ?? next
        if named == nil { next += 1 }
        return index < ArgumentType.countMax ? index : nil
    }
}
