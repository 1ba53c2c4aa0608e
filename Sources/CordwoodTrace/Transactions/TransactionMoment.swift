// The content of one record of a transaction (FORMAT §8.8), as a value, and the set of a store's
// deleted transactions. Invalid UTF-8 becomes U+FFFD. Any thread.
// SAFETY: everything is copied out of the record's views; none is kept.

import CordwoodCore
import CordwoodStore

public struct TransactionMoment: Sendable {
    public enum Operation: String, Sendable {
        case begin, join, event, end
    }

    /// For ReaderOptions.kinds: all other records are irrelevant here.
    public static let kinds: UInt32 = 1 << UInt32(TransactionFields.kind)

    public var id: TransactionID
    public var operation: Operation
    /// UTC, ns since 1970.
    public var time: UInt64
    /// Set for an event.
    public var event: Int32?
    /// Empty: no name was registered.
    public var eventName = ""
    public var usecaseName = ""
    /// nil: no error.
    public var errorCode: String?
    public var errorDescription: String?
    /// Set for an end: the time since the same handle's begin or join.
    public var duration: UInt64?
    /// The handle's, 16 hex digits.
    public var spanID: String?
    public var processID: UInt32
    public var processName: String
    let storeMoment: StoreMoment

    /// nil: not a record of a transaction, or of one without an id.
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

/// The deleted transactions of a store.
public struct ForgottenTransactions: Sendable {
    private let file: DeletedFile

    /// Reads a store's directory; a single file has none. Throws if it cannot be read, because
    /// deleted transactions must not be shown.
    public init(store: String) throws(ReadProblem) {
        let store = FilePath(opening: store)
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

    /// The record's content; nil: not of a transaction, or of a deleted one.
    public func moment(_ record: borrowing RecordRef) -> TransactionMoment? {
        guard let moment = TransactionMoment(record), !covers(moment) else { return nil }
        return moment
    }
}
