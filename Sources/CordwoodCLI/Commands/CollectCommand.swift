// `cordwood collect`: runs the collector until it is told to stop.

import ArgumentParser
import Cordwood
import CordwoodCollector
import CordwoodServing

struct CollectCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "collect",
        abstract: "Receive archives from other machines over HTTP and keep them in a store.",
        usage: "cordwood collect --directory DIR [options]",
        discussion: """
            Prints `listening on http://ADDRESS:PORT` and serves until SIGTERM or SIGINT, then \
            exits with 0. The directory is a store: every reading verb opens it, also while \
            archives arrive. An archive is checked and synced before it is acknowledged; one sent \
            twice is kept once. Nothing is deleted, so watch the disk. Each refusal is a line on \
            stderr, at most ten in ten seconds. A lane belongs to the client, known by its token, \
            that sent it first. What contradicts an archive that is there lies in quarantine/.

            There is no TLS: for clients on other machines, put a web server before it \
            (docs/UPLOADS.md). Without a token, everybody who reaches the address may store \
            archives.

            When all connections are in use, a new one replaces one that has waited 5 s for a \
            request, or the slowest body below 8 KiB a second. If no connection can be replaced, \
            the answer is 503 with a Retry-After that spreads the returns.

            Example:
              export CORDWOOD_TOKEN=secret
              cordwood collect --directory central
              cordwood upload logs --to http://127.0.0.1:4500      # another program
            """)

    @Option(help: "An address and a port; port 0 takes a free one. Names are not looked up.")
    var listen = "127.0.0.1:4500"

    @Option(help: "The store. Made where it does not exist.")
    var directory: String

    @Option(
        help: """
            Bearer token of a client; may be given several times. Several with blanks between them \
            are one client's. Safer in the variable CORDWOOD_TOKEN, or in a file.
            """)
    var token: [String] = []

    @Option(
        help: """
            A file with more tokens, a client a line; lines that begin with # are skipped. It is \
            read again every second, so tokens come and go without a restart.
            """)
    var tokenFile: String?

    @Option(help: "Largest archive that is taken, in bytes: 4 GiB unless set.")
    var maxBytes: UInt64 = 4 << 30

    @Option(help: "Connections at a time.")
    var connections = 256

    @Option(
        help: """
            Connections at a time of one IPv4 address or IPv6 /64. Default: a quarter of \
            --connections; all of them for loopback.
            """)
    var connectionsPerAddress: Int?

    @Option(help: "For testing clients: refuse so many uploads with 503 first.")
    var refuse = 0

    @Option(help: "For testing clients: the Retry-After of those answers, in seconds.")
    var retryAfter = 1

    func run() throws {
        var options = CollectorOptions(directory: directory)
        guard let address = ListenAddress(listen) else {
            throw Failure(.usage, "--listen takes ADDRESS:PORT")
        }
        (options.host, options.port) = (address.host, address.port)
        options.tokens = token
        options.tokenFile = tokenFile
        if token.isEmpty, tokenFile == nil, let token = Machine.environment("CORDWOOD_TOKEN") {
            options.tokens = [token]
        }
        guard refuse >= 0, retryAfter >= 0, maxBytes > 0 else {
            throw Failure(.usage, "--refuse, --retry-after and --max-bytes take positive numbers")
        }
        guard connections > 0, connectionsPerAddress ?? 1 > 0 else {
            throw Failure(
                .usage, "--connections and --connections-per-address take positive numbers")
        }
        try FileLimit.raise(connections: connections)
        // Impossible tokens are refused before a directory is made.
        do throws(CollectorError) { try options.checkTokens() } catch {
            throw Failure(.usage, error.description)
        }
        try StoreUser.become(ownerOf: [directory], makes: true)
        options.connectionsMax = connections
        options.connectionsPerAddressMax = connectionsPerAddress
        options.notice = { Complaint.offer($0) }
        options.archiveBytesMax = maxBytes
        options.refuseFirst = refuse
        options.retryAfterSeconds = retryAfter

        // Blocked before any thread starts, so that only this thread takes them.
        Signals.blockEnd()
        let collector = Collector(options: options)
        let port: Int
        do throws(CollectorError) {
            port = try collector.start()
        } catch {
            if case .tokens = error { throw Failure(.usage, error.description) }
            throw Failure(.cannotOpen, error.description)
        }
        let host = options.host.contains(":") ? "[\(options.host)]" : options.host
        if options.tokens.isEmpty, tokenFile == nil,
            !["127.0.0.1", "localhost", "::1"].contains(options.host)
        {
            Complaint.tell("no token: everybody who reaches \(options.host) may store archives")
        }
        Output.standard.append("listening on http://\(host):\(port)\n")
        Output.standard.flush()
        Signals.waitForEnd()
        collector.stop()
    }
}

private enum FileLimit {
    /// Makes room for each connection's socket and file, and for the socket of one that gives way
    /// to it.
    static func raise(connections: Int) throws(Failure) {
        let (product, isTooMuch) = UInt64(connections).multipliedReportingOverflow(by: 3)
        let wanted = isTooMuch ? UInt64.max : product &+ 192
        if let bound = Machine.raiseDescriptorLimit(to: wanted) {
            throw Failure(
                .usage,
                "--connections \(connections) takes \(wanted) file descriptors;"
                    + " the limit is \(bound) (ulimit -Hn)")
        }
    }
}
