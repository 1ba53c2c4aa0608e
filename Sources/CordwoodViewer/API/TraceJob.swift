// /api/trace/ID: one trace of all stores as spans, and its records on them. A span is an exchange,
// a process's part in a transaction, or records that share a span id. Times come from each machine:
// if a server's part lies outside the client's, the answer says by how much. One thread per job.

import Cordwood
import enum CordwoodFormats.ASCII

struct TraceJob: Sendable {
    private static let spansMax = 10_000
    private static let logsMax = 5_000
    private static let depthMax = 64
    private static let textMax = 500

    private let options: ViewerOptions
    private let id: String

    init(_ options: ViewerOptions, _ id: String) throws(Rejection) {
        self.options = options
        self.id = id.lowercased()
        guard id.utf8.count == 32, Hex.bytes(id.utf8) != nil else {
            throw Rejection("a trace has 32 hexadecimal digits")
        }
    }

    struct Span {
        var kind: String
        var name: String
        var process: String
        var start: UInt64
        /// Nil: it has not ended.
        var end: UInt64?
        var key: RecordKey
        var spanID = ""
        var isFailed = false
        /// For an exchange: matches the client's and the server's side of one request.
        var request = ""
        var isServer = false
        var transaction: TransactionID?
        var parent: Int?
    }

    /// The spans and records of the trace.
    private struct Gathered {
        var spans: [Span] = []
        /// By transaction and span id, and by span id alone.
        var handles: [String: Int] = [:]
        var groups: [String: Int] = [:]
        var logs: [(span: String, text: JSONObject)] = []
        var records: UInt64 = 0
        var leftOut: UInt64 = 0

        mutating func add(_ span: Span) -> Int? {
            guard spans.count < TraceJob.spansMax else {
                leftOut &+= 1
                return nil
            }
            spans.append(span)
            return spans.count - 1
        }

        mutating func take(_ moment: TransactionMoment, _ record: borrowing RecordRef) {
            let name = moment.usecaseName.isEmpty ? "use case \(moment.id.usecase)" : ""
            let handle = "\(moment.id.text) \(moment.spanID ?? "")"
            if handles[handle] == nil {
                handles[handle] = add(
                    Span(
                        kind: "transaction", name: name + moment.usecaseName,
                        process: moment.processName, start: moment.time, key: RecordKey(record),
                        spanID: moment.spanID ?? "", isServer: moment.operation == .join,
                        transaction: moment.id))
            }
            guard let at = handles[handle] else { return }
            spans[at].start = min(spans[at].start, moment.time)
            if moment.operation == .end { spans[at].end = moment.time }
            if moment.errorCode != nil { spans[at].isFailed = true }
        }

        mutating func take(_ one: CapturedExchange) {
            guard let id = one.recordID else { return }
            let target = String(decoding: CapturedURL(one.urlBytes).target, as: UTF8.self)
            let told = one.request.header("traceparent") ?? ""
            let end = one.duration.map { one.start &+ $0 }
            _ = add(
                Span(
                    kind: "exchange", name: "\(one.method) \(target)", process: one.processName,
                    start: one.start, end: end,
                    key: RecordKey(timeNs: one.recordTimeNs, id: id), spanID: one.spanID ?? "",
                    isFailed: one.isFailed, request: "\(told) \(one.method) \(target)",
                    isServer: one.isServer))
        }

        mutating func log(_ record: borrowing RecordRef) {
            let one = Record(record)
            let span = one.spanID ?? ""
            guard logs.count < TraceJob.logsMax else {
                leftOut &+= 1
                return
            }
            var object = JSONObject()
            object.add("key", RecordKey(record).text)
            object.add("time_ns", String(record.timeNs))
            object.add("level", one.levelName)
            object.add("process", one.processName)
            object.add("message", String(one.message.prefix(TraceJob.textMax)))
            logs.append((span, object))
            guard !span.isEmpty else { return }
            if groups[span] == nil {
                groups[span] = add(
                    Span(
                        kind: "records", name: one.logger, process: one.processName,
                        start: record.timeNs, end: record.timeNs, key: RecordKey(record),
                        spanID: span))
            }
            guard let at = groups[span] else { return }
            spans[at].start = min(spans[at].start, record.timeNs)
            spans[at].end = max(spans[at].end ?? 0, record.timeNs)
            if record.level >= 17 { spans[at].isFailed = true }
        }
    }

