// `cordwood collect`: runs the collector until it is told to stop.

import ArgumentParser
import CordwoodCollector
import Glibc

struct CollectCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "collect",
        abstract: "Receive archives from other machines over HTTP and keep them in a store.",
        discussion: """
            Prints `listening on http://ADDRESS:PORT` and serves until SIGTERM or SIGINT. The \
            directory is a store: every reading verb opens it, also while archives arrive. Each \
            refusal is a line on stderr, at most ten in ten seconds.

            When all connections are in use, a new one replaces one that has waited 5 s for a \
            request, or the slowest body below 8 KiB a second. If no connection can be replaced, \
            the answer is 503 with a Retry-After that spreads the returns.

            Example:
              CORDWOOD_TOKEN=secret cordwood collect --listen 127.0.0.1:4500 --directory central
              cordwood upload logs --to http://127.0.0.1:4500 --token secret
            """)

    @Option(help: "An address and a port; port 0 takes a free one. Names are not looked up.")
    var listen = "127.0.0.1:4500"

    @Option(help: "The store. Made where it does not exist.")
    var directory: String

    @Option(
        help: "What clients must send as Bearer token. Safer in the variable CORDWOOD_TOKEN.")
    var token: String?

    @Option(help: "Bytes of the largest archive that is taken.")
    var maxBytes: UInt64 = 4 << 30

    @Option(help: "Connections at a time.")
    var connections = 256

    @Option(
        help: ArgumentHelp(
            "Connections at a time of one IPv4 address or IPv6 /64.",
            discussion: "Default: a quarter of --connections; all of them for loopback."))
    var connectionsPerAddress: Int?

    @Option(help: "For testing clients: refuse so many uploads with 503 first.")
    var refuse = 0

    @Option(help: "For testing clients: the Retry-After of those answers, in seconds.")
    var retryAfter = 1

    func run() throws {
        var options = CollectorOptions(directory: directory)
        (options.host, options.port) = try CollectCommand.address(listen)
        // SAFETY: read before any thread runs; the text is copied at once.
        options.token = unsafe token ?? getenv("CORDWOOD_TOKEN").map { unsafe String(cString: $0) }
        guard options.token != "" else { throw Failure(.usage, "the token is empty") }
        guard refuse >= 0, retryAfter >= 0, maxBytes > 0 else {
            throw Failure(.usage, "--refuse, --retry-after and --max-bytes take positive numbers")
        }
        guard connections > 0, connectionsPerAddress ?? 1 > 0 else {
            throw Failure(
                .usage, "--connections and --connections-per-address take positive numbers")
        }
        try FileLimit.raise(connections: connections)
        options.connectionsMax = connections
        options.connectionsPerAddressMax = connectionsPerAddress
        options.notice = { Complaint.offer($0) }
        options.archiveBytesMax = maxBytes
        options.refuseFirst = refuse
        options.retryAfterSeconds = retryAfter

        // Blocked before any thread starts, so that only this thread takes them.
        var signals = sigset_t()
        unsafe sigemptyset(&signals)
        unsafe sigaddset(&signals, SIGTERM)
        unsafe sigaddset(&signals, SIGINT)
        unsafe pthread_sigmask(SIG_BLOCK, &signals, nil)
        let collector = Collector(options: options)
        let port: Int
        do throws(CollectorError) {
            port = try collector.start()
        } catch {
            throw Failure(.cannotOpen, error.description)
        }
        let host = options.host.contains(":") ? "[\(options.host)]" : options.host
        if options.token == nil, !["127.0.0.1", "localhost", "::1"].contains(options.host) {
            Complaint.tell("no token: everybody who reaches \(options.host) may store archives")
        }
        Output.standard.append("listening on http://\(host):\(port)\n")
        Output.standard.flush()
        var signal: Int32 = 0
        unsafe sigwait(&signals, &signal)
        collector.stop()
    }

    /// `127.0.0.1:80`, `[::1]:80`.
    static func address(_ text: String) throws(Failure) -> (host: String, port: Int) {
        guard let colon = text.lastIndex(of: ":"),
            let port = UInt16(text[text.index(after: colon)...])
        else { throw Failure(.usage, "--listen takes ADDRESS:PORT") }
        var host = text[..<colon]
        if host.hasPrefix("["), host.hasSuffix("]") { host = host.dropFirst().dropLast() }
        guard !host.isEmpty else { throw Failure(.usage, "--listen takes ADDRESS:PORT") }
        return (String(host), Int(port))
    }
}

private enum FileLimit {
    /// Makes room for each connection's socket and file, and for the socket of one that gives way
    /// to it.
    static func raise(connections: Int) throws(Failure) {
        let (product, isTooMuch) = UInt64(connections).multipliedReportingOverflow(by: 3)
        let wanted = isTooMuch ? UInt64.max : product &+ 192
        var limit = rlimit()
        guard unsafe getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0,
            limit.rlim_cur < wanted
        else { return }
        guard limit.rlim_max >= wanted else {
            throw Failure(
                .usage,
                "--connections \(connections) takes \(wanted) file descriptors;"
                    + " the limit is \(limit.rlim_max) (ulimit -Hn)")
        }
        limit.rlim_cur = rlim_t(wanted)
        unsafe setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    }
}
