// What one record of a transaction says (FORMAT §8.8), as a value of its own, and what of a store's
// transactions was deleted. Text that is not UTF-8 has U+FFFD. Any thread.
// SAFETY: everything is copied out of the record's views; none is kept.

import CordwoodCore
import CordwoodStore

public struct TransactionMoment: Sendable {
    public enum Operation: String, Sendable {
        case begin, join, event, end
    }

    /// For ReaderOptions.kinds: no other record means anything here.
    public static let kinds: UInt32 = 1 << UInt32(TransactionFields.kind)

    public var id: TransactionID
    public var operation: Operation
    /// UTC, ns since 1970.
    public var time: UInt64
    /// Of an event.
    public var event: Int32?
    /// Empty: none was registered.
    public var eventName = ""
    public var usecaseName = ""
    /// nil: no error.
    public var errorCode: String?
    public var errorDescription: String?
    /// Of an end: since the same handle's begin or join.
    public var duration: UInt64?
    /// 16 hex digits, of the handle.
    public var spanID: String?
    public var processID: UInt32
    public var processName: String
    let storeMoment: StoreMoment

    /// nil: it is no record of a transaction, or of one without an id.
    public init?(_ record: borrowing RecordRef) {
        guard let fields = TransactionFields(record), let id = fields.transactionID,
            let operation = Operation(rawValue: Bytes.string(fields.op))
        else { return nil }
        self.id = id
        self.operation = operation
        time = record.timeNs
        storeMoment = StoreMoment(record)
        if operation == .event {
            event = fields.event
            eventName = Bytes.string(fields.eventName)
            if fields.hasError {
                errorCode = Bytes.string(fields.errorCode)
                if fields.hasDescription {
                    errorDescription = Bytes.string(fields.errorDescription)
                }
            }
        }
        usecaseName = Bytes.string(fields.usecaseName)
        if operation == .end { duration = fields.durationNs }
        spanID = Record.hex(record.spanID)
        processID = record.thread.process.processID
        processName = record.thread.process.name
    }
}

/// Which transactions of a store are forgotten.
public struct ForgottenTransactions: Sendable {
    private let file: DeletedFile

    /// Of a store's directory; a single file has none. Throws where it cannot be read: what was to
    /// be forgotten must not be shown.
    public init(store: String) throws(ReadProblem) {
        guard StoreFolder.isDirectory(store) else {
            file = DeletedFile()
            return
        }
        do throws(UploadError) {
            file = try DeletedFile.read(storeDirectory: store)
        } catch {
            throw .damaged(error.text)
        }
    }

    public func covers(_ moment: TransactionMoment) -> Bool {
        file.covers(moment.id, moment.storeMoment)
    }

    /// What the record says; nil: nothing of a transaction, or of one that is forgotten.
    public func moment(_ record: borrowing RecordRef) -> TransactionMoment? {
        guard let moment = TransactionMoment(record), !covers(moment) else { return nil }
        return moment
    }
}
