// Exchanges as HAR 1.2, which browsers' tools read: `begin`, `append` for each, `finish`. Holds
// nothing in between, so it handles a store of any size. Facts without a place in HAR go into
// members of our own, with an underscore: `_id`, `_error`, `_state`, `_conversation`, … Pure.

import CordwoodCore
import CordwoodFormats
import CordwoodStore

public struct HARWriter: Sendable {
    private var count: UInt64 = 0

    public init() {}

    public mutating func begin(_ out: inout [UInt8]) {
        out += "{\"log\":{\"version\":\"1.2\",\"creator\":{\"name\":\"Cordwood\",\"version\":".utf8
        JSONText.string(versionText, &out)
        out += "},\"entries\":[".utf8
    }

    public mutating func append(_ exchange: CapturedExchange, to out: inout [UInt8]) {
        out += (count == 0 ? "\n" : ",\n").utf8
        count &+= 1
        HAREntry(exchange).append(to: &out)
    }

    public mutating func finish(_ out: inout [UInt8]) { finish(comment: "", &out) }

    /// - Parameter comment: a remark about the whole; empty: none.
    package mutating func finish(comment: String, _ out: inout [UInt8]) {
        out += "\n]".utf8
        if !comment.isEmpty {
            out += ",\"comment\":".utf8
            JSONText.string(comment, &out)
        }
        out += "}}\n".utf8
    }
}

/// One entry.
struct HAREntry {
    private let exchange: CapturedExchange
    private let url: CapturedURL

    init(_ exchange: CapturedExchange) {
        self.exchange = exchange
        url = CapturedURL(exchange.urlBytes)
    }

    func append(to out: inout [UInt8]) {
        out += "{\"startedDateTime\":\"".utf8
        Times.append(exchange.start, digits: 3, to: &out)
        let timings = HARTimings(exchange)
        out += "Z\",\"time\":\(Times.milliseconds(timings.total)),\"request\":".utf8
        appendRequest(&out)
        out += ",\"response\":".utf8
        appendResponse(&out)
        out += ",\"cache\":{},\"timings\":".utf8
        timings.append(to: &out)
        let address = serverAddress
        if !address.isEmpty {
            out += ",\"serverIPAddress\":".utf8
            JSONText.string(address, &out)
        }
        appendOwn(&out)
        out += "}".utf8
    }

    // ── Request and response ──

    private func appendRequest(_ out: inout [UInt8]) {
        let message = exchange.request
        out += "{\"method\":".utf8
        JSONText.string(exchange.methodBytes, &out)
        out += ",\"url\":".utf8
        JSONText.string(exchange.urlBytes, &out)
        appendHead(message, &out)
        out += ",\"queryString\":".utf8
        HARText.pairs(CapturedURL.items(url.query ?? []).map { ($0.name, $0.value) }, &out)
        if message.body != nil || !message.bodyNote.isEmpty {
            let body = message.body ?? []
            let type = message.header("Content-Type") ?? ""
            out += ",\"postData\":{\"mimeType\":".utf8
            JSONText.string(type, &out)
            out += ",\"text\":".utf8
            // HAR defines how to write bytes only for responses.
            let isText = HARText.text(body, &out)
            if !isText { out += ",\"_encoding\":\"base64\"".utf8 }
            let isForm = isText && BodyKind.isForm(type)
            out += ",\"params\":".utf8
            HARText.pairs(
                isForm ? CapturedURL.items(body[...]).map { ($0.name, $0.value) } : [], &out)
            appendNote(message, &out)
            out += "}".utf8
        }
        out += ",\"headersSize\":-1,\"bodySize\":\(HAREntry.size(message))".utf8
        appendHeadersNote(message, &out)
        out += "}".utf8
    }

    private func appendResponse(_ out: inout [UInt8]) {
        let message = exchange.response
        let status = exchange.status ?? 0
        out += "{\"status\":\(status),\"statusText\":".utf8
        JSONText.string(StatusPhrase.text(status), &out)
        appendHead(message, &out)
        let body = message.body ?? []
        out += ",\"content\":{\"size\":\(HAREntry.contentSize(message)),\"mimeType\":".utf8
        JSONText.string(message.header("Content-Type") ?? "x-unknown", &out)
        if message.body != nil {
            out += ",\"text\":".utf8
            if !HARText.text(body, &out) { out += ",\"encoding\":\"base64\"".utf8 }
        }
        appendNote(message, &out)
        out += "},\"redirectURL\":".utf8
        JSONText.string(message.header("Location") ?? "", &out)
        let sent = exchange.status == nil ? "-1" : HAREntry.size(message)
        out += ",\"headersSize\":-1,\"bodySize\":\(sent)".utf8
        appendHeadersNote(message, &out)
        out += "}".utf8
    }

