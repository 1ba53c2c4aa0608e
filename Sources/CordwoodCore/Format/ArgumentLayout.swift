// Arguments of deferred records (FORMAT §8.7): what type an argument has in the record, and the
// bytes before it.

public enum ArgumentType {
    /// 4 bytes.
    public static let int: UInt8 = 1
    /// 8 bytes.
    public static let long: UInt8 = 2
    /// 8 bytes, IEEE 754.
    public static let double: UInt8 = 3
    /// 16 bytes: as the writer's processor keeps a `long double`.
    public static let extended: UInt8 = 4
    /// 8 bytes.
    public static let pointer: UInt8 = 5
    /// u32 length word, bytes.
    public static let text: UInt8 = 6
    /// u32 length word, units of 4 bytes.
    public static let wide: UInt8 = 7
    /// 4 bytes: errno of the call, behind the arguments.
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

    /// Arguments of one place.
    static let countMax = 32

    /// An integer that is no bool and no character.
    static func isInteger(_ type: UInt8) -> Bool {
        type == int || type == long || type == uint || type == ulong
    }

    enum Length { case int, long, extended }

    /// Bytes in the record, a string's content aside; 0: no type of ours.
    package static func fixedBytes(_ type: UInt8) -> Int {
        switch type {
        case bool, char: 1
        case int, text, wide, error, uint, float: 4
        case long, double, pointer, ulong: 8
        case extended: 16
        default: 0
        }
    }

    /// What an argument of that class of the header (CW_ARG_…) is kept as; nil: no such class.
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

    /// What a conversion takes; nil: unknown, or `%n`.
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
    /// NULL instead of a string.
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

    /// The format is the text; 0: as printf.
    public static let styleText: UInt8 = 1
    /// As std::format.
    public static let styleBraces: UInt8 = 2
    /// As std::format, but what Swift's interpolation shows otherwise.
    public static let styleSwift: UInt8 = 3
}

/// Reads a format's numbers, and says which argument comes where: all by position, or all by
/// number. SAFETY: `bytes` hold while the value is used; every index is compared with their count.
@safe struct FormatCursor {
    private let bytes: UnsafeRawBufferPointer
    var at = 0
    private var next = 0
    private var isNumbered: Bool?

    @safe init(_ bytes: UnsafeRawBufferPointer) { unsafe self.bytes = unsafe bytes }

    var isAtEnd: Bool { unsafe at >= bytes.count }

    /// 0 behind the end.
    func byte(_ index: Int) -> UInt8 { unsafe index < bytes.count ? bytes[index] : 0 }

    /// Up to INT32_MAX; nil, and nothing consumed, where there is no digit.
    mutating func digits() -> Int? {
        guard byte(at) >= 0x30, byte(at) <= 0x39 else { return nil }
        var value = 0
        while byte(at) >= 0x30, byte(at) <= 0x39 {
            value = min(value * 10 + Int(byte(at) - 0x30), Int(Int32.max))
            at += 1
        }
        return value
    }

    /// The index named (from 0), or of the argument that comes now; nil: both kinds in one format,
    /// or beyond the most there may be.
    mutating func argument(_ named: Int?) -> Int? {
        guard isNumbered ?? (named != nil) == (named != nil) else { return nil }
        isNumbered = named != nil
        let index = named ?? next
        if named == nil { next += 1 }
        return index < ArgumentType.countMax ? index : nil
    }
}
