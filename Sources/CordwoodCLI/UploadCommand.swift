// `cordwood upload`: archives what dead processes left, then sends every archive that waits.

import ArgumentParser
import Cordwood
import Glibc

struct UploadCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "upload",
        abstract: "Send a store's archives to a collector or any HTTP server.",
        discussion: """
            An archive leaves the disk only after the server has answered 2xx, and when every target
            registered in the store has it.

            Example:
              CORDWOOD_TOKEN=secret cordwood upload logs --to http://127.0.0.1:4500
              cordwood upload logs --to https://example.org/logs --kind http --format ndjson \\
                  --encoding gzip --header 'X-Team: storage'
            """)

    @Option(help: "The server's address; for a collector without the path.")
    var to: String

    @Option(help: "collector or http.")
    var kind = "collector"

    @Option(help: "archive, ndjson or text; the default fits the kind.")
    var format: String?

    @Option(help: "none, gzip, zstd or lz4; the default fits the kind.")
    var encoding: String?

    @Option(
        name: .customLong("header"), parsing: .singleValue,
        help: "A header to send, `Name: value`. May be repeated.")
    var headers: [String] = []

    @Option(help: "Bearer token. Safer in the variable CORDWOOD_TOKEN.")
    var token: String?

    @Option(help: "Name of the target in the store; default: from kind, address and format.")
    var name: String?

    @Option(help: "Seconds after which the command gives up.")
    var timeout: UInt32 = 3600

    @Flag(help: "One JSON object.")
    var json = false

    @Argument(help: "The store's directory. Default: CORDWOOD_DIR.", completion: .directory)
    var directory: String?

    func run() throws {
        let store = try Sources.resolved(directory.map { [$0] } ?? [])[0]
        var target = TargetOptions(url: to)
        target.kind = kind
        target.format = format
        target.encoding = encoding
        target.name = name
        target.headers = headers.isEmpty ? nil : headers.joined(separator: "\n")
        target.authToken = token ?? getenv("CORDWOOD_TOKEN").map { String(cString: $0) }
        let timeoutMs = timeout > .max / 1000 ? UInt32.max : timeout * 1000
        let outcome: StoreUploader.Outcome
        do throws(CordwoodError) {
            outcome = try StoreUploader.upload(
                directory: store, target: target, timeoutMs: timeoutMs)
        } catch {
            throw Failure(.cannotOpen, error.text)
        }
        let result = outcome.result
        Output.standard.append(json ? asJSON(result) : asText(result))
        Output.standard.flush()
        guard outcome.status >= 0 else { throw Failure(.failed, statusText(outcome.status)) }
    }

    private func asText(_ result: UploadResult) -> String {
        var text = "\(result.uploaded) sent, \(result.bytesSent) bytes"
        if result.failed > 0 { text += ", \(result.failed) failed" }
        if result.waiting > 0 { text += ", \(result.waiting) waiting" }
        if result.expired > 0 { text += ", \(result.expired) expired" }
        if result.lastHTTPStatus > 0 { text += ", last answer \(result.lastHTTPStatus)" }
        return text + "\n"
    }

    private func asJSON(_ result: UploadResult) -> String {
        var object = JSONObject()
        object.add("uploaded", UInt64(result.uploaded))
        object.add("failed", UInt64(result.failed))
        object.add("waiting", UInt64(result.waiting))
        object.add("expired", UInt64(result.expired))
        object.add("bytes_sent", result.bytesSent)
        object.add("last_http_status", UInt64(max(result.lastHTTPStatus, 0)))
        return object.text + "\n"
    }
}
