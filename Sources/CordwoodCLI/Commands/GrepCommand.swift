// `cordwood grep`: records whose lines match.

import ArgumentParser
import Cordwood

struct GrepCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "grep",
        abstract: "Print the records that match a pattern.",
        usage:
            "cordwood grep [options] PATTERN [STORE ...]\ncordwood grep -e PATTERN … [STORE ...]",
        discussion: """
            Searches the message, the fields as cat prints them (order=7) and the stack trace as \
            one text; ^ and $ match at its ends and at the message's. Patterns are those of \
            grep -E. Exits with 1 if nothing matches. `cordwood http --grep` searches the headers \
            and bodies of captured exchanges.

            Example:
              cordwood grep -i 'time(d )?out' logs --since 2h -C 3
            """)

    @OptionGroup var wanted: GrepPatterns
    @OptionGroup var shown: GrepForm
    @OptionGroup var selection: Selection
    @OptionGroup var text: TextOption

    @Argument(
        help: ArgumentHelp(
            "The pattern (unless -e gives it), then the stores.", valueName: "pattern, stores"),
        completion: .file())
    var words: [String] = []

    func run() throws {
        try shown.check(selection)
        let (search, paths) = try wanted.search(words, isInverted: shown.invertMatch)
        var options = try selection.readerOptions()
        if shown.needsOnlyMatches, let literal = search.literal {
            options.showing = literal
        }
        options.isUnordered = shown.needsNoOrder
        options.isBrief = shown.endsEarly
        let stores = try Sources.resolved(paths)
        let style = LineStyle(selection, text)
        var found: UInt64 = 0
        if shown.filesWithMatches || shown.filesWithoutMatch {
            var worst: Failure?
            for store in stores {
                do throws(Failure) {
                    let reading = try Reading(paths: [store], options: options)
                    let isFound = search.findsOne(in: reading, style)
                    if isFound == shown.filesWithMatches {
                        found += 1
                        Output.standard.append(PlainText.oneLine(store) + "\n")
                    }
                    try reading.end()
                } catch {
                    if !error.text.isEmpty { Complaint.tell(error.text) }
                    if worst.map({ $0.code.rawValue < error.code.rawValue }) ?? true {
                        worst = Failure(error.code)
                    }
                }
            }
            if let worst { throw worst }
        } else {
            let reading = try Reading(paths: stores, options: options)
            if shown.quiet {
                // As for any grep: found is found, whatever else is damaged.
                if search.findsOne(in: reading, style) { return reading.leave() }
            } else {
                var output = GrepOutput(shown, style, search)
                found = output.print(reading)
            }
            try reading.end()
        }
        if found == 0 { throw Failure(.nothingFound) }
    }
}

/// What grep searches for.
struct GrepPatterns: ParsableArguments {
    @Option(
        name: [.customShort("e", allowingJoined: true), .customLong("regexp")],
        parsing: .unconditionalSingleValue,
        help: ArgumentHelp("A pattern; if repeated, any may match.", valueName: "pattern"))
    var patterns: [String] = []

    @Flag(name: [.customShort("F"), .long], help: "Patterns are plain text, not expressions.")
    var fixedStrings = false

    @Flag(
        name: [.customShort("E"), .long],
        help: ArgumentHelp("Patterns are extended expressions, as always.", visibility: .hidden))
    var extendedRegexp = false

    @Flag(name: .shortAndLong, help: "ASCII letters match in either case.")
    var ignoreCase = false

    /// - Parameter words: the pattern, unless it is an option, and the stores.
    func search(
        _ words: [String], isInverted: Bool
    ) throws(Failure) -> (search: GrepSearch, paths: [String]) {
        if fixedStrings && extendedRegexp { throw Failure(.usage, "either -E or -F") }
        var texts = patterns
        var paths = words
        if texts.isEmpty {
            guard !words.isEmpty else { throw Failure(.usage, "grep takes a PATTERN and stores") }
            texts = [paths.removeFirst()]
        }
        let search = GrepSearch(isInverted: isInverted)
        for text in texts {
            search.add(try Patterns.make(text, isFixed: fixedStrings, ignoresCase: ignoreCase))
        }
        return (search, paths)
    }
}

/// How grep shows what it finds.
struct GrepForm: ParsableArguments {
    private static let contextMax = 100_000

    @Flag(name: [.customShort("v"), .long], help: "Print the records that do not match.")
    var invertMatch = false

    @Option(
        name: [.customShort("A", allowingJoined: true), .long],
        help: ArgumentHelp("Also print n records after each, in cat's order.", valueName: "n"))
    var afterContext: Int?

    @Option(
        name: [.customShort("B", allowingJoined: true), .long],
        help: ArgumentHelp("The same before each; -- separates groups.", valueName: "n"))
    var beforeContext: Int?

    @Option(
        name: [.customShort("C", allowingJoined: true), .long],
        help: ArgumentHelp("Both, before and after; -3 is short for -C 3.", valueName: "n"))
    var context: Int?

    @Flag(
        name: [.customShort("n"), .long],
        help: "Number each record; tail -n +NUMBER starts there.")
    var lineNumber = false

    @Flag(
        name: [.customShort("o"), .long], help: "Print only what matches, a line for each match.")
    var onlyMatching = false

    @Option(
        name: [.customShort("m", allowingJoined: true), .long],
        help: ArgumentHelp("Stop after n records.", valueName: "n"))
    var maxCount: UInt64?

    @Flag(name: .shortAndLong, help: "Print only their number, over all stores.")
    var count = false

    @Flag(name: [.customShort("l"), .long], help: "Print only the names of stores with a match.")
    var filesWithMatches = false

    @Flag(
        name: [.customShort("L"), .long], help: "Print only the names of stores without a match.")
    var filesWithoutMatch = false

    @Flag(help: "Print nothing; exit with 0 at the first match.")
    var quiet = false

    var before: Int { beforeContext ?? context ?? 0 }
    var after: Int { afterContext ?? context ?? 0 }

    /// Records that do not match are not needed.
    var needsOnlyMatches: Bool { !invertMatch && before == 0 && after == 0 && !lineNumber }

    /// Only the number of records is needed.
    var needsNoOrder: Bool { count && maxCount == nil && !isAboutStores }

    private var isAboutStores: Bool { filesWithMatches || filesWithoutMatch || quiet }

    /// Probably not everything is read.
    var endsEarly: Bool { maxCount != nil || isAboutStores }

    func check(_ selection: Selection) throws(Failure) {
        if selection.json, lineNumber || onlyMatching {
            throw Failure(.usage, "-n and -o are for text; --json has whole records")
        }
        if filesWithMatches && filesWithoutMatch { throw Failure(.usage, "either -l or -L") }
        guard (0...GrepForm.contextMax).contains(before),
            (0...GrepForm.contextMax).contains(after)
        else { throw Failure(.usage, "-A, -B and -C take 0 to \(GrepForm.contextMax) records") }
    }
}
