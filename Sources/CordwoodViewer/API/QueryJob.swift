// /api/query: a page of rows, from the newest or the oldest end or from a record on, and counts of
// the whole result. Rows come first; those of a backward page are sent as soon as they are certain.
// If the search for rows reads everything, it also counts; otherwise a second read counts, without
// order and texts, and without making records if columns suffice. One thread per job.

import Cordwood
import class CordwoodStore.FacetTally

struct QueryRequest: Sendable {
    static let limitMax = 1_000

    var selected: Selected
    var isBack: Bool
    var from: RecordKey?
    var limit: Int
    var hasRows = true
    var hasHistogram = false
    var hasFacets = false
    var isCounted = false

    init(_ parameters: URLParameters) throws(Rejection) {
        selected = try Selected(parameters)
        isBack = try parameters.word("dir", ["back", "forward"]) == "back"
        if let text = parameters["from"] { from = try ViewerAPI.key(text) }
        limit = try parameters.number("limit", 1...QueryRequest.limitMax, unset: 200)
        guard let parts = parameters["parts"] else { return }
        hasRows = false
        for part in parts.split(separator: ",") {
            switch part {
            case "rows": hasRows = true
            case "hist": hasHistogram = true
            case "facets": hasFacets = true
            case "count": isCounted = true
            default: throw Rejection("parts takes rows, hist, facets, count; not \(part)")
            }
        }
        isCounted = isCounted || hasHistogram || hasFacets
    }

    fileprivate var tally: FacetTally {
        FacetTally(hasHistogram: hasHistogram, hasFacets: hasFacets)
    }
}

struct QueryJob: Sendable {
    private let options: ViewerOptions
    private let request: QueryRequest

    init(_ options: ViewerOptions, _ request: QueryRequest) {
        self.options = options
        self.request = request
    }

    /// The state of one run.
    private final class Run {
        let began = Machine.realtimeNs()
        let stream: LineStream
        let facts: FactsCache?
        var out: [UInt8] = []
        /// The counts of the whole result.
        var counts: FacetTally
        var hasCounted = false
        /// Nothing was damaged, locked or left out.
        var isExact = true
        var rows = 0
        /// The last row sent.
        var last: RecordKey?
        var next: RecordKey?
        var told: Set<String> = []

        init(_ options: ViewerOptions, _ request: QueryRequest, _ stream: LineStream) {
            self.stream = stream
            facts = options.remembersFacts ? FactsCache.find() : nil
            counts = request.tally
        }

        func tell(_ look: Look) {
            if look.problemCount > 0 { isExact = false }
            look.appendProblems(told: &told, to: &out)
        }

