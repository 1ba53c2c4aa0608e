// The words of verbs that work on one store and take further words: the store comes first, or
// CORDWOOD_DIR names it.

import ArgumentParser
import Cordwood

enum StoreWords {
    static let help: ArgumentHelp = "The store's directory. Default: CORDWOOD_DIR."

    /// The store and the words after it. A word that may follow a store is never the store;
    /// `./list` names a directory of that name.
    /// - Parameter isOther: whether a word is one of those that may follow the store.
    static func split(
        _ words: [String], isOther: (String) -> Bool
    ) throws(Failure) -> (store: String, rest: [String]) {
        if let first = words.first, !isOther(first) || isDirectoryWithoutOther(first) {
            return (try Sources.resolved([first])[0], Array(words.dropFirst()))
        }
        return (try Sources.resolved([])[0], words)
    }

    private static func isDirectoryWithoutOther(_ word: String) -> Bool {
        Sources.environmentStore == nil && FileFacts(following: FilePath(word))?.isDirectory == true
    }
}
