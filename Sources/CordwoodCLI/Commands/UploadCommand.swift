// `cordwood upload`: archives segments that dead processes left, then sends every waiting archive.

import ArgumentParser
import Cordwood

struct UploadCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "upload",
        abstract: "Send a store's archives to a collector or any HTTP server.",
        discussion: """
            First archives what dead processes left (also with --dry-run), then sends every \
            archive that the server does not have yet, each once unless --watch is given. \
            Programs that have this target send by themselves; both may send at once.

            The server becomes a target of the store: an archive is deleted once all targets have \
            it, and not before, except by retention's limits. `cordwood target DIR remove NAME` \
            ends that; `cordwood target test URL` tries a server and stores nothing.

            Exits with 5 if something was not sent; `cordwood queue DIR` says why. Nothing is sent \
            if `cordwood consent DIR` says pending or denied.

            Example:
              CORDWOOD_TOKEN=secret cordwood upload logs --to http://127.0.0.1:4500
              cordwood upload logs --to https://example.org/logs --kind http \\
                  --format ndjson --encoding gzip --header 'X-Team: storage'

            Encrypted archives go as they are to targets that take archives. For targets that need \
            plain records they wait until --identity names a key.
            """)

    @Option(
        help: ArgumentHelp(
            "The server's http or https address. docs/UPLOADS.md has it for each kind.",
            valueName: "url"))
    var to: String

    @OptionGroup var destination: Destination

    @OptionGroup var encryption: EncryptionOption
    @OptionGroup var keys: IdentityOption

    @Option(help: "Seconds after which the command, or with --watch a round, gives up.")
    var timeout: UInt32 = 3600

    @Flag(help: "Keep running: send new archives, and retry failed ones after growing pauses.")
    var watch = false

    @Flag(help: "Print the requests that would be made. Sends nothing and adds no target.")
    var dryRun = false

    @Flag(help: "With --dry-run: print the bodies instead, byte for byte.")
    var bodies = false

    @Flag(help: "One JSON object.")
    var json = false

    @Argument(help: "The store's directory. Default: CORDWOOD_DIR.", completion: .directory)
    var directory: String?

    func run() throws(Failure) {
        let target = try destination.options(to: to)
        guard !bodies || dryRun, !watch || !dryRun else {
            throw Failure(.usage, "--bodies goes with --dry-run, and --dry-run without --watch")
        }
        let made = Keys(
            recipients: try encryption.recipients(), identities: try keys.identities())
        let store = try Sources.resolved(directory.map { [$0] } ?? [])[0]
        if dryRun { return try plan(store, target, made) }
        let progress = UploadProgress(store)
        let session: StoreUploader.Session
        do throws(CordwoodError) {
            session = try StoreUploader.Session(
                directory: store, target: target, callbacks: progress.callbacks,
                identities: made.identities)
        } catch {
            throw UploadCommand.failure(error)
        }
        guard watch else { return try attempt(store, session, progress, made) }
        while true {
            do {
                try attempt(store, session, progress, made)
            } catch {
                // The queue remembers when to try again.
                if !error.text.isEmpty { Complaint.tell(error.text) }
            }
            ThreadIdentity.pause(microseconds: UploadCommand.watchMicroseconds)
        }
    }

    private static let watchMicroseconds: UInt32 = 5_000_000

    private struct Keys {
        var recipients: [AgeRecipient]
        var identities: [AgeIdentity]
    }

    private func attempt(
        _ store: String, _ session: StoreUploader.Session, _ progress: UploadProgress, _ keys: Keys
    ) throws(Failure) {
        let deadlineMs = Machine.monotonicNs() / 1_000_000 + UInt64(timeout) * 1_000
        var outcome: StoreUploader.Outcome
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
            outcome = try session.upload(deadlineMonotonicMs: deadlineMs, explicit: !watch)
            // What was sent has made room for the rest.
            while !notArchived.isEmpty, outcome.result.uploaded > 0 {
                do throws(CordwoodError) {
                    try archiveDead(store, keys)
                    notArchived = ""
                } catch { notArchived = error.text }
                let more = try session.upload(deadlineMonotonicMs: deadlineMs, explicit: !watch)
                if more.result.uploaded == 0 { break }
                outcome.add(more)
            }
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
        ReadProgress.restart()
        defer { ReadProgress.clear() }
        let archived = try StoreArchiver.archiveDead(
            directory: FilePath(opening: store), recipients: keys.recipients,
            progress: ReadProgress.add)
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
            throw UploadCommand.failure(error)
        }
    }

    /// A bad option is usage, as for every verb.
    private static func failure(_ error: CordwoodError) -> Failure {
        Failure(
            error.status == UploadStatus.argument.rawValue ? .usage : .cannotOpen, error.text)
    }

    private func asText(_ request: PlannedRequest) -> String {
        var text = "\(request.method) \(request.contentType) \(request.encoding)"
        text += "  " + Counted.text(request.bytes, "byte")
        if let records = request.records { text += ", " + Counted.text(records, "record") }
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

    private func asText(_ result: UploadResult) -> String {
        var text = "\(result.uploaded) sent, " + Counted.text(result.bytesSent, "byte")
        if result.failed > 0 { text += ", \(result.failed) failed" }
        if result.waiting > 0 { text += ", \(result.waiting) waiting" }
        if result.expired > 0 { text += ", \(result.expired) expired" }
        if result.refused > 0 {
            text += ", " + Counted.text(result.refused, "record") + " refused"
        }
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
