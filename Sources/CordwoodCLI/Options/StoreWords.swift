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
        let isNamed = words.first.map { !isOther($0) || isDirectoryWithoutOther($0) } ?? false
        let rest = isNamed ? Array(words.dropFirst()) : words
        // The verb refuses such a word, and needs no store for that.
        if let word = rest.first, !isOther(word) { return (words[0], rest) }
        return (try Sources.resolved(isNamed ? [words[0]] : [])[0], rest)
    }

    private static func isDirectoryWithoutOther(_ word: String) -> Bool {
        Sources.environmentStore == nil && FileFacts(following: FilePath(word))?.isDirectory == true
    }
}
