// What the command line remembers of archives between two commands, so that a store of thousands
// opens without opening each one. One file per store in $XDG_CACHE_HOME/cordwood or
// ~/.cache/cordwood (docs/ARCHITECTURE.md, "Facts of archives"). Only the command line makes one; a
// host's calls never do. Everything in it can be made again: what cannot be read, trusted or
// written is silently left out. One thread at a time.
// SAFETY: Sendable because options are; only the thread that reads with them uses it.

import CordwoodCore

package final class FactsCache: @unchecked Sendable {
    /// Limits on the number of files, and on the time since they were last written.
    private static let filesMax = 64
    private static let secondsMax = 90 * 86_400
    private static let suffix = ".facts"

    private let parent: FilePath
    private var folder: FilePath { parent + "/cordwood" }
    private var stores: [String: StoreFacts] = [:]

    /// nil: CORDWOOD_CACHE is `off`, no folder is named, or it is not the user's own.
    package static func find(
        environment: (String) -> String? = Machine.environment
    ) -> FactsCache? {
        if environment("CORDWOOD_CACHE") == "off" { return nil }
        func path(_ name: String) -> String? {
            // The XDG specification says to ignore relative paths.
            environment(name).flatMap { $0.hasPrefix("/") ? $0 : nil }
        }
        guard let parent = path("XDG_CACHE_HOME") ?? path("HOME").map({ $0 + "/.cache" }) else {
            return nil
        }
        let cache = FactsCache(parent: FilePath(parent))
        return FileFacts(at: cache.folder).map(isOwnFolder) ?? true ? cache : nil
    }

    private init(parent: FilePath) { self.parent = parent }

    private static func isOwnFolder(_ file: FileFacts) -> Bool { file.isDirectory && isOwn(file) }

    /// Made when there is something to write.
    private func makeFolder() -> Bool {
        if FileFacts(at: folder) == nil {
            _ = Files.makeDirectory(parent)
            _ = Files.makeDirectory(folder)
        }
        return FileFacts(at: folder).map(Self.isOwnFolder) ?? false
    }

    /// Otherwise somebody else could have written it.
    static func isOwn(_ file: FileFacts) -> Bool {
        file.owner == Machine.userID() && file.isPrivate
    }

    /// The facts of a store's archives, shared by all its readers; nil: there is no store.
    func facts(ofStore path: FilePath) -> StoreFacts? {
        guard let store = FileFacts(following: path), store.isDirectory else { return nil }
        let name = "\(store.device)-\(store.inode)\(Self.suffix)"
        if let found = stores[name] { return found }
        let made = StoreFacts(folder, name: name, device: store.device, inode: store.inode)
        stores[name] = made
        return made
    }

    /// Writes what was learned, if it is worth it. Call after everything is shown.
    package func save() {
        var isWritten = false
        for store in stores.values where store.isWorthWriting && makeFolder() {
            if store.write() { isWritten = true }
        }
        if isWritten { prune() }
    }

    /// Stores come and go; files of old ones are removed.
    private func prune() {
        let names = DirectoryListing(folder, hidden: true).names
        var kept: [(age: Int, path: FilePath)] = []
        for name in names {
            let path = folder + "/\(name)"
            guard let file = FileFacts(at: path), file.isRegular else { continue }
            if name.hasSuffix(Self.suffix), !name.hasPrefix(".") {
                kept.append((file.secondsSinceModified, path))
            } else if name.hasPrefix("."), file.secondsSinceModified > 3_600 {
                // Left by a command that was killed.
                Files.remove(path)
            }
        }
        kept.sort { $0.age < $1.age }
        for (index, file) in kept.enumerated()
        where index >= Self.filesMax || file.age > Self.secondsMax {
            Files.remove(file.path)
        }
    }
}
