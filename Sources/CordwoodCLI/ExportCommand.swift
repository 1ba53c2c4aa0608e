// `cordwood export`: a store in a form other programs read. `raw` gives messages back byte for
// byte: what `cordwood log` read comes out as it went in.

import ArgumentParser
import Cordwood

struct ExportCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "export",
        abstract: "Write a store's records to standard output in another format.",
        discussion: """
            raw     the messages alone, byte for byte, a newline after each; only logs
            text    as cat prints them, all kinds
            ndjson  one JSON object a line, all kinds
            sap     lines of SAP Mobile Services, in UTC; only logs
            csv     rows of CSV under a row of names, in UTC; only logs
            otlp    OTLP JSON, an ExportLogsServiceRequest of many records a line, all kinds:
                    what the OpenTelemetry Collector's file exporter writes and its
                    otlpjsonfile receiver reads

            Example:
              cordwood export logs --format ndjson --since 2026-11-21 > today.ndjson
            """)

    enum Format: String, ExpressibleByArgument, CaseIterable {
        case raw, text, ndjson, sap, csv, otlp

        var hasAllKinds: Bool { self == .text || self == .ndjson || self == .otlp }
    }

    @Option(help: "raw, text, ndjson, sap, csv or otlp.")
    var format: Format

    @Flag(help: "Records of every kind, also where the format has only logs.")
    var allKinds = false

    @OptionGroup var selection: Selection
    @OptionGroup var sources: Sources

    func run() throws {
        var options = try selection.readerOptions()
        if !format.hasAllKinds && !allKinds { options.kinds = 1 << 0 }
        let reading = try Reading(paths: try sources.resolved(), options: options)
        if format == .otlp { return try OTLPOutput.run(reading) }
        let style = LineStyle(isJSON: format == .ndjson, isUTC: selection.utc)
        if format == .csv { CSVLine.appendHeader(to: &Output.standard.bytes) }
        while let record = reading.next() {
            switch format {
            case .raw: Raw.print(record)
            case .text, .ndjson: style.print(record)
            case .sap: Exported.print { SAPLine.append(record, to: &$0) }
            case .csv: Exported.print { CSVLine.append(record, to: &$0) }
            case .otlp: break
            }
        }
        try reading.end()
    }
}

/// Lines of formats that are for programs; on a terminal they are made harmless.
enum Exported {
    static func print(_ append: (inout [UInt8]) -> Void) {
        let output = Output.standard
        guard output.isTerminal else {
            append(&output.bytes)
            return output.settle()
        }
        var line: [UInt8] = []
        append(&line)
        unsafe line.dropLast().withUnsafeBytes {
            TextLine.text($0, true, &output.bytes)
        }
        output.bytes.append(10)
        output.settle()
    }
}

/// Records gathered into requests, a line each.
enum OTLPOutput {
    static func run(_ reading: Reading) throws {
        var lines = OTLPLines()
        while let record = reading.next() {
            lines.append(record, to: &Output.standard.bytes)
            Output.standard.settle()
        }
        lines.finish(&Output.standard.bytes)
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
