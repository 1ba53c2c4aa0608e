// Sends the archives of a store without writing records to it: makes no lane, so a program that
// logs nothing can empty a store. One call at a time per store and target; the locks of the queue
// keep it apart from engines that send at the same time.

import CShims
import CordwoodCore
import CordwoodShip
import CordwoodStore

public enum StoreUploader {
    public struct Outcome: Sendable {
        /// A status of cw_upload.
        public var status: Int32
        public var result = UploadResult()
        /// Problems on the way, as text for people.
        public var diagnostics: [String] = []

        /// What another call with the same session added.
        public mutating func add(_ next: Outcome) {
            status = next.status
            result.add(next.result)
            result.waiting = next.result.waiting
            diagnostics += next.diagnostics
        }
    }

    /// One target of a store, and what its server taught us so far.
    public struct Session: Sendable {
        private let service: UploadService
        private let notes: Notes
        private let directory: FilePath

        /// Registers the target; archives paused for it may be tried again. With identities,
        /// encrypted archives also go to targets that need plain records.
        public init(
            directory: String, target options: TargetOptions,
            callbacks: TargetCallbacks = TargetCallbacks(), identities: [AgeIdentity] = []
        ) throws(CordwoodError) {
            let store = try StoreSettings.requireStore(directory)
            self.directory = store
            notes = Notes()
            do throws(UploadError) {
                let target = try Target(options, callbacks: callbacks)
                service = try makeService(store, identities, forsakenMs: 0)
                service.delegate = notes
                _ = try service.addTarget(target)
            } catch {
                throw CordwoodError(error.status.rawValue, error.text)
            }
        }

        /// Makes one attempt for each archive that waits for the target. Explicit overrides
        /// backoff and byte rate, never consent or a server's Retry-After.
        package func upload(
            deadlineMonotonicMs: UInt64, explicit: Bool = true
        ) throws(CordwoodError) -> Outcome {
            do throws(UploadError) {
                try StoreUploader.obey(directory, service)
            } catch {
                throw CordwoodError(error.status.rawValue, error.text)
            }
            var outcome = Outcome(status: Status.ok)
            let status = service.pass(
                explicit: explicit, deadlineMonotonicMs: deadlineMonotonicMs,
                result: &outcome.result)
            outcome.status = status.rawValue
            outcome.diagnostics = notes.take()
            return outcome
        }
    }

    /// Runs one upload in a session of its own.
    public static func upload(
        directory: String, target options: TargetOptions,
        callbacks: TargetCallbacks = TargetCallbacks(), timeout: Duration? = nil,
        explicit: Bool = true, identities: [AgeIdentity] = []
    ) throws(CordwoodError) -> Outcome {
        try Session(
            directory: directory, target: options, callbacks: callbacks, identities: identities
        ).upload(deadlineMonotonicMs: Deadline(timeout).monotonicMs, explicit: explicit)
    }

    /// Visits every request that `upload` would make, with the bytes of its body, and sends
    /// nothing. Does not register the target. Works without consent as well.
    public static func plan(
        directory: String, target options: TargetOptions, identities: [AgeIdentity] = [],
        begin: (PlannedRequest) -> Bool?, piece: (UnsafeRawBufferPointer) -> Bool
    ) throws(CordwoodError) -> Int {
        let store = try StoreSettings.requireStore(directory)
        do throws(UploadError) {
            return try unsafe makeService(store, identities).plan(
                try Target(options), begin: begin, piece: piece)
        } catch {
            throw CordwoodError(error.status.rawValue, error.text)
        }
    }

    /// Sends one harmless request and reports the server's answer. Blocks; touches no store.
    public static func probe(_ options: TargetOptions) throws(CordwoodError) -> ProbeReport {
        do throws(UploadError) {
            return try Target(options).probe(nowUnixMs: cw_realtime_ns() / 1_000_000)
        } catch {
            throw CordwoodError(error.status.rawValue, error.text)
        }
    }

    private static func makeService(
        _ directory: FilePath, _ identities: [AgeIdentity], forsakenMs: UInt64 = .max
    ) throws(UploadError) -> UploadService {
        let service = try UploadService(
            storeDirectory: directory, identities: identities, forsakenMs: forsakenMs)
        try obey(directory, service)
        return service
    }

    /// A policy that binds the store's programs also binds the program that sends in their place.
    private static func obey(
        _ directory: FilePath, _ service: UploadService
    ) throws(UploadError) {
        let policy = try PolicyFile.read(storeDirectory: directory).map { StoredPolicy($0) }
        service.setEnabled(policy?.document?.isEnabled ?? true)
    }

    /// SAFETY: `kept` is used under the monitor only.
    private final class Notes: UploadDelegate, @unchecked Sendable {
        private static let warn: UInt8 = 13
        private let monitor = Monitor()
        private var kept: [String] = []

        func take() -> [String] {
            monitor.locked {
                defer { kept = [] }
                return kept
            }
        }

        func report(_ diagnostic: UploadDiagnostic) {
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
