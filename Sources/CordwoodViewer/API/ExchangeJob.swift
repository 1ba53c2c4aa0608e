// Requests below /api/http/KEY: one exchange in full, its bodies, and the curl command that repeats
// its request. The key is that of its end, or of its beginning: then the end is searched for. One
// thread per job.

import Cordwood

struct ExchangeJob: Sendable {
    private enum Part {
        case whole, curl, request, response
    }

    private let options: ViewerOptions
    private let key: RecordKey
    private let part: Part

    /// - Parameter rest: KEY, KEY/curl, KEY/body/request, KEY/body/response
    init(_ options: ViewerOptions, _ rest: String) throws(Rejection) {
        self.options = options
        let words = rest.split(separator: "/", omittingEmptySubsequences: false).map(String.init)
        key = try ViewerAPI.key(words[0])
        switch words.dropFirst().joined(separator: "/") {
        case "" where words.count == 1: part = .whole
        case "curl": part = .curl
        case "body/request": part = .request
        case "body/response": part = .response
        default: throw Rejection(.notFound, "no such path")
        }
    }

    func run(_ stream: LineStream) -> Reply? {
        do throws(Rejection) {
            let exchange = try ExchangeJob.find(key, options, stream)
            switch part {
            case .whole:
                return .json(ExchangeRow.text(exchange, key, .described) + [0x0a])
            case .curl: return .json(ExchangeJob.curl(exchange))
            case .request: return try ExchangeJob.body(exchange, exchange.request, stream)
            case .response: return try ExchangeJob.body(exchange, exchange.response, stream)
            }
        } catch {
            return error.reply
        }
    }

    static func find(
        _ key: RecordKey, _ options: ViewerOptions, _ stream: LineStream
    ) throws(Rejection) -> CapturedExchange {
        let facts = options.remembersFacts ? FactsCache.find() : nil
        let watch = LaneWatch(paths: options.paths)
        let (record, found) = try Look.find(key, options, facts, stream)
        var gatherer = ExchangeGatherer(watch: watch)
        var exchange: CapturedExchange?
        let take = { (one: CapturedExchange) in exchange = one }
        let begun = withExtendedLifetime(found) { CapturedExchange(record) }
        guard let begun else { throw Rejection(.notFound, "this record is of no exchange") }
        guard begun.isOpen else { return begun }
        withExtendedLifetime(found) { gatherer.take(record, take) }
        if !begun.id.isEmpty {
            var asked = ReaderOptions()
            asked.identities = options.identities
            asked.facts = facts
            asked.kinds = ExchangeGatherer.kinds
            asked.since = record.timeNs
            asked.conditions = [("http.id", begun.id)]
            let look = try Look(options, asked, stream)
            var next = RecordRef()
            while exchange == nil, look.next(&next) { gatherer.take(next, take) }
        }
        gatherer.finish(take)
        return exchange ?? begun
    }

    /// `{"text":…,"notes":[…]}`: the command, and what it cannot express.
    private static func curl(_ exchange: CapturedExchange) -> [UInt8] {
        var notes: [String] = []
        var object = JSONObject()
        object.add("text", CurlLine.text(exchange) { notes.append($0) })
        object.add("notes", notes)
        return Array(object.text.utf8) + [0x0a]
    }

    /// The kept bytes as they came, except for replaced parts.
    private static func body(
        _ exchange: CapturedExchange, _ message: CapturedExchange.Message, _ stream: LineStream
    ) throws(Rejection) -> Reply? {
        guard let body = message.body, !body.isEmpty else {
            throw Rejection(.notFound, "no bytes of this body were kept")
        }
        let isHex = Hex.bytes(exchange.id.utf8) != nil
        let name = isHex && !exchange.id.isEmpty ? exchange.id : "body"
        stream.begin(as: .file("\(name).bin", type: "application/octet-stream"))
        var rest = body[...]
        while !rest.isEmpty {
            var piece = Array(rest.prefix(LineStream.bytesMax / 4))
            rest = rest.dropFirst(piece.count)
            if !stream.send(&piece) { break }
        }
        return nil
    }
}
