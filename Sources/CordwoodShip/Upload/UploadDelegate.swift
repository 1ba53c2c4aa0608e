// Notifications from uploads to their owner: an engine, the command line, a test. UploadService
// holds it weakly, because the owner holds the service.

import CordwoodCore
import CordwoodStore

/// Called on the thread that is at work: the caller of an upload or of retention, or one that
/// `startUploadThread` started. No monitor of the uploads is held, but the lock of an archive or of
/// archives/ may be. A call may log, wake threads and take the owner's monitors; it may neither
/// wait for an upload nor begin one.
package protocol UploadDelegate: AnyObject, Sendable {
    func report(_ diagnostic: UploadDiagnostic)
    /// Starts a thread that the owner outlives. False: none is available; the caller then does the
    /// work itself.
    func startUploadThread(_ body: @escaping @Sendable () -> Void) -> Bool
    /// A server reports that a policy forbids what was sent: the policy should be read again.
    func policyWanted()
    /// A background run has ended, or an explicit call that held the background back.
    func uploadRunEnded()
    /// The time of the background's next work was changed.
    func uploadsReplanned()
    /// Called once for an archive that left the disk without being sent everywhere. No lock is
    /// held.
    func archiveRemoved(_ archiveName: String, _ reason: RemovalReason)
    /// False: `archiveRemoved` reaches nobody, so the next program has to tell its host.
    var hearsRemovals: Bool { get }
}

extension UploadDelegate {
    package func startUploadThread(_ body: @escaping @Sendable () -> Void) -> Bool {
        EngineThread.start("cordwood-upload", body)
    }
    package func policyWanted() {}
    package func uploadRunEnded() {}
    package func uploadsReplanned() {}
    package func archiveRemoved(_ archiveName: String, _ reason: RemovalReason) {}
    package var hearsRemovals: Bool { false }
}

public enum DiagnosticValue: Equatable, Sendable {
    case text(String)
    case number(Int64)
}

/// One line of the engine's own log, under Cordwood.Uploader.
package struct UploadDiagnostic: Sendable {
    package var level: UInt8
    package var message: String
    package var fields: [(key: String, value: DiagnosticValue)]

    package init(
        level: UInt8, message: String, fields: [(key: String, value: DiagnosticValue)]
    ) {
        self.level = level
        self.message = message
        self.fields = fields
    }

    package static let debug: UInt8 = 5
    package static let warn: UInt8 = 13
    package static let error: UInt8 = 17
}
