// Parses a printf format directive by directive: what each consumes, and where it is. From this the
// writer learns what to copy and the reader what to print (FORMAT §8.7). It allocates nothing, so
// it may run in a signal handler.
// SAFETY: as FormatCursor.

@safe package struct PrintfFormat {
    /// Source of a width or precision.
    package enum Number: Equatable {
        case none
        case value(Int)
        /// `*`: the argument of that index.
        case argument(Int)
    }

    package struct Directive {
        /// Offset of the `%`, and the offset after the conversion.
        package var start = 0
        package var end = 0
        /// Offset of the flags.
        package var flagsStart = 0
        package var flagsEnd = 0
        package var width = Number.none
        package var precision = Number.none
        /// Index of the argument; -1: it takes none (`%m`).
        package var argument = -1
        /// ArgumentType; ArgumentType.error for `%m`.
        package var type: UInt8 = 0
        package var conversion: UInt8 = 0
    }

    package enum Piece {
        /// Start, end; of `%%` only one byte.
        case literal(Int, Int)
        case directive(Directive)
        /// Not a format: an unknown conversion, `%n`, or numbered and plain arguments mixed.
        case invalid
        case end
    }

    private var cursor: FormatCursor

    @safe package init(_ bytes: UnsafeRawBufferPointer) { cursor = FormatCursor(bytes) }

    package mutating func piece() -> Piece {
        guard !cursor.isAtEnd else { return .end }
        if byte(at) == percent, byte(at + 1) == percent {
            at += 2
            return .literal(at - 1, at)
        }
        if byte(at) == percent { return directive().map(Piece.directive) ?? .invalid }
        let start = at
        while !cursor.isAtEnd, byte(at) != percent { at += 1 }
        return .literal(start, at)
    }

    private var percent: UInt8 { 0x25 }

    private var at: Int {
        get { cursor.at }
        set { cursor.at = newValue }
    }

    private func byte(_ index: Int) -> UInt8 { cursor.byte(index) }

    private mutating func directive() -> Directive? {
        var result = Directive()
        result.start = at
        at += 1
        let own = position()
        result.flagsStart = at
        while isFlag(byte(at)) { at += 1 }
        result.flagsEnd = at
        guard let width = number() else { return nil }
        result.width = width
        if byte(at) == 0x2E {
            at += 1
            guard let precision = number() else { return nil }
            result.precision = precision == .none ? .value(0) : precision
        }
        let length = lengthModifier()
        result.conversion = byte(at)
        guard let type = ArgumentType.of(conversion: byte(at), length) else { return nil }
        at += 1
        result.end = at
        result.type = type
        if type != ArgumentType.error {
            guard let index = cursor.argument(own) else { return nil }
            result.argument = index
        }
        return result
    }

    /// `#0- +'I`
    private func isFlag(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x23, 0x30, 0x2D, 0x20, 0x2B, 0x27, 0x49: true
        default: false
        }
    }

    /// Reads `12$` after the percent sign or an asterisk; returns it counted from 0. Consumes
    /// nothing if no position follows.
    private mutating func position() -> Int? {
        let start = at
        if let value = cursor.digits(), value > 0, byte(at) == 0x24 {
            at += 1
            return value - 1
        }
        at = start
        return nil
    }

    private mutating func number() -> Number? {
        if byte(at) == 0x2A {
            at += 1
            return cursor.argument(position()).map(Number.argument)
        }
        return cursor.digits().map(Number.value) ?? Number.none
    }

    private mutating func lengthModifier() -> ArgumentType.Length {
        switch byte(at) {
        case 0x68:  // h hh
            at += byte(at + 1) == 0x68 ? 2 : 1
            return .int
        case 0x6C:  // l ll
            at += byte(at + 1) == 0x6C ? 2 : 1
            return .long
        case 0x71, 0x6A, 0x7A, 0x5A, 0x74:  // q j z Z t
            at += 1
            return .long
        case 0x4C:  // L
            at += 1
            return .extended
        default:
            return .int
        }
    }
}