        func end() {
            let isWhole = hasCounted ? isExact : isExact && next == nil
            out += "{\"done\":{\"matched\":".utf8
            Digits.append(hasCounted ? counts.matched : UInt64(rows), to: &out)
            out += ",\"exact\":\(isWhole),\"ms\":".utf8
            Digits.append((Machine.realtimeNs() &- began) / 1_000_000, to: &out)
            out += ",\"next\":\(next.map { "\"\($0.text)\"" } ?? "null")}}\n".utf8
            _ = stream.send(&out)
            if !stream.isOver { facts?.save() }
        }
    }

    func run(_ stream: LineStream) -> Reply? {
        let run = Run(options, request, stream)
        do throws(Rejection) {
            if request.hasRows { try rows(run) }
            if request.isCounted, !run.hasCounted, !stream.isOver { try count(run) }
        } catch {
            if !stream.hasBegun { return error.reply }
            run.out += "{\"problem\":".utf8
            JSONText.string(error.text, &run.out)
            run.out += "}\n".utf8
            run.isExact = false
        }
        if stream.isOver { return nil }
        if run.hasCounted {
            if request.hasHistogram { CountsJSON.append(&run.counts.histogram, to: &run.out) }
            if request.hasFacets { CountsJSON.append(&run.counts.facets, to: &run.out) }
        }
        run.end()
        return nil
    }

    // MARK: Rows

    private func rows(_ run: Run) throws(Rejection) {
        var asked = request.selected.readerOptions(options, run.facts)
        asked.isPage = true
        // One extra row shows whether there are more.
        let wanted = request.limit + 1
        if let from = request.from {
            asked.window = RecordWindow(
                around: from.id, timeNs: from.timeNs, before: request.isBack ? wanted : 0,
                after: request.isBack ? 0 : wanted, isApart: try isApart(from, run))
        } else if request.isBack {
            asked.last = wanted
        } else {
            asked.isBrief = true
        }
        let look = try Look(options, asked, run.stream)
        look.watch()
        if request.isCounted { look.reader.onMatch = { [counts = run.counts] in counts.add($0) } }
        request.isBack ? back(run, look) : forward(run, look)
        if look.reader.isMissing, !run.stream.isOver {
            throw Rejection(.notFound, "no record has this key")
        }
        run.hasCounted = request.isCounted && look.reader.hasMatchedAll
        if !run.hasCounted { run.counts = request.tally }
        run.tell(look)
        if request.isCounted, !run.hasCounted { run.out += "{\"rows\":\(run.rows)}\n".utf8 }
        _ = run.stream.send(&run.out)
    }

    /// True if the record from which a page continues does not match the request.
    private func isApart(_ key: RecordKey, _ run: Run) throws(Rejection) -> Bool {
        if request.selected.query == nil, request.selected.since == 0, request.selected.until == 0 {
            return false
        }
        let (record, look) = try Look.find(key, options, run.facts, run.stream)
        return withExtendedLifetime(look) { !request.selected.matches(record) }
    }

    /// Newest first. Certain rows are sent while older ones are searched.
    private func back(_ run: Run, _ look: Look) {
        let row = RowJSON()
        look.reader.onCertain = { [from = request.from?.id] record, isLast in
            if record.id != from {
                row.appendLine(record, to: &run.out)
                run.last = RecordKey(record)
                run.rows += 1
            }
            // If the client has gone, the reader ends.
            if isLast || run.out.count >= LineStream.bytesMax / 4 { _ = run.stream.send(&run.out) }
        }
        var lines: [(key: RecordKey, bytes: Range<Int>)] = []
        var text: [UInt8] = []
        var record = RecordRef()
        while look.next(&record) {
            if record.id == request.from?.id { continue }
            let start = text.count
            row.appendLine(record, to: &text)
            lines.append((RecordKey(record), start..<text.count))
        }
        // Records written since the first were sent are newer than these, and not on this page.
        var isMore = look.reader.isCut
        if let last = run.last {
            let given = lines.lastIndex { $0.key.id == last.id }
            isMore = isMore || given == nil
            lines.removeSubrange((given ?? 0)...)
        }
        for (key, bytes) in lines.reversed() {
            if run.rows == request.limit {
                isMore = true
                break
            }
            run.rows += 1
            run.last = key
            run.out += text[bytes]
            if run.out.count >= LineStream.bytesMax / 4, !run.stream.send(&run.out) { return }
        }
        if isMore { run.next = run.last }
    }

    private func forward(_ run: Run, _ look: Look) {
        let row = RowJSON()
        var record = RecordRef()
        while look.next(&record) {
            if record.id == request.from?.id { continue }
            if run.rows == request.limit {
                run.next = run.last
                return
            }
            run.rows += 1
            run.last = RecordKey(record)
            row.appendLine(record, to: &run.out)
            if run.out.count >= LineStream.bytesMax / 4, !run.stream.send(&run.out) { return }
        }
    }

    // MARK: Counts

    private func count(_ run: Run) throws(Rejection) {
        var asked = request.selected.readerOptions(options, run.facts)
        asked.rendersText = false
        asked.isUnordered = true
        asked.count(by: run.counts)
        let look = try Look(options, asked, run.stream)
        look.watch()
        var record = RecordRef()
        while look.next(&record) { run.counts.add(record) }
        run.hasCounted = !look.reader.isStopped
        run.tell(look)
    }
}
