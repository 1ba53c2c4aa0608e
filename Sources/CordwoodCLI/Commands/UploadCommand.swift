// `cordwood upload`: archives segments that dead processes left, then sends every waiting archive.

import ArgumentParser
import Cordwood
import Glibc

struct UploadCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "upload",
        abstract: "Send a store's archives to a collector or any HTTP server.",
        discussion: """
            Deletes an archive only after the server answered 2xx and every target registered in \
            the store has it. --watch keeps running: it sends what programs leave behind as it \
            comes, and repeats failed attempts after growing pauses. --dry-run shows what it would \
            send, and --bodies prints exactly those bytes, one body after the other; both send \
            nothing and register no target.

            Example:
              CORDWOOD_TOKEN=secret cordwood upload logs --to http://127.0.0.1:4500
              cordwood upload logs --to https://example.org/logs --kind http --format ndjson \\
                  --encoding gzip --header 'X-Team: storage'

            Encrypted archives go as they are to targets that take archives. For targets that need \
            plain records they wait until --identity names a key.
            """)

    @Option(help: "The server's address; what belongs to it for each kind: docs/UPLOADS.md.")
    var to: String

    @OptionGroup var destination: Destination

    @OptionGroup var encryption: EncryptionOption
    @OptionGroup var keys: IdentityOption

    @Option(help: "Seconds after which the command gives up.")
    var timeout: UInt32 = 3600

    @Flag(help: "Do not end: send what comes.")
    var watch = false

    @Flag(help: "Say what would be sent; send nothing.")
    var dryRun = false

    @Flag(help: "With --dry-run: print the bodies instead.")
    var bodies = false

    @Flag(help: "One JSON object.")
    var json = false

    @Argument(help: "The store's directory. Default: CORDWOOD_DIR.", completion: .directory)
    var directory: String?

    func run() throws(Failure) {
        let store = try Sources.resolved(directory.map { [$0] } ?? [])[0]
        let target = try destination.options(to: to)
        guard !bodies || dryRun, !watch || !dryRun else {
            throw Failure(.usage, "--bodies goes with --dry-run, and --dry-run without --watch")
        }
        let made = Keys(
            recipients: try encryption.recipients(), identities: try keys.identities())
        if dryRun { return try plan(store, target, made) }
        let progress = UploadProgress(store)
        let session: StoreUploader.Session
        do throws(CordwoodError) {
            session = try StoreUploader.Session(
                directory: store, target: target, callbacks: progress.callbacks,
                identities: made.identities)
        } catch {
            throw Failure(.cannotOpen, error.text)
        }
        guard watch else { return try attempt(store, session, progress, made) }
        while true {
            do {
                try attempt(store, session, progress, made)
            } catch {
                // The queue remembers when to try again.
                if !error.text.isEmpty { Complaint.tell(error.text) }
            }
            sleep(UploadCommand.watchSeconds)
        }
    }

    private static let watchSeconds: UInt32 = 5

    private struct Keys {
        var recipients: [AgeRecipient]
        var identities: [AgeIdentity]
    }

    private func attempt(
        _ store: String, _ session: StoreUploader.Session, _ progress: UploadProgress, _ keys: Keys
    ) throws(Failure) {
        let outcome: StoreUploader.Outcome
        var notArchived = ""
        do throws(CordwoodError) {
            try archiveDead(store, keys)
        } catch {
            // On a full disk, sending the existing archives is the remedy.
            notArchived = error.text
        }
        do throws(CordwoodError) {
            progress.begin()
            defer { progress.end() }
            outcome = try session.upload(timeoutMs: timeoutMs, explicit: !watch)
        } catch {
            throw Failure(.cannotOpen, error.text)
        }
        let result = outcome.result
        let isSilent = watch && result.uploaded == 0 && result.failed == 0
        if !isSilent { Output.standard.append(json ? asJSON(result) : asText(result)) }
        Output.standard.flush()
        for text in outcome.diagnostics { Complaint.tell(text) }
        guard notArchived.isEmpty else { throw Failure(.cannotOpen, notArchived) }
        guard outcome.status >= 0 else {
            throw Failure(.failed, watch ? "" : statusText(outcome.status))
        }
    }

    private func archiveDead(_ store: String, _ keys: Keys) throws(CordwoodError) {
        let archived = try StoreArchiver.archiveDead(
            directory: store, recipients: keys.recipients)
        for problem in archived.damage { Complaint.tell("damaged: \(problem)") }
    }

    private func plan(
        _ store: String, _ target: TargetOptions, _ keys: Keys
    ) throws(Failure) {
        do throws(CordwoodError) {
            try archiveDead(store, keys)
            let count = try unsafe StoreUploader.plan(
                directory: store, target: target, identities: keys.identities,
                begin: { request in
                    if bodies { return true }
                    Output.standard.append(json ? asJSON(request) : asText(request))
                    return nil
                },
                piece: {
                    Output.standard.append($0)
                    return true
                })
            if count == 0 && !bodies && !json { Output.standard.append("nothing waits\n") }
        } catch {
            throw Failure(.cannotOpen, error.text)
        }
    }

    private func asText(_ request: PlannedRequest) -> String {
        var text = "\(request.method) \(request.contentType) \(request.encoding)"
        text += "  \(request.bytes) bytes"
        if let records = request.records { text += ", \(records) records" }
        return PlainText.oneLine(text + "  \(request.id)  \(request.archive)") + "\n"
    }

    private func asJSON(_ request: PlannedRequest) -> String {
        var object = JSONObject()
        object.add("archive", request.archive)
        object.add("id", request.id)
        object.add("method", request.method)
        object.add("content_type", request.contentType)
        object.add("encoding", request.encoding)
        object.add("bytes", request.bytes)
        if let records = request.records { object.add("records", UInt64(records)) }
        return object.text + "\n"
    }

    private var timeoutMs: UInt32 { timeout > .max / 1000 ? .max : timeout * 1000 }

    private func asText(_ result: UploadResult) -> String {
        var text = "\(result.uploaded) sent, \(result.bytesSent) bytes"
        if result.failed > 0 { text += ", \(result.failed) failed" }
        if result.waiting > 0 { text += ", \(result.waiting) waiting" }
        if result.expired > 0 { text += ", \(result.expired) expired" }
        if result.refused > 0 { text += ", \(result.refused) records refused" }
        if result.quarantined > 0 { text += ", \(result.quarantined) kept in quarantine" }
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
        object.add("records_refused", UInt64(result.refused))
        object.add("quarantined", UInt64(result.quarantined))
        object.add("last_http_status", UInt64(max(result.lastHTTPStatus, 0)))
        return object.text + "\n"
    }
}
