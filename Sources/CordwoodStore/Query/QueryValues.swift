// The value behind an operator. The name before it decides what it is: a time, a level, a kind or a
// text; for other names a number, a bool or a text, by its form.

import CordwoodCore
import CordwoodFormats

/// An operator as it is written.
enum QuerySign {
    case has, equal, unequal, less, atMost, more, atLeast, written, like

    /// Longer ones first.
    static let all: [(QuerySign, StaticString)] = [
        (.unequal, "!="), (.atMost, "<="), (.atLeast, ">="), (.written, "=="), (.has, ":"),
        (.equal, "="), (.less, "<"), (.more, ">"), (.like, "~"),
    ]

    /// - Parameter has: what `:` means for the name.
    func meaning(has: QueryOperator) -> QueryOperator {
        switch self {
        case .has: has
        case .equal: .equal
        case .unequal: .unequal
        case .less: .less
        case .atMost: .atMost
        case .more: .more
        case .atLeast: .atLeast
        case .written: .written
        case .like: .like
        }
    }
}

extension QueryParser {
    /// A value as it is written.
    private struct Written {
        var bytes: [UInt8]
        var isQuoted: Bool
        var isFolded: Bool
        var at: Int

        var text: String { String(decoding: bytes, as: UTF8.self) }
        var isAnything: Bool { !isQuoted && !isFolded && bytes == [UInt8(ascii: "*")] }
    }

    private func anything(
        _ operation: QueryOperator, _ value: Written
    ) throws(QueryError) {
        guard [.equal, .contains, .begins, .below].contains(operation) else {
            throw wrong("* goes after = or :", value.at)
        }
    }

    mutating func comparison(
        _ name: QueryName, _ sign: (QuerySign, at: Int), _ start: Int
    ) throws(QueryError) -> QueryNode {
        let written = String(decoding: text[start..<sign.at], as: UTF8.self)
        switch name {
        case .time, .level, .kind:
            let operation = try plain(sign, written, isOrdered: name != .kind)
            let value = try written_(name, written)
            return .compare(name, operation, try columnValue(name, value))
        case .logger, .message:
            let has: QueryOperator = name == .logger ? .below : .contains
            let operation = sign.0.meaning(has: has)
            if operation.isOrder {
                throw wrong("\(written) takes : = != and ~", sign.at)
            }
            return try textual(name, operation, written)
        case .field: return try general(name, sign.0.meaning(has: .equal), nil, written)
        case .any(_, let column):
            let operation = sign.0.meaning(has: column?.isOperator ?? .equal)
            return try general(name, operation, column, written)
        }
    }

    /// `:` and `==` are the same as `=` where there is only one type.
    private func plain(
        _ sign: (QuerySign, at: Int), _ name: String, isOrdered: Bool
    ) throws(QueryError) -> QueryOperator {
        var operation = sign.0.meaning(has: .equal)
        if operation == .written { operation = .equal }
        if operation == .like || operation.isOrder && !isOrdered {
            throw wrong("\(name) takes \(isOrdered ? "= != < <= > >=" : ": = !=")", sign.at)
        }
        return operation
    }

    private mutating func written_(
        _ name: QueryName, _ text: String
    ) throws(QueryError) -> Written {
        let value = try self.written(text)
        if value.isFolded { throw wrong("\(text) has no case that i: could ignore", value.at) }
        return value
    }

    private mutating func written(_ name: String) throws(QueryError) -> Written {
        var value = Written(bytes: [], isQuoted: false, isFolded: false, at: at)
        value.isFolded = takeFolding()
        if isNext("\"") {
            value.isQuoted = true
            value.bytes = try quoted()
            return value
        }
        value.bytes = self.value()
        guard let first = value.bytes.first else {
            throw wrong("a value is missing after \(name)", at)
        }
        if "=<>~".utf8.contains(first) {
            throw wrong("there is no such operator; quote a value that begins so", value.at)
        }
        if value.bytes.starts(with: "//".utf8) {
            throw wrong("quote a URL", value.at)
        }
        if value.bytes.count > 2, first == UInt8(ascii: "/"), value.bytes.last == first {
            throw wrong("an expression goes after ~; quote a value with slashes around", value.at)
        }
        return value
    }

    private func columnValue(
        _ name: QueryName, _ value: Written
    ) throws(QueryError) -> QueryValue {
        switch name {
        case .time:
            guard let time = TimeArgument.parse(value.text, nowNs: nowNs, utc: utc) else {
                throw wrong(
                    "no time: \(value.text) (2026-11-21, 2026-11-21T08:15Z, 90s, 10m, 2h, 3d)",
                    value.at)
            }
            return .time(time)
        case .level:
            if ASCII.isSame(value.bytes, Array("none".utf8)) { return .level(0) }
            guard let level = parseLevel(value.text) else {
                throw wrong(
                    "no level: \(value.text) (trace debug info notice warn error fatal none)",
                    value.at)
            }
            return .level(level)
        default:
            for kind in UInt8(0)...4 {
                var word: [UInt8] = []
                JSONLine.kind(kind, &word)
                if word == value.bytes { return .kind(kind) }
            }
            guard let number: UInt8 = Digits.number(value.bytes) else {
                throw wrong(
                    "no kind: \(value.text) (log gap lifecycle transaction http)", value.at)
            }
            return .kind(number)
        }
    }

    private mutating func textual(
        _ name: QueryName, _ operation: QueryOperator, _ text: String
    ) throws(QueryError) -> QueryNode {
        if operation == .like { return .compare(name, .like, .text(try like(text))) }
        let value = try written(text)
        if value.isAnything {
            try anything(operation, value)
            return .compare(name, .equal, .anything)
        }
        if operation == .below, value.isFolded {
            throw wrong("i: goes after logger= or logger!=", value.at)
        }
        return .compare(
            name, operation == .written ? .equal : operation,
            .text(.bytes(value.bytes, ignoresCase: value.isFolded)))
    }

    private mutating func general(
        _ name: QueryName, _ operation: QueryOperator, _ column: QueryColumn?,
        _ text: String
    ) throws(QueryError) -> QueryNode {
        if operation == .like { return .compare(name, .like, .text(try like(text))) }
        let value = try written(text)
        if value.isAnything {
            try anything(operation, value)
            return .compare(name, .equal, .anything)
        }
        if value.isFolded, operation.isOrder || operation == .written {
            throw wrong("i: goes after : = and !=", value.at)
        }
        let isText =
            value.isQuoted || value.isFolded || operation == .written || column?.isText ?? false
        if !isText {
            if let number = QueryNumber(value.bytes) {
                return .compare(name, operation, .number(number))
            }
            if value.text == "true" || value.text == "false" {
                return .compare(name, operation, .bool(value.text == "true"))
            }
        }
        let isFolded =
            value.isFolded
            || column?.isFolded ?? false && !operation.isOrder
                && operation != .written
        return .compare(name, operation, .text(.bytes(value.bytes, ignoresCase: isFolded)))
    }

    private mutating func like(_ name: String) throws(QueryError) -> TextPattern {
        let isFolded = takeFolding()
        guard isNext("/") else {
            throw wrong("\(name)~ takes an expression: \(name)~/…/", at)
        }
        return .expression(try expression(ignoresCase: isFolded))
    }
}
