// Members of a JSON object that several record encoders share. One thread at a time.
// SAFETY: views are read while they are written out, and not kept.

import CordwoodCore
import CordwoodFormats
import CordwoodStore

extension JSONMembers {
    /// Always present; invalid UTF-8 follows in base64 under the other name.
    mutating func message(
        _ name: StaticString, base64: StaticString, _ record: borrowing RecordRef,
        _ out: inout [UInt8]
    ) {
        self.name(name, &out)
        if JSONText.string(record.message, mark: Cut.mark(of: record), &out) { return }
        let message = record.message
        word(base64, &out) { JSONText.base64(message, &$0) }
    }

    /// `INFO`, `INFO+2`; writes nothing for a record without a level.
    mutating func level(_ name: StaticString, _ level: UInt8, _ out: inout [UInt8]) {
        if level > 0 { word(name, &out) { Levels.append(level, to: &$0) } }
    }

    mutating func kind(_ name: StaticString, _ kind: UInt8, _ out: inout [UInt8]) {
        word(name, &out) { JSONLine.kind(kind, &$0) }
    }

    /// A record's permanent id.
    mutating func recordID(_ name: StaticString, _ record: RecordRef, _ out: inout [UInt8]) {
        word(name, &out) { record.id.append(to: &$0) }
    }

    /// Fields under their own keys, typed, as an object. Writes nothing without fields.
    mutating func fields(
        _ name: StaticString, _ fields: [UniqueFields.Field], _ out: inout [UInt8]
    ) {
        guard !fields.isEmpty else { return }
        self.name(name, &out)
        JSONMembers.object(of: fields, &out)
    }

    static func object(of fields: [UniqueFields.Field], _ out: inout [UInt8]) {
        var inner = JSONMembers(&out)
        var names = FieldNames(.any)
        for field in fields {
            inner.name(names.name(field.key), &out)
            JSONLine.append(field.value, &out)
        }
        inner.end(&out)
    }

    /// Attributes of a resource as an object. Writes nothing without attributes.
    mutating func resource(
        _ name: StaticString, _ attributes: [(key: String, value: String)], _ out: inout [UInt8]
    ) {
        guard !attributes.isEmpty else { return }
        self.name(name, &out)
        JSONMembers.object(of: attributes, &out)
    }
}

enum FieldJSON {
    /// Any value as a JSON string.
    static func appendString(_ value: FieldValue, _ out: inout [UInt8]) {
        switch value {
        case .string(let text), .json(let text): _ = JSONText.string(text, &out)
        default:
            out.append(0x22)
            FieldText.append(value, to: &out)
            out.append(0x22)
        }
    }
}
