// Whether a text made from a format and arguments (FORMAT §8.7) can contain the wanted bytes, and
// what its strings and numbers must then contain. The format becomes literals, strings, numbers,
// and runs of the bytes that other arguments are printed with; the wanted bytes are laid over them
// in every way. Made for one format; one thread.
// SAFETY: views are the caller's, read below their count and not kept.

import CordwoodCore

struct FormatSearch {
    /// A part of a text.
    private enum Token {
        /// From, up to (offsets).
        case literal(Int, Int)
        /// Any number of these bytes, in any order.
        case some(ByteSet)
        /// A string argument, unchanged.
        case string
        /// A number printed without the C library, filled with zeros up to so many characters.
        case number(Int, NumberForm, width: Int)
        /// The text of NULL, or a part of it.
        case null
    }

    /// What the arguments must contain so that the wanted bytes are at that place.
    private enum Need: Equatable {
        case nothing
        /// A NULL string: its length.
        case null
        /// The wanted bytes from, up to.
        case piece(Int, Int)
        /// The number of that token contains the wanted bytes from, up to, at that place.
        case number(Int, NumberPlace, Int, Int)

        var weight: Int {
            switch self {
            case .nothing: 0
            case .null: 1
            case .piece(let from, let to), .number(_, _, let from, let to): to &- from &+ 1
            }
        }
    }

    /// The text so far ends with the first `count` wanted bytes.
    private struct State: Equatable {
        var count: Int
        var need: Need
    }

    /// With more states than this, the search gives up.
    private static let statesMax = 256
    private static let needsMax = 16
    /// `NumberNeed` looks only at numbers of at most so many characters.
    private static let widthMax = 20

    private let wanted: [UInt8]
    private var states: [State] = []
    private var found: [Need] = []
    private var isUnclear = false

    /// `types`: the types of the arguments.
    @safe static func odds(
        _ wanted: [UInt8], of format: UnsafeRawBufferPointer, style: UInt8,
        types: UnsafeRawBufferPointer
    ) -> TextSearch.Odds {
        // If the arguments do not fit, the format itself is the text.
        if TextSearch(wanted).isIn(format) { return .any }
        if style == SiteLayout.styleText { return .never }
        for index in 0..<types.count {
            switch Bytes.u8(types, index) {
            // The system's words for an error; a character.
            case ArgumentType.error, ArgumentType.char: return .any
            default: break
            }
        }
        guard let tokens = tokens(format, style, types, wanted) else { return .any }
        var search = FormatSearch(wanted: wanted)
        for index in tokens.indices {
            search.step(index, tokens, format)
            if search.isUnclear { return .any }
        }
        return search.odds(tokens, unsafe Array(types))
    }

    private init(wanted: [UInt8]) { self.wanted = wanted }

    private func odds(_ tokens: [Token], _ types: [UInt8]) -> TextSearch.Odds {
        if found.contains(.nothing) || found.count > Self.needsMax { return .any }
        if found.isEmpty { return .never }
        var pieces: [TextSearch] = []
        var numbers: [NumberNeed] = []
        for need in found {
            switch need {
            case .nothing: return .any
            case .null: pieces.append(TextSearch([0xFF, 0xFF, 0xFF, 0xFF]))
            case .piece(let from, let to): pieces.append(TextSearch(Array(wanted[from..<to])))
            case .number(let token, let place, let from, let to):
                guard case .number(let argument, let form, let width) = tokens[token] else {
                    return .any
                }
                numbers.append(
                    NumberNeed(
                        argument, types, form, width: width, place, Array(wanted[from..<to])))
            }
        }
        return .with(pieces, numbers)
    }

    // MARK: Steps

