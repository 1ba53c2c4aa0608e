// `cordwood export`: a store in a form that other programs read. `raw` returns messages byte for
// byte: the input of `cordwood log` comes out unchanged.

import ArgumentParser
import Cordwood

struct ExportCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "export",
        abstract: "Write a store's records to standard output in another format.",
        discussion: """
            Records of every kind:
              text          as cat prints them
              ndjson        one JSON object a line, as cat --json prints them
              otlp          OTLP JSON, an ExportLogsServiceRequest of many records a line:
                            what the OpenTelemetry Collector's file exporter writes and
                            its otlpjsonfile receiver reads

            Only what programs log, without HTTP exchanges and transactions (--all-kinds):
              raw           the messages byte for byte, a newline after each
              csv           a row of names, then a row for each record; what is not UTF-8
                            is also in message_base64; --safe for a spreadsheet
              sap           lines of SAP Mobile Services

            Only one kind:
              har           captured HTTP exchanges as HAR 1.2 (cordwood http --har selects
                            among them)
              transactions  events of transactions, as the target kind of that name sends
                            them, a body a line
              otlp-spans    transactions as OTLP JSON, an ExportTraceServiceRequest a line:
                            a span for each process's part in each of them

            Times are in UTC, except in text, where --utc asks for it. --json alone means \
            --format ndjson.

            Example:
              cordwood export logs --format ndjson --since 2026-11-21 > today.ndjson
            """)

    enum Format: String, ExpressibleByArgument, CaseIterable {
        case raw, text, ndjson, sap, csv, otlp, har, transactions
        case otlpSpans = "otlp-spans"

        var hasAllKinds: Bool { self == .text || self == .ndjson || self == .otlp }

        var isJSON: Bool {
            switch self {
            case .raw, .text, .csv, .sap: false
            case .ndjson, .otlp, .har, .transactions, .otlpSpans: true
            }
        }
    }

    @Option(name: .customLong("format"), help: "One of the formats above.")
    var wanted: Format?

    @Flag(help: "Put records of every kind into raw, csv and sap.")
    var allKinds = false

    @Flag(
        help: """
            Only csv: an apostrophe before cells that begin with =, +, -, @, a tab or a carriage \
            return, so that a spreadsheet shows them instead of computing them.
            """)
    var safe = false

    @OptionGroup var selection: Selection
    @OptionGroup var text: TextOption
    @OptionGroup var sources: Sources

    func run() throws {
        guard let format = wanted ?? (selection.json ? .ndjson : nil) else {
            throw Failure(
                .usage,
                "export takes --format: " + Format.allCases.map(\.rawValue).joined(separator: ", "))
        }
        if selection.json && !format.isJSON {
            throw Failure(.usage, "--format \(format.rawValue) is no JSON: leave out --json")
        }
        if safe && format != .csv { throw Failure(.usage, "--safe takes --format csv") }
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
        if format == .csv { Output.standard.put { CSVLine.appendHeader(to: &$0) } }
        let rows = CSVLines(isSafe: safe)
        var row: [UInt8] = []
        var record = RecordRef()
        while reading.next(&record) {
            switch format {
            case .raw:
                Raw.print(record)
                if let texts = reading.nextTexts() { Output.standard.append(texts) }
            case .text, .ndjson: style.print(record)
            case .sap:
                row.removeAll(keepingCapacity: true)
                SAPLine.append(record, to: &row)
                Exported.print { bytes in unsafe row.withUnsafeBytes { bytes.append($0) } }
            case .csv: Exported.print { rows.append(record, to: &$0) }
            case .otlp, .har, .transactions, .otlpSpans: break
            }
        }
        try reading.end()
    }
}

/// Lines of formats for programs; on a terminal they are made harmless.
enum Exported {
    static func print(_ append: (inout GrowingBytes) -> Void) {
        let output = Output.standard
        guard output.isTerminal, !output.isExact else {
            append(&output.bytes)
            return output.settle()
        }
        var line = GrowingBytes()
        append(&line)
        let text = unsafe UnsafeRawBufferPointer(rebasing: line.bytes.dropLast())
        PlainText.append(text, as: .oneLine, to: &output.bytes)
        output.bytes.append(10)
        output.settle()
    }
}

/// Records collected into requests, one per line.
enum OTLPOutput {
    static func run(_ reading: Reading) throws {
        var lines = OTLPLines()
        var record = RecordRef()
        while reading.next(&record) {
            Output.standard.put { lines.append(record, to: &$0) }
        }
        Output.standard.put { lines.finish(&$0) }
        try reading.end()
    }
}

/// Captured exchanges as one HAR.
enum HAROutput {
    static func run(_ paths: [String], _ options: ReaderOptions) throws {
        var options = options
        options.kinds = ExchangeGatherer.kinds
        let query = options.query
        options.query = nil
        let watch = LaneWatch(paths: paths)
        let reading = try Reading(paths: paths, options: options)
        var gatherer = ExchangeGatherer(watch: watch)
        gatherer.query = query
        var writer = HARWriter()
        Output.standard.put { writer.begin(&$0) }
        func show(_ exchange: CapturedExchange) {
            Output.standard.put { writer.append(exchange, to: &$0) }
        }
        var record = RecordRef()
        while reading.next(&record) { gatherer.take(record, show) }
        gatherer.finish(show)
        Output.standard.put { writer.finish(&$0) }
        try reading.end()
    }
}

/// Transactions, one request per line.
enum TransactionOutput {
    static func run(_ source: TransactionSource, spans isSpans: Bool) throws {
        var lines = TransactionLines()
        var spans = TransactionSpans()
        try source.read { moment, record in
            Output.standard.put {
                if isSpans {
                    spans.append(moment, record, to: &$0)
                } else if moment.operation == .event {
                    lines.append(record, to: &$0)
                }
            }
        }
        Output.standard.put { lines.finish(&$0) }
        Output.standard.put { spans.finish(&$0) }
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
