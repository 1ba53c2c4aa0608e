// `cordwood cat`: every record of the stores, in the order in which they were written.

import ArgumentParser

struct CatCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "cat",
        abstract: "Print the records of stores in the order in which they were written.",
        discussion: """
            Shows records of every kind, also while programs write. A captured HTTP exchange is \
            one line, placed at the time it ended, with the id that `cordwood http show` takes. \
            Its time in --json, and for --since and --until, is when it began.

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
