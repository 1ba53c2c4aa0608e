// `cordwood transactions`: figures and funnels of use cases, their transactions one by one, one of
// them in detail, and their deletion. Records come from all processes and stores that are named;
// those of deleted transactions are skipped.

import ArgumentParser
import Cordwood

struct TransactionsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "transactions",
        abstract: "Show figures of application transactions: how many, how long, how far.",
        discussion: """
            For each use case: how many transactions, how many ended, how many had errors, how \
            long the ended ones took; below it each event, how many came to it, and how many of \
            those without an end stopped there. A store of the client and one of the server may \
            be named together. At most 262,144 transactions are held at a time; of more, those \
            not heard of for longest are counted as they stand.

            --json: an object a use case (usecase, name, count, ended, with_errors, duration_ms \
            (p50 p95 max), funnel (event name reached share stopped)); with --list an object a \
            transaction (id usecase name first last events errors ended duration_ms last_event), \
            with --id an object a record (time id operation event name error_code \
            error_description duration_ms pid process span_id).

            Examples:
              cordwood transactions logs
              cordwood transactions client/logs server/logs --usecase 17 --list
              cordwood transactions logs --id TXN17-586AB00B-0A2C-4E61-9C53-3F4C59D1A0F7
              cordwood export logs --format otlp-spans
            """)

    @Flag(help: "A line a transaction.")
    var list = false

    @Option(
        name: .customLong("id"), parsing: .singleValue,
        help: "What was logged to this transaction, by all processes. May be repeated.")
    var ids: [String] = []

    @Option(help: "This use case only: its number.")
    var usecase: Int32?

    @Option(
        name: .customLong("delete"), parsing: .singleValue,
        help: "Forget this transaction: it is neither shown nor sent any more. May be repeated.")
    var deleted: [String] = []

    @Flag(help: "Forget all that there are.")
    var deleteAll = false

    @OptionGroup var selection: Selection
    @OptionGroup var sources: Sources

    /// The limit of records of --id held for sorting by time.
    private static let momentsMax = 1 << 20

    func validate() throws {
        let chosen = [list, !ids.isEmpty, !deleted.isEmpty || deleteAll].count { $0 }
        if chosen > 1 { throw ValidationError("one of --list, --id and --delete") }
        let isNarrowed = usecase != nil || selection.isNarrowed
        if isNarrowed, !deleted.isEmpty || deleteAll {
            throw ValidationError(
                "--delete and --delete-all forget whole transactions: no --usecase, --since, "
                    + "--level or the like beside them")
        }
    }

    func run() throws {
        let paths = try sources.resolved()
        if !deleted.isEmpty || deleteAll { return try delete(paths) }
        let source = TransactionSource(paths: paths, options: try selection.readerOptions())
        if !ids.isEmpty { return try showRecords(source) }
        var gatherer = TransactionGatherer()
        var figures = TransactionFigures()
        let show = { (one: StoredTransaction) in
            list ? TransactionText.print(one, selection) : figures.add(one)
        }
        try source.read { moment, _ in
            guard usecase == nil || usecase == moment.id.usecase else { return }
            if !list { figures.learn(moment) }
            gatherer.take(moment, show)
        }
        gatherer.finish(show)
        if !list { TransactionText.print(figures, isJSON: selection.json) }
        try source.end()
    }

    private func showRecords(_ source: TransactionSource) throws {
        var wanted: Set<TransactionID> = []
        for text in ids { wanted.insert(try TransactionsCommand.id(text)) }
        var moments: [TransactionMoment] = []
        var isCut = false
        try source.read { moment, _ in
            guard wanted.contains(moment.id) else { return }
            if moments.count < TransactionsCommand.momentsMax {
                moments.append(moment)
            } else {
                isCut = true
            }
        }
        // The offset keeps the order of equal times: sorting alone does not.
        let sorted = moments.enumerated().sorted {
            ($0.element.time, $0.offset) < ($1.element.time, $1.offset)
        }
        let first = sorted.first?.element.time ?? 0
        for (_, moment) in sorted { TransactionText.print(moment, since: first, selection) }
        if isCut { Complaint.tell("more than \(TransactionsCommand.momentsMax) records") }
        try source.end()
        if moments.isEmpty { throw Failure(.nothingFound, "no record of that id") }
    }

    private func delete(_ paths: [String]) throws {
        var wanted: [TransactionID?] = deleteAll ? [nil] : []
        for text in deleted { wanted.append(try TransactionsCommand.id(text)) }
        for path in paths {
            for id in wanted {
                do throws(CordwoodError) {
                    try ForgottenTransactions.forget(id, store: path)
                } catch {
                    throw Failure(.failed, error.text)
                }
            }
        }
    }

    static func id(_ text: String) throws(Failure) -> TransactionID {
        guard let id = TransactionID(text) else {
            throw Failure(.usage, "no id of a transaction: \(text) (TXN17-586AB00B-…)")
        }
        return id
    }
}

/// The records of transactions, one store after the other, each without its deleted ones.
final class TransactionSource {
    private let paths: [String]
    private var options: ReaderOptions
    private var failure: Failure?

    init(paths: [String], options: ReaderOptions) {
        self.paths = paths
        self.options = options
        self.options.kinds = TransactionMoment.kinds
    }

    func read(_ body: (TransactionMoment, RecordRef) -> Void) throws(Failure) {
        for path in paths {
            let forgotten: ForgottenTransactions
            do throws(ReadProblem) {
                forgotten = try ForgottenTransactions(store: path)
            } catch {
                throw Failure(.cannotOpen, Reading.text(error))
            }
            let reading = try Reading(paths: [path], options: options)
            while let record = reading.next() {
                if let moment = forgotten.moment(record) { body(moment, record) }
            }
            do throws(Failure) { try reading.end() } catch {
                // Already reported; the command ends with the worst code.
                if failure.map({ $0.code.rawValue < error.code.rawValue }) ?? true {
                    failure = error
                }
            }
        }
    }

    /// The command's exit code.
    func end() throws(Failure) {
        Output.standard.flush()
        if let failure { throw failure }
    }
}
