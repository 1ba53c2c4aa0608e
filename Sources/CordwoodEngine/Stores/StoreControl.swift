// Reads and changes a store's control file, for programs that do not write to the store: `cordwood
// http enable`, `cordwood level`. Open engines follow within a second, engines opened later begin
// with it. Any thread; any process at the same time.

import CordwoodCore
import CordwoodStore

extension StoreSettings {
    /// Reads the control file. Without one the result is empty: every host decides for itself.
    public static func control(directory: String) throws(CordwoodError) -> ControlFile {
        try requireStore(directory)
        do throws(UploadError) {
            return try ControlFile.read(storeDirectory: directory) ?? ControlFile()
        } catch {
            throw CordwoodError(error.status.rawValue, error.text)
        }
    }

    /// Switches the capture of HTTP exchanges for all hosts; nil: each host decides.
    public static func setHTTP(_ isOn: Bool?, directory: String) throws(CordwoodError) {
        try changeControl(directory) { $0.http = isOn }
    }

    /// Sets the threshold of a name and all names below it, overriding hosts and policies; nil:
    /// hosts and policies decide.
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
