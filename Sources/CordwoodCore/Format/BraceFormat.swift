// Parses a std::format string piece by piece (FORMAT §8.7, style 2). With it the writer checks that
// the format fits its arguments, and the reader learns what to print. It allocates nothing.
// SAFETY: as FormatCursor.

@safe package struct BraceFormat {
    /// A width or precision.
    package enum Number: Equatable {
        case none
        case value(Int)
        case argument(Int)
    }

    package enum Align { case none, left, right, center }

    package struct Field {
        package var argument = 0
        /// Start of the fill character; if the range is empty, a space.
        package var fillStart = 0
        package var fillEnd = 0
        package var align = Align.none
        /// `+`, `-` or a space.
        package var sign: UInt8 = 0x2D
        package var isAlternate = false
        package var isZeroPadded = false
        package var width = Number.none
        package var precision = Number.none
        /// 0 if the field names no type.
        package var type: UInt8 = 0

        /// True if an argument of that type can be shown this way; for `c` and an integer, the
        /// value decides (BraceText).
        func shows(_ argument: UInt8) -> Bool {
            switch argument {
            case ArgumentType.text: return type == 0 || type == 0x73 || type == 0x3F  // s ?
            case ArgumentType.pointer: return type == 0 || type == 0x70 || type == 0x50  // p P
            case ArgumentType.double, ArgumentType.float, ArgumentType.extended:
                switch type {
                case 0, 0x61, 0x41, 0x65, 0x45, 0x66, 0x46, 0x67, 0x47: return true  // a e f g
                default: return false
                }
            case ArgumentType.bool where type == 0x73: return true
            case ArgumentType.char where type == 0x3F: return true
            default:
                if type == 0, argument == ArgumentType.bool || argument == ArgumentType.char {
                    return true
                }
                guard precision == .none else { return false }
                switch type {
                case 0, 0x62, 0x42, 0x63, 0x64, 0x6F, 0x78, 0x58: return true  // b B c d o x X
                default: return false
                }
            }
        }
    }

    package enum Piece {
        /// Start, end; of a doubled brace only one byte.
        case literal(Int, Int)
        case field(Field)
        case invalid
        case end
    }

    private var cursor: FormatCursor

    @safe package init(_ bytes: UnsafeRawBufferPointer) { cursor = FormatCursor(bytes) }

    private var at: Int {
        get { cursor.at }
        set { cursor.at = newValue }
    }

    private func byte(_ index: Int) -> UInt8 { cursor.byte(index) }

    package mutating func piece() -> Piece {
        guard !cursor.isAtEnd else { return .end }
        let open: UInt8 = 0x7B
        let close: UInt8 = 0x7D
        if byte(at) == open || byte(at) == close, byte(at + 1) == byte(at) {
            at += 2
            return .literal(at - 1, at)
        }
        if byte(at) == close { return .invalid }
        if byte(at) == open {
            at += 1
            return field().map(Piece.field) ?? .invalid
        }
        let start = at
        while !cursor.isAtEnd, byte(at) != open, byte(at) != close { at += 1 }
        return .literal(start, at)
    }

    private mutating func field() -> Field? {
        var field = Field()
        guard let argument = cursor.argument(cursor.digits()) else { return nil }
        field.argument = argument
        if byte(at) == 0x3A {
            at += 1
            guard spec(&field) else { return nil }
        }
        guard byte(at) == 0x7D else { return nil }
        at += 1
        return field
    }

    private mutating func spec(_ field: inout Field) -> Bool {
        let character = scalarBytes(at)
        if let align = align(byte(at + character)), character > 0, byte(at) != 0x7B,
            byte(at) != 0x7D
        {
            (field.fillStart, field.fillEnd, field.align) = (at, at + character, align)
            at += character + 1
        } else if let align = align(byte(at)) {
            field.align = align
            at += 1
        }
        if byte(at) == 0x2B || byte(at) == 0x2D || byte(at) == 0x20 {
            field.sign = byte(at)
            at += 1
        }
        if byte(at) == 0x23 {
            field.isAlternate = true
            at += 1
        }
        if byte(at) == 0x30 {
            field.isZeroPadded = true
            at += 1
        }
        guard let width = number() else { return false }
        field.width = width
        if byte(at) == 0x2E {
            at += 1
            guard let precision = number(), precision != .none else { return false }
            field.precision = precision
        }
        if byte(at) == 0x4C { at += 1 }
        if byte(at) != 0x7D {
            field.type = byte(at)
            at += 1
        }
        return true
    }

    private func align(_ byte: UInt8) -> Align? {
        switch byte {
        case 0x3C: .left
        case 0x3E: .right
        case 0x5E: .center
        default: nil
        }
    }

    /// Length of the UTF-8 character there.
    private func scalarBytes(_ index: Int) -> Int {
        switch byte(index) {
        case 0: 0
        case 0xC0..<0xE0: 2
        case 0xE0..<0xF0: 3
        case 0xF0...0xFF: 4
        default: 1
        }
    }

    private mutating func number() -> Number? {
        guard byte(at) == 0x7B else { return cursor.digits().map(Number.value) ?? Number.none }
        at += 1
        guard let argument = cursor.argument(cursor.digits()), byte(at) == 0x7D else { return nil }
        at += 1
        return .argument(argument)
    }
}
