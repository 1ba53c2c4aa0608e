// Bodies for servers of application transactions (B-TXN-5): events alone, those of one transaction
// together, none of a transaction that was deleted. Holds a whole body until its end, which the
// limit bounds (TransactionsDialect.bodyBytesMax). One thread at a time.

import CordwoodStore

struct TransactionsEncoder: RecordEncoder {
    private let device: TransactionsDevice
    private var deleted: DeletedFile
    /// nil: what was deleted does not change.
    private let store: String?
    private var document: TransactionsDocument

    /// Of an error's code, where there is no room for more.
    static let codeBytesMin = 64

    /// - Parameter store: its directory, where `deleted` is looked at again for each body: what was
    ///   deleted while an archive is sent goes with no later request.
    init(device: TransactionsDevice, deleted: DeletedFile, store: String? = nil) {
        self.device = device
        self.deleted = deleted
        self.store = store
        document = TransactionsDocument(device: device)
    }

    /// The frame, and one transaction's head, whose words may need six bytes for each of their own.
    var frameBytes: Int { 512 + 3 * 6 * TransactionsDocument.deviceBytesMax }

    mutating func begin(_ out: inout [UInt8]) {
        document = TransactionsDocument(device: device)
        // Where it cannot be read the next attempt says so.
        if let store, let now = try? DeletedFile.read(storeDirectory: store) { deleted = now }
    }

    func makeEntry(
        _ record: RecordRef, _ place: RecordPlace, messageBytesMax: Int, _ out: inout [UInt8]
    ) {
        guard let fields = TransactionsDocument.event(record), let id = fields.transactionID,
            !deleted.covers(id, StoreMoment(record))
        else { return }
        // What has to be shorter is: an event is never left out for its words.
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
