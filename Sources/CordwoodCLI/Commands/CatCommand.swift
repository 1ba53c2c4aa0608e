// `cordwood cat`: every record of the stores, in the order in which they were
// written.

import ArgumentParser

struct CatCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "cat",
        abstract: "Print the records of stores, in the order in which they were written.",
        discussion: """
            Shows records of every kind, also while programs write; of captured HTTP exchanges a \
            summary, at the time when it ended, and the id that `cordwood http show` takes. Their \
            time in JSON, which --since and --until ask for, is when they began.

            Example:
              cordwood cat logs --since 10m --level warn --where order=7
            """)

    @OptionGroup var selection: Selection
    @OptionGroup var text: TextOption
    @OptionGroup var sources: Sources

    func run() throws {
        let reading = try Reading(
            paths: try sources.resolved(), options: try selection.readerOptions())
        let style = LineStyle(selection, text)
        while let record = reading.next() { style.print(record) }
        try reading.end()
    }
}
