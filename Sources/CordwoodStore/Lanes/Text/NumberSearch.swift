// Whether a number contains certain bytes once it is printed. Applied to arguments (FORMAT §8.7)
// and fields as they are stored, so a search for digits makes no text. One comparison rules out
// small numbers; others are printed on their own. Errs on the side of yes. Values; the printer
// belongs to one thread.
// SAFETY: words are read from the printer's memory, which has room for one more behind any number.

import CordwoodCore
import CordwoodFormats

/// How a format prints a number.
enum NumberForm: Equatable {
    /// Decimal, of 4 or 8 bytes.
    case signed, unsigned
    /// Of an unsigned number.
    case hex(isUpper: Bool)
    /// A double in fixed notation with so many digits after the point.
    case fixed(Int)
}

/// Where in the number the bytes must be.
enum NumberPlace: Equatable { case anywhere, start, end, whole }

/// Bytes to look for in numbers, at least one. Of more than eight, the first and the last eight
/// count.
struct NumberNeedle: Equatable {
    let count: Int
    /// The first eight, or fewer if there are fewer.
    private let word: UInt64
    private let mask: UInt64
    /// The last eight, if there are more.
    private let end: UInt64
    /// No smaller number can contain the bytes as digits of its whole part.
    let least: UInt64
    let isDigits: Bool

    init(_ wanted: [UInt8]) {
        count = wanted.count
        word = NumberNeedle.word(wanted.prefix(8))
        end = NumberNeedle.word(wanted.suffix(8))
        mask = wanted.count < 8 ? 1 &<< UInt64(wanted.count * 8) &- 1 : .max
        isDigits = wanted.allSatisfy(ASCII.isDigit)
        // The value of the digits, after a sign if any; 0 if that excludes nothing.
        let digits = wanted.first == 0x2D ? wanted[1...] : wanted[...]
        var least: UInt64 = 0
        for byte in digits {
            guard ASCII.isDigit(byte), least <= UInt64.max / 100 else {
                least = 0
                break
            }
            least = least * 10 + UInt64(byte &- 0x30)
        }
        self.least = least
    }

    private static func word(_ bytes: ArraySlice<UInt8>) -> UInt64 {
        bytes.reversed().reduce(0) { $0 &<< 8 | UInt64($1) }
    }

    /// `text` has at least eight bytes of memory behind its `size`.
    @inline(__always)
    fileprivate func isIn(_ text: UnsafeRawPointer, _ size: Int, _ place: NumberPlace) -> Bool {
        let last = size &- count
        if last < 0 { return false }
        switch place {
        case .whole: return unsafe last == 0 && isAt(text)
        case .start: return unsafe isAt(text)
        case .end: return unsafe isAt(text + last)
        case .anywhere:
            var at = 0
            while at <= last {
                if unsafe isAt(text + at) { return true }
                at &+= 1
            }
            return false
        }
    }

    @inline(__always)
    private func isAt(_ text: UnsafeRawPointer) -> Bool {
        let some = unsafe UInt64(littleEndian: text.loadUnaligned(as: UInt64.self))
        if some & mask != word { return false }
        if count <= 8 { return true }
        let rest = unsafe (text + (count &- 8)).loadUnaligned(as: UInt64.self)
        return UInt64(littleEndian: rest) == end
    }
}

/// A number argument that must contain bytes for a text to contain what is wanted.
struct NumberNeed: Equatable {
    let argument: Int
    /// ArgumentType.
    let type: UInt8
    let form: NumberForm
    /// Characters up to which zeros fill.
    let width: Int
    let place: NumberPlace
    let needle: NumberNeedle
    /// Offset of the argument, without the content of strings before it.
    private let at: Int
    /// Offset of the length of the only string before it. -1: no string is before it. -2: the
    /// offset is found by walking the types.
    private let lengthAt: Int

    init(
        _ argument: Int, _ types: [UInt8], _ form: NumberForm, width: Int, _ place: NumberPlace,
        _ wanted: [UInt8]
    ) {
        self.argument = argument
        self.form = form
        self.width = width
        self.place = place
        type = types[argument]
        needle = NumberNeedle(wanted)
        let before = types[..<argument]
        at = before.reduce(0) { $0 + ArgumentType.fixedBytes($1) }
        let strings = before.indices.filter {
            types[$0] == ArgumentType.text || types[$0] == ArgumentType.wide
        }
        if strings.isEmpty {
            lengthAt = -1
        } else if strings.count == 1, types[strings[0]] == ArgumentType.text {
            lengthAt = before[..<strings[0]].reduce(0) { $0 + ArgumentType.fixedBytes($1) }
        } else {
            lengthAt = -2
        }
    }

