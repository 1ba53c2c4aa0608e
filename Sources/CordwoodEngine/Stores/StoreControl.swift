// Reads and changes a store's control file, for programs that do not write to the store: `cordwood
// http enable`, `cordwood level`, the viewer. Open engines follow within a second, engines opened
// later begin with it. Any thread; any process at the same time.

import CordwoodCore
import CordwoodStore

/// A threshold as people write it: `app.db=debug`, `warn` for the root, `app.db=default`.
package struct LevelSetting: Sendable {
    package var prefix: String
    /// nil: hosts and policies decide.
    package var level: Level?

    package static let words =
        "trace debug info notice warn error fatal, 1 … 24, off, default"

    /// Throws the word that is no level.
    package init(_ text: String) throws(LevelWordError) {
        let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        prefix = parts.count == 2 ? String(parts[0]) : ""
        let word = parts.last.map { $0.lowercased() } ?? ""
        switch word {
        case "default": level = nil
        case "off": level = .off
        default:
            guard let found = Level(word) else { throw LevelWordError(word: word) }
            level = found
        }
    }

    init(_ found: ControlFile.Level) {
        prefix = found.prefix
        level = found.number == 255 ? .off : Level(number: found.number)
    }

    package var text: String { "\(prefix)=\((level?.description ?? "default").lowercased())" }
}

package struct LevelWordError: Error {
    package var word: String
}

extension StoreSettings {
    /// Reads the control file. Without one the result is empty: every host decides for itself.
    public static func control(directory: String) throws(CordwoodError) -> ControlFile {
        let store = try requireStore(directory)
        do throws(UploadError) {
            return try ControlFile.read(storeDirectory: store) ?? ControlFile()
        } catch {
            throw CordwoodError(error.status.rawValue, error.text)
        }
    }

    /// The thresholds that the control file sets, in its order.
    package static func levels(directory: String) throws(CordwoodError) -> [LevelSetting] {
        try control(directory: directory).levels.map { LevelSetting($0) }
    }

    /// Switches the capture of HTTP exchanges for all hosts; nil: each host decides.
    public static func setHTTP(_ isOn: Bool?, directory: String) throws(CordwoodError) {
        _ = try changeControl(directory) { $0.http = isOn }
    }

    /// Sets the threshold of a name and all names below it, overriding hosts and policies; nil:
    /// hosts and policies decide.
    public static func setLevel(
        prefix: String, level: Level?, directory: String
    ) throws(CordwoodError) {
        try requirePrefix(prefix)
        _ = try changeControl(directory) { $0.setLevel(prefix, level?.number) }
    }

    /// Sets all of them in one step, if the file's levels are still those that the caller knows.
    /// False: they have changed, and stay.
    package static func setLevels(
        _ settings: [LevelSetting], from known: [ControlFile.Level], directory: String
    ) throws(CordwoodError) -> Bool {
        for setting in settings { try requirePrefix(setting.prefix) }
        return try changeControl(directory, if: { $0.levels == known }) { file in
            for setting in settings { file.setLevel(setting.prefix, setting.level?.number) }
        }
    }

    /// Likewise for the capture of HTTP exchanges.
    package static func setHTTP(
        _ isOn: Bool?, from known: Bool?, directory: String
    ) throws(CordwoodError) -> Bool {
        try changeControl(directory, if: { $0.http == known }) { $0.http = isOn }
    }

    private static func requirePrefix(_ prefix: String) throws(CordwoodError) {
        guard ControlFile.isPrefix(prefix) else {
            throw CordwoodError(
                Status.argument,
                "the prefix '\(prefix.prefix(60))' has over 255 bytes or a control character")
        }
    }

    private static func changeControl(
        _ directory: String, if isKnown: (ControlFile) -> Bool = { _ in true },
        _ body: (inout ControlFile) -> Void
    ) throws(CordwoodError) -> Bool {
        let store = try requireStore(directory)
        do throws(UploadError) {
            return try ControlFile.change(storeDirectory: store, if: isKnown, body)
        } catch {
            throw CordwoodError(error.status.rawValue, error.text)
        }
    }
}