    @safe private mutating func step(
        _ index: Int, _ tokens: [Token], _ format: UnsafeRawBufferPointer
    ) {
        switch tokens[index] {
        case .literal(let from, let to):
            for at in from..<to { step(Bytes.u8(format, at)) }
        case .some(let bytes): run(bytes, .nothing)
        case .null: run(ByteSet("(null)"), .null)
        case .number(_, let form, _): number(index, Self.bytes(of: form))
        case .string:
            let follow = Self.first(tokens[(index + 1)...], format)
            for state in states + [State(count: 0, need: .nothing)] {
                found(Self.more(state.need, .piece(state.count, wanted.count)))
                for end in state.count + 1..<max(wanted.count, state.count + 1)
                where follow.has(wanted[end]) {
                    add(State(count: end, need: Self.more(state.need, .piece(state.count, end))))
                }
            }
        }
    }

    private mutating func step(_ byte: UInt8) {
        var next: [State] = []
        swap(&next, &states)
        for state in next where wanted[state.count] == byte {
            reach(state.count + 1, state.need)
        }
        if wanted[0] == byte { reach(1, .nothing) }
    }

    private mutating func run(_ bytes: ByteSet, _ need: Need) {
        for state in states + [State(count: 0, need: .nothing)] {
            var end = state.count
            while end < wanted.count, bytes.has(wanted[end]) {
                end += 1
                reach(end, Self.more(state.need, need))
            }
        }
    }

    /// At least one byte: no match continues behind a number without containing part of it.
    private mutating func number(_ token: Int, _ bytes: ByteSet) {
        var before: [State] = []
        swap(&before, &states)
        for state in before + [State(count: 0, need: .nothing)] {
            let isFirst = state.count == 0
            var end = state.count
            while end < wanted.count, bytes.has(wanted[end]) {
                end += 1
                let place: NumberPlace =
                    end == wanted.count
                    ? isFirst ? .anywhere : .start : isFirst ? .end : .whole
                let need = Need.number(token, place, state.count, end)
                reach(end, Self.more(state.need, need))
            }
        }
    }

    private mutating func reach(_ count: Int, _ need: Need) {
        if count == wanted.count { found(need) } else { add(State(count: count, need: need)) }
    }

    private mutating func add(_ state: State) {
        if states.contains(state) { return }
        if states.count == Self.statesMax { isUnclear = true } else { states.append(state) }
    }

    private mutating func found(_ need: Need) {
        if !found.contains(need) { found.append(need) }
    }

    /// Checking either need suffices: keeps the heavier one.
    private static func more(_ one: Need, _ other: Need) -> Need {
        other.weight > one.weight ? other : one
    }

    /// The bytes with which the following tokens may begin.
    @safe private static func first(
        _ tokens: ArraySlice<Token>, _ format: UnsafeRawBufferPointer
    ) -> ByteSet {
        var all = ByteSet()
        for token in tokens {
            switch token {
            case .literal(let from, let to):
                if from == to { continue }
                all.add(Bytes.u8(format, from))
                return all
            case .some(let bytes): all.add(bytes)
            case .null: all.add(ByteSet("(null)"))
            case .number(_, let form, _):
                all.add(bytes(of: form))
                return all
            case .string: return .all
            }
        }
        return all
    }

    // MARK: What a format is made of

    /// nil: that is unknown.
    @safe private static func tokens(
        _ format: UnsafeRawBufferPointer, _ style: UInt8, _ types: UnsafeRawBufferPointer,
        _ wanted: [UInt8]
    ) -> [Token]? {
        style == SiteLayout.styleBraces || style == SiteLayout.styleSwift
            ? braces(format, types, isASCII: wanted.allSatisfy { $0 < 0x80 })
            : printf(format, types)
    }

