// The content of a transaction's record, read from its own fields (FORMAT §8.8) as views, without
// copying. Used by all code that reads such records: bodies, lists, exports.
// SAFETY: the views are the record's and stay valid as long as it does.

import CordwoodCore

@safe public struct TransactionFields {
    /// CW_KIND_TRANSACTION.
    public static let kind: UInt8 = 3

    @safe package private(set) var op = Bytes.none
    @safe package private(set) var id = Bytes.none
    package private(set) var event: Int32?
    /// False: there is no code, which differs from an empty one.
    package private(set) var hasError = false
    @safe package private(set) var errorCode = Bytes.none
    package private(set) var hasDescription = false
    @safe package private(set) var errorDescription = Bytes.none
    @safe package private(set) var usecaseName = Bytes.none
    @safe package private(set) var eventName = Bytes.none
    package private(set) var durationNs: UInt64?

    /// nil: it is not such a record.
    package init?(_ record: borrowing RecordRef) {
        guard record.kind == TransactionFields.kind,
            let fields = SectionIterator.find(SectionKind.fields, in: record.sections)
        else { return nil }
        var all = FieldIterator(fields)
        while let (key, value) = all.next() {
            switch value {
            case .string(let text): note(key, text)
            case .int(let number) where Bytes.equal(key, Bytes.literal("txn.event")):
                event = Int32(exactly: number)
            case .uint(let number) where Bytes.equal(key, Bytes.literal("txn.duration_ns")):
                durationNs = number
            default: break
            }
        }
    }

    /// nil: the record has no id, or an invalid one.
    package var transactionID: TransactionID? {
        guard id.count <= TransactionID.bytesMax else { return nil }
        return unsafe TransactionID(bytes: Array(id))
    }

    package var isEvent: Bool { event != nil && Bytes.equal(op, Bytes.literal("event")) }

    @safe private mutating func note(
        _ key: UnsafeRawBufferPointer, _ text: UnsafeRawBufferPointer
    ) {
        func isKey(_ name: StaticString) -> Bool { Bytes.equal(key, Bytes.literal(name)) }
        if isKey("txn.op") { op = unsafe text }
        if isKey("txn.id") { id = unsafe text }
        if isKey("txn.usecase.name") { usecaseName = unsafe text }
        if isKey("txn.event.name") { eventName = unsafe text }
        if isKey("txn.error.code") {
            hasError = true
            errorCode = unsafe text
        }
        if isKey("txn.error.description") {
            hasDescription = true
            errorDescription = unsafe text
        }
    }
}

extension StoreMoment {
    /// Reads the fields of a record.
    package init(_ record: borrowing RecordRef) {
        self.init(
            timeNs: record.timeNs, boot: record.thread.process.bootID,
            monotonicNs: record.monotonicNs)
    }
}
