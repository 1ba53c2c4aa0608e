// Parses an extended regular expression into a tree, which BytePattern compiles into a program.
// Bytes, no locale. Back references and look-around are refused, and a program has a bound, so that
// matching takes linear time whatever the pattern. Pure.

import CordwoodFormats

struct PatternError: Error {
    var text: String
    var offset: Int
}

indirect enum PatternNode {
    case empty
    case bytes(ByteSet)
    case assertion(PatternStep.Assertion)
    case sequence([PatternNode])
    case choice([PatternNode])
    case repetition(PatternNode, least: Int, most: Int?)
}

/// 256 bits.
struct ByteSet: Equatable {
    var words: (UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0)

    static func == (a: ByteSet, b: ByteSet) -> Bool { a.words == b.words }

    func contains(_ byte: UInt8) -> Bool {
        let bit = UInt64(1) << UInt64(byte & 63)
        switch byte >> 6 {
        case 0: return words.0 & bit != 0
        case 1: return words.1 & bit != 0
        case 2: return words.2 & bit != 0
        default: return words.3 & bit != 0
        }
    }

    mutating func insert(_ byte: UInt8) {
        let bit = UInt64(1) << UInt64(byte & 63)
        switch byte >> 6 {
        case 0: words.0 |= bit
        case 1: words.1 |= bit
        case 2: words.2 |= bit
        default: words.3 |= bit
        }
    }

    mutating func insert(_ range: ClosedRange<UInt8>) { for byte in range { insert(byte) } }

    mutating func formUnion(_ other: ByteSet) {
        words = (
            words.0 | other.words.0, words.1 | other.words.1, words.2 | other.words.2,
            words.3 | other.words.3
        )
    }

    var inverted: ByteSet {
        var set = ByteSet()
        set.words = (~words.0, ~words.1, ~words.2, ~words.3)
        return set
    }

    /// With both cases of each letter.
    var folded: ByteSet {
        var set = self
        for byte in UInt8(0x41)...0x5A where contains(byte) || contains(byte | 0x20) {
            set.insert(byte)
            set.insert(byte | 0x20)
        }
        return set
    }
}

struct PatternParser {
    static let bytesMax = 1_024
    private static let depthMax = 32
    private static let repetitionMax = 1_000

    private let text: [UInt8]
    private var at = 0
    private var depth = 0
    private var ignoresCase = false

    private init(_ text: [UInt8]) { self.text = text }

    static func parse(_ text: [UInt8]) throws(PatternError) -> PatternNode {
        guard text.count <= bytesMax else {
            throw PatternError(text: "over \(bytesMax) bytes", offset: bytesMax)
        }
        var parser = PatternParser(text)
        if text.starts(with: "(?i)".utf8) {
            parser.ignoresCase = true
            parser.at = 4
        }
        let node = try parser.choice()
        guard parser.at == text.count else { throw parser.wrong("')' without '('") }
        return node
    }

    private func wrong(_ text: String) -> PatternError { PatternError(text: text, offset: at) }

    private var next: UInt8? { at < text.count ? text[at] : nil }

    private func isNext(_ character: Unicode.Scalar) -> Bool { next == UInt8(ascii: character) }

    private mutating func take(_ character: Unicode.Scalar) -> Bool {
        guard isNext(character) else { return false }
        at += 1
        return true
    }

    private mutating func choice() throws(PatternError) -> PatternNode {
        var branches = [try sequence()]
        while take("|") { branches.append(try sequence()) }
        return branches.count == 1 ? branches[0] : .choice(branches)
    }

    private mutating func sequence() throws(PatternError) -> PatternNode {
        var parts: [PatternNode] = []
        while at < text.count, !isNext("|"), !isNext(")") {
            var node = try atom()
            while let (least, most) = try quantifier() {
                node = .repetition(node, least: least, most: most)
                // A lazy quantifier does not change which bytes lie in some match.
                _ = take("?")
            }
            parts.append(node)
        }
        return parts.count == 1 ? parts[0] : parts.isEmpty ? .empty : .sequence(parts)
    }

    private mutating func quantifier() throws(PatternError) -> (Int, Int?)? {
        if take("*") { return (0, nil) }
        if take("+") { return (1, nil) }
        if take("?") { return (0, 1) }
        guard isNext("{"), at + 1 < text.count, ASCII.isDigit(text[at + 1]) else { return nil }
        at += 1
        let least = try number()
        var most: Int? = least
        if take(",") { most = isNext("}") ? nil : try number() }
        guard take("}") else { throw wrong("a '{' without '}'") }
        if let most, most < least { throw wrong("{\(least),\(most)}") }
        return (least, most)
    }

    private mutating func number() throws(PatternError) -> Int {
        var value = 0
        var digits = 0
        while let digit = next, ASCII.isDigit(digit) {
            value = value * 10 + Int(digit - 0x30)
            guard value <= PatternParser.repetitionMax else {
                throw wrong("a repetition over \(PatternParser.repetitionMax)")
            }
            at += 1
            digits += 1
        }
        guard digits > 0 else { throw wrong("no number in '{…}'") }
        return value
    }

    private mutating func atom() throws(PatternError) -> PatternNode {
        guard let byte = next else { return .empty }
        switch byte {
        case UInt8(ascii: "("): return try group()
        case UInt8(ascii: "["): return .bytes(try bracket())
        case UInt8(ascii: "\\"): return try escape()
        case UInt8(ascii: "*"), UInt8(ascii: "+"), UInt8(ascii: "?"):
            throw wrong("nothing to repeat")
        default: break
        }
        at += 1
        switch byte {
        case UInt8(ascii: "."):
            var set = ByteSet()
            set.insert(0x0A)
            return .bytes(set.inverted)
        case UInt8(ascii: "^"): return .assertion(.lineBegins)
        case UInt8(ascii: "$"): return .assertion(.lineEnds)
        default: return one(byte)
        }
    }

