// What a store's control file says, and changing it, for programs that are not one of its writers:
// `cordwood http enable`, `cordwood level`. Engines that are open follow within a second, those
// opened later begin with it. Any thread; any process at the same time.

import CordwoodCore
import CordwoodStore

extension StoreSettings {
    /// nothing: every host decides for itself.
    public static func control(directory: String) throws(CordwoodError) -> ControlFile {
        try requireStore(directory)
        do throws(UploadError) {
            return try ControlFile.read(storeDirectory: directory) ?? ControlFile()
        } catch {
            throw CordwoodError(error.status.rawValue, error.text)
        }
    }

    /// Whether HTTP exchanges are captured, whatever hosts say; nil: as each host says.
    public static func setHTTP(_ isOn: Bool?, directory: String) throws(CordwoodError) {
        try changeControl(directory) { $0.http = isOn }
    }

    /// The threshold of a name and those below it, whatever hosts and policies say; nil: as they
    /// say.
    public static func setLevel(
        prefix: String, level: Level?, directory: String
    ) throws(CordwoodError) {
        guard ControlFile.isPrefix(prefix) else {
            throw CordwoodError(
                Status.argument,
                "the prefix '\(prefix.prefix(60))' has over 255 bytes or a control character")
        }
        try changeControl(directory) { $0.setLevel(prefix, level?.number) }
    }

    private static func changeControl(
        _ directory: String, _ body: (inout ControlFile) -> Void
    ) throws(CordwoodError) {
        try requireStore(directory)
        do throws(UploadError) {
            try ControlFile.change(storeDirectory: directory, body)
        } catch {
            throw CordwoodError(error.status.rawValue, error.text)
        }
    }
}
