// /api/http and /api/http.har: captured exchanges, as `cordwood http` gathers them from the records
// of their beginnings and ends. All records are read, since an end may be far from its beginning,
// except for exchanges that began after the point at which a page continues. Holds one page of
// exchanges, sorted by start or by duration. One thread per job.

import Cordwood

struct ExchangesRequest: Sendable {
    enum Sort: String { case time, duration }
    enum Only: String {
        case all, failed, slow, pending

        static let words = ["all", "failed", "slow", "pending"]
    }

    /// An exchange of at least this duration is slow.
    static let slowNs: UInt64 = 1_000_000_000

    let selected: Selected
    let only: Only
    let sort: Sort
    let from: RecordKey?
    let limit: Int
    let isHAR: Bool

    init(_ parameters: URLParameters, isHAR: Bool = false) throws(Rejection) {
        self.isHAR = isHAR
        selected = try Selected(parameters)
        only = Only(rawValue: try parameters.word("only", Only.words)) ?? .all
        sort = Sort(rawValue: try parameters.word("sort", ["time", "duration"])) ?? .time
        limit = try parameters.number("limit", 1...QueryRequest.limitMax, unset: 200)
        if let text = parameters["from"] { from = try ViewerAPI.key(text) } else { from = nil }
    }
}

struct ExchangesJob: Sendable {
    private let options: ViewerOptions
    private let request: ExchangesRequest

    init(_ options: ViewerOptions, _ request: ExchangesRequest) {
        self.options = options
        self.request = request
    }

    func run(_ stream: LineStream) -> Reply? {
        do throws(Rejection) {
            try request.isHAR ? har(stream) : list(stream)
            return nil
        } catch {
            return error.reply
        }
    }

    /// Both records of an exchange show the time of its beginning, to within less than this.
    private static let slackNs: UInt64 = 1_000_000_000

    /// Passes the requested exchanges to `body`, which applies the conditions of `only`. `last`:
    /// those that began later, by UTC ns, may be missing; 0: none is.
    private func read(
        _ stream: LineStream, bodies: Bool, last: UInt64 = 0, _ body: (CapturedExchange) -> Void
    ) throws(Rejection) -> Look {
        let facts = options.remembersFacts ? FactsCache.find() : nil
        var asked = request.selected.readerOptions(options, facts)
        asked.kinds = ExchangeGatherer.kinds
        asked.query = nil
        let (end, isFar) = last.addingReportingOverflow(ExchangesJob.slackNs)
        if last > 0, !isFar { asked.until = asked.until == 0 ? end : min(asked.until, end) }
        let watch = LaneWatch(paths: options.paths)
        let look = try Look(options, asked, stream)
        if !request.isHAR { look.watch() }
        var gatherer = ExchangeGatherer(bodies: bodies, watch: watch)
        gatherer.query = request.selected.query
        var record = RecordRef()
        while look.next(&record) { gatherer.take(record, body) }
        if !stream.isOver { gatherer.finish(body) }
        if !stream.isOver { facts?.save() }
        return look
    }

    // MARK: The list

    private func list(_ stream: LineStream) throws(Rejection) {
        let began = Machine.realtimeNs()
        let from = try request.from.map { key throws(Rejection) in
            ExchangePlace(try ExchangeJob.find(key, options, stream), request.sort)
        }
        var page = ExchangePage(limit: request.limit, after: from)
        var counts = ExchangeCounts()
        // Earlier pages have the exchanges that began later, and the first page counted all.
        let last = request.sort == .time ? from?.start ?? 0 : 0
        let look = try read(stream, bodies: false, last: last) { exchange in
            let isWanted = counts.add(exchange, request.only, now: began)
            if isWanted { page.take(exchange, request.sort) }
        }
        if stream.isOver { return }
        var out: [UInt8] = []
        let next = page.append(to: &out, stream)
        let isExact = look.problemCount == 0
        var told: Set<String> = []
        look.appendProblems(told: &told, to: &out)
        let ms = (Machine.realtimeNs() &- began) / 1_000_000
        out += "{\"done\":{\"exact\":\(isExact),\"ms\":\(ms)".utf8
        if last == 0 {
            out += ",\"matched\":\(counts.matched),\"all\":\(counts.all)".utf8
            out += ",\"failed\":\(counts.failed),\"slow\":\(counts.slow)".utf8
            out += ",\"pending\":\(counts.pending)".utf8
        }
        out += ",\"next\":\(next.map { "\"\($0.text)\"" } ?? "null")}}\n".utf8
        _ = stream.send(&out)
    }

    // MARK: HAR

    private func har(_ stream: LineStream) throws(Rejection) {
        let now = Machine.realtimeNs()
        stream.begin(as: .file("cordwood.har", type: "application/json"))
        var writer = HARWriter()
        var counts = ExchangeCounts()
        var out: [UInt8] = []
        writer.begin(&out)
        let look = try read(stream, bodies: true) { exchange in
            guard !stream.isOver, counts.add(exchange, request.only, now: now) else { return }
            writer.append(exchange, to: &out)
            if out.count >= LineStream.bytesMax / 4 { _ = stream.send(&out) }
        }
        // HAR has no other place for damage.
        let missing = look.problemCount
        let comment =
            missing == 0
            ? "" : "not all could be read: " + look.problems.joined(separator: "; ")
        writer.finish(comment: comment, &out)
        _ = stream.send(&out)
    }
}