    @safe private static func printf(
        _ format: UnsafeRawBufferPointer, _ types: UnsafeRawBufferPointer
    ) -> [Token]? {
        var tokens: [Token] = []
        var pieces = PrintfFormat(format)
        while true {
            switch pieces.piece() {
            case .end, .invalid: return tokens
            case .literal(let from, let to): tokens.append(.literal(from, to))
            case .directive(let directive):
                switch directive.type {
                case ArgumentType.text:
                    let pad = Token.some(ByteSet(" "))
                    tokens += [pad, .string, .null, pad]
                // Its stored form differs.
                case ArgumentType.wide: tokens.append(.some(.all))
                default:
                    if let known = number(directive, format, types) {
                        tokens += known
                        continue
                    }
                    guard let bytes = bytes(of: directive.conversion) else { return nil }
                    tokens.append(.some(bytes))
                }
            }
        }
    }

    /// A number in its padding; nil: it is printed in another way.
    @safe private static func number(
        _ directive: PrintfFormat.Directive, _ format: UnsafeRawBufferPointer,
        _ types: UnsafeRawBufferPointer
    ) -> [Token]? {
        let index = directive.argument
        guard index >= 0, index < types.count, Bytes.u8(types, index) == directive.type else {
            return nil
        }
        let isInteger = directive.type == ArgumentType.int || directive.type == ArgumentType.long
        // `h` truncates a number.
        guard isInteger == (directive.conversion != 0x66),
            Bytes.u8(format, directive.end &- 2) != 0x68
        else { return nil }
        let form: NumberForm
        switch (directive.conversion, directive.precision) {
        case (0x64, .none), (0x69, .none): form = .signed
        case (0x75, .none): form = .unsigned
        case (0x78, .none): form = .hex(isUpper: false)
        case (0x58, .none): form = .hex(isUpper: true)
        case (0x66, .none) where directive.type == ArgumentType.double: form = .fixed(6)
        case (0x66, .value(let digits)) where directive.type == ArgumentType.double:
            form = .fixed(digits)
        default: return nil
        }
        let pad = Token.some(ByteSet(" "))
        switch (flags(directive, format), directive.width) {
        case (0, .none): return [.number(index, form, width: 1)]
        case (0, .value): return [pad, .number(index, form, width: 1)]
        case (0x2D, .value): return [.number(index, form, width: 1), pad]
        case (0x30, .value(let width)) where isInteger && (1...widthMax).contains(width):
            return [.number(index, form, width: width)]
        default: return nil
        }
    }

    /// The only flag of a conversion; 0: no flags; nil: several flags.
    @safe private static func flags(
        _ directive: PrintfFormat.Directive, _ format: UnsafeRawBufferPointer
    ) -> UInt8? {
        switch directive.flagsEnd &- directive.flagsStart {
        case 0: 0
        case 1: Bytes.u8(format, directive.flagsStart)
        default: nil
        }
    }

    @safe private static func braces(
        _ format: UnsafeRawBufferPointer, _ types: UnsafeRawBufferPointer, isASCII: Bool
    ) -> [Token]? {
        var tokens: [Token] = []
        var pieces = BraceFormat(format)
        while true {
            switch pieces.piece() {
            case .end, .invalid: return tokens
            case .literal(let from, let to): tokens.append(.literal(from, to))
            case .field(let field):
                let type = Bytes.u8(types, field.argument)
                var fill = ByteSet(" ")
                for at in field.fillStart..<field.fillEnd { fill.add(Bytes.u8(format, at)) }
                if type == ArgumentType.text {
                    // Cutting a string repairs invalid UTF-8 in it.
                    let isKept = isASCII || field.precision == .none
                    tokens += [.some(fill), isKept ? .string : .some(.all), .some(fill)]
                    continue
                }
                if let form = form(of: field, type), field.argument < types.count {
                    let number = Token.number(field.argument, form, width: 1)
                    tokens += field.width == .none ? [number] : [.some(fill), number, .some(fill)]
                    continue
                }
                let isPlain = field.type == 0 && integers.contains(type)
                guard let bytes = bytes(of: isPlain ? 0x64 : field.type) else { return nil }
                fill.add(bytes)
                tokens.append(.some(fill))
            }
        }
    }

