// The state of one archive at one target, and its spelling as the end of a file name.
// docs/UPLOADS.md shows the states, their transitions, and what a crash leaves. Pure.

import CordwoodFormats

/// Why an attempt has to be repeated.
public enum RetryReason: String, Sendable {
    /// The server named a time (Retry-After). Holds all archives of the target, even in explicit
    /// calls.
    case server
    /// There is no answer from the server. Holds all archives of the target in the background.
    case unreachable
    /// The server is overloaded and does not say for how long. Holds all archives of the target in
    /// the background: a single request probes it, instead of one per archive.
    case busy
    /// This transfer failed. Holds only this archive.
    case failed
    /// The answer shows a problem on the way to the server: a redirection, an error page, an
    /// unknown path. Holds all archives of the target in the background: a single request probes
    /// it.
    case refused
    /// We aborted it: time ran out, or the engine is closing. Holds nothing.
    case stopped
}

/// Progress of an archive that is sent in parts.
public struct Progress: Equatable, Sendable {
    /// All records before this one are done.
    public var done: UInt64 = 0
    /// The records from `done` to this one were sent without a 2xx. The server may have them, so
    /// they are sent again as the same part. 0: none.
    public var doubt: UInt64 = 0
    /// Lines in the state's file (PairRefusals); 0: it lists nothing.
    public var lines: UInt32 = 0

    public static let start = Progress()

    public init(done: UInt64 = 0, doubt: UInt64 = 0, lines: UInt32 = 0) {
        self.done = done
        self.doubt = doubt
        self.lines = lines
    }
}

public enum PairState: Equatable, Sendable {
    /// Has no file.
    case waiting
    case retry(
        attempts: UInt32, notBeforeMs: UInt64, reason: RetryReason, progress: Progress = .start)
    /// 401 or 403: waits for other credentials or an explicit call.
    case paused(attempts: UInt32, httpStatus: Int32, progress: Progress = .start)
    case sent(httpStatus: Int32)
    /// The target wants none of the records.
    case filtered
    /// The target took everything except this many records, which it refused: the archive still has
    /// them, and the state's file lists their places.
    case kept(httpStatus: Int32, records: UInt32)
    /// The target will never take it. Status 0: we could not even read it.
    case quarantined(httpStatus: Int32, progress: Progress = .start)
    /// A state written by a newer version: we neither send nor delete the archive.
    case unknown(String)

    /// A body of it may be on its way for the first time.
    package static let begun = PairState.retry(attempts: 0, notBeforeMs: 0, reason: .stopped)

    public var attempts: UInt32 {
        switch self {
        case .retry(let attempts, _, _, _), .paused(let attempts, _, _): attempts
        default: 0
        }
    }

    public var progress: Progress {
        switch self {
        case .retry(_, _, _, let progress), .paused(_, _, let progress),
            .quarantined(_, let progress):
            progress
        default: .start
        }
    }

    /// True if its file holds more than the cause.
    var hasRefusals: Bool {
        if case .kept = self { return true }
        return progress.lines > 0
    }

    /// True if the refusals match the state: a file may be empty after a power cut, or edited.
    func fits(_ refusals: PairRefusals) -> Bool {
        if case .kept(_, let records) = self { return refusals.records == records }
        return refusals.lines == progress.lines
    }

    /// True if no further attempt will be made.
    package var isFinal: Bool {
        switch self {
        case .sent, .filtered, .kept, .quarantined, .unknown: true
        default: false
        }
    }

    /// The target no longer needs the archive: an answer that counts (Dialect.verdict) confirmed
    /// that it has all of it, or it wants none of it. Every path that removes an archive because it
    /// was sent checks this.
    package var isDone: Bool {
        switch self {
        case .sent, .filtered: true
        default: false
        }
    }

    /// True if some of it may still be sent, automatically or by hand.
    package var isUnsent: Bool {
        switch self {
        case .waiting, .retry, .paused, .kept, .quarantined: true
        case .sent, .filtered, .unknown: false
        }
    }

    /// How many of an archive's records the target does not have.
    package func unsent(of records: UInt64) -> UInt64 {
        switch self {
        case .waiting, .retry, .paused, .quarantined: records - min(progress.done, records)
        case .kept(_, let refused): min(UInt64(refused), records)
        case .sent, .filtered, .unknown: 0
        }
    }

