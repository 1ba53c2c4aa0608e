// /api/traces: the traces that have a matching record, with figures of all their records. With a
// query the stores are read twice: first for the traces, then for their records. One thread per
// job.

import Cordwood

struct TracesJob: Sendable {
    /// The limit of held traces; beyond it those that began first are left out, and counted.
    private static let tracesMax = 65_536
    private static let namesMax = 8

    private let options: ViewerOptions
    private let selected: Selected
    private let limit: Int
    /// The last trace of the previous page.
    private let from: (first: UInt64, id: String)?

    init(_ options: ViewerOptions, _ parameters: URLParameters) throws(Rejection) {
        self.options = options
        selected = try Selected(parameters)
        limit = try parameters.number("limit", 1...QueryRequest.limitMax, unset: 200)
        guard let text = parameters["from"] else {
            from = nil
            return
        }
        let parts = text.split(separator: "-").map(String.init)
        guard parts.count == 2, let first: UInt64 = Digits.number(parts[0].utf8) else {
            throw Rejection("not where a page of traces ended: \(text)")
        }
        from = (first, parts[1])
    }

    private struct Figures {
        var first = UInt64.max
        var last: UInt64 = 0
        var records: UInt64 = 0
        var errors: UInt64 = 0
        var begun: UInt64 = 0
        var ended: UInt64 = 0
        var processes: [String] = []
        var transactions: Set<TransactionID> = []

        mutating func add(_ record: borrowing RecordRef, _ forgotten: ForgottenTransactions) {
            first = min(first, record.timeNs)
            last = max(last, record.timeNs)
            records &+= 1
            if record.level >= 17 { errors &+= 1 }
            let name = record.thread.process.name
            if processes.count < TracesJob.namesMax, !processes.contains(name) {
                processes.append(name)
            }
            if let exchange = CapturedExchange(record, bodies: false) {
                if exchange.isOpen { begun &+= 1 } else { ended &+= 1 }
            } else if let moment = forgotten.moment(record) {
                transactions.insert(moment.id)
            }
        }

        func object(_ id: String) -> JSONObject {
            var object = JSONObject()
            object.add("id", id)
            object.add("first_ns", String(first))
            object.add("duration_ms", milliseconds: last &- first)
            object.add("processes", processes)
            object.add("records", records)
            object.add("exchanges", max(begun, ended))
            object.add("transactions", UInt64(transactions.count))
            object.add("errors", errors)
            return object
        }
    }

    func run(_ stream: LineStream) -> Reply? {
        var walk = StoreWalk(options, stream)
        var out: [UInt8] = []
        var leftOut = 0
        do throws(Rejection) {
            var wanted: Set<String>?
            if selected.query != nil || selected.since != 0 || selected.until != 0 {
                var found: Set<String> = []
                try walk.read(selected, TracesJob.askTraced) { record, _ in
                    guard let id = Record.hex(record.traceID) else { return }
                    if found.count < TracesJob.tracesMax { found.insert(id) } else { leftOut += 1 }
                }
                wanted = found
            }
            var traces: [String: Figures] = [:]
            try walk.read(nil, TracesJob.askTraced) { record, forgotten in
                guard let id = Record.hex(record.traceID), wanted?.contains(id) ?? true else {
                    return
                }
                traces[id, default: Figures()].add(record, forgotten)
                guard traces.count > TracesJob.tracesMax else { return }
                let oldest = traces.sorted { $0.value.first < $1.value.first }
                for (id, _) in oldest.prefix(TracesJob.tracesMax / 4) { traces[id] = nil }
                leftOut += TracesJob.tracesMax / 4
            }
            if stream.isOver { return nil }
            let sorted = traces.sorted { ($0.value.first, $0.key) > ($1.value.first, $1.key) }
            let rest = sorted.drop { (id, one) in
                from.map { (one.first, id) >= ($0.first, $0.id) } ?? false
            }
            for (id, one) in rest.prefix(limit) {
                out += "{\"trace\":\(one.object(id).text)}\n".utf8
            }
            let last = rest.count > limit ? rest.prefix(limit).last : nil
            let next = last.map { "\"\($0.value.first)-\($0.key)\"" } ?? "null"
            walk.end(
                matched: traces.count, leftOut: leftOut, isExact: leftOut == 0, next: next, &out)
            return nil
        } catch {
            return error.reply
        }
    }

    /// Records of traces, in any order and without their texts.
    private static func askTraced(_ asked: inout ReaderOptions) {
        if let traced = try? Query("trace=*", nowNs: 0) { asked.require(traced) }
        asked.rendersText = false
        asked.isUnordered = true
    }
}
