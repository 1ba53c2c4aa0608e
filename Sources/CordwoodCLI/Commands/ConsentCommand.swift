// `cordwood consent`: whether a store's contents may be sent. The store keeps the answer.

import ArgumentParser
import Cordwood

struct ConsentCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "consent",
        abstract: "Show or set whether the archives of a store may be sent.",
        usage: "cordwood consent [DIR] [granted | pending | denied]",
        discussion: """
            granted  archives are sent; the default of a new store
            pending  archives are kept and wait
            denied   nothing is sent. Archives that wait for a target are deleted at
                     once, for good; later records stay in the store only

            Running programs follow at their next attempt to send, and break off one under way.

            Example:
              cordwood consent logs
              cordwood consent logs denied
            """)

    private enum ConsentWord: String {
        case granted, pending, denied

        var consent: Consent {
            switch self {
            case .granted: .granted
            case .pending: .pending
            case .denied: .denied
            }
        }
    }

    @Argument(
        help: ArgumentHelp(
            """
            The store's directory (default: CORDWOOD_DIR), then what to set; none: print what is \
            set.
            """, valueName: "dir, answer"),
        completion: .directory)
    var words: [String] = []

    func run() throws {
        let (directory, rest) = try StoreWords.split(words) { ConsentWord(rawValue: $0) != nil }
        let answer = rest.first.flatMap { ConsentWord(rawValue: $0) }
        guard rest.count <= 1, rest.isEmpty || answer != nil else {
            throw Failure(.usage, "consent [DIR] [granted | pending | denied]")
        }
        do throws(CordwoodError) {
            if let answer {
                try StoreSettings.setConsent(answer.consent, directory: directory)
            } else {
                let consent = try StoreSettings.consent(directory: directory)
                Output.standard.append(consent.word + "\n")
            }
        } catch {
            throw Failure(.cannotOpen, error.text)
        }
    }
}