    /// The size of the answer's content: the received size, except for unpacked bodies.
    private static func contentSize(_ message: CapturedExchange.Message) -> UInt64 {
        let kept = UInt64(message.body?.count ?? 0)
        // Some clients unpack it and leave the header.
        let coding = message.header("Content-Encoding") ?? ""
        let isPacked = !["", "identity"].contains(coding) && message.bodyNote.isEmpty
        if isPacked || message.bodyNote == "unpacked" { return kept }
        return message.bodyBytes ?? kept
    }

    /// Notes why a body is incomplete.
    private func appendNote(_ message: CapturedExchange.Message, _ out: inout [UInt8]) {
        guard !message.bodyNote.isEmpty else { return }
        out += ",\"comment\":".utf8
        JSONText.string(message.bodyNote, &out)
    }

    private func appendHeadersNote(
        _ message: CapturedExchange.Message, _ out: inout [UInt8]
    ) {
        guard !message.headersNote.isEmpty else { return }
        out += ",\"comment\":".utf8
        JSONText.string("headers \(message.headersNote)", &out)
    }

    private func appendHead(_ message: CapturedExchange.Message, _ out: inout [UInt8]) {
        out += ",\"httpVersion\":".utf8
        JSONText.string(HAREntry.version(exchange.networkProtocol), &out)
        out += ",\"cookies\":[".utf8
        var isFirst = true
        for header in message.headers {
            let isSet = ASCII.isSame(header.nameBytes, Array("set-cookie".utf8))
            guard isSet || ASCII.isSame(header.nameBytes, Array("cookie".utf8)) else {
                continue
            }
            for pair in header.valueBytes.split(separator: 0x3b) {
                appendCookie(pair, &isFirst, &out)
                // In Set-Cookie, attributes follow the first pair.
                if isSet { break }
            }
        }
        out += "],\"headers\":".utf8
        HARText.pairs(message.headers.map { ($0.nameBytes, $0.valueBytes) }, &out)
    }

    private func appendCookie(
        _ pair: ArraySlice<UInt8>, _ isFirst: inout Bool, _ out: inout [UInt8]
    ) {
        guard let equals = pair.firstIndex(of: 0x3d) else { return }
        if !isFirst { out.append(0x2c) }
        isFirst = false
        HARText.pair(Array(pair[..<equals].drop { $0 == 0x20 }), Array(pair[(equals + 1)...]), &out)
    }

    private static func size(_ message: CapturedExchange.Message) -> String {
        if let bytes = message.bodyBytes { return String(bytes) }
        return message.body.map { String($0.count) } ?? "0"
    }

    private static func version(_ name: String) -> String {
        switch name {
        case "": "unknown"
        case "h2": "HTTP/2"
        case "h3": "HTTP/3"
        default: name.uppercased()
        }
    }

    // ── The rest ──

    /// Without the port.
    private var serverAddress: String {
        let peer = Array(exchange.peer.utf8)
        if peer.first == 0x5b, let end = peer.firstIndex(of: 0x5d) {
            return String(decoding: peer[1..<end], as: UTF8.self)
        }
        guard let colon = peer.firstIndex(of: 0x3a), colon == peer.lastIndex(of: 0x3a) else {
            return exchange.peer
        }
        return String(decoding: peer[..<colon], as: UTF8.self)
    }

    private func appendOwn(_ out: inout [UInt8]) {
        var state = exchange.isOpen ? "open" : exchange.isCancelled ? "cancelled" : ""
        if exchange.isLost { state = "lost" }
        let left = exchange.leftOf.map { "\(exchange.response.bodyBytes ?? 0) of \($0) bytes" }
        let error = [exchange.errorType, exchange.errorMessage].filter { !$0.isEmpty }
        let members = [
            ("_id", exchange.id), ("_state", state), ("_error", error.joined(separator: ": ")),
            ("_left", left ?? ""), ("_side", exchange.isServer ? "server" : ""),
            ("_conversation", exchange.conversation), ("_transaction", exchange.transaction),
            ("_redirectedFrom", exchange.redirectedFrom), ("_odataCode", exchange.odataCode),
            ("_odataMessage", exchange.odataMessage),
        ]
        for (name, value) in members where !value.isEmpty {
            out += ",\"\(name)\":".utf8
            JSONText.string(value, &out)
        }
    }
}

