// `cordwood grep`: records whose message matches.

import ArgumentParser

struct GrepCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "grep",
        abstract: "Print the records whose message matches a pattern.",
        discussion: """
            The pattern is an extended regular expression, matched against the bytes of the \
            message. Use --where for fields and `cordwood http --grep` for headers and bodies of \
            captured HTTP exchanges. Exits with 1 if nothing matches.

            Example:
              cordwood grep -i 'time(d )?out' logs --since 2h
            """)

    @Flag(name: [.customShort("F"), .long], help: "The pattern is plain text.")
    var fixedStrings = false

    @Flag(name: .shortAndLong, help: "Letters of ASCII match in either case.")
    var ignoreCase = false

    @Flag(name: [.customShort("v"), .long], help: "The records that do not match.")
    var invertMatch = false

    @Flag(name: .shortAndLong, help: "Print only how many.")
    var count = false

    @OptionGroup var selection: Selection
    @OptionGroup var text: TextOption

    @Argument(help: "What to look for.")
    var pattern: String

    @OptionGroup var sources: Sources

    func run() throws {
        let wanted = try Pattern(pattern, isFixed: fixedStrings, ignoresCase: ignoreCase)
        let reading = try Reading(
            paths: try sources.resolved(), options: try selection.readerOptions())
        let style = LineStyle(selection, text)
        var found: UInt64 = 0
        while let record = reading.next() {
            if wanted.matches(record.message) == invertMatch { continue }
            found += 1
            if !count { style.print(record) }
        }
        if count { Output.standard.append("\(found)\n") }
        try reading.end()
        if found == 0 { throw Failure(.nothingFound) }
    }
}
