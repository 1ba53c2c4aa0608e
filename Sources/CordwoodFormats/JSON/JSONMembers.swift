// Writes one JSON object, member after member, into a growing array. Escapes are JSONText's: valid
// UTF-8 and valid JSON whatever the bytes. One thread at a time.
// SAFETY: views are read while they are written out, and not kept.

package struct JSONMembers {
    private var isEmpty = true

    package init(_ out: inout [UInt8]) { out.append(0x7b) }

    package func end(_ out: inout [UInt8]) { out.append(0x7d) }

    /// The name needs no escapes.
    package mutating func name(_ name: StaticString, _ out: inout [UInt8]) {
        separate(&out)
        out.append(0x22)
        Literal.append(name, &out)
        Literal.append("\":", &out)
    }

    package mutating func name(_ name: [UInt8], _ out: inout [UInt8]) {
        separate(&out)
        JSONText.string(name, &out)
        out.append(0x3a)
    }

    package mutating func name(_ name: String, _ out: inout [UInt8]) {
        self.name(Array(name.utf8), &out)
    }

    /// Writes nothing if the text is empty.
    @safe package mutating func text(
        _ name: StaticString, _ text: UnsafeRawBufferPointer, _ out: inout [UInt8]
    ) {
        guard text.count > 0 else { return }
        self.name(name, &out)
        _ = JSONText.string(text, &out)
    }

    /// Writes nothing if the text is nil or empty.
    package mutating func text(_ name: StaticString, _ text: String?, _ out: inout [UInt8]) {
        guard let text, !text.isEmpty else { return }
        self.name(name, &out)
        JSONText.string(text, &out)
    }

    package mutating func number(_ name: StaticString, _ number: UInt64, _ out: inout [UInt8]) {
        self.name(name, &out)
        Digits.append(number, to: &out)
    }

    /// A string that needs no escapes.
    package mutating func word(
        _ name: StaticString, _ out: inout [UInt8], _ append: (inout [UInt8]) -> Void
    ) {
        self.name(name, &out)
        out.append(0x22)
        append(&out)
        out.append(0x22)
    }

    @safe package mutating func hex(
        _ name: StaticString, _ bytes: UnsafeRawBufferPointer, _ out: inout [UInt8]
    ) {
        if bytes.count > 0 { word(name, &out) { Hex.append(bytes, to: &$0) } }
    }

    /// UTC, with that many digits of the second.
    package mutating func time(
        _ name: StaticString, _ ns: UInt64, digits: Int, _ out: inout [UInt8]
    ) {
        word(name, &out) {
            Times.append(ns, digits: digits, to: &$0)
            $0.append(0x5a)
        }
    }

    package static func object(of attributes: [(key: String, value: String)], _ out: inout [UInt8])
    {
        var inner = JSONMembers(&out)
        for (key, value) in attributes {
            inner.name(key, &out)
            JSONText.string(value, &out)
        }
        inner.end(&out)
    }

    /// A JSON object as a JSON string.
    package mutating func quoted(
        _ name: StaticString, _ out: inout [UInt8], _ make: (inout [UInt8]) -> Void
    ) {
        var text: [UInt8] = []
        make(&text)
        self.name(name, &out)
        JSONText.string(text, &out)
    }

    private mutating func separate(_ out: inout [UInt8]) {
        if !isEmpty { out.append(0x2c) }
        isEmpty = false
    }
}
