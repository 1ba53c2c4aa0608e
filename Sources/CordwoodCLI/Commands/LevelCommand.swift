// `cordwood level`: sets thresholds of running programs from outside, by the store's control file.

import ArgumentParser
import Cordwood

struct LevelCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "level",
        abstract: "Show or set the log levels of the programs of a store.",
        usage: "cordwood level [DIR] [PREFIX=LEVEL ...]",
        discussion: """
            Running programs follow within a second; programs started later begin with these \
            levels, until they are set to default. They override what a program or a policy says. \
            A prefix covers the loggers of that name and all below it; a level without a prefix is \
            the root's, for all loggers that no prefix covers, and is shown as =LEVEL. Records \
            below the level are not written at all, nor by `cordwood log`.

            Without PREFIX=LEVEL, prints the levels that are set here, or nothing if each program \
            decides by itself. Exits with 0 in either case, with 2 if a word is no level (then \
            none is set), and with 4 if the store does not exist or cannot be changed.

            Example:
              cordwood level logs app.db=debug
              cordwood level logs app.db=default     # as the program says again
              cordwood level logs warn               # the root
            """)

    @Argument(
        help: ArgumentHelp(
            """
            The store's directory (default: CORDWOOD_DIR), then PREFIX=LEVEL: trace debug info \
            notice warn error fatal, 1 to 24, off or default.
            """, valueName: "dir, levels"),
        completion: .directory)
    var words: [String] = []

    func run() throws {
        let (directory, words) = try StoreWords.split(words) {
            (try? LevelCommand.parse($0)) != nil
        }
        // All of them are checked before the first is set.
        let settings = try words.map { try LevelCommand.parse($0) }
        do throws(CordwoodError) {
            for setting in settings {
                try StoreSettings.setLevel(
                    prefix: setting.prefix, level: setting.level, directory: directory)
                say(setting)
            }
            guard settings.isEmpty else { return }
            try StoreSettings.levels(directory: directory).forEach(say)
        } catch {
            throw Failure(.cannotOpen, error.text)
        }
    }

    private func say(_ setting: LevelSetting) {
        Output.standard.append(PlainText.oneLine(setting.text) + "\n")
    }

    private static func parse(_ text: String) throws -> LevelSetting {
        do throws(LevelWordError) {
            return try LevelSetting(text)
        } catch {
            throw Failure(
                .usage, "'\(text)': '\(error.word)' is no level: \(LevelSetting.words)")
        }
    }
}