    /// A word for people: `waiting`, `retry`, `paused`, `sent`, `filtered`, `kept`, `quarantined`,
    /// `unknown`.
    public var word: String {
        switch self {
        case .waiting: "waiting"
        case .retry: "retry"
        case .paused: "paused"
        case .sent: "sent"
        case .filtered: "filtered"
        case .kept: "kept"
        case .quarantined: "quarantined"
        case .unknown: "unknown"
        }
    }

    /// nil for `waiting`, which has no file.
    var suffix: String? {
        switch self {
        case .waiting: nil
        case .retry(let attempts, let notBeforeMs, let reason, let progress):
            "retry-\(attempts)-\(notBeforeMs)-\(reason.rawValue)" + PairState.text(progress)
        case .paused(let attempts, let status, let progress):
            "paused-\(attempts)-\(status)" + PairState.text(progress)
        case .sent(let status): "sent-\(status)"
        case .filtered: "filtered"
        case .kept(let status, let records): "kept-\(status)-\(records)"
        case .quarantined(let status, let progress):
            "quarantined-\(status)" + PairState.text(progress)
        case .unknown(let text): text
        }
    }

    init(suffix: Substring) {
        let parts = suffix.split(separator: "-", omittingEmptySubsequences: false)
        self = PairState.parse(parts) ?? .unknown(String(suffix))
    }

    private static func text(_ progress: Progress) -> String {
        if progress == .start { return "" }
        let text = "-\(progress.done)-\(progress.doubt)"
        return progress.lines == 0 ? text : text + "-\(progress.lines)"
    }

    private static func parse(_ parts: [Substring]) -> PairState? {
        func number<Number: FixedWidthInteger>(_ index: Int, _: Number.Type) -> Number? {
            Digits.number(parts[index].utf8)
        }
        /// No number, or two or three numbers after `index`.
        func progress(_ index: Int) -> Progress? {
            if parts.count == index { return .start }
            guard parts.count == index + 2 || parts.count == index + 3,
                let done = number(index, UInt64.self), let doubt = number(index + 1, UInt64.self)
            else { return nil }
            guard parts.count == index + 3 else { return Progress(done: done, doubt: doubt) }
            guard let lines = number(index + 2, UInt32.self), lines > 0 else { return nil }
            return Progress(done: done, doubt: doubt, lines: lines)
        }
        switch (parts.first, parts.count) {
        case ("retry", 4...):
            guard let attempts = number(1, UInt32.self), let time = number(2, UInt64.self),
                let reason = RetryReason(rawValue: String(parts[3])), let progress = progress(4)
            else { return nil }
            return .retry(
                attempts: attempts, notBeforeMs: time, reason: reason, progress: progress)
        case ("paused", 3...):
            guard let attempts = number(1, UInt32.self), let status = number(2, Int32.self),
                let progress = progress(3)
            else { return nil }
            return .paused(attempts: attempts, httpStatus: status, progress: progress)
        case ("sent", 2):
            guard let status = number(1, Int32.self) else { return nil }
            return .sent(httpStatus: status)
        case ("filtered", 1): return .filtered
        case ("kept", 3):
            guard let status = number(1, Int32.self), let records = number(2, UInt32.self) else {
                return nil
            }
            return .kept(httpStatus: status, records: records)
        case ("quarantined", 2...):
            guard let status = number(1, Int32.self), let progress = progress(2) else { return nil }
            return .quarantined(httpStatus: status, progress: progress)
        default: return nil
        }
    }

    /// If a crash left two files for one pair, the more advanced state wins.
    package static func further(_ a: PairState, _ b: PairState) -> PairState {
        func rank(_ state: PairState) -> (UInt64, Int, UInt32) {
            let done = state.progress.done
            switch state {
            case .waiting: return (0, 0, 0)
            case .retry(let attempts, _, _, _): return (done, 1, attempts)
            case .paused(let attempts, _, _): return (done, 2, attempts)
            case .unknown: return (.max, 3, 0)
            case .quarantined: return (.max, 4, 0)
            case .kept: return (.max, 5, 0)
            case .filtered: return (.max, 6, 0)
            case .sent: return (.max, 7, 0)
            }
        }
        return rank(a) >= rank(b) ? a : b
    }
}