/// The number of exchanges in each state.
private struct ExchangeCounts {
    var all = 0
    var failed = 0
    var slow = 0
    var pending = 0
    /// The number of those that the request asks for.
    var matched = 0

    /// True if the request asks for it. `now`: UTC ns.
    mutating func add(
        _ exchange: CapturedExchange, _ only: ExchangesRequest.Only, now: UInt64
    ) -> Bool {
        var filter = ExchangeFilter()
        filter.atLeast = ExchangesRequest.slowNs
        let isSlow = filter.matches(exchange, now: now)
        all += 1
        if exchange.isFailed { failed += 1 }
        if isSlow { slow += 1 }
        if exchange.isOpen { pending += 1 }
        let isWanted =
            switch only {
            case .all: true
            case .failed: exchange.isFailed
            case .slow: isSlow
            case .pending: exchange.isOpen
            }
        if isWanted { matched += 1 }
        return isWanted
    }
}

/// Sort key of an exchange in the list, in descending order.
struct ExchangePlace: Comparable {
    private let value: UInt64
    let start: UInt64
    private let id: String

    init(_ exchange: CapturedExchange, _ sort: ExchangesRequest.Sort) {
        start = exchange.start
        id = exchange.id
        switch sort {
        case .time: value = exchange.start
        // Running exchanges come first, whatever the present time.
        case .duration: value = exchange.isOpen ? .max : exchange.duration ?? 0
        }
    }

    static func < (a: ExchangePlace, b: ExchangePlace) -> Bool {
        (a.value, a.start, a.id) < (b.value, b.start, b.id)
    }
}

/// The first exchanges after a place.
private struct ExchangePage {
    private struct Row {
        let place: ExchangePlace
        let key: RecordKey
        let text: [UInt8]
    }

    private let limit: Int
    private let after: ExchangePlace?
    private var rows: [Row] = []
    /// Exchanges below this place are not on the page.
    private var lowest: ExchangePlace?

    init(limit: Int, after: ExchangePlace?) {
        self.limit = limit
        self.after = after
    }

    mutating func take(_ exchange: CapturedExchange, _ sort: ExchangesRequest.Sort) {
        let place = ExchangePlace(exchange, sort)
        if let after, place >= after { return }
        if let lowest, place < lowest { return }
        guard let id = exchange.recordID else { return }
        let key = RecordKey(timeNs: exchange.recordTimeNs, id: id)
        rows.append(Row(place: place, key: key, text: ExchangeRow.text(exchange, key)))
        if rows.count >= 2 * limit + 1 { cut() }
    }

    /// One extra row shows whether there are more.
    private mutating func cut() {
        rows.sort { $0.place > $1.place }
        if rows.count > limit + 1 { rows.removeLast(rows.count - limit - 1) }
        if rows.count > limit { lowest = rows.last?.place }
    }

    /// Lines `{"exchange":…}`. Returns where the next page continues; nil: nothing is left.
    mutating func append(to out: inout [UInt8], _ stream: LineStream) -> RecordKey? {
        cut()
        for row in rows.prefix(limit) {
            out += "{\"exchange\":".utf8
            out += row.text
            out += "}\n".utf8
            if out.count >= LineStream.bytesMax / 4, !stream.send(&out) { return nil }
        }
        return rows.count > limit ? rows[limit - 1].key : nil
    }
}

enum ExchangeRow {
    /// The object that `cordwood http --json` prints, with less of its messages, its key and its
    /// beginning.
    static func text(
        _ exchange: CapturedExchange, _ key: RecordKey, _ part: ExchangeJSON.Part = .brief
    ) -> [UInt8] {
        var object = ExchangeJSON.object(exchange, part)
        object.add("key", key.text)
        object.add("start_ns", String(exchange.start))
        return Array(object.text.utf8)
    }
}
