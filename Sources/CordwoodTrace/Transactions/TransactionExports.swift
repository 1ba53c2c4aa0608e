// Transactions for other programs: the JSON of the system that this one replaces (B-TXN-5), and
// OTLP spans, one per handle, which cover a process's work between its begin or join and its end.
// Both in independent lines, so that a store of any size can be exported. Owned by one thread.

import CordwoodFormats
import CordwoodStore

public struct TransactionLines {
    /// The limit of events in a line.
    static let eventsMax = 1_000

    private var document = TransactionsDocument()
    private var events = 0

    public init() {}

    /// Takes an event; appends the previous line if it is full.
    public mutating func append(_ record: RecordRef, to out: inout [UInt8]) {
        document.add(record)
        events &+= 1
        if events >= TransactionLines.eventsMax { finish(&out) }
    }

    /// Appends the last, incomplete line.
    public mutating func finish(_ out: inout [UInt8]) {
        guard !document.isEmpty else { return }
        document.end(&out)
        out.append(0x0a)
        events = 0
    }
}

/// ExportTraceServiceRequests in OTLP's JSON, one per line.
public struct TransactionSpans {
    /// The limit of held open handles; beyond it the oldest is written unfinished.
    public static let openMax = 65_536
    /// The limit of one span's events; the rest is counted.
    static let eventsMax = 1_024
    /// The limit of all held events' bytes.
    static let bytesMax = 64 << 20
    static let spansOfLine = 256

    private struct Key: Hashable {
        var id: TransactionID
        var span: String
    }

    private struct Handle {
        var serial: UInt64
        var start: UInt64
        var last: UInt64
        var isJoin = false
        var name = ""
        var hasError = false
        var status = ""
        var events: [UInt8] = []
        var eventCount = 0
        var dropped = 0
        var resource: [UInt8]
    }

    private var open: [Key: Handle] = [:]
    private var order: [(key: Key, serial: UInt64)] = []
    private var orderHead = 0
    private var serial: UInt64 = 0
    private var bytes = 0
    /// The spans of the line under way, by process.
    private var line: [(resource: [UInt8], spans: [UInt8])] = []
    private var lineCount = 0

    public init() {}

    public mutating func append(
        _ moment: TransactionMoment, _ record: RecordRef, to out: inout [UInt8]
    ) {
        guard let span = moment.spanID else { return }
        let key = Key(id: moment.id, span: span)
        if open[key] == nil {
            serial &+= 1
            open[key] = Handle(
                serial: serial, start: moment.time, last: moment.time,
                resource: OTLPSpanText.resource(record.thread.process))
            order.append((key, serial))
        }
        note(moment, key)
        if moment.operation == .end { close(key, &out) }
        while open.count > TransactionSpans.openMax || bytes > TransactionSpans.bytesMax,
            orderHead < order.count
        {
            let (oldest, serial) = order[orderHead]
            orderHead &+= 1
            if open[oldest]?.serial == serial { close(oldest, &out) }
        }
        if order.count &- orderHead > 2 &* open.count &+ 1_024 || orderHead > 1 << 16 {
            order = order[orderHead...].filter { open[$0.key]?.serial == $0.serial }
            orderHead = 0
        }
    }

    /// Handles without an end get their last record as the end.
    public mutating func finish(_ out: inout [UInt8]) {
        let rest = open.sorted {
            ($0.value.start, $0.value.serial) < ($1.value.start, $1.value.serial)
        }
        for (key, _) in rest { close(key, &out) }
        flush(&out)
    }

    private mutating func note(_ moment: TransactionMoment, _ key: Key) {
        guard var handle = open.removeValue(forKey: key) else { return }
        handle.start = min(handle.start, moment.time)
        handle.last = max(handle.last, moment.time)
        if !moment.usecaseName.isEmpty { handle.name = moment.usecaseName }
        if moment.operation == .join { handle.isJoin = true }
        if moment.operation == .event {
            if let code = moment.errorCode {
                handle.hasError = true
                handle.status = [code, moment.errorDescription ?? ""].filter { !$0.isEmpty }
                    .joined(separator: ": ")
            }
            if handle.eventCount < TransactionSpans.eventsMax {
                let before = handle.events.count
                if handle.eventCount > 0 { handle.events.append(0x2c) }
                OTLPSpanText.event(moment, &handle.events)
                bytes = bytes &+ handle.events.count &- before
                handle.eventCount &+= 1
            } else {
                handle.dropped &+= 1
            }
        }
        open[key] = handle
    }

