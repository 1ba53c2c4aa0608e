// `cordwood cat`: every record of the stores, in the order in which they were written.

import ArgumentParser
import Cordwood

struct CatCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "cat",
        abstract: "Print the records of stores in the order in which they were written.",
        discussion: """
            Prints what is there now, all stores together; `tail -f` also waits for more. A line \
            is time, level, process[pid:tid], logger, message, fields and place in the source:

              2026-11-21 08:15:30.123+00:00 WARN  shop[71:72] db: slow order=7 (db.c:40)

            Further lines of a message and the lines of a stack trace begin with `    | `, so no \
            message can look like another record. Control characters are escaped. A record of \
            another machine, as a collector's store has them, shows its name before the process.

            A captured HTTP exchange is one line, placed at the time it ended, with the id that \
            `cordwood http show` takes. Its time in --json, and for --since and --until, is when \
            it began. Encrypted archives without a key are left out and named on stderr; cat then \
            exits with 4.

            Example:
              cordwood cat logs --since 10m --level warn --where order=7
            """)

    @OptionGroup var selection: Selection
    @OptionGroup var text: TextOption
    @OptionGroup var sources: Sources

    func run() throws {
        let options = try selection.readerOptions()
        let reading = try Reading(paths: try sources.resolved(), options: options)
        let style = LineStyle(selection, text)
        var record = RecordRef()
        while reading.next(&record) { style.print(record) }
        try reading.end()
    }
}
