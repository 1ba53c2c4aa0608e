// `cordwood consent`: whether what a store holds may be sent. The answer lives in the store.

import ArgumentParser
import Cordwood

struct ConsentCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "consent",
        abstract: "Show or set whether a store may be sent anywhere.",
        discussion: """
            granted: archives are sent. pending: they are kept and wait. denied: nothing is sent, \
            and what waited is deleted; what is logged later is kept here.

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