    private func one(_ byte: UInt8) -> PatternNode {
        var set = ByteSet()
        set.insert(byte)
        return .bytes(ignoresCase ? set.folded : set)
    }

    private mutating func group() throws(PatternError) -> PatternNode {
        at += 1
        if take("?") {
            guard take(":") else { throw wrong("only (?:…), and (?i) at the start, are known") }
        }
        depth += 1
        guard depth <= PatternParser.depthMax else {
            throw wrong("groups over \(PatternParser.depthMax) deep")
        }
        let node = try choice()
        guard take(")") else { throw wrong("a '(' without ')'") }
        depth -= 1
        return node
    }

    private mutating func escape() throws(PatternError) -> PatternNode {
        at += 1
        guard let byte = next else { throw wrong("a '\\' at the end") }
        at += 1
        if let set = PatternParser.shorthand(byte) { return .bytes(set) }
        switch byte {
        case UInt8(ascii: "b"): return .assertion(.wordEdge)
        case UInt8(ascii: "x"):
            guard at + 2 <= text.count else { throw wrong("\\x without two digits") }
            let (high, low) = (ASCII.hex(text[at]), ASCII.hex(text[at + 1]))
            guard high < 16, low < 16 else { throw wrong("\\x without two digits") }
            at += 2
            return one(high << 4 | low)
        default: return one(try plainEscape(byte))
        }
    }

    /// The byte for '\' and that letter; refuses letters and digits without a meaning here.
    private func plainEscape(_ byte: UInt8) throws(PatternError) -> UInt8 {
        switch byte {
        case UInt8(ascii: "n"): return 0x0A
        case UInt8(ascii: "r"): return 0x0D
        case UInt8(ascii: "t"): return 0x09
        case 0x31...0x39: throw wrong("a back reference, which cannot be matched in linear time")
        case _ where ASCII.isUpper(byte) || ASCII.isLower(byte) || byte == 0x30:
            throw wrong("an unknown escape")
        default: return byte
        }
    }

    private static func shorthand(_ letter: UInt8) -> ByteSet? {
        var set = ByteSet()
        switch letter | 0x20 {
        case UInt8(ascii: "d"): set.insert(0x30...0x39)
        case UInt8(ascii: "w"):
            for range in [0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x5F...0x5F]
                as [ClosedRange<UInt8>]
            { set.insert(range) }
        case UInt8(ascii: "s"):
            set.insert(0x09...0x0D)
            set.insert(0x20)
        default: return nil
        }
        guard ASCII.isUpper(letter) || ASCII.isLower(letter) else { return nil }
        return ASCII.isUpper(letter) ? set.inverted : set
    }

    // MARK: [ … ]

    private mutating func bracket() throws(PatternError) -> ByteSet {
        at += 1
        let isInverted = take("^")
        var set = ByteSet()
        var isFirst = true
        while true {
            guard let byte = next else { throw wrong("a '[' without ']'") }
            if byte == UInt8(ascii: "]"), !isFirst {
                at += 1
                break
            }
            isFirst = false
            if byte == UInt8(ascii: "["), at + 1 < text.count, text[at + 1] == UInt8(ascii: ":") {
                set.formUnion(try namedClass())
                continue
            }
            if byte == UInt8(ascii: "\\"), at + 1 < text.count,
                let short = PatternParser.shorthand(text[at + 1])
            {
                at += 2
                set.formUnion(short)
                continue
            }
            let low = try bracketByte()
            guard isNext("-"), at + 1 < text.count, text[at + 1] != UInt8(ascii: "]") else {
                set.insert(low)
                continue
            }
            at += 1
            let high = try bracketByte()
            guard low <= high else { throw wrong("a range that ends before it begins") }
            set.insert(low...high)
        }
        let folded = ignoresCase ? set.folded : set
        return isInverted ? folded.inverted : folded
    }

    private mutating func bracketByte() throws(PatternError) -> UInt8 {
        guard let byte = next else { throw wrong("a '[' without ']'") }
        at += 1
        guard byte == UInt8(ascii: "\\") else { return byte }
        guard let escaped = next else { throw wrong("a '\\' at the end") }
        at += 1
        return try plainEscape(escaped)
    }

    private mutating func namedClass() throws(PatternError) -> ByteSet {
        let rest = text[at...]
        var set = ByteSet()
        for (name, ranges) in PatternParser.classes where rest.starts(with: "[:\(name):]".utf8) {
            for range in ranges { set.insert(range) }
            at += name.utf8.count + 4
            return set
        }
        throw wrong("an unknown class")
    }

    private static let classes: [(String, [ClosedRange<UInt8>])] = [
        ("alpha", [0x41...0x5A, 0x61...0x7A]), ("digit", [0x30...0x39]),
        ("alnum", [0x30...0x39, 0x41...0x5A, 0x61...0x7A]), ("upper", [0x41...0x5A]),
        ("lower", [0x61...0x7A]), ("space", [0x09...0x0D, 0x20...0x20]),
        ("blank", [0x09...0x09, 0x20...0x20]), ("xdigit", [0x30...0x39, 0x41...0x46, 0x61...0x66]),
        ("punct", [0x21...0x2F, 0x3A...0x40, 0x5B...0x60, 0x7B...0x7E]),
        ("cntrl", [0x00...0x1F, 0x7F...0x7F]), ("print", [0x20...0x7E]), ("graph", [0x21...0x7E]),
    ]
}
