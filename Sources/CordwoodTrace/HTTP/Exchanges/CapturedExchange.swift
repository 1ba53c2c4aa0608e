// One captured HTTP exchange as a value: the content of a record of kind 4 (FORMAT §8.9). Text
// comes from the network and is kept as bytes; strings made from it have U+FFFD in place of invalid
// UTF-8. A field that is missing or has another type is simply unknown. Any thread.
// SAFETY: everything is copied out of the record's views; none is kept.

import CordwoodFormats
import CordwoodCore
import CordwoodStore

public struct CapturedExchange: Sendable {
    public struct Header: Sendable, Equatable {
        public var nameBytes: [UInt8]
        public var valueBytes: [UInt8]

        public var name: String { String(decoding: nameBytes, as: UTF8.self) }
        public var value: String { String(decoding: valueBytes, as: UTF8.self) }
    }

    /// Request or response.
    public struct Message: Sendable {
        public var headers: [Header] = []
        /// `cut`: a header was shortened or is missing; empty: they are complete.
        public var headersNote = ""
        /// The kept bytes; nil: none were kept, or the body was not requested.
        public var body: [UInt8]?
        /// Total size in bytes; nil: no body, or its size is unknown.
        public var bodyBytes: UInt64?
        /// Why the body is incomplete or changed: `cut`, `unpacked`, …; empty: it is neither.
        public var bodyNote = ""

        /// `body` is complete. Redaction may have changed its length.
        public var isBodyWhole: Bool {
            guard bodyNote.isEmpty || bodyNote == "unpacked" else { return false }
            return body.map { !$0.isEmpty } ?? false || bodyBytes ?? 0 == 0
        }

        /// The first header of that name, in any case.
        public func header(_ name: String) -> String? {
            let wanted = Array(name.utf8)
            return headers.first { ASCII.isSame($0.nameBytes, wanted) }?.value
        }

        /// `cut: 65536 bytes of 1000000`. Counts the kept bytes after redaction.
        package var extent: String {
            let kept = body?.count ?? 0
            let note = bodyNote.isEmpty ? "not kept" : PlainText.oneLine(bodyNote)
            guard let bytes = bodyBytes else { return "\(note): " + Counted.text(kept, "byte") }
            if isNoted("unpacked") {
                return "\(note): " + Counted.text(kept, "byte") + ", \(bytes) as they came"
            }
            return UInt64(kept) <= bytes
                ? "\(note): " + Counted.text(kept, "byte") + " of \(bytes)"
                : "\(note): of " + Counted.text(bytes, "byte")
        }

        /// Whether `bodyNote` contains that word.
        public func isNoted(_ word: String) -> Bool {
            bodyNote.split(separator: ",").contains {
                String($0).utf8.drop { $0 == 0x20 }.elementsEqual(word.utf8)
            }
        }
    }

    /// ns; nil: unknown, or not needed.
    public struct Phases: Sendable {
        public var dns: UInt64?
        public var connect: UInt64?
        public var tls: UInt64?
        public var send: UInt64?
        public var wait: UInt64?
        public var receive: UInt64?

        /// In their order in time.
        public var named: [(name: String, ns: UInt64?)] {
            [
                ("dns", dns), ("connect", connect), ("tls", tls), ("send", send), ("wait", wait),
                ("receive", receive),
            ]
        }
    }

    /// 16 hex digits; empty if the record has none.
    public var id = ""
    /// It began, and no record of its end exists.
    public var isOpen = false
    /// It has no end and never will: its lane no longer has a writer. `isOpen` is false.
    public var isLost = false
    public var isServer = false
    public var methodBytes: [UInt8] = []
    public var urlBytes: [UInt8] = []
    public var host = ""
    public var port: UInt64?
    /// nil: no answer.
    public var status: UInt64?
    /// UTC, ns since 1970.
    public var start: UInt64 = 0
    public var duration: UInt64?
    public var phases = Phases()
    public var request = Message()
    public var response = Message()
    /// Empty: none.
    public var errorType = ""
    public var errorMessage = ""
    public var isCancelled = false
    public var odataCode = ""
    public var odataMessage = ""
    public var odataTransaction = ""
    public var conversation = ""
    /// The id of the exchange whose answer led here.
    public var redirectedFrom = ""
    public var attempt: UInt64?
    /// `http/1.1`, `h2`
    public var networkProtocol = ""
    /// `192.0.2.1:443`
    public var peer = ""
    public var traceID: String?
    public var spanID: String?
    /// `TXN…`, the transaction in which it was made.
    public var transaction = ""
    public var processID: UInt32 = 0
    public var processName = ""
    public var threadID: UInt32 = 0
    /// nil: not from a record.
    var process: ProcessInfo?
    /// The record that it comes from; nil: none. Its time, UTC ns.
    package var recordID: RecordID?
    package var recordTimeNs: UInt64 = 0

