// An engine's application transactions, by number: begin, join, name, list, delete, send.

import CShims
import CordwoodCore
import CordwoodShip
import CordwoodStore
import CordwoodTrace

extension Engine {
    /// Begins a transaction of the use case. It ends with `end`, or when the last reference goes
    /// away.
    public func transaction(_ usecase: Int32) throws(CordwoodError) -> Transaction {
        var random = SystemRandomNumberGenerator()
        let id = TransactionID(usecase: usecase, random: (random.next(), random.next()))
        return try makeTransaction(id, joins: false)
    }

    /// Joins a transaction that another process or an earlier run began. Events logged here belong
    /// to it, even after it was sent.
    public func joinTransaction(_ id: String) throws(CordwoodError) -> Transaction {
        guard let id = TransactionID(id) else {
            throw CordwoodError(
                Status.argument,
                "'\(id.prefix(80))' is no id of a transaction: TXN<use case>-<UUID, upper case>")
        }
        return try makeTransaction(id, joins: true)
    }

    private func makeTransaction(
        _ id: TransactionID, joins: Bool
    ) throws(CordwoodError) -> Transaction {
        let logger = unsafe try services().logger(Transaction.loggerName)
        let transaction = unsafe Transaction(
            id, logger, transactionTable, spanID: UInt64.random(in: 1 ... .max))
        let status = transaction.begin(joins: joins)
        guard status == Status.ok else {
            transaction.discard()
            throw CordwoodError(status, "the transaction could not begin: no record was kept")
        }
        return transaction
    }

    // MARK: Names

    /// Registers the name of a use case (event nil) or of an event; nil removes it. Later records
    /// carry the name.
    public func setTransactionName(
        usecase: Int32, event: Int32? = nil, _ name: String?
    ) throws(CordwoodError) {
        let name = Array((name ?? "").utf8)
        let services = try services()
        guard name.count <= TransactionTable.nameBytesMax else {
            throw CordwoodError(
                Status.limit,
                "the name of use case \(usecase) is over \(TransactionTable.nameBytesMax) bytes")
        }
        let table = transactionTable
        let isSet = services.monitor.locked {
            table.set(usecase, event ?? TransactionTable.noEvent, name)
        }
        guard isSet else {
            throw CordwoodError(
                Status.limit, "an engine has at most \(TransactionTable.namesMax) names")
        }
    }

    // MARK: The store's transactions

    /// The store's transactions, oldest first, including those of other processes and excluding
    /// deleted ones. `problem` receives each place that could not be read; the rest is returned.
    public func transactions(
        problem: inout CordwoodError?
    ) throws(CordwoodError) -> [TransactionSummary] {
        let services = try services()
        let list = try TransactionList(
            directory: FilePath(store), identities: services.settings.identities)
        problem = list.problem.map { CordwoodError($0) }
        return list.all
    }

    /// The same, but throws if a place could not be read.
    public func transactions() throws(CordwoodError) -> [TransactionSummary] {
        var problem: CordwoodError?
        let all = try transactions(problem: &problem)
        if let problem { throw problem }
        return all
    }

    /// Deletes a transaction, or (nil) every transaction of the store, for example at a logout.
    /// Records logged up to now are no longer listed or sent. They leave the disk together with
    /// their segments and archives.
    public func deleteTransactions(_ id: String? = nil) throws(CordwoodError) {
        _ = try services()
        var wanted: TransactionID?
        if let id {
            wanted = TransactionID(id)
            guard wanted != nil else {
                throw CordwoodError(
                    Status.argument, "'\(id.prefix(80))' is no id of a transaction")
            }
        }
        // Record times are off by at most 200 microseconds (FORMAT §11.4): every record logged
        // before the call is older than this, every record logged after the call is younger.
        let until = StoreMoment.now(plusNs: Engine.deletionMarginNs)
        do throws(UploadError) {
            try DeletedFile.forget(storeDirectory: FilePath(store), id: wanted, until: until)
        } catch {
            throw CordwoodError(error.status.rawValue, error.text)
        }
        // Waits by the clock that may lag by a kernel tick: engines may use that clock as well.
        let waitUntil = Deadline(afterMs: 20 &* Engine.deletionMarginNs / 1_000_000)
        let last = until.monotonicNs &+ Engine.deletionMarginNs
        while Machine.sharedCoarseNs() <= last, !waitUntil.hasPassed {
            ThreadIdentity.pause(microseconds: 200)
        }
    }

    /// Sends everything logged before the call to the targets of the kind `transactions`, with one
    /// attempt each. Throws if something was not sent.
    /// - Returns: the number of events the targets accepted.
    @discardableResult
    public func flushTransactions(
        timeout: Duration? = .seconds(60)
    ) throws(CordwoodError) -> UInt64 {
        var result = UploadResult()
        let status = try flushTransactions(timeout: timeout, result: &result)
        guard status >= 0 else { throw uploadError(status, result) }
        return result.records
    }

    private static let deletionMarginNs: UInt64 = 1_000_000
}
