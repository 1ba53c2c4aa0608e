// One exchange for people: the request, the answer, and the time of each part. Every line is
// escaped on its own, so that no captured text moves the cursor.

import Cordwood

enum ExchangeText {
    /// Width of the bar in columns.
    private static let barWidth = 50

    static func append(
        _ exchange: CapturedExchange, chain: [CapturedExchange], utc: Bool, to out: inout [UInt8]
    ) {
        head(exchange, utc, &out)
        redirects(chain, of: exchange, &out)
        timings(exchange, &out)
        put("\n", &out)
        line("> ", exchange.methodBytes + [0x20] + exchange.urlBytes, &out)
        message(exchange.request, mark: "> ", &out)
        put("\n", &out)
        if let status = exchange.status {
            let phrase = StatusPhrase.text(status)
            put("< \(status)\(phrase.isEmpty ? "" : " \(phrase)")\n", &out)
        } else {
            put("< \(exchange.isOpen ? "no answer yet" : "no answer")\n", &out)
        }
        message(exchange.response, mark: "< ", &out)
    }

    // ── The head ──

    private static func head(_ exchange: CapturedExchange, _ utc: Bool, _ out: inout [UInt8]) {
        field("id", exchange.id, &out)
        put("time           ", &out)
        Times.appendReadable(exchange.start, utc: utc, to: &out)
        put("\n", &out)
        field("state", state(exchange), &out)
        var error = [exchange.errorType, exchange.errorMessage].filter { !$0.isEmpty }
        if error.count > 1, error[0] == error[1] { error.removeLast() }
        field("error", error.joined(separator: ": "), &out)
        field("odata code", exchange.odataCode, &out)
        field("odata message", exchange.odataMessage, &out)
        field("odata id", exchange.odataTransaction, &out)
        field("side", exchange.isServer ? "server" : "", &out)
        field("protocol", exchange.networkProtocol, &out)
        field("peer", exchange.peer, &out)
        if let attempt = exchange.attempt { field("attempt", String(attempt), &out) }
        field("conversation", exchange.conversation, &out)
        field("transaction", exchange.transaction, &out)
        field("trace", exchange.traceID ?? "", &out)
        field("span", exchange.spanID ?? "", &out)
        field(
            "process", "\(exchange.processName)[\(exchange.processID):\(exchange.threadID)]", &out)
    }

    private static func state(_ exchange: CapturedExchange) -> String {
        var parts: [String] = []
        if exchange.isOpen {
            parts.append("open")
        } else if exchange.isLost {
            parts.append("lost: its process or engine is gone")
        } else if exchange.isCancelled {
            parts.append("cancelled")
        } else {
            parts.append(exchange.isFailed ? "failed" : "done")
        }
        if let duration = exchange.duration {
            parts.append("after \(ExchangeLine.milliseconds(duration)) ms")
        }
        if let left = ExchangeLine.left(exchange) { parts[parts.count - 1] += ", \(left)" }
        return parts.joined(separator: " ")
    }

    private static func field(_ name: String, _ value: String, _ out: inout [UInt8]) {
        guard !value.isEmpty else { return }
        let spaces = String(repeating: " ", count: max(1, 15 - name.utf8.count))
        put("\(name)\(spaces)\(PlainText.oneLine(value))\n", &out)
    }

    private static func redirects(
        _ chain: [CapturedExchange], of exchange: CapturedExchange, _ out: inout [UInt8]
    ) {
        for (index, one) in chain.enumerated() {
            put(index == 0 ? "redirects      " : "            -> ", &out)
            let mark = one.id == exchange.id ? " (this one)" : ""
            let known = one.urlBytes.isEmpty ? " not in the store" : ""
            let state = known.isEmpty ? ExchangeLine.state(one) + " " : ""
            let id = PlainText.oneLine(one.id)
            put("\(id) \(state)\(PlainText.oneLine(one.method))\(known) ", &out)
            ExchangeLine.bytes(one.urlBytes, &out)
            put("\(mark)\n", &out)
        }
    }

    // ── The bar ──

    /// One line per phase, with its position in the whole.
    private static func timings(_ exchange: CapturedExchange, _ out: inout [UInt8]) {
        let phases = exchange.phases.named.compactMap { phase in phase.ns.map { (phase.name, $0) } }
        let sum = phases.reduce(0.0) { $0 + Double($1.1) }
        guard sum > 0 else { return }
        put("\n", &out)
        var before = 0.0
        for (name, ns) in phases {
            let first = Int(before / sum * Double(barWidth))
            before += Double(ns)
            var last = Int(before / sum * Double(barWidth))
            last = min(max(last, first + 1), barWidth)
            let start = min(first, barWidth - 1)
            let bar =
                String(repeating: ".", count: start)
                + String(repeating: "#", count: last - start)
                + String(repeating: ".", count: barWidth - last)
            let milliseconds = ExchangeLine.milliseconds(ns)
            let spaces = String(repeating: " ", count: max(1, 12 - milliseconds.utf8.count))
            let pad = String(repeating: " ", count: 8 - name.utf8.count)
            put("\(name)\(pad)|\(bar)|\(spaces)\(milliseconds) ms\n", &out)
        }
    }

    // ── Messages ──

    private static func message(
        _ message: CapturedExchange.Message, mark: String, _ out: inout [UInt8]
    ) {
        for header in message.headers {
            line(mark, header.nameBytes + [0x3a, 0x20] + header.valueBytes, &out)
        }
        if !message.headersNote.isEmpty {
            put("  [headers \(PlainText.oneLine(message.headersNote))]\n", &out)
        }
        guard message.body != nil || message.bodyBytes ?? 0 > 0 else { return }
        put("\n", &out)
        BodyText.append(message, to: &out)
    }

    private static func line(_ mark: String, _ text: [UInt8], _ out: inout [UInt8]) {
        put(mark, &out)
        ExchangeLine.bytes(text, &out)
        put("\n", &out)
    }

    private static func put(_ text: String, _ out: inout [UInt8]) {
        out.append(contentsOf: text.utf8)
    }
}
