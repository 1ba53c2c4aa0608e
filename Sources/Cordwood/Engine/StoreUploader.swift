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
    /// overrides backoff and byte rate, never consent or a server's Retry-After.
    public static func upload(
        directory: String, target options: TargetOptions, timeoutMs: UInt32 = .max,
        explicit: Bool = true
    ) throws(CordwoodError) -> Outcome {
        try StoreSettings.requireStore(directory)
        let notes = Notes()
        do throws(UploadError) {
            let target = try Target(options)
            let service = try UploadService(
                storeDirectory: directory,
                hooks: UploadWiring.hooks(
                    directory: directory, diagnostics: { notes.add($0) }, removed: nil),
                random: { UInt64.random(in: .min ... .max) })
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
