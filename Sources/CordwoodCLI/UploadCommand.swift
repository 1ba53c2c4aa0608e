// `cordwood upload`: archives what dead processes left, then sends every archive that waits.

import ArgumentParser
import Cordwood
import Glibc

struct UploadCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "upload",
        abstract: "Send a store's archives to a collector or any HTTP server.",
        discussion: """
            An archive leaves the disk only after the server has answered 2xx, and when every \
            target registered in the store has it. With --watch it goes on: what programs finish \
            and leave behind is sent as it comes, failed attempts are repeated after a growing \
            pause.

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

    @Flag(help: "Do not end: send what comes.")
    var watch = false

    @Flag(help: "One JSON object.")
    var json = false

    @Argument(help: "The store's directory. Default: CORDWOOD_DIR.", completion: .directory)
    var directory: String?

    func run() throws(Failure) {
        let store = try Sources.resolved(directory.map { [$0] } ?? [])[0]
        var target = TargetOptions(url: to)
        target.kind = kind
        target.format = format
        target.encoding = encoding
        target.name = name
        target.headers = headers.isEmpty ? nil : headers.joined(separator: "\n")
        // SAFETY: nothing here calls setenv; the text is copied at once.
        target.authToken =
            unsafe token ?? getenv("CORDWOOD_TOKEN").map { unsafe String(cString: $0) }
        guard watch else { return try attempt(store, target) }
        while true {
            do {
                try attempt(store, target)
            } catch let failure where failure.code == .failed {
                // Said already; the queue remembers when to try again.
            }
            sleep(UploadCommand.watchSeconds)
        }
    }

    private static let watchSeconds: UInt32 = 5

    private func attempt(_ store: String, _ target: TargetOptions) throws(Failure) {
        let outcome: StoreUploader.Outcome
        do throws(CordwoodError) {
            let archived = try StoreArchiver.archiveDead(directory: store)
            for problem in archived.damage { Complaint.tell("damaged: \(problem)") }
            outcome = try StoreUploader.upload(
                directory: store, target: target, timeoutMs: timeoutMs, explicit: !watch)
        } catch {
            throw Failure(.cannotOpen, error.text)
        }
        let result = outcome.result
        let isSilent = watch && result.uploaded == 0 && result.failed == 0
        if !isSilent { Output.standard.append(json ? asJSON(result) : asText(result)) }
        Output.standard.flush()
        for text in outcome.diagnostics { Complaint.tell(text) }
        guard outcome.status >= 0 else {
            throw Failure(.failed, watch ? "" : statusText(outcome.status))
        }
    }

    private var timeoutMs: UInt32 { timeout > .max / 1000 ? .max : timeout * 1000 }

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
