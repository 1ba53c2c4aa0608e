// Reads the stores for a job, one after the other, each without its deleted transactions, and
// writes the last line of its answer. One thread.

import Cordwood

struct StoreWalk {
    let stream: LineStream
    private let options: ViewerOptions
    private let facts: FactsCache?
    private let began = Machine.realtimeNs()
    private var told: Set<String> = []
    private var problems: [UInt8] = []
    /// Nothing was damaged, locked or left out.
    private var isExact = true

    init(_ options: ViewerOptions, _ stream: LineStream) {
        self.options = options
        self.stream = stream
        facts = options.remembersFacts ? FactsCache.find() : nil
    }

    /// - Parameters:
    ///   - selected: nil: all records.
    ///   - change: adapts the reader's options.
    mutating func read(
        _ selected: Selected?, _ change: (inout ReaderOptions) -> Void,
        _ body: (borrowing RecordRef, ForgottenTransactions) -> Void
    ) throws(Rejection) {
        for path in options.paths {
            let forgotten: ForgottenTransactions
            do throws(ReadProblem) {
                forgotten = try ForgottenTransactions(store: path)
            } catch {
                throw Rejection(.internalServerError, error.line)
            }
            var asked = (selected ?? .all).readerOptions(options, facts)
            change(&asked)
            let look = try Look(options, asked, stream, path: path)
            look.watch()
            var record = RecordRef()
            while look.next(&record) { body(record, forgotten) }
            if look.problemCount > 0 { isExact = false }
            look.appendProblems(told: &told, to: &problems)
        }
        if !stream.isOver { facts?.save() }
    }

    /// Sends `out`, the problems, and the line `{"done":…}`.
    /// - Parameter next: JSON.
    func end(
        matched: some BinaryInteger, leftOut: some BinaryInteger, isExact isWhole: Bool = true,
        next: String = "null", _ out: inout [UInt8]
    ) {
        let ms = (Machine.realtimeNs() &- began) / 1_000_000
        out += problems
        out += "{\"done\":{\"matched\":\(matched),\"exact\":\(isExact && isWhole)".utf8
        out += ",\"ms\":\(ms),\"left_out\":\(leftOut),\"next\":\(next)}}\n".utf8
        _ = stream.send(&out)
    }
}
