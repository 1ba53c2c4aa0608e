// A small JSON object for the output of the command line and the viewer, with members in the order
// of their addition. The text is its only state.

package struct JSONObject {
    private var bytes: [UInt8] = []
    private var members: JSONMembers

    package init() { members = JSONMembers(&bytes) }

    package var isEmpty: Bool { bytes.count == 1 }

    package var text: String { String(decoding: bytes, as: UTF8.self) + "}" }

    package mutating func add(_ key: String, _ value: String) {
        members.name(key, &bytes)
        JSONText.string(value, &bytes)
    }

    package mutating func add(_ key: String, _ value: UInt64) { add(key, raw: String(value)) }

    package mutating func add(_ key: String, number: Int64) { add(key, raw: String(number)) }

    package mutating func add(_ key: String, _ value: Bool) {
        add(key, raw: value ? "true" : "false")
    }

    package mutating func add(_ key: String, _ value: JSONObject) { add(key, raw: value.text) }

    package mutating func add(_ key: String, _ values: [JSONObject]) {
        add(key, raw: "[" + values.map(\.text).joined(separator: ",") + "]")
    }

    package mutating func add(_ key: String, _ values: [String]) {
        members.name(key, &bytes)
        for (index, value) in values.enumerated() {
            bytes.append(UInt8(ascii: index == 0 ? "[" : ","))
            JSONText.string(value, &bytes)
        }
        bytes += (values.isEmpty ? "[]" : "]").utf8
    }

    /// With three digits after the point.
    package mutating func add(_ key: String, milliseconds ns: UInt64) {
        add(key, raw: Times.milliseconds(ns))
    }

    package mutating func add(_ key: String, bytes text: [UInt8]) {
        members.name(key, &bytes)
        JSONText.string(text, &bytes)
    }

    /// SAFETY: the view is read in the call only.
    package mutating func add(_ key: String, base64 text: [UInt8]) {
        members.name(key, &bytes)
        bytes.append(UInt8(ascii: "\""))
        unsafe text.withUnsafeBytes { JSONText.base64($0, &bytes) }
        bytes.append(UInt8(ascii: "\""))
    }

    /// Adds a value that is JSON already.
    package mutating func add(_ key: String, raw: String) {
        members.name(key, &bytes)
        bytes += raw.utf8
    }
}