    public var method: String { String(decoding: methodBytes, as: UTF8.self) }
    public var url: String { String(decoding: urlBytes, as: UTF8.self) }

    /// No answer or an incomplete one, or a status of 400 and above. An open exchange has not
    /// failed yet.
    public var isFailed: Bool {
        guard !isOpen else { return false }
        guard let status else { return true }
        return status >= 400 || isCancelled || !errorType.isEmpty || !errorMessage.isEmpty
    }

    /// The answer's Content-Length, if the client read less although nothing went wrong: it stopped
    /// reading. nil: it did not, or that is unknown.
    public var leftOf: UInt64? {
        guard !isOpen, !isServer, !isCancelled, errorType.isEmpty, errorMessage.isEmpty,
            let status, status >= 200, status != 204, status != 304,
            !ASCII.isSame(methodBytes, Array("HEAD".utf8)),
            !ASCII.isSame(methodBytes, Array("CONNECT".utf8)),
            !response.isNoted("unpacked"), response.header("Transfer-Encoding") == nil,
            ["", "identity"].contains(response.header("Content-Encoding") ?? ""),
            let got = response.bodyBytes,
            let length = UInt64(response.header("Content-Length") ?? ""), length > got
        else { return nil }
        return length
    }

    public init() {}

    /// nil: not a record of an exchange. Without bodies, none of their bytes are copied.
    public init?(_ record: borrowing RecordRef, bodies: Bool = true) {
        guard record.kind == ExchangeField.kind else { return nil }
        start = record.timeNs
        recordID = record.id
        recordTimeNs = record.timeNs
        process = record.thread.process
        processID = record.thread.process.processID
        processName = record.thread.process.name
        threadID = record.thread.threadID
        traceID = Record.hex(record.traceID)
        spanID = Record.hex(record.spanID)
        var fields = RecordFields(record)
        while let (key, value) = fields.next() {
            guard fields.part != .exception, key.count <= ExchangeField.nameBytesMax,
                let field = ExchangeField.named[Bytes.string(key)]
            else { continue }
            // The context's fields belong to the thread; for an exchange only the transaction
            // counts.
            if fields.part == .context, field != .transaction || !transaction.isEmpty { continue }
            set(field, value, bodies)
        }
    }

    private mutating func set(_ field: ExchangeField, _ value: FieldValue, _ bodies: Bool) {
        switch value {
        case .string(let text): set(field, text, bodies)
        case .uint(let number): set(field, number)
        case .int(let number) where number >= 0: set(field, UInt64(number))
        case .bool(let flag): if field == .cancelled { isCancelled = flag }
        default: break
        }
    }

    @safe private mutating func set(
        _ field: ExchangeField, _ text: UnsafeRawBufferPointer, _ bodies: Bool
    ) {
        switch field {
        case .id: id = Bytes.string(text)
        case .op: isOpen = Bytes.equal(text, Bytes.literal("begin"))
        case .side: isServer = Bytes.equal(text, Bytes.literal("server"))
        case .method: methodBytes = unsafe Array(text)
        case .url: urlBytes = unsafe Array(text)
        case .host: host = Bytes.string(text)
        case .conversation: conversation = Bytes.string(text)
        case .redirectedFrom: redirectedFrom = Bytes.string(text)
        case .networkProtocol: networkProtocol = Bytes.string(text)
        case .peer: peer = Bytes.string(text)
        case .requestHeaders: request.headers = CapturedExchange.headers(text)
        case .responseHeaders: response.headers = CapturedExchange.headers(text)
        case .requestBody: if bodies { request.body = unsafe Array(text) }
        case .responseBody: if bodies { response.body = unsafe Array(text) }
        case .requestHeadersNote: request.headersNote = Bytes.string(text)
        case .responseHeadersNote: response.headersNote = Bytes.string(text)
        case .requestNote: request.bodyNote = Bytes.string(text)
        case .responseNote: response.bodyNote = Bytes.string(text)
        case .errorType: errorType = Bytes.string(text)
        case .errorMessage: errorMessage = Bytes.string(text)
        case .odataCode: odataCode = Bytes.string(text)
        case .odataMessage: odataMessage = Bytes.string(text)
        case .odataTransaction: odataTransaction = Bytes.string(text)
        case .transaction: transaction = Bytes.string(text)
        default: break
        }
    }

