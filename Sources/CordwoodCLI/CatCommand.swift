// `cordwood cat`: every record of the stores, in order of time.

import ArgumentParser

struct CatCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "cat",
        abstract: "Print the records of stores, in order of time.",
        discussion: """
            Shows records of every kind, also while programs write; of captured HTTP exchanges a \
            summary and the id that `cordwood http show` takes.

            Example:
              cordwood cat logs --since 10m --level warn --where order=7
            """)

    @OptionGroup var selection: Selection
    @OptionGroup var sources: Sources

    func run() throws {
        let reading = try Reading(
            paths: try sources.resolved(), options: try selection.readerOptions())
        let style = LineStyle(selection)
        while let record = reading.next() { style.print(record) }
        try reading.end()
    }
}
