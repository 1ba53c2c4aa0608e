// swift-log's metadata as a record's fields. Dictionaries and arrays become one field per element,
// `key.inner` and `key.0`; numbers and booleans keep their type, all other values become text.

import Cordwood
import Logging

/// Marks a metadata value that must not be written:
/// `.attributed(token, attributes: [CordwoodPrivacy.redacted])`.
public enum CordwoodPrivacy: Int64, Logging.Logger.MetadataValueAttributes.Attribute {
    case `public` = 0
    case redacted = 1
}

struct MetadataFields {
    /// Deeper values are not written: their text would include redacted ones.
    private static let depthMax = 16
    var list: [(String, FieldInput)] = []

    mutating func add(_ key: String, _ value: Logging.Logger.MetadataValue, depth: Int = 0) {
        if value.attributes[CordwoodPrivacy.self] == .redacted {
            list.append((key, .string("<redacted>")))
            return
        }
        switch value {
        case .string(let text): list.append((key, .string(text)))
        case .stringConvertible(let value):
            let input = (value as? any LogValue)?.fieldInput
            list.append((key, input ?? .string(value.description)))
        case .dictionary(let inner) where !inner.isEmpty && depth < Self.depthMax:
            for (name, value) in inner.sorted(by: { $0.key < $1.key }) {
                add("\(key).\(name)", value, depth: depth + 1)
            }
        case .array(let inner) where !inner.isEmpty && depth < Self.depthMax:
            for (index, value) in inner.enumerated() {
                add("\(key).\(index)", value, depth: depth + 1)
            }
        case .dictionary([:]), .array([]): list.append((key, .string(value.description)))
        case .dictionary, .array: list.append((key, .string("<nested too deeply>")))
        }
    }
}
