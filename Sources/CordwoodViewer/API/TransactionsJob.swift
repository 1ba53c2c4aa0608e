// /api/transactions, /api/transactions/USECASE/funnel and /api/transaction/ID: the facts that
// `cordwood transactions` reports of all stores, without their deleted transactions. One thread per
// job.

import Cordwood

struct TransactionsJob: Sendable {
    private enum Part: Sendable {
        case usecases
        case funnel(Int32)
        case one(TransactionID)
    }

    /// Transactions without an end that a funnel names; the rest is counted.
    private static let stuckMax = 200
    /// Records of one transaction that are held to be sorted.
    private static let momentsMax = 100_000

    private let options: ViewerOptions
    private let selected: Selected
    private let part: Part

    init(
        _ options: ViewerOptions, _ parameters: URLParameters, funnel rest: String? = nil
    ) throws(Rejection) {
        self.options = options
        selected = try Selected(parameters)
        guard let rest else {
            part = .usecases
            return
        }
        let words = rest.split(separator: "/", omittingEmptySubsequences: false)
        guard words.count == 2, words[1] == "funnel" else {
            throw Rejection(.notFound, "no such path")
        }
        guard let usecase = Int32(words[0]) else {
            throw Rejection("not the number of a use case: \(words[0])")
        }
        part = .funnel(usecase)
    }

    init(_ options: ViewerOptions, _ parameters: URLParameters, id: String) throws(Rejection) {
        self.options = options
        selected = try Selected(parameters)
        guard let id = TransactionID(id) else {
            throw Rejection("not the id of a transaction: \(id)")
        }
        part = .one(id)
    }

    func run(_ stream: LineStream) -> Reply? {
        var walk = StoreWalk(options, stream)
        do throws(Rejection) {
            var out: [UInt8] = []
            var leftOut: UInt64 = 0
            let matched =
                switch part {
                case .usecases: try figures(nil, &walk, &leftOut, &out)
                case .funnel(let usecase): try figures(usecase, &walk, &leftOut, &out)
                case .one(let id): try moments(id, &walk, &leftOut, &out)
                }
            if !stream.isOver { walk.end(matched: matched, leftOut: leftOut, &out) }
            return nil
        } catch {
            return error.reply
        }
    }

    private func read(
        _ walk: inout StoreWalk, _ body: (TransactionMoment, borrowing RecordRef) -> Void
    ) throws(Rejection) {
        try walk.read(selected, { $0.kinds = TransactionMoment.kinds }) { record, forgotten in
            if let moment = forgotten.moment(record) { body(moment, record) }
        }
    }

    // MARK: Use cases

    private func figures(
        _ usecase: Int32?, _ walk: inout StoreWalk, _ leftOut: inout UInt64, _ out: inout [UInt8]
    ) throws(Rejection) -> Int {
        var gatherer = TransactionGatherer()
        var figures = TransactionFigures()
        var stuck: [StoredTransaction] = []
        var stuckCount = 0
        let add = { (one: StoredTransaction) in
            figures.add(one)
            guard usecase != nil, !one.isEnded else { return }
            stuckCount += 1
            stuck.append(one)
            if stuck.count >= 2 * TransactionsJob.stuckMax { TransactionsJob.cut(&stuck) }
        }
        try read(&walk) { moment, _ in
            guard usecase == nil || usecase == moment.id.usecase else { return }
            figures.learn(moment)
            gatherer.take(moment, add)
        }
        gatherer.finish(add)
        for one in figures.all {
            TransactionsJob.append("usecase", TransactionJSON.object(one), to: &out)
        }
        TransactionsJob.cut(&stuck)
        for one in stuck {
            var object = TransactionJSON.object(one)
            object.add("last_ns", String(one.last))
            TransactionsJob.append("transaction", object, to: &out)
        }
        leftOut = figures.leftOut &+ UInt64(stuckCount - stuck.count)
        return figures.all.count
    }

    /// Those that were quiet for longest come first.
    private static func cut(_ stuck: inout [StoredTransaction]) {
        stuck.sort { ($0.last, $0.id.text) < ($1.last, $1.id.text) }
        if stuck.count > stuckMax { stuck.removeLast(stuck.count - stuckMax) }
    }

    private static func append(_ name: String, _ object: JSONObject, to out: inout [UInt8]) {
        out += "{\"\(name)\":\(object.text)}\n".utf8
    }

    // MARK: One of them

    private func moments(
        _ id: TransactionID, _ walk: inout StoreWalk, _ leftOut: inout UInt64, _ out: inout [UInt8]
    ) throws(Rejection) -> Int {
        var lines: [(time: UInt64, text: [UInt8])] = []
        var more: UInt64 = 0
        try read(&walk) { moment, record in
            guard moment.id == id else { return }
            guard lines.count < TransactionsJob.momentsMax else {
                more &+= 1
                return
            }
            var object = TransactionJSON.object(moment)
            object.add("key", RecordKey(record).text)
            object.add("time_ns", String(moment.time))
            var line: [UInt8] = []
            TransactionsJob.append("moment", object, to: &line)
            lines.append((moment.time, line))
        }
        if lines.isEmpty, !walk.stream.isOver {
            throw Rejection(.notFound, "no record of this transaction")
        }
        leftOut = more
        // The offset keeps the order of equal times.
        let sorted = lines.enumerated().sorted {
            ($0.element.time, $0.offset) < ($1.element.time, $1.offset)
        }
        for (_, line) in sorted {
            out += line.text
            if out.count >= LineStream.bytesMax / 4, !walk.stream.send(&out) { break }
        }
        return lines.count
    }
}
