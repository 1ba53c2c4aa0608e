// `cordwood level`: sets thresholds of running programs from outside, by the store's control file.

import ArgumentParser
import Cordwood

struct LevelCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "level",
        abstract: "Show or set the log levels of the programs of a store.",
        discussion: """
            Running programs follow within a second; programs started later begin with these \
            levels. They override what a program or a policy says. A prefix covers the loggers of \
            that name and all below it; "" is the root, and so is a level without a prefix.

            Example:
              cordwood level logs
              cordwood level logs app.db=debug
              cordwood level logs app.db=default     # as the program says again
              cordwood level logs warn               # the root
            """)

    @Argument(help: "The store's directory.", completion: .directory)
    var directory: String

    @Argument(help: "PREFIX=LEVEL: a level's name, 1 … 24, off, or default.")
    var settings: [String] = []

    func run() throws {
        // All of them are checked before the first is set.
        let parsed = try settings.map { try LevelCommand.parse($0) }
        do throws(CordwoodError) {
            for (prefix, level) in parsed {
                try StoreSettings.setLevel(prefix: prefix, level: level, directory: directory)
                say(prefix, level?.description ?? "default")
            }
            guard parsed.isEmpty else { return }
            for level in try StoreSettings.control(directory: directory).levels {
                say(
                    level.prefix,
                    level.number == 255 ? "off" : Level(number: level.number)?.description ?? "")
            }
        } catch {
            throw Failure(.cannotOpen, error.text)
        }
    }

    private func say(_ prefix: String, _ word: String) {
        Output.standard.append(PlainText.oneLine("\(prefix)=\(word.lowercased())") + "\n")
    }

    private static func parse(_ text: String) throws -> (prefix: String, level: Level?) {
        let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        let prefix = parts.count == 2 ? String(parts[0]) : ""
        let word = parts.last.map { $0.lowercased() } ?? ""
        switch word {
        case "default": return (prefix, nil)
        case "off": return (prefix, .off)
        default:
            guard let level = Level(word) else {
                throw Failure(
                    .usage,
                    "'\(text)': '\(word)' is no level: trace debug info notice warn error fatal, "
                        + "1 … 24, off, default")
            }
            return (prefix, level)
        }
    }
}
