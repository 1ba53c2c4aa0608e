// What a store remembers about sending: its targets and its consent, for programs that are not one
// of its writers. Any thread; any process at the same time.

import CShims
import CordwoodCore
import CordwoodShip

public enum StoreSettings {
    /// Makes a directory a store, and its missing parents; an existing store is left as it is.
    public static func make(directory: String) throws(CordwoodError) {
        try Directories.make(directory, lasts: true)
        do throws(UploadError) {
            _ = try StoreFile.open(
                storeDirectory: directory, consent: .granted,
                idBytes: (UInt64.random(in: 1 ... .max), UInt64.random(in: 1 ... .max)),
                createdUnixSeconds: Int64(cw_realtime_ns() / 1_000_000_000))
        } catch {
            throw CordwoodError(error.status.rawValue, error.text)
        }
        try Directories.makeOwn(directory + "/lanes")
        try Directories.makeOwn(directory + "/archives")
    }

    public static func targets(directory: String) throws(CordwoodError) -> [RegisteredTarget] {
        try requireStore(directory)
        do throws(UploadError) {
            return try TargetRegistry(storeDirectory: directory).list()
        } catch {
            throw CordwoodError(error.status.rawValue, error.text)
        }
    }

    /// Archives no longer wait for it. Throws where no target has that name.
    public static func removeTarget(_ name: String, directory: String) throws(CordwoodError) {
        try requireStore(directory)
        do throws(UploadError) {
            try TargetRegistry(storeDirectory: directory).remove(name: name)
        } catch {
            throw CordwoodError(error.status.rawValue, error.text)
        }
    }

    public static func consent(directory: String) throws(CordwoodError) -> Consent {
        try requireStore(directory)
        do throws(UploadError) {
            return try StoreFile.read(storeDirectory: directory)?.consent ?? .pending
        } catch {
            throw CordwoodError(error.status.rawValue, error.text)
        }
    }

    /// Denied removes what waited to be sent.
    public static func setConsent(
        _ consent: Consent, directory: String
    ) throws(CordwoodError) {
        try requireStore(directory)
        do throws(UploadError) {
            _ = try StoreFile.setConsent(storeDirectory: directory, to: consent)
            guard consent == .denied else { return }
            let service = try UploadService(
                storeDirectory: directory,
                hooks: UploadWiring.hooks(
                    directory: directory, diagnostics: { _ in }, removed: nil),
                random: { UInt64.random(in: .min ... .max) })
            _ = try service.removeWaiting()
        } catch {
            throw CordwoodError(error.status.rawValue, error.text)
        }
    }

    /// Nothing is made where there is no store.
    static func requireStore(_ directory: String) throws(CordwoodError) {
        do throws(UploadError) {
            if try StoreFile.read(storeDirectory: directory) != nil { return }
        } catch {
            throw CordwoodError(error.status.rawValue, error.text)
        }
        throw CordwoodError(Status.notFound, "\(directory) is no store")
    }
}
