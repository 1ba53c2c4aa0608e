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

enum UTCTime {
    /// `2026-11-21T08:15:30.123Z`.
    static func text(_ ns: UInt64) -> String {
        var seconds = time_t(ns / 1_000_000_000)
        // SAFETY: `tm` is unsafe for its zone name, which gmtime_r points to static text.
        var parts = unsafe tm()
        unsafe gmtime_r(&seconds, &parts)
        let date = unsafe [Int(parts.tm_year) + 1900, Int(parts.tm_mon) + 1, Int(parts.tm_mday)]
        let clock = unsafe [parts.tm_hour, parts.tm_min, parts.tm_sec].map { pad(Int($0), 2) }
        let day = date.map { pad($0, 2) }.joined(separator: "-")
        let milliseconds = pad(Int(ns / 1_000_000 % 1000), 3)
        return "\(day)T\(clock.joined(separator: ":")).\(milliseconds)Z"
    }

    /// `2026-11-21T08:15:30Z`.
    static func seconds(_ ns: UInt64) -> String { String(text(ns).prefix(19)) + "Z" }

    private static func pad(_ value: Int, _ width: Int) -> String {
        let digits = String(value)
        return String(repeating: "0", count: max(0, width - digits.utf8.count)) + digits
    }
}