    /// - Parameters:
    ///   - types: of all arguments.
    ///   - arguments: of a record; bytes of others may follow.
    @safe @inline(__always)
    func isMet(
        _ types: UnsafeRawBufferPointer, _ arguments: UnsafeRawBufferPointer,
        _ printer: NumberPrinter
    ) -> Bool {
        let at = lengthAt == -1 ? at : behindStrings(types, arguments)
        guard at >= 0, arguments.count &- at >= ArgumentType.fixedBytes(type) else { return true }
        switch form {
        case .signed:
            let number =
                type == ArgumentType.int
                ? Int64(Int32(bitPattern: Bytes.u32(arguments, at)))
                : Int64(bitPattern: Bytes.u64(arguments, at))
            return printer.has(needle, place, number.magnitude, number < 0, width: width)
        case .unsigned: return printer.has(needle, place, word(arguments, at), false, width: width)
        case .hex(let isUpper):
            return printer.has(needle, place, hex: word(arguments, at), isUpper, width: width)
        case .fixed(let digits):
            let number =
                type == ArgumentType.float
                ? Double(Float(bitPattern: Bytes.u32(arguments, at)))
                : Double(bitPattern: Bytes.u64(arguments, at))
            return printer.has(needle, place, number, digits: digits)
        }
    }

    @safe @inline(__always)
    private func word(_ arguments: UnsafeRawBufferPointer, _ at: Int) -> UInt64 {
        ArgumentType.fixedBytes(type) == 4
            ? UInt64(Bytes.u32(arguments, at)) : Bytes.u64(arguments, at)
    }

    /// Less than 0: the arguments do not fit.
    @safe private func behindStrings(
        _ types: UnsafeRawBufferPointer, _ arguments: UnsafeRawBufferPointer
    ) -> Int {
        if lengthAt >= 0 {
            guard arguments.count &- lengthAt >= 4 else { return -1 }
            let length = Bytes.u32(arguments, lengthAt)
            return length == LengthWord.null ? at : at &+ Int(length & ~LengthWord.cut)
        }
        var at = 0
        for index in 0..<argument {
            let type = Bytes.u8(types, index)
            let isText = type == ArgumentType.text || type == ArgumentType.wide
            if isText {
                guard arguments.count &- at >= 4 else { return -1 }
                let length = Bytes.u32(arguments, at)
                if length != LengthWord.null {
                    at &+= Int(length & ~LengthWord.cut) &* (type == ArgumentType.wide ? 4 : 1)
                }
            }
            at &+= ArgumentType.fixedBytes(type)
        }
        return at
    }
}

