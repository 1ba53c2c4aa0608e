// The destination on the command line: the options of a target, one to one those of
// cw_target_options. Secrets belong in the environment: a process list shows arguments.

import ArgumentParser
import Cordwood
import CordwoodCollector

struct Destination: ParsableArguments {
    @Option(
        help: """
            collector, http, sap, loggly, s3, otlp, loki, elasticsearch, splunk, datadog, \
            clickhouse or transactions.
            """)
    var kind = "collector"

    @Option(
        help: """
            archive, ndjson, text, sap, json, otlp-protobuf or otlp-json; default: the kind's.
            """)
    var format: String?

    @Option(help: "none, gzip, zstd or lz4; default: the kind's.")
    var encoding: String?

    @Option(help: "POST (default) or PUT; only for kind http.")
    var method: String?

    @Option(
        name: .customLong("header"), parsing: .singleValue,
        help: "A header to send, `Name: value`. May be repeated.")
    var headers: [String] = []

    @Option(
        name: .customLong("parameter"), parsing: .singleValue,
        help: "`name=value`; docs/UPLOADS.md lists each kind's. May be repeated.")
    var parameters: [String] = []

    @Option(
        help: "Bearer token, or API key. Safer in the variable CORDWOOD_TOKEN, or in a file.")
    var token: String?

    @Option(
        help: "A file with the token in a line; lines that begin with # are skipped.",
        completion: .file())
    var tokenFile: String?

    @Option(help: "User name, or access key. Its password comes from CORDWOOD_PASSWORD.")
    var user: String?

    @Option(help: "Certificates to trust (PEM), instead of the system's.", completion: .file())
    var caFile: String?

    @Option(help: "Client certificate (PEM).", completion: .file())
    var certificate: String?

    @Option(
        help: "Its key (PEM); a password comes from CORDWOOD_KEY_PASSWORD.", completion: .file())
    var certificateKey: String?

    @Option(
        help: "http://host:port or socks5h://host:port; its user:password from CORDWOOD_PROXY_AUTH."
    )
    var proxy: String?

    @Option(help: "1 or 2; default: 2 if TLS agrees on it, else 1.")
    var httpVersion: UInt32?

    @Option(
        name: .customLong("send-level"), help: "Lowest level that is sent. Not with format archive."
    )
    var sendLevel: String?

    @Option(
        name: .customLong("send-loggers"),
        help: "Send only these loggers and those below them, separated by commas.")
    var sendLoggers: String?

    @Option(help: "Most bytes of a request's body, before compression; default: the kind's.")
    var bodyBytesMax: UInt64?

    @Option(help: "Most records of a request's body; default: the kind's.")
    var bodyRecordsMax: UInt32?

    @Option(help: "Most requests at a time; default: 4, fewer while some fail.")
    var requestsMax: UInt32?

    @Option(
        help: """
            What a success must have, as status:202;header:X-Stored=yes;body:accepted. For kinds \
            http, sap and transactions; default: any 2xx.
            """)
    var expect: String?

    @Option(help: "Name of the target; default: made of kind, address and format.")
    var name: String?

    /// - Parameter url: docs/UPLOADS.md describes it for each kind.
    func options(to url: String) throws(Failure) -> TargetOptions {
        var target = TargetOptions(url: url)
        target.kind = kind
        target.format = format
        target.encoding = encoding
        target.method = method
        target.name = name
        target.headers = headers.isEmpty ? nil : headers.joined(separator: "\n")
        target.parameters = parameters.isEmpty ? nil : parameters.joined(separator: "\n")
        target.authToken = try authToken()
        target.authUser = user
        target.authPassword = Machine.environment("CORDWOOD_PASSWORD")
        target.caFile = caFile
        target.clientCertificateFile = certificate
        target.clientKeyFile = certificateKey
        target.clientKeyPassword = Machine.environment("CORDWOOD_KEY_PASSWORD")
        target.proxy = proxy
        target.proxyAuthentication = Machine.environment("CORDWOOD_PROXY_AUTH")
        target.httpVersion = httpVersion ?? 0
        target.loggers = sendLoggers
        target.expect = expect
        target.bodyBytesMax = bodyBytesMax ?? 0
        target.bodyRecordsMax = bodyRecordsMax ?? 0
        target.requestsMax = requestsMax ?? 0
        if let sendLevel {
            guard let level = Level(sendLevel) else {
                throw Failure(.usage, "--send-level '\(sendLevel)' is no level")
            }
            target.level = UInt32(level.number)
        }
        return target
    }

    private func authToken() throws(Failure) -> String? {
        guard let tokenFile else { return token ?? Machine.environment("CORDWOOD_TOKEN") }
        guard token == nil else { throw Failure(.usage, "--token and --token-file: give one") }
        let tokens: Tokens.Client
        do throws(TokenFileProblem) { tokens = try Tokens.read(tokenFile)[0] } catch {
            throw Failure(error.isUnreadable ? .cannotOpen : .usage, error.text)
        }
        guard tokens.count == 1 else {
            throw Failure(.usage, "\(tokenFile): the first line has several tokens")
        }
        return String(decoding: tokens[0], as: UTF8.self)
    }
}
