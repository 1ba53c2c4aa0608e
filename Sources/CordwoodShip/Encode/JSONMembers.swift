// Writes one JSON object, member after member, into a growing array. Escapes are JSONLine's: valid
// UTF-8 and valid JSON whatever the bytes. One thread at a time.
// SAFETY: views are read while they are written out, and not kept.

import CordwoodCore

struct JSONMembers {
    private var isEmpty = true

    init(_ out: inout [UInt8]) { out.append(0x7b) }

    func end(_ out: inout [UInt8]) { out.append(0x7d) }

    /// The name needs no escapes.
    mutating func name(_ name: StaticString, _ out: inout [UInt8]) {
        separate(&out)
        out.append(0x22)
        Literal.append(name, &out)
        Literal.append("\":", &out)
    }

    mutating func name(_ name: [UInt8], _ out: inout [UInt8]) {
        separate(&out)
        unsafe name.withUnsafeBytes { _ = JSONLine.string($0, &out) }
        out.append(0x3a)
    }

    /// Nothing where the text is empty.
    @safe mutating func text(
        _ name: StaticString, _ text: UnsafeRawBufferPointer, _ out: inout [UInt8]
    ) {
        guard text.count > 0 else { return }
        self.name(name, &out)
        _ = JSONLine.string(text, &out)
    }

    /// Nothing where there is none or it is empty.
    mutating func text(_ name: StaticString, _ text: String?, _ out: inout [UInt8]) {
        guard let text, !text.isEmpty else { return }
        self.name(name, &out)
        Literal.string(text, &out)
    }

    mutating func number(_ name: StaticString, _ number: UInt64, _ out: inout [UInt8]) {
        self.name(name, &out)
        Digits.append(number, to: &out)
    }

    @safe mutating func hex(
        _ name: StaticString, _ bytes: UnsafeRawBufferPointer, _ out: inout [UInt8]
    ) {
        guard bytes.count > 0 else { return }
        self.name(name, &out)
        out.append(0x22)
        Digits.appendHex(bytes, to: &out)
        out.append(0x22)
    }

    /// Always; what is not UTF-8 follows in base64 under the other name.
    mutating func message(
        _ name: StaticString, base64: StaticString, _ record: borrowing RecordRef,
        _ out: inout [UInt8]
    ) {
        self.name(name, &out)
        if JSONLine.string(record.message, mark: Cut.mark(of: record), &out) { return }
        self.name(base64, &out)
        out.append(0x22)
        JSONLine.base64(record.message, &out)
        out.append(0x22)
    }

    /// UTC with so many digits of the second.
    mutating func time(
        _ name: StaticString, _ ns: UInt64, digits: Int, _ out: inout [UInt8]
    ) {
        self.name(name, &out)
        out.append(0x22)
        Times.append(ns, digits: digits, to: &out)
        Literal.append("Z\"", &out)
    }

    /// `INFO`, `INFO+2`; nothing for a record without a level.
    mutating func level(_ name: StaticString, _ level: UInt8, _ out: inout [UInt8]) {
        guard level > 0 else { return }
        self.name(name, &out)
        out.append(0x22)
        Levels.append(level, to: &out)
        out.append(0x22)
    }

    mutating func kind(_ name: StaticString, _ kind: UInt8, _ out: inout [UInt8]) {
        self.name(name, &out)
        out.append(0x22)
        JSONLine.kind(kind, &out)
        out.append(0x22)
    }

    /// `<archive id>-<ordinal>`: the same for a record for ever.
    mutating func recordID(_ name: StaticString, _ place: RecordPlace, _ out: inout [UInt8]) {
        self.name(name, &out)
        out.append(0x22)
        place.appendID(&out)
        out.append(0x22)
    }

    /// Fields under their own keys, typed, as an object; nothing where there are none.
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

    /// Attributes of a resource as an object; nothing where there are none.
    mutating func resource(
        _ name: StaticString, _ attributes: [(key: String, value: String)], _ out: inout [UInt8]
    ) {
        guard !attributes.isEmpty else { return }
        self.name(name, &out)
        JSONMembers.object(of: attributes, &out)
    }

    static func object(of attributes: [(key: String, value: String)], _ out: inout [UInt8]) {
        var inner = JSONMembers(&out)
        for (key, value) in attributes {
            inner.name(Array(key.utf8), &out)
            Literal.string(value, &out)
        }
        inner.end(&out)
    }

    /// An object of JSON as a string of JSON.
    mutating func quoted(
        _ name: StaticString, _ out: inout [UInt8], _ make: (inout [UInt8]) -> Void
    ) {
        var text: [UInt8] = []
        make(&text)
        self.name(name, &out)
        unsafe text.withUnsafeBytes { _ = JSONLine.string($0, &out) }
    }

    private mutating func separate(_ out: inout [UInt8]) {
        if !isEmpty { out.append(0x2c) }
        isEmpty = false
    }
}

enum Literal {
    @inline(__always)
    static func append(_ text: StaticString, _ out: inout [UInt8]) {
        unsafe out.append(contentsOf: Bytes.literal(text))
    }

    /// As a JSON string.
    static func string(_ text: String, _ out: inout [UInt8]) {
        var text = text
        text.withUTF8 { _ = JSONLine.string(UnsafeRawBufferPointer($0), &out) }
    }
}