/// Prints a number to search in it.
package final class NumberPrinter {
    /// Here and below: one thread at a time, and nothing calls back.
    @exclusivity(unchecked) private var out = GrowingBytes()
    /// The longest number has 309 digits before the point.
    private static let room = 512

    package init() {}

    /// Makes room for the number and the word behind it. Returns false if memory ran out.
    @inline(__always)
    private func begin() -> Bool {
        unsafe out.removeAll()
        return unsafe out.reserve(Self.room)
    }

    @inline(__always)
    private func has(_ needle: NumberNeedle, _ place: NumberPlace) -> Bool {
        guard unsafe out.capacity &- out.count >= 8 else { return true }
        return unsafe needle.isIn(out.base, out.count, place)
    }

    @inline(__always)
    fileprivate func has(
        _ needle: NumberNeedle, _ place: NumberPlace, _ magnitude: UInt64, _ isNegative: Bool,
        width: Int
    ) -> Bool {
        if magnitude < needle.least { return false }
        guard begin() else { return true }
        if isNegative { unsafe out.append(0x2D) }
        unsafe out.append(decimal: magnitude, width: isNegative ? max(width &- 1, 1) : width)
        return has(needle, place)
    }

    fileprivate func has(
        _ needle: NumberNeedle, _ place: NumberPlace, hex number: UInt64, _ isUpper: Bool,
        width: Int
    ) -> Bool {
        guard begin() else { return true }
        var left = max((67 &- number.leadingZeroBitCount) / 4, width, 1)
        let letters: UInt8 = isUpper ? 0x37 : 0x57
        while left > 0 {
            left &-= 1
            let nibble =
                left < 16 ? UInt8(truncatingIfNeeded: number &>> UInt64(left &* 4)) & 15 : 0
            unsafe out.append(nibble &+ (nibble < 10 ? 0x30 : letters))
        }
        return has(needle, place)
    }

    @inline(__always)
    fileprivate func has(
        _ needle: NumberNeedle, _ place: NumberPlace, _ number: Double, digits: Int
    ) -> Bool {
        // With more digits than there are after the point, some are before it, perhaps rounded up.
        // The comparison is false for NaN.
        if needle.isDigits, needle.count > digits, place != .end,
            number.magnitude + 1 < Double(needle.least)
        {
            return false
        }
        guard begin(), unsafe FixedText.append(number, digits: digits, to: &out) else {
            return true
        }
        return has(needle, place)
    }

    /// Whether a field's value contains the digits as readers show it.
    fileprivate func has(_ needle: NumberNeedle, _ value: FieldValue) -> Bool {
        switch value {
        case .int(let number): return has(needle, .anywhere, number.magnitude, false, width: 1)
        case .uint(let number): return has(needle, .anywhere, number, false, width: 1)
        case .bool: return false
        case .double(let number):
            // With three decimals or fewer it is shown like this, except for trailing zeros.
            let scaled = (number.magnitude * 1_000).rounded()
            if scaled < 1e15, scaled / 1_000 == number.magnitude {
                return has(needle, .anywhere, number, digits: 3)
            }
            guard begin() else { return true }
            var text = number.description
            text.withUTF8 { unsafe out.append(UnsafeRawBufferPointer($0)) }
            return has(needle, .anywhere)
        case .string, .json: return true
        }
    }
}

/// Looks for digits in fields. No sign that separates words, keys and values is a digit, so they
/// lie whole in a key or in a value. A text with bytes that may be escaped may contain any: `\x1b`,
/// `\u2028`.
struct DigitSearch: Equatable {
    private let text: TextSearch
    private let first: UInt8
    private let needle: NumberNeedle

    /// nil: not all of them are digits.
    init?(_ wanted: [UInt8]) {
        guard let first = wanted.first, wanted.allSatisfy(ASCII.isDigit) else { return nil }
        self.first = first
        text = TextSearch(wanted)
        needle = NumberNeedle(wanted)
    }

    /// In the sections of one record (FORMAT §8.1).
    @safe func mayBeIn(sections: UnsafeRawBufferPointer, _ printer: NumberPrinter) -> Bool {
        var all = SectionIterator(sections)
        while let (kind, body) = all.next() {
            switch kind {
            case SectionKind.fields: if mayBeIn(fields: body, printer) { return true }
            // The lengths of the texts, then the texts.
            case SectionKind.exception:
                let texts = unsafe Bytes.slice(body, 12, body.count &- 12) ?? Bytes.none
                if mayBeIn(texts) { return true }
            default: break
            }
        }
        return false
    }

    /// In fields (FORMAT §8.2).
    @safe func mayBeIn(fields: UnsafeRawBufferPointer, _ printer: NumberPrinter) -> Bool {
        var all = FieldIterator(fields)
        while let (key, value) = all.next() {
            if mayBeIn(key) { return true }
            switch value {
            case .string(let text), .json(let text): if mayBeIn(text) { return true }
            default: if printer.has(needle, value) { return true }
            }
        }
        return false
    }

    @safe private func mayBeIn(_ text: UnsafeRawBufferPointer) -> Bool {
        var hasFirst = false
        for at in 0..<text.count {
            let byte = Bytes.u8(text, at)
            if byte == first { hasFirst = true }
            if byte &- 0x20 >= 0x5F, DigitSearch.mayBeEscaped(byte) { return true }
        }
        return hasFirst && self.text.isIn(text)
    }

    /// Whether it is escaped as more than a letter. An escape of one letter adds no digits to the
    /// text.
    private static func mayBeEscaped(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x09, 0x0A, 0x0D: false
        case 0..<0x20, 0x7F...: true
        default: false
        }
    }
}
