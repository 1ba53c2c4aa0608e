// A host's regular expression over bytes. It finds every byte that lies in some match, not one
// match after the other. All states pass through the text together, each with the leftmost place
// where it may have begun. One look at each byte is therefore enough, and the time is linear in the
// text whatever the pattern. (libtre, and every search for "the next match", is quadratic for
// patterns like `c|a.*z`.) Built once, never changed; any thread.

import CordwoodFormats

struct PatternStep {
    enum Assertion { case lineBegins, lineEnds, wordEdge }

    enum Kind {
        case bytes(ByteSet)
        case assertion(Assertion)
        /// Continues in both places.
        case split(Int, Int)
        case jump(Int)
        case match
    }

    var kind: Kind
}

/// Turns a tree into steps, with a bound on both and on the work.
private struct PatternCompiler {
    var steps: [PatternStep] = []
    /// Repetitions of nothing add no steps.
    private var calls = 0

    mutating func add(_ node: PatternNode) throws(PatternError) {
        calls += 1
        guard steps.count < BytePattern.stepsMax, calls < BytePattern.stepsMax * 4 else {
            throw PatternError(
                text: "over \(BytePattern.stepsMax) steps: fewer repetitions", offset: 0)
        }
        switch node {
        case .empty: break
        case .bytes(let set): put(.bytes(set))
        case .assertion(let kind): put(.assertion(kind))
        case .sequence(let parts): for part in parts { try add(part) }
        case .choice(let branches): try add(branches)
        case .repetition(let inner, let least, let most): try add(inner, least, most)
        }
    }

    private mutating func put(_ kind: PatternStep.Kind) { steps.append(PatternStep(kind: kind)) }

    private mutating func add(_ branches: [PatternNode]) throws(PatternError) {
        var ends: [Int] = []
        for (index, branch) in branches.enumerated() {
            guard index + 1 < branches.count else {
                try add(branch)
                break
            }
            let split = steps.count
            put(.jump(0))
            try add(branch)
            ends.append(steps.count)
            put(.jump(0))
            steps[split].kind = .split(split + 1, steps.count)
        }
        for end in ends { steps[end].kind = .jump(steps.count) }
    }

    private mutating func add(
        _ inner: PatternNode, _ least: Int, _ most: Int?
    ) throws(PatternError) {
        for _ in 0..<least { try add(inner) }
        var splits: [Int] = []
        for _ in least..<max(least, most ?? least + 1) {
            splits.append(steps.count)
            put(.jump(0))
            try add(inner)
        }
        if most == nil { put(.jump(splits[0])) }
        for split in splits { steps[split].kind = .split(split + 1, steps.count) }
    }
}

final class BytePattern: Sendable {
    static let stepsMax = 2_000

    private let steps: [PatternStep]
    var stepCount: Int { steps.count }
    /// The bytes with which a match may begin; nil: any, or a match may be empty at first.
    private let first: ByteSet?

    init(_ text: [UInt8]) throws(PatternError) {
        var compiler = PatternCompiler()
        try compiler.add(try PatternParser.parse(text))
        compiler.steps.append(PatternStep(kind: .match))
        steps = compiler.steps
        first = BytePattern.first(compiler.steps)
    }

    private static func first(_ steps: [PatternStep]) -> ByteSet? {
        var set = ByteSet()
        var seen = [Bool](repeating: false, count: steps.count)
        var open = [0]
        while let step = open.popLast() {
            if seen[step] { continue }
            seen[step] = true
            switch steps[step].kind {
            case .bytes(let bytes): set.formUnion(bytes)
            case .split(let here, let there): open += [here, there]
            case .jump(let to): open.append(to)
            case .assertion: open.append(step + 1)
            case .match: return nil
            }
        }
        return set
    }

    // MARK: Searching

    /// Calls `found` with pieces of the text that lie in matches; they may overlap.
    func find(in text: ByteText, _ found: (Int, Int) -> Void) {
        var run = PatternRun(steps: steps)
        var at = 0
        var piece: (from: Int, to: Int)?
        while at <= text.count {
            if run.isIdle, let first {
                while at < text.count, !first.contains(text[at]) { at &+= 1 }
                if at == text.count { break }
            }
            run.begin(at, text)
            if let from = run.matchedFrom, from < at {
                if let before = piece, from > before.to {
                    found(before.from, before.to)
                    piece = nil
                }
                piece = (min(piece?.from ?? from, from), at)
            }
            guard at < text.count else { break }
            run.take(text[at])
            at &+= 1
        }
        if let piece { found(piece.from, piece.to) }
    }
}

/// The states of a search.
private struct PatternRun {
    private let steps: [PatternStep]
    /// Steps that wait for a byte, with the start of their match, in ascending order of it.
    private var now: [(step: Int, from: Int)] = []
    private var next: [(step: Int, from: Int)] = []
    /// By step: the last place for which it was entered.
    private var entered: [Int]
    private var open: [Int] = []
    private(set) var matchedFrom: Int?

    init(steps: [PatternStep]) {
        self.steps = steps
        entered = [Int](repeating: -1, count: steps.count)
    }

    var isIdle: Bool { next.isEmpty }

    /// Continues from the states after the last byte, and begins a match here, at `at`.
    mutating func begin(_ at: Int, _ text: ByteText) {
        now.removeAll(keepingCapacity: true)
        matchedFrom = nil
        for state in next { enter(state.step, from: state.from, at, text) }
        enter(0, from: at, at, text)
        next.removeAll(keepingCapacity: true)
    }

    mutating func take(_ byte: UInt8) {
        for state in now {
            if case .bytes(let set) = steps[state.step].kind, set.contains(byte) {
                next.append((state.step &+ 1, state.from))
            }
        }
    }

    private mutating func enter(_ step: Int, from: Int, _ at: Int, _ text: ByteText) {
        open.append(step)
        while let step = open.popLast() {
            guard step < steps.count, entered[step] != at else { continue }
            entered[step] = at
            switch steps[step].kind {
            case .bytes: now.append((step, from))
            case .split(let here, let there):
                open.append(there)
                open.append(here)
            case .jump(let to): open.append(to)
            case .assertion(let kind):
                if PatternRun.holds(kind, at, text) { open.append(step &+ 1) }
            case .match: if matchedFrom == nil { matchedFrom = from }
            }
        }
    }

    private static func holds(_ kind: PatternStep.Assertion, _ at: Int, _ text: ByteText) -> Bool {
        switch kind {
        case .lineBegins: return at == 0 || text[at &- 1] == 0x0A
        case .lineEnds: return at == text.count || text[at] == 0x0A
        case .wordEdge:
            return (at > 0 && isWord(text[at &- 1])) != (at < text.count && isWord(text[at]))
        }
    }

    private static func isWord(_ byte: UInt8) -> Bool {
        ASCII.isUpper(byte) || ASCII.isLower(byte) || ASCII.isDigit(byte)
            || byte == UInt8(ascii: "_")
    }
}
