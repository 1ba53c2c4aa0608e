// Turns the text of a query into its tree, by the grammar of docs/QUERY.md. What a value means
// depends on the name before it (QueryValues). Errors name the column. One use, one thread.

import CordwoodCore
import CordwoodFormats

package struct QueryParser {
    package static let bytesMax = 8_192
    package static let depthMax = 64
    package static let termsMax = 256

    let text: [UInt8]
    let nowNs: UInt64
    let utc: Bool
    var at = 0
    private var depth = 0
    private var terms = 0

    package static func parse(
        _ text: String, nowNs: UInt64, utc: Bool
    ) throws(QueryError) -> QueryNode {
        var parser = QueryParser(text: Array(text.utf8), nowNs: nowNs, utc: utc)
        return try parser.whole()
    }

    private init(text: [UInt8], nowNs: UInt64, utc: Bool) {
        self.text = text
        self.nowNs = nowNs
        self.utc = utc
    }

    // MARK: Grammar

    private mutating func whole() throws(QueryError) -> QueryNode {
        guard text.count <= QueryParser.bytesMax else {
            throw wrong("longer than \(QueryParser.bytesMax) bytes", QueryParser.bytesMax)
        }
        skipBlanks()
        if isAtEnd { throw wrong("an empty query", 0) }
        let node = try either()
        // Before the end, only this ends `either`.
        if !isAtEnd { throw wrong("a ) without its (", at) }
        return node
    }

    private mutating func either() throws(QueryError) -> QueryNode {
        var choices = [try both()]
        while takeWord("OR") { choices.append(try both()) }
        return choices.count == 1 ? choices[0] : .any(choices)
    }

    private mutating func both() throws(QueryError) -> QueryNode {
        var parts = [try term()]
        while true {
            let hasAnd = takeWord("AND")
            if !hasAnd, isAtEnd || isNext(")") || isWord("OR") { break }
            parts.append(try term())
        }
        return parts.count == 1 ? parts[0] : .all(parts)
    }

    private mutating func term() throws(QueryError) -> QueryNode {
        skipBlanks()
        let start = at
        if isAtEnd || isNext(")") { throw wrong("something to look for is missing", at) }
        if isWord("AND") || isWord("OR") {
            throw wrong("AND and OR stand between two terms; quote the word if it is meant", at)
        }
        depth += 1
        defer { depth -= 1 }
        guard depth <= QueryParser.depthMax else {
            throw wrong("more than \(QueryParser.depthMax) levels", at)
        }
        if takeWord("NOT") { return .not(try term()) }
        if take("-") {
            if isAtEnd || isBlank(at) { throw wrong("a '-' without what it excludes", start) }
            return .not(try term())
        }
        if take("(") {
            let node = try either()
            guard take(")") else { throw wrong("a ( without its )", start) }
            try endTerm()
            return node
        }
        terms += 1
        guard terms <= QueryParser.termsMax else {
            throw wrong("more than \(QueryParser.termsMax) terms", start)
        }
        let node = try leaf()
        try endTerm()
        return node
    }

    private mutating func leaf() throws(QueryError) -> QueryNode {
        let start = at
        if isNext("/") { return .text(.expression(try expression(ignoresCase: false))) }
        if takeFolding() {
            if isNext("/") { return .text(.expression(try expression(ignoresCase: true))) }
            let bytes = isNext("\"") ? try quoted() : name()
            if bytes.isEmpty { throw wrong("a word is missing after 'i:'", at) }
            return .text(.bytes(bytes, ignoresCase: true))
        }
        let isQuoted = isNext("\"")
        let word = isQuoted ? try quoted() : name()
        if let sign = takeOperator() {
            if word.isEmpty { throw wrong("a name is missing before the operator", start) }
            if !isQuoted, ASCII.isDigit(word[0]) {
                throw wrong(
                    "no name begins with a digit; quote a text that has : = < > or ~", start)
            }
            return try comparison(QueryName(word), sign, start)
        }
        if word.isEmpty { throw wrong("an empty text", start) }
        return .text(.literal(word))
    }

    /// A term ends at a blank, a ) or the end.
    private func endTerm() throws(QueryError) {
        if isAtEnd || isBlank(at) || isNext(")") { return }
        throw wrong("a blank is missing here, or quotes around the text", at)
    }

    // MARK: Tokens

    var isAtEnd: Bool { at >= text.count }

    func isNext(_ character: Unicode.Scalar) -> Bool {
        at < text.count && text[at] == UInt8(ascii: character)
    }

    mutating func take(_ character: Unicode.Scalar) -> Bool {
        guard isNext(character) else { return false }
        at += 1
        return true
    }

    private func isBlank(_ at: Int) -> Bool { ASCII.isBlank(text[at]) }

    private mutating func skipBlanks() { while !isAtEnd, isBlank(at) { at += 1 } }

    /// Also skips the blanks before it.
    private mutating func takeWord(_ word: StaticString) -> Bool {
        skipBlanks()
        guard isWord(word) else { return false }
        at += word.utf8CodeUnitCount
        return true
    }

    private func isWord(_ word: StaticString) -> Bool {
        var from = at
        while from < text.count, isBlank(from) { from += 1 }
        let end = from + word.utf8CodeUnitCount
        guard end <= text.count,
            word.withUTF8Buffer({ unsafe text[from..<end].elementsEqual($0) })
        else { return false }
        return end == text.count || isBlank(end) || "()".utf8.contains(text[end])
    }

    /// `i:`, and something after it.
    mutating func takeFolding() -> Bool {
        guard isNext("i"), at + 1 < text.count, text[at + 1] == UInt8(ascii: ":") else {
            return false
        }
        at += 2
        return true
    }

    private mutating func takeOperator() -> (QuerySign, at: Int)? {
        let start = at
        for (sign, text) in QuerySign.all {
            let end = at + text.utf8CodeUnitCount
            guard end <= self.text.count,
                text.withUTF8Buffer({ unsafe self.text[at..<end].elementsEqual($0) })
            else { continue }
            at = end
            return (sign, start)
        }
        return nil
    }

    /// Up to a blank, a parenthesis, a quote or an operator.
    private mutating func name() -> [UInt8] {
        run { rest in
            if rest.first == UInt8(ascii: "!") {
                return rest.dropFirst().first == UInt8(ascii: "=")
            }
            return ":=<>~".utf8.contains(rest[rest.startIndex])
        }
    }

    /// Up to a blank, a parenthesis or a quote.
    mutating func value() -> [UInt8] { run { _ in false } }

    private mutating func run(until isEnd: (ArraySlice<UInt8>) -> Bool) -> [UInt8] {
        let rest = text[at...]
        let end = rest.indices.first { index in
            isBlank(index) || "()\"".utf8.contains(rest[index]) || isEnd(rest[index...])
        }
        at = end ?? text.count
        return Array(rest[..<at])
    }

    mutating func quoted() throws(QueryError) -> [UInt8] {
        let start = at
        at += 1
        var bytes: [UInt8] = []
        while !isAtEnd {
            let byte = text[at]
            at += 1
            if byte == UInt8(ascii: "\"") { return bytes }
            bytes.append(byte == UInt8(ascii: "\\") ? try escaped() : byte)
        }
        throw wrong("a quote without its end", start)
    }

    private mutating func escaped() throws(QueryError) -> UInt8 {
        let start = at - 1
        let byte = isAtEnd ? 0 : text[at]
        at += 1
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"): return byte
        case UInt8(ascii: "n"): return 0x0A
        case UInt8(ascii: "r"): return 0x0D
        case UInt8(ascii: "t"): return 0x09
        case UInt8(ascii: "x") where at + 2 <= text.count:
            let (high, low) = (ASCII.hex(text[at]), ASCII.hex(text[at + 1]))
            guard high < 16, low < 16 else { break }
            at += 2
            return high << 4 | low
        default: break
        }
        throw wrong("in quotes, only \", \\, n, r, t or x and two digits may follow a \\", start)
    }

    /// `/…/`, where `\/` is a slash of the expression.
    mutating func expression(ignoresCase: Bool) throws(QueryError) -> SearchExpression {
        let start = at
        at += 1
        var bytes: [UInt8] = []
        while !isAtEnd, !isNext("/") {
            if isNext("\\"), at + 1 < text.count {
                if text[at + 1] != UInt8(ascii: "/") { bytes.append(text[at]) }
                at += 1
            }
            bytes.append(text[at])
            at += 1
        }
        guard take("/") else {
            throw wrong("an expression without its second /; quote a text that begins so", start)
        }
        if bytes.isEmpty { throw wrong("an empty expression", start) }
        let source = String(decoding: bytes, as: UTF8.self)
        if SearchExpression.hasBackReference(source) {
            throw wrong("a back reference, which may take for ever", start)
        }
        do throws(ExpressionError) {
            return try SearchExpression(source, ignoresCase: ignoresCase)
        } catch {
            throw wrong(error.text, start)
        }
    }

    /// The column counts characters.
    func wrong(_ text: String, _ at: Int) -> QueryError {
        let before = self.text.prefix(at).count { $0 & 0xC0 != 0x80 }
        return QueryError(column: before + 1, text: text)
    }
}
