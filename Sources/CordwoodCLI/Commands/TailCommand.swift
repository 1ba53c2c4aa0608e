// `cordwood tail`: the last records, and with -f new ones as they come.

import ArgumentParser
import Cordwood
import Glibc

struct TailCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "tail",
        abstract: "Print the last records and, with -f, new ones as they come.",
        discussion: """
            Example:
              cordwood tail -f -n 50 logs --level info
            """)

    @Flag(name: .shortAndLong, help: "Go on: print records as programs write them.")
    var follow = false

    @Option(name: [.customShort("n"), .long], help: "How many of those that are there.")
    var lines = 10

    @OptionGroup var selection: Selection
    @OptionGroup var text: TextOption
    @OptionGroup var sources: Sources

    /// The pause between two looks for new records.
    private static let pollMicroseconds: UInt32 = 20_000

    func run() throws {
        guard lines >= 0 else { throw Failure(.usage, "-n takes a count") }
        var options = try selection.readerOptions()
        options.follow = follow
        options.fromEnd = follow && lines == 0
        let reading = try Reading(paths: try sources.resolved(), options: options)
        let style = LineStyle(selection, text)
        var last = LastLines(limit: lines)
        while let record = reading.next() {
            last.add { style.append(record, to: &$0) }
        }
        last.print()
        while follow {
            while let record = reading.next() { style.print(record) }
            Output.standard.flush()
            usleep(TailCommand.pollMicroseconds)
        }
        try reading.end()
    }
}

/// The last lines, up to a number; reuses memory for just those.
private struct LastLines {
    private let limit: Int
    private var lines: [[UInt8]] = []
    private var oldest = 0

    init(limit: Int) { self.limit = limit }

    mutating func add(_ render: (inout [UInt8]) -> Void) {
        if limit == 0 { return }
        if lines.count < limit {
            var line: [UInt8] = []
            render(&line)
            lines.append(line)
            return
        }
        lines[oldest].removeAll(keepingCapacity: true)
        render(&lines[oldest])
        oldest = oldest + 1 == limit ? 0 : oldest + 1
    }

    func print() {
        for index in lines.indices {
            let line = lines[(oldest + index) % lines.count]
            // SAFETY: `append` copies or writes before it returns.
            unsafe line.withUnsafeBytes { Output.standard.append($0) }
        }
        Output.standard.flush()
    }
}
