// The transactions of a store, assembled from the records of all processes, live or archived,
// without deleted ones. Reads the whole store. One thread.
// SAFETY: a record's views are read before the reader moves on.

import CordwoodCore
import CordwoodStore

/// A transaction as the store has it.
public struct TransactionSummary: Sendable, Equatable {
    public var id: String
    public var usecase: Int32
    /// Empty: no name was registered.
    public var usecaseName = ""
    /// UTC ns, of its first and last record.
    public var firstNs: UInt64
    public var lastNs: UInt64
    public var events: UInt32 = 0
    /// Events with an error code.
    public var errors: UInt32 = 0
    /// Its last record, apart from events, is an end.
    public var isEnded = false
}

/// The content of a transaction's record (FORMAT §8.8); it owns its strings.
package struct TransactionRecord: Sendable {
    package var op = ""
    package var id: TransactionID
    package var event: Int32?
    package var errorCode: String?
    package var usecaseName = ""

    /// nil: not a record of a transaction.
    package init?(_ record: borrowing RecordRef) {
        guard let fields = TransactionFields(record), let id = fields.transactionID else {
            return nil
        }
        self.id = id
        op = Bytes.string(fields.op)
        event = fields.event
        errorCode = fields.hasError ? Bytes.string(fields.errorCode) : nil
        usecaseName = Bytes.string(fields.usecaseName)
    }
}

package struct TransactionList {
    private var found: [TransactionID: TransactionSummary] = [:]
    /// The place that could not be read; nil: all were read.
    package private(set) var problem: ReadProblem?

    /// - Throws: if the store cannot be opened, or its deleted transactions are not known.
    package init(directory: FilePath, identities: [AgeIdentity]) throws(CordwoodError) {
        let deleted: DeletedFile
        do throws(UploadError) {
            deleted = try DeletedFile.read(storeDirectory: directory)
        } catch {
            throw CordwoodError(error.status.rawValue, error.text)
        }
        var options = ReaderOptions()
        options.kinds = 1 << TransactionFields.kind
        options.identities = identities
        do throws(ReadProblem) {
            let reader = try StoreReader([directory], options: options)
            while true {
                do throws(ReadProblem) {
                    guard let record = try reader.advance() else { break }
                    note(record, deleted)
                } catch .locked {
                    continue  // nothing is damaged: it says nothing without its key
                } catch {
                    problem = problem ?? error
                }
            }
        } catch {
            throw CordwoodError(error)
        }
    }

    /// Oldest first.
    package var all: [TransactionSummary] {
        found.values.sorted { ($0.firstNs, $0.id) < ($1.firstNs, $1.id) }
    }

    private mutating func note(_ record: RecordRef, _ deleted: DeletedFile) {
        guard let said = TransactionRecord(record),
            !deleted.covers(said.id, StoreMoment(record))
        else { return }
        var one =
            found[said.id]
            ?? TransactionSummary(
                id: said.id.text, usecase: said.id.usecase, firstNs: record.timeNs,
                lastNs: record.timeNs)
        one.firstNs = min(one.firstNs, record.timeNs)
        one.lastNs = max(one.lastNs, record.timeNs)
        if !said.usecaseName.isEmpty { one.usecaseName = said.usecaseName }
        if said.op == "event" {
            one.events &+= 1
            if said.errorCode != nil { one.errors &+= 1 }
        } else {
            one.isEnded = said.op == "end"
        }
        found[said.id] = one
    }
}
