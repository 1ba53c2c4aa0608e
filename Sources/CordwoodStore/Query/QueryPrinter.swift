// Writes a query's tree as text that parses to the same tree. Pure.

import CordwoodCore
import CordwoodFormats

package enum QueryPrinter {
    package static func text(_ node: QueryNode) -> String {
        var out: [UInt8] = []
        append(node, to: &out)
        return String(decoding: out, as: UTF8.self)
    }

    private static func append(_ node: QueryNode, to out: inout [UInt8]) {
        switch node {
        case .all(let parts): append(parts, " ", to: &out) { $0.isGroup }
        case .any(let parts):
            append(parts, " OR ", to: &out) { if case .any = $0 { true } else { false } }
        case .not(let part):
            out.append(UInt8(ascii: "-"))
            append([part], "", to: &out) { $0.isGroup }
        case .text(let pattern): append(pattern, to: &out) { isWord($0) }
        case .compare(let name, let sign, let value):
            append(name: name.bytes, to: &out)
            Literal.append(sign.sign, &out)
            append(value, sign, to: &out)
        }
    }

    private static func append(
        _ parts: [QueryNode], _ between: StaticString, to out: inout [UInt8],
        isGrouped: (QueryNode) -> Bool
    ) {
        for (index, part) in parts.enumerated() {
            if index > 0 { Literal.append(between, &out) }
            let isGrouped = isGrouped(part)
            if isGrouped { out.append(UInt8(ascii: "(")) }
            append(part, to: &out)
            if isGrouped { out.append(UInt8(ascii: ")")) }
        }
    }

    private static func append(
        _ value: QueryValue, _ sign: QueryOperator, to out: inout [UInt8]
    ) {
        switch value {
        case .anything: out.append(UInt8(ascii: "*"))
        case .number(let number): out.append(contentsOf: number.text.utf8)
        case .bool(let flag): Literal.append(flag ? "true" : "false", &out)
        case .text(let pattern):
            append(pattern, to: &out) { bytes in
                isWord(bytes) && (sign == .written || !isTyped(bytes))
            }
        case .time(let ns): Times.appendExact(ns, to: &out)
        case .level(0): Literal.append("none", &out)
        case .level(let level): Levels.append(level, to: &out)
        case .kind(let kind): JSONLine.kind(kind, &out)
        }
    }

    /// - Parameter isBare: whether the bytes mean the same without quotes.
    private static func append(
        _ pattern: TextPattern, to out: inout [UInt8], isBare: ([UInt8]) -> Bool
    ) {
        switch pattern {
        case .literal(let bytes):
            isBare(bytes) ? out.append(contentsOf: bytes) : append(quoted: bytes, to: &out)
        case .folded(let bytes):
            Literal.append("i:", &out)
            isWord(bytes) ? out.append(contentsOf: bytes) : append(quoted: bytes, to: &out)
        case .expression(let expression):
            if expression.ignoresCase { Literal.append("i:", &out) }
            out.append(UInt8(ascii: "/"))
            var isEscaped = false
            for byte in expression.source.utf8 {
                if byte == UInt8(ascii: "/"), !isEscaped { out.append(UInt8(ascii: "\\")) }
                isEscaped = !isEscaped && byte == UInt8(ascii: "\\")
                out.append(byte)
            }
            out.append(UInt8(ascii: "/"))
        }
    }

    private static func append(name: [UInt8], to out: inout [UInt8]) {
        if isWord(name), let first = name.first, !ASCII.isDigit(first) {
            out.append(contentsOf: name)
        } else {
            append(quoted: name, to: &out)
        }
    }

    private static func append(quoted bytes: [UInt8], to out: inout [UInt8]) {
        let isText = unsafe bytes.withUnsafeBytes { UTF8Scan.isValid($0) }
        out.append(UInt8(ascii: "\""))
        for byte in bytes {
            if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") {
                out.append(UInt8(ascii: "\\"))
                out.append(byte)
            } else if byte < 0x20 || byte == 0x7F || byte >= 0x80 && !isText {
                Literal.append("\\x", &out)
                Hex.append(byte, to: &out)
            } else {
                out.append(byte)
            }
        }
        out.append(UInt8(ascii: "\""))
    }

    /// Forms one word without quotes; some texts that would are not recognised.
    static func isWord(_ bytes: [UInt8]) -> Bool {
        guard let first = bytes.first, first != UInt8(ascii: "-") else { return false }
        let isPlain = bytes.allSatisfy { ASCII.isWordByte($0) || "-.@+".utf8.contains($0) }
        return isPlain && !["AND", "OR", "NOT"].contains(String(decoding: bytes, as: UTF8.self))
    }

    /// Without quotes it would be a number or a bool.
    static func isTyped(_ bytes: [UInt8]) -> Bool {
        QueryNumber(bytes) != nil || bytes == Array("true".utf8) || bytes == Array("false".utf8)
    }
}

extension QueryNode {
    fileprivate var isGroup: Bool {
        switch self {
        case .all, .any: true
        default: false
        }
    }
}
