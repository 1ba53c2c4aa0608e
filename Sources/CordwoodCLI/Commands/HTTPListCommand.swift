// `cordwood http list`: one line per exchange, although its beginning and its end are separate
// records; or one object each; or all of them as one HAR. Holds only the open ones in memory.

import ArgumentParser
import Cordwood

struct HTTPListCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "Print captured HTTP exchanges, a line each.",
        discussion: """
            Columns: time when it began, id, `>` sent by a client or `<` received by a server, \
            method, status, duration, bytes of the request's and the response's body, URL, and \
            after `!` what went wrong. Instead of a status: `open`, not ended yet; `lost`, not \
            ended, and its process or engine is gone; `gone`, broken off; `-`, no answer.

            Exchanges come in the order in which they ended, then those that have not ended. -f \
            prints each when it begins and again when it ends. --since, --until, --level, --logger \
            and --where select among the records of exchanges; -q tests the last record of each. \
            With --grep the exit code is 1 if nothing matched.

            \(Self.members)

            Example:
              cordwood http logs --failed --since 10m
              cordwood http logs --status 5xx,429 --json | jq -r .url
            """)

    static let members = """
        --json: state (open, lost, done), id, side, time, method, url, host, port, status, failed, \
        duration_ms, phases_ms (dns connect tls send wait receive), error (type message), \
        cancelled, left_of_bytes, odata (code message transaction_id), request and response \
        (headers, headers_note, body or body_base64, body_bytes, body_note), conversation, \
        redirected_from, attempt, protocol, peer, transaction, trace_id, span_id, pid, tid, \
        process; what is not known is left out.
        """

    @OptionGroup var wanted: ExchangeSelection

    @Flag(name: .shortAndLong, help: "Follow: print new exchanges as programs make them.")
    var follow = false

    @Flag(help: "Print all that is selected as one HAR 1.2 file, for browsers' tools.")
    var har = false

    @OptionGroup var selection: Selection
    @OptionGroup var sources: Sources

    func validate() throws {
        if har && follow { throw ValidationError("--har has an end; -f has none") }
        if har && selection.json { throw ValidationError("either --har or --json") }
    }

    func run() throws {
        var options = try selection.readerOptions()
        options.kinds = ExchangeGatherer.kinds
        options.follow = follow
        let query = options.query
        options.query = nil
        let filter = try wanted.filter()
        let pattern = try wanted.pattern()
        let style = ExchangeStyle(selection)
        let paths = try sources.resolved()
        let watch = LaneWatch(paths: paths)
        let reading = try Reading(paths: paths, options: options)
        let needsBodies = har || selection.json || pattern != nil
        var gatherer = ExchangeGatherer(bodies: needsBodies, watch: watch)
        gatherer.query = query
        var writer = HARWriter()
        if har { Output.standard.put { writer.begin(&$0) } }
        var found: UInt64 = 0
        func show(_ exchange: CapturedExchange) {
            guard filter.matches(exchange, now: TimeArgument.now()) else { return }
            if let pattern, !pattern.matches(exchange) { return }
            found &+= 1
            if har {
                Output.standard.put { writer.append(exchange, to: &$0) }
            } else {
                style.print(exchange)
            }
        }
        while let record = reading.next() { gatherer.take(record, show) }
        gatherer.finish(show)
        if har { Output.standard.put { writer.finish(&$0) } }
        gatherer.isLive = true
        if follow {
            reading.follow(until: options.until) {
                while let record = reading.next() { gatherer.take(record, show) }
            }
        }
        try reading.end()
        if found == 0, pattern != nil { throw Failure(.nothingFound) }
    }
}

/// Selects exchanges; Selection has the conditions on records.
struct ExchangeSelection: ParsableArguments {
    @Flag(help: "No answer, not all of it, or a status of 400 and above.")
    var failed = false

    @Option(
        parsing: .singleValue,
        help: "To this host: example.com, *.example.com, example.com:8443. May be repeated.")
    var host: [String] = []

    @Option(parsing: .singleValue, help: "GET, POST, …. May be repeated.")
    var method: [String] = []

    @Option(help: "404, 5xx, 400-499, or several with commas.")
    var status: String?

    @Option(help: "Took this many milliseconds or more; open ones: since they began.")
    var slow: UInt64?

    @Option(help: "With this conversation id: the header X-Conversation-Id, unless set otherwise.")
    var conversation: String?

    @Option(
        help: """
            Only if this extended regular expression matches the URL, a header line, a body, the \
            error or the OData error.
            """)
    var grep: String?

    @Flag(name: .shortAndLong, help: "--grep: ASCII letters match in either case.")
    var ignoreCase = false

    @Flag(name: [.customShort("F"), .long], help: "--grep: the pattern is plain text.")
    var fixedStrings = false

    func filter() throws(Failure) -> ExchangeFilter {
        var filter = ExchangeFilter()
        filter.failedOnly = failed
        filter.hosts = host
        filter.methods = method
        for text in status?.split(separator: ",", omittingEmptySubsequences: false) ?? [] {
            guard let range = ExchangeFilter.status(String(text)) else {
                throw Failure(.usage, "--status takes 404, 5xx or 400-499; not \(text)")
            }
            filter.statuses.append(range)
        }
        if let slow {
            let (ns, overflow) = slow.multipliedReportingOverflow(by: 1_000_000)
            filter.atLeast = overflow ? .max : ns
        }
        filter.conversation = conversation ?? ""
        return filter
    }

    func pattern() throws(Failure) -> ExchangePattern? {
        guard let grep else { return nil }
        return ExchangePattern(
            try Patterns.make(grep, isFixed: fixedStrings, ignoresCase: ignoreCase))
    }
}

/// A pattern that is searched in all parts of an exchange.
struct ExchangePattern {
    private let pattern: TextPattern

    init(_ pattern: TextPattern) { self.pattern = pattern }

    func matches(_ exchange: CapturedExchange) -> Bool {
        if matches(exchange.urlBytes) { return true }
        for message in [exchange.request, exchange.response] {
            if let body = message.body, matches(body) { return true }
            for header in message.headers {
                if matches(header.nameBytes + [0x3a, 0x20] + header.valueBytes) { return true }
            }
        }
        let texts = [
            exchange.errorType, exchange.errorMessage, exchange.odataCode, exchange.odataMessage,
            exchange.odataTransaction,
        ]
        return texts.contains { !$0.isEmpty && matches(Array($0.utf8)) }
    }

    // SAFETY: the view is read in the call only.
    private func matches(_ bytes: [UInt8]) -> Bool {
        unsafe bytes.withUnsafeBytes { pattern.isIn($0) }
    }
}
