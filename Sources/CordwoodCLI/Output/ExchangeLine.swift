// An exchange as a line for people, or as a JSON object. On a terminal a failed one is red, and
// control characters are made harmless, so that a URL moves no cursor.

import Cordwood
import Glibc

struct ExchangeStyle {
    var isJSON: Bool
    var isUTC: Bool

    init(_ selection: Selection) {
        isJSON = selection.json
        isUTC = selection.utc
    }

    func print(_ exchange: CapturedExchange) {
        let output = Output.standard
        if isJSON {
            output.append(ExchangeJSON.object(exchange).text + "\n")
        } else {
            ExchangeLine.append(exchange, isUTC, to: &output.bytes)
            output.settle()
        }
    }
}

enum ExchangeLine {
    static func append(_ exchange: CapturedExchange, _ isUTC: Bool, to out: inout [UInt8]) {
        let hasColor = Output.standard.hasColor
        if hasColor, let color = color(exchange) { put(color, &out) }
        Times.appendReadable(exchange.start, utc: isUTC, to: &out)
        put(" \(padded(clean(exchange.id), 16)) ", &out)
        put(exchange.isServer ? "< " : "> ", &out)
        put(padded(clean(exchange.method), 6), &out)
        put(" \(padded(state(exchange), 5)) ", &out)
        put(padded(duration(exchange), 11, left: false), &out)
        put(" \(padded(size(exchange.request), 8, left: false))", &out)
        put(" \(padded(size(exchange.response), 8, left: false)) ", &out)
        bytes(exchange.urlBytes, &out)
        let error = problem(exchange)
        if !error.isEmpty { put("  ! \(error)", &out) }
        if hasColor { put("\u{1B}[0m", &out) }
        out.append(0x0a)
    }

    /// `200`; without an answer `open`, `lost`, `gone` (aborted), `-`.
    static func state(_ exchange: CapturedExchange) -> String {
        if let status = exchange.status { return String(status) }
        if exchange.isOpen { return "open" }
        if exchange.isLost { return "lost" }
        return exchange.isCancelled ? "gone" : "-"
    }

    static func duration(_ exchange: CapturedExchange) -> String {
        exchange.duration.map { "\(milliseconds($0)) ms" } ?? ""
    }

    /// With one digit after the point.
    static func milliseconds(_ ns: UInt64) -> String {
        "\(ns / 1_000_000).\(ns / 100_000 % 10)"
    }

    /// The problem besides the status, in one line; empty for a success.
    static func problem(_ exchange: CapturedExchange) -> String {
        var parts: [String] = []
        if exchange.isCancelled { parts.append("cancelled") }
        for text in [exchange.errorType, exchange.errorMessage]
        where !text.isEmpty && parts.last != text {
            parts.append(text)
        }
        let odata = [exchange.odataCode, exchange.odataMessage].filter { !$0.isEmpty }
        if !odata.isEmpty { parts.append(odata.joined(separator: " ")) }
        if let left = left(exchange) { parts.append(left) }
        if parts.isEmpty, exchange.isLost { return "its process or engine is gone" }
        if parts.isEmpty, exchange.isFailed, exchange.status == nil { return "no answer" }
        return clean(parts.joined(separator: ": "))
    }

    static func left(_ exchange: CapturedExchange) -> String? {
        exchange.leftOf.map { "left after \(exchange.response.bodyBytes ?? 0) of \($0) bytes" }
    }

    /// 917, 64.0K, 20.0M; empty: no body.
    private static func size(_ message: CapturedExchange.Message) -> String {
        guard let bytes = message.bodyBytes else { return "-" }
        var scaled = bytes
        var tenths: UInt64 = 0
        for unit in ["", "K", "M", "G", "T", "P"] {
            if scaled < 1024 { return unit.isEmpty ? "\(scaled)" : "\(scaled).\(tenths)\(unit)" }
            tenths = scaled % 1024 * 10 / 1024
            scaled /= 1024
        }
        return "\(scaled)E"
    }

