// `cordwood tail`: the last records, and with -f new ones as they come.

import ArgumentParser
import Cordwood

struct TailCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "tail",
        abstract: "Print the last records and, with -f, new ones as they come.",
        discussion: """
            tail selects first and counts then: `-n 50 --level warn` prints the last 50 warnings \
            and errors. Several stores are shown as one. `-5` is short for `-n 5`.

            With -f it also follows programs that start later. It ends with Ctrl-C, or when the \
            time of --until has passed. The store must exist.

            Example:
              cordwood tail -f -n 50 logs --level info
            """)

    @Flag(
        name: [.short, .customShort("F"), .long],
        help: "Follow: print new records as programs write them.")
    var follow = false

    @Option(
        name: [.customShort("n", allowingJoined: true), .long],
        help: ArgumentHelp(
            "Start with the last COUNT records; 0: with new ones only; +5: with the fifth.",
            valueName: "count"))
    var lines = TailCount(count: 10)

    @OptionGroup var selection: Selection
    @OptionGroup var text: TextOption
    @OptionGroup var sources: Sources

    func run() throws {
        var options = try selection.readerOptions()
        options.follow = follow
        options.fromEnd = follow && lines.isNone
        options.last = lines.isPlace ? 0 : lines.count
        let reading = try Reading(paths: try sources.resolved(), options: options)
        let style = LineStyle(selection, text)
        var record = RecordRef()
        var left = lines.isPlace ? lines.count : 1
        while reading.next(&record) {
            if left > 1 { left -= 1 } else if !lines.isNone { style.print(record) }
        }
        Output.standard.flush()
        if follow {
            reading.follow(until: options.until) {
                while reading.next(&record) {
                    if left > 1 { left -= 1 } else { style.print(record) }
                }
            }
        }
        try reading.end()
    }
}

/// `5`: the last five; `+5`: all from the fifth on.
struct TailCount: ExpressibleByArgument {
    let count: Int
    let isPlace: Bool

    var isNone: Bool { count == 0 && !isPlace }

    init(count: Int) {
        self.count = count
        isPlace = false
    }

    init?(argument: String) {
        isPlace = argument.hasPrefix("+")
        let digits = argument.utf8.dropFirst(isPlace ? 1 : 0)
        guard let number: Int = Digits.number(digits) else { return nil }
        count = number
    }

    var defaultValueDescription: String { "\(count)" }
}
