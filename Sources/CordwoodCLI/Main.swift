// The command: its verbs, and how each ending becomes an exit code. ArgumentParser's own codes
// differ from ours (API: 2 is usage), so this file calls the parsing and the verbs itself.

import ArgumentParser
import CArguments
import Cordwood

struct CordwoodCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "cordwood",
        abstract: "Write, read, search, archive and send logs that lose nothing.",
        discussion: """
            A store is a directory that programs log to, through the library or `cordwood log`. \
            What one process writes is its lane. Lanes become archives, compressed files (.cwa), \
            piece by piece. Targets are the servers that a store's archives are sent to.

            cat, tail, grep, stats, verify and export only read. They are safe at any time, also \
            while programs write. If you name no store, a verb takes the one in CORDWOOD_DIR. \
            Readers remember facts of archives in $XDG_CACHE_HOME/cordwood or ~/.cache/cordwood, \
            so that large stores open fast; CORDWOOD_CACHE=off does without. On a store of \
            another user, root's verbs act as that user.

            Examples:
              my-program | cordwood log --store logs --logger my.program
              cordwood tail -f logs
              cordwood grep -i timeout logs --since 2h --level warn
              cordwood cat logs -q 'order=7 OR level>=error'    # help query: how to ask

            Exit codes; the highest that applies:
              0  fine
              1  nothing found (grep, http --grep, http show, policy, transactions --id)
              2  wrong usage
              3  some data is damaged or unverified; everything else was printed
              4  a store, file or key could not be opened, or no such archive or target
              5  not done: a record was not kept, an archive not sent
            """,
        version: versionText,
        subcommands: [
            LogCommand.self, CatCommand.self, TailCommand.self, GrepCommand.self,
            StatsCommand.self, VerifyCommand.self, ExportCommand.self, ArchiveCommand.self,
            CompactCommand.self,
            UploadCommand.self, QueueCommand.self, TargetCommand.self, ConsentCommand.self,
            PolicyCommand.self, LevelCommand.self, HTTPCommand.self, TransactionsCommand.self,
            ServeCommand.self, CollectCommand.self, KeygenCommand.self,
        ])
}

@main
enum Main {
    static func main() {
        // A reader that went away is a write error, which Output reports, not a fatal signal.
        Signals.ignorePipe()
        Machine.raiseDescriptorLimit()
        Memory.keepLittle()
        do {
            let words = try arguments()[...]
            if words.elementsEqual(["help", QueryHelp.word]) {
                Output.standard.append(QueryHelp.text + "\n")
                return Output.standard.flush()
            }
            try checkVerb(words)
            var command = try parse(spelledOut(words))
            try command.run()
            Output.standard.flush()
        } catch let failure as Failure {
            Output.standard.flush()
            if !failure.text.isEmpty { Complaint.tell(failure.text) }
            Signals.exit(failure.code.rawValue)
        } catch {
            Output.standard.flush()
            end(error)
        }
    }

    /// A verb is parsed by itself, which avoids searching the command and its help. Words that it
    /// refuses, and help, are parsed by the command, whose texts name it.
    private static func parse(_ words: [String]) throws -> any ParsableCommand {
        let verbs = CordwoodCommand.configuration.subcommands
        if let word = words.first,
            let verb = verbs.first(where: { $0.configuration.commandName == word }),
            verb.configuration.subcommands.isEmpty,
            let command = try? verb.parseAsRoot(Array(words.dropFirst())), type(of: command) == verb
        {
            return command
        }
        return try CordwoodCommand.parseAsRoot(words)
    }

    /// `tail -5` and `grep -5`, which the parser would not know: -n 5 and -C 5.
    private static func spelledOut(_ words: ArraySlice<String>) -> [String] {
        let takers = ["-n", "--lines", "-A", "-B", "-C", "-m", "-e", "--regexp"]
        guard let verb = words.first, let letter = ["tail": "n", "grep": "C"][verb] else {
            return Array(words)
        }
        var previous = "--"
        var isOver = false
        return words.map { word in
            defer { previous = word }
            isOver = isOver || word == "--"
            let count = word.dropFirst()
            let isOption = !isOver && word.hasPrefix("-") && !count.isEmpty
            // grep's -n has no value.
            let isValue = takers.contains(previous) && (verb, previous) != ("grep", "-n")
            guard isOption, !isValue, count.allSatisfy({ $0.isASCII && $0.isNumber }) else {
                return word
            }
            return "-\(letter)\(count)"
        }
    }

    /// The words after the program's name. Swift would replace bytes that are not UTF-8, and the
    /// command would look for something else.
    private static func arguments() throws(Failure) -> [String] {
        var words: [String] = []
        for number in 1..<max(cw_argument_count(), 1) {
            guard let bytes = unsafe cw_argument(number) else { break }
            guard let word = unsafe String(validatingCString: bytes) else {
                throw Failure(
                    .usage,
                    "argument \(number) is not UTF-8; quoted text in a query may name such bytes: "
                        + #"cat -q '"caf\xe9"'"#)
            }
            words.append(word)
        }
        return words
    }

    /// Names the verbs when a word is not one of them: the parser says `Unexpected argument`, and
    /// shows the general help for `help NONSENSE`.
    private static func checkVerb(_ words: ArraySlice<String>) throws(Failure) {
        let isHelp = words.first == "help"
        var command: any ParsableCommand.Type = CordwoodCommand.self
        for word in isHelp ? words.dropFirst() : words.prefix(1) where !word.hasPrefix("-") {
            let all = command.configuration.subcommands
            guard let found = all.first(where: { $0.configuration.commandName == word }) else {
                let names = all.map { $0.configuration.commandName ?? "" }.joined(separator: " ")
                let hint = names.isEmpty ? "" : "; there are \(names)"
                throw Failure(.usage, "\(isHelp ? "help: " : "")there is no verb '\(word)'\(hint)")
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
            Signals.exit(Exit.fine.rawValue)
        }
        Complaint.write(text + "\n")
        Signals.exit(Exit.usage.rawValue)
    }
}
