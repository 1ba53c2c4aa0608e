// Bodies for servers of application transactions (B-TXN-5): only events, grouped by transaction,
// and none of a deleted transaction. Holds a whole body until its end, which the limit bounds
// (TransactionsDialect.bodyBytesMax). One thread at a time.

import CordwoodCore
import CordwoodStore

struct TransactionsEncoder: RecordEncoder {
    private let device: TransactionsDevice
    private var deleted: DeletedFile
    /// nil: the set of deleted transactions is fixed.
    private let store: FilePath?
    private var document: TransactionsDocument

    /// The minimum kept of an error's code if room runs out.
    static let codeBytesMin = 64

    /// - Parameter store: its directory, in which `deleted` is read again for each body: a
    ///   transaction deleted while an archive is being sent is in no later request.
    init(device: TransactionsDevice, deleted: DeletedFile, store: FilePath? = nil) {
        self.device = device
        self.deleted = deleted
        self.store = store
        document = TransactionsDocument(device: device)
    }

    /// The frame, and one transaction's head; each byte of its text may take six.
    var frameBytes: Int { 512 + 3 * 6 * TransactionsDocument.deviceBytesMax }

    mutating func begin(_ out: inout [UInt8]) {
        document = TransactionsDocument(device: device)
        // If it cannot be read, the next attempt reports that.
        if let store, let now = try? DeletedFile.read(storeDirectory: store) { deleted = now }
    }

    func makeEntry(
        _ record: RecordRef, distinctNs: UInt64, messageBytesMax: Int, _ out: inout [UInt8]
    ) {
        guard let fields = TransactionsDocument.event(record), let id = fields.transactionID,
            !deleted.covers(id, StoreMoment(record))
        else { return }
        // Text is shortened as needed: an event is never left out because of its text.
        TransactionsDocument.append(
            fields, record, textMax: messageBytesMax,
            codeMax: max(messageBytesMax, TransactionsEncoder.codeBytesMin), &out)
    }

    func cost(_ entry: [UInt8], _ record: RecordRef) -> Int {
        guard let fields = TransactionsDocument.event(record), !document.has(fields) else {
            return entry.count + 1
        }
        return entry.count + 3 + document.head(fields, record).count
    }

    mutating func take(_ entry: [UInt8], _ record: RecordRef, _ out: inout [UInt8]) {
        guard let fields = TransactionsDocument.event(record) else { return }
        document.take(entry, fields, record)
    }

    mutating func end(_ out: inout [UInt8]) { document.end(&out) }
}