/// HAR's phases: connect includes TLS, and the known phases add up to the time.
private struct HARTimings {
    let total: UInt64
    private var known: [(name: String, ns: UInt64?)] = []

    init(_ exchange: CapturedExchange) {
        let phases = exchange.phases
        let duration = exchange.duration ?? 0
        var connect = phases.connect
        if let tls = phases.tls { connect = HARTimings.sum([connect ?? 0, tls]) }
        let needed = [phases.dns, connect, phases.send, phases.wait, phases.receive]
        let sum = HARTimings.sum(needed.map { $0 ?? 0 })
        total = max(duration, sum)
        let rest = total &- sum
        // If nothing is known, all of it is waiting. Otherwise the rest passed before the first
        // phase.
        let isKnown = needed.contains { $0 != nil }
        known = [
            ("blocked", isKnown && rest > 0 ? rest : nil), ("dns", phases.dns),
            ("connect", connect), ("ssl", phases.tls), ("send", phases.send ?? 0),
            ("wait", isKnown ? phases.wait ?? 0 : total), ("receive", phases.receive ?? 0),
        ]
    }

    func append(to out: inout [UInt8]) {
        for (index, (name, ns)) in known.enumerated() {
            out.append(index == 0 ? 0x7b : 0x2c)
            out += "\"\(name)\":\(ns.map(Times.milliseconds) ?? "-1")".utf8
        }
        out += "}".utf8
    }

    private static func sum(_ parts: [UInt64]) -> UInt64 {
        parts.reduce(0) { sum, part in
            let (more, overflow) = sum.addingReportingOverflow(part)
            return overflow ? .max : more
        }
    }
}

/// The kind of a body, by its Content-Type.
public enum BodyKind {
    public static func isForm(_ type: String) -> Bool {
        mediaType(type) == "application/x-www-form-urlencoded"
    }

    public static func isJSON(_ type: String) -> Bool {
        let type = mediaType(type)
        return type == "application/json" || type.hasSuffix("+json") || type == "text/json"
    }

    static func mediaType(_ type: String) -> String {
        let first = type.utf8.prefix { $0 != 0x3b && $0 != 0x20 }
        return String(decoding: first.map(ASCII.lower), as: UTF8.self)
    }
}

private enum HARText {

    /// Writes text; false: writes base64.
    /// SAFETY: the view is read in the call only.
    static func text(_ bytes: [UInt8], _ out: inout [UInt8]) -> Bool {
        unsafe bytes.withUnsafeBytes {
            if UTF8Scan.isValid($0) { return JSONText.string($0, &out) }
            out.append(0x22)
            JSONText.base64($0, &out)
            out.append(0x22)
            return false
        }
    }

    static func pair(_ name: [UInt8], _ value: [UInt8], _ out: inout [UInt8]) {
        out += "{\"name\":".utf8
        JSONText.string(name, &out)
        out += ",\"value\":".utf8
        JSONText.string(value, &out)
        out += "}".utf8
    }

    static func pairs(_ all: [([UInt8], [UInt8])], _ out: inout [UInt8]) {
        out += "[".utf8
        for (index, (name, value)) in all.enumerated() {
            if index > 0 { out += ",".utf8 }
            pair(name, value, &out)
        }
        out += "]".utf8
    }
}

/// The phrase after a status in HTTP/1.1.
public enum StatusPhrase {
    private static let known: [UInt64: String] = [
        100: "Continue", 101: "Switching Protocols", 103: "Early Hints", 200: "OK",
        201: "Created", 202: "Accepted", 204: "No Content", 206: "Partial Content",
        207: "Multi-Status", 301: "Moved Permanently", 302: "Found", 303: "See Other",
        304: "Not Modified", 307: "Temporary Redirect", 308: "Permanent Redirect",
        400: "Bad Request", 401: "Unauthorized", 403: "Forbidden", 404: "Not Found",
        405: "Method Not Allowed", 406: "Not Acceptable", 407: "Proxy Authentication Required",
        408: "Request Timeout", 409: "Conflict", 410: "Gone", 411: "Length Required",
        412: "Precondition Failed", 413: "Content Too Large", 414: "URI Too Long",
        415: "Unsupported Media Type", 422: "Unprocessable Content", 425: "Too Early",
        428: "Precondition Required", 429: "Too Many Requests",
        431: "Request Header Fields Too Large", 500: "Internal Server Error",
        501: "Not Implemented", 502: "Bad Gateway", 503: "Service Unavailable",
        504: "Gateway Timeout", 507: "Insufficient Storage",
    ]

    /// Empty: unknown.
    public static func text(_ status: UInt64) -> String { known[status] ?? "" }
}
