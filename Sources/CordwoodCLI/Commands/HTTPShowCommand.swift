// `cordwood http show`: one exchange with everything that was kept of it, as text, as a curl
// command, as HAR or as JSON. Reads the store once for the exchange, and once more if it belongs to
// a chain of redirects.

import ArgumentParser
import Cordwood

struct HTTPShowCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "show",
        abstract: "Show one captured exchange: headers, bodies, timings, redirects.",
        discussion: """
            ID is what `cordwood http` lists, or enough of its beginning to be the only one. Exits \
            with 1 if no exchange has that id. What was replaced when it was captured stays \
            `[redacted]`.

            --curl only prints the command. Piped to sh it sends the request again, with all its \
            effects.

            Example:
              cordwood http show 9f3c logs
              cordwood http show 9f3c5a0d logs --curl
            """)

    @Flag(help: "A curl command that makes the request again.")
    var curl = false

    @Flag(help: "HAR 1.2.")
    var har = false

    @OptionGroup var selection: Selection

    @Argument(help: "The exchange's id, or its beginning.")
    var id: String

    @OptionGroup var sources: Sources

    func validate() throws {
        if [curl, har, selection.json].count(where: { $0 }) > 1 {
            throw ValidationError("one of --curl, --har and --json")
        }
        if id.isEmpty { throw ValidationError("an id has at least one digit") }
    }

    func run() throws {
        var options = try selection.readerOptions()
        let paths = try sources.resolved()
        options.kinds = ExchangeGatherer.kinds
        let watch = LaneWatch(paths: paths)
        let reading = try Reading(paths: paths, options: options)
        var search = ExchangeSearch(prefix: id)
        var gatherer = ExchangeGatherer(watch: watch)
        while let record = reading.next() { gatherer.take(record) { search.take($0) } }
        gatherer.finish { search.take($0) }
        guard let exchange = try search.result() else {
            try reading.end()
            throw Failure(.nothingFound, "no exchange whose id begins with \(id)")
        }
        if curl {
            Output.standard.append(CurlLine.text(exchange) { Complaint.tell($0) } + "\n")
        } else if har {
            var writer = HARWriter()
            Output.standard.put {
                writer.begin(&$0)
                writer.append(exchange, to: &$0)
                writer.finish(&$0)
            }
        } else if selection.json {
            Output.standard.append(ExchangeJSON.object(exchange).text + "\n")
        } else {
            let chain = try search.chain(of: exchange, paths, options)
            Output.standard.put {
                ExchangeText.append(exchange, chain: chain, utc: selection.utc, to: &$0)
            }
        }
        try reading.end()
    }
}

/// Finds the exchange of an id, and the order of redirects.
private struct ExchangeSearch {
    /// The limit of remembered redirects, and of exchanges in one chain.
    static let edgesMax = 65_536
    static let chainMax = 64
    static let toldMax = 5

    private let prefix: String
    private var found: CapturedExchange?
    private var others: [String] = []
    /// The exchange whose answer led to it, by id; and the reverse.
    private var from: [String: String] = [:]
    private var to: [String: String] = [:]

    init(prefix: String) { self.prefix = prefix.lowercased() }

    mutating func take(_ exchange: CapturedExchange) {
        if !exchange.redirectedFrom.isEmpty, !exchange.id.isEmpty,
            from.count < ExchangeSearch.edgesMax
        {
            from[exchange.id] = exchange.redirectedFrom
            to[exchange.redirectedFrom] = exchange.id
        }
        guard exchange.id.hasPrefix(prefix) else { return }
        guard let before = found, before.id != exchange.id else {
            // An end has more information than a beginning.
            if found == nil || !exchange.isOpen { found = exchange }
            return
        }
        if exchange.id == prefix {
            found = exchange
            others = []
        } else if before.id != prefix, others.count < ExchangeSearch.toldMax,
            !others.contains(exchange.id)
        {
            others.append(exchange.id)
        }
    }

    func result() throws(Failure) -> CapturedExchange? {
        guard let found, !others.isEmpty, found.id != prefix else { return found }
        throw Failure(
            .usage,
            "several exchanges begin with \(prefix): "
                + ([found.id] + others).joined(separator: ", "))
    }

    /// All exchanges of its chain, the first one first; empty without a chain.
    func chain(
        of exchange: CapturedExchange, _ paths: [String], _ options: ReaderOptions
    ) throws(Failure) -> [CapturedExchange] {
        var ids = [exchange.id]
        while let before = from[ids[0]], !ids.contains(before), ids.count < ExchangeSearch.chainMax
        {
            ids.insert(before, at: 0)
        }
        while let after = to[ids[ids.count - 1]], !ids.contains(after),
            ids.count < ExchangeSearch.chainMax
        {
            ids.append(after)
        }
        guard ids.count > 1 else { return [] }
        // The first pass reported the damage.
        var members: [String: CapturedExchange] = [:]
        var gatherer = ExchangeGatherer(bodies: false, watch: LaneWatch(paths: paths))
        let keep = { (exchange: CapturedExchange) in
            guard ids.contains(exchange.id) else { return }
            if !exchange.isOpen || members[exchange.id] == nil { members[exchange.id] = exchange }
        }
        do throws(ReadProblem) {
            let reader = try StoreReader(paths: paths, options: options)
            while reader.next({ gatherer.take($0, keep) }) == .record {}
        } catch {
            throw Failure(.cannotOpen, error.line)
        }
        gatherer.finish(keep)
        return ids.map { id in
            members[id]
                ?? {
                    var unknown = CapturedExchange()
                    unknown.id = id
                    return unknown
                }()
        }
    }
}
