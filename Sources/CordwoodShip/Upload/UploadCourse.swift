// The progress of an attempt with its archive: records done, records refused, the form of bodies,
// and the records under suspicion. A record is kept only if it was refused, the target took another
// one since, and refused this one again, alone: if a server refuses everything, the record is not
// at fault. A value of one attempt.

import CordwoodStore

struct UploadCourse {
    /// The content of the next state's name, without the lines of its file.
    var progress: Progress
    var refusals: PairRefusals
    /// From 1.
    private(set) var attempt: UInt32
    private let doneBefore: UInt64
    private let stateBefore: PairState

    private(set) var encoding: BodyEncoding
    /// Bodies of several records stay below it; 0: no limit was met.
    private(set) var bytesMax: UInt64
    /// A limit that this attempt met, before the target took a body below it; 0: none.
    private var metBytesMax: UInt64 = 0

    /// The next record to send; beyond `progress.done` if suspects lie between.
    var next: UInt64
    /// Refused alone, and nothing was taken since.
    private(set) var suspects: [RefusedRecords] = []
    /// Kept since the target took another record: each is sent once more, alone.
    private(set) var retrials: [RefusedRecords] = []
    /// The end of the range that was refused as a whole, and the end of the half under test.
    private(set) var halving: (end: UInt64, half: UInt64)?
    /// Records before this one were refused together, for their size or their content;
    /// `hasTakenSince`: the target took some of them since.
    private var refusedEnd: UInt64 = 0
    private var hasTakenSince = false
    /// A record was kept that no state names yet.
    private var hasUnwritten = false
    /// Consecutive bodies that were refused for their content.
    private(set) var refusedInRow: UInt32 = 0

    /// It was answered 403 before: its bodies are cut.
    private(set) var isForbidden: Bool
    /// The target took another body since: this one is at fault.
    private(set) var isAtFault = false

    /// The number of suspects tried in a row before the target rests. It grows with each futile
    /// attempt, because suspects may be neighbours.
    private var suspectsMax: Int { Int(min(max(attempt, 3), 100)) }
    /// Limits for a target that took nothing since its last refusal, and for one that did.
    static let refusedMax: (atFirst: UInt32, ofOne: UInt32) = (2, 40)

    /// - Parameter refusals: nil: they could not be read. Everything is then sent again, because
    ///   repetitions can be recognised.
    init(
        _ archive: borrowing ArchiveLock, _ state: PairState, _ learned: LearnedLimits,
        _ refusals: PairRefusals?
    ) {
        progress = refusals == nil ? .start : state.progress
        self.refusals = refusals ?? .none
        attempt = state.attempts &+ 1
        stateBefore = state
        doneBefore = progress.done
        next = progress.done
        encoding = learned.encoding
        bytesMax = learned.bytesMax
        isForbidden =
            switch state {
            case .paused(_, HTTPStatus.forbidden, _): true
            case .retry(let attempts, _, .refused, _): attempts > 0
            default: false
            }
    }

    /// - Parameters:
    ///   - blame: whether the target took another body since it last answered 403 to this archive;
    ///     nil: it did not answer so.
    ///   - isLately: it took one so lately that its view of us has hardly changed.
    ///   - refusesUs: it answers 403 to all that it gets.
    mutating func judge(blame: Bool?, isLately: Bool, refusesUs: Bool) {
        isAtFault = isLately && blame == true
        isForbidden = isForbidden || blame != nil || refusesUs
    }

    /// Written down with a state that continues.
    var stand: Progress {
        Progress(done: progress.done, doubt: progress.doubt, lines: refusals.lines)
    }

    /// Written down before a body is sent: a crash during the transfer has then changed nothing
    /// else.
    var underWay: PairState {
        switch stateBefore {
        case .retry(let attempts, let notBeforeMs, let reason, _) where !hasProgress:
            .retry(
                attempts: attempts, notBeforeMs: notBeforeMs, reason: reason, progress: stand)
        case .paused(let attempts, let httpStatus, _) where !hasProgress:
            .paused(attempts: attempts, httpStatus: httpStatus, progress: stand)
        default: .retry(attempts: 0, notBeforeMs: 0, reason: .stopped, progress: stand)
        }
    }

    /// Something was delivered since the attempt began: the count of failures starts anew.
    var hasProgress: Bool { progress.done > doneBefore }

    mutating func countAnew() {
        if hasProgress { attempt = 1 }
    }

    // ── What is sent next ──

