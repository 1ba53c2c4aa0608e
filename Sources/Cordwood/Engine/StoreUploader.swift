// Sends what waits in a store without being one of its writers: no lane is made, so a store can be
// emptied by a program that logs nothing. One call at a time per store and target; the locks of the
// queue keep it apart from engines that send at the same time.

import CShims
import CordwoodCore
import CordwoodShip

public enum StoreUploader {
    public struct Outcome: Sendable {
        /// cw_upload's.
        public var status: Int32
        public var result = UploadResult()
        /// What went wrong on the way, for people.
        public var diagnostics: [String] = []
    }

    /// Registers the target and makes one attempt for each archive that waits for it. Explicit
    /// overrides backoff and byte rate, never consent or a server's Retry-After. With identities
    /// encrypted archives go to targets that need plain records, too.
    public static func upload(
        directory: String, target options: TargetOptions,
        callbacks: TargetCallbacks = TargetCallbacks(), timeoutMs: UInt32 = .max,
        explicit: Bool = true, identities: [AgeIdentity] = []
    ) throws(CordwoodError) -> Outcome {
        try StoreSettings.requireStore(directory)
        let notes = Notes()
        do throws(UploadError) {
            let target = try Target(options, callbacks: callbacks)
            let service = try makeService(directory, notes, identities)
            _ = try service.addTarget(target)
            let now = cw_monotonic_ns() / 1_000_000
            let deadline = timeoutMs == .max ? UInt64.max : now + UInt64(timeoutMs)
            var outcome = Outcome(status: Status.ok)
            let status = service.pass(
                explicit: explicit, deadlineMonotonicMs: deadline, result: &outcome.result)
            outcome.status = status.rawValue
            outcome.diagnostics = notes.texts
            return outcome
        } catch {
            throw CordwoodError(error.status.rawValue, error.text)
        }
    }

    /// Visits every request that `upload` would make, and its body's bytes, and sends nothing; the
    /// target is not registered. Also without consent.
    public static func plan(
        directory: String, target options: TargetOptions, identities: [AgeIdentity] = [],
        begin: (PlannedRequest) -> Bool?, piece: (UnsafeRawBufferPointer) -> Bool
    ) throws(CordwoodError) -> Int {
        try StoreSettings.requireStore(directory)
        do throws(UploadError) {
            return try unsafe makeService(directory, Notes(), identities).plan(
                try Target(options), begin: begin, piece: piece)
        } catch {
            throw CordwoodError(error.status.rawValue, error.text)
        }
    }

    private static func makeService(
        _ directory: String, _ notes: Notes, _ identities: [AgeIdentity]
    ) throws(UploadError) -> UploadService {
        let service = try UploadService(
            storeDirectory: directory,
            hooks: UploadWiring.hooks(
                directory: directory, diagnostics: { notes.add($0) }, removed: nil,
                identities: identities),
            random: { UInt64.random(in: .min ... .max) })
        // What programs were told holds for who sends in their place.
        let policy = try PolicyFile.read(storeDirectory: directory).map { StoredPolicy($0) }
        service.setEnabled(policy?.document?.isEnabled ?? true)
        return service
    }

    /// SAFETY: `kept` is used under the monitor only.
    private final class Notes: @unchecked Sendable {
        private static let warn: UInt8 = 13
        private let monitor = Monitor()
        private var kept: [String] = []

        var texts: [String] { monitor.locked { kept } }

        func add(_ diagnostic: UploadDiagnostic) {
            guard diagnostic.level >= Notes.warn else { return }
            var text = diagnostic.message
            for (key, value) in diagnostic.fields {
                switch value {
                case .text(let value): text += " \(key)=\(value)"
                case .number(let value): text += " \(key)=\(value)"
                }
            }
            monitor.locked { kept.append(text) }
        }
    }
}
