// The destination on the command line: the options of a target, one to one those of
// cw_target_options. Secrets belong in the environment: a process list shows arguments.

import ArgumentParser
import Cordwood
import Glibc

struct Destination: ParsableArguments {
    @Option(
        help: """
            collector, http, sap, loggly, s3, otlp, loki, elasticsearch, splunk, datadog, \
            clickhouse or transactions.
            """)
    var kind = "collector"

    @Option(
        help: """
            archive, ndjson, text, sap, json, otlp-protobuf or otlp-json; the default fits the kind.
            """)
    var format: String?

    @Option(help: "none, gzip, zstd or lz4; the default fits the kind.")
    var encoding: String?

    @Option(help: "POST or PUT, for kind http.")
    var method: String?

    @Option(
        name: .customLong("header"), parsing: .singleValue,
        help: "A header to send, `Name: value`. May be repeated.")
    var headers: [String] = []

    @Option(
        name: .customLong("parameter"), parsing: .singleValue,
        help: "`name=value` of what only this kind knows. May be repeated.")
    var parameters: [String] = []

    @Option(help: "Bearer token, or API key. Safer in the variable CORDWOOD_TOKEN.")
    var token: String?

    @Option(help: "User name, or access key. The password comes from CORDWOOD_PASSWORD.")
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

    @Option(help: "1 or 2; default: HTTP/2 where TLS agrees on it.")
    var httpVersion: UInt32 = 0

    @Option(
        name: .customLong("send-level"), help: "Least level that is sent. Not with format archive.")
    var sendLevel: String?

    @Option(
        name: .customLong("send-loggers"),
        help: "Send these loggers and those below them, separated by commas.")
    var sendLoggers: String?

    @Option(help: "Bytes of a request's body at most, before compression.")
    var bodyBytesMax: UInt64 = 0

    @Option(help: "Records of a request's body at most.")
    var bodyRecordsMax: UInt32 = 0

    @Option(help: "Requests at a time; default: up to 4, as the server bears.")
    var requestsMax: UInt32 = 0

    @Option(help: "What success is: status:202;header:X-Stored=yes;body:accepted, all of it.")
    var expect: String?

    @Option(help: "Name of the target in the store; default: from kind, address and format.")
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
        target.authToken = token ?? Destination.environment("CORDWOOD_TOKEN")
        target.authUser = user
        target.authPassword = Destination.environment("CORDWOOD_PASSWORD")
        target.caFile = caFile
        target.clientCertificateFile = certificate
        target.clientKeyFile = certificateKey
        target.clientKeyPassword = Destination.environment("CORDWOOD_KEY_PASSWORD")
        target.proxy = proxy
        target.proxyAuthentication = Destination.environment("CORDWOOD_PROXY_AUTH")
        target.httpVersion = httpVersion
        target.loggers = sendLoggers
        target.expect = expect
        target.bodyBytesMax = bodyBytesMax
        target.bodyRecordsMax = bodyRecordsMax
        target.requestsMax = requestsMax
        if let sendLevel {
            guard let level = Level(sendLevel) else {
                throw Failure(.usage, "--send-level '\(sendLevel)' is no level")
            }
            target.level = UInt32(level.number)
        }
        return target
    }

    /// SAFETY: nothing here calls setenv; the text is copied at once.
    private static func environment(_ name: String) -> String? {
        unsafe getenv(name).map { unsafe String(cString: $0) }
    }
}
