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
            A transaction is one run of a use case (a checkout, a sign-in), with events that \
            programs number and name. Client and server may share one, so name both stores. For \
            each use case this prints how many transactions there were, how many of them ended and \
            had errors, and how long the ended ones took (p50, p95, max); and for each event how \
            many transactions reached it, and how many without an end stopped there. It holds \
            262,144 transactions at a time; beyond that, those that were quiet for longest count \
            as they are.

            --delete takes effect at once and cannot be undone: nothing lists or sends the \
            transaction any more. Its bytes leave the disk later, with their archives; until then \
            `cordwood cat` shows them.

            --json: an object for each use case (usecase, name, count, ended, with_errors, \
            duration_ms (p50 p95 max), funnel (event name reached share stopped)); with --list for \
            each transaction (id usecase name first last events errors ended duration_ms \
            last_event), with --id for each record (time id operation event name error_code \
            error_description duration_ms pid process span_id).

            Example:
              cordwood transactions client/logs server/logs
              cordwood transactions logs --usecase 17 --list
              cordwood transactions logs --id TXN17-586AB00B-0A2C-4E61-9C53-3F4C59D1A0F7
            """)

    @Flag(help: "Print a line for each transaction: first time, id, events, errors, duration.")
    var list = false

    @Option(
        name: .customLong("id"), parsing: .singleValue,
        help: ArgumentHelp(
            "Print all that was logged to this transaction, by time. May be repeated.",
            valueName: "id"))
    var ids: [String] = []

    @Option(help: ArgumentHelp("Only the use case of this number.", valueName: "number"))
    var usecase: Int32?

    @Option(
        name: .customLong("delete"), parsing: .singleValue,
        help: "Forget this transaction. May be repeated.")
    var deleted: [String] = []

    @Flag(help: "Forget all transactions logged so far, without asking.")
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
        let options = try selection.readerOptions()
        let paths = try sources.resolved()
        if !deleted.isEmpty || deleteAll { return try delete(paths) }
        let source = TransactionSource(paths: paths, options: options)
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
                throw Failure(.cannotOpen, error.line)
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
