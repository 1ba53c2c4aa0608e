// `cordwood queue`: lists the archives that wait for a target, each with its reason and its next
// attempt, and retries or gives up those that the caller names.

import ArgumentParser
import Cordwood

struct QueueCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "queue",
        abstract: "Show the archives that wait for upload; retry them, or give them up.",
        discussion: """
            list shows every archive with every target: its state, the attempts so far, when the \
            next one is due, and what the last one met. retry makes failed, refused and paused \
            ones due now. quarantine gives an archive up: it is kept and not sent.

            Example:
              cordwood queue logs
              cordwood queue logs retry --target collector-archive
              cordwood queue logs quarantine --archive 1f….00000000-00000003.cwa
            """)

    enum Action: String, ExpressibleByArgument, CaseIterable { case list, retry, quarantine }

    @Flag(help: "One JSON object a pair of archive and target.")
    var json = false

    @Option(help: "This archive alone, by file name.")
    var archive: String?

    @Option(help: "This target alone, by name.")
    var target: String?

    @Argument(help: "The store's directory.", completion: .directory)
    var directory: String

    @Argument(help: "list, retry or quarantine.")
    var action: Action = .list

    func run() throws {
        do throws(CordwoodError) {
            switch (action, archive) {
            case (.list, _): try list()
            case (.retry, _):
                say(
                    try StoreSettings.retry(
                        archive: archive, target: target, directory: directory),
                    "may be tried again")
            case (.quarantine, let archive?):
                say(
                    try StoreSettings.quarantine(
                        archive: archive, target: target, directory: directory),
                    "given up")
            case (.quarantine, nil): throw CordwoodError(0, "")
            }
        } catch {
            guard error.status != 0 else {
                throw Failure(.usage, "queue DIR quarantine needs --archive NAME")
            }
            throw Failure(.cannotOpen, error.text)
        }
    }

    private func list() throws(CordwoodError) {
        for entry in try StoreSettings.queue(directory: directory) {
            if let archive, entry.archive != archive { continue }
            if let target, entry.target != target { continue }
            Output.standard.append(json ? asJSON(entry) : asText(entry))
        }
    }

    private func say(_ count: Int, _ what: String) {
        Output.standard.append(
            "\(count) \(count == 1 ? "pair" : "pairs") of archive and target \(what)\n")
    }

    private func asText(_ entry: QueueEntry) -> String {
        var text = "\(entry.archive)  \(entry.bytes) bytes  \(entry.target)  \(entry.state.word)"
        if entry.state.attempts > 0 { text += ", attempt \(entry.state.attempts) failed" }
        if case .kept(_, let records) = entry.state { text += ", \(records) records refused" }
        if entry.state.progress.done > 0 { text += ", \(entry.state.progress.done) records sent" }
        if case .retry(_, let notBeforeMs, _, _) = entry.state, notBeforeMs > 0 {
            text += ", not before \(Times.text(notBeforeMs &* 1_000_000))"
        }
        if !entry.cause.isEmpty { text += ": \(entry.cause)" }
        return PlainText.oneLine(text) + "\n"
    }

    private func asJSON(_ entry: QueueEntry) -> String {
        var object = JSONObject()
        object.add("archive", entry.archive)
        object.add("bytes", entry.bytes)
        object.add("target", entry.target)
        object.add("state", entry.state.word)
        object.add("attempts", UInt64(entry.state.attempts))
        if case .retry(_, let notBeforeMs, let reason, _) = entry.state {
            object.add("reason", reason.rawValue)
            if notBeforeMs > 0 { object.add("not_before", Times.text(notBeforeMs &* 1_000_000)) }
        }
        switch entry.state {
        case .paused(_, let status, _), .sent(let status), .quarantined(let status, _),
            .kept(let status, _):
            object.add("http_status", UInt64(max(status, 0)))
        default: break
        }
        object.add("records_sent", entry.state.progress.done)
        if case .kept(_, let records) = entry.state {
            object.add("records_refused", UInt64(records))
        }
        if !entry.cause.isEmpty { object.add("cause", entry.cause) }
        return object.text + "\n"
    }
}
