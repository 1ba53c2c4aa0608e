// An exchange as a line for people. On a terminal a failed one is red, and control characters are
// made harmless, so that a URL moves no cursor.

import Cordwood

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
            output.put { ExchangeLine.append(exchange, isUTC, to: &$0) }
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
