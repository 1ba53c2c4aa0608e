// Which records of an archive a target refused, and which alone must be sent again: the part of a
// pair's state file after the cause (docs/UPLOADS.md, States). Text, one entry per line; the file's
// name gives their number. Pure.

/// Records [first, end) of an archive, including those that the target's filter skips.
package struct PartRange: Equatable, Sendable {
    package var first: UInt64
    package var end: UInt64

    package init(first: UInt64, end: UInt64) {
        self.first = first
        self.end = end
    }

    package func contains(_ ordinal: UInt64) -> Bool { first <= ordinal && ordinal < end }
}

/// `count` records within the range were refused. If the server names none, the range is the whole
/// part.
package struct RefusedRecords: Equatable, Sendable {
    package var range: PartRange
    var count: UInt32
    /// 0: the records exceed our own limits.
    var httpStatus: Int32
    /// Printable and bounded.
    package var reason: String

    static let reasonBytesMax = 200

    package init(_ range: PartRange, count: UInt32, httpStatus: Int32, reason: String) {
        self.range = range
        self.count = count
        self.httpStatus = httpStatus
        let plain = reason.utf8.prefix(RefusedRecords.reasonBytesMax).map {
            $0 < 0x20 || $0 == 0x7F ? 0x20 : $0
        }
        self.reason = String(decoding: plain, as: UTF8.self)
    }
}

package struct PairRefusals: Equatable, Sendable {
    /// Ordered by first record.
    package private(set) var kept: [RefusedRecords] = []
    /// The only records to send; all others are done. Empty: all records.
    private(set) var only: [PartRange] = []
    /// How often the kept records were retried by hand. It is part of the ids of those requests,
    /// because another body must not reuse an old id.
    package private(set) var round: UInt32 = 0

    package static let none = PairRefusals()
    /// Beyond this, the last line absorbs further entries.
    static let linesMax = 2_000

    /// Lines of the file after the cause; 0: the file may be missing.
    package var lines: UInt32 { UInt32(kept.count + only.count) + (round > 0 ? 1 : 0) }
    package var records: UInt32 { kept.reduce(0) { $0 &+ $1.count } }
    /// The status of the first refusal.
    package var httpStatus: Int32 { kept.first?.httpStatus ?? 0 }

    package func wants(_ ordinal: UInt64) -> Bool {
        only.isEmpty || only.contains { $0.contains(ordinal) }
    }

    /// - Returns: false: this single record was kept before. A part that is sent again as a whole
    /// is refused for the same records.
    @discardableResult
    package mutating func keep(_ refusal: RefusedRecords) -> Bool {
        if refusal.range.end - refusal.range.first == 1, index(of: refusal.range.first) != nil {
            return false
        }
        guard let last = kept.last else {
            kept.append(refusal)
            return true
        }
        let isSame = last.httpStatus == refusal.httpStatus && last.reason == refusal.reason
        let isNext = last.range.end == refusal.range.first
        guard isSame && isNext || kept.count >= PairRefusals.linesMax else {
            kept.append(refusal)
            return true
        }
        kept[kept.count - 1].range.end = max(last.range.end, refusal.range.end)
        kept[kept.count - 1].count = last.count &+ refusal.count
        return true
    }

    /// Index of the line that says that exactly this record was refused.
    private func index(of ordinal: UInt64) -> Int? {
        kept.firstIndex {
            $0.range.contains(ordinal) && UInt64($0.count) == $0.range.end - $0.range.first
        }
    }

    /// The refusals that remain once everything else is done.
    package var settled: PairRefusals {
        var settled = self
        settled.only = []
        return settled
    }

    /// Removes one record, which the target took after all.
    package mutating func release(_ ordinal: UInt64) {
        guard let found = index(of: ordinal) else { return }
        let old = kept.remove(at: found)
        let sides = [
            PartRange(first: old.range.first, end: ordinal),
            PartRange(first: ordinal + 1, end: old.range.end),
        ].filter { $0.first < $0.end }
        kept.insert(
            contentsOf: sides.map { side in
                RefusedRecords(
                    side, count: UInt32(side.end - side.first), httpStatus: old.httpStatus,
                    reason: old.reason)
            }, at: found)
    }

    /// Retries only the kept records.
    package var again: PairRefusals {
        var again = PairRefusals()
        again.only = kept.map(\.range)
        again.round = round &+ 1
        return again
    }

    // ── As text ──

    var text: String {
        var text = ""
        if round > 0 { text += "round \(round)\n" }
        for range in only { text += "only \(range.first) \(range.end)\n" }
        for one in kept {
            text += "kept \(one.range.first) \(one.range.end) \(one.count) \(one.httpStatus)"
            text += " \(one.reason)\n"
        }
        return text
    }

    /// nil: a line does not have this form.
    init?(_ text: Substring) {
        for line in text.split(separator: "\n") {
            let words = line.split(
                separator: " ", maxSplits: 5, omittingEmptySubsequences: false)
            func range() -> PartRange? {
                guard words.count >= 3, let first = UInt64(words[1]), let end = UInt64(words[2]),
                    first < end
                else { return nil }
                return PartRange(first: first, end: end)
            }
            switch words.first {
            case "round" where words.count == 2:
                guard let number = UInt32(words[1]), number > 0 else { return nil }
                round = number
            case "only" where words.count == 3:
                guard let range = range() else { return nil }
                only.append(range)
            case "kept" where words.count == 6:
                guard let range = range(), let count = UInt32(words[3]),
                    let status = Int32(words[4])
                else { return nil }
                kept.append(
                    RefusedRecords(
                        range, count: count, httpStatus: status, reason: String(words[5])))
            default: return nil
            }
        }
    }

    init() {}
}
