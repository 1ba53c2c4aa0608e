// Arrays and dictionaries as values of fields: they become JSON (FORMAT §8.2), which readers show
// as a structured value and queries address by path. Pure; any thread.
//
//     log.info("order", fields: ["order": ["id": 7, "items": ["a", "b"]] as FieldInput])

import CordwoodCore
import CordwoodFormats
import CordwoodStore

extension Array: LogValue where Element: LogValue {
    public var fieldInput: FieldInput { FieldInput(array: map(\.fieldInput)) }
}

/// The members are in the order of their keys.
extension Dictionary: LogValue where Key == String, Value: LogValue {
    public var fieldInput: FieldInput {
        FieldInput(
            object: sorted { $0.key < $1.key }.map { ($0.key, $0.value.fieldInput) })
    }
}

extension FieldInput: ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral {
    public init(arrayLiteral elements: FieldInput...) { self.init(array: elements) }

    /// The members are in the order of the literal; of equal keys the first counts.
    public init(dictionaryLiteral elements: (String, FieldInput)...) { self.init(object: elements) }

    /// JSON's null.
    public static var null: FieldInput { .json("null") }

    package init(array elements: [FieldInput]) {
        var out: [UInt8] = [0x5B]
        for element in elements {
            if out.count > 1 { out.append(0x2C) }
            element.append(to: &out)
        }
        out.append(0x5D)
        self = .json(String(decoding: out, as: UTF8.self))
    }

    package init(object members: [(String, FieldInput)]) {
        var out: [UInt8] = []
        var object = JSONMembers(&out)
        var names: Set<String> = []
        for (name, value) in members where names.insert(name).inserted {
            object.name(name, &out)
            value.append(to: &out)
        }
        object.end(&out)
        self = .json(String(decoding: out, as: UTF8.self))
    }

    /// As a part of JSON: numbers that are not finite, and invalid JSON, become text.
    private func append(to out: inout [UInt8]) {
        switch self {
        case .int(let number): Digits.append(signed: number, to: &out)
        case .uint(let number): Digits.append(number, to: &out)
        case .double(let number): JSONLine.append(.double(number), &out)
        case .bool(let flag): Literal.append(flag ? "true" : "false", &out)
        case .string(let text): JSONText.string(text, &out)
        case .json(var text):
            let isJSON = text.withUTF8 { JSONCheck.isValid(UnsafeRawBufferPointer($0)) }
            if isJSON { out += text.utf8 } else { JSONText.string(text, &out) }
        }
    }
}
