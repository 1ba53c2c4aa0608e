// swift-log's metadata as a record's fields. Dictionaries and arrays become JSON; numbers and
// booleans keep their type, also within, and all other values become text.

import Cordwood
import Logging

/// Marks a metadata value that must not be written, also within a dictionary or an array:
/// `.attributed(token, attributes: [CordwoodPrivacy.redacted])`.
public enum CordwoodPrivacy: Int64, Logging.Logger.MetadataValueAttributes.Attribute {
    case `public` = 0
    case redacted = 1
}

struct MetadataFields {
    /// Deeper values are not written: their text would include redacted ones.
    private static let depthMax = 16
    var list: [(String, FieldInput)] = []

    mutating func add(_ key: String, _ value: Logging.Logger.MetadataValue) {
        list.append((key, Self.input(value, depth: 0)))
    }

    private static func input(_ value: Logging.Logger.MetadataValue, depth: Int) -> FieldInput {
        if value.attributes[CordwoodPrivacy.self] == .redacted { return .string("<redacted>") }
        switch value {
        case .string(let text): return .string(text)
        case .stringConvertible(let value):
            return (value as? any LogValue)?.fieldInput ?? .string(value.description)
        case .dictionary(let inner) where depth < depthMax:
            return inner.mapValues { input($0, depth: depth + 1) }.fieldInput
        case .array(let inner) where depth < depthMax:
            return inner.map { input($0, depth: depth + 1) }.fieldInput
        case .dictionary, .array: return .string("<nested too deeply>")
        }
    }
}
