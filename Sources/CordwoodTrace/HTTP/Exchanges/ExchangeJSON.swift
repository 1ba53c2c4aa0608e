// An exchange as a JSON object: complete, as `cordwood http --json` prints it, or with less of its
// messages, for lists. Pure.

import CordwoodFormats
import CordwoodStore

package enum ExchangeJSON {
    /// How much of the two messages is written.
    package enum Part: Sendable {
        /// Headers and bodies.
        case whole
        /// Headers, and the kind and the kept size of bodies.
        case described
        /// Content-Type and sizes.
        case brief
    }

    package static func object(
        _ exchange: CapturedExchange, _ part: Part = .whole
    ) -> JSONObject {
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
        let request = message(exchange.request, part)
        let response = message(exchange.response, part)
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

    private static func message(
        _ message: CapturedExchange.Message, _ part: Part
    ) -> JSONObject {
        var object = JSONObject()
        if part == .brief {
            add("type", message.header("Content-Type") ?? "")
        } else if !message.headers.isEmpty {
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
        switch (part, message.body) {
        case (.whole, let body?):
            if ExchangeJSON.isText(body) {
                object.add("body", bytes: body)
            } else {
                object.add("body_base64", base64: body)
            }
        case (.described, let body?):
            object.add("body_kind", ExchangeJSON.kind(message, body))
            object.add("body_kept", UInt64(body.count))
        default: break
        }
        if let bytes = message.bodyBytes { object.add("body_bytes", bytes) }
        add("body_note", message.bodyNote)
        return object

        func add(_ key: String, _ value: String) {
            if !value.isEmpty { object.add(key, value) }
        }
    }

    /// An image, a form of text that a reader may be shown, or bytes.
    private static func kind(_ message: CapturedExchange.Message, _ body: [UInt8]) -> String {
        let type = BodyKind.mediaType(message.header("Content-Type") ?? "")
        if images.contains(type) { return "image" }
        guard isText(body), !body.contains(0) else { return "bytes" }
        if BodyKind.isJSON(type) { return "json" }
        return BodyKind.isForm(type) ? "form" : "text"
    }

    /// Images that browsers draw without running anything.
    private static let images = ["image/png", "image/jpeg", "image/gif", "image/webp"]

    /// SAFETY: the view is read in the call only.
    private static func isText(_ body: [UInt8]) -> Bool {
        unsafe body.withUnsafeBytes { UTF8Scan.isValid($0) }
    }
}