    func run(_ stream: LineStream) -> Reply? {
        var walk = StoreWalk(options, stream)
        do throws(Rejection) {
            var out: [UInt8] = []
            let found = try gather(&walk)
            if stream.isOver { return nil }
            if found.records == 0 { throw Rejection(.notFound, "no record has this trace") }
            let tree = TraceTree(found.spans)
            tree.append(to: &out)
            for (span, log) in found.logs {
                var log = log
                if let at = tree.place(ofSpan: span) { log.add("span", UInt64(at)) }
                out += "{\"log\":\(log.text)}\n".utf8
                if out.count >= LineStream.bytesMax / 4, !stream.send(&out) { return nil }
            }
            walk.end(matched: found.records, leftOut: found.leftOut, &out)
            return nil
        } catch {
            return error.reply
        }
    }

    private func gather(_ walk: inout StoreWalk) throws(Rejection) -> Gathered {
        var found = Gathered()
        var exchanges = ExchangeGatherer(bodies: false, watch: LaneWatch(paths: options.paths))
        let digits = id.utf8.map { ASCII.hex($0) }
        try walk.read(nil, { $0.origin.traceDigits = digits }) { record, forgotten in
            found.records &+= 1
            if record.kind == 4 {
                exchanges.take(record) { found.take($0) }
            } else if TransactionMoment(record) != nil {
                if let moment = forgotten.moment(record) { found.take(moment, record) }
            } else {
                found.log(record)
            }
        }
        exchanges.finish { found.take($0) }
        return found
    }
}

/// Spans below the ones that caused them.
private struct TraceTree {
    private var spans: [TraceJob.Span]
    private var order: [(span: Int, depth: Int)] = []
    /// Positions in `order`, by span id.
    private var places: [String: Int] = [:]

    init(_ spans: [TraceJob.Span]) {
        // Records of a transaction's or an exchange's span are on it, and no span of their own.
        let owned = Set(spans.filter { $0.kind == "transaction" }.map(\.spanID))
        self.spans = spans.filter { $0.kind != "records" || !owned.contains($0.spanID) }
        findParents()
        walk()
    }

    private mutating func findParents() {
        var bySpan: [String: Int] = [:]
        var begins: [TransactionID: Int] = [:]
        var requests: [String: Int] = [:]
        for (at, span) in spans.enumerated() {
            if span.kind != "exchange", !span.spanID.isEmpty { bySpan[span.spanID] = at }
            if let id = span.transaction, !span.isServer { begins[id] = at }
            if span.kind == "exchange", !span.isServer { requests[span.request] = at }
        }
        for (at, span) in spans.enumerated() {
            var parent: Int?
            switch span.kind {
            case "exchange":
                parent = span.isServer ? requests[span.request] : nil
                parent = parent ?? bySpan[span.spanID]
            case "transaction" where span.isServer:
                parent = span.transaction.flatMap { begins[$0] }
            default: break
            }
            if parent != at { spans[at].parent = parent }
        }
    }

    /// Depth first, by time.
    private mutating func walk() {
        let byTime = spans.indices.sorted { (spans[$0].start, $0) < (spans[$1].start, $1) }
        var children: [Int: [Int]] = [:]
        for at in byTime { children[spans[at].parent ?? -1, default: []].append(at) }
        var stack = (children[-1] ?? []).reversed().map { (span: $0, depth: 0) }
        while let next = stack.popLast() {
            if !spans[next.span].spanID.isEmpty, spans[next.span].kind != "exchange" {
                places[spans[next.span].spanID] = order.count
            }
            order.append(next)
            for child in (children[next.span] ?? []).reversed() {
                stack.append((child, next.depth + 1))
            }
        }
    }

    func place(ofSpan id: String) -> Int? { places[id] }

    /// Lines `{"span":…}`, each numbered by its place.
    func append(to out: inout [UInt8]) {
        for (place, (at, depth)) in order.enumerated() {
            let span = spans[at]
            var object = JSONObject()
            object.add("place", UInt64(place))
            object.add("depth", UInt64(depth))
            object.add("kind", span.kind)
            object.add("name", span.name)
            object.add("process", span.process)
            object.add("start_ns", String(span.start))
            if let end = span.end { object.add("duration_ms", milliseconds: end &- span.start) }
            object.add("failed", span.isFailed)
            object.add("key", span.key.text)
            let skew = skew(span)
            if skew != 0 { object.add("skew_ns", String(skew)) }
            out += "{\"span\":\(object.text)}\n".utf8
        }
    }

    /// How far a server's part begins before the client's (negative) or ends after it.
    private func skew(_ span: TraceJob.Span) -> Int64 {
        guard span.kind == "exchange", span.isServer, let parent = span.parent,
            spans[parent].kind == "exchange"
        else { return 0 }
        let client = spans[parent]
        if span.start < client.start { return -Int64(clamping: client.start - span.start) }
        guard let end = span.end, let over = client.end, end > over else { return 0 }
        return Int64(clamping: end - over)
    }
}