    private static func color(_ exchange: CapturedExchange) -> String? {
        if exchange.isOpen { return "\u{1B}[36m" }
        guard exchange.isFailed else { return nil }
        return (400..<500).contains(exchange.status ?? 0) ? "\u{1B}[33m" : "\u{1B}[31m"
    }

    private static func padded(_ text: String, _ width: Int, left: Bool = true) -> String {
        let spaces = String(repeating: " ", count: max(0, width - text.utf8.count))
        return left ? text + spaces : spaces + text
    }

    static func clean(_ text: String) -> String { PlainText.oneLine(text) }

    static func put(_ text: String, _ out: inout [UInt8]) { out.append(contentsOf: text.utf8) }

    /// One line, whatever is in it.
    /// SAFETY: the view is read in the call only.
    static func bytes(_ text: [UInt8], _ out: inout [UInt8]) {
        unsafe text.withUnsafeBytes { PlainText.append($0, as: .oneLine, to: &out) }
    }
}

enum ExchangeJSON {
    static func object(_ exchange: CapturedExchange) -> JSONObject {
        var object = JSONObject()
        func add(_ key: String, _ value: String) {
            if !value.isEmpty { object.add(key, value) }
        }
        object.add("state", exchange.isOpen ? "open" : exchange.isLost ? "lost" : "done")
        object.add("id", exchange.id)
        object.add("side", exchange.isServer ? "server" : "client")
        object.add("time", Times.text(exchange.start))
        object.add("method", exchange.method)
        object.add("url", exchange.url)
        add("host", exchange.host)
        if let port = exchange.port { object.add("port", port) }
        if let status = exchange.status { object.add("status", status) }
        object.add("failed", exchange.isFailed)
        if let duration = exchange.duration { object.add("duration_ms", milliseconds: duration) }
        var phases = JSONObject()
        for (name, ns) in exchange.phases.named { if let ns { phases.add(name, milliseconds: ns) } }
        if !phases.isEmpty { object.add("phases_ms", phases) }
        addGroup("error", [("type", exchange.errorType), ("message", exchange.errorMessage)])
        if exchange.isCancelled { object.add("cancelled", true) }
        if let left = exchange.leftOf { object.add("left_of_bytes", left) }
        addGroup(
            "odata",
            [
                ("code", exchange.odataCode), ("message", exchange.odataMessage),
                ("transaction_id", exchange.odataTransaction),
            ])
        let (request, response) = (message(exchange.request), message(exchange.response))
        if !request.isEmpty { object.add("request", request) }
        if !response.isEmpty { object.add("response", response) }
        add("conversation", exchange.conversation)
        add("redirected_from", exchange.redirectedFrom)
        if let attempt = exchange.attempt { object.add("attempt", attempt) }
        add("protocol", exchange.networkProtocol)
        add("peer", exchange.peer)
        add("transaction", exchange.transaction)
        add("trace_id", exchange.traceID ?? "")
        add("span_id", exchange.spanID ?? "")
        object.add("pid", UInt64(exchange.processID))
        object.add("tid", UInt64(exchange.threadID))
        add("process", exchange.processName)
        return object

        func addGroup(_ key: String, _ members: [(String, String)]) {
            var group = JSONObject()
            for (name, value) in members where !value.isEmpty { group.add(name, value) }
            if !group.isEmpty { object.add(key, group) }
        }
    }

    private static func message(_ message: CapturedExchange.Message) -> JSONObject {
        var object = JSONObject()
        if !message.headers.isEmpty {
            object.add(
                "headers",
                message.headers.map { header in
                    var pair = JSONObject()
                    pair.add("name", header.name)
                    pair.add("value", header.value)
                    return pair
                })
        }
        add("headers_note", message.headersNote)
        if let body = message.body {
            // SAFETY: the view is read in the call only.
            let isText = unsafe body.withUnsafeBytes { UTF8Scan.isValid($0) }
            if isText {
                object.add("body", bytes: body)
            } else {
                object.add("body_base64", base64: body)
            }
        }
        if let bytes = message.bodyBytes { object.add("body_bytes", bytes) }
        add("body_note", message.bodyNote)
        return object

        func add(_ key: String, _ value: String) {
            if !value.isEmpty { object.add(key, value) }
        }
    }
}