    private mutating func close(_ key: Key, _ out: inout [UInt8]) {
        guard let handle = open.removeValue(forKey: key) else { return }
        bytes = bytes &- handle.events.count
        let number =
            line.firstIndex { $0.resource == handle.resource }
            ?? {
                line.append((handle.resource, []))
                return line.count - 1
            }()
        if !line[number].spans.isEmpty { line[number].spans.append(0x2c) }
        let name = handle.name.isEmpty ? "TXN\(key.id.usecase)" : handle.name
        var head = OTLPSpanText.Span(
            trace: String(key.id.text.suffix(36).filter { $0 != "-" }).lowercased(),
            span: key.span, name: name, start: handle.start, end: handle.last)
        head.isServer = handle.isJoin
        head.transaction = key.id.text
        head.usecase = key.id.usecase
        head.dropped = handle.dropped
        head.status = handle.hasError ? handle.status : nil
        OTLPSpanText.append(head, events: handle.events, &line[number].spans)
        lineCount &+= 1
        if lineCount >= TransactionSpans.spansOfLine { flush(&out) }
    }

    private mutating func flush(_ out: inout [UInt8]) {
        guard lineCount > 0 else { return }
        out += "{\"resourceSpans\":[".utf8
        for (index, group) in line.enumerated() {
            if index > 0 { out.append(0x2c) }
            out += "{\"resource\":".utf8
            out += group.resource
            out += ",\"scopeSpans\":[{\"scope\":{\"name\":\"Transactions\"},".utf8
            out += "\"spans\":[".utf8
            out += group.spans
            out += "]}]}".utf8
        }
        out += "]}\n".utf8
        line = []
        lineCount = 0
    }
}

/// The pieces of OTLP's JSON.
private enum OTLPSpanText {
    struct Span {
        var trace: String
        var span: String
        var name: String
        var start: UInt64
        var end: UInt64
        var isServer = false
        var transaction = ""
        var usecase: Int32 = 0
        var dropped = 0
        /// nil: no error.
        var status: String?
    }

    static func append(_ span: Span, events: [UInt8], _ out: inout [UInt8]) {
        out +=
            "{\"traceId\":\"\(span.trace)\",\"spanId\":\"\(span.span)\",\"flags\":1,\"name\":".utf8
        JSONText.string(span.name, &out)
        // Joined: another process's request began it (SERVER); otherwise it is our own (INTERNAL).
        out += ",\"kind\":\(span.isServer ? 2 : 1),\"startTimeUnixNano\":\"\(span.start)\"".utf8
        out += ",\"endTimeUnixNano\":\"\(span.end)\",\"attributes\":[".utf8
        text("txn.id", span.transaction, &out)
        out += ",{\"key\":\"txn.usecase\",\"value\":{\"intValue\":\"\(span.usecase)\"}}]".utf8
        out += ",\"events\":[".utf8
        out += events
        out += "]".utf8
        if span.dropped > 0 { out += ",\"droppedEventsCount\":\(span.dropped)".utf8 }
        if let status = span.status {
            out += ",\"status\":{\"code\":2,\"message\":".utf8
            JSONText.string(status, &out)
            out += "}".utf8
        }
        out += "}".utf8
    }

    static func event(_ moment: TransactionMoment, _ out: inout [UInt8]) {
        let number = moment.event.map { String($0) } ?? "?"
        out += "{\"timeUnixNano\":\"\(moment.time)\",\"name\":".utf8
        JSONText.string(moment.eventName.isEmpty ? "event \(number)" : moment.eventName, &out)
        out += ",\"attributes\":[".utf8
        if moment.event != nil {
            out += "{\"key\":\"txn.event\",\"value\":{\"intValue\":\"\(number)\"}}".utf8
        }
        for (key, value) in [
            ("txn.error.code", moment.errorCode),
            ("txn.error.description", moment.errorDescription),
        ] {
            guard let value else { continue }
            if out.last != 0x5b { out.append(0x2c) }
            text(key, value, &out)
        }
        out += "]}".utf8
    }

    static func resource(_ process: ProcessInfo) -> [UInt8] {
        var out: [UInt8] = []
        out += "{\"attributes\":[".utf8
        let given = process.resource.first { $0.key == "service.name" }?.value
        let name = process.name.isEmpty ? "unknown_service" : process.name
        text("service.name", given ?? name, &out)
        out += ",{\"key\":\"process.pid\",\"value\":{\"intValue\":\"\(process.processID)\"}}]}".utf8
        return out
    }

    private static func text(_ key: String, _ value: String, _ out: inout [UInt8]) {
        out += "{\"key\":\"\(key)\",\"value\":{\"stringValue\":".utf8
        JSONText.string(value, &out)
        out += "}}".utf8
    }
}
