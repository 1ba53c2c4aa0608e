// The users that a store obeys: its owner and root. An engine opens no store that another user owns
// or may change, and a file that decides what programs do (FORMAT §2) does not count if somebody
// else could have written it: it would stop records, begin captures or send archives in another's
// name. Of the user's own files, others lose the right to change them. Any thread.

import CShims
import CordwoodCore

package enum StoreOwner {
    /// Throws if others may change the directory, or if it is neither this user's nor root's. Root
    /// may open everybody's: what it makes there belongs to the directory's owner.
    static func check(_ store: OpenDirectory) throws(CordwoodError) {
        // Found out here: a filter that the host sets later may kill for it.
        _ = cwi_bound_user()
        try check(store.opened, of: FilePath(store))
    }

    /// The same, for a program that does not log.
    static func check(storeDirectory: FilePath) throws(CordwoodError) {
        guard let facts = FileFacts(following: storeDirectory) else {
            throw Directories.failure("open", storeDirectory)
        }
        try check(facts, of: storeDirectory)
    }

    private static func check(_ facts: FileFacts, of store: FilePath) throws(CordwoodError) {
        do throws(UploadError) {
            try check(facts, store)
        } catch {
            throw CordwoodError(error.status.rawValue, error.text)
        }
        guard facts.owner != 0 else { return }
        let user = Machine.userID()
        guard user == 0 || user == facts.owner else {
            throw CordwoodError(
                Status.permission,
                "\(store) belongs to user \(facts.owner); this process is user \(user), and "
                    + "only a store's owner and root write to it")
        }
    }

    /// Throws if others than root and the owner of the store that the path starts from may change
    /// that file or folder, and it is not this user's.
    static func check(_ file: FileFacts, _ path: FilePath) throws(UploadError) {
        guard !file.isOpenToOthers || Files.closeToOthers(path, file) else {
            let mode = String(file.mode, radix: 8)
            let user = Machine.userID()
            guard user == file.owner || user == 0 else {
                throw .notOurs(
                    "\(path) belongs to user \(file.owner), and others may change it, too (mode "
                        + "\(mode)): name a directory below it, which then belongs to this user")
            }
            throw .notOurs(
                "other users may change \(path), whose mode is \(mode): chmod go-w \(path)")
        }
        guard file.owner == 0 || path.isInDirectory(of: file.owner) else {
            throw .notOurs("\(path) belongs to user \(file.owner), who does not own the store")
        }
    }
}
