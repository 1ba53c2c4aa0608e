// `cordwood queue`: lists the archives that wait for a target, each with its reason and its next
// attempt, and retries or gives up those that the caller names.

import ArgumentParser
import Cordwood

struct QueueCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "queue",
        abstract: "Show the archives that wait for upload; retry them, or give them up.",
        usage: "cordwood queue [DIR] [list | retry | quarantine] [--archive NAME] [--target NAME]",
        discussion: """
            list prints a line for each archive and target, or nothing. States:
              waiting      not tried yet
              retry        failed; tried again at the time shown
              paused       401 or 403: tried again by retry or `cordwood upload`
              sent         this target has it, another does not yet
              filtered     this target wants none of its records
              kept         sent, except for some records that the target refused
              quarantined  refused or unreadable, or given up by hand; not sent

            After a 403 the program itself tries a paused archive again, once the server has \
            taken another one.

            retry makes archives that are retry, paused, kept or quarantined due now; the \
            program, or `cordwood upload`, then sends them. quarantine needs --archive and gives \
            that archive up: it stays on the disk, readable, until retention removes it.

            Example:
              cordwood queue logs
              cordwood queue logs retry --target collector-logs.example.org-archive-1f2e
              cordwood queue logs quarantine --archive 20261121T081530Z-71-1f….cwa
            """)

    enum Action: String, ExpressibleByArgument, CaseIterable { case list, retry, quarantine }

    @Flag(help: "With list: one JSON object for each archive and target.")
    var json = false

    @Option(help: "Only this archive, by the file name that list shows.")
    var archive: String?

    @Option(help: "Only this target, by name.")
    var target: String?

    @Argument(
        help: ArgumentHelp(
            "The store's directory (default: CORDWOOD_DIR), then list, retry or quarantine.",
            valueName: "dir, action"),
        completion: .directory)
    var words: [String] = []

    func run() throws {
        let (directory, rest) = try StoreWords.split(words) { Action(rawValue: $0) != nil }
        guard rest.count <= 1, let action = Action(rawValue: rest.first ?? "list") else {
            throw Failure(.usage, "queue [DIR] [list | retry | quarantine]")
        }
        do throws(CordwoodError) {
            switch (action, archive) {
            case (.list, _): try list(directory)
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
                throw Failure(.usage, "queue quarantine needs --archive NAME")
            }
            throw Failure(.cannotOpen, error.text)
        }
    }

    private func list(_ directory: String) throws(CordwoodError) {
        for entry in try StoreSettings.queue(directory: directory) {
            if let archive, entry.archive != archive { continue }
            if let target, entry.target != target { continue }
            Output.standard.append(json ? asJSON(entry) : asText(entry))
        }
    }

    private func say(_ count: Int, _ what: String) {
        Output.standard.append(
            Counted.text(count, "pair") + " of archive and target \(what)\n")
    }

    private func asText(_ entry: QueueEntry) -> String {
        var text = "\(entry.archive)  " + Counted.text(entry.bytes, "byte")
        text += "  \(entry.target)  \(entry.state.word)"
        if entry.state.attempts > 0 { text += ", attempt \(entry.state.attempts) failed" }
        if case .kept(_, let records) = entry.state {
            text += ", " + Counted.text(records, "record") + " refused"
        }
        let done = entry.state.progress.done
        if done > 0 { text += ", " + Counted.text(done, "record") + " sent" }
        if case .retry(_, let notBeforeMs, _, _) = entry.state, notBeforeMs > 0 {
            text += ", not before \(Times.text(notBeforeMs &* 1_000_000))"
        }
        if !entry.cause.isEmpty { text += ": \(entry.cause)" }
        return PlainText.oneLine(text) + "\n"
    }

    private func asJSON(_ entry: QueueEntry) -> String {
        var line: [UInt8] = []
        entry.appendJSON(to: &line)
        return String(decoding: line, as: UTF8.self) + "\n"
    }
}
