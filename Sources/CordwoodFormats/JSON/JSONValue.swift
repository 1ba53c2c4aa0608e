// A JSON text as a value, parsed by jansson. Input from outside is first bounded in bytes and
// depth; whole numbers are exact or refused. Off the hot path; any thread; nothing is kept.
// SAFETY: the tree belongs to this call from load to decref; its strings are read for the length
// that jansson gives, and copied; nothing of it is kept.

import CJansson

/// Why a text is not accepted as JSON: one line, with the place.
package struct JSONProblem: Error, Equatable {
    package var text: String
}

package indirect enum JSONValue: Equatable, Sendable {
    case null
    case bool(Bool)
    case integer(Int64)
    case real(Double)
    case string(String)
    case array([JSONValue])
    /// In the order of the text; no key twice.
    case object([Member])

    package struct Member: Equatable, Sendable {
        package var key: String
        package var value: JSONValue
    }

    static let depthMax = 32

    package static func parse(_ bytes: [UInt8], bytesMax: Int) throws(JSONProblem) -> JSONValue {
        guard bytes.count <= bytesMax else {
            throw JSONProblem(text: "the text is over \(bytesMax) bytes")
        }
        // jansson goes one call deeper for each level, on a stack that is the host's.
        guard depth(bytes) <= depthMax else {
            throw JSONProblem(text: "the text is nested more than \(depthMax) deep")
        }
        guard isSeeded else { throw JSONProblem(text: "") }
        var error = json_error_t()
        let tree = unsafe bytes.withUnsafeBytes { buffer in
            unsafe cwi_json_load(
                buffer.baseAddress?.assumingMemoryBound(to: CChar.self), buffer.count, &error)
        }
        guard let tree = unsafe tree else {
            throw JSONProblem(text: JSONValue.text(&error))
        }
        defer { unsafe json_decref(tree) }
        return unsafe convert(tree)
    }

    // ── What readers ask ──

    /// nil: this is not an object, or has no such key.
    package subscript(_ key: String) -> JSONValue? { members.first { $0.key == key }?.value }

    package var members: [Member] {
        if case .object(let members) = self { return members }
        return []
    }

    package var elements: [JSONValue] {
        if case .array(let elements) = self { return elements }
        return []
    }

    package var string: String? {
        if case .string(let text) = self { return text }
        return nil
    }

    /// A whole number, also if it is written with a fraction or an exponent.
    package var whole: Int64? {
        switch self {
        case .integer(let number): return number
        // Beyond 2^53 a double does not identify one whole number.
        case .real(let number) where number.magnitude <= 9_007_199_254_740_992:
            return Int64(exactly: number)
        default: return nil
        }
    }

    /// The name of this value in an error: "a string", "the number 7".
    package var kind: String {
        switch self {
        case .null: return "null"
        case .bool(let flag): return flag ? "true" : "false"
        case .integer(let number): return "the number \(number)"
        case .real(let number): return "the number \(number)"
        case .string: return "a string"
        case .array: return "a list"
        case .object: return "an object"
        }
    }

    // ── Reading ──

    /// The depth of nested brackets; those in strings do not count. Returns a number even for text
    /// that is not JSON.
    private static func depth(_ bytes: [UInt8]) -> Int {
        var depth = 0
        var deepest = 0
        var isString = false
        var isEscaped = false
        for byte in bytes {
            if isString {
                if isEscaped {
                    isEscaped = false
                } else if byte == UInt8(ascii: "\\") {
                    isEscaped = true
                } else if byte == UInt8(ascii: "\"") {
                    isString = false
                }
                continue
            }
            switch byte {
            case UInt8(ascii: "\""): isString = true
            case UInt8(ascii: "["), UInt8(ascii: "{"):
                depth += 1
                deepest = max(deepest, depth)
            case UInt8(ascii: "]"), UInt8(ascii: "}"): depth -= 1
            default: break
            }
        }
        return deepest
    }

    /// jansson would open /dev/urandom at its first object, in the middle of a host's call.
    private static let isSeeded: Bool = {
        json_object_seed(Int(UInt32.random(in: 1 ... .max)))
        return true
    }()

    /// No deeper than `depthMax`.
    private static func convert(_ tree: UnsafeMutablePointer<json_t>) -> JSONValue {
        switch unsafe tree.pointee.type {
        case JSON_TRUE: return .bool(true)
        case JSON_FALSE: return .bool(false)
        case JSON_INTEGER: return unsafe .integer(Int64(json_integer_value(tree)))
        case JSON_REAL: return unsafe .real(json_real_value(tree))
        case JSON_STRING:
            guard let start = unsafe json_string_value(tree) else { return .string("") }
            let bytes = unsafe UnsafeRawBufferPointer(
                start: start, count: json_string_length(tree))
            return unsafe .string(String(decoding: bytes, as: UTF8.self))
        case JSON_ARRAY:
            var elements: [JSONValue] = []
            for index in unsafe 0..<json_array_size(tree) {
                guard let element = unsafe json_array_get(tree, index) else { break }
                unsafe elements.append(convert(element))
            }
            return .array(elements)
        case JSON_OBJECT:
            var members: [Member] = []
            var next = unsafe json_object_iter(tree)
            while let item = unsafe next {
                // jansson refuses keys with a NUL.
                if let key = unsafe json_object_iter_key(item),
                    let value = unsafe json_object_iter_value(item)
                {
                    unsafe members.append(
                        Member(key: String(cString: key), value: convert(value)))
                }
                unsafe next = json_object_iter_next(tree, item)
            }
            return .object(members)
        default: return .null
        }
    }

    private static func text(_ error: inout json_error_t) -> String {
        let line = error.line
        let cause = unsafe withUnsafeBytes(of: &error.text) { bytes in
            unsafe String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
        }
        return line > 0 ? "line \(line): \(cause)" : cause
    }
}
