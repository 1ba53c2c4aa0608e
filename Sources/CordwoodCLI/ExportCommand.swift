// `cordwood export`: a store in a form other programs read. `raw` gives messages back byte for
// byte: what `cordwood log` read comes out as it went in.

import ArgumentParser
import Cordwood

struct ExportCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "export",
        abstract: "Write a store's records to standard output in another format.",
        discussion: """
            raw     the messages alone, byte for byte, a newline after each; only kind log
            text    as cat prints them, all kinds
            ndjson  one JSON object a line, all kinds

            Example:
              cordwood export logs --format ndjson --since 2026-11-21 > today.ndjson
            """)

    enum Format: String, ExpressibleByArgument, CaseIterable {
        case raw, text, ndjson
    }

    @Option(help: "raw, text or ndjson.")
    var format: Format

    @OptionGroup var selection: Selection
    @OptionGroup var sources: Sources

    func run() throws {
        var options = try selection.readerOptions()
        if format == .raw { options.kinds = 1 << 0 }
        let reading = try Reading(paths: try sources.resolved(), options: options)
        let style = LineStyle(isJSON: format == .ndjson, isUTC: selection.utc)
        while let record = reading.next() {
            if format == .raw { Raw.print(record) } else { style.print(record) }
        }
        try reading.end()
    }
}

/// Lines as they were read (LogCommand): a message and its newline, which the last line of an input
/// may not have had.
enum Raw {
    /// The field of a record whose line had no newline.
    static let noNewline = "cordwood.no_newline"

    static func print(_ record: RecordRef) {
        Output.standard.append(record.message)
        if !endsWithoutNewline(record) { Output.standard.bytes.append(10) }
        Output.standard.settle()
    }

    private static func endsWithoutNewline(_ record: RecordRef) -> Bool {
        guard record.sections.count > 0 else { return false }
        var fields = RecordFields(record)
        while let (key, value) = fields.next() {
            guard case .bool(true) = value else { continue }
            // SAFETY: `key` is a view of the record, which `advance` has not moved on from.
            if unsafe key.elementsEqual(noNewline.utf8) { return true }
        }
        return false
    }
}
