// Deletes transactions of a store that no engine of this process has open, for the command. Engines
// that write to the store notice (FORMAT §2.3). Any thread; blocks for a file sync.

import CShims
import CordwoodCore
import CordwoodStore

extension ForgottenTransactions {
    /// Deletes the records so far of a transaction, or of all transactions: `id` nil.
    public static func forget(_ id: TransactionID?, store: String) throws(CordwoodError) {
        let store = FilePath(opening: store)
        do throws(ReadProblem) { try StoreFolder.check(store) } catch { throw CordwoodError(error) }
        do throws(UploadError) {
            try DeletedFile.forget(storeDirectory: store, id: id, until: .now())
        } catch {
            throw CordwoodError(error.status.rawValue, error.text)
        }
    }
}
