// Polls the URL of an engine's policy on a dedicated thread, so that a slow or missing server holds
// up nothing. A valid policy is applied and kept in the store, and the next start begins with it.
// An invalid or missing policy changes nothing and is reported under Cordwood.Uploader. A forked
// child makes its own keeper.

import CShims
import CordwoodCore
import CordwoodShip
import CordwoodStore

final class PolicyKeeper: @unchecked Sendable {
    // SAFETY: `isStopping` and `isWanted` are read and written under the monitor. The rest belongs
    // to the thread that calls `begin`, and after that to the thread that runs `run`.
    let source: PolicySource
    private let directory: FilePath
    /// Explicit uploads in quick succession must not cause as many requests.
    private let soonMs: UInt64
    private let monitor = Monitor()
    private var isStopping = false
    private var isWanted = false
    private var known: PolicyFile?
    private var failures: UInt32 = 0
    private(set) var begun: PolicyDocument?

    private static let warn: UInt8 = 13

    init(_ source: PolicySource, directory: FilePath, soonMs: UInt64 = 1_000) {
        self.source = source
        self.directory = directory
        self.soonMs = soonMs
    }

    /// The policy that a program's last run left here; nil: none.
    func begin() throws(UploadError) -> PolicyDocument? {
        guard let (document, file) = try source.kept(storeDirectory: directory) else { return nil }
        known = file
        begun = document
        return document
    }

    /// Runs until `stop`. If `apply` returns false (not all of it took effect), the next look
    /// applies it again.
    func run(
        apply: (PolicyDocument) -> Bool, report: (UploadDiagnostic) -> Void
    ) {
        if var known, known.allow != source.allow {
            known.allow = source.allow
            keep(known, report)
        }
        while !stops {
            let answer = look()
            if case .stopped = answer { return }
            failures = answer.isFailure ? failures &+ 1 : 0
            take(answer, apply, report)
            let delay = source.delayMs(
                after: answer, failures: failures, random: .random(in: .min ... .max))
            wait(ms: delay)
        }
    }

    /// Called when a server reports that a policy forbids what was sent. Looks at once, unless it
    /// did so just now.
    func lookSoon() {
        monitor.locked {
            isWanted = true
            monitor.notify()
        }
    }

    /// The thread ends within a moment, even if a server keeps it waiting.
    func stop() {
        monitor.locked {
            isStopping = true
            monitor.notify()
        }
    }

    private var stops: Bool { monitor.locked { isStopping } }

    private func look() -> PolicySource.PolicyAnswer {
        source.look(known: known, nowUnixMs: cw_realtime_ns() / 1_000_000, shouldStop: { stops })
    }

    private func take(
        _ answer: PolicySource.PolicyAnswer, _ apply: (PolicyDocument) -> Bool,
        _ report: (UploadDiagnostic) -> Void
    ) {
        switch answer {
        case .unchanged, .stopped: break
        case .fresh(let document, let file):
            let isNew = file.json != known?.json
            if isNew, !apply(document) {
                // The next look requests the whole policy and applies it again, even after a
                // restart.
                known = nil
                return
            }
            if isNew || file.etag != known?.etag || file.modified != known?.modified {
                keep(file, report)
            }
        case .invalid(let text):
            report(
                diagnostic(PolicyKeeper.warn, "a policy is not valid; nothing was changed", text))
        case .failed(let detail, _):
            var record = diagnostic(
                PolicyKeeper.warn, "no policy came; the last one holds", detail.cause)
            record.fields += detail.fields
            report(record)
        }
    }

    private func keep(_ file: PolicyFile, _ report: (UploadDiagnostic) -> Void) {
        known = file
        do throws(UploadError) {
            try source.keep(file, storeDirectory: directory)
        } catch {
            report(
                diagnostic(
                    PolicyKeeper.warn, "the policy could not be kept for the next start",
                    error.text))
        }
    }

    private func diagnostic(_ level: UInt8, _ message: String, _ cause: String) -> UploadDiagnostic
    {
        UploadDiagnostic(
            level: level, message: message,
            fields: [("origin", .text(source.origin)), ("cause", .text(cause))])
    }

    private func wait(ms: UInt64) {
        monitor.locked {
            isWanted = false
            var deadline = Deadline(afterMs: ms)
            var isShortened = false
            while !isStopping {
                if !monitor.wait(until: deadline) { return }
                // Once per wait: repeated requests must not postpone the look.
                guard isWanted, !isShortened else { continue }
                isShortened = true
                let soon = Deadline(afterMs: soonMs)
                if soon.monotonicMs < deadline.monotonicMs { deadline = soon }
            }
        }
    }
}