    /// nil: it is printed in another way.
    private static func form(of field: BraceFormat.Field, _ type: UInt8) -> NumberForm? {
        guard field.sign == 0x2D, !field.isAlternate, !field.isZeroPadded else { return nil }
        switch (type, field.type, field.precision) {
        case (ArgumentType.int, 0, .none), (ArgumentType.int, 0x64, .none),
            (ArgumentType.long, 0, .none), (ArgumentType.long, 0x64, .none):
            return .signed
        case (ArgumentType.uint, 0, .none), (ArgumentType.uint, 0x64, .none),
            (ArgumentType.ulong, 0, .none), (ArgumentType.ulong, 0x64, .none):
            return .unsigned
        case (ArgumentType.uint, 0x78, .none), (ArgumentType.ulong, 0x78, .none):
            return .hex(isUpper: false)
        case (ArgumentType.uint, 0x58, .none), (ArgumentType.ulong, 0x58, .none):
            return .hex(isUpper: true)
        case (ArgumentType.double, 0x66, .none), (ArgumentType.float, 0x66, .none):
            return .fixed(6)
        case (ArgumentType.double, 0x66, .value(let digits)),
            (ArgumentType.float, 0x66, .value(let digits)):
            return .fixed(digits)
        default: return nil
        }
    }

    private static func bytes(of form: NumberForm) -> ByteSet {
        switch form {
        case .signed, .unsigned: ByteSet("0123456789-")
        case .hex(let isUpper): ByteSet(isUpper ? "0123456789ABCDEF" : "0123456789abcdef")
        // Larger numbers, infinities and NaN are always possible.
        case .fixed: ByteSet("0123456789-.infa")
        }
    }

    private static let integers: Set<UInt8> = [
        ArgumentType.int, ArgumentType.long, ArgumentType.uint, ArgumentType.ulong,
    ]

    /// The bytes that a conversion prints for numbers, pointers and bools in the C locale,
    /// including signs, padding and the prefixes of the alternate form; nil: it prints a character.
    private static func bytes(of conversion: UInt8) -> ByteSet? {
        var found = ByteSet(" 0123456789+-")
        switch Unicode.Scalar(conversion) {
        case "d", "i", "u", "o": break
        case "x": found.add(ByteSet("abcdefx"))
        case "X": found.add(ByteSet("ABCDEFX"))
        case "b", "B": found.add(ByteSet("bB"))
        case "f": found.add(ByteSet(".infa"))
        case "F": found.add(ByteSet(".INFA"))
        case "e", "g": found.add(ByteSet(".infae"))
        case "E", "G": found.add(ByteSet(".INFAE"))
        case "a": found.add(ByteSet(".infabcdefxp"))
        case "A": found.add(ByteSet(".INFABCDEFXP"))
        case "p": found.add(ByteSet("(nil)abcdefx"))
        case "P": found.add(ByteSet("ABCDEFX"))
        case "c", "C": return nil
        // std::format and Swift: a bool, or a number without a type, also snan(0x…).
        default: found.add(ByteSet(".()abcdefilnprstux"))
        }
        return found
    }
}

/// A set of bytes, one bit each.
private struct ByteSet {
    private var words = SIMD4<UInt64>()

    init() {}

    init(_ text: StaticString) {
        let bytes = Bytes.literal(text)
        for at in 0..<bytes.count { add(Bytes.u8(bytes, at)) }
    }

    static var all: ByteSet {
        var found = ByteSet()
        found.words = SIMD4(repeating: .max)
        return found
    }

    func has(_ byte: UInt8) -> Bool { words[Int(byte >> 6)] &>> UInt64(byte & 63) & 1 != 0 }
    mutating func add(_ byte: UInt8) { words[Int(byte >> 6)] |= 1 &<< UInt64(byte & 63) }
    mutating func add(_ other: ByteSet) { words |= other.words }
}