    /// The end of a range that must be sent unchanged, or the upper bound of the next one.
    var bound: UInt64? {
        if let retrial = retrials.first { return retrial.range.end }
        if let doubt { return doubt }
        // Tests one by one whether the target takes any at all.
        return suspects.isEmpty ? halving?.half : next + 1
    }

    /// The end of a range that was sent without an answer. It is sent again unchanged, whatever was
    /// learnt since: the server may have it, under this id.
    var doubt: UInt64? {
        guard retrials.isEmpty, halving == nil, next == progress.done, progress.doubt > next else {
            return nil
        }
        return progress.doubt
    }

    var first: UInt64 { retrials.first?.range.first ?? next }

    /// Another process, with other limits or from the state written last, would make a different
    /// part.
    var isOfItsOwn: Bool { bytesMax > 0 || halving != nil || hasUnwritten }

    // ── Results of a body ──

    /// False: there is no simpler encoding.
    mutating func simplify() -> Bool {
        guard let simpler = encoding.simpler else { return false }
        encoding = simpler
        return true
    }

    /// Several records were too large for one body.
    /// - Parameter bytes: bodies of several records stay below it from now on.
    mutating func shrink(_ range: PartRange, to bytes: UInt64) {
        noteRefused(range)
        bytesMax = bytesMax == 0 ? bytes : min(bytesMax, bytes)
        metBytesMax = bytesMax
        progress.doubt = 0
    }

    /// The facts that an accepted body reveals about the target.
    var taken: LearnedLimits.Taken {
        LearnedLimits.Taken(encoding: encoding, bytesMax: metBytesMax)
    }

    /// Applies to this attempt what all attempts have learnt.
    mutating func know(_ learned: LearnedLimits) {
        bytesMax = learned.bytesMax
        metBytesMax = 0
    }

    /// Nothing before `end` remains to be sent.
    mutating func pass(to end: UInt64) {
        if !retrials.isEmpty {
            retrials.removeFirst()
            return
        }
        next = end
        halve(from: end)
        if suspects.isEmpty { progress = Progress(done: end) }
    }

    /// The target has taken a body up to `end`: records it refused before are tried once more.
    mutating func take(to end: UInt64) {
        refusedInRow = 0
        isAtFault = isForbidden
        if let retrial = retrials.first {
            retrials.removeFirst()
            refusals.release(retrial.range.first)
            return
        }
        keepSuspects()
        if next < refusedEnd { hasTakenSince = true }
        next = end
        halve(from: end)
        progress = Progress(done: end)
    }

    /// Several records were refused together.
    mutating func halve(_ range: PartRange) {
        refusedInRow += 1
        noteRefused(range)
        halving = (range.end, range.end)
        halve(from: range.first)
        // The next attempt, or another process, begins with that half.
        if suspects.isEmpty, let halving { progress.doubt = halving.half }
    }

    private mutating func noteRefused(_ range: PartRange) {
        if range.first >= refusedEnd { hasTakenSince = false }
        refusedEnd = max(refusedEnd, range.end)
    }

    private mutating func halve(from first: UInt64) {
        guard let end = halving?.end else { return }
        halving = first >= end ? nil : (end, first + max(1, (end - first) / 2))
    }

    /// One record was refused alone. True: it was refused again after the target took another one,
    /// so it is kept.
    /// - Parameter end: the end of its body's range.
    mutating func suspect(_ refusal: RefusedRecords, to end: UInt64) -> Bool {
        if !retrials.isEmpty {
            retrials.removeFirst()
            return true
        }
        refusedInRow += 1
        let isSettled = hasTakenSince && refusal.range.first < refusedEnd
        halving = nil
        next = end
        progress.doubt = 0
        if isSettled {
            refusals.keep(refusal)
            progress.done = end
            hasUnwritten = true
        } else {
            suspects.append(refusal)
        }
        return isSettled
    }

    /// Whether this attempt may ask the target again.
    func mayAsk(takesOthers: Bool) -> Bool {
        let most = takesOthers ? UploadCourse.refusedMax.ofOne : UploadCourse.refusedMax.atFirst
        return suspects.isEmpty ? refusedInRow < most : suspects.count < suspectsMax
    }

    /// The target takes others: these records may be at fault.
    private mutating func keepSuspects() {
        for suspect in suspects { refusals.keep(suspect) }
        retrials = suspects
        suspects = []
    }

    /// The target takes other archives and refuses these records again and again.
    mutating func giveUpSuspects() {
        keepSuspects()
        retrials = []
        progress = Progress(done: next)
    }
}
