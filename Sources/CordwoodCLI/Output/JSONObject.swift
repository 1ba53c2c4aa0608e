// A small JSON object for the summaries of verbs, in the order in which members are added; and UTC
// times as text. No state besides the text.

import Cordwood
import Glibc

struct JSONObject {
    private var members: [UInt8] = []

    var isEmpty: Bool { members.isEmpty }

    var text: String { "{" + String(decoding: members, as: UTF8.self) + "}" }

    mutating func add(_ key: String, _ value: String) {
        begin(key)
        JSONObject.string(value, &members)
    }

    mutating func add(_ key: String, _ value: UInt64) {
        begin(key)
        members += Array(String(value).utf8)
    }

    mutating func add(_ key: String, _ value: Bool) {
        begin(key)
        members += Array((value ? "true" : "false").utf8)
    }

    mutating func add(_ key: String, _ value: JSONObject) {
        begin(key)
        members += Array(value.text.utf8)
    }

    mutating func add(_ key: String, _ values: [JSONObject]) {
        begin(key)
        members += Array(("[" + values.map(\.text).joined(separator: ",") + "]").utf8)
    }

    mutating func add(_ key: String, _ values: [String]) {
        begin(key)
        members.append(UInt8(ascii: "["))
        for (index, value) in values.enumerated() {
            if index > 0 { members.append(UInt8(ascii: ",")) }
            JSONObject.string(value, &members)
        }
        members.append(UInt8(ascii: "]"))
    }

    /// What is JSON already.
    mutating func add(_ key: String, raw: [UInt8]) {
        begin(key)
        members += raw
    }

    private mutating func begin(_ key: String) {
        if !members.isEmpty { members.append(UInt8(ascii: ",")) }
        JSONObject.string(key, &members)
        members.append(UInt8(ascii: ":"))
    }

    private static func string(_ text: String, _ out: inout [UInt8]) {
        var text = text
        text.withUTF8 { _ = JSONText.string(UnsafeRawBufferPointer($0), &out) }
    }
}
