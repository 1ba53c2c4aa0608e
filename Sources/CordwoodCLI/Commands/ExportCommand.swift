// `cordwood export`: a store in a form that other programs read. `raw` returns messages byte for
// byte: the input of `cordwood log` comes out unchanged.

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
            har     captured HTTP exchanges as HAR 1.2 (cordwood http --har chooses)
            transactions
                    events of transactions as the target kind of that name sends
                    them, a body a line
            otlp-spans
                    transactions as OTLP JSON, an ExportTraceServiceRequest a line:
                    a span for what each process did of each

            Example:
              cordwood export logs --format ndjson --since 2026-11-21 > today.ndjson
            """)

    enum Format: String, ExpressibleByArgument, CaseIterable {
        case raw, text, ndjson, sap, csv, otlp, har, transactions
        case otlpSpans = "otlp-spans"

        var hasAllKinds: Bool { self == .text || self == .ndjson || self == .otlp }
    }

    @Option(help: "raw, text, ndjson, sap, csv, otlp, har, transactions or otlp-spans.")
    var format: Format

    @Flag(help: "Records of every kind, also where the format has only logs.")
    var allKinds = false

    @OptionGroup var selection: Selection
    @OptionGroup var text: TextOption
    @OptionGroup var sources: Sources

    func run() throws {
        var options = try selection.readerOptions()
        switch format {
        case .har: return try HAROutput.run(try sources.resolved(), options)
        case .transactions, .otlpSpans:
            let source = TransactionSource(paths: try sources.resolved(), options: options)
            return try TransactionOutput.run(source, spans: format == .otlpSpans)
        default: break
        }
        if !format.hasAllKinds && !allKinds { options.kinds = 1 << 0 }
        let reading = try Reading(paths: try sources.resolved(), options: options)
        if format == .otlp { return try OTLPOutput.run(reading) }
        let style = LineStyle(isJSON: format == .ndjson, isUTC: selection.utc, text)
        if format == .raw { Output.standard.isExact = true }
        if format == .csv { CSVLine.appendHeader(to: &Output.standard.bytes) }
        while let record = reading.next() {
            switch format {
            case .raw: Raw.print(record)
            case .text, .ndjson: style.print(record)
            case .sap: Exported.print { SAPLine.append(record, to: &$0) }
            case .csv: Exported.print { CSVLine.append(record, to: &$0) }
            case .otlp, .har, .transactions, .otlpSpans: break
            }
        }
        try reading.end()
    }
}

/// Lines of formats for programs; on a terminal they are made harmless.
enum Exported {
    static func print(_ append: (inout [UInt8]) -> Void) {
        let output = Output.standard
        guard output.isTerminal, !output.isExact else {
            append(&output.bytes)
            return output.settle()
        }
        var line: [UInt8] = []
        append(&line)
        unsafe line.dropLast().withUnsafeBytes {
            PlainText.append($0, as: .oneLine, to: &output.bytes)
        }
        output.bytes.append(10)
        output.settle()
    }
}

/// Records collected into requests, one per line.
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

/// Captured exchanges as one HAR.
enum HAROutput {
    static func run(_ paths: [String], _ options: ReaderOptions) throws {
        var options = options
        options.kinds = ExchangeGatherer.kinds
        let watch = LaneWatch(paths: paths)
        let reading = try Reading(paths: paths, options: options)
        var gatherer = ExchangeGatherer(watch: watch)
        var writer = HARWriter()
        writer.begin(&Output.standard.bytes)
        func show(_ exchange: CapturedExchange) {
            writer.append(exchange, to: &Output.standard.bytes)
            Output.standard.settle()
        }
        while let record = reading.next() { gatherer.take(record, show) }
        gatherer.finish(show)
        writer.finish(&Output.standard.bytes)
        try reading.end()
    }
}

/// Transactions, one request per line.
enum TransactionOutput {
    static func run(_ source: TransactionSource, spans isSpans: Bool) throws {
        var lines = TransactionLines()
        var spans = TransactionSpans()
        try source.read { moment, record in
            if isSpans {
                spans.append(moment, record, to: &Output.standard.bytes)
            } else if moment.operation == .event {
                lines.append(record, to: &Output.standard.bytes)
            }
            Output.standard.settle()
        }
        lines.finish(&Output.standard.bytes)
        spans.finish(&Output.standard.bytes)
        try source.end()
    }
}

/// Lines as they were read (LogCommand): a message and its newline, which the last line of an input
/// may lack.
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
