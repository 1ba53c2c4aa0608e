// The command: its verbs, and how each ending becomes an exit code. ArgumentParser's own codes
// differ from ours (API: 2 is usage), so this file calls the parsing and the verbs itself.

import ArgumentParser
import Cordwood
import Glibc

struct CordwoodCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "cordwood",
        abstract: "Write, read, search, archive and send logs that lose nothing.",
        discussion: """
            A store is a directory. Programs write to it through the library, `cordwood log` \
            writes lines to it, and every reading verb may be used while they do.

            Examples:
              my-program | cordwood log --store logs --logger my.program
              cordwood tail -f logs
              cordwood grep -i timeout logs --since 2h --level warn

            Exit codes: 0 fine; 1 nothing found (grep); 2 usage; 3 damaged data was met, and all \
            the rest printed; 4 could not open; 5 could not do (a record not kept, an archive not \
            written or not sent).
            """,
        version: versionText,
        subcommands: [
            LogCommand.self, CatCommand.self, TailCommand.self, GrepCommand.self,
            StatsCommand.self, VerifyCommand.self, ExportCommand.self, ArchiveCommand.self,
            UploadCommand.self, QueueCommand.self, TargetCommand.self, ConsentCommand.self,
            PolicyCommand.self, LevelCommand.self, HTTPCommand.self, TransactionsCommand.self,
            CollectCommand.self, KeygenCommand.self,
        ])
}

@main
enum Main {
    static func main() {
        // A reader that went away is a write error, which Output reports, not a fatal signal.
        signal(SIGPIPE, SIG_IGN)
        do {
            try checkHelp(CommandLine.arguments.dropFirst())
            var command = try CordwoodCommand.parseAsRoot()
            try command.run()
            Output.standard.flush()
        } catch let failure as Failure {
            Output.standard.flush()
            if !failure.text.isEmpty { Complaint.tell(failure.text) }
            exit(failure.code.rawValue)
        } catch {
            Output.standard.flush()
            end(error)
        }
    }

    /// For `help NONSENSE` the parser prints the general help.
    private static func checkHelp(_ words: ArraySlice<String>) throws(Failure) {
        guard words.first == "help" else { return }
        var command: any ParsableCommand.Type = CordwoodCommand.self
        for word in words.dropFirst() where !word.hasPrefix("-") {
            let all = command.configuration.subcommands
            guard let found = all.first(where: { $0.configuration.commandName == word }) else {
                let names = all.map { $0.configuration.commandName ?? "" }.joined(separator: " ")
                throw Failure(.usage, "help: there is no verb '\(word)'; there are \(names)")
            }
            command = found
        }
    }

    /// Help and version are not errors; everything else that the parser throws is usage.
    private static func end(_ error: any Error) -> Never {
        let text = CordwoodCommand.fullMessage(for: error)
        if CordwoodCommand.exitCode(for: error) == .success {
            Output.standard.append(text + "\n")
            Output.standard.flush()
            exit(Exit.fine.rawValue)
        }
        Complaint.write(text + "\n")
        exit(Exit.usage.rawValue)
    }
}
