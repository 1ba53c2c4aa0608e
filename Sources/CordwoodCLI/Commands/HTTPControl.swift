// `cordwood http enable`, `disable`, `auto`: switches the capture of HTTP exchanges for a store's
// programs, from outside. Subcommands of `cordwood http`.

import ArgumentParser
import Cordwood

struct HTTPEnableCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "enable",
        abstract: "Capture HTTP exchanges of a store's programs, whatever they say themselves.",
        discussion: """
            Running programs follow within a second, those started later begin with it, until \
            `disable` or `auto`. It works in programs that have hooks. Secrets are replaced before \
            anything is kept; docs/HTTP.md says which. Bodies may still hold personal data.

            Example:
              cordwood http enable logs
            """)

    @Argument(help: StoreWords.help, completion: .directory)
    var directory: String?

    func run() throws { try HTTPControl.set(true, directory) }
}

struct HTTPDisableCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "disable",
        abstract: "Capture no HTTP exchanges, whatever a store's programs say themselves.",
        discussion: """
            Running programs follow within a second. What was captured stays in the store.

            Example:
              cordwood http disable logs
            """)

    @Argument(help: StoreWords.help, completion: .directory)
    var directory: String?

    func run() throws { try HTTPControl.set(false, directory) }
}

struct HTTPAutoCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "auto",
        abstract: "Let each of a store's programs say whether it captures HTTP exchanges.",
        discussion: """
            The default; takes `enable` and `disable` back.

            Example:
              cordwood http auto logs
            """)

    @Argument(help: StoreWords.help, completion: .directory)
    var directory: String?

    func run() throws { try HTTPControl.set(nil, directory) }
}

enum HTTPControl {
    static func set(_ isOn: Bool?, _ directory: String?) throws {
        let directory = try Sources.resolved(directory.map { [$0] } ?? [])[0]
        do throws(CordwoodError) {
            try StoreSettings.setHTTP(isOn, directory: directory)
        } catch {
            throw Failure(.cannotOpen, error.text)
        }
        let said =
            switch isOn {
            case true?: "capture: on, in running programs within a second"
            case false?: "capture: off, in running programs within a second"
            case nil: "capture: as each program says"
            }
        Output.standard.append(said + "\n")
    }
}