    private mutating func set(_ field: ExchangeField, _ number: UInt64) {
        switch field {
        case .port: port = number
        case .attempt: attempt = number
        case .status: status = number
        case .start: start = number
        case .duration: duration = number
        case .dns: phases.dns = number
        case .connect: phases.connect = number
        case .tls: phases.tls = number
        case .send: phases.send = number
        case .wait: phases.wait = number
        case .receive: phases.receive = number
        case .requestBytes: request.bodyBytes = number
        case .responseBytes: response.bodyBytes = number
        default: break
        }
    }

    /// `Name: value` lines; a line without a colon is a name without a value.
    @safe private static func headers(_ text: UnsafeRawBufferPointer) -> [Header] {
        var found: [Header] = []
        var at = 0
        while at < text.count {
            var end = at
            while end < text.count, Bytes.u8(text, end) != 0x0a { end &+= 1 }
            var colon = at
            // The leading colon belongs to HTTP/2's own names.
            if colon < end, Bytes.u8(text, colon) == 0x3a { colon &+= 1 }
            while colon < end, Bytes.u8(text, colon) != 0x3a { colon &+= 1 }
            var value = min(colon &+ 1, end)
            while value < end, Bytes.u8(text, value) == 0x20 { value &+= 1 }
            if end > at {
                unsafe found.append(
                    Header(
                        nameBytes: Array(text[at..<colon]), valueBytes: Array(text[value..<end])))
            }
            at = end &+ 1
        }
        return found
    }

    /// Its approximate size in memory.
    var cost: Int {
        var bytes = 512 &+ methodBytes.count &+ urlBytes.count &+ conversation.utf8.count
        for message in [request, response] {
            bytes &+= message.body?.count ?? 0
            for header in message.headers {
                bytes &+= 64 &+ header.nameBytes.count &+ header.valueBytes.count
            }
        }
        return bytes
    }
}

/// The fields of a record of kind 4 (FORMAT §8.9).
enum ExchangeField: String, CaseIterable {
    static let kind: UInt8 = 4

    case id = "http.id"
    case op = "http.op"
    case side = "http.side"
    case method = "http.request.method"
    case url = "url.full"
    case host = "server.address"
    case port = "server.port"
    case conversation = "http.conversation"
    case redirectedFrom = "http.redirected_from"
    case attempt = "http.attempt"
    case networkProtocol = "network.protocol"
    case peer = "network.peer"
    case status = "http.response.status_code"
    case start = "http.start"
    case duration = "http.duration"
    case dns = "http.dns"
    case connect = "http.connect"
    case tls = "http.tls"
    case send = "http.send"
    case wait = "http.wait"
    case receive = "http.receive"
    case requestHeaders = "http.request.headers"
    case responseHeaders = "http.response.headers"
    case requestHeadersNote = "http.request.headers.note"
    case responseHeadersNote = "http.response.headers.note"
    case requestBody = "http.request.body"
    case responseBody = "http.response.body"
    case requestBytes = "http.request.body.size"
    case responseBytes = "http.response.body.size"
    case requestNote = "http.request.body.note"
    case responseNote = "http.response.body.note"
    case cancelled = "http.cancelled"
    case errorType = "error.type"
    case errorMessage = "error.message"
    case odataCode = "odata.code"
    case odataMessage = "odata.message"
    case odataTransaction = "odata.transaction_id"
    case transaction = "txn.id"

    static let nameBytesMax = 32
    static let named = Dictionary(
        uniqueKeysWithValues: allCases.map { ($0.rawValue, $0) })
}
