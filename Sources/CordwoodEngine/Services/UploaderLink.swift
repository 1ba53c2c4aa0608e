// The uploader's link back to the services that own it.

import CordwoodShip

/// Breaks the reference cycle between the services and their uploader.
final class UploaderLink: @unchecked Sendable {
    // SAFETY: set once, before any thread of the engine starts.
    weak var services: Services?

    func write(_ diagnostic: UploadDiagnostic) { services?.report(diagnostic) }
    func runEnded() { services?.uploadRunEnded() }
    func replanned() { services?.wakeShipper() }
    func policyWanted() { services?.policyKeeper?.lookSoon() }

    /// Starts a thread that close waits for.
    func start(_ body: @escaping @Sendable () -> Void) -> Bool {
        services?.startThread("cordwood-upload", body) ?? false
    }
}
