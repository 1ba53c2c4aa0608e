// Forgetting transactions of a store that no engine of this process has open: what the command
// does. Engines that write to it notice (FORMAT §2.3). Any thread; blocks for a file sync.

import CShims
import CordwoodCore
import CordwoodStore

extension ForgottenTransactions {
    /// Forgets what there is until now of a transaction, or of all: `id` nil.
    public static func forget(_ id: TransactionID?, store: String) throws(CordwoodError) {
        do throws(ReadProblem) { try StoreFolder.check(store) } catch { throw CordwoodError(error) }
        do throws(UploadError) {
            try DeletedFile.forget(storeDirectory: store, id: id, until: .now())
        } catch {
            throw CordwoodError(error.status.rawValue, error.text)
        }
    }
}
