// `cordwood consent`: whether a store's contents may be sent. The store keeps the answer.

import ArgumentParser
import Cordwood

struct ConsentCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "consent",
        abstract: "Show or set whether the archives of a store may be sent.",
        discussion: """
            granted: archives are sent. pending: they are kept and wait. denied: nothing is sent, \
            and waiting archives are deleted; later records are kept here only.

            Example:
              cordwood consent logs
              cordwood consent logs denied
            """)

    enum ConsentWord: String, ExpressibleByArgument, CaseIterable {
        case granted, pending, denied

        var consent: Consent {
            switch self {
            case .granted: .granted
            case .pending: .pending
            case .denied: .denied
            }
        }
    }

    @Argument(help: "The store's directory.", completion: .directory)
    var directory: String

    @Argument(help: "granted, pending or denied; none: show it.")
    var answer: ConsentWord?

    func run() throws {
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
