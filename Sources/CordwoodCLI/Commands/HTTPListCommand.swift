// `cordwood http list`: one line per exchange, although its beginning and its end are separate
// records; or one object each; or all of them as one HAR. Holds only the open ones in memory.

import ArgumentParser
import Cordwood
import Glibc

struct HTTPListCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "Print captured HTTP exchanges, a line each.",
        discussion: """
            Columns: time of the beginning, id, method, status, duration, bytes sent and \
            received, URL, error. In the order in which they ended; those without an end come \
            last: `open`, and `lost` where process or engine is gone. With -f each is printed as \
            it begins and again as it ends. With --grep it ends with 1 where nothing matched. \
            \(Self.members)

            Examples:
              cordwood http logs --failed --since 10m
              cordwood http logs --status 5xx,429 --json | jq -r .url
              cordwood http logs --conversation 7f3a
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

    @Flag(name: .shortAndLong, help: "Go on: print exchanges as programs make them.")
    var follow = false

    @Flag(help: "HAR 1.2 of what was selected, for browsers' tools.")
    var har = false

    @OptionGroup var selection: Selection
    @OptionGroup var sources: Sources

    /// The pause between two looks for new records.
    private static let pollMicroseconds: UInt32 = 20_000

    func validate() throws {
        if har && follow { throw ValidationError("--har has an end; -f has none") }
        if har && selection.json { throw ValidationError("either --har or --json") }
    }

    func run() throws {
        var options = try selection.readerOptions()
        options.kinds = ExchangeGatherer.kinds
        options.follow = follow
        let filter = try wanted.filter()
        let pattern = try wanted.pattern()
        let style = ExchangeStyle(selection)
        let paths = try sources.resolved()
        let watch = LaneWatch(paths: paths)
        let reading = try Reading(paths: paths, options: options)
        let needsBodies = har || selection.json || pattern != nil
        var gatherer = ExchangeGatherer(bodies: needsBodies, watch: watch)
        var writer = HARWriter()
        if har { writer.begin(&Output.standard.bytes) }
        var found: UInt64 = 0
        func show(_ exchange: CapturedExchange) {
            guard filter.matches(exchange, now: TimeArgument.now()) else { return }
            if let pattern, !pattern.matches(exchange) { return }
            found &+= 1
            if har {
                writer.append(exchange, to: &Output.standard.bytes)
                Output.standard.settle()
            } else {
                style.print(exchange)
            }
        }
        while let record = reading.next() { gatherer.take(record, show) }
        gatherer.finish(show)
        if har { writer.finish(&Output.standard.bytes) }
        gatherer.isLive = true
        while follow {
            while let record = reading.next() { gatherer.take(record, show) }
            Output.standard.flush()
            usleep(HTTPListCommand.pollMicroseconds)
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

    @Option(help: "Took so many milliseconds or more; open ones: since they began.")
    var slow: UInt64?

    @Option(help: "Of this conversation.")
    var conversation: String?

    @Option(
        help: """
            Where this extended regular expression matches: URL, headers, bodies, error, OData \
            error.
            """)
    var grep: String?

    @Flag(name: .shortAndLong, help: "--grep: letters of ASCII match in either case.")
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
            try Pattern(grep, isFixed: fixedStrings, ignoresCase: ignoreCase))
    }
}

/// A pattern that is searched in all parts of an exchange.
final class ExchangePattern {
    private let pattern: Pattern

    init(_ pattern: consuming Pattern) { self.pattern = pattern }

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
        unsafe bytes.withUnsafeBytes { pattern.matches($0) }
    }
}
